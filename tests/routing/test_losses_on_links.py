"""Whatever is lost of events without durability between brokers, clients behind it hear how much it was."""

from __future__ import annotations

from itertools import pairwise

import pytest

from covey.routing import BrokerLimits, ClientUp, Timing
from covey.routing.messages import CAPABILITIES, Events, FromPeer, Hello, Lost, Taken
from covey.routing.queues import LOST_SECONDS
from tests.routing.harness import Net

WEIGHT = "x" * 400
TIMING = Timing(retry=0.5, failed=60.0)
LIMITS = BrokerLimits(events_flying_bytes=1_000, link_buffer_bytes=2_000)


def network(*names: str) -> Net:
    """Brokers in a line: Ann at the first wants something, Bob publishes at the last."""
    net = Net(list(pairwise(names)), timing=TIMING, limits=LIMITS)
    join(net, names[0], "ann")
    assert net.subscribe(names[0], "ann", "s", "p >= 0")
    join(net, names[-1], "bob")
    return net


def join(net: Net, broker: str, client: str) -> None:
    net.handle(broker, ClientUp(client, capabilities=CAPABILITIES))
    net.run()


def publish(net: Net, broker: str, count: int) -> None:
    for at in range(count):
        assert net.publish(broker, "bob", {"p": at, "weight": WEIGHT})


def lost(net: Net, client: str) -> int:
    """What a client has heard of, after it must have."""
    net.wait(LOST_SECONDS + TIMING.retry)
    return sum(answer.events for answer in net.heard.get(client, []) if isinstance(answer, Lost))


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_all_that_a_link_was_not_there_for_is_told_when_it_is_back(names: str) -> None:
    net = network(*names)
    publish(net, names[-1], 2)
    net.disconnect(names[-2], names[-1])
    publish(net, names[-1], 5)
    assert lost(net, "ann") == 0, "nobody can know before"
    net.connect(names[-2], names[-1])
    assert lost(net, "ann") == 5
    publish(net, names[-1], 2)
    assert lost(net, "ann") == 5
    assert len(net.delivered("ann")) == 4
    assert lost(net, "bob") == 0, "who asks for nothing misses nothing"


def test_what_is_on_its_way_when_a_connection_breaks_counts_only_if_it_did_not_come() -> None:
    net = network("a", "b")
    net.lost = (Taken,)
    publish(net, "b", 1)
    net.disconnect("a", "b")
    net.connect("a", "b")
    assert len(net.delivered("ann")) == 1
    assert lost(net, "ann") == 0, "it came, though nobody said so"
    net.lost = (Events,)
    publish(net, "b", 2)
    net.lost = ()
    net.disconnect("a", "b")
    net.connect("a", "b")
    assert lost(net, "ann") == 2


def test_what_a_full_window_drops_is_told() -> None:
    net = network("a", "b", "c")
    net.lost = (Taken,)
    publish(net, "c", 20)
    net.lost = ()
    net.wait(5.0)
    dropped = net.brokers["c"].links["b"].events.dropped
    assert dropped > 0
    assert lost(net, "ann") == dropped
    assert len(net.delivered("ann")) == 20 - dropped


def test_losses_are_told_in_one_message_for_a_while() -> None:
    net = network("a", "b")
    for _ in range(5):
        net.disconnect("a", "b")
        publish(net, "b", 1)
        net.connect("a", "b")
    assert lost(net, "ann") == 5
    assert len([answer for answer in net.heard["ann"] if isinstance(answer, Lost)]) <= 2


def test_nothing_is_told_of_another_life() -> None:
    net = network("a", "b")
    publish(net, "b", 3)
    for name in "ba":
        net.restart(name)
        net.now += 1.0
    join(net, "a", "ann")
    assert net.subscribe("a", "ann", "s", "p >= 0")
    assert lost(net, "ann") == 0


def test_who_speaks_the_former_protocol_hears_nothing_of_it() -> None:
    net = network("a", "b")
    net.join("a", "old")
    assert net.subscribe("a", "old", "s", "p >= 0")
    net.disconnect("a", "b")
    publish(net, "b", 1)
    net.connect("a", "b")
    assert lost(net, "old") == 0
    assert lost(net, "ann") == 1
    old = Hello("b", [[], []], 0, 0, answer=True)
    net.disconnect("a", "b")
    net.connect("a", "b")
    net.handle("a", FromPeer("b", old))
    net.handle("a", FromPeer("b", Events([])))
    assert lost(net, "ann") == 1


def test_the_news_of_a_loss_goes_no_further_than_it_may() -> None:
    net = network("a", "b", "c")
    last = net.brokers["c"].links["b"].events.meant
    net.handle("b", FromPeer("c", Events([], last + 4, 1)))
    net.run()
    assert lost(net, "ann") == 3
    net.handle("b", FromPeer("c", Events([], last + 6, 0)))
    net.run()
    assert lost(net, "ann") == 3, "one link too far"
