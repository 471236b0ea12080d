"""Which roots may cover a filter, and which it may cover, by witnesses: events that meet a filter (`witnesses.py`).

A root that covers a filter matches all of its witnesses, and a root that it covers has witnesses that all match it.
Both are asked of codes (`codes.py`) by kernels. A filter is known here by *boxes*: its inner boxes where they are all
of it, else its hull; what meets the filter is in one of them. Witnesses and codes only ever say no.

So that few roots are asked, they are listed in two ways:

- by what their boxes ask for. Each box is listed under one attribute, under each of the values it may have there where
  these are few (of such attributes the one whose values fewest witnesses have: those lists are looked up least), else
  under the attribute alone, else under nothing. A root that matches a witness is then in a list of one of the witness's
  values or attributes, and the witness with the shortest lists is looked up.
- by one witness, that whose values fewest boxes ask for, under each of its values and each of its attributes. For each
  box of the filter that asks, the shortest of these lists that it allows has all roots whose listed witness is in it.

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
from typing import Final, TypeAlias

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
from covey.relations.covering.codes import Code, CodedSet, code_of, coded_set
from covey.relations.covering.witnesses import WITNESSES
from covey.relations.exact import Event
from covey.relations.growing_arrays import grown

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
_Side: TypeAlias = tuple[int, CodedSet]
"""An attribute of a box, and what it may be there."""
_NO_ENTRIES: Final = np.empty(0)
_NO_POINTS: Final = np.empty((0, POINT_COLUMNS))


@dataclass(slots=True)
class Access:
    """What a box asks for: attributes with few values, and attributes that must be defined."""

    valued: list[list[_Key]]
    defined: list[_Key]
    numbers: list[_Numbers]
    """Attributes that must be numbers, with the least interval around them."""

    def hint(self) -> _Numbers:
        """The attribute that tells most: the shortest interval that isn't one number, which values tell already."""
        return min(self.numbers, key=_telling, default=_NO_NUMBERS)


@dataclass(slots=True)
class Coded:
    """A filter's boxes and witnesses in codes."""

    tests: Table
    accesses: list[Access]
    points: Table
    keys: list[tuple[_Key, ...]]
    """For each witness its values."""


class _Lists:
    """Entries under keys."""

    __slots__ = ("_lists",)

    def __init__(self) -> None:
        self._lists: dict[_Key, array[float]] = {}

    def add(self, keys: Iterable[_Key], slot: int, hint: _Numbers) -> None:
        entry = (slot, *hint)
        lists = self._lists
        for key in keys:
            listed = lists.get(key)
            if listed is None:
                lists[key] = array("d", entry)
            else:
                listed.extend(entry)

    def length(self, keys: Iterable[_Key]) -> int:
        found, lists = 0, self._lists
        for key in keys:
            if key in lists:
                found += len(lists[key])
        return found

    def under(self, keys: Iterable[_Key]) -> Table:
        """All entries under some keys. What is given mustn't outlive the next that is added."""
        lists = self._lists
        parts = [np.frombuffer(lists[key], np.float64) for key in keys if key in lists]
        together = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else _NO_ENTRIES
        return together.reshape(-1, ENTRY_COLUMNS)

    def renumber(self, slots: NDArray[np.float64]) -> None:
        """Give entries other slots; those below zero leave."""
        for key, listed in list(self._lists.items()):
            entries = np.frombuffer(listed, np.float64).reshape(-1, ENTRY_COLUMNS)
            renumbered = slots[entries[:, 0].astype(np.int64)]
            kept = entries[renumbered >= 0]
            kept[:, 0] = renumbered[renumbered >= 0]
            if len(kept):
                self._lists[key] = array("d", kept.tobytes())
            else:
                del self._lists[key]


