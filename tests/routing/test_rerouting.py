"""Another strategy, or other options, while a broker runs: tables follow behind, and nothing is wrong meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from covey.filters.algebra import Filter
from covey.language import parse
from covey.relations.merging import MergingPolicy
from covey.relations.steps import Budget
from covey.relations.subsumption import Nominal, Number, Space
from covey.routing import BrokerConfig, BrokerLimits, MergingOptions, PruningOptions, SubsumptionOptions
from covey.routing.config import STRATEGIES, AdaptiveFiltering, Strategy
from covey.routing.exports import Export, subscription_export
from covey.routing.inspection import link_views
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import Reroute, Work
from covey.routing.strategies import subscription_stages
from covey.simulation.scenarios import KINDS, random_filter
from covey.simulation.uniform_chances import UniformChances
from tests.routing.harness import Net

CHANGING = [strategy for strategy in STRATEGIES if strategy != "flooding"]
SPACE = SubsumptionOptions(Space([Nominal("k", list(KINDS)), Number("p")]))
WORLD = [{"k": kind, "p": price} for kind, price in product(KINDS, range(-1, 31))]


def options(strategy: Strategy, imt: float = 0.0, **others: Any) -> BrokerConfig:
    merging = MergingOptions(imt, MergingPolicy(at_arrivals=2))
    return BrokerConfig("a", strategy=strategy, merging=merging, subsumption=SPACE, **others)


def matched(filters: Iterable[Filter]) -> set[int]:
    filters = list(filters)
    return {at for at, event in enumerate(WORLD) if any(condition.matches(event) for condition in filters)}


def settle(export: Export, known: KnownFilters) -> None:
    for _ in range(10_000):
        if not export.behind:
            return
        known.budget = Budget(50, is_for_work=True)
        export.work(0.0)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("seed", range(6))
def test_an_export_tells_enough_all_the_while_and_in_the_end_what_a_new_one_would(seed: int) -> None:
    rng = random.Random(seed)
    config = options(rng.choice(CHANGING))
    known = KnownFilters.under(config)
    known.budget = Budget(rng.choice([0, 30, 4_000]))
    export = subscription_export(config, known)
    entries: dict[str, str] = {}
    announced: dict[str, str] = {}
    for _ in range(60):
        known.budget = Budget(rng.choice([0, 0, 5, 40]), is_for_work=True)
        match rng.randrange(5):
            case 0:
                config = options(rng.choice(CHANGING))
                export.restage(lambda config=config: subscription_stages(config, known), 0.0)  # type: ignore[misc]
            case 1:
                export.work(0.0)
            case 2 if entries:
                gone = rng.choice(sorted(entries))
                del entries[gone]
                export.change({}, [gone], 0.0)
            case _:
                text = random_filter(rng)
                key = f"c:x\n{rng.randrange(3)} {text}"  # another filter is another entry
                entries[key] = text
                export.change({key: parse(text)}, [], 0.0)
        wanted = matched(map(parse, entries.values()))
        assert wanted <= matched(export.outcome.values())
        added, removed = export.changes(rng.choice([1, 3, None]))
        announced |= {entry.key: entry.filter for entry in added}
        for key in removed:
            del announced[key]
        if not export.has_changed:
            assert wanted <= matched(map(parse, announced.values()))
    settle(export, known)
    assert matched(export.outcome.values()) == matched(map(parse, entries.values()))
    fresh = subscription_export(config, known)
    known.budget = Budget(10**9)
    fresh.change({key: parse(text) for key, text in entries.items()}, [], 0.0)
    settle(fresh, known)
    if config.strategy in ("simple", "identity", "covering"):
        assert len(export.outcome) == len(fresh.outcome)


def test_what_neighbours_hold_is_what_it_was_until_the_new_tables_are_there() -> None:
    net = Net([("a", "b")], strategy="simple", limits=BrokerLimits(request_steps=0))
    net.join("a", "ann")
    for number in range(40):
        net.subscribe("a", "ann", f"s{number}", f"p < {number}")
    net.passed.clear()
    net.handle("a", Reroute.to(options("covering")))
    net.run()
    assert len(net.held("b", "a")) == 40
    assert net.brokers["a"].config.strategy == "covering"
    for _ in range(200):
        if len(net.held("b", "a")) < 40:
            break
        assert net.brokers["a"].behind
        net.handle("a", Work(50))
        net.run()
    assert net.held("b", "a") == ["p < 39"]
    assert not net.brokers["a"].behind


def test_events_go_where_they_should_between_brokers_that_change_one_after_the_other() -> None:
    rng = random.Random(4)
    net = Net(
        [("a", "b"), ("b", "c")], subsumption=SPACE, chances=UniformChances(), limits=BrokerLimits(request_steps=20)
    )
    for name in "abc":
        net.join(name, f"at-{name}")
    filters = {f"at-{name}": [random_filter(rng) for _ in range(6)] for name in "abc"}
    for client, texts in filters.items():
        for number, text in enumerate(texts):
            net.subscribe(client[-1], client, str(number), text, durable=number % 2 == 0)
    published: list[dict[str, Any]] = []
    for _ in range(60):
        name = rng.choice("abc")
        match rng.randrange(3):
            case 0:
                config = options(
                    rng.choice(CHANGING), rng.choice([0.0, 0.3]), chances=UniformChances(),
                    pruning=rng.choice([None, PruningOptions(share=0.5)]),
                    adaptive=rng.choice([None, AdaptiveFiltering(0.6, 0.3, 4)]),
                )  # fmt: skip
                net.handle(name, Reroute.to(config))
                net.run()
            case 1:
                net.handle(name, Work(rng.choice([1, 30, 500])))
                net.run()
            case _:
                event = {**rng.choice(WORLD), "n": len(published)}
                published.append(event)
                assert net.publish(name, f"at-{name}", event, durable=rng.random() < 0.5)
    for client, texts in filters.items():
        wanted = [event for event in published if any(parse(text).matches(event) for text in texts)]
        assert [event["n"] for event in net.delivered(client)] == [event["n"] for event in wanted]


def test_pruned_entries_are_whole_again_where_pruning_ends() -> None:
    pruned = {"pruning": PruningOptions(share=1.0), "chances": UniformChances()}
    net = Net([("a", "b")], **pruned)
    net.join("b", "bob")
    net.subscribe("b", "bob", "s", "k = 'a' AND p < 5")
    entries = net.brokers["a"].table.entries("p:b")
    assert list(map(str, entries.values())) != ["k = 'a' AND p < 5"]
    net.handle("a", Reroute.to(options("covering", chances=UniformChances())))
    assert list(map(str, net.brokers["a"].table.entries("p:b").values())) == ["k = 'a' AND p < 5"]
    assert net.brokers["a"].pruning is None
    net.handle("a", Reroute.to(options("covering", **pruned)))
    assert list(map(str, net.brokers["a"].table.entries("p:b").values())) != ["k = 'a' AND p < 5"]


def test_filtering_goes_on_where_it_was_given_up() -> None:
    net = Net([("a", "b")], adaptive=AdaptiveFiltering(0.6, 1.0, 4))
    net.join("a", "ann")
    net.join("b", "bob")
    net.subscribe("b", "bob", "s", "p < 5")
    for _ in range(8):
        net.publish("a", "ann", {"p": 1})
    assert not link_views(net.brokers["a"])[0].filtering
    net.handle("a", Reroute.to(options("covering")))
    assert link_views(net.brokers["a"])[0].filtering
    net.passed.clear()
    net.publish("a", "ann", {"p": 9})
    net.publish("a", "ann", {"p": 2})
    assert [event["p"] for event in net.delivered("bob")] == [1] * 8 + [2]
    assert sum(type(message).__name__ == "Events" for *_, message in net.passed) == 1
