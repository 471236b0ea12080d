"""Events: from a hop to all others that must have them (rules 1, 5, 6 of `broker.py`), and adaptive filtering (R5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from covey.filters.algebra import Filter
from covey.routing.batches import Arrived, Batch, Originated, Wanted
from covey.routing.clients import Clients
from covey.routing.context import Context
from covey.routing.decisions import decide
from covey.routing.kept_events import KeptEvents
from covey.routing.links import Link
from covey.routing.messages import COUNTS_EVENTS, KNOWS_LOSSES, Envelope, Filtering, Stream, StreamAck, Taken
from covey.routing.meta_events import PUBLISHER
from covey.routing.plain_events import size_of
from covey.routing.routing_table import RoutingTable
from covey.routing.streams import OutboxRow
from covey.routing.undo import Remembered

NUMBERS_RESERVED = 1_000
"""Event numbers that one journal row reserves; a restart skips what is left of them."""
NOTHING = Wanted()


class Router(Remembered):
    """Routes events, a batch at a time.

    Owns the numbers of events that enter the network here. May touch kept events, clients' queues, and of each link
    the outbox, the events that wait for this turn's end, and the traffic; reads the routing table.
    """

    def __init__(
        self, context: Context, events: KeptEvents, table: RoutingTable, clients: Clients, links: Mapping[str, Link]
    ) -> None:
        self._context = context
        self._events = events
        self._table = table
        self._clients = clients
        self._queues = clients.queues
        self._links = links
        self.next_number = 1
        """Of events that enter the network here."""
        self._reserved = 1
        self._first_number = 0
        """Events of this broker's numbers from here on entered the network here, as its journal knows."""

    # Events that enter here

    def originate(self, batch: Originated) -> None:
        """Publications enter the network here, in order."""
        config = self._context.config
        batch.number(config.broker, self._numbers(len(batch)), config.limits.hops)
        self._route(batch, None)

    def publish(self, attributes: dict[str, Any]) -> None:
        """An event of the broker's own."""
        batch = Originated()
        batch.extend(PUBLISHER, [0], [False], [attributes])
        self.originate(batch)

    def _numbers(self, count: int) -> int:
        """Take so many numbers; gives the first."""
        first = self.next_number
        self.next_number += count
        if self.next_number > self._reserved:
            while self.next_number > self._reserved:
                self._reserved += NUMBERS_RESERVED + 1
            self._context.turn.out.put("broker", "numbers", self._reserved)
        return first

    def restore_numbers(self, reserved: int | None) -> None:
        """Go on behind the numbers that were reserved; None where there is no journal of a former life."""
        if reserved is None:
            # A broker that has lost its disk must not use the numbers of its former life again.
            reserved = self._first_number = max(1, int(self._context.turn.now * 1_000_000))
        self.next_number = self._reserved = reserved

    # Events that come from neighbours

    def arrive(self, link: Link, envelopes: list[Envelope]) -> None:
        """Events from a neighbour (rule 6)."""
        news: list[Envelope] = []
        for came in envelopes:
            if came.origin == self._context.config.broker and came.number >= self._first_number:
                # From here or from nowhere: either way there is nothing new in it.
                self._events.reach_with(came, link.peer)
                continue
            envelope, is_new = self._events.seen.see(came, link.peer)
            if is_new:
                news.append(envelope)
            else:
                self._events.reach_with(envelope, link.peer)
        for used in self._route(Arrived(news), link.peer):
            self._judge(link, used)

    def forget(self, link: Link) -> None:
        """A link is gone for good."""
        self._events.seen.forget(link.peer)

    def _judge(self, link: Link, used: bool) -> None:
        """Ask for filtering again where too much of what comes is of no use (R5)."""
        adaptive, traffic = self._context.config.adaptive, link.traffic
        if adaptive is None or link.floods:
            return
        traffic.came += 1
        traffic.useless += not used
        if traffic.came >= adaptive.sample:
            if traffic.useless > adaptive.ask_above * traffic.came:
                link.send(Filtering())
            traffic.came = traffic.useless = 0

    def filter_again(self, link: Link) -> None:
        """A neighbour asks for filtering."""
        adaptive = self._context.config.adaptive
        if adaptive is not None:
            link.traffic.filter_again(adaptive)

    # Routing

    def _route(self, batch: Batch, source: str | None) -> list[bool]:
        """Send events to every hop that must have them; of each, whether any asked for it, as far as is known."""
        matched = self._table.match_many(batch.attributes)
        if any(batch.durable):
            for at, durable in enumerate(batch.durable):
                if durable:
                    self._keep(batch.envelope(at), source)
        used = [False] * len(batch.durable)
        found = [
            (client, wanted)
            for hop, wanted in matched.items()
            if hop[0] == "c" and (client := self._clients.get(hop[2:])) is not None
        ]
        if self._links:
            for _, wanted in found:
                for at in wanted.places:
                    used[at] = True
        self._queues.deliver(found, batch)
        for link in self._links.values():
            if link.in_tree:
                self._route_over(link, batch, source, matched.get(link.hop, NOTHING), used)
        self._events.trim()
        return used

    def _route_over(self, link: Link, batch: Batch, source: str | None, wanted: Wanted, used: list[bool]) -> None:
        """Send a neighbour those of the events that go there; notes which of them it, too, asked for."""
        asked = set(wanted.places)
        for at in range(len(used)):
            is_matched = at in asked
            if self._goes(link, source, is_matched):
                self._forward(link, batch.envelope(at))
                # Whether the neighbour asked for what it gets unfiltered, it knows best.
                used[at] |= is_matched or not (link.filtered and link.traffic.filtering)

    def _keep(self, envelope: Envelope, source: str | None) -> None:
        key = self._events.keep(envelope)
        if source is not None:
            self._events.reach(key, source)

    def _goes(self, link: Link, source: str | None, matched: bool) -> bool:
        """Decide, and count what adaptive filtering judges by. An event that turns filtering off goes already."""
        adaptive = self._context.config.adaptive
        is_judged = link.filtered and link.traffic.filtering and link.peer != source and not link.floods
        if adaptive is not None and is_judged:
            link.traffic.count(matched, adaptive)
        return decide(link, source, matched).goes

    # Links

    def _forward(self, link: Link, envelope: Envelope, *, recalled: bool = False) -> None:
        if envelope.hops <= 0:
            return
        if not envelope.durable:
            if link.open:
                self._send_later(link, envelope)
            else:
                link.events.drop()
            return
        if self._events.has_reached(envelope.key, link.peer):
            return
        key, size = self._events.refer(envelope)
        self._events.reach(key, link.peer)
        link.push(OutboxRow(key, recalled), size)
        limits = self._context.config.limits
        if len(link.outbox) > limits.outbox or link.outbox.bytes > limits.outbox_bytes:
            keep, keep_bytes = limits.outbox, limits.outbox_bytes
            self.lose(link, link.outbox.cut(keep - keep // 10, keep_bytes - keep_bytes // 10))

    def _send_later(self, link: Link, envelope: Envelope) -> None:
        size = size_of(envelope.attributes)
        passed_on = msgspec.structs.replace(envelope, hops=envelope.hops - 1, variant="")
        link.events.push(passed_on, size, self._context.config.limits.link_buffer_bytes)

    def taken(self, link: Link, message: Taken) -> None:
        """A neighbour has taken events that aren't durable."""
        link.events.confirm(message.bytes)

    def lost(self, source: Link, events: int, hops: int) -> None:
        """Events without durability were lost on the way here. Whom they were for, nobody knows: clients with
        subscriptions are told how many there were, and neighbours that asked for something."""
        if not events:
            return
        self._queues.lost += events
        for link in self._links.values():
            if hops > 0 and link is not source and link.in_tree and link.inward.subscriptions.holding:
                link.events.lose(events, hops - 1)

    def lose(self, link: Link, items: list[OutboxRow]) -> None:
        """Items that a neighbour won't get out of its outbox."""
        link.mark()
        for item in items:
            self._events.miss(item.event, link.peer)
            self._events.release(item.event)

    def reroute(self, link: Link) -> None:
        """A link that has failed and isn't in the tree keeps nothing (rule 5)."""
        items = link.outbox.clear()
        envelopes = [self._events[item.event] for item in items]
        self.lose(link, items)
        for envelope in envelopes:
            matched = self._table.match(envelope.attributes)
            for other in self._links.values():
                if other.in_tree and self._goes(other, None, other.hop in matched):
                    self._forward(other, envelope, recalled=True)

    def replay(self, link: Link, filters: list[Filter]) -> None:
        """Send a neighbour what it should have had of these filters' events."""
        everything = link.floods or (link.up and not link.filtered)
        wanted = RoutingTable(self._context.known, self._context.report)
        for at, condition in enumerate(filters):
            wanted.add(link.hop, str(at), condition)
        for envelope in self._events.unreached(link.peer):
            if everything or wanted.match(envelope.attributes):
                self._forward(link, envelope, recalled=True)

    def acknowledge(self, link: Link, items: list[OutboxRow]) -> None:
        """A neighbour has committed items of its outbox."""
        if items:
            link.stream_at = link.stream_waiting_since = self._context.turn.now
            link.mark()
        for item in items:
            self._events.release(item.event)

    def flush(self, link: Link) -> None:
        """Send a neighbour what the turn has for it."""
        if not link.open:
            return
        limits = self._context.config.limits
        if link.stream_ack_due:
            link.stream_ack_due = False
            link.send(StreamAck(link.inbox.epoch, link.inbox.received, link.holding))
        flying = limits.stream_flying
        if link.stream_held:
            flying, link.asks_again = int(link.asks_again), False
        for first, rows in link.outbox.unsent(flying, limits.stream_flying_bytes, limits.stream_items):
            if link.outbox.acked == first - 1:
                link.stream_at = self._context.turn.now
            link.send(Stream(link.outbox.epoch, first, [self._item(row) for row in rows]))
        if link.events_taken - link.events_told >= limits.events_flying_bytes // 4:
            link.tell_taken()
        tells = KNOWS_LOSSES in link.capabilities
        if link.events or (tells and link.events.tells_loss):
            window = limits.events_flying_bytes if COUNTS_EVENTS in link.capabilities else None
            for events in link.events.take(window, tells=tells):
                link.send(events)

    def _item(self, row: OutboxRow) -> Envelope:
        envelope = self._events[row.event]
        recalled = envelope.recalled or row.recalled
        return msgspec.structs.replace(envelope, hops=envelope.hops - 1, recalled=recalled, variant="")
