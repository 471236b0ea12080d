"""What subscriptions' hits count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import covey
from tests.routing.harness import Net

FILTERS = ("p >= 0", "p >= 3", "p < 3", "p = 2 OR q = 1", "q IS NULL", "NOT (p < 5)")


def hits(net: Net, broker: str = "a", client: str = "ann") -> dict[str, int]:
    net.brokers[broker].count_hits()
    found = net.brokers[broker].clients.get(client)
    assert found is not None
    return {id: claim.hits for id, claim in found.claims.subscriptions.items()}


@given(
    st.lists(st.tuples(st.sampled_from(FILTERS), st.booleans()), max_size=6), st.lists(st.integers(0, 6), max_size=9)
)
def test_hits_are_the_events_that_match(asked: list[tuple[str, bool]], values: list[int]) -> None:
    net = Net([("a", "b")])
    net.join("a", "ann")
    for broker in ("a", "b"):
        net.join(broker, f"pub-{broker}")
    for at, (text, durable) in enumerate(asked):
        net.subscribe("a", "ann", str(at), text, durable=durable)
    for at, value in enumerate(values):
        broker = "ab"[at % 2]
        net.publish(broker, f"pub-{broker}", {"p": value})
    expected = [sum(covey.parse(text).matches({"p": value}) for value in values) for text, _ in asked]
    assert list(hits(net).values()) == expected


def test_hits_go_on_while_a_client_is_away_and_when_it_asks_for_the_same_again() -> None:
    net = Net([])
    net.join("a", "ann")
    net.join("a", "pub")
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.publish("a", "pub", {"p": 1})
    net.part("a", "ann")
    net.publish("a", "pub", {"p": 2})
    net.join("a", "ann")
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    assert hits(net) == {"s": 2}
    net.subscribe("a", "ann", "s", "p > 1", durable=True)
    assert hits(net) == {"s": 0}
    net.restart("a")
    assert hits(net) == {"s": 0}
