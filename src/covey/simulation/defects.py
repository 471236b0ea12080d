"""Defects in the middle of a turn: a broker's state before and after an input that raises, compared.

`Trap` is a log of undo steps that raises when so many have been written, so that a turn breaks off in the middle of
whatever part is at work: a defect that nobody has thought of. `state_of` goes through everything that hangs on a broker
and makes of it what can be compared. What a part must not forget to take back is what it finds, without knowing the
parts.

It leaves out what has no meaning of its own: memories of what was computed (`KnownFilters`), and of exports and of the
routing table how they are built, which may differ after they were made again; that they mean the same is what the
network's fixpoint shows in the end.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

import msgspec

from covey.filters.algebra import Filter
from covey.routing.broker import Broker
from covey.routing.journal import Turn
from covey.routing.known_filters import KnownFilters
from covey.routing.pruning_choice import PruningChoice
from covey.routing.routing_table import PrunedTable, RoutingTable
from covey.routing.undo import Step

PLAIN: Final = (str, frozenset, bytes, int, float, bool, type(None), Enum, Filter, msgspec.Struct)
"""Values that don't change, or are never changed."""
NO_STATE: Final = (KnownFilters, Turn, PrunedTable, PruningChoice)
NO_MEANING: Final = frozenset(
    {"_ends", "_news", "_gone", "_changed", "_touches", "_stages", "_dirty", "_before", "hits", "steps_of", "turn"}
)
"""Attributes that may differ: leases that have ended already or were looked at in vain, what is to be looked at, and
figures."""


class PlantedError(Exception):
    """Raised by a trap."""


class Trap(list[Step]):
    """Steps, of which the last is the last before something raises."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after
        self.sprung = False

    def append(self, step: Step) -> None:
        """One more change is about to happen."""
        if self._left == 0:
            self.sprung = True
            raise PlantedError("a defect that was put here on purpose")
        self._left -= 1
        super().append(step)


def state_of(broker: Broker) -> dict[str, Any]:
    """All of a broker's state, by its place."""
    found: dict[str, Any] = {}
    _walk("broker", broker, found, {})
    return found


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The places whose state isn't the same."""
    return sorted(
        f"{place}: {before.get(place)!r:.120} became {after.get(place)!r:.120}"
        for place in before.keys() | after.keys()
        if before.get(place, PLAIN) != after.get(place, PLAIN)
    )


def _walk(place: str, value: Any, found: dict[str, Any], seen: dict[int, str]) -> None:
    if isinstance(value, PLAIN) or callable(value):
        found[place] = "code" if callable(value) else value
        return
    if isinstance(value, NO_STATE):
        return
    if id(value) in seen:
        found[place] = f"see {seen[id(value)]}"
        return
    seen[id(value)] = place
    if isinstance(value, RoutingTable):
        found[place] = {(hop, key) for hop in value.hops for key in value.entries(hop)}
        return
    if isinstance(value, Mapping):
        found[place] = list(value) if isinstance(value, OrderedDict) else set(value)
        # A dict's order isn't taken back, and what hangs at several places is described at the first of them.
        for key, inner in sorted(value.items(), key=lambda item: repr(item[0])):
            _walk(f"{place}[{key!r}]", inner, found, seen)
    elif isinstance(value, AbstractSet):
        found[place] = set(value)
    elif isinstance(value, Sequence | deque):
        found[place] = len(value)
        for at, inner in enumerate(value):
            _walk(f"{place}[{at}]", inner, found, seen)
    else:
        for name in _attributes(value):
            if name not in NO_MEANING:
                _walk(f"{place}.{name}", getattr(value, name), found, seen)


def _attributes(value: Any) -> list[str]:
    names = list(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [name for name in names if hasattr(value, name)]
