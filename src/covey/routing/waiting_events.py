"""Events without durability on their way to one neighbour, bounded in bytes.

A neighbour that says what it has taken (`Taken`) gets no more than `flying` bytes ahead of that; the rest waits here,
and beyond a limit the oldest are dropped and counted. One that doesn't say gets all of a turn at once. Where a message
of either kind gets lost within a session, the window would stay closed by what nobody will ever take; so a ping says
how far it goes (`asked`), and is answered.
"""

from __future__ import annotations

from collections import deque

from covey.routing.messages import Envelope
from covey.routing.undo import Remembered


class WaitingEvents(Remembered):
    """What waits for one neighbour, in order."""

    __slots__ = ("_events", "_flying", "_sent", "bytes", "dropped")

    def __init__(self) -> None:
        self._events: deque[tuple[Envelope, int]] = deque()
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
        self._events.append((envelope, size))
        self.bytes += size
        while self.bytes > most and len(self._events) > 1:
            self.bytes -= self._events.popleft()[1]
            self.dropped += 1

    def take(self, flying: int | None) -> list[Envelope]:
        """What may be sent now, with at most so many bytes in flight (one event whatever its size); None for all."""
        taken: list[Envelope] = []
        while self._events and (flying is None or self._flying < flying):
            envelope, size = self._events.popleft()
            self.bytes -= size
            self._flying += size
            self._sent += size
            taken.append(envelope)
        return taken

    def confirm(self, taken: int) -> None:
        """The neighbour has taken so many bytes in this session."""
        self._flying = max(0, self._sent - taken)

    @property
    def asked(self) -> int:
        """How many bytes were sent in this session; 0 where the neighbour is known to have taken them all."""
        return self._sent if self._flying else 0

    def restart(self) -> None:
        """The session is over: what waits is lost with it, as what was sent may be."""
        self.dropped += len(self._events)
        self._events.clear()
        self.bytes = self._flying = self._sent = 0
