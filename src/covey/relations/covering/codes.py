"""Values and value sets as doubles, so that kernels can tell which sets an event can't be in.

A value's code is a kind and a double. Numbers are their own code, as far as doubles go; strings are a checksum, so that
equality is a comparison of doubles; timestamps are seconds. Codes keep the order of numbers and of timestamps, and a
set's codes are intervals around the codes of its members, with ends as exact as doubles. So a value whose code is in
none of a set's intervals isn't in the set. The reverse doesn't hold: two strings may share a checksum, two large
integers a double, and an interval of strings is all strings. Codes only ever say no, which is all that a sieve needs.

Filters repeat few sets, and one filter has each of its sets in boxes and in witnesses, so all that a sieve asks of a
set is made at once and kept (`CodedSet`).
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeAlias
from zlib import crc32

from covey.filters.values import Value
from covey.kernels.witnesses import BOOLEAN, LIST, MISSING, NUMBER, STRING, TIMESTAMP
from covey.relations.covering.witnesses import ends_of
from covey.relations.cuts import Cut, Cuts, point
from covey.relations.value_sets import IS_FALSE, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

Code: TypeAlias = tuple[int, float]
"""A kind, and the value in it."""

Span: TypeAlias = tuple[int, float, float]
"""A kind, and the lowest and highest value."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = 2**53
_WHOLE: Final = (-math.inf, math.inf)
_KEPT_SETS: Final = 1 << 15

LISTED_VALUES: Final = 8
"""Values of one attribute under each of which a box is listed; with more it is listed under the attribute."""


class CodedSet:
    """A value set in codes, not empty."""

    __slots__ = ("defined", "ends", "numbers", "shown", "spans", "values")

    def __init__(self, values: ValueSet) -> None:
        self.spans = spans_of(values)
        """Intervals that have the codes of all members."""
        members = ends_of(values)
        self.ends = tuple([None if member is None else code_of(member) for member in members])
        """The codes of two members, near and far; None is "missing"."""
        self.defined = not values.flags & IS_MISSING
        """Whether "missing" is no member."""
        self.shown = tuple([member is not None or not self.defined for member in members])
        """Whether these are members."""
        few = self.defined and len(self.spans) <= LISTED_VALUES and all(low == high for _, low, high in self.spans)
        self.values: tuple[Code, ...] | None = tuple([(kind, low) for kind, low, _ in self.spans]) if few else None
        """The codes of all members, where these are few."""
        numeric = all(kind == NUMBER for kind, _, _ in self.spans)
        self.numbers: tuple[float, float] | None = (self.spans[0][1], self.spans[-1][2]) if numeric else None
        """The least interval around the members, where they are numbers."""


@lru_cache(maxsize=_KEPT_SETS)
def coded_set(values: ValueSet) -> CodedSet:
    """A value set in codes."""
    return CodedSet(values)


def code_of(value: Value) -> Code:
    """The code of a value."""
    if isinstance(value, str):
        return STRING, float(crc32(value.encode("utf-8", "surrogatepass")))
    if isinstance(value, bool):
        return BOOLEAN, float(value)
    if isinstance(value, (int, float)):
        return NUMBER, _double(value)
    if isinstance(value, datetime):
        return TIMESTAMP, (value - _EPOCH).total_seconds()
    return LIST, 0.0


def spans_of(values: ValueSet) -> tuple[Span, ...]:
    """Intervals that have the codes of all members of a set."""
    cuts = values.numbers
    spans = [(NUMBER, _lowest(cuts[at]), _highest(cuts[at + 1])) for at in range(0, len(cuts), 2)]
    spans += _texts(values.strings)
    cuts = values.timestamps
    spans += [(TIMESTAMP, _instant(cuts[at]), _instant(cuts[at + 1])) for at in range(0, len(cuts), 2)]
    flags = values.flags
    if flags & (IS_FALSE | IS_TRUE):
        spans.append((BOOLEAN, 0.0 if flags & IS_FALSE else 1.0, 1.0 if flags & IS_TRUE else 0.0))
    if flags & IS_LIST:
        spans.append((LIST, *_WHOLE))
    if flags & IS_MISSING:
        spans.append((MISSING, *_WHOLE))
    return tuple(spans)


def _texts(cuts: Cuts) -> list[Span]:
    if not cuts:
        return []
    points = [point(cuts[at], cuts[at + 1]) for at in range(0, len(cuts), 2)]
    if any(value is None for value in points):
        return [(STRING, *_WHOLE)]
    codes = [code_of(value)[1] for value in points if value is not None]
    return [(STRING, code, code) for code in codes]


def _double(number: int | float) -> float:
    """NaN, which follows infinity, shares its code."""
    if number != number:
        return math.inf
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _lowest(cut: Cut) -> float:
    code = _double(cut[0])
    return math.nextafter(code, math.inf) if cut[1] and -_EXACT < code < _EXACT else code


def _highest(cut: Cut) -> float:
    code = _double(cut[0])
    return math.nextafter(code, -math.inf) if not cut[1] and -_EXACT < code < _EXACT else code


def _instant(cut: Cut) -> float:
    return code_of(cut[0])[1]
