"""The values that one attribute may have, as a set in normal form; "missing" is a member like any other.

Every filter whose tests are comparisons, sets, prefixes or IS NULL on one attribute is true on such a set and false
on another (under `sql` they needn't be complements: elsewhere it is unknown). A set has one part for each kind of
value: sorted cuts (`cuts.py`) for numbers, strings and timestamps, and four flags for false, true, lists and missing.
Lists are all in or all out. The parts together are all that an attribute can be, so the sets are a Boolean algebra,
and the normal form makes equal sets equal objects: identity, covering and overlap of attribute filters (Mühl, Fiege
and Buchmann, section 3.3, whose L(AF) these sets are) are set equality, inclusion and intersection, whatever the
operators were.

Exact for the values that events have: integers of any size, doubles, strings of characters, microseconds. An attribute
that a schema makes an integer is rounded to integers first (`integers`), after which `x > 3 AND x < 5` is `x = 4`.

Cost: linear in the number of cuts; a comparison has two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from covey.filters.values import Kind, Scalar, Value, kind_of
from covey.relations import cuts as cutting
from covey.relations.cuts import BOTTOM, FULL, TOP, Cuts, is_infinite

if TYPE_CHECKING:
    from covey.filters.algebra import Filter
    from covey.filters.semantics import Semantics

IS_MISSING: Final = 1
IS_FALSE: Final = 2
IS_TRUE: Final = 4
IS_LIST: Final = 8
ALL_FLAGS: Final = 15

_NUMBERS, _STRINGS, _TIMES = FULL[Kind.NUMBER], FULL[Kind.STRING], FULL[Kind.TIMESTAMP]


@dataclass(frozen=True, slots=True)
class Interval:
    """The values of one kind between two ends; an end of None is open to that side (above, NaN included)."""

    kind: Kind
    low: Scalar | None
    high: Scalar | None
    low_included: bool
    high_included: bool

    @property
    def is_point(self) -> bool:
        """Whether it is one value."""
        return self.low_included and self.high_included and self.low is not None and self._same_ends()

    def _same_ends(self) -> bool:
        return self.low == self.high or (self.low != self.low and self.high != self.high)


class ValueSet:
    """An immutable set of values of one attribute, or their absence. Equal where the sets are equal."""

    __slots__ = ("_hash", "flags", "numbers", "strings", "timestamps")

    numbers: Cuts
    strings: Cuts
    timestamps: Cuts
    flags: int

    def __init__(self, numbers: Cuts = (), strings: Cuts = (), timestamps: Cuts = (), flags: int = 0) -> None:
        self.numbers = numbers
        self.strings = strings
        self.timestamps = timestamps
        self.flags = flags
        self._hash = hash((numbers, strings, timestamps, flags))

    @staticmethod
    def of(values: Iterable[Scalar | None]) -> ValueSet:
        """The set of just these values; None is "missing"."""
        points: dict[Kind, list[Cuts]] = {kind: [] for kind in FULL}
        flags = 0
        for value in values:
            if value is None:
                flags |= IS_MISSING
            elif isinstance(value, bool):
                flags |= IS_TRUE if value else IS_FALSE
            else:
                points[kind_of(value)].append((cutting.below(value), cutting.above(value)))
        number, string, time = (_united(spans) for spans in points.values())
        return ValueSet(number, string, time, flags)

    @staticmethod
    def of_kind(kind: Kind) -> ValueSet:
        """All values of a kind."""
        return _OF_KIND[kind]

    @staticmethod
    def between(
        low: Scalar | None, high: Scalar | None, *, low_included: bool = True, high_included: bool = True
    ) -> ValueSet:
        """The values of an ordered kind between two ends of that kind; an end of None is open to that side."""
        end = low if low is not None else high
        if end is None or isinstance(end, bool):
            raise TypeError("an interval takes a number, a string or a timestamp at one of its ends")
        kind = kind_of(end)
        start = BOTTOM[kind] if low is None else (cutting.below if low_included else cutting.above)(low)
        stop = TOP[kind] if high is None else (cutting.above if high_included else cutting.below)(high)
        return _of_span(kind, (start, stop)) if start < stop else NOTHING

    @staticmethod
    def with_prefix(prefix: str) -> ValueSet:
        """The strings that start with a prefix: an interval, since strings are ordered by code point."""
        return ValueSet(strings=(cutting.below(prefix), cutting.after_prefix(prefix)))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, ValueSet)
            and self._hash == other._hash
            and self.flags == other.flags
            and self.numbers == other.numbers
            and self.strings == other.strings
            and self.timestamps == other.timestamps
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[ValueSet], tuple[Cuts, Cuts, Cuts, int]]:
        return ValueSet, (self.numbers, self.strings, self.timestamps, self.flags)

    def __repr__(self) -> str:
        return f"<ValueSet {self.to_filter('value')}>"

    def __and__(self, other: ValueSet) -> ValueSet:
        if self is other or other is EVERYTHING:
            return self
        if self is EVERYTHING:
            return other
        meet = cutting.meet
        return ValueSet(
            meet(self.numbers, other.numbers),
            meet(self.strings, other.strings),
            meet(self.timestamps, other.timestamps),
            self.flags & other.flags,
        )

    def __or__(self, other: ValueSet) -> ValueSet:
        if self is other:
            return self
        join = cutting.join
        return ValueSet(
            join(self.numbers, other.numbers),
            join(self.strings, other.strings),
            join(self.timestamps, other.timestamps),
            self.flags | other.flags,
        )

    def __invert__(self) -> ValueSet:
        return ValueSet(
            cutting.complement(self.numbers, Kind.NUMBER),
            cutting.complement(self.strings, Kind.STRING),
            cutting.complement(self.timestamps, Kind.TIMESTAMP),
            ALL_FLAGS & ~self.flags,
        )

    def __sub__(self, other: ValueSet) -> ValueSet:
        return self & ~other

    def __contains__(self, value: Value | None) -> bool:
        if value is None:
            return bool(self.flags & IS_MISSING)
        if isinstance(value, bool):
            return bool(self.flags & (IS_TRUE if value else IS_FALSE))
        if isinstance(value, tuple):
            return bool(self.flags & IS_LIST)
        return cutting.holds(self._cuts_of(kind_of(value)), value)

    def _cuts_of(self, kind: Kind) -> Cuts:
        if kind is Kind.NUMBER:
            return self.numbers
        return self.strings if kind is Kind.STRING else self.timestamps

    @property
    def spans(self) -> tuple[Cuts, Cuts, Cuts]:
        """The cuts of numbers, of strings and of timestamps."""
        return self.numbers, self.strings, self.timestamps

    @property
    def is_empty(self) -> bool:
        """Whether nothing is in it."""
        return not (self.flags or self.numbers or self.strings or self.timestamps)

    @property
    def is_everything(self) -> bool:
        """Whether every value and "missing" are in it."""
        return self.flags == ALL_FLAGS and self == EVERYTHING

    def issuperset(self, other: ValueSet) -> bool:
        """Whether everything in the other set is in this one."""
        if self is other:
            return True
        covers = cutting.covers
        return (
            not other.flags & ~self.flags
            and covers(self.numbers, other.numbers)
            and covers(self.strings, other.strings)
            and covers(self.timestamps, other.timestamps)
        )

    def issubset(self, other: ValueSet) -> bool:
        """Whether everything in this set is in the other one."""
        return other.issuperset(self)

    def overlaps(self, other: ValueSet) -> bool:
        """Whether something is in both."""
        overlap = cutting.overlap
        return (
            bool(self.flags & other.flags)
            or overlap(self.numbers, other.numbers)
            or overlap(self.strings, other.strings)
            or overlap(self.timestamps, other.timestamps)
        )

    def others_of_kind(self, kind: Kind) -> ValueSet:
        """The values of a kind that aren't in the set; as a difference of sets, at a third of its cost."""
        if kind is Kind.NUMBER:
            return ValueSet(numbers=cutting.complement(self.numbers, kind))
        if kind is Kind.STRING:
            return ValueSet(strings=cutting.complement(self.strings, kind))
        return ValueSet.of_kind(kind) - self

    def integers(self) -> ValueSet:
        """The same set for an attribute whose numbers are integers: sets with the same integers become equal."""
        return ValueSet(cutting.to_integers(self.numbers), self.strings, self.timestamps, self.flags)

    def with_default(self, default: Scalar | None) -> ValueSet:
        """The set where "missing" stands for a default value: in exactly if the default is."""
        if default is None or (default in self) == bool(self.flags & IS_MISSING):
            return self
        return ValueSet(self.numbers, self.strings, self.timestamps, self.flags ^ IS_MISSING)

    @property
    def pieces(self) -> int:
        """How many intervals and single members it takes: a measure of how simple the set is."""
        return (len(self.numbers) + len(self.strings) + len(self.timestamps)) // 2 + self.flags.bit_count()

    def intervals(self, *, integer: bool = False) -> Iterator[Interval]:
        """The intervals of numbers, strings and timestamps, ascending; of integers both ends are included."""
        for kind in FULL:
            cuts = self._cuts_of(kind)
            for at in range(0, len(cuts), 2):
                yield _interval(kind, cuts[at], cuts[at + 1], integer=integer and kind is Kind.NUMBER)

    def hull(self) -> ValueSet:
        """The least set that has this one in it and at most one interval of each kind; flags stay."""
        numbers, strings, timestamps = (
            (cuts[0], cuts[-1]) if cuts else () for cuts in (self.numbers, self.strings, self.timestamps)
        )
        return ValueSet(numbers, strings, timestamps, self.flags)

    @property
    def is_interval(self) -> bool:
        """Whether it is one interval of one ordered kind, and nothing else."""
        return self.pieces == 1 and not self.flags

    def joins_to_interval(self, other: ValueSet) -> bool:
        """Whether the union with another set is one interval: they overlap or touch."""
        return (self | other).is_interval

    def example(self, *, integer: bool = False) -> Value | None:
        """A member, as plain as can be found; None is "missing". ValueError where the set is empty."""
        from covey.relations.examples import example

        return example(self, integer=integer)

    def to_filter(self, attribute: str, semantics: Semantics = "sql", *, integer: bool = False) -> Filter:
        """A short filter that is true exactly on this set."""
        from covey.relations.set_printing import to_filter

        return to_filter(self, attribute, semantics, integer=integer)


