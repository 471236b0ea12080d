"""The broker: one state machine without IO.

`handle(input, now)` takes what happened (a message, a session that opened or closed, time) and gives rows to commit and
messages to send after the commit. There is no clock, no socket and no randomness in here, so the simulator and the
server run the same code, and a run can be repeated.

`context.py` lists its parts, each an object that says what it owns and what it may touch. Below them are
    links       a neighbour's session, deltas and stream                    `links.py`, `streams.py`
    exports     what a neighbour must know, by strategy                     `exports.py`, `stages.py`, `strategies.py`
    tables      which hops an event goes to                                 `routing_table.py`
    decisions   whether an event goes over a link                           `decisions.py`
    topology    the spanning tree                                           `topology.py`
    settling    when a change is known wherever it matters                  `settling.py`

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
 6. An event whose id was seen is not delivered again. A second copy tells only that its sender has it. Another event
    under the same id is no copy: somebody lies, and what others carry must not suffer (`seen_events.py`).

An input is applied as a whole or not at all: where something raises, all that it changed is taken back (`undo.py`).

The states of a link, what moves it from one to the other, and which of them survive a restart: `phases.py`.

Recalls. Rule 4 lets a client be confirmed while a link has failed, and trees of two brokers may differ for a moment. So
a broker can have let an event pass that a subscription, confirmed before, asks for: it didn't know. When tables have
been apart and meet (the first delta after a failure; a link that joins the tree, at either end), the delta names the
filters that came late in `recalls`. Whoever applies it sends back those durable events of its window that match them
and that this neighbour can't have, and recalls the same filters from its other tree neighbours, with its next delta to
each. Deltas are where recalls belong: what is told late and the recall for it must come in one step, or an event
between them would pass; and a delta without entries recalls where covering has left nothing to tell, since the entry
that covers the new one may itself be too young. A link stays `lapsed` in the journal until a recall is acknowledged,
and after a restart everything that it was told is recalled. A broker that has forgotten a neighbour (the link was taken
away and is back, or the disk is gone) takes all that it is told first for late, since the neighbour may not know that
it was forgotten. By induction along the final tree, a durable event reaches every durable subscription that was
confirmed before it was published, as long as windows are larger than what is published while tables are apart. Recalled
copies may come after later events of the same publisher (`Deliver.late`); all others of an acyclic network come in
order. There are no numbered attempts: who has an event in its window answers for it, so a second copy is never news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from covey.filters.algebra import Filter
from covey.relations.steps import Budget
from covey.routing import undo
from covey.routing.by_table import Table
from covey.routing.client import SPACES, ClaimRow, ClientRow, QueueRow, RunRow
from covey.routing.clients import Clients
from covey.routing.config import BrokerConfig
from covey.routing.context import Context
from covey.routing.defects import BrokenError, DefectError
from covey.routing.exporter import Exporter
from covey.routing.journal import Outputs, Put, read
from covey.routing.kept_events import KeptEvents, WindowRow, read_event
from covey.routing.links import Link
from covey.routing.load_parts import finish_loads
from covey.routing.loading import LoadView
from covey.routing.loads import Loads
from covey.routing.messages import (
    AddLink,
    AddPeer,
    ClientDown,
    ClientUp,
    FromClient,
    FromPeer,
    Input,
    Measured,
    PeerDown,
    PeerUp,
    Permit,
    Pressure,
    Publications,
    RemoveLink,
    RemovePeer,
    Reroute,
    Subscriptions,
    Tick,
    Work,
)
from covey.routing.peers import Peers
from covey.routing.profiles import ProfileRow, Profiles
from covey.routing.pruning_choice import PruningChoice
from covey.routing.published_ids import SPACE as PUBLISHED
from covey.routing.published_ids import PublishedRow
from covey.routing.recalls import Recalls
from covey.routing.recovery import set_aside
from covey.routing.requests import Requests
from covey.routing.router import Router
from covey.routing.routing_table import RoutingTable
from covey.routing.settling import Settlings
from covey.routing.topology import Topology
from covey.routing.tree import Tree
from covey.routing.undo import Remembered


class Broker(Remembered):
    """One broker. Use `restore` to make one.

    Owns its parts, and says in which order they act: what an input does, and what a turn ends with.
    """

    def __init__(self, config: BrokerConfig) -> None:
        context = self._context = Context(config)
        self._settlings = Settlings()
        self.damaged: tuple[str, ...] = ()
        """Rows of the journal that couldn't be read at the start, and were set aside."""
        self.links: dict[str, Link] = {}
        self.events = KeptEvents(context)
        self.clients = Clients(context, self.events)
        self.table = RoutingTable(context.known, context.report)
        router = self._router = Router(context, self.events, self.table, self.clients, self.links)
        exporter = self._exporter = Exporter(context, self.table, self.clients, self.links)
        recalls = Recalls(context, self.links, router, exporter)
        self._tree = Tree(context, self.links, router, exporter, recalls)
        self._peers = Peers(context, self.links, router, exporter, recalls, self._tree, self._settlings)
        self._requests = Requests(context, self.clients, router, exporter, self._settlings)
        self._loads = Loads(context, self.clients, router, exporter, self._requests)
        self._profiles = Profiles(context, self.clients, exporter, self._requests)
        self._requests.handlers |= {AddLink: self._peers.link, RemoveLink: self._peers.unlink}
        self._handlers: dict[type, Callable[[Any], None]] = {
            ClientUp: self._requests.client_up,
            Permit: self._requests.permit,
            ClientDown: self._requests.client_down,
            FromClient: self._requests.from_client,
            Publications: self._requests.publish,
            Subscriptions: self._requests.subscribe,
            PeerUp: self._peers.peer_up,
            PeerDown: self._peers.peer_down,
            FromPeer: self._peers.from_peer,
            AddPeer: self._peers.add_peer,
            RemovePeer: self._peers.remove_peer,
            Tick: self._tick,
            Work: self._work,
            Pressure: self._press,
            Measured: self._exporter.measure,
            Reroute: self._exporter.reroute,
        }

    @classmethod
    def restore(cls, config: BrokerConfig, rows: Iterable[Put], now: float) -> tuple[Broker, Outputs]:
        """A broker from all rows of its journal (none for a new one). All sessions are taken for closed."""
        broker = cls(config)
        broker._context.turn.begin(now)
        broker._context.life = max(1, int(now * 1e6))
        broker._context.known.budget = Budget(config.limits.request_steps)
        broker._restore(list(rows))
        broker._context.known.normal_at_once = config.limits.request_entries
        return broker, broker._finish()

    # What drivers do

    def handle(self, input: Input, now: float, steps: int | None = None) -> Outputs:
        """Take one input. Commit `records` as a whole, then send `sends` in order. `steps` is what covering, merging
        and the like may take of it at once (`request_steps` where it isn't given); the rest is put off for `Work`.

        Where something raises in the middle of it, the broker is as it was before and raises DefectError. Where even
        that isn't sure it raises BrokenError, and must not be used any more: restore it.
        """
        if isinstance(input, Work):
            self._context.known.budget = Budget(input.steps, is_for_work=True)
        else:
            self._context.known.budget = Budget(self._context.config.limits.request_steps if steps is None else steps)
        before = Outputs()
        if self.clients.next_end() <= max(now, self._context.turn.now):
            # Leases end in a turn of their own: whoever happens to come next has nothing to do with it.
            try:
                before = self._take_turn(lambda _: self._requests.expire(), input, now)
            except DefectError as defect:
                raise BrokenError(defect) from defect
        try:
            outputs = self._take_turn(self._handlers[type(input)], input, now)
        except DefectError as defect:
            defect.outputs = before
            raise
        return outputs.after(before)

    def _take_turn(self, handler: Callable[[Any], None], input: Input, now: float) -> Outputs:
        self._context.turn.begin(now)
        undo.begin(self.steps_of(input))
        try:
            handler(input)
            outputs = self._finish()
        except Exception as error:
            try:
                undo.roll_back()
            except Exception as worse:
                raise BrokenError(worse) from error
            raise DefectError(error, Outputs()) from error
        finally:
            undo.end()
        return outputs

    steps_of: Callable[[Input], list[undo.Step]] = staticmethod(lambda _: [])
    """Where the steps that take an input back are written down. The simulator has lists that raise."""

    def publish(self, inputs: Sequence[FromClient], now: float) -> Outputs:
        """Take publications of any clients in order, as `handle` would one by one, in one turn and matched together."""
        return self.handle(Publications.of(inputs), now)

    @property
    def wake_at(self) -> float:
        """When the next `Tick` is due (infinity for never); earlier and later ones do no harm."""
        clients = self.clients
        waits = clients.queues.next_telling()
        return min(clients.next_end(), clients.next_look(), self.events.next_end(), self._peers.next_watch(), waits)

    @property
    def steps_taken(self) -> int:
        """What the last input took for covering, merging and the like."""
        return self._context.known.budget.spent

    @property
    def behind(self) -> int:
        """How much work was put off: as long as there is some, `Work` gets on with it."""
        return self._loads.behind + self._exporter.behind

    # What they see

    @property
    def config(self) -> BrokerConfig:
        """As it is now: `Reroute` may have changed it, and a profile have taken the place of the one that it was made
        with."""
        return self._context.config

    @property
    def next_number(self) -> int:
        """The number of the next event that enters the network here."""
        return self._router.next_number

    def count_hits(self) -> None:
        """Bring the hits of all subscriptions up to date: for batches they are counted in the table's columns."""
        self.clients.count_hits(self.table.take_hits())

    @property
    def topology(self) -> Topology:
        """All link states that it knows."""
        return self._tree.topology

    @property
    def event_bytes(self) -> int:
        """What events take: those that are kept, that wait for clients and neighbours, and that are held back."""
        waiting = sum(link.events.bytes for link in self.links.values())
        return self.events.bytes + self.clients.queues.buffer_bytes + waiting + self._requests.held_bytes

    @property
    def pressure(self) -> str:
        """Why publishers are held back; empty where they aren't."""
        return self._context.pressure

    @property
    def profile(self) -> ProfileRow | None:
        """The profile that operators brought; None for none."""
        return self._profiles.in_use

    @property
    def pruning(self) -> PruningChoice | None:
        """By what neighbours' entries are pruned, and how far; None where they aren't."""
        return self._exporter.pruning

    @property
    def urls(self) -> Mapping[str, str]:
        """Addresses of neighbours that were told while it ran; the others' are the driver's."""
        return self._peers.urls

    def loads(self) -> list[LoadView]:
        """All loads, by name."""
        return self._loads.views()

    # Turns

    def _tick(self, input: Tick) -> None:  # noqa: ARG002
        self.events.expire()
        self.clients.forget_publishers()
        for link in list(self.links.values()):
            self._peers.watch(link)

    def _press(self, input: Pressure) -> None:
        self._requests.press(input.reason)
        if not input.reason:
            self._peers.relieve()

    def _work(self, input: Work) -> None:  # noqa: ARG002
        self._loads.work()
        self._exporter.work()

    def _finish(self) -> Outputs:
        """What a turn ends with: deltas, then what waits for them, then streams, deliveries and rows."""
        turn, links = self._context.turn, self.links.values()
        self._exporter.refresh()
        for link in links:
            for outward in link.outward:
                outward.export.catch_up(turn.now)
            link.flush_deltas()
        self._settlings.list_waits(links, advertisements=self._context.config.advertisements)
        for link in links:
            link.send_acks()
            self._router.flush(link)
        self.clients.queues.tell_losses(self.clients)
        for client in self.clients.queues.pump():
            self._requests.end_session(client)
        self.clients.queues.write()
        self.events.write()
        for link in links:
            link.write()
        return turn.out

    # Restoring

    def _restore(self, rows: list[Put]) -> None:
        spaces: dict[str, dict[str, bytes]] = {}
        for row in rows:
            spaces.setdefault(row.space, {})[row.key] = row.value
        self.damaged = tuple(set_aside(spaces, self._context))
        finish_loads(spaces, self._context.turn.out)
        numbers = spaces.get("broker", {}).get("numbers")
        self._router.restore_numbers(None if numbers is None else read(numbers, int))
        self._profiles.restore(spaces)
        self.events.restore(
            {key: read_event(value) for key, value in spaces.get("event", {}).items()},
            {key: read(value, WindowRow) for key, value in spaces.get("window", {}).items()},
        )
        self._peers.restore(spaces, self.events)
        self._loads.restore(spaces)
        self._restore_clients(spaces)
        self.events.drop_unused()
        self._tree.restore(spaces.get("topology", {}))

    def _restore_clients(self, spaces: dict[str, dict[str, bytes]]) -> None:
        for id, value in spaces.get("client", {}).items():
            self.clients.restore_client(id, read(value, ClientRow))
        wanted: dict[str, dict[str, Filter]] = {}
        for table, space in SPACES.by_table():
            for value in spaces.get(space, {}).values():
                client, claim = self.clients.restore_claim(table, read(value, ClaimRow))
                if table is Table.SUBSCRIPTIONS:
                    wanted.setdefault(client.hop, {})[claim.id] = claim.condition
                    self._exporter.loaded_entries.join(client.id, claim)
        for hop, entries in wanted.items():
            self.table.change_many(hop, entries, ())
        self.clients.restore_queues(
            [read(value, RunRow) for value in spaces.get("run", {}).values()],
            [read(value, QueueRow) for value in spaces.get("queue", {}).values()],
        )
        ids = spaces.get(PUBLISHED, {})
        self._requests.published_ids.restore((key, read(value, PublishedRow)) for key, value in ids.items())
