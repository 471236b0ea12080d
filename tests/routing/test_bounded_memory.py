"""What came and went leaves nothing behind, and what never ends has an end."""

from __future__ import annotations

import pytest

from covey.routing import known_filters
from covey.routing.config import BrokerLimits
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import ClosePeer, Delta, Entry, FromPeer, Held, Hello, PeerUp, Permissions, Pressure
from tests.routing.harness import Net


def test_filters_are_remembered_up_to_a_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_filters, "ROOM_CHARACTERS", 10_000)
    known = KnownFilters()
    for number in range(500):
        condition = known.parse(" OR ".join(f"x = {number + at}" for at in range(1 + number % 40)))
        known.normal(condition)
        known.overlaps(condition, known.parse("x > 3 OR y = 1"))
        assert sum(map(len, known._parsed)) <= 10_000
        assert len(known._normal) <= len(known._parsed) + 1


def test_refused_subscriptions_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_filters, "ROOM_CHARACTERS", 10_000)
    net = Net([])
    net.join("a", "ann", Permissions(subscribe="x = 1"))
    for number in range(300):
        assert not net.subscribe("a", "ann", f"s{number}", " OR ".join(f"y = {number + at}" for at in range(30)))
    known = net.brokers["a"]._context.known
    assert sum(map(len, known._parsed)) <= 10_000
    assert not net.brokers["a"].clients.get("ann").claims.subscriptions  # type: ignore[union-attr]


def test_leases_that_were_renewed_or_given_up_are_forgotten_before_they_end() -> None:
    net = Net([])
    net.join("a", "ann")
    for number in range(3_000):
        assert net.subscribe("a", "ann", f"s{number}", "x = 1", lease=1e9)
        assert net.unsubscribe("a", "ann", f"s{number}")
    assert len(net.brokers["a"].clients._ends) <= 1_001


def test_a_delta_that_never_ends_closes_its_link() -> None:
    net = Net([("a", "b")], limits=BrokerLimits(table_bytes=10_000))
    a = net.brokers["a"]
    a.handle(PeerUp("b", 9), net.now)
    a.handle(FromPeer("b", Hello("b", [[], []], 0, 0, True), 9), net.now)
    for number in range(1, 1_000):
        part = Delta(0, number, True, [], [], [Entry(f"k{number}", f"x = {number}")], [], more=True)
        outputs = a.handle(FromPeer("b", part, 9), net.now)
        if any(isinstance(send, ClosePeer) for send in outputs.sends):
            break
    else:
        pytest.fail("the link is still open")
    inward = a.links["b"].inward.subscriptions
    assert not inward.part_keys
    assert inward.holding.bytes <= 10_000


def test_publications_wait_while_publishers_are_held_back_and_keep_their_order() -> None:
    net = Net([("a", "b")])
    for broker, client in (("a", "pub"), ("b", "ann")):
        net.join(broker, client)
    net.subscribe("b", "ann", "s", "p >= 0")
    net.handle("a", Pressure("full"))
    net.publish("a", "pub", {"p": 1})
    net.publish("a", "pub", {"p": 2})
    assert net.delivered("ann") == []
    net.handle("a", Pressure())
    net.run()
    assert net.delivered("ann") == [{"p": 1}, {"p": 2}]
    assert not any(isinstance(answer, Held) for answer in net.heard["pub"])  # it is of protocol 1


def test_what_is_held_back_is_bounded_and_what_is_wrong_is_refused_at_once() -> None:
    net = Net([], limits=BrokerLimits(held_bytes=1_000))
    net.join("a", "pub")
    net.handle("a", Pressure("full"))
    net.publish("a", "pub", {"text": "x" * 700})
    net.publish("a", "pub", {"text": "x" * 700})
    net.publish("a", "pub", {"number": 1 << 70})
    assert ["publishers are held back: full; publish it later" in reason for reason in net.refusals("pub")] == [
        True,
        False,
    ]
    net.part("a", "pub")
    net.handle("a", Pressure())
    assert net.brokers["a"].event_bytes == 0


def test_a_neighbour_that_is_held_back_waits_without_failing_and_goes_on() -> None:
    net = Net([("a", "b")])
    net.join("a", "pub")
    net.join("b", "ann")
    net.subscribe("b", "ann", "s", "p >= 0", durable=True)
    net.handle("b", Pressure("full"))
    for number in range(40):
        net.publish("a", "pub", {"p": number}, durable=True)
    net.wait(12.0)
    link = net.brokers["a"].links["b"]
    assert link.outbox
    assert not link.failed
    assert link.stream_held
    net.handle("b", Pressure())
    net.run()
    net.wait(2.0)
    assert [event["p"] for event in net.delivered("ann")] == list(range(40))
    assert not link.outbox
