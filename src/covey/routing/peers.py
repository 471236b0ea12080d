"""Neighbours: sessions, deltas and streams, what is sent again and who has failed (M7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from covey.filters.algebra import TRUE
from covey.routing.by_table import Table
from covey.routing.client import Client
from covey.routing.context import Context
from covey.routing.exporter import Exporter
from covey.routing.journal import read
from covey.routing.kept_events import KeptEvents
from covey.routing.link_tables import Inward
from covey.routing.links import Link, LinkRow
from covey.routing.messages import (
    COUNTS_EVENTS,
    KNOWS_HOLDING,
    AddLink,
    AddPeer,
    ClosePeer,
    Confirmed,
    Delta,
    DeltaAck,
    Entry,
    Events,
    Filtering,
    FromPeer,
    Hello,
    LinkStates,
    PeerDown,
    PeerMessage,
    PeerUp,
    Ping,
    Refused,
    RemoveLink,
    RemovePeer,
    Stream,
    StreamAck,
    Taken,
)
from covey.routing.phases import Phase, Signal
from covey.routing.plain_events import size_of
from covey.routing.recalls import Recalls
from covey.routing.router import Router
from covey.routing.routing_table import entry_bytes
from covey.routing.settling import Settling, Settlings
from covey.routing.streams import OutboxRow
from covey.routing.tree import Tree
from covey.routing.undo import Remembered, RememberedDict
from covey.routing.waiting_events import MOST_HOPS

HELLO_HEARD = (Phase.ANSWERED, Phase.SYNCED)
"""Where our Hello needn't be said again."""


