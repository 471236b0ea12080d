"""Traffic: brokers that pass messages on at once, without time, faults or disks, and everything that passes counted.

    network = Network(line(5), strategy="covering")
    network.join("ann", "b1")
    network.subscribe("ann", {"cheap": "price < 10"})
    network.join("shop", "b5")
    network.publish("shop", events)
    network.traffic().forwarded

The brokers are those of `covey.routing`, unchanged. A message is handed over as it is, as soon as the turn before is
done, and every call runs until nothing is on the way and nothing put off; so the counts are those of a network that is
never in a hurry. What comes with a turn for the journal is dropped.

A *false positive* is an event that crossed a link while nobody beyond got it. It is judged by the deliveries
themselves, so it is right where deliveries are complete: compare them with those of `flooding`, or of an index. A
*false delivery* is one that the client's own filter doesn't match; the interpreter decides.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from covey.errors import CoveyError
from covey.events.meaning import Meaning
from covey.filters.algebra import Filter, leaves
from covey.filters.semantics import Defaults, matches
from covey.language import parse
from covey.relations.pruning import Load
from covey.routing.broker import Broker
from covey.routing.config import BrokerConfig, BrokerLimits
from covey.routing.inspection import tree_links
from covey.routing.journal import Outputs
from covey.routing.loading import TableEntry, prepare
from covey.routing.messages import (
    Acknowledge,
    Advertise,
    ClientMessage,
    ClientUp,
    Deliver,
    Deliveries,
    Events,
    FromClient,
    FromPeer,
    Input,
    Measured,
    OperatorMessage,
    PeerMessage,
    PeerUp,
    Ping,
    Publication,
    Publish,
    Refused,
    Stream,
    StreamAck,
    Subscribe,
    Taken,
    Tick,
    ToClient,
    ToPeer,
    Unadvertise,
    Unsubscribe,
    Work,
)

Filters: TypeAlias = Mapping[str, str | Filter] | Iterable[tuple[str, str | Filter]]
"""Filters by id."""
BATCH: Final = 1_000
"""Events that are published together."""
NO_END: Final = 1 << 60
"""Credit of clients that take whatever comes."""
_EVENT_MESSAGES: Final = (Events, Stream, StreamAck, Taken)
_encoder = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class TableSize:
    """One broker's routing table."""

    clients: int
    """Entries of its own clients."""
    neighbours: int
    """Entries that neighbours told."""
    advertisements: int
    """Advertisements that neighbours told."""
    predicates: int
    """Predicates in all entries of neighbours, as they are matched: pruning and merging make these fewer."""


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """Events over one link, in one direction."""

    forwarded: int
    false_positives: int
    """Those that nobody beyond got."""

    @property
    def in_vain(self) -> float:
        """The part that nobody beyond got; 0 where nothing was forwarded."""
        return self.false_positives / self.forwarded if self.forwarded else 0.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What passed since the counts were last reset, and how large the tables are now."""

    messages: Mapping[str, int]
    """Messages between brokers by kind."""
    control_messages: int
    """All but those that carry or acknowledge events, and pings, which only say that time passes."""
    control_bytes: int
    """Their size as they would travel."""
    forwarded: int
    """Events over links, once for each link."""
    forwarded_bytes: int
    false_positives: int
    """Forwarded where nobody beyond got them."""
    deliveries: int
    """Events that clients got, once for each client."""
    matches: int
    """Subscriptions that those deliveries named."""
    false_deliveries: int
    """Named subscriptions that don't match; counted where the network checks."""
    seconds: Mapping[str, float]
    """Processor time of each broker."""
    tables: Mapping[str, TableSize]
    links: Mapping[tuple[str, str], LinkTraffic]
    """By sender and receiver."""

    @property
    def entries(self) -> int:
        """Neighbours' entries in all tables."""
        return sum(size.neighbours for size in self.tables.values())

    @property
    def largest(self) -> int:
        """Neighbours' entries in the largest table."""
        return max(size.neighbours for size in self.tables.values())

    @property
    def predicates(self) -> int:
        """Predicates of neighbours' entries in all tables."""
        return sum(size.predicates for size in self.tables.values())

    @property
    def advertisements(self) -> int:
        """Neighbours' advertisements in all tables."""
        return sum(size.advertisements for size in self.tables.values())


