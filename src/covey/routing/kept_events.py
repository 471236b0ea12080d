"""Events that a broker keeps, and the ids of those that came by.

An event is stored once, however many outboxes and queues refer to it, and goes with its last reference. Durable events
are also kept for a while after that, in a *window* that is bounded by number and age, with the neighbours that have
them or will surely get them: an outbox is journalled. That window is what makes durable delivery survive changes of
tables and trees. Whoever has an event in it is responsible for it: when a link joins the tree, or a neighbour's tables
turn out to have been apart from ours, what the neighbour should have had goes there late (`broker.py`, "Recalls").

An id that came by before is known, so that copies on other paths are recognised; ids are remembered for longer than
events. After a restart only those of kept events are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from math import inf

import msgspec

from covey.routing.config import BrokerConfig
from covey.routing.journal import Turn
from covey.routing.messages import Envelope


class WindowRow(msgspec.Struct, frozen=True, array_like=True):
    """A durable event's place in the window."""

    at: float
    place: int
    reached: list[str]


class Kept(msgspec.Struct, eq=False):
    """One event."""

    envelope: Envelope
    references: int = 0
    at: float = 0.0
    place: int = 0
    in_window: bool = False
    reached: set[str] = set()


class KeptEvents:
    """The events of one broker."""

    def __init__(self, config: BrokerConfig, turn: Turn) -> None:
        self._config = config
        self._turn = turn
        self._events: dict[str, Kept] = {}
        self._window: OrderedDict[str, Kept] = OrderedDict()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._dirty: set[str] = set()
        self._places = 0

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, key: str) -> Envelope:
        return self._events[key].envelope

    def see(self, key: str) -> bool:
        """Whether this id is new; from now on it isn't."""
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > self._config.limits.ids_remembered:
            self._seen.popitem(last=False)
        return True

    def refer(self, envelope: Envelope) -> None:
        """One more place refers to an event."""
        self._kept(envelope).references += 1

    def release(self, key: str) -> None:
        """One place less refers to an event."""
        kept = self._events[key]
        kept.references -= 1
        self._drop_unused(key, kept)

    def keep(self, envelope: Envelope) -> None:
        """Keep a durable event in the window."""
        key = envelope.key
        kept = self._kept(envelope)
        self._places += 1
        kept.at, kept.place, kept.in_window = self._turn.now, self._places, True
        self._window[key] = kept
        self._dirty.add(key)
        while len(self._window) > self._config.limits.events_kept:
            self._leave_window(next(iter(self._window)))

    def reach(self, key: str, peer: str) -> None:
        """A neighbour has the event, or surely will."""
        kept = self._events.get(key)
        if kept is not None and kept.in_window and peer not in kept.reached:
            kept.reached.add(peer)
            self._dirty.add(key)

    def miss(self, key: str, peer: str) -> None:
        """It isn't sure any more that a neighbour gets the event."""
        kept = self._events.get(key)
        if kept is not None and peer in kept.reached:
            kept.reached.discard(peer)
            self._dirty.add(key)

    def has_reached(self, key: str, peer: str) -> bool:
        """Whether a neighbour has the event or surely gets it, as far as is known."""
        kept = self._events.get(key)
        return kept is not None and peer in kept.reached

    def unreached(self, peer: str) -> Iterator[Envelope]:
        """The window's events that a neighbour may not have, oldest first."""
        return (kept.envelope for kept in list(self._window.values()) if peer not in kept.reached)

    def expire(self) -> None:
        """Let go of what is too old."""
        oldest = self._turn.now - self._config.timing.remember
        while self._window and next(iter(self._window.values())).at < oldest:
            self._leave_window(next(iter(self._window)))

    def write(self) -> None:
        """Journal the window's rows that have changed."""
        for key in sorted(self._dirty):
            kept = self._window.get(key)
            if kept is not None:
                self._turn.out.put("window", key, WindowRow(kept.at, kept.place, sorted(kept.reached)))
        self._dirty.clear()

    def restore(self, events: dict[str, Envelope], window: dict[str, WindowRow]) -> None:
        """Take events back from their rows; references follow."""
        for key, envelope in events.items():
            self._events[key] = Kept(envelope)
            self._seen[key] = None
        for key, row in sorted(window.items(), key=lambda item: item[1].place):
            kept = self._events[key]
            kept.at, kept.place, kept.in_window, kept.reached = row.at, row.place, True, set(row.reached)
            self._window[key] = kept
            self._places = row.place

    def refer_again(self, key: str) -> None:
        """A restored place refers to an event."""
        self._events[key].references += 1

    def drop_unused(self) -> None:
        """Let go of restored events that no place refers to any more."""
        for key, kept in list(self._events.items()):
            self._drop_unused(key, kept)

    def next_end(self) -> float:
        """When the oldest event leaves the window."""
        oldest = next(iter(self._window.values()), None)
        return inf if oldest is None else oldest.at + self._config.timing.remember

    def _kept(self, envelope: Envelope) -> Kept:
        key = envelope.key
        kept = self._events.get(key)
        if kept is None:
            kept = self._events[key] = Kept(envelope)
            self._turn.out.put("event", key, envelope)
        return kept

    def _leave_window(self, key: str) -> None:
        kept = self._window.pop(key)
        kept.in_window = False
        kept.reached.clear()
        self._turn.out.drop("window", key)
        self._dirty.discard(key)
        self._drop_unused(key, kept)

    def _drop_unused(self, key: str, kept: Kept) -> None:
        if not kept.references and not kept.in_window:
            del self._events[key]
            self._turn.out.drop("event", key)
