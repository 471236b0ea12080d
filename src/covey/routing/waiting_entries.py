"""Entries that wait for the index, found meanwhile by values that an event must have to meet them.

An index takes many entries at once far more quickly than a few at a time, and subscriptions come while events are
matched. So entries wait, and until they are taken an event is held against those that it may meet: a filter is filed
under values of which an event must have one (those of an equality or a list in a conjunction, those of all alternatives
of a disjunction), and the interpreter decides. A filter that asks for no such values is held against every event.
What that costs is counted: where it gets to more than the index would take, the index takes them (`is_dear`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from covey.filters.algebra import And, Filter, Or, number_of_leaves
from covey.filters.predicates import Compare, In
from covey.filters.semantics import attribute_value
from covey.filters.terms import is_path
from covey.filters.values import Scalar

Key: TypeAlias = tuple[str, Scalar]
"""An attribute and a value of it."""

SMALL: Final = 8
"""Tests that a small filter has at most; one with more counts as so many more, since each test takes time."""
DEAR: Final = 2_000
"""Small filters interpreted, over all events, that cost about as much as the index takes for those that wait."""
MOST_KEYS: Final = 64
"""Values that one filter is filed under at most."""
_FILED: Final = (str, int, float)
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))
"""Types of events' values that compare with constants as Python compares them."""


class WaitingEntries:
    """Filters by number, in the order in which they came."""

    def __init__(self) -> None:
        self._entries: dict[str, Filter] = {}
        self._keys: dict[str, list[Key] | None] = {}
        self._filed: dict[str, dict[Scalar, dict[str, None]]] = {}
        """Numbers by attribute and value."""
        self._unfiled: dict[str, None] = {}
        self._weights: dict[str, int] = {}
        self._held_against = 0

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> Iterator[tuple[str, Filter]]:
        """All of them."""
        return iter(self._entries.items())

    def is_dear(self, events: int, times: int = 1) -> bool:
        """Whether interpreting them, for so many more events, costs more than so many times what the index takes."""
        return self._held_against + (events - 1) * len(self._entries) > times * DEAR

    def add(self, number: str, condition: Filter) -> None:
        """Let an entry wait."""
        self._entries[number] = condition
        self._weights[number] = weight_of(condition)
        keys = self._keys[number] = keys_of(condition)
        if keys is None:
            self._unfiled[number] = None
            return
        for attribute, value in keys:
            self._filed.setdefault(attribute, {}).setdefault(value, {})[number] = None

    def remove(self, number: str) -> bool:
        """Let an entry wait no longer; False where it doesn't."""
        if self._entries.pop(number, None) is None:
            return False
        del self._weights[number]
        keys = self._keys.pop(number)
        if keys is None:
            del self._unfiled[number]
            return True
        for attribute, value in keys:
            by_value = self._filed.get(attribute, {})
            numbers = by_value.get(value, {})
            numbers.pop(number, None)
            if not numbers:
                by_value.pop(value, None)
                if not by_value:
                    self._filed.pop(attribute, None)
        return True

    def matched(self, event: Mapping[str, Any], matches: Callable[[Filter, Mapping[str, Any]], bool]) -> list[str]:
        """The numbers of those that an event meets, in the order in which they came."""
        entries = self._entries
        candidates = self._candidates(event)
        self._held_against += sum(map(self._weights.__getitem__, candidates)) + len(self._filed)
        found = [number for number in candidates if matches(entries[number], event)]
        return sorted(found, key=int) if len(found) > 1 else found

    def _candidates(self, event: Mapping[str, Any]) -> set[str]:
        candidates = set(self._unfiled)
        for attribute, by_value in self._filed.items():
            value: Any = attribute_value(event, attribute)
            if type(value) in _PLAIN:
                candidates.update(by_value.get(value, ()))
            else:
                candidates.update(*by_value.values())
        return candidates


def weight_of(condition: Filter) -> int:
    """As how many small filters one counts."""
    return 1 + number_of_leaves(condition) // (SMALL + 1)


def keys_of(condition: Filter) -> list[Key] | None:
    """Values of which an event must have one to meet a filter; None where there are none, or many."""
    kind = type(condition)
    if kind is And:
        found = None
        for part in condition.children():
            keys = keys_of(part)
            if keys is not None and (found is None or len(keys) < len(found)):
                found = keys
        return found
    if kind is Or:
        united: list[Key] = []
        for part in condition.children():
            keys = keys_of(part)
            if keys is None or len(united) + len(keys) > MOST_KEYS:
                return None
            united += keys
        return united
    if kind is Compare:
        assert isinstance(condition, Compare)
        if condition.operator != "=":
            return None
        values: tuple[Scalar | None, ...] = (condition.value,)
    elif kind is In:
        assert isinstance(condition, In)
        values = condition.values
    else:
        return None
    attribute = condition.attribute
    if len(values) > MOST_KEYS or not is_path(attribute) or not all(map(_is_filed, values)):
        return None
    return [(attribute, value) for value in values if value is not None]


def _is_filed(value: Scalar | None) -> bool:
    # NaN is found by no look-up.
    return type(value) in _FILED and value == value