class Peers(Remembered):
    """Talks to neighbours.

    Owns the links: it alone makes and ends them, opens and closes their sessions, and takes their messages. What a
    message changes beyond its link goes through `Exporter` (entries), `Router` (events), `Recalls` and `Tree`.
    """

    def __init__(
        self, context: Context, links: dict[str, Link], router: Router, exporter: Exporter, recalls: Recalls,
        tree: Tree, settlings: Settlings,
    ) -> None:  # fmt: skip
        self._context = context
        self._links = links
        self._router = router
        self._exporter = exporter
        self._recalls = recalls
        self._tree = tree
        self._settlings = settlings
        self.urls: dict[str, str] = RememberedDict()
        """Addresses of neighbours that were told while the broker ran, for the driver."""
        self._handlers: dict[type, Callable[[Link, Any], None]] = {
            Hello: self._hello,
            Delta: self._delta,
            DeltaAck: lambda link, message: link.acknowledged(message),
            Stream: self._stream,
            StreamAck: self._stream_ack,
            Events: self._events,
            Taken: router.taken,
            LinkStates: tree.hear,
            Ping: self._ping,
            Filtering: self._filtering,
        }

    # Sessions

    def peer_up(self, input: PeerUp) -> None:
        """A session with a neighbour is open."""
        link = self._links.get(input.peer)
        if link is None:
            self._context.turn.out.sends.append(
                ClosePeer(input.peer, "not a neighbour; add it on both sides", input.session)
            )
            return
        link.session_up(input.session)
        link.send(LinkStates(self._tree.topology.states))
        link.last_ping = self._context.turn.now

    def _close(self, peer: str, reason: str, session: int) -> None:
        self._context.turn.out.sends.append(ClosePeer(peer, reason, session))

    def peer_down(self, input: PeerDown) -> None:
        """A session with a neighbour ended."""
        link = self._links.get(input.peer)
        if link is not None and link.up and link.session == input.session:
            link.session_down()

    def from_peer(self, input: FromPeer) -> None:
        """A neighbour's message; one of a session that is over is ignored."""
        link = self._links.get(input.peer)
        if link is None or not link.up or link.session != input.session:
            return
        link.last_heard = self._context.turn.now
        message: PeerMessage = input.message
        if link.open or isinstance(message, Hello | LinkStates | Ping):
            self._handlers[type(message)](link, message)

    def _hello(self, link: Link, message: Hello) -> None:
        is_first, had_failed = not link.open, link.failed
        link.capabilities = frozenset(message.capabilities)
        if is_first:
            link.take(Signal.HELLO)
        if message.answer:
            link.take(Signal.ANSWER)
        if is_first:
            self._router.lost(link, link.came.greet(message.life, message.events), MOST_HOPS)
            if had_failed:
                link.revive()
                self._tree.announce()
            self._router.acknowledge(link, link.outbox.start(message.stream_epoch, message.stream_received))
            link.stream_waiting_since = self._context.turn.now
            link.mark()
            link.greet(message)
        if not message.answer:
            link.say_hello()

    # Deltas and streams

    def _delta(self, link: Link, message: Delta) -> None:
        table = Table.of(message.table)
        if table is None:
            return
        link.take(Signal.ANSWER)
        inward = link.inward[table]
        inward.ack_due = True
        if message.number != inward.applied + 1:
            return
        inward.applied = message.number
        coming = sum(entry_bytes(entry.key, entry.filter) for entry in message.added)
        if inward.holding.bytes + coming > self._context.config.limits.table_bytes:
            self._close(link.peer, "a table that is larger than table_bytes", link.session)
            link.session_down()
            return
        if not message.more and table is Table.SUBSCRIPTIONS:
            link.take(Signal.SYNCED)
            link.take(Signal.PEER_JOINED if message.joined else Signal.PEER_LEFT)
        added = [
            (entry, condition)
            for entry in message.added
            if (condition := self._context.parse_entry(entry.key, entry.filter)) is not None
        ]
        if message.more:
            # An entry may count early, and never late: what is recalled with the last part finds it in its place.
            inward.part_keys.update(entry.key for entry, _ in added)
            self._exporter.hold(link, table, added, [])
            return
        kept = inward.part_keys.union(entry.key for entry, _ in added)
        inward.part_keys.clear()
        removed = [key for key in (*inward.holding.within(message.buckets), *message.removed) if key not in kept]
        self._exporter.hold(link, table, added, removed)
        late = self._late(inward, message.recalls)
        inward.is_fresh = False
        if late and link.in_tree:
            self._recalls.recall(link, table, self._context.parse_all(late))
        self._settle_later(link, table, message.number)

    def _late(self, inward: Inward, recalls: list[str]) -> list[str]:
        """The filters that came late: those that the neighbour names; and all that it has told where this broker had
        forgotten it, since the neighbour may not know that."""
        if not inward.is_fresh or str(TRUE) in recalls:
            return recalls
        texts = {*recalls, *inward.holding.texts}
        return sorted(texts) if len(texts) <= self._context.config.limits.recall_filters else [str(TRUE)]

    def _settle_later(self, link: Link, table: Table, number: int) -> None:
        inward = link.inward[table]
        session = inward.session
        inward.unsettled.append(number)
        settling = Settling(lambda: link.number_settled(table, number, session))
        if link.in_tree:
            self._settlings.add(settling, table, link.peer)
        else:
            settling.ready()

    def _stream(self, link: Link, message: Stream) -> None:
        link.stream_ack_due = True
        count = len(message.items)
        if self._context.pressure and KNOWS_HOLDING in link.capabilities:
            # One new item a time still passes: two brokers that hold each other back would never get rid of anything.
            known = link.inbox.received if message.epoch == link.inbox.epoch else 0
            count = max(0, min(count, known + 2 - message.first))
            link.holding = True
        places = link.inbox.take(message.epoch, message.first, count)
        self._router.arrive(link, [message.items[at] for at in places])
        link.mark()

    def _stream_ack(self, link: Link, message: StreamAck) -> None:
        self._router.acknowledge(link, link.outbox.acknowledge(message.epoch, message.received))
        link.hold(held=message.held)

    def _events(self, link: Link, message: Events) -> None:
        if COUNTS_EVENTS in link.capabilities:
            link.events_taken += sum(size_of(envelope.attributes) for envelope in message.envelopes)
        self._router.lost(link, link.came.take(message.first, len(message.envelopes)), message.hops)
        self._router.arrive(link, message.envelopes)

    def relieve(self) -> None:
        """Nobody is held back any more: neighbours may send again."""
        for link in self._links.values():
            if link.holding:
                link.holding = False
                link.stream_ack_due = True

    def _filtering(self, link: Link, message: Filtering) -> None:  # noqa: ARG002
        self._router.filter_again(link)
        self._exporter.follow_filtering()

    def _ping(self, link: Link, message: Ping) -> None:
        if message.topology != self._tree.topology.digest:
            link.send(LinkStates(self._tree.topology.states))
        if link.open:
            for ack in message.acks:
                link.acknowledged(ack)
            if message.events:
                link.tell_taken_up_to(message.events)

    # Time

    def watch(self, link: Link) -> None:
        """Send again after t1, give up after t2."""
        now, timing = self._context.turn.now, self._context.config.timing
        if not link.failed and now >= link.last_heard + timing.failed:
            self._fail(link, "silent for too long")
        elif link.open and self._is_stuck(link):
            self._fail(link, "doesn't acknowledge")
        if link.failed_at is not None and now >= link.failed_at + timing.forget:
            self._forget(link)
        if link.up and now >= link.last_ping + timing.retry:
            link.last_ping = now
            events = link.events.asked if COUNTS_EVENTS in link.capabilities else 0
            link.send(Ping(self._tree.topology.digest, link.acks(), events))
            link.tell_taken()
            self._retry(link)

    def next_watch(self) -> float:
        """When a link must be looked at next."""
        timing, wake = self._context.config.timing, inf
        for link in self._links.values():
            if link.up:
                wake = min(wake, link.last_ping + timing.retry)
            if link.failed_at is None:
                wake = min(wake, link.last_heard + timing.failed)
            elif link.keeps_anything:
                wake = min(wake, link.failed_at + timing.forget)
        return wake

    def _is_stuck(self, link: Link) -> bool:
        oldest = [outward.waiting_since for outward in link.outward if outward.unacked]
        if link.outbox.sent > link.outbox.acked:
            oldest.append(link.stream_waiting_since)
        return any(self._context.turn.now >= since + self._context.config.timing.failed for since in oldest)

    def _retry(self, link: Link) -> None:
        now, retry = self._context.turn.now, self._context.config.timing.retry
        if link.phase not in HELLO_HEARD and now >= link.hello_at + retry:
            link.say_hello()
        if not link.open:
            return
        for outward in link.outward:
            if outward.unacked and now >= outward.sent_at + retry:
                outward.sent_at = now
                for delta in outward.unacked:
                    link.send(delta)
        if (link.outbox.sent > link.outbox.acked or link.stream_held) and now >= link.stream_at + retry:
            link.stream_at = now
            link.outbox.sent = link.outbox.acked
            link.asks_again = True

    def _fail(self, link: Link, reason: str) -> None:
        """A neighbour is declared failed (M7)."""
        if link.up:
            self._close(link.peer, reason, link.session)
            link.session_down()
        link.fail()
        self._tree.announce()
        if not link.in_tree:
            self._router.reroute(link)

    def _forget(self, link: Link) -> None:
        """A neighbour that has been gone for too long: neither its wishes nor what waits for it are kept."""
        if not link.keeps_anything:
            return
        for inward in link.inward:
            self._exporter.hold(link, inward.table, [], list(inward.holding.entries))
        link.take(Signal.PEER_LEFT)
        for inward in link.inward:
            inward.is_fresh = True
        link.mark()
        self._router.lose(link, link.outbox.clear())

    # Links that come and go

    def add_peer(self, input: AddPeer) -> None:
        """There is a new link."""
        is_name = bool(input.peer) and "/" not in input.peer
        if not is_name or input.peer == self._context.config.broker:
            return
        if self.urls.get(input.peer) != input.url:
            self.urls[input.peer] = input.url
            self._write_urls()
        if input.peer not in self._links:
            self._links[input.peer] = Link(input.peer, self._context)
            self._write_peers()
            self._tree.announce()

    def remove_peer(self, input: RemovePeer) -> None:
        """A link is gone for good."""
        link = self._links.get(input.peer)
        if link is None:
            return
        if link.up:
            self._close(link.peer, "no neighbour any more", link.session)
            link.session_down()
        link.fail()
        if link.in_tree:
            self._tree.leave(link)
        self._forget(link)
        del self._links[input.peer]
        self._router.forget(link)
        self._context.turn.out.drop("link", link.peer)
        self._write_peers()
        if self.urls.pop(link.peer, None) is not None:
            self._write_urls()
        self._tree.announce()

    def link(self, operator: Client, message: AddLink) -> None:
        """An operator adds a neighbour."""
        name, own = message.peer, self._context.config.broker
        if not name or "/" in name or name == own:
            refusal = f"{name!r} can't be a neighbour of {own}; use the name of another broker, without a slash"
            self._context.turn.out.sends.append(operator.answer(Refused(message.request, refusal)))
            return
        self.add_peer(AddPeer(name, message.url))
        self._context.turn.out.sends.append(operator.answer(Confirmed(message.request)))

    def unlink(self, operator: Client, message: RemoveLink) -> None:
        """An operator removes a neighbour."""
        known = message.peer in self._links
        self.remove_peer(RemovePeer(message.peer))
        answer = Confirmed(message.request) if known else Refused(message.request, f"{message.peer!r} is no neighbour")
        self._context.turn.out.sends.append(operator.answer(answer))

    def _write_urls(self) -> None:
        self._context.turn.out.put("broker", "urls", dict(self.urls))

    def _write_peers(self) -> None:
        """Journal in which neighbours this broker differs from its configuration."""
        configured = set(self._context.config.peers)
        self._context.turn.out.put(
            "broker", "peers", [sorted(self._links.keys() - configured), sorted(configured - self._links.keys())]
        )

    # Restoring

    def restore(self, spaces: Mapping[str, dict[str, bytes]], events: KeptEvents) -> None:
        """Make the links, and take back what survives of them; what is kept of other brokers is dropped."""
        own = spaces.get("broker", {})
        added, removed = read(own["peers"], tuple[list[str], list[str]]) if "peers" in own else ([], [])
        for peer in sorted({*self._context.config.peers, *added} - {*removed}):
            self._links[peer] = Link(peer, self._context)
        if {*added} & {*self._context.config.peers} or {*removed} - {*self._context.config.peers}:
            # The configuration says so itself by now; when it changes again, that is news.
            self._write_peers()
        self.urls.update(read(own["urls"], dict[str, str]) if "urls" in own else {})
        self._drop_strangers(spaces)
        for peer, value in spaces.get("link", {}).items():
            self._links[peer].restore(read(value, LinkRow), self._context.turn.now)
        self._restore_outboxes(spaces.get("outbox", {}), events)
        for key, value in spaces.get("entry", {}).items():
            peer, table, _ = key.split("/", 2)
            entry = read(value, Entry)
            condition = self._context.parse_entry(entry.key, entry.filter)
            if condition is not None:
                self._links[peer].inward[Table(int(table))].holding.add(entry, condition)

    def _drop_strangers(self, spaces: Mapping[str, dict[str, bytes]]) -> None:
        """Forget what was kept of brokers that are no neighbours any more."""
        for space in ("link", "outbox", "entry"):
            rows = spaces.get(space, {})
            for key in [key for key in rows if key.partition("/")[0] not in self._links]:
                del rows[key]
                self._context.turn.out.drop(space, key)

    def _restore_outboxes(self, rows: Mapping[str, bytes], events: KeptEvents) -> None:
        outboxes: dict[str, list[tuple[str, OutboxRow]]] = {}
        for key, value in rows.items():
            outboxes.setdefault(key.partition("/")[0], []).append((key, read(value, OutboxRow)))
        for peer, items in outboxes.items():
            outbox = self._links[peer].outbox
            outbox.restore(items, events.bytes_of)
            for item in outbox.items:
                events.refer_again(item.event)
