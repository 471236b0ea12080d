"""Witnesses of a filter: a few events that meet it.

A filter that covers another matches every event that the other matches, so one witness of the other that it doesn't
match is proof that it doesn't cover it. Good witnesses tell many filters apart: there is one for each branch (an inner
box of the filter's bounds), at the low end of its ranges and at the high end. Attributes that the branch leaves free
are missing, where the meaning allows it, since then no test on them holds.

Every witness is an event that the schema allows and that the interpreter says meets the filter; what it doesn't is no
witness. That costs a fixed number of steps; a filter for which nothing is found has none, and nothing is ruled out.
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
from covey.filters.terms import is_path
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

_KEPT_ENDS: Final = 1 << 16


def witnesses_of(key: Conjunction | Filter, boxes: tuple[Conjunction, ...], meaning: Meaning) -> list[Event]:
    """Events that meet a filter, given some of its inner boxes: the low corner of each, then the high ones."""
    found: list[Event] = []
    for high in (False, True):
        for box in boxes[:WITNESSES]:
            event = _corner(box, high, meaning.schema)
            if event not in found and _meets(event, key, meaning):
                found.append(event)
            if len(found) == WITNESSES:
                return found
    return found


def _meets(event: Event, key: Conjunction | Filter, meaning: Meaning) -> bool:
    if isinstance(key, Conjunction):
        return all(event.get(name) in values for name, values in key.sets)
    return meaning.matches(key, event)


def _corner(box: Conjunction, high: bool, schema: Schema | None) -> Event:
    event: Event = {}
    for name, values in box.sets:
        value = _end(values, high, is_integer(schema, name))
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
            value = _end(domain_of(schema, name), True, is_integer(schema, name))
            if value is not None:
                event[name] = value


@lru_cache(maxsize=_KEPT_ENDS)
def _end(values: ValueSet, high: bool, integer: bool) -> Value | None:
    """A member of a set at one end of it; "missing" is the low end."""
    if not high and values.flags & IS_MISSING:
        return None
    for kind, cuts in zip(FULL, values.spans, strict=True):
        if cuts:
            start, stop = cuts[-2:] if high else cuts[:2]
            if kind is Kind.NUMBER:
                number = _number(start, stop, high, integer)
                if holds((start, stop), number):
                    return number
            return between(kind, start, stop, integer=integer)
    for flag, value in ((IS_TRUE, True), (IS_FALSE, False), (IS_LIST, ())):
        if values.flags & flag:
            return value
    return None


def _number(start: Cut, stop: Cut, high: bool, integer: bool) -> int | float:
    """The lowest or the highest number between two cuts, if they aren't about infinity; whether it is, is checked."""
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
