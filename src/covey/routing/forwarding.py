"""Events: from a hop to all others that must have them (rules 1, 5, 6 of `broker.py`), and adaptive filtering (R5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from covey.routing.links import Link
from covey.routing.messages import (
    Envelope,
    Events,
    Filtering,
    Publication,
    Stream,
    StreamAck,
)
from covey.routing.state import State
from covey.routing.streams import OutboxRow

Hops: TypeAlias = dict[str, list[str]]
"""The hops that an event must go to, each with its entries that match."""


class Forwarding(State):
    """Routes events."""

    def _originate(self, publisher: str, publications: Iterable[Publication]) -> None:
        """Events of one publisher enter the network here."""
        self._originate_all([(publisher, publications)])

    def _originate_all(self, published: Iterable[tuple[str, Iterable[Publication]]]) -> None:
        """Events enter the network here, each publisher's in order; they are matched together."""
        broker, hops, number = self.config.broker, self.config.limits.hops, self._number
        envelopes = [
            Envelope(broker, number(), publisher, one.number, one.durable, hops, one.attributes)
            for publisher, publications in published
            for one in publications
        ]
        see = self.events.see
        for envelope, matched in self._matched(envelopes):
            see(envelope.key)
            self._route(envelope, None, matched)

    def _matched(self, envelopes: list[Envelope]) -> Iterable[tuple[Envelope, Hops]]:
        return zip(envelopes, self.table.match_many([one.attributes for one in envelopes]), strict=True)

    def _route(self, envelope: Envelope, source: str | None, matched: Hops) -> bool:
        """Send an event to every hop that must have it; whether any asked for it, as far as is known."""
        if envelope.durable:
            self.events.keep(envelope)
            if source is not None:
                self.events.reach(envelope.key, source)
        used = False
        for hop, keys in matched.items():
            if hop[0] == "c":
                client = self.clients.get(hop[2:])
                if client is not None:
                    self.clients.deliver(client, keys, envelope)
                    used = True
        for link in self.links.values():
            if link.in_tree and link.peer != source and self._wants(link, link.hop in matched):
                self._forward(link, envelope)
                used |= link.hop in matched or not link.filtered
        return used

    def _wants(self, link: Link, matched: bool) -> bool:
        if self.config.strategy == "flooding":
            return True
        if not link.filtered:
            return link.up
        adaptive = self.config.adaptive
        if adaptive is not None:
            link.traffic.count(matched, adaptive)
        return matched or not link.traffic.filtering

    def _forward(self, link: Link, envelope: Envelope, *, recalled: bool = False) -> None:
        if envelope.hops <= 0:
            return
        if not envelope.durable:
            if link.open:
                link.events.append(msgspec.structs.replace(envelope, hops=envelope.hops - 1))
            return
        if self.events.has_reached(envelope.key, link.peer):
            return
        self.events.refer(envelope)
        self.events.reach(envelope.key, link.peer)
        link.push(OutboxRow(envelope.key, recalled))
        limit = self.config.limits.outbox
        if len(link.outbox) > limit:
            self._lose(link, link.outbox.cut(limit - limit // 10))

    def _lose(self, link: Link, items: list[OutboxRow]) -> None:
        """Items that a neighbour won't get out of its outbox."""
        link.mark()
        for item in items:
            self.events.miss(item.event, link.peer)
            self.events.release(item.event)

    def _flush_stream(self, link: Link) -> None:
        if not link.open:
            return
        limits = self.config.limits
        if link.stream_ack_due:
            link.stream_ack_due = False
            link.send(StreamAck(link.inbox.epoch, link.inbox.received))
        for first, rows in link.outbox.unsent(limits.stream_flying, limits.stream_items):
            if link.outbox.acked == first - 1:
                link.stream_at = self._turn.now
            link.send(Stream(link.outbox.epoch, first, [self._item(row) for row in rows]))
        if link.events:
            link.send(Events(list(link.events)))
            link.events.clear()

    def _item(self, row: OutboxRow) -> Envelope:
        envelope = self.events[row.event]
        recalled = envelope.recalled or row.recalled
        return msgspec.structs.replace(envelope, hops=envelope.hops - 1, recalled=recalled)

    def _acked(self, link: Link, items: list[OutboxRow]) -> None:
        if items:
            link.stream_at = link.stream_waiting_since = self._turn.now
            link.mark()
        for item in items:
            self.events.release(item.event)

    def _arrived(self, link: Link, envelopes: list[Envelope]) -> None:
        """Events from a neighbour (rule 6)."""
        news: list[Envelope] = []
        for envelope in envelopes:
            if self.events.see(envelope.key):
                news.append(envelope)
            else:
                self.events.reach(envelope.key, link.peer)
        for envelope, matched in self._matched(news):
            self._judge(link, self._route(envelope, link.peer, matched))

    def _judge(self, link: Link, used: bool) -> None:
        """Ask for filtering again where too much of what comes is of no use (R5)."""
        adaptive, traffic = self.config.adaptive, link.traffic
        if adaptive is None or self.config.strategy == "flooding":
            return
        traffic.came += 1
        traffic.useless += not used
        if traffic.came >= adaptive.sample:
            if traffic.useless > adaptive.ask_above * traffic.came:
                link.send(Filtering())
            traffic.came = traffic.useless = 0

    def _filter_again(self, link: Link, message: Filtering) -> None:  # noqa: ARG002
        if self.config.adaptive is not None:
            link.traffic.filter_again(self.config.adaptive)
