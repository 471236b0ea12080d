"""The cuts of one attribute's value sets as ascending integers, so that inclusion is a comparison of integers.

All that an attribute can be lies on one line: numbers, strings, timestamps, then a point each for false, true, a list
and "missing". A value set is a sequence of cuts on it, an even number, between which it has values. Every cut that some
set in use has gets an integer *label*, in the order of the line. Inclusion of sets is then a question about labels,
exact for every kind of value, and a kernel can answer it (`set_kernels.py`).

A new cut takes the middle of its neighbours' labels. Where there is no integer left between them, all cuts of the line
are labelled anew, evenly: with 2^62 integers that takes some sixty cuts in one gap, each next to the last.

Cost: a search among the attribute's cuts for a new cut, a dictionary lookup for a known one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, Final, TypeAlias

from covey.relations.value_sets import IS_FALSE, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

LABELS: Final = 1 << 62
"""Labels lie between 0 and this, both left out."""

Place: TypeAlias = tuple[int, Any, int]
"""The kind's rank on the line, and the cut in it."""

_FLAG_RANKS: Final = ((IS_FALSE, 3), (IS_TRUE, 4), (IS_LIST, 5), (IS_MISSING, 6))


def places_of(values: ValueSet) -> list[Place]:
    """The cuts of a set on its attribute's line, ascending."""
    places = [(0, value, side) for value, side in values.numbers]
    places += [(1, value, side) for value, side in values.strings]
    places += [(2, value, side) for value, side in values.timestamps]
    if values.flags:
        for flag, rank in _FLAG_RANKS:
            if values.flags & flag:
                places += ((rank, 0, 0), (rank, 0, 1))
    return places


class Line:
    """The cuts in use of one attribute, counted and labelled."""

    __slots__ = ("_labels", "_sorted", "_uses")

    def __init__(self) -> None:
        self._sorted: list[Place] = []
        self._labels: dict[Place, int] = {}
        self._uses: dict[Place, int] = {}

    def __len__(self) -> int:
        return len(self._sorted)

    def take(self, places: list[Place]) -> bool:
        """Count a use of each cut and label the new ones; True where all cuts got other labels."""
        moved = False
        for place in places:
            uses = self._uses.get(place, 0)
            self._uses[place] = uses + 1
            if not uses:
                moved |= self._label(place)
        return moved

    def labels(self, places: list[Place]) -> list[int]:
        """The labels of cuts in use."""
        return [self._labels[place] for place in places]

    def release(self, places: list[Place]) -> None:
        """Take back a use of each cut."""
        for place in places:
            self._uses[place] -= 1
            if not self._uses[place]:
                del self._uses[place], self._labels[place]
                del self._sorted[bisect_left(self._sorted, place)]

    def _label(self, place: Place) -> bool:
        at = bisect_left(self._sorted, place)
        low = self._labels[self._sorted[at - 1]] if at else 0
        high = self._labels[self._sorted[at]] if at < len(self._sorted) else LABELS
        insort(self._sorted, place)
        if high - low > 1:
            self._labels[place] = (low + high) // 2
            return False
        step = LABELS // (len(self._sorted) + 1)
        self._labels = {each: (number + 1) * step for number, each in enumerate(self._sorted)}
        return True
