"""Which roots may cover a filter, and which it may cover, by witnesses: events that meet a filter (`witnesses.py`).

A root that covers a filter matches all of its witnesses, and a root that it covers has witnesses that all match it.
Both are asked of codes (`codes.py`) by kernels. A filter is known here by *boxes*: its inner boxes where they are all
of it, else its hull; what meets the filter is in one of them. Witnesses and codes only ever say no.

So that few roots are asked, they are listed in two ways:

- by what their boxes ask for. Each box is listed under one attribute, under each of the values it may have there where
  these are few (of such attributes the one whose lists are shortest now), else under the attribute alone, else under
  nothing. A root that matches a witness is then in a list of one of the witness's values or attributes, and the
  witness with the shortest lists is looked up.
- by their first witness, under each of its values and each of its attributes. For each box of the filter that asks, the
  shortest of these lists that it allows has all roots whose first witness is in the box.

An entry of a list says one number besides, a witness's or the ends of a box, so that most of a long list is left out
at a glance.

A root that leaves stays in the lists as a number that nobody has. Lists and tables are made anew once half is waste, so
that an entry costs a constant.

Cost: some microseconds, a nanosecond for each entry of a list, and some ten for each root that these leave.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.kernels import witnesses as kernels
from covey.kernels.witnesses import (
    ANYTHING,
    ENTRY_COLUMNS,
    MISSING,
    NOWHERE,
    NUMBER,
    POINT_COLUMNS,
    SPAN_COLUMNS,
    TEST_COLUMNS,
)  # fmt: skip
from covey.relations.conjunctions import Conjunction
from covey.relations.covering.codes import Code, code_of, spans_of
from covey.relations.exact import Event
from covey.relations.growing_arrays import grown

LISTED_VALUES: Final = 8
"""Values of one attribute under each of which a box is listed; with more it is listed under the attribute."""

LISTED_BOXES: Final = 16
"""Boxes of one filter that are told apart; with more, a filter is one box that asks for nothing."""

_LEAST_WASTE: Final = 1 << 10

Table: TypeAlias = NDArray[np.float64]
_Key: TypeAlias = tuple[int, Code | None]
"""An attribute with a value, or an attribute alone; `_UNDER_NOTHING` for neither."""
_UNDER_NOTHING: Final[_Key] = (NOWHERE, None)
_Numbers: TypeAlias = tuple[int, float, float]
"""An attribute, and the lowest and highest number of it."""
_NO_NUMBERS: Final[_Numbers] = (NOWHERE, -math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Access:
    """What a box asks for: attributes with few values, and attributes that must be defined."""

    valued: tuple[tuple[_Key, ...], ...]
    defined: tuple[_Key, ...]
    numbers: tuple[_Numbers, ...]
    """Attributes that must be numbers, with the least interval around them."""

    def hint(self) -> _Numbers:
        """The attribute that tells most: the shortest interval that isn't one number, which values tell already."""
        return min(self.numbers, key=_telling, default=_NO_NUMBERS)


@dataclass(frozen=True, slots=True)
class Coded:
    """A filter's boxes and witnesses in codes."""

    tests: Table
    accesses: tuple[Access, ...]
    points: Table
    keys: tuple[tuple[_Key, ...], ...]
    """For each witness its values."""


