"""One neighbour: its session, what it must know, what it has told, and what is on the way to it.

A *session* starts when both brokers have said Hello; the first delta of each table in it brings the neighbour from what
it holds to what it must know, and counts from 1. Between sessions everything stays: what the neighbour told goes on
being matched and exported, and durable events wait. `phases.py` has the states of a link and what moves it; where it is
*lapsed*, the deltas that heal this ask for a recall.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from covey.filters.algebra import TRUE
from covey.routing.by_table import ByTable, Table
from covey.routing.context import Context
from covey.routing.exports import advertisement_export, subscription_export
from covey.routing.link_tables import Inward, Outward
from covey.routing.link_traffic import Traffic
from covey.routing.messages import (
    LINK_CAPABILITIES,
    PROTOCOL,
    Delta,
    DeltaAck,
    Entry,
    Hello,
    PeerMessage,
    Taken,
    ToPeer,
)
from covey.routing.phases import JOINED, KNOWLEDGE, PHASES, Joined, Knowledge, Phase, Signal, after
from covey.routing.settling import Settling
from covey.routing.strategies import PLANS
from covey.routing.streams import Inbox, Outbox, OutboxRow
from covey.routing.undo import Remembered
from covey.routing.waiting_events import CameEvents, WaitingEvents


class LinkRow(msgspec.Struct, frozen=True, array_like=True):
    """What must survive of a link, beside its entries and its outbox."""

    peer_joined: bool
    lapsed: bool
    failed_at: float | None
    out_epoch: int
    out_acked: int
    in_epoch: int
    in_received: int


class Link(Remembered):
    """The state of one link, at one end."""

    def __init__(self, peer: str, context: Context) -> None:
        self.peer = peer
        self.hop = f"p:{peer}"
        self.floods = PLANS[context.config.strategy].floods
        self._context = context
        self._turn = context.turn
        self.phase = Phase.FAILED
        self.joined = Joined.NEITHER
        self.knowledge = Knowledge.LAPSED
        self._note_facts()
        self.failed_at: float | None = self._turn.now
        """Since when it has failed; None where it hasn't."""
        self.session = 0
        self.hello_at = 0.0
        self.last_heard = 0.0
        self.last_ping = 0.0
        self.outward = ByTable(
            Outward(Table.SUBSCRIPTIONS, subscription_export(context.config, context.known)),
            Outward(Table.ADVERTISEMENTS, advertisement_export(context.config, context.known)),
        )
        self.inward = ByTable(Inward(Table.SUBSCRIPTIONS), Inward(Table.ADVERTISEMENTS))
        self.outbox = Outbox(peer, context.turn)
        self.stream_at = 0.0
        self.stream_waiting_since = 0.0
        self.inbox = Inbox()
        self.stream_ack_due = False
        self.capabilities: frozenset[str] = frozenset()
        """What the neighbour knows of beyond protocol 1, as its Hello of this session says."""
        self.stream_held = False
        """Whether the neighbour takes no more of the stream for the moment."""
        self.asks_again = False
        """Whether one item goes nonetheless, to ask."""
        self.holding = False
        """Whether it was told so by us."""
        self.events = WaitingEvents()
        self.came = CameEvents()
        self.events_taken = 0
        """Bytes of events without durability that came in this session."""
        self.events_told = 0
        """How many of them the neighbour knows of."""
        self.traffic = Traffic()
        self._dirty = False

    # States

    def take(self, signal: Signal) -> None:
        """Something happened: be in the states that follow."""
        before = self.joined.theirs, self.knowledge
        self.phase = after(PHASES, self.phase, signal)
        self.joined = after(JOINED, self.joined, signal)
        self.knowledge = after(KNOWLEDGE, self.knowledge, signal)
        self._note_facts()
        if before != (self.joined.theirs, self.knowledge):
            self.mark()

    def _note_facts(self) -> None:
        """What follows from the states. Nothing else sets these; they are kept since each event asks for them."""
        phase, joined = self.phase, self.joined
        self.up = phase.up
        """Whether there is a session."""
        self.open = phase.open
        """Whether messages can be sent that need the neighbour's Hello first."""
        self.synced = phase is Phase.SYNCED
        """Whether the neighbour has told in this session all that it wants."""
        self.failed = phase.failed
        """Whether nothing waits for this link."""
        self.in_tree = joined.ours
        """Whether our spanning tree has it."""
        self.filtered = joined.theirs and (self.synced or not phase.up)
        """Whether what the neighbour told decides which events it gets; else it gets all of them, if it is there."""
        self.lapsed = self.knowledge is Knowledge.LAPSED
        """Whether the neighbour may have let events pass for want of an entry."""

    @property
    def keeps_anything(self) -> bool:
        """Whether there is something to forget of a neighbour that is gone."""
        return bool(self.outbox or self.joined.theirs or any(inward.holding for inward in self.inward))

    # Sessions

    def send(self, message: PeerMessage) -> None:
        """Send a message, after the commit."""
        self._turn.out.sends.append(ToPeer(self.peer, message, self.session))

    def session_up(self, session: int) -> None:
        """A session opened, and one before it is over: say Hello."""
        if self.up:
            self.session_down()
        self.take(Signal.OPENED)
        self.session = session
        self.events.begin()
        self.say_hello()

    def session_down(self) -> None:
        """The session is over."""
        self.take(Signal.CLOSED)
        self._reset()

    def _reset(self) -> None:
        self.events.restart()
        self.events_taken = self.events_told = 0
        self.stream_held = self.holding = False
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
            inward.ack_due = False
            inward.part_keys.clear()
            inward.session += 1
        self.stream_ack_due = False

    def say_hello(self) -> None:
        """Say what is held, and how far the neighbour's stream is here."""
        digests = [inward.holding.digests() for inward in self.inward]
        stream = self.inbox.epoch, self.inbox.received
        hello = Hello(self._context.config.broker, digests, *stream, self.open, PROTOCOL, list(LINK_CAPABILITIES))
        self.send(msgspec.structs.replace(hello, life=self._context.life, events=self.events.before))
        self.hello_at = self._turn.now

    def fail(self) -> None:
        """Nothing waits for this link any more."""
        self.take(Signal.FAILED)
        self.failed_at = self._turn.now
        for out in self.outward:
            out.waits.release()

    def revive(self) -> None:
        """The neighbour said Hello again."""
        self.failed_at = None

    # Deltas

    def greet(self, hello: Hello) -> None:
        """The neighbour's Hello: bring it up to date."""
        for out in self.outward:
            table = out.table
            if table is Table.ADVERTISEMENTS and not self._context.config.advertisements:
                continue
            held = hello.digests[table] if table < len(hello.digests) else []
            out.doubtful |= out.export.touched()
            buckets, added = out.export.difference(held)
            self._tell(out, buckets, added, [])
            out.waits.told(out.export.told, out.number)

    def flush_deltas(self) -> None:
        """Tell what has changed."""
        if not self.open:
            return
        for out in self.outward:
            must = out.recalls_due or out.said_joined != self.in_tree
            if not out.number or not (must or out.export.has_changed):
                continue
            # Where something may have been missed, all is told at once, with what to recall.
            limits = self._context.config.limits
            most = None if must or self.lapsed else limits.delta_entries
            if most is not None and len(out.unacked) >= limits.deltas_flying:
                continue
            added, removed = out.export.changes(most)
            if added or removed or must:
                self._tell(out, [], added, removed)
            out.waits.told(out.export.told, out.number)

    def _tell(self, out: Outward, buckets: list[int], added: list[Entry], removed: list[str]) -> None:
        table = out.table
        out.said_joined = self.in_tree
        recalls = self._recalls(out, added)
        if not out.unacked:
            out.sent_at = out.waiting_since = self._turn.now
        limits = self._context.config.limits
        *parts, last = divided(added, limits.delta_bytes, limits.part_entries)
        for part in parts:
            self._tell_part(out, Delta(table, out.number + 1, self.in_tree, [], [], part, [], more=True))
        self._tell_part(out, Delta(table, out.number + 1, self.in_tree, recalls, buckets, last, removed))
        out.unsettled.append((out.number, {entry.key for entry in added} | out.doubtful))
        out.doubtful = set()

    def _tell_part(self, out: Outward, delta: Delta) -> None:
        out.number = delta.number
        out.unacked.append(delta)
        self.send(delta)

    def recall(self, table: Table, texts: Iterable[str]) -> None:
        """Let the neighbour know, with the next delta, that it may have let events pass that match these filters."""
        wanted = set(texts)
        if wanted:
            out = self.outward[table]
            out.recalls |= wanted
            out.recalls_due = True
            self.take(Signal.RECALLING)

    def _recalls(self, out: Outward, added: list[Entry]) -> list[str]:
        out.recalls_due = False
        texts = set(out.recalls)
        most = self._context.config.limits.recall_filters
        if self.lapsed:
            outcome = out.export.outcome
            keys = outcome if out.all_doubtful else out.doubtful & outcome.keys()
            late = (str(outcome[key]) for key in keys)
            texts.update(entry.filter for entry in added)
            # Beyond the limit they are told in vain, and printing the filters of a whole table takes long.
            while len(texts) <= most and (text := next(late, None)) is not None:
                texts.add(text)
        return sorted(texts) if len(texts) <= most else [str(TRUE)]

    def acknowledged(self, ack: DeltaAck) -> None:
        """The neighbour has committed, and perhaps settled, deltas."""
        table = Table.of(ack.table)
        if table is None:
            return
        out = self.outward[table]
        if ack.received > out.number or ack.settled > ack.received:
            return
        while out.unacked and out.unacked[0].number <= ack.received:
            out.unacked.popleft()
            out.sent_at = out.waiting_since = self._turn.now
        if not out.unacked and out.number:
            if not out.recalls_due:
                out.recalls.clear()
            if not any(other.unacked or other.recalls_due for other in self.outward):
                self.take(Signal.RECALLED)
        while out.unsettled and out.unsettled[0][0] <= ack.settled:
            out.unsettled.popleft()
            out.all_doubtful = False
        out.waits.settle(ack.settled)

    def wait(self, table: Table, settling: Settling) -> None:
        """Let something wait for all changes of a table so far; not for a failed link."""
        if not self.failed:
            out = self.outward[table]
            if out.number and out.export.has_changed:
                out.waits.hold(out.export.changed, settling)
            else:
                out.waits.add(out.awaited, settling)

    def number_settled(self, table: Table, number: int, session: int) -> None:
        """What a delta that came in has caused is settled."""
        inward = self.inward[table]
        if session != inward.session:
            return
        inward.done.add(number)
        while inward.unsettled and inward.unsettled[0] in inward.done:
            inward.settled = inward.unsettled.popleft()
            inward.done.discard(inward.settled)
            inward.ack_due = True

    def push(self, item: OutboxRow, size: int) -> None:
        """Let an item go with the stream."""
        if not self.outbox:
            self.stream_waiting_since = self._turn.now
        self.outbox.push(item, size)

    def hold(self, *, held: bool) -> None:
        """The neighbour takes no more of the stream for the moment, or takes it again."""
        self.stream_held = held
        if held:
            # What it didn't take it has dropped; one item goes again after t1, and asks. That it waits is no failure.
            self.outbox.sent = self.outbox.acked
            self.stream_at = self.stream_waiting_since = self._turn.now

    def tell_taken(self) -> None:
        """Say how much of the neighbour's events without durability is taken, if that is news."""
        if self.events_taken != self.events_told:
            self.events_told = self.events_taken
            self.send(Taken(self.events_taken))

    def tell_taken_up_to(self, sent: int) -> None:
        """Say that all of the neighbour's events so far are taken: those that were sent before and didn't come never
        will."""
        self.events_taken = self.events_told = sent
        self.send(Taken(sent))

    def acks(self) -> list[DeltaAck]:
        """All acknowledgements of this session."""
        return [DeltaAck(inward.table, inward.applied, inward.settled) for inward in self.inward if inward.applied]

    def send_acks(self) -> None:
        """Acknowledge what this turn commits."""
        if not self.up:
            return
        for inward in self.inward:
            if inward.ack_due:
                inward.ack_due = False
                self.send(DeltaAck(inward.table, inward.applied, inward.settled))

    # Lasting state

    def mark(self) -> None:
        """The link's row has changed."""
        self._dirty = True

    def write(self) -> None:
        """Journal the link's row, if it has changed."""
        if self._dirty:
            self._dirty = False
            self._turn.out.put("link", self.peer, self.row())

    def row(self) -> LinkRow:
        """What must survive."""
        return LinkRow(
            self.joined.theirs, self.lapsed, self.failed_at, self.outbox.epoch, self.outbox.acked, self.inbox.epoch,
            self.inbox.received,
        )  # fmt: skip

    def restore(self, row: LinkRow, now: float) -> None:
        """Be what a row says."""
        self.joined = Joined.THEIRS if row.peer_joined else Joined.NEITHER
        self.knowledge = Knowledge.LAPSED if row.lapsed else Knowledge.CURRENT
        self.phase = Phase.CLOSED if row.failed_at is None else Phase.FAILED
        for inward in self.inward:
            inward.is_fresh = not row.peer_joined
        self._note_facts()
        self.failed_at = row.failed_at
        self.outbox.epoch, self.outbox.acked, self.outbox.sent = row.out_epoch, row.out_acked, row.out_acked
        self.inbox.epoch, self.inbox.received = row.in_epoch, row.in_received
        self.last_heard = now


def divided(entries: list[Entry], characters: int, most: int) -> list[list[Entry]]:
    """Entries in parts of at most so many, and of so many characters, or of one entry; one empty part where there are
    none."""
    parts: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        length = len(entry.key) + len(entry.filter)
        if parts[-1] and (size + length > characters or len(parts[-1]) >= most):
            parts.append([])
            size = 0
        parts[-1].append(entry)
        size += length
    return parts
