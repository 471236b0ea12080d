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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import msgspec

from covey.routing.context import Context
from covey.routing.messages import Envelope
from covey.routing.plain_events import size_of
from covey.routing.seen_events import SeenEvents, fingerprint
from covey.routing.undo import Remembered, ScratchDict, ScratchSet, note


class KeptRow(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """An event, and its place in the window when its turn ended. One that isn't in the window is an `Envelope` by
    itself."""

    envelope: Envelope
    at: float
    place: int
    reached: list[str]


EventRow: TypeAlias = Envelope | KeptRow
_read_event: Callable[[bytes], EventRow] = msgspec.msgpack.Decoder(EventRow).decode


def read_event(value: bytes) -> EventRow:
    """An event's row; journals of before have envelopes alone."""
    return _read_event(value)


class WindowRow(msgspec.Struct, frozen=True, array_like=True):
    """A durable event's place in the window, where that isn't what the event's own row says."""

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
    in_row: bool = False
    """Whether the event's row says that it is in the window."""
    has_row: bool = False
    """Whether its place in the window has a row of its own."""
    turn: int = 0
    """The turn in which it was made or saved."""

    def save(self, turn: int) -> None:
        """Let its state be taken back."""
        if self.turn != turn:
            self.turn = turn
            note(
                self._return_to, self.references, self.at, self.place, self.in_window, self.reached, self.in_row,
                self.has_row,
            )  # fmt: skip

    def _return_to(
        self, references: int, at: float, place: int, in_window: bool, reached: frozenset[str], in_row: bool,
        has_row: bool,
    ) -> None:  # fmt: skip
        self.references, self.at, self.place, self.in_window, self.reached = references, at, place, in_window, reached
        self.in_row, self.has_row = in_row, has_row


class KeptEvents(Remembered):
    """The events of one broker."""

    def __init__(self, context: Context) -> None:
        self._config = context.config
        self._turn = context.turn
        self._events: dict[str, Kept] = {}
        self._window: OrderedDict[str, Kept] = OrderedDict()
        self.seen = SeenEvents(context.config.limits.ids_remembered)
        self._new: dict[str, Kept] = ScratchDict()
        """Events whose rows are to be written."""
        self._dirty: set[str] = ScratchSet()
        """Those whose places in the window have changed."""
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

    def refer(self, envelope: Envelope) -> tuple[str, int]:
        """One more place refers to an event; gives its key, and what it counts."""
        key = envelope.key
        kept = self._events.get(key) or self._kept(key, envelope)
        kept.save(self._turn.number)
        kept.references += 1
        return key, kept.bytes

    def release(self, key: str) -> None:
        """One place less refers to an event."""
        kept = self._events[key]
        kept.save(self._turn.number)
        kept.references -= 1
        self._drop_unused(key, kept)

    def keep(self, envelope: Envelope) -> str:
        """Keep a durable event in the window; gives its key."""
        key = envelope.key
        kept = self._events.get(key) or self._kept(key, envelope)
        self._places += 1
        kept.save(self._turn.number)
        kept.at, kept.place = self._turn.now, self._places
        self._join_window(key, kept)
        self._dirty.add(key)
        return key

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
        """Journal what came, and places in the window that have changed."""
        out = self._turn.out
        for key, kept in self._new.items():
            if self._events.get(key) is kept:
                kept.save(self._turn.number)
                kept.in_row = kept.in_window
                row: EventRow = kept.envelope
                if kept.in_window:
                    row = KeptRow(kept.envelope, kept.at, kept.place, sorted(kept.reached))
                out.put("event", key, row)
        for key in sorted(self._dirty - self._new.keys()):
            changed = self._window.get(key)
            if changed is not None:
                changed.save(self._turn.number)
                changed.has_row = True
                out.put("window", key, WindowRow(changed.at, changed.place, sorted(changed.reached)))
        self._new.clear()
        self._dirty.clear()

    def restore(self, events: dict[str, EventRow], window: dict[str, WindowRow]) -> None:
        """Take events back from their rows; references follow."""
        places: dict[str, KeptRow | WindowRow] = {}
        for key, row in events.items():
            envelope = row.envelope if isinstance(row, KeptRow) else row
            kept = self._add(key, envelope)
            self.seen.restore(key, envelope)
            if isinstance(row, KeptRow):
                kept.in_row = True
                places[key] = row
        for key in window:
            self._events[key].has_row = True
        for key, place in sorted((places | window).items(), key=lambda item: item[1].place):
            kept = self._events[key]
            kept.at, kept.place, kept.reached = place.at, place.place, frozenset(place.reached)
            self._join_window(key, kept)
            self._places = place.place

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

    def _kept(self, key: str, envelope: Envelope) -> Kept:
        kept = self._new[key] = self._add(key, envelope)
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
        if kept.has_row:
            kept.has_row = False
            self._turn.out.drop("window", key)
        self._dirty.discard(key)
        self._drop_unused(key, kept)
        if kept.in_row and key in self._events:
            # Its row must not say any more that it is there.
            self._new[key] = kept

    def _drop_unused(self, key: str, kept: Kept) -> None:
        if not kept.references and not kept.in_window:
            del self._events[key]
            self.bytes -= kept.bytes
            if self._new.get(key) is not kept or kept.in_row:
                self._turn.out.drop("event", key)
