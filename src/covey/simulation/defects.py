"""Defects in the middle of a turn: a broker's state before and after an input that raises, compared.

`Trap` is a log of undo steps that raises when so many have been written, so that a turn breaks off in the middle of
whatever part is at work: a defect that nobody has thought of. `state_of` goes through everything that hangs on a broker
and makes of it what can be compared. What a part must not forget to take back is what it finds, without knowing the
parts. Most turns that it looks at end well, so a place is only written out for a report.

It leaves out what has no meaning of its own: memories of what was computed (`KnownFilters`), and of exports and of the
routing table how they are built, which may differ after they were made again; that they mean the same is what the
network's fixpoint shows in the end.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final, TypeAlias

import msgspec

from covey.filters.algebra import Filter
from covey.routing.broker import Broker
from covey.routing.journal import Turn
from covey.routing.known_filters import KnownFilters
from covey.routing.pruning_choice import PruningChoice
from covey.routing.routing_table import PrunedTable, RoutingTable
from covey.routing.undo import Step, slots_of

PLAIN: Final = (str, frozenset, bytes, int, float, bool, type(None), Enum, Filter, msgspec.Struct)
"""Values that don't change, or are never changed."""
NO_STATE: Final = (KnownFilters, Turn, PrunedTable, PruningChoice)
NO_MEANING: Final = frozenset({
    "_ends", "_news", "_gone", "_changed", "_touches", "_stages", "_next", "_unfed", "_dirty", "_before", "hits",
    "steps_of", "turn",
})  # fmt: skip
"""Attributes that may differ: leases that have ended already or were looked at in vain, what is to be looked at, and
figures."""


Place: TypeAlias = "tuple[Place | None, str, Any]"
"""Where something hangs: on what, how an attribute or an entry is written, and its name or key."""
State: TypeAlias = list[tuple[Place, Any]]


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


def state_of(broker: Broker) -> State:
    """All of a broker's state, with its places."""
    walk = _Walk()
    walk.go((None, "{}", "broker"), broker)
    return walk.found


def differences(before: State, after: State) -> list[str]:
    """The places whose state isn't the same."""
    if before == after:
        return []
    was, became = ({_written(place): value for place, value in state} for state in (before, after))
    return sorted(
        f"{place}: {was.get(place)!r:.120} became {became.get(place)!r:.120}"
        for place in was.keys() | became.keys()
        if was.get(place, PLAIN) != became.get(place, PLAIN)
    )


def _written(place: Place | None) -> str:
    return "" if place is None else _written(place[0]) + place[1].format(place[2])


class _Walk:
    """A way through all that hangs on something. What hangs at several places is described at the first of them."""

    def __init__(self) -> None:
        self.found: State = []
        self._seen: dict[int, Place] = {}

    def go(self, place: Place, value: Any) -> None:
        kind = type(value)
        look = _looks.get(kind)
        if look is None:
            look = _looks[kind] = _look(value)
        if look is _Walk.plain:
            self.found.append((place, value))
        elif id(value) in self._seen:
            self.found.append((place, self._seen[id(value)]))
        else:
            self._seen[id(value)] = place
            look(self, place, value)

    def plain(self, place: Place, value: Any) -> None:
        self.found.append((place, value))

    def code(self, place: Place, _: Any) -> None:
        self.found.append((place, "code"))

    def nothing(self, place: Place, value: Any) -> None:
        """It has no state."""

    def table(self, place: Place, value: RoutingTable) -> None:
        self.found.append((place, {(hop, key) for hop in value.hops for key in value.entries(hop)}))

    def mapping(self, place: Place, value: Mapping[Any, Any]) -> None:
        self.found.append((place, list(value) if isinstance(value, OrderedDict) else set(value)))
        # A dict's order isn't taken back.
        for key in value if len(value) < 2 else sorted(value, key=repr):
            self.go((place, "[{!r}]", key), value[key])

    def set(self, place: Place, value: AbstractSet[Any]) -> None:
        self.found.append((place, {*value}))

    def sequence(self, place: Place, value: Sequence[Any]) -> None:
        self.found.append((place, len(value)))
        for at, inner in enumerate(value):
            self.go((place, "[{!r}]", at), inner)

    def object(self, place: Place, value: Any) -> None:
        for name in (*getattr(value, "__dict__", ()), *slots_of(type(value))):
            inner = _ABSENT if name in NO_MEANING else getattr(value, name, _ABSENT)
            if inner is not _ABSENT:
                self.go((place, ".{}", name), inner)


def _look(value: Any) -> Look:
    """How to look at values of such a type."""
    for kinds, look in _LOOKS:
        if isinstance(value, kinds):
            return look
    return _Walk.code if callable(value) else _Walk.object


Look: TypeAlias = Callable[[_Walk, Place, Any], None]
_LOOKS: Final[tuple[tuple[Any, Look], ...]] = (
    (PLAIN, _Walk.plain),
    (NO_STATE, _Walk.nothing),
    (RoutingTable, _Walk.table),
    (Mapping, _Walk.mapping),
    (AbstractSet, _Walk.set),
    ((Sequence, deque), _Walk.sequence),
)
_looks: Final[dict[type, Look]] = {}
_ABSENT: Final = object()
