"""Subscriptions that are taken together are made as they would have been one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from covey.routing import Broker, BrokerConfig, ClientUp, FromClient, Permissions
from covey.routing.journal import Outputs, replay
from covey.routing.messages import (
    Confirmed,
    Deliveries,
    Publication,
    Publish,
    Refused,
    Subscribe,
    Subscriptions,
    ToClient,
)
from tests.routing.harness import Net

FILTERS = st.sampled_from(["p > 3", "q = 'x' AND p < 7", "p < 7 AND q = 'x'", "p = 5 OR q = 'y'", "TRUE", "p ==> 1"])
MESSAGES = st.builds(
    Subscribe,
    st.integers(1, 1000),
    st.sampled_from(["s0", "s1", "s2", "s3"]),
    FILTERS,
    st.booleans(),
    st.sampled_from([None, None, 5.0, -1.0]),
)
EVENT = {"p": 5, "q": "x"}


def made(messages: list[list[Subscribe]], *, meta_events: bool) -> tuple[dict[Any, Any], list[Any], Broker]:
    """A broker whose client asked for these, several as one input: its rows, and what the client heard."""
    broker, outputs = Broker.restore(BrokerConfig("a", meta_events=meta_events), [], 1.0)
    rows: dict[tuple[str, str], bytes] = {}
    heard: list[Any] = []

    def take(outputs: Outputs) -> None:
        replay(rows, outputs.records)
        for send in outputs.sends:
            if isinstance(send, Deliveries):
                heard.extend(send.messages)
            elif isinstance(send, ToClient):
                heard.append(send.message)

    take(outputs)
    take(broker.handle(ClientUp("ann", Permissions(subscribe="p > 1 OR q = 'x'"), 1), 1.0))
    for some in messages:
        take(broker.handle(Subscriptions("ann", some, 1), 2.0))
    take(broker.handle(FromClient("ann", Publish(2000, [Publication(EVENT)]), 1), 2.0))
    return rows, heard, broker


@given(st.lists(MESSAGES, max_size=8), st.booleans())
def test_together_is_as_one_by_one(messages: list[Subscribe], meta_events: bool) -> None:
    rows, heard, broker = made([messages], meta_events=meta_events)
    other_rows, other_heard, other = made([[message] for message in messages], meta_events=meta_events)
    assert rows == other_rows
    if not meta_events:
        # Answers come after what they wait for, in the order of requests among the confirmed and among the refused.
        for kind in (Confirmed, Refused):
            assert [one for one in heard if type(one) is kind] == [one for one in other_heard if type(one) is kind]
        assert heard[-2:] == other_heard[-2:]
    one, two = broker.clients.get("ann"), other.clients.get("ann")
    assert one is not None
    assert two is not None
    assert one.claims == two.claims
    assert (one.filter_bytes, one.counted) == (two.filter_bytes, two.counted)
    assert broker.table.match(EVENT) == other.table.match(EVENT)


def test_subscriptions_of_a_session_that_is_over_are_left_out() -> None:
    broker, _ = Broker.restore(BrokerConfig("a"), [], 1.0)
    broker.handle(ClientUp("ann", Permissions(), 7), 1.0)
    assert not broker.handle(Subscriptions("ann", [Subscribe(1, "s", "TRUE")], 6), 1.0).sends
    assert len(broker.table) == 0


def test_all_are_confirmed_once_the_network_knows_them() -> None:
    net = Net([("a", "b"), ("b", "c")])
    net.join("a", "ann")
    net.join("c", "pub")
    messages = [Subscribe(10 + at, f"s{at}", f"p = {at} AND q = 'x'") for at in range(200)]
    net.handle("a", Subscriptions("ann", messages))
    assert not any(isinstance(one, Confirmed) for one in net.heard["ann"])
    net.run()
    assert [one.request for one in net.heard["ann"] if isinstance(one, Confirmed)] == list(range(10, 210))
    net.publish("c", "pub", {"p": 150, "q": "x"})
    assert net.delivered("ann") == [{"p": 150, "q": "x"}]
