"""Events that a broker keeps, and the ids of those that came by.

An event is stored once, however many outboxes and queues refer to it, and goes with its last reference. Durable events
are also kept for a while after that, in a *window* that is bounded by number and age, with the neighbours that have
them or will surely get them: an outbox is journalled. That window is what makes durable delivery survive changes of
tables and trees. Whoever has an event in it is responsible for it: when a link joins the tree, or a neighbour's tables
turn out to have been apart from ours, what the neighbour should have had goes there late (`broker.py`, "Recalls").

Which events came by, kept or not, is told by `seen_events.py`, for longer; after a restart only of kept events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import msgspec

from covey.routing.context import Context
from covey.routing.messages import Envelope
from covey.routing.plain_events import size_of
from covey.routing.seen_events import SeenEvents, fingerprint
from covey.routing.undo import Remembered, ScratchSet, note


class WindowRow(msgspec.Struct, frozen=True, array_like=True):
    """A durable event's place in the window."""

    at: float
    place: int
    reached: list[str]


@dataclass(slots=True, eq=False)
class Kept:
    """One event. `KeptEvents` alone changes it, and saves it first."""

    envelope: Envelope
    bytes: int
    references: int = 0
    at: float = 0.0
    place: int = 0
    in_window: bool = False
    reached: frozenset[str] = frozenset()
    turn: int = 0
    """The turn in which it was made or saved."""

    def save(self, turn: int) -> None:
        """Let its state be taken back."""
        if self.turn != turn:
            self.turn = turn
            note(self._return_to, self.references, self.at, self.place, self.in_window, self.reached)

    def _return_to(self, references: int, at: float, place: int, in_window: bool, reached: frozenset[str]) -> None:
        self.references, self.at, self.place, self.in_window, self.reached = references, at, place, in_window, reached


class KeptEvents(Remembered):
    """The events of one broker."""

    def __init__(self, context: Context) -> None:
        self._config = context.config
        self._turn = context.turn
        self._events: dict[str, Kept] = {}
        self._window: OrderedDict[str, Kept] = OrderedDict()
        self.seen = SeenEvents(context.config.limits.ids_remembered)
        self._dirty: set[str] = ScratchSet()
        self._places = 0
        self._window_bytes = 0
        self.bytes = 0
        """Of all events that are kept."""

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, key: str) -> Envelope:
        return self._events[key].envelope

    def bytes_of(self, key: str) -> int:
        """What an event counts."""
        return self._events[key].bytes

    def refer(self, envelope: Envelope) -> None:
        """One more place refers to an event."""
        kept = self._kept(envelope)
        kept.save(self._turn.number)
        kept.references += 1

    def release(self, key: str) -> None:
        """One place less refers to an event."""
        kept = self._events[key]
        kept.save(self._turn.number)
        kept.references -= 1
        self._drop_unused(key, kept)

    def keep(self, envelope: Envelope) -> None:
        """Keep a durable event in the window."""
        key = envelope.key
        kept = self._kept(envelope)
        self._places += 1
        kept.save(self._turn.number)
        kept.at, kept.place = self._turn.now, self._places
        self._join_window(key, kept)
        self._dirty.add(key)

    def trim(self) -> None:
        """Let the oldest go where the window has too many, after some were kept."""
        limits = self._config.limits
        while len(self._window) > 1 and (
            len(self._window) > limits.events_kept or self._window_bytes > limits.events_kept_bytes
        ):
            self._leave_window(next(iter(self._window)))

    def reach(self, key: str, peer: str) -> None:
        """A neighbour has the event, or surely will."""
        kept = self._events.get(key)
        if kept is not None and kept.in_window and peer not in kept.reached:
            kept.save(self._turn.number)
            kept.reached |= {peer}
            self._dirty.add(key)

    def reach_with(self, copy: Envelope, peer: str) -> None:
        """A neighbour has sent a copy of the event; not where it is another under the same id."""
        kept = self._events.get(copy.key)
        if kept is not None and kept.in_window and fingerprint(kept.envelope) == fingerprint(copy):
            self.reach(copy.key, peer)

    def miss(self, key: str, peer: str) -> None:
        """It isn't sure any more that a neighbour gets the event."""
        kept = self._events.get(key)
        if kept is not None and peer in kept.reached:
            kept.save(self._turn.number)
            kept.reached -= {peer}
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
            self._add(key, envelope)
            self.seen.restore(key, envelope)
        for key, row in sorted(window.items(), key=lambda item: item[1].place):
            kept = self._events[key]
            kept.at, kept.place, kept.reached = row.at, row.place, frozenset(row.reached)
            self._join_window(key, kept)
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
            kept = self._add(key, envelope)
            self._turn.out.put("event", key, envelope)
        return kept

    def _add(self, key: str, envelope: Envelope) -> Kept:
        kept = self._events[key] = Kept(envelope, size_of(envelope.attributes), turn=self._turn.number)
        self.bytes += kept.bytes
        return kept

    def _join_window(self, key: str, kept: Kept) -> None:
        if not kept.in_window:
            self._window_bytes += kept.bytes
        kept.in_window = True
        self._window[key] = kept

    def _leave_window(self, key: str) -> None:
        kept = self._window.pop(key)
        kept.save(self._turn.number)
        kept.in_window = False
        self._window_bytes -= kept.bytes
        kept.reached = frozenset()
        self._turn.out.drop("window", key)
        self._dirty.discard(key)
        self._drop_unused(key, kept)

    def _drop_unused(self, key: str, kept: Kept) -> None:
        if not kept.references and not kept.in_window:
            del self._events[key]
            self.bytes -= kept.bytes
            self._turn.out.drop("event", key)