class Network:
    """Brokers that are linked, their clients, and counts of what passes."""

    def __init__(
        self,
        links: Sequence[tuple[str, str]],
        *,
        configure: Callable[[BrokerConfig], BrokerConfig] | None = None,
        check: bool = True,
        **options: Any,
    ) -> None:
        """Brokers with these links; `options` are those of BrokerConfig, and `configure` may change each broker's.
        `check` interprets the filters behind each delivery, which takes some microseconds for each of them."""
        names = sorted({name for link in links for name in link}) or ["b1"]
        options.setdefault(
            "limits",
            BrokerLimits(credit=NO_END, credit_bytes=NO_END, events_flying_bytes=NO_END, link_buffer_bytes=NO_END),
        )
        self.now = 1_000.0
        self.brokers: dict[str, Broker] = {}
        self._check = check
        self._waiting: deque[tuple[str, Input]] = deque()
        self._homes: dict[str, str] = {}
        self._filters: dict[tuple[str, str], Filter] = {}
        self._defaults: dict[str, Defaults | None] = {}
        self._bits = {name: 1 << at for at, name in enumerate(names)}
        self._beyond: dict[tuple[str, str], int] = {}
        self._request = 0
        self._refusal: str | None = None
        self._taken: dict[str, int] = {}
        self.reset()
        for name in names:
            config = BrokerConfig(name, tuple(sorted(_neighbours(links, name))), **options)
            config = config if configure is None else configure(config)
            self._defaults[name] = Meaning(config.semantics, config.defaults, config.schema).defaults
            self.brokers[name], outputs = Broker.restore(config, (), self.now)
            self._perform(name, outputs)
        for one, other in links:
            self._waiting += [(one, PeerUp(other)), (other, PeerUp(one))]
            self._run()
        for one, other in tree_links(self.brokers[names[0]]):
            self._beyond[one, other] = self._side(other, one)
            self._beyond[other, one] = self._side(one, other)
        self.reset()

    def _side(self, start: str, without: str) -> int:
        """The brokers that are reached from one without crossing another, as bits."""
        tree = tree_links(self.brokers[start])
        found, new = {without, start}, [start]
        while new:
            name = new.pop()
            near = [b if a == name else a for a, b in tree if name in (a, b)]
            new += [other for other in near if other not in found]
            found.update(near)
        return sum(self._bits[name] for name in found - {without})

    # Clients

    def join(self, client: str, broker: str) -> None:
        """A client connects."""
        self._homes[client] = broker
        self._handle(broker, ClientUp(client))
        self._run()

    def subscribe(self, client: str, filters: Filters) -> None:
        """Subscribe, one after the other, each settled before the next."""
        for id, text in _pairs(filters):
            self._remember(client, id, text)
            self._say(client, Subscribe(self._number(), id, text))

    def load(self, client: str, filters: Filters, entries: Iterable[TableEntry] = ()) -> None:
        """Give a client these subscriptions in one turn, in the place of those that it was given before, and let
        `entries` stand for them (`covey.routing.loading`)."""
        home = self.brokers[self._homes[client]]
        prepared = prepare(home.config, client, client, _pairs(filters), entries)
        for known in [known for known in self._filters if known[0] == client]:
            del self._filters[known]
        if self._check:
            self._filters.update(((client, id), claim.condition) for id, claim in prepared.subscriptions.items())
        self._say(client, msgspec.structs.replace(prepared, request=self._number()))

    def unsubscribe(self, client: str, ids: Iterable[str]) -> None:
        """End subscriptions, one after the other."""
        for id in ids:
            self._filters.pop((client, id), None)
            self._say(client, Unsubscribe(self._number(), id))

    def advertise(self, client: str, filters: Filters) -> None:
        """Advertise, one after the other."""
        for id, text in _pairs(filters):
            self._say(client, Advertise(self._number(), id, text))

    def unadvertise(self, client: str, ids: Iterable[str]) -> None:
        """End advertisements, one after the other."""
        for id in ids:
            self._say(client, Unadvertise(self._number(), id))

    def publish(
        self, client: str, events: Sequence[dict[str, Any]], *, batch: int = BATCH, durable: bool = False
    ) -> None:
        """Publish events, so many at a time."""
        for first in range(0, len(events), batch):
            part = events[first : first + batch]
            self._say(client, Publish(self._number(), [Publication(event, durable) for event in part]))

    def wait(self, seconds: float) -> None:
        """Let time pass for all brokers: what is put off (merging by the clock) is done then."""
        step = min(broker.config.timing.failed for broker in self.brokers.values()) / 2
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + step)
            for name in self.brokers:
                self._handle(name, Tick())
            self._run()

    def measure(self, broker: str, load: Load) -> None:
        """A broker is told what it uses of its resources."""
        self._handle(broker, Measured(load.memory, load.bandwidth, load.processing))
        self._run()

    # Counts

    def reset(self) -> None:
        """Count from nothing."""
        self._messages: Counter[str] = Counter()
        self._control = self._control_bytes = 0
        self._forwarded = self._forwarded_bytes = self._false_positives = 0
        self._deliveries = self._matches = self._false_deliveries = 0
        self._seconds = dict.fromkeys(self.brokers, 0.0)
        self._over: Counter[tuple[str, str]] = Counter()
        self._false_over: Counter[tuple[str, str]] = Counter()
        self._crossed: list[tuple[tuple[str, str], str]] = []
        self._reached: dict[str, int] = {}

    def traffic(self) -> Traffic:
        """The counts so far."""
        return Traffic(
            dict(self._messages), self._control, self._control_bytes, self._forwarded, self._forwarded_bytes,
            self._false_positives, self._deliveries, self._matches, self._false_deliveries, dict(self._seconds),
            {name: _size(broker) for name, broker in self.brokers.items()},
            {link: LinkTraffic(count, self._false_over[link]) for link, count in self._over.items()},
        )  # fmt: skip

    # Messages

    def _number(self) -> int:
        self._request += 1
        return self._request

    def _remember(self, client: str, id: str, text: str) -> None:
        if self._check:
            self._filters[client, id] = parse(text)

    def _say(self, client: str, message: ClientMessage | OperatorMessage) -> None:
        self._handle(self._homes[client], FromClient(client, message))
        self._run()
        if self._refusal is not None:
            reason, self._refusal = self._refusal, None
            raise CoveyError(f"{client}: {reason}")

    def _run(self) -> None:
        while self._waiting or self._put_off():
            self._handle(*self._waiting.popleft())
        taken, self._taken = self._taken, {}
        for client, number in taken.items():
            self._handle(self._homes[client], FromClient(client, Acknowledge(number)))
        for link, event in self._crossed:
            if not self._reached.get(event, 0) & self._beyond[link]:
                self._false_positives += 1
                self._false_over[link] += 1
        self._crossed.clear()
        self._reached.clear()

    def _put_off(self) -> bool:
        """What brokers have put off for when there is time, such as large loads: there is."""
        self._waiting += [(name, Work(sys.maxsize)) for name, broker in self.brokers.items() if broker.behind]
        return bool(self._waiting)

    def _handle(self, name: str, input: Input) -> None:
        start = time.process_time()
        outputs = self.brokers[name].handle(input, self.now, sys.maxsize)
        self._seconds[name] = self._seconds.get(name, 0.0) + time.process_time() - start
        self._perform(name, outputs)

    def _perform(self, name: str, outputs: Outputs) -> None:
        for send in outputs.sends:
            if isinstance(send, ToPeer):
                self._count(name, send.peer, send.message)
                self._waiting.append((send.peer, FromPeer(name, send.message)))
            elif isinstance(send, Deliveries):
                for message in send.messages:
                    self._deliver(name, send.client, message)
            elif isinstance(send, ToClient):
                if isinstance(send.message, Refused):
                    self._refusal = send.message.reason
            else:
                raise CoveyError(f"broker {name} closed a session: {send.reason}")

    def _count(self, sender: str, receiver: str, message: PeerMessage) -> None:
        self._messages[type(message).__name__] += 1
        if isinstance(message, Ping):
            return
        size = len(_encoder.encode(message))
        if not isinstance(message, _EVENT_MESSAGES):
            self._control += 1
            self._control_bytes += size
            return
        self._forwarded_bytes += size
        if isinstance(message, StreamAck | Taken):
            return
        envelopes = message.envelopes if isinstance(message, Events) else message.items
        link = sender, receiver
        self._forwarded += len(envelopes)
        self._over[link] += len(envelopes)
        self._crossed += [(link, envelope.key) for envelope in envelopes]

    def _deliver(self, broker: str, client: str, message: Deliver) -> None:
        self._deliveries += 1
        self._matches += len(message.subscriptions)
        if message.number:
            self._taken[client] = message.number
        self._reached[message.event] = self._reached.get(message.event, 0) | self._bits[broker]
        if self._check:
            self._false_deliveries += sum(
                not self._is_asked(broker, client, id, message.attributes) for id in message.subscriptions
            )

    def _is_asked(self, broker: str, client: str, id: str, attributes: dict[str, Any]) -> bool:
        asked, config = self._filters.get((client, id)), self.brokers[broker].config
        return asked is not None and matches(
            asked, attributes, semantics=config.semantics, defaults=self._defaults[broker]
        )


def line(brokers: int) -> list[tuple[str, str]]:
    """The links of b1, b2, ... in a row."""
    return [(f"b{at}", f"b{at + 1}") for at in range(1, brokers)]


def tree(brokers: int, children: int = 2) -> list[tuple[str, str]]:
    """The links of b1 with b2, b3, ... below it, each with so many children."""
    return [(f"b{(at - 2) // children + 1}", f"b{at}") for at in range(2, brokers + 1)]


def _neighbours(links: Sequence[tuple[str, str]], name: str) -> list[str]:
    return [b if a == name else a for a, b in links if name in (a, b)]


def _pairs(filters: Filters) -> Iterable[tuple[str, str]]:
    listed = filters.items() if isinstance(filters, Mapping) else filters
    return ((id, str(condition)) for id, condition in listed)


def _size(broker: Broker) -> TableSize:
    tree = [link for link in broker.links.values() if link.in_tree]
    entries = [condition for link in tree for condition in broker.table.entries(link.hop).values()]
    return TableSize(
        len(broker.table) - len(entries),
        len(entries),
        sum(len(link.inward.advertisements.holding) for link in tree),
        sum(sum(1 for _ in leaves(condition)) for condition in entries),
    )
