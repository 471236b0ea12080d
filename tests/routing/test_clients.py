from __future__ import annotations

from typing import Any

import pytest

from covey.events import Attribute, Schema
from covey.routing import BrokerLimits, Permissions, Timing
from covey.routing.messages import (
    Acknowledge,
    Advertise,
    Confirmed,
    Credit,
    Deliver,
    Gap,
    Publication,
    Publish,
    Welcome,
)
from tests.routing.harness import Net


def one_broker(**options: Any) -> Net:
    net = Net([], **options)
    net.join("a", "ann")
    net.join("a", "pub")
    return net


def numbers(net: Net) -> list[tuple[int, int]]:
    return [(answer.number, answer.attributes["p"]) for answer in net.heard["ann"] if isinstance(answer, Deliver)]


def test_a_durable_subscription_gets_what_came_while_its_client_was_away() -> None:
    net = one_broker()
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.part("a", "ann")
    net.publish("a", "pub", {"p": 1}, {"p": 2})
    net.restart("a")
    net.join("a", "ann")
    assert numbers(net) == [(1, 1), (2, 2)]


def test_what_is_not_acknowledged_comes_again_with_the_same_number() -> None:
    net = one_broker()
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.publish("a", "pub", {"p": 1}, {"p": 2}, {"p": 3})
    net.say("a", "ann", Acknowledge(2))
    net.restart("a")
    net.join("a", "ann")
    assert numbers(net) == [(1, 1), (2, 2), (3, 3), (3, 3)]


def test_a_subscription_without_durability_ends_with_its_session() -> None:
    net = one_broker()
    net.subscribe("a", "ann", "s", "p >= 0")
    net.part("a", "ann")
    net.publish("a", "pub", {"p": 1})
    net.join("a", "ann")
    net.publish("a", "pub", {"p": 2})
    assert numbers(net) == []


def test_what_waits_for_a_subscription_that_ended_or_changed_is_not_delivered() -> None:
    net = one_broker(limits=BrokerLimits(credit=1))
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.subscribe("a", "ann", "t", "p < 0")
    net.publish("a", "pub", {"p": 1}, {"p": 2}, {"p": 30}, {"p": -1})
    net.subscribe("a", "ann", "s", "p > 10", durable=True)
    net.unsubscribe("a", "ann", "t")
    net.say("a", "ann", Credit(10))
    assert [price for _, price in numbers(net)] == [1, 30]


def test_a_queue_beyond_its_limit_drops_the_oldest_and_says_so() -> None:
    net = one_broker(limits=BrokerLimits(queue=3))
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    net.part("a", "ann")
    net.publish("a", "pub", *({"p": number} for number in range(5)))
    net.join("a", "ann")
    assert [price for _, price in numbers(net)] == [2, 3, 4]
    assert Gap(2) in net.heard["ann"]


def test_a_publication_that_is_sent_again_is_published_once() -> None:
    net = one_broker()
    net.subscribe("a", "ann", "s", "p >= 0", durable=True)
    events = [Publication({"p": number}, True, number) for number in (1, 2)]
    net.say("a", "pub", Publish(90, events))
    net.restart("a")
    net.join("a", "pub")
    assert [answer.published for answer in net.heard["pub"] if isinstance(answer, Welcome)] == [0, 2]
    net.say("a", "pub", Publish(91, [*events, Publication({"p": 3}, True, 3)]))
    assert Confirmed(91) in net.heard["pub"]
    net.join("a", "ann")
    assert [price for _, price in numbers(net)][-3:] == [1, 2, 3]


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [({"p": 1, "k": "x"}, True), ({"p": 1, "k": "y"}, False), ({"p": 1}, False)],
)
def test_a_principal_publishes_only_what_its_permission_matches(attributes: dict[str, Any], allowed: bool) -> None:
    net = one_broker()
    net.join("a", "pub", Permissions(publish="k = 'x'"))
    net.subscribe("a", "ann", "s", "p >= 0")
    assert net.publish("a", "pub", attributes) is allowed
    assert bool(net.delivered("ann")) is allowed


def test_a_principal_subscribes_and_advertises_only_within_its_permission() -> None:
    net = one_broker()
    net.join("a", "ann", Permissions(subscribe="team = 'red'", advertise="team = 'red' AND p < 5"))
    assert net.subscribe("a", "ann", "s", "team = 'red' AND p < 5")
    assert not net.subscribe("a", "ann", "t", "p < 5")
    assert not net.subscribe("a", "ann", "u", "team = 'red' OR p < 5")
    net.say("a", "ann", Advertise(50, "x", "team = 'red' AND p = 1"))
    net.say("a", "ann", Advertise(51, "y", "team = 'red'"))
    assert Confirmed(50) in net.heard["ann"]
    assert [("more than is allowed" in reason) for reason in net.refusals("ann")] == [True, True, True]


