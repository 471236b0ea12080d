"""The reliable stream of one direction of a link: durable events, in order, each once.

The sender keeps what isn't acknowledged in an outbox, row by row in the journal. Items are numbered; the receiver takes
only the next number, journals how far it is together with what the items did, and acknowledges after the commit. So
nothing is lost and nothing comes twice, whatever crashes on either side. Numbers start again with a new *epoch*
where the two sides don't agree any more (one has lost its disk, or the outbox was cut down to its limit); then events
may come twice over the link, and their ids tell (`kept_events.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from covey.routing.journal import Turn


class OutboxRow(msgspec.Struct, frozen=True, array_like=True):
    """One item: an event by its id."""

    event: str
    recalled: bool = False


@dataclass(slots=True)
class Outbox:
    """What a neighbour hasn't acknowledged."""

    peer: str
    turn: Turn
    epoch: int = 1
    acked: int = 0
    sent: int = 0
    """The last number that was sent in this session."""
    items: deque[OutboxRow] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def last(self) -> int:
        """The number of the last item."""
        return self.acked + len(self.items)

    def push(self, item: OutboxRow) -> None:
        """Add an item."""
        self.items.append(item)
        self.turn.out.put("outbox", self._key(self.last), item)

    def acknowledge(self, epoch: int, received: int) -> list[OutboxRow]:
        """The neighbour has items up to a number; gives those that it didn't have before."""
        done: list[OutboxRow] = []
        if epoch != self.epoch or received > self.last:
            return done
        while self.acked < received:
            self.turn.out.drop("outbox", self._key(self.acked + 1))
            done.append(self.items.popleft())
            self.acked += 1
        self.sent = max(self.sent, self.acked)
        return done

    def start(self, epoch: int, received: int) -> list[OutboxRow]:
        """A session starts with what the neighbour says it has; gives items that turn out to be acknowledged."""
        if epoch == received == self.acked == 0:
            self.sent = 0
            return []
        if epoch != self.epoch or not self.acked <= received <= self.last:
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

    def cut(self, keep: int) -> list[OutboxRow]:
        """Keep the newest items only; gives the others."""
        self._drop_rows()
        dropped = [self.items.popleft() for _ in range(len(self.items) - keep)]
        self.renumber(self.epoch + 1)
        return dropped

    def clear(self) -> list[OutboxRow]:
        """Give up all items."""
        return self.cut(0) if self.items else []

    def unsent(self, flying: int, most: int) -> Iterator[tuple[int, list[OutboxRow]]]:
        """Items to send now: their first number, and at most `most` at a time, with at most `flying` in flight."""
        until = min(self.last, self.acked + flying)
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

    def restore(self, rows: list[tuple[str, OutboxRow]]) -> None:
        """Take the items back from their rows."""
        self.items.extend(row for _, row in sorted(rows, key=lambda pair: pair[0]))


@dataclass(slots=True)
class Inbox:
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
