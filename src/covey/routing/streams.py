"""The reliable stream of one direction of a link: durable events, in order, each once.

The sender keeps what isn't acknowledged in an outbox, row by row in the journal. Items are numbered; the receiver takes
only the next number, journals how far it is together with what the items did, and acknowledges after the commit. So
nothing is lost and nothing comes twice, whatever crashes on either side. Numbers start again with a new *epoch*
where the two sides don't agree any more (one has lost its disk, or the outbox was cut down to its limit); then events
may come twice over the link, and their ids tell (`kept_events.py`). An epoch is agreed on with the neighbour's first
Hello, above all that it knows: a broker that has forgotten a neighbour (a link that was taken away and is back, a lost
disk) doesn't know which were used, and numbers of a former life must not acknowledge those of this one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from covey.routing.journal import Turn
from covey.routing.undo import Remembered


class OutboxRow(msgspec.Struct, frozen=True, array_like=True):
    """One item: an event by its id."""

    event: str
    recalled: bool = False


@dataclass(slots=True)
class Outbox(Remembered):
    """What a neighbour hasn't acknowledged."""

    peer: str
    turn: Turn
    epoch: int = 0
    """0 until one is agreed on; nothing is sent before."""
    acked: int = 0
    sent: int = 0
    """The last number that was sent in this session."""
    items: deque[OutboxRow] = field(default_factory=deque)
    bytes: int = 0
    """Of all items."""
    _sizes: deque[int] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def last(self) -> int:
        """The number of the last item."""
        return self.acked + len(self.items)

    def push(self, item: OutboxRow, size: int) -> None:
        """Add an item of so many bytes."""
        self._append(item, size)
        self.turn.out.put("outbox", self._key(self.last), item)

    def _append(self, item: OutboxRow, size: int) -> None:
        self.items.append(item)
        self._sizes.append(size)
        self.bytes += size

    def _pop(self) -> OutboxRow:
        self.bytes -= self._sizes.popleft()
        return self.items.popleft()

    def acknowledge(self, epoch: int, received: int) -> list[OutboxRow]:
        """The neighbour has items up to a number; gives those that it didn't have before."""
        done: list[OutboxRow] = []
        if not self.epoch or epoch != self.epoch or received > self.last:
            return done
        while self.acked < received:
            self.turn.out.drop("outbox", self._key(self.acked + 1))
            done.append(self._pop())
            self.acked += 1
        self.sent = max(self.sent, self.acked)
        return done

    def start(self, epoch: int, received: int) -> list[OutboxRow]:
        """A session starts with what the neighbour says it has; gives items that turn out to be acknowledged."""
        if self.epoch and epoch == received == self.acked == 0:
            self.sent = 0
            return []
        if not self.epoch or epoch != self.epoch or not self.acked <= received <= self.last:
            self.renumber(max(epoch, self.epoch) + 1)
            return []
        done = self.acknowledge(epoch, received)
        self.sent = self.acked
        return done

    def renumber(self, epoch: int) -> None:
        """Count from 1 again, under a new epoch."""
        self._drop_rows()
        self.epoch, self.acked, self.sent = epoch, 0, 0
        for number, item in enumerate(self.items, 1):
            self.turn.out.put("outbox", self._key(number), item)

    def cut(self, keep: int, keep_bytes: int) -> list[OutboxRow]:
        """Keep the newest items only, so many and of so many bytes; gives the others."""
        self._drop_rows()
        dropped: list[OutboxRow] = []
        while len(self.items) > keep or self.bytes > keep_bytes:
            dropped.append(self._pop())
        self.renumber(self.epoch + 1 if self.epoch else 0)
        return dropped

    def clear(self) -> list[OutboxRow]:
        """Give up all items."""
        return self.cut(0, 0) if self.items else []

    def unsent(self, flying: int, flying_bytes: int, most: int) -> Iterator[tuple[int, list[OutboxRow]]]:
        """Items to send now: their first number, and at most `most` at a time, with at most `flying` in flight, and of
        `flying_bytes`; one is sent whatever its size."""
        until = min(self.last, self.acked + flying)
        if self.sent < until and self.bytes > flying_bytes:
            left = flying_bytes
            for at, size in enumerate(islice(self._sizes, until - self.acked)):
                left -= size
                if left < 0:
                    until = self.acked + max(1, at)
                    break
        while self.sent < until:
            first = self.sent + 1
            count = min(most, until - self.sent)
            start = first - self.acked - 1
            yield first, [self.items[at] for at in range(start, start + count)]
            self.sent += count

    def _drop_rows(self) -> None:
        for number in range(self.acked + 1, self.last + 1):
            self.turn.out.drop("outbox", self._key(number))

    def _key(self, number: int) -> str:
        return f"{self.peer}/{self.epoch}/{number:012d}"

    def restore(self, rows: list[tuple[str, OutboxRow]], bytes_of: Callable[[str], int]) -> None:
        """Take the items back from their rows."""
        for _, row in sorted(rows, key=lambda pair: pair[0]):
            self._append(row, bytes_of(row.event))


@dataclass(slots=True)
class Inbox(Remembered):
    """How far a neighbour's stream has come."""

    epoch: int = 0
    received: int = 0

    def take(self, epoch: int, first: int, count: int) -> range:
        """Which of the items are new, by their places; a gap makes none of them new."""
        if epoch < self.epoch or (epoch > self.epoch and first != 1):
            return range(0)
        if epoch > self.epoch:
            self.epoch, self.received = epoch, 0
        if first > self.received + 1:
            return range(0)
        start = self.received + 1 - first
        self.received = max(self.received, first + count - 1)
        return range(start, count)
