"""A few brokers in one place, without time or faults: messages are passed on until there are none."""

from __future__ import annotations

from collections import deque
from typing import Any

from covey.routing import (
    Broker,
    BrokerConfig,
    ClientDown,
    ClientUp,
    FromClient,
    FromPeer,
    PeerDown,
    PeerUp,
    Permissions,
    Put,
)
from covey.routing.batches import Wanted
from covey.routing.journal import Outputs, replay
from covey.routing.messages import (
    ClientAnswer,
    ClientMessage,
    CloseClient,
    ClosePeer,
    Confirmed,
    Deliver,
    Deliveries,
    Input,
    PeerMessage,
    Publication,
    Publish,
    Refused,
    Subscribe,
    Tick,
    ToClient,
    ToPeer,
    Unsubscribe,
)


class Net:
    """Brokers that are linked, and everything that their clients hear."""

    def __init__(self, links: list[tuple[str, str]], **options: Any) -> None:
        names = sorted({name for link in links for name in link}) or ["a"]
        self.options = options
        self.now = 1000.0
        self.links = list(links)
        self.rows: dict[str, dict[tuple[str, str], bytes]] = {name: {} for name in names}
        self.heard: dict[str, list[ClientAnswer]] = {}
        self.closed: list[CloseClient] = []
        self.passed: list[tuple[str, str, PeerMessage]] = []
        self.cut: set[frozenset[str]] = set()
        self.lost: tuple[type, ...] = ()
        """Kinds of messages that neighbours send and that never come."""
        self._waiting: deque[tuple[str, Input]] = deque()
        self._requests = 0
        self.brokers: dict[str, Broker] = {}
        for name in names:
            self.start(name)
        for one, other in links:
            self.connect(one, other)

    def config(self, name: str) -> BrokerConfig:
        peers = tuple(b if a == name else a for a, b in self.links if name in (a, b))
        return BrokerConfig(name, peers, **self.options)

    def start(self, name: str) -> None:
        rows = [Put(space, key, value) for (space, key), value in self.rows[name].items()]
        self.brokers[name], outputs = Broker.restore(self.config(name), rows, self.now)
        self._perform(name, outputs)

    def restart(self, name: str) -> None:
        """Crash a broker and start it from its rows."""
        self.start(name)
        for one, other in self.links:
            if name in (one, other):
                self.disconnect(one, other)
                self.connect(one, other)

    def connect(self, one: str, other: str) -> None:
        self.cut.discard(frozenset((one, other)))
        self.handle(one, PeerUp(other))
        self.handle(other, PeerUp(one))
        self.run()

    def disconnect(self, one: str, other: str) -> None:
        self.cut.add(frozenset((one, other)))
        self.handle(one, PeerDown(other))
        self.handle(other, PeerDown(one))

    def handle(self, name: str, input: Input) -> None:
        self._perform(name, self.brokers[name].handle(input, self.now))

    def _perform(self, name: str, outputs: Outputs) -> None:
        replay(self.rows[name], outputs.records)
        for send in outputs.sends:
            match send:
                case ToPeer(peer, message):
                    if frozenset((name, peer)) not in self.cut and not isinstance(message, self.lost):
                        self.passed.append((name, peer, message))
                        self._waiting.append((peer, FromPeer(name, message)))
                case ToClient(client, answer):
                    self.heard.setdefault(client, []).append(answer)
                case Deliveries(client=client):
                    self.heard.setdefault(client, []).extend(send.messages)
                case CloseClient():
                    self.closed.append(send)
                case ClosePeer():
                    pass

    def run(self) -> None:
        while self._waiting:
            name, input = self._waiting.popleft()
            self.handle(name, input)

    def wait(self, seconds: float, step: float = 0.25) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += step
            for name in self.brokers:
                self.handle(name, Tick())
            self.run()

    # Clients

    def join(self, name: str, client: str, permissions: Permissions | None = None) -> None:
        self.handle(name, ClientUp(client, permissions or Permissions()))
        self.run()

    def part(self, name: str, client: str) -> None:
        self.handle(name, ClientDown(client))
        self.run()

    def say(self, name: str, client: str, message: ClientMessage) -> None:
        self.handle(name, FromClient(client, message))
        self.run()

    def subscribe(self, name: str, client: str, id: str, text: str, **options: Any) -> bool:
        self._requests += 1
        self.say(name, client, Subscribe(self._requests, id, text, **options))
        return self.confirmed(client, self._requests)

    def unsubscribe(self, name: str, client: str, id: str) -> bool:
        self._requests += 1
        self.say(name, client, Unsubscribe(self._requests, id))
        return self.confirmed(client, self._requests)

    def publish(self, name: str, client: str, *events: dict[str, Any], durable: bool = False) -> bool:
        self._requests += 1
        self.say(name, client, Publish(self._requests, [Publication(event, durable) for event in events]))
        return self.confirmed(client, self._requests)

    def confirmed(self, client: str, request: int) -> bool:
        return Confirmed(request) in self.heard.get(client, [])

    def refusals(self, client: str) -> list[str]:
        return [answer.reason for answer in self.heard.get(client, []) if isinstance(answer, Refused)]

    def delivered(self, client: str) -> list[dict[str, Any]]:
        return [answer.attributes for answer in self.heard.get(client, []) if isinstance(answer, Deliver)]

    def held(self, name: str, peer: str, table: int = 0) -> list[str]:
        """What a broker holds from a neighbour."""
        return sorted(str(one) for one in self.brokers[name].links[peer].inward[table].holding.entries.values())


def hops_by_event(found: dict[str, Wanted], events: int) -> list[dict[str, list[str]]]:
    """What `RoutingTable.match_many` found, as `match` says it of each event."""
    listed: list[dict[str, list[str]]] = [{} for _ in range(events)]
    for hop, wanted in found.items():
        assert wanted.places == sorted(set(wanted.places))
        for at, keys in zip(wanted.places, wanted.keys, strict=True):
            listed[at][hop] = keys
    return listed
