"""Witnesses of a filter: a few events that meet it.

A filter that covers another matches every event that the other matches, so one witness of the other that it doesn't
match is proof that it doesn't cover it. Good witnesses tell many filters apart: there is one for each branch (an inner
box of the filter's bounds), at the near end of its ranges and at the far end. Near is the end that a range has, if it
has one: `price < 5` has the number below 5 near and one far below zero far. Of the two the near one tells more filters
apart, so it comes first. Attributes that the branch leaves free are missing, where the meaning allows it, since then no
test on them holds.

Every witness is an event that the schema allows and that meets the filter: the interpreter says so, or, where no schema
says what events are, each value is in its set of the branch (`ends_of` gives no other), and so the branch is met. What
isn't is no witness. That costs a fixed number of steps; a filter for which nothing is found has none, and nothing is
ruled out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from covey.events.meaning import Meaning
from covey.events.schema import Schema
from covey.filters.algebra import Filter
from covey.filters.semantics import Supposed
from covey.filters.terms import is_path, is_presence
from covey.filters.values import Kind, Value
from covey.relations.conjunctions import Conjunction
from covey.relations.cuts import FULL, Cut, holds, is_infinite, next_number
from covey.relations.domains import domain_of, is_integer
from covey.relations.exact import Event
from covey.relations.examples import between
from covey.relations.value_sets import IS_FALSE, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

WITNESSES: Final = 8
"""Witnesses of a filter, besides counterexamples."""

_FAR: Final = 1 << 40
"""How far from zero the end of a range without an end is."""

_KEPT_ENDS: Final = 1 << 12


def witnesses_of(key: Conjunction | Filter, boxes: tuple[Conjunction, ...], meaning: Meaning) -> list[Event]:
    """Events that meet a filter, given some of its inner boxes: the near corner of each, then the far ones."""
    found: list[Event] = []
    for far in (False, True):
        for box in boxes[:WITNESSES]:
            event = _corner(box, far, meaning.schema)
            if event not in found and _meets(event, key, meaning):
                found.append(event)
            if len(found) == WITNESSES:
                return found
    return found


def _meets(event: Event, key: Conjunction | Filter, meaning: Meaning) -> bool:
    if isinstance(key, Conjunction):
        return all(event.get(name) in values for name, values in key.sets)
    return meaning.matches(key, event)


def corners_meet(boxes: tuple[Conjunction, ...], meaning: Meaning) -> bool:
    """Whether every event with a value of each set of a box meets that box. A schema asks for more, and presence is
    nothing that an event says."""
    return meaning.schema is None and not any(is_presence(name) for box in boxes for name, _ in box.sets)


def _corner(box: Conjunction, far: bool, schema: Schema | None) -> Event:
    event: Event = {}
    for name, values in box.sets:
        value = ends_of(values, is_integer(schema, name))[far]
        if value is not None:
            event[name] = value
    if schema is not None:
        _define(schema.mandatory(), event, schema)
        event_type = event.get(schema.type_attribute or "")
        _define(schema.mandatory(event_type if isinstance(event_type, str) else None), event, schema)
    return event if all(is_path(name) for name, _ in box.sets) else Supposed(event)


def _define(mandatory: Iterable[str], event: Event, schema: Schema) -> None:
    for name in mandatory:
        if name not in event:
            value = ends_of(domain_of(schema, name), is_integer(schema, name))[True]
            if value is not None:
                event[name] = value


@lru_cache(maxsize=_KEPT_ENDS)
def ends_of(values: ValueSet, integer: bool = False) -> tuple[Value | None, Value | None]:
    """Two members of a set, at the near and at the far end of it. "Missing" is near where it is a member; None stands
    for it, and for a member that wasn't found."""
    near = None if values.flags & IS_MISSING else _member(values, False, integer)
    return near, _member(values, True, integer)


def _member(values: ValueSet, far: bool, integer: bool) -> Value | None:
    for kind, cuts in zip(FULL, values.spans, strict=True):
        if cuts:
            start, stop = cuts[-2:] if far else cuts[:2]
            if kind is not Kind.NUMBER:
                # A value that a cut is just below is the least one above it.
                return between(kind, start, stop, integer=integer) if start[1] else start[0]
            number = _number(start, stop, far, integer)
            if (number, 0) == start or (number, 1) == stop or holds((start, stop), number):
                return number
            if not integer:
                return between(kind, start, stop, integer=False)  # infinity, or NaN
    for flag, value in _FLAGS[::-1] if far else _FLAGS:
        if values.flags & flag:
            return value
    return None


def _number(start: Cut, stop: Cut, far: bool, integer: bool) -> int | float:
    """The number at one end of two cuts, if they aren't about infinity; whether it is between them, is checked."""
    high = far is not (is_infinite(start[0]) and not is_infinite(stop[0]))
    end: int | float = stop[0] if high else start[0]
    excluded = stop[1] == 0 if high else start[1] == 1
    sign = 1 if high else -1
    if is_infinite(end):
        other = start[0] if high else stop[0]
        near = 0 if is_infinite(other) else math.trunc(other)
        return sign * (max(sign * near, 0) + _FAR)
    if integer:
        return sign * (math.ceil(sign * end) - 1 if excluded else math.floor(sign * end))
    return -sign * next_number(-sign * end) if excluded else end


_FLAGS: Final[tuple[tuple[int, Value], ...]] = ((IS_TRUE, True), (IS_FALSE, False), (IS_LIST, ()))
