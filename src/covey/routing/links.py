"""One neighbour: its session, what it must know, what it has told, and what is on the way to it.

A *session* starts when both brokers have said Hello; the first delta of each table in it brings the neighbour from what
it holds to what it must know, and counts from 1. Between sessions everything stays: what the neighbour told goes on
being matched and exported, and durable events wait. A link *fails* when nothing was heard for t2; from then until the
next Hello nothing waits for it to settle, and it is *lapsed*: clients have had confirmations that the neighbour knows
nothing of, so the deltas that heal this ask for a recall.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from covey.filters.algebra import TRUE
from covey.routing.config import AdaptiveFiltering, BrokerConfig
from covey.routing.exports import Export, advertisement_export, subscription_export
from covey.routing.journal import Turn
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import (
    ADVERTISEMENTS,
    SUBSCRIPTIONS,
    Delta,
    DeltaAck,
    Entry,
    Envelope,
    Hello,
    PeerMessage,
    ToPeer,
)
from covey.routing.settling import Settling, Waits
from covey.routing.streams import Inbox, Outbox, OutboxRow
from covey.routing.tables import Holding


class LinkRow(msgspec.Struct, frozen=True, array_like=True):
    """What must survive of a link, beside its entries and its outbox."""

    peer_joined: bool
    lapsed: bool
    failed_at: float | None
    out_epoch: int
    out_acked: int
    in_epoch: int
    in_received: int


@dataclass(slots=True)
class Outward:
    """One table in the direction of the neighbour."""

    export: Export
    waits: Waits = field(default_factory=Waits)
    number: int = 0
    unacked: deque[Delta] = field(default_factory=deque)
    told_joined: bool = False
    unsettled: deque[tuple[int, set[str]]] = field(default_factory=deque)
    """The keys that deltas have told, until those are settled."""
    doubtful: set[str] = field(default_factory=set)
    """Keys that were told before this session and never settled: if the link lapses, somebody behind the neighbour may
    not have heard of them in time. Having been received isn't enough."""
    all_doubtful: bool = True
    """After a restart it isn't known which those are."""
    recalls: set[str] = field(default_factory=set)
    """Filters to recall with the next delta, and again until one that names them is acknowledged."""
    recalls_due: bool = False
    sent_at: float = 0.0
    waiting_since: float = 0.0

    @property
    def awaited(self) -> int:
        """The delta that stands for all changes so far; before a session's first, that one will."""
        return max(1, self.number)


@dataclass(slots=True)
class Inward:
    """One table as the neighbour told it."""

    holding: Holding = field(default_factory=Holding)
    applied: int = 0
    settled: int = 0
    unsettled: deque[int] = field(default_factory=deque)
    done: set[int] = field(default_factory=set)
    ack_due: bool = False
    session: int = 0
    told: bool = False
    """Whether a whole delta was applied in this session."""
    parts: list[Delta] = field(default_factory=list)
    """Parts of a delta of which more is to come. They needn't survive: a session that breaks starts from digests."""


@dataclass(slots=True)
class Traffic:
    """What adaptive filtering judges by."""

    filtering: bool = True
    considered: int = 0
    matched: int = 0
    hold: int = 0
    came: int = 0
    useless: int = 0

    def count(self, matched: bool, adaptive: AdaptiveFiltering) -> None:
        """An event was considered for the link; filtering stops where most of them match."""
        self.considered += 1
        self.matched += matched
        self.hold -= 1
        if self.considered >= adaptive.sample:
            if self.hold <= 0 and self.matched > adaptive.stop_above * self.considered:
                self.filtering = False
            self.considered = self.matched = 0

    def filter_again(self, adaptive: AdaptiveFiltering) -> None:
        """The neighbour asked for filtering; it stays for a while, whatever matches."""
        if not self.filtering:
            self.filtering = True
            self.hold = adaptive.patience * adaptive.sample


