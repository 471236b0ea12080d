"""Brokers' own events reach who asks for them, beside schemas, advertisements and every strategy."""

from __future__ import annotations

import pytest

from covey.events import Attribute, Schema
from covey.relations.merging import MergingPolicy
from covey.relations.subsumption import Number, Space
from covey.routing import MergingOptions, SubsumptionOptions
from covey.routing.messages import Advertise
from tests.routing.harness import Net

LINE = [("a", "b"), ("b", "c")]
SCHEMAS = {
    "no schema": None,
    "a mandatory attribute": Schema({"price": Attribute("double", mandatory=True)}),
    "names of theirs": Schema({"id": "int", "client": "int", "broker": Attribute("int", mandatory=True)}),
    "types": Schema(
        {"price": "double", "type": Attribute("string", mandatory=True)},
        type_attribute="type",
        mandatory_by_type={"quote": ["price"]},
    ),
}


def network(strategy: str, **options: object) -> Net:
    return Net(
        LINE, strategy=strategy, meta_events=True, merging=MergingOptions(policy=MergingPolicy(at_arrivals=1)),
        subsumption=SubsumptionOptions(Space([Number("price")])), **options,
    )  # fmt: skip


@pytest.mark.parametrize("wanted", ["`covey.meta` = 'subscribed'", "price IS NULL", "NOT `covey.meta` = 'gone'"])
@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("strategy", ["flooding", "simple", "identity", "covering", "subsumption", "merging"])
@pytest.mark.parametrize("advertisements", [False, True])
def test_they_come_whatever_else_is_asked_for(strategy: str, schema: str, advertisements: bool, wanted: str) -> None:
    """What the others ask for covers it among the events that a schema allows, but not among brokers' own."""
    net = network(strategy, schema=SCHEMAS[schema], advertisements=advertisements)
    net.join("c", "cat")
    for at, text in enumerate((wanted, "type IS NOT NULL", "price <= 5 OR price > 5 OR size = 1", "broker IS NULL")):
        net.join("a", f"ann{at}")
        assert net.subscribe("a", f"ann{at}", "s", text)
    net.wait(2.0)
    assert net.subscribe("c", "cat", "mine", "price > 150")
    net.wait(2.0)
    events = [net.delivered(f"ann{at}") for at in range(4)]
    heard = [[event["covey.meta"] for event in some if event["client"] == "cat"] for some in events]
    assert heard == [["subscribed"], [], [], []]


def test_subscriptions_go_only_where_something_is_advertised_for_them() -> None:
    net = network("covering", advertisements=True)
    net.join("a", "ann")
    net.join("c", "cat")
    net.say("c", "cat", Advertise(1, "all", "price > 100"))
    assert net.subscribe("a", "ann", "low", "price < 50")
    assert net.subscribe("a", "ann", "high", "price > 150 AND size = 3 OR volume < 2")
    assert net.subscribe("a", "ann", "other", "volume < 2 AND NOT size = 1")
    assert net.subscribe("a", "ann", "theirs", "client = 'cat' OR volume < 2")
    assert net.held("c", "b") == sorted(["client = 'cat' OR volume < 2", "price > 150 AND size = 3 OR volume < 2"])


def test_defaults_stand_in_for_what_they_lack() -> None:
    net = Net(
        LINE, strategy="covering", meta_events=True, advertisements=True, semantics="default", defaults={"price": 1.0}
    )
    net.join("a", "ann")
    net.join("c", "cat")
    assert net.subscribe("a", "ann", "s", "price < 5")
    net.subscribe("c", "cat", "t", "price = 9")
    assert [event["filter"] for event in net.delivered("ann") if event["client"] == "cat"] == ["price = 9"]
