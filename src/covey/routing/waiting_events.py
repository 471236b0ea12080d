"""Events without durability on their way to one neighbour, bounded in bytes.

A neighbour that says what it has taken (`Taken`) gets no more than `flying` bytes ahead of that; the rest waits here,
and beyond a limit the oldest are dropped and counted. One that doesn't say gets all of a turn at once. Where a message
of either kind gets lost within a session, the window would stay closed by what nobody will ever take; so a ping says
how far it goes (`asked`), and is answered.

Events for a neighbour have numbers, from 1 on since the broker was started, whether they are sent or not. Those who get
them see by the numbers what they didn't get (`CameEvents`), wherever it was lost: here, or with a connection. What was
lost on the way to here is lost to the neighbour too, and takes numbers as well.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from covey.routing.messages import Envelope, Events
from covey.routing.ranges import LARGEST
from covey.routing.undo import Remembered

MOST_HOPS: Final = 1_000
"""Links that the news of a loss may cross. Brokers form a tree; where they don't agree on it for a moment, the news
must not go round for as long as that lasts."""


class WaitingEvents(Remembered):
    """What waits for one neighbour, in order."""

    __slots__ = ("_events", "_flying", "_sent", "_told", "before", "bytes", "dropped", "hops", "meant")

    def __init__(self) -> None:
        self._events: deque[tuple[Envelope, int, int]] = deque()
        """With their sizes and numbers."""
        self.meant = 0
        """The number of the last event that there was for the neighbour."""
        self.before = 0
        """What it was before this session."""
        self._told = 0
        """The last number that the neighbour heard of in this session."""
        self.hops = 0
        """Links that the news of what was lost may still cross."""
        self._flying = 0
        self._sent = 0
        self.bytes = 0
        """Of those that wait."""
        self.dropped = 0
        """Events that had to be dropped since the broker was started; also those for a neighbour that isn't there."""

    def __len__(self) -> int:
        return len(self._events)

    def push(self, envelope: Envelope, size: int, most: int) -> None:
        """One more; the oldest go where more than `most` bytes wait."""
        self.meant += 1
        self._events.append((envelope, size, self.meant))
        self.bytes += size
        while self.bytes > most and len(self._events) > 1:
            self.bytes -= self._events.popleft()[1]
            self.dropped += 1
            self.hops = MOST_HOPS

    def drop(self) -> None:
        """One more that isn't sent, since the neighbour isn't there."""
        self.meant += 1
        self.dropped += 1
        self.hops = MOST_HOPS

    def lose(self, events: int, hops: int) -> None:
        """So many were lost before they came here."""
        self.meant = min(self.meant + events, LARGEST)
        self.hops = max(self.hops, hops)

    def take(self, flying: int | None, *, tells: bool = False) -> list[Events]:
        """What may be sent now, with at most so many bytes in flight (one event whatever its size); None for all.
        `tells` says that the neighbour wants to hear of what was lost behind the last of them too."""
        taken: list[Events] = []
        last = 0
        while self._events and (flying is None or self._flying < flying):
            envelope, size, number = self._events.popleft()
            self.bytes -= size
            self._flying += size
            self._sent += size
            if number != last + 1 or not taken:
                taken.append(Events([], number, self.hops))
            taken[-1].envelopes.append(envelope)
            self._told = last = number
        if tells and not self._events and self._told < self.meant:
            taken.append(Events([], self.meant + 1, self.hops))
            self._told = self.meant
        if self._told == self.meant:
            self.hops = 0
        return taken

    def confirm(self, taken: int) -> None:
        """The neighbour has taken so many bytes in this session."""
        self._flying = max(0, self._sent - taken)

    @property
    def asked(self) -> int:
        """How many bytes were sent in this session; 0 where the neighbour is known to have taken them all."""
        return self._sent if self._flying else 0

    @property
    def tells_loss(self) -> bool:
        """Whether something was lost behind all that waits."""
        return not self._events and self._told < self.meant

    def restart(self) -> None:
        """The session is over: what waits is lost with it, as what was sent may be."""
        self.dropped += len(self._events)
        self._events.clear()
        self.bytes = self._flying = self._sent = 0

    def begin(self) -> None:
        """A session begins: its Hello tells what there was before."""
        self.before = self._told = self.meant


class CameEvents(Remembered):
    """What came from one neighbour, by its numbers, and what didn't."""

    __slots__ = ("_last", "_life")

    def __init__(self) -> None:
        self._life = 0
        self._last = 0

    def greet(self, life: int, before: int) -> int:
        """A session begins, before which there were so many; gives how many of them are lost. Nothing is known of
        another life."""
        lost = max(0, before - self._last) if life == self._life else 0
        self._life, self._last = life, before
        return lost

    def take(self, first: int, count: int) -> int:
        """Some came, from a number on; gives how many are missing before them."""
        if not first or not self._life:
            return 0
        lost = max(0, first - 1 - self._last)
        self._last = max(self._last, first - 1 + count)
        return lost
