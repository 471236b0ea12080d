"""The cuts of one attribute's value sets as ascending integers, so that inclusion is a comparison of integers.

All that an attribute can be lies on one line: numbers, strings, timestamps, then a point each for false, true, a list
and "missing". A value set is a sequence of cuts on it, an even number, between which it has values. Every cut that some
set in use has gets an integer *label*, in the order of the line. Inclusion of sets is then a question about labels,
exact for every kind of value, and a kernel can answer it (`set_kernels.py`).

A new cut takes the middle of its neighbours' labels. Cuts that come in ascending or descending order would halve one
gap again and again and use it up after sixty, so next to a cut that came lately the new one takes a small share of the
gap, and leaves the rest to those that may follow: two million of them. Where there is no integer left between two cuts,
all cuts of the line are labelled anew, evenly.

Cost: a search among the attribute's cuts for a new cut, a dictionary lookup for a known one.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final, TypeAlias

from covey.relations.value_sets import IS_FALSE, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

LABELS: Final = 1 << 62
"""Labels lie between 0 and this, both left out."""

SHARE: Final = 1 << 16
"""What a cut next to a late one leaves of a gap is all but one part in so many."""

LATE: Final = 64
"""So many cuts are late: several ascending sequences may take turns."""

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

    __slots__ = ("_labels", "_late", "_sorted", "_uses")

    def __init__(self) -> None:
        self._sorted: list[Place] = []
        self._labels: dict[Place, int] = {}
        self._uses: dict[Place, int] = {}
        self._late: dict[Place, None] = {}

    def __len__(self) -> int:
        return len(self._sorted)

    def take(self, places: list[Place]) -> tuple[list[int], list[int]] | None:
        """Count a use of each cut and label the new ones. Where all cuts got other labels, gives those that they had,
        ascending, and those that they have."""
        had: dict[Place, int] | None = None
        for place in places:
            uses = self._uses.get(place, 0)
            self._uses[place] = uses + 1
            if not uses:
                before = self._label(place)
                had = before if had is None else had
        if had is None:
            return None
        kept = [place for place in self._sorted if place in had]
        return [had[place] for place in kept], [self._labels[place] for place in kept]

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

    def _label(self, place: Place) -> dict[Place, int] | None:
        """Label a new cut; gives the labels of before where all cuts got others."""
        at = bisect_left(self._sorted, place)
        before = self._sorted[at - 1] if at else None
        after = self._sorted[at] if at < len(self._sorted) else None
        low = 0 if before is None else self._labels[before]
        high = LABELS if after is None else self._labels[after]
        self._sorted.insert(at, place)
        follows, precedes = before in self._late, after in self._late
        self._come(place)
        if high - low > 1:
            share = (high - low) // 2 if follows is precedes else max(1, (high - low) // SHARE)
            self._labels[place] = high - share if precedes and not follows else low + share
            return None
        step = LABELS // (len(self._sorted) + 1)
        had, self._labels = self._labels, {each: (number + 1) * step for number, each in enumerate(self._sorted)}
        return had

    def _come(self, place: Place) -> None:
        """A cut is late for a while."""
        self._late[place] = None
        if len(self._late) > LATE:
            del self._late[next(iter(self._late))]