def _united(spans: list[Cuts]) -> Cuts:
    if len(spans) < 2:
        return spans[0] if spans else ()
    result: list[cutting.Cut] = []
    for low, high in sorted(spans):
        if result and low <= result[-1]:
            result[-1] = high
        else:
            result += (low, high)
    return tuple(result)


def _interval(kind: Kind, start: cutting.Cut, stop: cutting.Cut, *, integer: bool) -> Interval:
    if integer:
        low = None if is_infinite(start[0]) else math.floor(start[0]) + (start[1] or start[0] % 1 > 0)
        high = None if is_infinite(stop[0]) else math.floor(stop[0]) - (stop[1] == 0 and stop[0] % 1 == 0)
        return Interval(kind, low, high, True, True)
    point = cutting.point(start, stop)
    if point is not None:
        return Interval(kind, point, point, True, True)
    low = None if start == BOTTOM[kind] else start[0]
    high = None if stop == TOP[kind] else stop[0]
    return Interval(kind, low, high, start[1] == 0, stop[1] > 0)


NOTHING: Final = ValueSet()
EVERYTHING: Final = ValueSet(_NUMBERS, _STRINGS, _TIMES, ALL_FLAGS)
MISSING: Final = ValueSet(flags=IS_MISSING)
DEFINED: Final = ~MISSING

_OF_KIND: Final[dict[Kind, ValueSet]] = {
    Kind.NUMBER: ValueSet(numbers=_NUMBERS),
    Kind.STRING: ValueSet(strings=_STRINGS),
    Kind.TIMESTAMP: ValueSet(timestamps=_TIMES),
    Kind.BOOLEAN: ValueSet(flags=IS_FALSE | IS_TRUE),
    Kind.LIST: ValueSet(flags=IS_LIST),
}


def _of_span(kind: Kind, span: Cuts) -> ValueSet:
    if kind is Kind.NUMBER:
        return ValueSet(numbers=span)
    return ValueSet(strings=span) if kind is Kind.STRING else ValueSet(timestamps=span)
