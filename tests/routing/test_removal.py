"""What is removed is gone: deliveries of subscriptions that ended, clients of whom nothing is left, old publishers."""

from __future__ import annotations

import pytest

from covey.routing.config import Timing
from covey.routing.messages import Publication, Publish
from tests.routing.harness import Net


def spaces(net: Net) -> dict[str, int]:
    found: dict[str, int] = {}
    for space, _ in net.rows["a"]:
        found[space] = found.get(space, 0) + 1
    return found


@pytest.mark.parametrize("away", [True, False])
def test_ending_the_only_subscription_frees_all_that_waits_for_it(away: bool) -> None:
    net = Net([], timing=Timing(remember=1.0))
    net.join("a", "ann")
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    if away:
        net.part("a", "ann")
    net.join("a", "pub")
    for number in range(3_000):
        net.publish("a", "pub", {"p": number}, durable=True)
    net.part("a", "pub")
    if away:
        net.join("a", "ann")
    assert net.unsubscribe("a", "ann", "s")
    client = net.brokers["a"].clients.get("ann")
    assert client is not None
    assert (len(client.queue), client.queue_bytes, len(client.waiting)) == (0, 0, 0)
    net.part("a", "ann")
    net.wait(2.0)
    assert len(net.brokers["a"].events) == net.brokers["a"].events.bytes == 0
    assert spaces(net).keys() <= {"broker", "topology"}


def test_what_another_subscription_asks_for_stays() -> None:
    net = Net([])
    net.join("a", "ann")
    net.join("a", "pub")
    net.subscribe("a", "ann", "even", "even = TRUE", durable=True)
    net.subscribe("a", "ann", "small", "p < 10", durable=True)
    net.part("a", "ann")
    for number in range(100):
        net.publish("a", "pub", {"p": number, "even": number % 2 == 0}, durable=True)
    net.join("a", "ann")
    already = len(net.delivered("ann"))
    net.unsubscribe("a", "ann", "even")
    client = net.brokers["a"].clients.get("ann")
    assert client is not None
    assert [row.number for row in client.queue] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert client.waiting == {"small": 10, "even": 5}
    net.restart("a")
    net.join("a", "ann")
    assert [event["p"] for event in net.delivered("ann")[already:]] == list(range(10))


def test_a_queue_is_looked_through_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net([])
    net.join("a", "ann")
    net.join("a", "pub")
    ids = [f"s{number}" for number in range(200)]
    for number, id in enumerate(ids):
        net.subscribe("a", "ann", id, f"p = {number}", durable=True)
    net.part("a", "ann")
    for number in range(200):
        net.publish("a", "pub", {"p": number}, durable=True)
    net.join("a", "ann")
    queues = net.brokers["a"].clients.queues
    sweep, looked = queues._sweep, []
    monkeypatch.setattr(queues, "_sweep", lambda client: (looked.append(len(client.queue)), sweep(client)))
    for id in ids:
        net.unsubscribe("a", "ann", id)
    assert sum(looked) <= 5 * 200
    assert not net.brokers["a"].clients.get("ann").queue  # type: ignore[union-attr]


def test_a_publisher_with_a_name_is_forgotten_after_a_time() -> None:
    net = Net([], timing=Timing(remember=1.0, forget_publisher=100.0))
    net.join("a", "pub")
    net.say("a", "pub", Publish(1, [Publication({"p": 1}, True, 7)]))
    net.part("a", "pub")
    net.wait(50.0)
    net.restart("a")
    assert net.brokers["a"].clients.get("pub").published == 7  # type: ignore[union-attr]
    net.wait(45.0)
    assert net.brokers["a"].clients.get("pub") is not None
    net.wait(20.0)
    assert net.brokers["a"].clients.get("pub") is None
    assert "client" not in spaces(net)
    assert net.brokers["a"].wake_at == float("inf")