class WitnessSieve:
    """Roots by their boxes and by their witnesses. A root is named by a slot, which is given when it enters."""

    def __init__(self) -> None:
        self._attributes: dict[str, int] = {}
        self._forms: list[int] = []
        """For each slot its form's number, and -1 where the root has left."""
        self._outer: list[bool] = []
        self._by_boxes, self._by_witness = _Lists(), _Lists()
        self._asked_alone: dict[int, _Key] = {}
        """The attributes under which alone boxes are listed."""
        self._without_witness: array[int] = array("i")
        self._points, self._points_used = np.zeros((64, POINT_COLUMNS)), 0
        self._tests, self._tests_used = np.zeros((64, TEST_COLUMNS)), 0
        self._spans = np.zeros((64, SPAN_COLUMNS), np.int64)
        self._wasted = 0
        self._kinds = np.full(64, MISSING, np.int8)
        self._codes = np.zeros(len(self._kinds))

    def any_root(self) -> int | None:
        """The form of some root; None where there is none."""
        return next((form for form in self._forms if form >= 0), None)

    def coded(
        self, boxes: tuple[Conjunction, ...], witnesses: Iterable[Event], branches: tuple[Conjunction, ...] = ()
    ) -> Coded:
        """A filter, which is in the union of some boxes, and its witnesses: some events, before them the corners of
        some branches, of which it must be known that they meet the filter (`witnesses.corners_meet`)."""
        sides = {box: self._sides(box) for box in branches}
        asked = [sides.get(box) or self._sides(box) for box in boxes] if len(boxes) <= LISTED_BOXES else [[]]
        points = _corners(list(sides.values())[:WITNESSES])
        points += [self._point(event) for event in witnesses]
        tests = np.frombuffer(_test_rows(asked), np.float64).reshape(-1, TEST_COLUMNS)
        return Coded(tests, list(map(_access, asked)), _table(points), points)

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
                self._by_boxes.add(self._places_of(access), slot, access.hint())
        self._spans[slot] = first_point, self._points_used, first_test, self._tests_used
        self._list_witness(coded.keys, slot)
        return slot

    def _places_of(self, access: Access) -> list[_Key]:
        """Where a box is listed: under the values that the fewest have been seen to have, since these are asked for
        least, else under such an attribute."""
        seen = self._by_witness.length
        if access.valued:
            return access.valued[0] if len(access.valued) == 1 else min(access.valued, key=seen)
        if not access.defined:
            return [_UNDER_NOTHING]
        rarest = min(access.defined, key=lambda key: seen((key,)))
        self._asked_alone[rarest[0]] = rarest
        return [rarest]

    def _list_witness(self, points: list[tuple[_Key, ...]], slot: int) -> None:
        """List a root by the witness whose values the fewest boxes ask for: then it is looked at least."""
        if not points:
            self._without_witness.append(slot)
            return
        keys = points[0]
        if len(points) > 1:
            asked = self._by_boxes.length
            keys = min(points, key=lambda point: max([asked((key,)) for key in point], default=math.inf))
        hint = next(((at, code[1], code[1]) for at, code in keys if code and code[0] == NUMBER), _NO_NUMBERS)
        self._by_witness.add((_UNDER_NOTHING, *keys, *[(at, None) for at, _ in keys]), slot, hint)

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
        together = np.concatenate([self._points[first:last], _table([self._point(event)])])
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
        forms = np.array(self._forms, np.int64)
        kept = np.flatnonzero(forms >= 0)
        slots = np.full(len(forms), -1.0)
        slots[kept] = np.arange(len(kept))
        self._by_boxes.renumber(slots)
        self._by_witness.renumber(slots)
        without = slots[np.array(self._without_witness, np.int64)]
        self._without_witness = array("i", without[without >= 0].astype(np.int32).tolist())
        spans = self._spans[kept]
        self._points, point_ends = _only(self._points, spans[:, 0], spans[:, 1])
        self._tests, test_ends = _only(self._tests, spans[:, 2], spans[:, 3])
        self._points_used, self._tests_used = len(self._points), len(self._tests)
        self._spans = np.stack(
            [point_ends - spans[:, 1] + spans[:, 0], point_ends, test_ends - spans[:, 3] + spans[:, 2], test_ends], 1
        )
        self._forms, self._outer = forms[kept].tolist(), [self._outer[slot] for slot in kept.tolist()]
        self._wasted = 0
        yield from zip(self._forms, range(len(kept)), strict=True)

    def may_cover(self, asked: Coded) -> list[int]:
        """The forms that may cover a filter, ascending."""
        if not asked.keys:
            return sorted(form for form, outer in zip(self._forms, self._outer, strict=True) if outer and form >= 0)
        places = list(map(self._places_around, asked.keys))
        chosen = min(range(len(places)), key=lambda at: self._by_boxes.length(places[at]))
        entries = self._by_boxes.under(places[chosen])
        if not len(entries):
            return []
        slots = np.empty(len(entries), np.int32)
        count = kernels.listed_around(entries, _table([asked.keys[chosen]]), self._kinds, self._codes, slots)
        count = kernels.matching_all(slots, count, asked.points, self._tests, self._spans, self._kinds, self._codes)
        return self._of(slots[:count])

    def _places_around(self, keys: tuple[_Key, ...]) -> list[_Key]:
        """Where boxes that have a point may be listed, given the point's values."""
        alone = self._asked_alone
        return [*keys, *[alone[at] for at, _ in keys if at in alone], _UNDER_NOTHING]

    def may_be_covered(self, asked: Coded) -> list[int]:
        """The forms that a filter may cover, ascending."""
        parts = [np.array(self._without_witness, np.int32)] if self._without_witness else []
        length = self._by_witness.length
        for access in asked.accesses:
            choices = [*access.valued, *[[key] for key in access.defined], [_UNDER_NOTHING]]
            entries = self._by_witness.under(min(choices, key=length))
            if len(entries):
                slots = np.empty(len(entries), np.int32)
                box = np.array(access.numbers, np.float64).reshape(-1, len(_NO_NUMBERS))
                parts.append(slots[: kernels.listed_within(entries, box, slots)])
        return self._matched(np.concatenate(parts), asked) if parts else []

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

    def _sides(self, box: Conjunction) -> list[_Side]:
        return [(self._attribute(name), coded_set(values)) for name, values in box.sets]

    def _point(self, event: Event) -> tuple[_Key, ...]:
        return tuple([(self._attribute(name), code_of(value)) for name, value in event.items() if value is not None])


