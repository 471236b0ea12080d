"""The broker: one state machine without IO.

`handle(input, now)` takes what happened (a message, a session that opened or closed, time) and gives rows to commit and
messages to send after the commit. There is no clock, no socket and no randomness in here, so the simulator and the
server run the same code, and a run can be repeated.

The parts
    clients     sessions, subscriptions, advertisements, queues             `clients.py`
    links       a neighbour's session, deltas and stream                    `links.py`, `streams.py`
    exports     what a neighbour must know, by strategy                     `exports.py`, `strategies.py`
    tables      which hops an event goes to                                 `tables.py`
    topology    the spanning tree                                           `topology.py`
    settling    when a change is known wherever it matters                  `settling.py`
    loads       subscriptions and profiles that operators bring in bulk     `loading.py`, `standing.py`
    events      what is kept of them                                        `kept_events.py`

The rules
 1. An event goes to every hop of the tree whose entries match it, but the one that it came from; to a hop once. A tree
    link that is open and hasn't told its entries in this session gets every event.
 2. export(N) is a function of the tree and of the entries of all hops but N. Deltas bring N from what it holds to
    export(N); N commits them, acknowledges, and lets its own exports follow. Along a tree this ends in one fixpoint.
 3. A link outside of this broker's tree is exported nothing, and what it told is held and not used.
 4. A subscription, unsubscription or advertisement is confirmed when it is committed here and settled on all tree links
    that haven't failed (`settling.py`).
 5. A durable event is committed in the outbox of each next link and in the queues of clients before it is confirmed to
    its publisher or acknowledged to the link that it came from. An outbox is emptied by acknowledgements only; where
    its link fails and is outside of the tree, its events are routed again.
 6. An event whose id was seen is not delivered again. A second copy tells only that its sender has it.

A link's session
    state      on                              what happens                                          next
    closed     PeerUp                          Hello, link states                                    opening
    opening    Hello                           the first deltas, the outbox from what is missing     open
    open       the other's first whole delta   the link is filtered                                  open, synced
    any        PeerDown, or silent for t2      what was told stays, what is unacknowledged waits     closed
    any        silent for t2                   failed: nothing waits for it, link state says down    failed
    failed     Hello                           link state says up                                    open

Recalls. Rule 4 lets a client be confirmed while a link has failed, and trees of two brokers may differ for a moment. So
a broker can have let an event pass that a subscription, confirmed before, asks for: it didn't know. When tables have
been apart and meet (the first delta after a failure; a link that joins the tree, at either end), the delta names the
filters that came late in `recalls`. Whoever applies it sends back those durable events of its window that match them
and that this neighbour can't have, and recalls the same filters from its other tree neighbours, with its next delta to
each. Deltas are where recalls belong: what is told late and the recall for it must come in one step, or an event
between them would pass; and a delta without entries recalls where covering has left nothing to tell, since the entry
that covers the new one may itself be too young. A link stays `lapsed` in the journal until a recall is acknowledged,
and after a restart everything that it was told is recalled. By induction along the final tree, a durable event reaches
every durable subscription that was confirmed before it was published, as long as windows are larger than what is
published while tables are apart. Recalled copies may come after later events of the same publisher (`Deliver.late`);
all others of an acyclic network come in order. There are no numbered attempts: who has an event in its window answers
for it, so a second copy is never news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from covey.filters.algebra import Filter
from covey.routing.clients import ClaimRow, ClientRow, QueueRow
from covey.routing.config import BrokerConfig
from covey.routing.journal import Outputs, Put, read
from covey.routing.kept_events import WindowRow
from covey.routing.links import Link, LinkRow
from covey.routing.loading import Loading
from covey.routing.messages import (
    ADVERTISEMENTS,
    SUBSCRIPTIONS,
    AddPeer,
    ClientDown,
    ClientUp,
    Entry,
    Envelope,
    FromClient,
    FromPeer,
    Input,
    LinkState,
    PeerDown,
    PeerUp,
    RemovePeer,
    Tick,
)
from covey.routing.streams import OutboxRow


class Broker(Loading):
    """One broker. Use `restore` to make one."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._handlers: dict[type, Callable[[Any], None]] = {
            ClientUp: self._client_up,
            ClientDown: self._client_down,
            FromClient: self._from_client,
            PeerUp: self._peer_up,
            PeerDown: self._peer_down,
            FromPeer: self._from_peer,
            AddPeer: self._add_peer,
            RemovePeer: self._remove_peer,
            Tick: self._tick,
        }

    @classmethod
    def restore(cls, config: BrokerConfig, rows: Iterable[Put], now: float) -> tuple[Broker, Outputs]:
        """A broker from all rows of its journal (none for a new one). All sessions are taken for closed."""
        broker = cls(config)
        broker._turn.begin(now)
        broker._restore(list(rows))
        return broker, broker._finish()

    def handle(self, input: Input, now: float) -> Outputs:
        """Take one input. Commit `records` as a whole, then send `sends` in order."""
        self._turn.begin(now)
        self._expire()
        self._handlers[type(input)](input)
        return self._finish()

    def publish(self, inputs: Sequence[FromClient], now: float) -> Outputs:
        """Take publications of any clients in order, as `handle` would one by one, in one turn and matched together."""
        self._turn.begin(now)
        self._expire()
        self._from_publishers(inputs)
        return self._finish()

    @property
    def wake_at(self) -> float:
        """When the next `Tick` is due (infinity for never); earlier and later ones do no harm."""
        wake = min(self.clients.next_end(), self.events.next_end())
        timing = self.config.timing
        for link in self.links.values():
            if link.up:
                wake = min(wake, link.last_ping + timing.retry)
            if link.failed_at is None:
                wake = min(wake, link.last_heard + timing.failed)
            elif link.keeps_anything:
                wake = min(wake, link.failed_at + timing.forget)
        return wake

    def _finish(self) -> Outputs:
        """What a turn ends with: deltas, then what waits for them, then streams, deliveries and rows."""
        now = self._turn.now
        if self._pruned is not None:
            self._pruned.refresh()
        for link in self.links.values():
            for outward in link.outward:
                outward.export.merge(now)
            link.flush_deltas()
        self._list_waits()
        for link in self.links.values():
            link.send_acks()
            self._flush_stream(link)
        for client in self.clients.pump():
            self._end_session(client)
        self.clients.write()
        self.events.write()
        for link in self.links.values():
            link.write()
        return self._turn.out

    def _list_waits(self) -> None:
        """Let what is to be settled wait for the deltas of this turn (`settling.py` says for which)."""
        while self._settlings:
            settlings, self._settlings = self._settlings, []
            for settling, table, source in settlings:
                travels = table == SUBSCRIPTIONS or self.config.advertisements
                for link in self.links.values():
                    if link.in_tree and travels:
                        if table == ADVERTISEMENTS:
                            link.wait(SUBSCRIPTIONS, settling)
                        if link.peer != source:
                            link.wait(table, settling)
                settling.ready()

    def _expire(self) -> None:
        """End leases before anything else happens: a broker that was held up must not deliver to them."""
        for client, table, claim in self.clients.expired():
            self._end_claim(client, table, claim.id)
            self.clients.tell_expired(client, claim)
            self.clients.tidy(client)

    def _tick(self, input: Tick) -> None:  # noqa: ARG002
        self.events.expire()
        for link in list(self.links.values()):
            self._watch(link)

    def _restore(self, rows: list[Put]) -> None:
        spaces: dict[str, dict[str, bytes]] = {}
        for row in rows:
            spaces.setdefault(row.space, {})[row.key] = row.value
        own = spaces.get("broker", {})
        if "numbers" in own:
            self._next_number = self._reserved = read(own["numbers"], int)
        else:
            # A broker that has lost its disk must not use the numbers of its former life again.
            self._next_number = self._reserved = max(1, int(self._turn.now * 1_000_000))
        self._restore_profile(spaces)
        added, removed = read(own["peers"], tuple[list[str], list[str]]) if "peers" in own else ([], [])
        for peer in sorted({*self.config.peers, *added} - {*removed}):
            self.links[peer] = Link(peer, self.config, self._known, self._turn)
        self._drop_strangers(spaces)
        self._restore_events(spaces)
        self._restore_links(spaces)
        self._restore_clients(spaces)
        self.events.drop_unused()
        for value in spaces.get("topology", {}).values():
            self.topology.learn(read(value, LinkState))
        before = self.topology.tree_neighbours()
        for link in self.links.values():
            if link.peer in before:
                self._join(link, recall=False)
        self._announce()

    def _drop_strangers(self, spaces: dict[str, dict[str, bytes]]) -> None:
        """Forget what was kept of brokers that are no neighbours any more."""
        for space in ("link", "outbox", "entry"):
            rows = spaces.get(space, {})
            for key in [key for key in rows if key.partition("/")[0] not in self.links]:
                del rows[key]
                self._turn.out.drop(space, key)

    def _restore_events(self, spaces: dict[str, dict[str, bytes]]) -> None:
        self.events.restore(
            {key: read(value, Envelope) for key, value in spaces.get("event", {}).items()},
            {key: read(value, WindowRow) for key, value in spaces.get("window", {}).items()},
        )

    def _restore_links(self, spaces: dict[str, dict[str, bytes]]) -> None:
        for peer, value in spaces.get("link", {}).items():
            self.links[peer].restore(read(value, LinkRow), self._turn.now)
        outboxes: dict[str, list[tuple[str, OutboxRow]]] = {}
        for key, value in spaces.get("outbox", {}).items():
            outboxes.setdefault(key.partition("/")[0], []).append((key, read(value, OutboxRow)))
        for peer, items in outboxes.items():
            self.links[peer].outbox.restore(items)
            for item in self.links[peer].outbox.items:
                self.events.refer_again(item.event)
        for key, value in spaces.get("entry", {}).items():
            peer, table, _ = key.split("/", 2)
            entry = read(value, Entry)
            condition = self._parse(entry.filter)
            if condition is not None:
                self.links[peer].inward[int(table)].holding.add(entry, condition)

    def _restore_clients(self, spaces: dict[str, dict[str, bytes]]) -> None:
        for id, value in spaces.get("client", {}).items():
            self.clients.restore_client(id, read(value, ClientRow))
        self._restore_loads(spaces)
        wanted: dict[str, dict[str, Filter]] = {}
        for table, space in enumerate(("subscription", "advertisement")):
            for value in spaces.get(space, {}).values():
                client, claim = self.clients.restore_claim(table, read(value, ClaimRow))
                if table == SUBSCRIPTIONS:
                    wanted.setdefault(client.hop, {})[claim.id] = claim.condition
                    self.standing.join(client.id, claim)
        for hop, entries in wanted.items():
            self.table.change_many(hop, entries, ())
        self.clients.restore_queue([read(value, QueueRow) for value in spaces.get("queue", {}).values()])