class Link:
    """The state of one link, at one end."""

    def __init__(self, peer: str, config: BrokerConfig, known: KnownFilters, turn: Turn) -> None:
        self.peer = peer
        self.hop = f"p:{peer}"
        self.config = config
        self.turn = turn
        self.up = False
        self.session = 0
        self.greeted = False
        self.heard_back = False
        self.hello_at = 0.0
        self.in_tree = False
        self.peer_joined = False
        self.lapsed = True
        self.failed_at: float | None = turn.now
        self.last_heard = 0.0
        self.last_ping = 0.0
        self.outward = [Outward(subscription_export(config, known)), Outward(advertisement_export(known))]
        self.inward = [Inward(), Inward()]
        self.outbox = Outbox(peer, turn)
        self.stream_at = 0.0
        self.stream_waiting_since = 0.0
        self.inbox = Inbox()
        self.stream_ack_due = False
        self.events: list[Envelope] = []
        self.traffic = Traffic()
        self._dirty = False

    # Facts

    @property
    def failed(self) -> bool:
        """Whether nothing waits for this link."""
        return self.failed_at is not None

    @property
    def synced(self) -> bool:
        """Whether the neighbour has told in this session all that it wants."""
        return self.greeted and self.inward[SUBSCRIPTIONS].told

    @property
    def open(self) -> bool:
        """Whether messages can be sent that need the neighbour's Hello first."""
        return self.up and self.greeted

    @property
    def filtered(self) -> bool:
        """Whether what the neighbour told decides which events it gets; else it gets all of them, if it is there."""
        return self.peer_joined and (self.synced or not self.up)

    @property
    def keeps_anything(self) -> bool:
        """Whether there is something to forget of a neighbour that is gone."""
        return bool(self.outbox or self.peer_joined or any(inward.holding for inward in self.inward))

    # Sessions

    def send(self, message: PeerMessage) -> None:
        """Send a message, after the commit."""
        self.turn.out.sends.append(ToPeer(self.peer, message, self.session))

    def session_up(self, session: int) -> None:
        """A session opened: say Hello."""
        self._reset()
        self.session = session
        self.up = True
        self.say_hello()

    def session_down(self) -> None:
        """The session is over."""
        self._reset()
        self.up = False

    def _reset(self) -> None:
        self.greeted = self.heard_back = False
        self.events.clear()
        for out in self.outward:
            out.doubtful.update(*(keys for _, keys in out.unsettled))
            out.unsettled.clear()
            out.number = 0
            out.unacked.clear()
            out.waits.restart()
        for inward in self.inward:
            inward.applied = inward.settled = 0
            inward.unsettled.clear()
            inward.done.clear()
            inward.ack_due = inward.told = False
            inward.parts.clear()
            inward.session += 1
        self.stream_ack_due = False

    def say_hello(self) -> None:
        """Say what is held, and how far the neighbour's stream is here."""
        digests = [inward.holding.digests() for inward in self.inward]
        self.send(Hello(self.config.broker, digests, self.inbox.epoch, self.inbox.received, self.greeted))
        self.hello_at = self.turn.now

    def fail(self) -> None:
        """Nothing waits for this link any more."""
        self.failed_at = self.turn.now
        self.lapse()
        for out in self.outward:
            out.waits.release()

    def lapse(self) -> None:
        """The neighbour may have let events pass for want of an entry; until it has acknowledged all."""
        if not self.lapsed:
            self.lapsed = True
            self.mark()

    # Deltas

    def greet(self, hello: Hello) -> None:
        """The neighbour's Hello: bring it up to date."""
        self.greeted = True
        tables = (SUBSCRIPTIONS, ADVERTISEMENTS) if self.config.advertisements else (SUBSCRIPTIONS,)
        for table in tables:
            out = self.outward[table]
            held = hello.digests[table] if table < len(hello.digests) else []
            out.doubtful |= out.export.touched()
            buckets, added = out.export.difference(held)
            self._tell(table, buckets, added, [])

    def flush_deltas(self) -> None:
        """Tell what has changed."""
        if not self.open:
            return
        for table, out in enumerate(self.outward):
            if out.number and (out.export.has_changed or out.recalls_due or out.told_joined != self.in_tree):
                added, removed = out.export.changes()
                if added or removed or out.recalls_due or out.told_joined != self.in_tree:
                    self._tell(table, [], added, removed)

    def _tell(self, table: int, buckets: list[int], added: list[Entry], removed: list[str]) -> None:
        out = self.outward[table]
        out.told_joined = self.in_tree
        recalls = self._recalls(out, added)
        if not out.unacked:
            out.sent_at = out.waiting_since = self.turn.now
        *parts, last = divided(added, self.config.limits.delta_bytes)
        for part in parts:
            self._tell_part(out, Delta(table, out.number + 1, self.in_tree, [], [], part, [], more=True))
        self._tell_part(out, Delta(table, out.number + 1, self.in_tree, recalls, buckets, last, removed))
        out.unsettled.append((out.number, {entry.key for entry in added} | out.doubtful))
        out.doubtful = set()

    def _tell_part(self, out: Outward, delta: Delta) -> None:
        out.number = delta.number
        out.unacked.append(delta)
        self.send(delta)

    def recall(self, table: int, texts: Iterable[str]) -> None:
        """Let the neighbour know, with the next delta, that it may have let events pass that match these filters."""
        wanted = set(texts)
        if wanted:
            out = self.outward[table]
            out.recalls |= wanted
            out.recalls_due = True
            self.lapse()

    def _recalls(self, out: Outward, added: list[Entry]) -> list[str]:
        out.recalls_due = False
        texts = set(out.recalls)
        if self.lapsed:
            outcome = out.export.outcome
            keys = outcome if out.all_doubtful else out.doubtful & outcome.keys()
            texts |= {entry.filter for entry in added} | {str(outcome[key]) for key in keys}
        if len(texts) > self.config.limits.recall_filters:
            return [str(TRUE)]
        return sorted(texts)

    def acknowledged(self, ack: DeltaAck) -> None:
        """The neighbour has committed, and perhaps settled, deltas."""
        if ack.table not in (SUBSCRIPTIONS, ADVERTISEMENTS):
            return
        out = self.outward[ack.table]
        if ack.received > out.number or ack.settled > ack.received:
            return
        while out.unacked and out.unacked[0].number <= ack.received:
            out.unacked.popleft()
            out.sent_at = out.waiting_since = self.turn.now
        if not out.unacked and out.number:
            if not out.recalls_due:
                out.recalls.clear()
            if self.lapsed and not any(other.unacked or other.recalls_due for other in self.outward):
                self.lapsed = False
                self.mark()
        while out.unsettled and out.unsettled[0][0] <= ack.settled:
            out.unsettled.popleft()
            out.all_doubtful = False
        out.waits.settle(ack.settled)

    def wait(self, table: int, settling: Settling) -> None:
        """Let something wait for all changes of a table so far; not for a failed link."""
        if not self.failed:
            out = self.outward[table]
            out.waits.add(out.awaited, settling)

    def number_settled(self, table: int, number: int, session: int) -> None:
        """What a delta that came in has caused is settled."""
        inward = self.inward[table]
        if session != inward.session:
            return
        inward.done.add(number)
        while inward.unsettled and inward.unsettled[0] in inward.done:
            inward.settled = inward.unsettled.popleft()
            inward.done.discard(inward.settled)
            inward.ack_due = True

    def push(self, item: OutboxRow) -> None:
        """Let an item go with the stream."""
        if not self.outbox:
            self.stream_waiting_since = self.turn.now
        self.outbox.push(item)

    def acks(self) -> list[DeltaAck]:
        """All acknowledgements of this session."""
        return [
            DeltaAck(table, inward.applied, inward.settled)
            for table, inward in enumerate(self.inward)
            if inward.applied
        ]

    def send_acks(self) -> None:
        """Acknowledge what this turn commits."""
        if not self.up:
            return
        for table, inward in enumerate(self.inward):
            if inward.ack_due:
                inward.ack_due = False
                self.send(DeltaAck(table, inward.applied, inward.settled))

    # Lasting state

    def mark(self) -> None:
        """The link's row has changed."""
        self._dirty = True

    def write(self) -> None:
        """Journal the link's row, if it has changed."""
        if self._dirty:
            self._dirty = False
            self.turn.out.put("link", self.peer, self.row())

    def row(self) -> LinkRow:
        """What must survive."""
        return LinkRow(
            self.peer_joined, self.lapsed, self.failed_at, self.outbox.epoch, self.outbox.acked, self.inbox.epoch,
            self.inbox.received,
        )  # fmt: skip

    def restore(self, row: LinkRow, now: float) -> None:
        """Be what a row says."""
        self.peer_joined, self.lapsed, self.failed_at = row.peer_joined, row.lapsed, row.failed_at
        self.outbox.epoch, self.outbox.acked, self.outbox.sent = row.out_epoch, row.out_acked, row.out_acked
        self.inbox.epoch, self.inbox.received = row.in_epoch, row.in_received
        self.last_heard = now


def divided(entries: list[Entry], most: int) -> list[list[Entry]]:
    """Entries in parts of at most so many characters, or of one entry; one empty part where there are none."""
    parts: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        length = len(entry.key) + len(entry.filter)
        if parts[-1] and size + length > most:
            parts.append([])
            size = 0
        parts[-1].append(entry)
        size += length
    return parts
