from __future__ import annotations

import msgspec
import pytest

from covey.errors import CoveyError
from covey.relations.subsumption import Number, Space
from covey.routing import BrokerConfig, ConfigError, PruningOptions, SubsumptionOptions, Timing
from covey.routing.messages import (
    ClientAnswer,
    ClientMessage,
    Confirmed,
    Deliver,
    Delta,
    DeltaAck,
    Entry,
    Envelope,
    Events,
    Hello,
    LinkState,
    LinkStates,
    PeerMessage,
    Ping,
    Publication,
    Publish,
    Stream,
    Subscribe,
)

ENVELOPE = Envelope("a", 7, "ann", 1, True, 60, {"p": 1, "k": ["x", None], "r": {"z": 1.5}})
PEER = [
    Hello("a", [[(3, 99)], []], 1, 5, True),
    Delta(0, 1, True, ["p < 5"], [3], [Entry("k", "p < 5")], ["j"]),
    Stream(2, 1, [ENVELOPE]),
    Events([ENVELOPE]),
    LinkStates([LinkState("a", 1, [("b", True)])]),
    Ping(12345, [DeltaAck(0, 3, 2)]),
]


@pytest.mark.parametrize("message", PEER)
def test_links_messages_are_the_same_after_msgpack(message: PeerMessage) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=PeerMessage) == message


def test_clients_messages_are_the_same_after_msgpack() -> None:
    asked: list[ClientMessage] = [Subscribe(1, "s", "p < 5", True, 60.0), Publish(2, [Publication({"p": 1}, True, 4)])]
    told: list[ClientAnswer] = [Confirmed(1), Deliver(3, ["s"], {"p": 1}, "ann", 4, True, "a/7")]
    for message in asked:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=ClientMessage) == message
    for answer in told:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(answer), type=ClientAnswer) == answer


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "psychic"},
        {"strategy": "subsumption"},
        {"broker": ""},
        {"broker": "a/b"},
        {"peers": ("a",)},
        {"pruning": PruningOptions()},
        {"timing": Timing(retry=2.0, failed=1.0)},
        {"semantics": "poetic"},
    ],
)
def test_a_configuration_that_can_not_work_is_an_error_of_one_line(options: dict[str, object]) -> None:
    with pytest.raises(CoveyError) as caught:
        BrokerConfig(**{"broker": "a", **options})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ConfigError) or "semantics" in options


def test_a_space_makes_subsumption_possible() -> None:
    BrokerConfig("a", strategy="subsumption", subsumption=SubsumptionOptions(Space([Number("p")])))