class _Lists:
    """Entries under keys."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[_Key, array[float]] = {}

    def add(self, key: _Key, slot: int, hint: _Numbers) -> None:
        listed = self._lists.get(key)
        if listed is None:
            listed = self._lists[key] = array("d")
        listed.extend((slot, *hint))

    def length(self, keys: Iterable[_Key]) -> int:
        lists = self._lists
        return sum([len(lists[key]) for key in keys if key in lists])

    def under(self, keys: Iterable[_Key]) -> Table:
        """All entries under some keys."""
        lists = self._lists
        parts = [np.frombuffer(lists[key], np.float64) for key in keys if key in lists]
        return np.concatenate(parts or [np.empty(0)]).reshape(-1, ENTRY_COLUMNS)


class WitnessSieve:
    """Roots by their boxes and by their witnesses. A root is named by a slot, which is given when it enters."""

    def __init__(self) -> None:
        self._attributes: dict[str, int] = {}
        self._forms: list[int] = []
        """For each slot its form's number, and -1 where the root has left."""
        self._outer: list[bool] = []
        self._clear()

    def _clear(self) -> None:
        self._by_boxes, self._by_witness = _Lists(), _Lists()
        self._without_witness: array[int] = array("i")
        self._points, self._points_used = np.zeros((64, POINT_COLUMNS)), 0
        self._tests, self._tests_used = np.zeros((64, TEST_COLUMNS)), 0
        self._spans = np.zeros((64, SPAN_COLUMNS), np.int64)
        self._wasted = 0
        self._kinds = np.full(len(self._attributes) + 64, MISSING, np.int8)
        self._codes = np.zeros(len(self._kinds))

    def any_root(self) -> int | None:
        """The form of some root; None where there is none."""
        return next((form for form in self._forms if form >= 0), None)

    def coded(self, boxes: tuple[Conjunction, ...], witnesses: Iterable[Event]) -> Coded:
        """A filter, which is in the union of some boxes, and its witnesses."""
        coded = [self._box(box) for box in boxes] if len(boxes) <= LISTED_BOXES else [[_NO_TEST]]
        tests = np.array([row for rows in coded for row in rows], np.float64)
        events = [self._point(event) for event in witnesses]
        points = np.array([row for rows in events for row in rows], np.float64).reshape(-1, POINT_COLUMNS)
        accesses = tuple([_access(rows) for rows in coded])
        return Coded(tests, accesses, points, tuple([_keys(rows) for rows in events]))

    def add(self, form: int, coded: Coded, *, outer: bool) -> int:
        """A root enters; gives its slot. It is asked whether it covers others only where it is `outer`."""
        slot = len(self._forms)
        self._forms.append(form)
        self._outer.append(outer)
        self._spans = grown(self._spans, slot + 1)
        first_point, first_test = self._points_used, self._tests_used
        self._add_points(coded.points)
        if outer:
            self._tests_used += len(coded.tests)
            self._tests = grown(self._tests, self._tests_used)
            self._tests[first_test : self._tests_used] = coded.tests
            for access in coded.accesses:
                hint = access.hint()
                for key in min((*access.valued, access.defined[:1] or (_UNDER_NOTHING,)), key=self._preference):
                    self._by_boxes.add(key, slot, hint)
        self._spans[slot] = first_point, self._points_used, first_test, self._tests_used
        self._list_witness(coded.keys, slot)
        return slot

    def _preference(self, keys: tuple[_Key, ...]) -> tuple[bool, int]:
        """Values before attributes, then short lists before long ones."""
        return keys[0][1] is None, self._by_boxes.length(keys)

    def _list_witness(self, keys: tuple[tuple[_Key, ...], ...], slot: int) -> None:
        if not keys:
            self._without_witness.append(slot)
            return
        hint = next(((at, code[1], code[1]) for at, code in keys[0] if code and code[0] == NUMBER), _NO_NUMBERS)
        self._by_witness.add(_UNDER_NOTHING, slot, hint)
        for key in keys[0]:
            self._by_witness.add(key, slot, hint)
            self._by_witness.add((key[0], None), slot, hint)

    def _add_points(self, points: Table) -> None:
        first = self._points_used
        self._points_used += len(points)
        self._points = grown(self._points, self._points_used)
        self._points[first : self._points_used] = points

    def add_witness(self, slot: int, event: Event) -> None:
        """One more witness of a root, not listed."""
        first, last = int(self._spans[slot, 0]), int(self._spans[slot, 1])
        if first == last:
            return
        rows = np.array(self._point(event), np.float64)
        together = np.concatenate([self._points[first:last], rows])
        self._spans[slot, 0] = self._points_used
        self._add_points(together)
        self._spans[slot, 1] = self._points_used

    def remove(self, slot: int) -> None:
        """A root leaves. `tidy` may follow."""
        self._forms[slot] = -1
        self._wasted += 1

    def is_untidy(self) -> bool:
        """Whether most of what is listed is waste."""
        return self._wasted > _LEAST_WASTE and 2 * self._wasted > len(self._forms)

    def tidy(self) -> Iterator[tuple[int, int]]:
        """Make lists and tables anew; gives each root's form and its new slot."""
        kept = [(form, slot) for slot, form in enumerate(self._forms) if form >= 0]
        points, tests, spans, outer = self._points, self._tests, self._spans, self._outer
        self._forms, self._outer = [], []
        self._clear()
        for form, slot in kept:
            first_point, last_point, first_test, last_test = spans[slot].tolist()
            coded = _from_tables(tests[first_test:last_test], points[first_point:last_point])
            yield form, self.add(form, coded, outer=outer[slot])

    def may_cover(self, asked: Coded) -> list[int]:
        """The forms that may cover a filter, ascending."""
        if not asked.keys:
            return sorted(form for form, outer in zip(self._forms, self._outer, strict=True) if outer and form >= 0)
        chosen, keys = min(enumerate(map(_places, asked.keys)), key=lambda point: self._by_boxes.length(point[1]))
        entries = self._by_boxes.under(keys)
        slots = np.empty(len(entries), np.int32)
        first = sum([max(1, len(before)) for before in asked.keys[:chosen]])
        point = asked.points[first : first + max(1, len(asked.keys[chosen]))]
        count = kernels.listed_around(entries, point, self._kinds, self._codes, slots)
        count = kernels.matching_all(slots, count, asked.points, self._tests, self._spans, self._kinds, self._codes)
        return self._of(slots[:count])

    def may_be_covered(self, asked: Coded) -> list[int]:
        """The forms that a filter may cover, ascending."""
        parts = [np.array(self._without_witness, np.int32)]
        for access in asked.accesses:
            choices = [*access.valued, *((key,) for key in access.defined), (_UNDER_NOTHING,)]
            entries = self._by_witness.under(min(choices, key=self._by_witness.length))
            slots = np.empty(len(entries), np.int32)
            box = np.array(access.numbers, np.float64).reshape(-1, len(_NO_NUMBERS))
            parts.append(slots[: kernels.listed_within(entries, box, slots)])
        return self._matched(np.concatenate(parts), asked)

    def covered_among(self, slots: list[int], asked: Coded) -> list[int]:
        """The forms, of those at some slots, that a filter may cover, ascending."""
        return self._matched(np.array(slots, np.int32), asked)

    def _matched(self, slots: NDArray[np.int32], asked: Coded) -> list[int]:
        count = kernels.all_matched(slots, len(slots), self._points, asked.tests, self._spans, self._kinds, self._codes)
        return self._of(slots[:count])

    def _of(self, slots: NDArray[np.int32]) -> list[int]:
        return sorted({form for form in map(self._forms.__getitem__, slots.tolist()) if form >= 0})

    def _attribute(self, name: str) -> int:
        number = self._attributes.get(name)
        if number is None:
            number = self._attributes[name] = len(self._attributes) + 1  # NOWHERE is before them
            self._kinds = grown(self._kinds, number + 1, MISSING)
            self._codes = grown(self._codes, number + 1)
        return number

    def _box(self, box: Conjunction) -> list[list[float]]:
        rows: list[list[float]] = []
        for name, values in box.sets:
            number = self._attribute(name)
            rows += [[number, *span, 0] for span in spans_of(values)]
            rows[-1][4] = 1
        if not rows:
            return [[*_NO_TEST]]
        rows[-1][4] = 2
        return rows

    def _point(self, event: Event) -> list[list[float]]:
        rows: list[list[float]] = [
            [self._attribute(name), *code_of(value)] for name, value in event.items() if value is not None
        ]
        if not rows:
            rows = [[NOWHERE, MISSING, 0.0]]
        rows[-1][0] = ~int(rows[-1][0])
        return rows