def test_mistakes_are_refused_with_a_reason_and_change_nothing() -> None:
    net = one_broker(limits=BrokerLimits(subscriptions=1, publications=2))
    assert not net.subscribe("a", "ann", "s", "p <")
    assert net.subscribe("a", "ann", "s", "p < 5")
    assert not net.subscribe("a", "ann", "t", "p < 5")
    assert not net.unsubscribe("a", "ann", "nothing")
    assert not net.subscribe("a", "ann", "s", "p < 5", lease=float("nan"))
    assert not net.subscribe("a", "ann", "s", "p < 5", lease=-1.0)
    assert not net.publish("a", "pub", {"p": 1}, {"p": 1}, {"p": 1})
    assert not net.publish("a", "pub", {"p": {1, 2}})
    assert not net.publish("a", "pub", {"p": 2**70})
    assert net.delivered("ann") == []
    assert len(net.refusals("ann")) == 5
    assert len(net.refusals("pub")) == 3


def test_leases_are_no_longer_than_the_broker_allows() -> None:
    net = one_broker(timing=Timing(longest_lease=5.0))
    net.subscribe("a", "ann", "s", "p >= 0")
    net.wait(6.0)
    net.publish("a", "pub", {"p": 1})
    assert net.delivered("ann") == []


def test_a_client_that_connects_twice_is_in_its_last_session() -> None:
    net = one_broker()
    net.subscribe("a", "ann", "s", "p >= 0")
    net.join("a", "ann")
    net.publish("a", "pub", {"p": 1})
    assert net.delivered("ann") == []


def test_an_event_for_many_subscriptions_of_a_client_comes_once() -> None:
    net = one_broker()
    for id in "xyz":
        net.subscribe("a", "ann", id, "p >= 0", durable=id == "y")
    net.publish("a", "pub", {"p": 1})
    (delivery,) = [answer for answer in net.heard["ann"] if isinstance(answer, Deliver)]
    assert (delivery.number, sorted(delivery.subscriptions)) == (1, ["x", "y", "z"])


def test_events_are_decoded_by_the_schema_and_refused_where_they_break_it() -> None:
    schema = Schema({"p": "int", "k": Attribute("string", mandatory=True)})
    net = one_broker(schema=schema)
    net.subscribe("a", "ann", "s", "p > 2 AND k = 'x'")
    assert net.publish("a", "pub", {"p": 3, "k": "x"})
    assert not net.publish("a", "pub", {"p": 3})
    assert not net.publish("a", "pub", {"p": "many", "k": "x"})
    assert len(net.delivered("ann")) == 1
    assert not net.subscribe("a", "ann", "t", "p = 'text'")


def test_what_comes_for_durable_and_for_other_subscriptions_keeps_its_order() -> None:
    net = one_broker(limits=BrokerLimits(credit=2))
    net.subscribe("a", "ann", "kept", "p > 5", durable=True)
    net.subscribe("a", "ann", "passing", "p < 5")
    net.publish("a", "pub", *({"p": p} for p in (1, 9, 2, 8, 3)))
    net.say("a", "ann", Credit(10))
    assert [event["p"] for event in net.delivered("ann")] == [1, 9, 2, 8, 3]


def test_a_lease_outlives_its_session_and_what_it_missed_is_counted() -> None:
    net = one_broker()
    net.subscribe("a", "ann", "leased", "p >= 0", lease=10.0)
    net.subscribe("a", "ann", "passing", "p >= 0")
    net.publish("a", "pub", {"p": 1})
    net.part("a", "ann")
    net.publish("a", "pub", {"p": 2})
    net.wait(5.0)
    net.join("a", "ann")
    welcome = [answer for answer in net.heard["ann"] if isinstance(answer, Welcome)][-1]
    assert (welcome.subscriptions, welcome.meant) == (["leased"], 2)
    net.publish("a", "pub", {"p": 3})
    assert [event["p"] for event in net.delivered("ann")] == [1, 3]


def test_a_lease_ends_in_its_time_though_its_client_is_gone() -> None:
    net = one_broker()
    net.subscribe("a", "ann", "leased", "p >= 0", lease=10.0)
    net.part("a", "ann")
    net.wait(11.0)
    assert "ann" not in {client.id for client in net.brokers["a"].clients}


def test_a_delivery_names_no_subscription_that_has_ended_though_the_table_has_it_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = one_broker()
    net.subscribe("a", "ann", "kept", "p >= 0", durable=True)
    net.subscribe("a", "ann", "passing", "p >= 0")
    broker = net.brokers["a"]
    with monkeypatch.context() as patched:
        patched.setattr(broker._exporter, "end_claims", lambda *_: None)
        net.part("a", "ann")
    net.publish("a", "pub", {"p": 1})
    net.join("a", "ann")
    (delivery,) = [answer for answer in net.heard["ann"] if isinstance(answer, Deliver)]
    assert delivery.subscriptions == ["kept"]
