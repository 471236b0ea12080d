"""A session that ends with many subscriptions: nobody waits for them to go, and nobody hears of them meanwhile."""

from __future__ import annotations

from covey.routing import BrokerLimits
from covey.routing.config import BrokerConfig
from covey.routing.loading import prepare
from covey.routing.messages import Work
from tests.routing.harness import Net

MANY = 300


def left() -> Net:
    """A network of two whose client ann has just gone, with more subscriptions than go at once."""
    net = Net([("a", "b")], strategy="simple", limits=BrokerLimits(request_entries=10))
    net.join("a", "ann")
    for at in range(MANY):
        net.subscribe("a", "ann", f"s{at}", f"x = {at}")
    assert len(net.held("b", "a")) == MANY
    net.part("a", "ann")
    net.run()
    return net


def finish(net: Net, steps: int = 500) -> int:
    """Let the broker get on; gives how many pieces that took."""
    pieces = 0
    while net.brokers["a"].behind:
        net.handle("a", Work(steps))
        net.run()
        pieces += 1
    return pieces


def test_they_go_in_pieces_when_there_is_time() -> None:
    net = left()
    assert net.brokers["a"].behind == MANY
    assert len(net.brokers["a"].table) == MANY
    assert finish(net) > 1
    assert (len(net.brokers["a"].table), net.held("b", "a"), len(net.brokers["a"].clients)) == (0, [], 0)


def test_few_go_at_once() -> None:
    net = Net([("a", "b")])
    net.join("a", "ann")
    net.subscribe("a", "ann", "s", "x = 1")
    net.part("a", "ann")
    net.run()
    assert (net.brokers["a"].behind, net.held("b", "a")) == (0, [])


def test_who_comes_again_gets_what_is_asked_for_then_and_nothing_of_before() -> None:
    net = left()
    net.join("a", "ann")
    net.join("a", "bob")
    net.subscribe("a", "ann", "s1", "x = 1")
    net.subscribe("a", "ann", "s2", "x = -2")
    net.publish("a", "bob", {"x": 1}, {"x": 2}, {"x": -2}, {"x": 3})
    assert net.delivered("ann") == [{"x": 1}, {"x": -2}]
    finish(net)
    net.publish("a", "bob", {"x": 1}, {"x": 2}, {"x": -2}, {"x": 3})
    assert net.delivered("ann") == 2 * [{"x": 1}, {"x": -2}]
    assert sorted(net.held("b", "a")) == ["x = -2", "x = 1"]


def test_who_goes_again_leaves_nothing_behind() -> None:
    net = left()
    net.join("a", "ann")
    for at in range(20):
        net.subscribe("a", "ann", f"s{at}", f"x = {at % 2}")
    net.part("a", "ann")
    net.run()
    finish(net)
    assert (len(net.brokers["a"].table), net.held("b", "a")) == (0, [])


def test_a_load_under_the_same_ids_stays() -> None:
    net = left()
    net.join("a", "operator")
    subscriptions = [(f"s{at}", f"x = {at}") for at in range(0, 2 * MANY, 2)]
    net.say("a", "operator", prepare(BrokerConfig("a"), "bulk", "ann", subscriptions))
    net.run()
    finish(net)
    assert sorted(net.held("b", "a")) == sorted(text for _, text in subscriptions)
    assert len(net.brokers["a"].table) == MANY


def test_what_they_counted_for_is_free_at_once() -> None:
    net = Net([], limits=BrokerLimits(request_entries=10, principal_subscriptions=MANY))
    net.join("a", "ann")
    for at in range(MANY):
        assert net.subscribe("a", "ann", f"s{at}", f"x = {at}")
    net.part("a", "ann")
    net.join("a", "bob")
    assert net.brokers["a"].behind == MANY
    assert net.subscribe("a", "bob", "s", "x = 1")
