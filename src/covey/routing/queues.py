"""Deliveries: from the router to clients, as their credit allows.

What durable subscriptions match is numbered and queued until the client acknowledges it; after a reconnection
everything that isn't acknowledged comes again, with the same numbers, in order. The journal has a row for what a queue
got in one turn, and the client's row says how far it is acknowledged. Other deliveries
wait in memory for the client's credit. Where a client takes too little, the oldest go and it hears of a gap; after too
many gaps its session is closed. Credit counts deliveries and bytes, and the delivery that passes the bytes is still
sent, so what waits can always be delivered, one at a time in the worst case. A delivery is only sent while one of the
subscriptions that it was meant for is still there and still matches, so nothing comes after a confirmed unsubscription;
and only what the client may have by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from math import inf

from covey.routing import packed_events
from covey.routing.batches import Batch, Originated, Wanted, delivery
from covey.routing.client import Client, ClientRow, QueueRow, RunRow, queue_key
from covey.routing.context import Context
from covey.routing.entry_columns import WantedColumns
from covey.routing.kept_events import KeptEvents
from covey.routing.messages import COUNTS_BYTES, KNOWS_LOSSES, CloseClient, Deliver, Deliveries, Envelope, Gap, Lost
from covey.routing.ranges import LARGEST
from covey.routing.undo import Remembered, ScratchDict

LOST_SECONDS = 1.0
"""Clients hear of what was lost between brokers once in so many seconds: all of them hear of it."""
RUN = 1_000
"""Deliveries in one row."""
LOOSE_PART = 4
"""A queue is looked through when one in so many of its places is for subscriptions that have ended."""


class Queues(Remembered):
    """What waits for clients.

    Owns of each client the queue, the buffer, the credit and the gaps. May touch the references of kept events; reads
    clients' subscriptions.
    """

    def __init__(self, context: Context, events: KeptEvents) -> None:
        self._context = context
        self._events = events
        self._pumped: dict[str, Client] = ScratchDict()
        self._unwritten: dict[str, Client] = ScratchDict()
        self._new: dict[str, list[QueueRow]] = ScratchDict()
        """What queues got in this turn."""
        self.delivered = 0
        """Deliveries sent to all clients since the broker was started."""
        self.buffer_bytes = 0
        """What waits for all clients without durability."""
        self.lost = 0
        """Events without durability that were lost between brokers on their way here, of which clients don't know."""
        self._lost_told_at = -inf
        self.has_publishers = False
        """Whether some client is remembered for what it published."""

    def open(self, client: Client, capabilities: frozenset[str]) -> None:
        """A session opened: all that isn't acknowledged comes again."""
        limits = self._context.config.limits
        client.unsent = deque(client.queue)
        client.sent = 0
        client.credit, client.credit_bytes = limits.credit, limits.credit_bytes
        client.capabilities = capabilities
        client.flying.clear()
        client.dropped = client.meant = 0
        self._empty_buffer(client)
        self._pumped[client.id] = client

    def close(self, client: Client) -> None:
        """The session ended. What it lost without a number the next one hears from `Welcome.meant`."""
        self._empty_buffer(client)
        client.gap -= client.gap_unnumbered
        client.gap_unnumbered = 0
        client.unsent.clear()
        client.flying.clear()

    def _empty_buffer(self, client: Client) -> None:
        client.buffer.clear()
        self.buffer_bytes -= client.buffer_bytes
        client.buffer_bytes = 0

    def deliver(self, found: list[tuple[Client, Wanted]], batch: Batch) -> None:
        """Events of a batch for clients, each with those of a client's subscriptions that match."""
        waiting = [(client, wanted) for client, wanted in found if not self._send_at_once(client, wanted, batch)]
        for client, _ in waiting:
            if client.id not in self._pumped:
                self._pumped[client.id] = client
        # Event by event: what clients of one principal share is for the latest events of all of them.
        steps = [
            (at, number, ids)
            for number, (_, wanted) in enumerate(waiting)
            for at, ids in zip(wanted.places, wanted.keys, strict=True)
        ]
        for at, number, ids in sorted(steps) if len(waiting) > 1 else steps:
            self._deliver_one(waiting[number][0], ids, batch, at)

    def _send_packed(self, client: Client, wanted: Wanted, batch: Batch) -> bool:
        """Send deliveries as bytes, without a look at any of them; False where that can't be. All that the table has
        of a client are subscriptions of its own that aren't durable: where one has ended and the table doesn't know,
        there are fewer of these."""
        if not isinstance(wanted, WantedColumns) or not isinstance(batch, Originated):
            return False
        events, places = batch.packed, wanted.distinct
        if events is None or len(places) < packed_events.PACKED_FROM or client.durables:
            return False
        if len(client.claims.subscriptions) != wanted.entries:
            return False
        size = events.size(places)
        if len(places) > client.credit or size > client.credit_bytes:
            return False
        wanted.count()
        client.meant += len(places)
        client.credit_bytes -= size
        sizes = [] if COUNTS_BYTES in client.capabilities else events.sizes(places.tolist())
        self._sent(client, batch.packed_deliveries(wanted.named, len(places), size), sizes)
        return True

    def _send_at_once(self, client: Client, wanted: Wanted, batch: Batch) -> bool:
        """Send deliveries without a number that need not wait, as `_pump_one` would; False where some do."""
        if not client.up or client.unsent or client.buffer or client.gap or client.watched:
            return False
        if self._send_packed(client, wanted, batch):
            return True
        places = wanted.places
        sizes = batch.sizes(places)
        if len(places) > client.credit or sum(sizes) > client.credit_bytes:
            return False
        held = client.claims.subscriptions
        claims = [
            claim for ids in wanted.keys for id in ids if (claim := held.get(id)) is not None and not claim.durable
        ]
        if len(claims) < sum(map(len, wanted.keys)):
            return False
        for claim in claims:
            claim.hits += 1
        client.meant += len(places)
        client.credit_bytes -= sum(sizes)
        self._sent(client, batch.deliveries(places, wanted.keys, sizes), sizes)
        return True

    def _deliver_one(self, client: Client, subscriptions: list[str], batch: Batch, at: int) -> None:
        claims = client.claims.subscriptions
        is_durable = False
        for id in subscriptions:
            claim = claims.get(id)
            if claim is None:
                # It ended with its session, and the table will follow when there is time.
                wanted = [id for id in subscriptions if id in claims]
                if wanted:
                    self._deliver_one(client, wanted, batch, at)
                return
            is_durable |= claim.durable
        for id in subscriptions:
            claims[id].hits += 1
        if is_durable:
            self._enqueue(client, subscriptions, batch.envelope(at))
        elif client.up:
            self._wait(client, (client.next_number - 1, subscriptions, batch.envelope(at), batch.size(at)))
        else:
            client.meant += 1  # for a lease; it hears that it missed something when it comes back

    def _wait(self, client: Client, waiting: tuple[int, list[str], Envelope, int]) -> None:
        """Let a delivery without a number wait for the client's credit; the oldest go where there are too many."""
        limits = self._context.config.limits
        client.meant += 1
        client.buffer.append(waiting)
        self._count_buffer(client, waiting[3])
        most, most_bytes = limits.buffer + max(0, client.credit), limits.buffer_bytes + max(0, client.credit_bytes)
        while len(client.buffer) > 1 and (len(client.buffer) > most or client.buffer_bytes > most_bytes):
            self._count_buffer(client, -client.buffer.popleft()[3])
            self._count_gap(client)
            client.gap_unnumbered += 1

    def _count_buffer(self, client: Client, size: int) -> None:
        client.buffer_bytes += size
        self.buffer_bytes += size

    def acknowledge(self, client: Client, number: int) -> None:
        """The client has deliveries up to a number."""
        while client.queue and client.queue[0].number <= min(number, client.sent):
            self._unqueue(client)

    def grant(self, client: Client, deliveries: int, size: int) -> None:
        """The client takes more deliveries, of so many bytes more."""
        granted = max(0, deliveries)
        client.credit += granted
        if COUNTS_BYTES not in client.capabilities:
            # It grants deliveries in the order in which it takes them, which is nearly that in which they were sent.
            size = sum(client.flying.popleft() for _ in range(min(granted, len(client.flying))))
        client.credit_bytes = min(client.credit_bytes + max(0, size), self._context.config.limits.credit_bytes)
        self._pumped[client.id] = client

    def publish(self, client: Client, number: int) -> None:
        """A durable publication is committed with this turn."""
        client.published, client.published_at = number, self._context.turn.now
        self.has_publishers = True
        self._unwritten[client.id] = client

    def ended(self, client: Client, ids: Iterable[str]) -> None:
        """Subscriptions are over: what waits for them alone goes, at once where it is a good part of the queue or all
        of it, so that looking through the queue is paid for by what was put into it."""
        if client.waiting:
            client.loose += sum(client.waiting.get(id, 0) for id in ids)
        if client.loose * LOOSE_PART >= len(client.queue) > 0 and client.loose:
            client.loose = 0
            self._sweep(client)

    def _sweep(self, client: Client) -> None:
        claims = client.claims.subscriptions
        gone: set[int] = set()
        rows, client.queue = client.queue, deque()
        for row in rows:
            if any(id in claims for id in row.subscriptions):
                client.queue.append(row)
            else:
                gone.add(row.number)
                self._let_go(client, row)
        if gone:
            client.unsent = deque(row for row in client.unsent if row.number not in gone)
            self._write_anew(client)

    def write_later(self, client: Client) -> None:
        """What is journalled of a client has changed."""
        self._unwritten[client.id] = client

    def forget(self, client: Client) -> None:
        """Nothing is left of a client."""
        self._unwritten.pop(client.id, None)
        self._pumped.pop(client.id, None)
        self._new.pop(client.id, None)
        self._drop_runs(client)
        if client.is_written:
            client.is_written = False
            self._context.turn.out.drop("client", client.id)

    def narrow(self, client: Client) -> None:
        """A subscription ended or changed: what waits is looked at again before it is sent."""
        client.narrowed = client.next_number
        buffer = client.buffer
        self.buffer_bytes -= client.buffer_bytes
        client.buffer, client.buffer_bytes = deque(), 0
        for after, subscriptions, envelope, size in buffer:
            wanted = self._still_wanted(client, subscriptions, envelope)
            if wanted:
                client.buffer.append((after, wanted, envelope, size))
                self._count_buffer(client, size)
            else:
                client.meant -= 1

    def tell_losses(self, clients: Iterable[Client]) -> None:
        """Tell clients that have subscriptions of what was lost between brokers, if it is time for it."""
        turn = self._context.turn
        if turn.now < self.next_telling():
            return
        lost, self.lost, self._lost_told_at = min(self.lost, LARGEST), 0, turn.now
        for client in clients:
            if client.up and client.claims.subscriptions and KNOWS_LOSSES in client.capabilities:
                turn.out.sends.append(client.answer(Lost(lost)))

    def next_telling(self) -> float:
        """When clients must be told; infinity where there is nothing."""
        return self._lost_told_at + LOST_SECONDS if self.lost else inf

    def pump(self) -> list[Client]:
        """Send what may be sent; gives the clients that were too slow for too long."""
        sends = self._context.turn.out.sends
        closed: list[Client] = []
        for client in self._pumped.values():
            if not client.up:
                continue
            if client.gap:
                sends.append(client.answer(Gap(client.gap, client.gap_unnumbered)))
                client.gap = client.gap_unnumbered = 0
            if client.dropped > self._context.config.limits.gaps:
                sends.append(
                    CloseClient(client.id, "too slow: too many deliveries had to be dropped", client.connection)
                )
                closed.append(client)
                continue
            self._pump_one(client)
        self._pumped.clear()
        return closed

    def write(self) -> None:
        """Journal what has changed of clients, at the end of a turn."""
        for client in self._unwritten.values():
            self._write_runs(client, self._new.get(client.id, ()))
            while client.runs and (not client.queue or client.queue[0].number > client.runs[0][1]):
                self._drop_run(client, client.runs.popleft())
            row = ClientRow(client.next_number, client.published, client.published_at, client.freed)
            self._context.turn.out.put("client", client.id, row)
            client.is_written = True
        self._unwritten.clear()
        self._new.clear()

    def _write_runs(self, client: Client, rows: Iterable[QueueRow]) -> None:
        """Journal deliveries, but those that have left the queue again."""
        left = [(row.number, row.event, row.subscriptions) for row in rows if row.number > client.freed]
        for start in range(0, len(left), RUN):
            run = left[start : start + RUN]
            client.runs.append((run[0][0], run[-1][0]))
            self._context.turn.out.put("run", queue_key(client.id, run[0][0]), RunRow(client.id, run))

    def _drop_run(self, client: Client, run: tuple[int, int]) -> None:
        self._context.turn.out.drop("run", queue_key(client.id, run[0]))

    def _drop_runs(self, client: Client) -> None:
        for run in client.runs:
            self._drop_run(client, run)
        client.runs.clear()

    def _write_anew(self, client: Client) -> None:
        """Deliveries went out of the middle of the queue: its rows are made again of those that are left."""
        self._drop_runs(client)
        self._new[client.id] = list(client.queue)
        self._unwritten[client.id] = client

    def bring_forward(self, client: Client, numbers: Iterable[int]) -> None:
        """Deliveries with these numbers have rows of before; all are in the queue by now, which gets rows as they are
        now."""
        for number in numbers:
            self._context.turn.out.drop("queue", queue_key(client.id, number))
        self._write_anew(client)

    def restore_run(self, client: Client, row: RunRow) -> list[QueueRow]:
        """What is left of deliveries with a row."""
        left = [QueueRow(client.id, *one) for one in row.deliveries if one[0] > client.freed]
        client.runs.append((row.deliveries[0][0], row.deliveries[-1][0]))
        self._unwritten[client.id] = client
        return left

    def restore(self, client: Client, row: QueueRow) -> None:
        """Take a delivery back from its row; rows come in the order of their numbers."""
        client.queue.append(row)
        client.narrowed = client.next_number
        self._events.refer_again(row.event)
        self._count_queue(client, self._events.bytes_of(row.event))
        self._count_waiting(client, row.subscriptions, 1)

    def _enqueue(self, client: Client, subscriptions: list[str], envelope: Envelope) -> None:
        key, size = self._events.refer(envelope)
        row = QueueRow(client.id, client.next_number, key, subscriptions)
        client.next_number += 1
        client.queue.append(row)
        if client.up:
            client.unsent.append(row)
        self._count_queue(client, size)
        self._count_waiting(client, subscriptions, 1)
        new = self._new.get(client.id)
        if new is None:
            new = self._new[client.id] = []
        new.append(row)
        self._unwritten[client.id] = client
        limits = self._context.config.limits
        while len(client.queue) > 1 and (
            len(client.queue) > limits.queue
            or client.queue_bytes > limits.queue_bytes
            or client.totals.queue_bytes > limits.principal_queue_bytes
        ):  # fmt: skip
            self._count_gap(client)
            self._unqueue(client)

    def _count_waiting(self, client: Client, subscriptions: list[str], by: int) -> None:
        waiting = client.waiting
        for id in subscriptions:
            count = waiting.get(id, 0) + by
            if count:
                waiting[id] = count
            else:
                del waiting[id]

    def _count_queue(self, client: Client, size: int) -> None:
        client.queue_bytes += size
        client.totals.queue_bytes += size

    def _unqueue(self, client: Client) -> None:
        row = client.queue.popleft()
        if client.unsent and client.unsent[0] is row:
            client.unsent.popleft()
        client.freed = row.number
        self._unwritten[client.id] = client
        self._let_go(client, row)

    def _let_go(self, client: Client, row: QueueRow) -> None:
        """A delivery that left the queue."""
        self._count_waiting(client, row.subscriptions, -1)
        self._count_queue(client, -self._events.bytes_of(row.event))
        self._events.release(row.event)

    def _count_gap(self, client: Client) -> None:
        client.gap += 1
        client.dropped += 1

    def _still_wanted(self, client: Client, subscriptions: list[str], envelope: Envelope) -> list[str]:
        claims, matches = client.claims.subscriptions, self._context.known.matches
        return [id for id in subscriptions if id in claims and matches(claims[id].condition, envelope.attributes)]

    def _may_have(self, client: Client, envelope: Envelope) -> bool:
        """Whether what a client may subscribe to has an event, whatever its subscriptions were allowed once."""
        return self._context.known.allow(client.permissions.subscribe, envelope.attributes)

    def _pump_one(self, client: Client) -> None:
        """Send to one client what its credit allows, in the order in which it came."""
        unsent, buffer, credit, watched = client.unsent, client.buffer, client.credit, client.watched
        sent: list[Deliver] = []
        while len(sent) < credit and client.credit_bytes > 0 and (unsent or buffer):
            if buffer and (not unsent or unsent[0].number > buffer[0][0]):
                _, wanted, envelope, size = buffer.popleft()
                self._count_buffer(client, -size)
                if watched and not self._may_have(client, envelope):
                    client.meant -= 1
                    continue
                client.credit_bytes -= size
                sent.append(delivery(0, wanted, envelope, size))
                continue
            row = unsent.popleft()
            client.sent = row.number
            envelope = self._events[row.event]
            wanted = row.subscriptions
            if row.number < client.narrowed:
                wanted = self._still_wanted(client, wanted, envelope)
            if wanted and watched and not self._may_have(client, envelope):
                wanted = []
            if wanted:
                size = self._events.bytes_of(row.event)
                client.credit_bytes -= size
                sent.append(delivery(row.number, wanted, envelope, size))
            elif client.queue[0] is row:
                self._unqueue(client)
        if sent:
            self._sent(client, sent, [message.bytes for message in sent])

    def _sent(self, client: Client, sent: Sequence[Deliver], sizes: list[int]) -> None:
        """Deliveries go to a client, which its credit allows; their bytes are counted already."""
        client.credit -= len(sent)
        if COUNTS_BYTES not in client.capabilities:
            client.flying.extend(sizes)
        client.delivered += len(sent)
        self.delivered += len(sent)
        self._context.turn.out.sends.append(Deliveries(client.id, sent, client.connection))
