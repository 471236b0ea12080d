"""Whatever clients and neighbours send, as long as it can be decoded, a broker goes on."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from covey.routing import Broker, BrokerConfig, ClientDown, ClientUp, FromClient, FromPeer, PeerDown, PeerUp, Put, Tick
from covey.routing.journal import Outputs, replay
from covey.routing.messages import (
    Acknowledge,
    Advertise,
    ClientMessage,
    Credit,
    Delta,
    DeltaAck,
    Entry,
    Envelope,
    Events,
    Filtering,
    Hello,
    LinkState,
    LinkStates,
    PeerMessage,
    Ping,
    Publication,
    Publish,
    Renew,
    Stream,
    StreamAck,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)


def number(rng: random.Random) -> int:
    return rng.choice([-5, -1, 0, 0, 1, 1, 1, 2, 3, 7, 300, 2**62])


def text(rng: random.Random) -> str:
    return rng.choice(
        ["p < 5", "p < 9", "TRUE", "k = 'a' OR p = 1", "p <", "", "rlike(k, '(')", "`x", "a", "b/c", "\n"]
    )


def name(rng: random.Random) -> str:
    return rng.choice(["a", "b", "c", "", "x/y", "ann", "\x00", "é"])


def attributes(rng: random.Random) -> dict[str, Any]:
    return rng.choice([{}, {"p": 1}, {"p": "x"}, {"p": None}, {"p": [1, [2]]}, {"p": {"q": {"r": 1}}}, {"k": b"raw"}])


def envelope(rng: random.Random) -> Envelope:
    origin, publisher = name(rng), name(rng)
    attributes = {"p": rng.randrange(9)}
    return Envelope(origin, number(rng), publisher, number(rng), rng.random() < 0.5, number(rng), attributes)


def entries(rng: random.Random) -> list[Entry]:
    return [Entry(name(rng), text(rng)) for _ in range(rng.randrange(3))]


def from_peer(rng: random.Random) -> Any:
    n, t = number, text
    digests = [[(n(rng), n(rng))] for _ in range(rng.randrange(4))]
    return rng.choice(
        [
            Hello(name(rng), digests, n(rng), n(rng), rng.random() < 0.5),
            Delta(n(rng), n(rng), rng.random() < 0.7, [t(rng)], [n(rng)], entries(rng), [name(rng)]),
            Delta(rng.randrange(2), rng.randrange(1, 4), True, [], [], entries(rng), [name(rng)]),
            DeltaAck(n(rng), n(rng), n(rng)),
            Stream(n(rng), n(rng), [envelope(rng) for _ in range(rng.randrange(3))]),
            StreamAck(n(rng), n(rng)),
            Events([envelope(rng)]),
            LinkStates([LinkState(name(rng), n(rng), [(name(rng), rng.random() < 0.5), (name(rng), True)])]),
            Ping(n(rng), [DeltaAck(n(rng), n(rng), n(rng))]),
            Filtering(),
        ]
    )


def from_client(rng: random.Random) -> Any:
    lease = rng.choice([None, 0.0, -1.0, 5.0, float("inf"), float("nan")])
    return rng.choice(
        [
            Subscribe(number(rng), name(rng), text(rng), rng.random() < 0.5, lease),
            Advertise(number(rng), name(rng), text(rng), rng.random() < 0.5, lease),
            Unsubscribe(number(rng), name(rng)),
            Unadvertise(number(rng), name(rng)),
            Publish(number(rng), [Publication(attributes(rng), rng.random() < 0.5, number(rng))]),
            Acknowledge(number(rng)),
            Credit(number(rng)),
            Renew(number(rng), [name(rng)] if rng.random() < 0.5 else []),
        ]
    )


def through_the_door(message: Any, kind: Any) -> Any:
    """A message as whoever decodes it gives it to the broker; None where it is out of its ranges."""
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=kind)
    except msgspec.ValidationError:
        return None


@pytest.mark.parametrize("seed", range(30))
def test_a_broker_survives_any_input_and_restores_from_what_it_wrote(seed: int) -> None:
    rng = random.Random(seed)
    strategy = rng.choice(["flooding", "simple", "covering", "merging"])
    config = BrokerConfig("a", ("b", "c"), strategy, rng.random() < 0.5, meta_events=True)  # type: ignore[arg-type]
    rows: dict[tuple[str, str], bytes] = {}
    broker, outputs = Broker.restore(config, (), 100.0)
    now = 100.0
    for _ in range(250):
        replay(rows, outputs.records)
        now += rng.random()
        match rng.randrange(20):
            case 0:
                outputs = broker.handle(rng.choice([PeerUp("b"), PeerUp("c"), PeerDown("b"), PeerUp("stranger")]), now)
            case 1:
                outputs = broker.handle(rng.choice([ClientUp("ann"), ClientUp(""), ClientDown("ann")]), now)
            case 2:
                outputs = broker.handle(Tick(), now)
            case 3 if rng.random() < 0.3:
                stored = [Put(space, key, value) for (space, key), value in rows.items()]
                broker, outputs = Broker.restore(config, stored, now)
            case 4 | 5 | 6 | 7 | 8 | 9:
                message = through_the_door(from_client(rng), ClientMessage)
                sender = rng.choice(["ann", "nobody"])
                outputs = Outputs() if message is None else broker.handle(FromClient(sender, message), now)
            case _:
                message = through_the_door(from_peer(rng), PeerMessage)
                sender = rng.choice(["b", "c", "stranger"])
                outputs = Outputs() if message is None else broker.handle(FromPeer(sender, message), now)
