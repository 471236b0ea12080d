"""Events without durability on a link: a window in bytes, which opens again whatever was lost within a session."""

from __future__ import annotations

import pytest

from covey.routing import BrokerLimits, Timing
from covey.routing.inspection import link_views
from covey.routing.messages import Events, Ping, Taken
from tests.routing.harness import Net

WEIGHT = "x" * 400
TIMING = Timing(retry=0.5, failed=60.0)


def network() -> Net:
    net = Net([("a", "b")], timing=TIMING, limits=BrokerLimits(events_flying_bytes=1_000))
    net.join("a", "ann")
    net.join("b", "bob")
    assert net.subscribe("a", "ann", "s", "p < 12")
    return net


def publish(net: Net, *prices: int) -> None:
    for price in prices:
        assert net.publish("b", "bob", {"p": price, "weight": WEIGHT})


def prices(net: Net) -> list[int]:
    return [event["p"] for event in net.delivered("ann")]


def lose(net: Net, *kinds: type) -> None:
    """Let no message of these kinds through from now on, without either end noticing."""
    net.lost = kinds


@pytest.mark.parametrize("kind", [Events, Taken])
def test_a_window_that_a_lost_message_has_closed_opens_with_the_next_ping(kind: type) -> None:
    net = network()
    lose(net, kind)
    publish(net, 1, 2, 3, 4, 5, 6)
    lose(net)
    before = len(prices(net))
    publish(net, 7, 8)
    assert len(prices(net)) == before, "the window was to be closed"
    net.wait(3.0)
    # Three fill the window; what waited behind them was never lost.
    assert prices(net) == ([1, 2, 3, 4, 5, 6, 7, 8] if kind is Taken else [4, 5, 6, 7, 8])


def test_a_ping_asks_only_where_something_is_on_the_way() -> None:
    net = network()
    publish(net, 1, 2, 3, 4)
    net.wait(3.0)
    net.passed.clear()
    net.wait(3.0)
    pings = [message for _, _, message in net.passed if isinstance(message, Ping)]
    assert pings
    assert not any(ping.events for ping in pings)


def test_events_for_a_neighbour_that_is_not_there_or_takes_too_little_are_counted() -> None:
    net = network()
    view = lambda: next(view for view in link_views(net.brokers["b"]) if view.peer == "a")  # noqa: E731
    publish(net, 1)
    assert view().dropped == 0
    net.disconnect("a", "b")
    publish(net, 2, 20, 3)
    assert view().dropped == 2, "nobody asked for the second of these"
    net.connect("a", "b")
    lose(net, Taken)
    publish(net, 4, 5, 6, 7, 8)
    net.disconnect("a", "b")
    assert view().dropped == 4, "three were on their way, and two waited"
