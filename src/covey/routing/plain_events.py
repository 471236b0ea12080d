"""Which events can travel and be matched.

Nearly all events are flat, with texts, numbers, booleans and nulls for values. These are told by the set of their
values' types, and whether they can be packed (an integer may be too large) is asked of all events at once. Only where
one of them is neither are its values looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final

import msgspec

from covey.filters.values import normalise

_PLAIN: Final = frozenset({str, int, float, bool, NoneType})
_PROBLEMS: Final = (TypeError, OverflowError, ValueError, RecursionError)

EVENT_BYTES: Final = 64
"""What an event takes beside its attributes: ids, numbers, names of subscriptions."""

_encode = msgspec.msgpack.Encoder().encode


def size_of(attributes: Mapping[str, Any]) -> int:
    """What an event counts where limits are in bytes: about its size on the wire."""
    return len(_encode(attributes)) + EVENT_BYTES


def is_plain(attributes: Mapping[str, Any]) -> bool:
    """Whether an event is flat and has no values but the most common ones."""
    return _PLAIN.issuperset(map(type, attributes.values()))


def are_plain(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all events are plain, and can travel."""
    if not all(map(is_plain, events)):
        return False
    try:
        _encode(events)
    except _PROBLEMS:
        return False
    return True


def wrong_event(events: Sequence[Mapping[str, Any]]) -> tuple[int, str] | None:
    """The first event that can't travel or be matched, counted from 1, and why; None where all can."""
    if are_plain(events):
        return None
    for at, attributes in enumerate(events, 1):
        try:
            for value in _leaves(attributes):
                normalise(value)
            _encode(attributes)
        except _PROBLEMS as error:
            return at, str(error)
    return None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    else:
        yield value
        if isinstance(value, (list, tuple)):  # what is inside records of a list, a test of its elements may look at
            for element in value:
                yield from _leaves(element)