def _test_rows(boxes: list[list[_Side]]) -> array[float]:
    """The tests of some boxes; see `kernels.witnesses`."""
    rows = array("d")
    for sides in boxes:
        for number, values in sides:
            for span in values.spans:
                rows.extend((number, *span, 0))
            rows[-1] = 1
        if not sides:
            rows.extend(_NO_TEST)
        rows[-1] = 2
    return rows


_NO_TEST: Final = (NOWHERE, ANYTHING, 0.0, 0.0, 2)


def _access(sides: list[_Side]) -> Access:
    """What a box asks for."""
    defined = [(number, values) for number, values in sides if values.defined]
    return Access(
        [[(number, code) for code in values.values] for number, values in defined if values.values is not None],
        [(number, None) for number, _ in defined],
        [(number, *values.numbers) for number, values in defined if values.numbers is not None],
    )


def _telling(numbers: _Numbers) -> tuple[bool, float]:
    _, low, high = numbers
    return low == high, high - low


def _corners(branches: list[list[_Side]]) -> list[tuple[_Key, ...]]:
    """The values of the near corner of each of some boxes, then those of the far ones."""
    found: dict[tuple[_Key, ...], None] = {}
    for far in (False, True):
        for sides in branches:
            if all(values.shown[far] for _, values in sides):
                corner = [(number, values.ends[far]) for number, values in sides]
                found[tuple([key for key in corner if key[1] is not None])] = None
    return list(found)[:WITNESSES]


def _table(points: list[tuple[_Key, ...]]) -> Table:
    """The rows of some points."""
    rows = array("d")
    for keys in points:
        for number, code in keys:
            assert code is not None, "a point's keys are values"
            rows.extend((number, *code))
        if not keys:
            rows.extend((NOWHERE, MISSING, 0.0))
        rows[-POINT_COLUMNS] = ~int(rows[-POINT_COLUMNS])
    return np.frombuffer(rows, np.float64).reshape(-1, POINT_COLUMNS) if rows else _NO_POINTS


def _only(table: Table, firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> tuple[Table, NDArray[np.int64]]:
    """Some spans of a table's rows one after the other, and where each ends then."""
    lengths = lasts - firsts
    ends = np.cumsum(lengths)
    rows = np.arange(int(lengths.sum())) + np.repeat(firsts - ends + lengths, lengths)
    return table[rows], ends
