"""Nested records to flat attributes with dotted names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from covey.errors import EventError
from covey.events.limits import DEFAULT_EVENT_LIMITS, EventLimits
from covey.filters.semantics import attribute_value


def flatten(
    event: Mapping[str, Any], limits: EventLimits = DEFAULT_EVENT_LIMITS
) -> tuple[dict[str, Any], frozenset[str]]:
    """The event's values by dotted name (without None), and the names of its records.

    Where a literal key "a.b" and a record "a" with "b" both have a value, it is the one that `attribute_value` finds.
    """
    values: dict[str, Any] = {}
    records: set[str] = set()
    for name, value in _walk(event, "", limits.depth):
        if isinstance(value, Mapping):
            records.add(name)
        elif value is not None:
            values[name] = attribute_value(event, name) if name in values else value
    return values, frozenset(records)


def _walk(record: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth <= 0:
        raise EventError(f"attribute {prefix[:40]!r}…: records are nested too deeply; flatten them or raise the limit")
    for key, value in record.items():
        if not isinstance(key, str):
            raise EventError(f"attribute {key!r} below {prefix!r}: names are strings, not {type(key).__name__}")
        yield prefix + key, value
        if isinstance(value, Mapping):
            yield from _walk(value, f"{prefix}{key}.", depth - 1)


def dots(name: str) -> Iterator[int]:
    """Where the dots of a dotted name are."""
    place = name.find(".")
    while place >= 0:
        yield place
        place = name.find(".", place + 1)
