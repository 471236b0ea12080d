"""Neighbours: sessions, deltas and streams, what is sent again and who has failed (M7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from covey.routing.config import BrokerConfig
from covey.routing.links import Link
from covey.routing.messages import (
    ADVERTISEMENTS,
    SUBSCRIPTIONS,
    AddPeer,
    ClosePeer,
    Delta,
    DeltaAck,
    Events,
    Filtering,
    FromPeer,
    Hello,
    LinkStates,
    PeerDown,
    PeerMessage,
    PeerUp,
    Ping,
    RemovePeer,
    Stream,
    StreamAck,
)
from covey.routing.settling import Settling
from covey.routing.tree import Tree


class Peers(Tree):
    """Talks to neighbours."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._peer_handlers: dict[type, Callable[[Link, Any], None]] = {
            Hello: self._hello,
            Delta: self._delta,
            DeltaAck: lambda link, message: link.acknowledged(message),
            Stream: self._stream,
            StreamAck: self._stream_ack,
            Events: self._peer_events,
            LinkStates: self._link_states,
            Ping: self._ping,
            Filtering: self._filter_again,
        }

    def _peer_up(self, input: PeerUp) -> None:
        link = self.links.get(input.peer)
        if link is None:
            self._turn.out.sends.append(ClosePeer(input.peer, "not a neighbour; add it on both sides", input.session))
            return
        link.session_up(input.session)
        link.send(LinkStates(self.topology.states))
        link.last_ping = self._turn.now

    def _peer_down(self, input: PeerDown) -> None:
        link = self.links.get(input.peer)
        if link is not None and link.up and link.session == input.session:
            link.session_down()

    def _from_peer(self, input: FromPeer) -> None:
        link = self.links.get(input.peer)
        if link is None or not link.up or link.session != input.session:
            return
        link.last_heard = self._turn.now
        message: PeerMessage = input.message
        if link.greeted or isinstance(message, Hello | LinkStates | Ping):
            self._peer_handlers[type(message)](link, message)

    def _hello(self, link: Link, message: Hello) -> None:
        link.heard_back |= message.answer
        if link.greeted:
            if not message.answer:
                link.say_hello()
            return
        if link.failed:
            link.failed_at = None
            self._announce()
        self._acked(link, link.outbox.start(message.stream_epoch, message.stream_received))
        link.stream_waiting_since = self._turn.now
        link.mark()
        link.greet(message)
        if not message.answer:
            link.say_hello()

    def _delta(self, link: Link, message: Delta) -> None:
        if message.table not in (SUBSCRIPTIONS, ADVERTISEMENTS):
            return
        inward = link.inward[message.table]
        inward.ack_due = True
        if message.number != inward.applied + 1:
            return
        inward.applied = message.number
        if message.more:
            inward.parts.append(message)
            return
        inward.told = True
        if message.table == SUBSCRIPTIONS and link.peer_joined != message.joined:
            link.peer_joined = message.joined
            link.mark()
        entries = [entry for part in (*inward.parts, message) for entry in part.added]
        inward.parts.clear()
        added = [(entry, condition) for entry in entries if (condition := self._parse(entry.filter)) is not None]
        kept = {entry.key for entry, _ in added}
        removed = [key for key in (*inward.holding.within(message.buckets), *message.removed) if key not in kept]
        self._hold(link, message.table, added, removed)
        if message.recalls and link.in_tree:
            self._recall(link, message.table, self._parsed(message.recalls))
        self._settle_later(link, message.table, message.number)

    def _settle_later(self, link: Link, table: int, number: int) -> None:
        inward = link.inward[table]
        session = inward.session
        inward.unsettled.append(number)
        settling = Settling(lambda: link.number_settled(table, number, session))
        if link.in_tree:
            self._settlings.append((settling, table, link.peer))
        else:
            settling.ready()

    def _stream(self, link: Link, message: Stream) -> None:
        link.stream_ack_due = True
        places = link.inbox.take(message.epoch, message.first, len(message.items))
        self._arrived(link, [message.items[at] for at in places])
        link.mark()

    def _stream_ack(self, link: Link, message: StreamAck) -> None:
        self._acked(link, link.outbox.acknowledge(message.epoch, message.received))

    def _peer_events(self, link: Link, message: Events) -> None:
        self._arrived(link, message.envelopes)

    def _ping(self, link: Link, message: Ping) -> None:
        if message.topology != self.topology.digest:
            link.send(LinkStates(self.topology.states))
        if link.greeted:
            for ack in message.acks:
                link.acknowledged(ack)

    def _watch(self, link: Link) -> None:
        """Send again after t1, give up after t2."""
        now, timing = self._turn.now, self.config.timing
        if not link.failed and now >= link.last_heard + timing.failed:
            self._fail(link, "silent for too long")
        elif link.open and self._is_stuck(link):
            self._fail(link, "doesn't acknowledge")
        if link.failed_at is not None and now >= link.failed_at + timing.forget:
            self._forget(link)
        if link.up and now >= link.last_ping + timing.retry:
            link.last_ping = now
            link.send(Ping(self.topology.digest, link.acks()))
            self._retry(link)

    def _is_stuck(self, link: Link) -> bool:
        oldest = [outward.waiting_since for outward in link.outward if outward.unacked]
        if link.outbox.sent > link.outbox.acked:
            oldest.append(link.stream_waiting_since)
        return any(self._turn.now >= since + self.config.timing.failed for since in oldest)

    def _retry(self, link: Link) -> None:
        now, retry = self._turn.now, self.config.timing.retry
        if not link.heard_back and now >= link.hello_at + retry:
            link.say_hello()
        if not link.greeted:
            return
        for outward in link.outward:
            if outward.unacked and now >= outward.sent_at + retry:
                outward.sent_at = now
                for delta in outward.unacked:
                    link.send(delta)
        if link.outbox.sent > link.outbox.acked and now >= link.stream_at + retry:
            link.stream_at = now
            link.outbox.sent = link.outbox.acked

    def _fail(self, link: Link, reason: str) -> None:
        """A neighbour is declared failed (M7)."""
        if link.up:
            self._turn.out.sends.append(ClosePeer(link.peer, reason, link.session))
            link.session_down()
        link.fail()
        self._announce()
        if not link.in_tree:
            self._reroute(link)

    def _forget(self, link: Link) -> None:
        """A neighbour that has been gone for too long: neither its wishes nor what waits for it are kept."""
        if not link.keeps_anything:
            return
        for table, inward in enumerate(link.inward):
            self._hold(link, table, [], list(inward.holding.entries))
        link.peer_joined = False
        link.mark()
        self._lose(link, link.outbox.clear())

    def _add_peer(self, input: AddPeer) -> None:
        is_name = bool(input.peer) and "/" not in input.peer
        if is_name and input.peer != self.config.broker and input.peer not in self.links:
            self.links[input.peer] = Link(input.peer, self.config, self._known, self._turn)
            self._write_peers()
            self._announce()

    def _remove_peer(self, input: RemovePeer) -> None:
        link = self.links.get(input.peer)
        if link is None:
            return
        if link.up:
            self._turn.out.sends.append(ClosePeer(link.peer, "no neighbour any more", link.session))
            link.session_down()
        link.fail()
        if link.in_tree:
            self._leave(link)
        self._forget(link)
        del self.links[input.peer]
        self._turn.out.drop("link", link.peer)
        self._write_peers()
        self._announce()

    def _write_peers(self) -> None:
        """Journal in which neighbours this broker differs from its configuration."""
        configured = set(self.config.peers)
        self._turn.out.put(
            "broker", "peers", [sorted(self.links.keys() - configured), sorted(configured - self.links.keys())]
        )
