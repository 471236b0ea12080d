"""A member of a value set, as plain as can be found: for counterexamples that people read."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Final

from covey.filters.values import Kind, Scalar, Value
from covey.relations import cuts as cutting
from covey.relations.cuts import FULL, Cut, is_infinite
from covey.relations.value_sets import IS_FALSE, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

_STEPS: Final = (timedelta(days=1), timedelta(hours=1), timedelta(seconds=1), timedelta(microseconds=1))


def example(values: ValueSet, *, integer: bool = False) -> Value | None:
    """A member of the set, a value rather than "missing"; ValueError where the set is empty."""
    for kind, cuts in zip(FULL, values.spans, strict=True):
        if cuts:
            return between(kind, cuts[0], cuts[1], integer=integer)
    for flag, value in ((IS_TRUE, True), (IS_FALSE, False), (IS_LIST, ())):
        if values.flags & flag:
            return value
    if values.flags & IS_MISSING:
        return None
    raise ValueError("an empty set has no example")


def between(kind: Kind, start: Cut, stop: Cut, *, integer: bool) -> Scalar:
    """A value between two cuts. What the candidates miss, the neighbour of the lower cut finds."""
    if kind is Kind.NUMBER:
        candidates = _numbers(start, stop, integer=integer)
    elif kind is Kind.STRING:
        candidates = _strings(start)
    else:
        candidates = _instants(start, stop)
    inside = (value for value in candidates if cutting.holds((start, stop), value))
    return next(inside)


def _numbers(start: Cut, stop: Cut, *, integer: bool) -> list[Scalar]:
    if start == (math.inf, 1):
        return [math.nan]
    low, high = start[0], stop[0]
    if is_infinite(low):
        if is_infinite(high):
            return [0, low, high]
        low = min(high, 0) - 2
    if is_infinite(high):
        high = max(low, 0) + 2
    whole = math.floor(low)
    candidates: list[Scalar] = [whole, whole + 1, whole + 2]
    if start[1] == 0:
        candidates.insert(len(candidates) if is_infinite(start[0]) else 0, start[0])
    if stop[1] == 1:
        candidates.append(stop[0])
    if integer:
        return [int(value) for value in candidates if value == value and abs(value) != math.inf and value % 1 == 0]  # type: ignore[arg-type, operator]
    if not is_infinite(start[0]):
        middle = (low + high) / 2 if abs(low) < 2**53 and abs(high) < 2**53 else low
        candidates += [middle, round(middle, 3), cutting.following(start[0])]
    return candidates


def _strings(start: Cut) -> list[Scalar]:
    return [start[0], start[0] + "a", start[0] + " ", start[0] + "\0"]


def _instants(start: Cut, stop: Cut) -> list[Scalar]:
    low, high = start[0], stop[0]
    later = [low + step for step in _STEPS if low <= cutting.LATEST - step]
    return [low, datetime(2024, 1, 1, tzinfo=low.tzinfo), *later, high]