_NO_TEST: Final[list[float]] = [NOWHERE, ANYTHING, 0.0, 0.0, 2]


def _keys(rows: list[list[float]]) -> tuple[_Key, ...]:
    """The values of a point."""
    found: list[_Key] = []
    for attribute, kind, code in rows:
        number = int(attribute) if attribute >= 0 else ~int(attribute)
        if number != NOWHERE:
            found.append((number, (int(kind), code)))
    return tuple(found)


def _access(rows: list[list[float]]) -> Access:
    """What a box, given by its tests, asks for."""
    valued: list[tuple[_Key, ...]] = []
    defined: list[_Key] = []
    numbers: list[_Numbers] = []
    lowest, highest, numeric = math.inf, -math.inf, True
    keys: list[_Key] | None = []
    possible = True
    for attribute, kind, low, high, ends in rows:
        possible = possible and kind not in (MISSING, ANYTHING)
        numeric = numeric and kind == NUMBER
        lowest, highest = min(lowest, low), max(highest, high)
        if keys is not None and low == high and len(keys) < LISTED_VALUES:
            keys.append((int(attribute), (int(kind), low)))
        else:
            keys = None
        if ends:
            if possible:
                defined.append((int(attribute), None))
                if keys:
                    valued.append(tuple(keys))
                if numeric:
                    numbers.append((int(attribute), lowest, highest))
            keys, possible = [], True
            lowest, highest, numeric = math.inf, -math.inf, True
    return Access(tuple(valued), tuple(defined), tuple(numbers))


def _telling(numbers: _Numbers) -> tuple[bool, float]:
    _, low, high = numbers
    return low == high, high - low


def _places(keys: tuple[_Key, ...]) -> tuple[_Key, ...]:
    """Where boxes that have a point may be listed, given the point's values."""
    return (*keys, *[(attribute, None) for attribute, _ in keys], _UNDER_NOTHING)


def _from_tables(tests: Table, points: Table) -> Coded:
    """What was coded, from its rows."""
    test_rows, point_rows = tests.tolist(), points.tolist()
    boxes = _split(test_rows, lambda row: row[4] == 2)
    events = _split(point_rows, lambda row: row[0] < 0)
    accesses = tuple([_access(rows) for rows in boxes])
    return Coded(tests, accesses, points, tuple([_keys(rows) for rows in events]))


def _split(rows: list[list[float]], ends: Any) -> list[list[list[float]]]:
    parts: list[list[list[float]]] = []
    start = 0
    for at, row in enumerate(rows, 1):
        if ends(row):
            parts.append(rows[start:at])
            start = at
    return parts
