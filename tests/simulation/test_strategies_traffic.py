"""Every strategy on the same small workload: what clients get is the same, what brokers say and keep isn't."""

from __future__ import annotations

from functools import cache

import pytest
from benchmarks.strategies.measure import Measured, Strategy, expected, measure, strategies
from benchmarks.strategies.workload import Workload, generate

from covey.errors import CoveyError
from covey.routing.loading import TableEntry
from covey.simulation.traffic import Network, line, tree

NAMES = [strategy.name for strategy in strategies(generate(1, 1))]


@cache
def workload() -> Workload:
    return generate(50, 150)


@cache
def measured(name: str) -> Measured:
    found: dict[str, Strategy] = {strategy.name: strategy for strategy in strategies(workload())}
    return measure(found[name], workload())


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_clients_get_what_an_index_says_and_nothing_else(name: str) -> None:
    got = measured(name).publishing
    assert (got.deliveries, got.matches) == expected(workload())
    assert got.false_deliveries == 0


@pytest.mark.thorough
def test_flooding_says_nothing_and_sends_everything_everywhere() -> None:
    found = measured("flooding")
    assert found.subscribing.control_messages == found.subscribing.control_bytes == 0
    assert found.publishing.entries == 0
    assert found.publishing.forwarded == 150 * 6


@pytest.mark.thorough
@pytest.mark.parametrize("suffix", ["", "; advertisements"])
def test_each_strategy_keeps_at_most_what_the_one_before_it_keeps(suffix: str) -> None:
    names = ["simple", "identity", "covering", "perfect merging", "imperfect merging, 0.1"]
    entries = [measured(name + suffix).publishing.entries for name in names]
    assert entries == sorted(entries, reverse=True)
    assert entries[0] > entries[-1]
    subsumed = measured(f"subsumption{suffix}").publishing.entries
    assert subsumed <= measured(f"subsumption, approximate{suffix}").publishing.entries <= entries[2]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["simple", "identity", "covering", "perfect merging", "subsumption"])
def test_exact_strategies_send_nothing_in_vain(name: str) -> None:
    got = measured(name).publishing
    assert got.false_positives == 0
    assert got.forwarded == measured("simple").publishing.forwarded


@pytest.mark.thorough
@pytest.mark.parametrize("dimension", ["network", "memory", "throughput"])
def test_pruning_keeps_fewer_predicates_and_sends_more(dimension: str) -> None:
    whole, pruned = measured("covering").publishing, measured(f"covering, pruned for {dimension}").publishing
    assert pruned.entries == whole.entries
    assert pruned.predicates < whole.predicates
    assert pruned.forwarded == whole.forwarded + pruned.false_positives


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in NAMES if "; " not in name and name != "flooding"])
def test_advertisements_keep_subscriptions_from_where_nothing_is_published(name: str) -> None:
    without, restricted = measured(name), measured(f"{name}; advertisements")
    assert restricted.publishing.entries < without.publishing.entries
    assert restricted.subscribing.control_messages < without.subscribing.control_messages


def test_a_false_positive_is_an_event_that_nobody_beyond_a_link_got() -> None:
    network = Network(line(3), strategy="flooding")
    for at in (1, 2, 3):
        network.join(f"c{at}", f"b{at}")
    network.subscribe("c2", {"s": "x > 0"})
    network.publish("c1", [{"x": 1}, {"x": -1}])
    found = network.traffic()
    assert found.forwarded == 4
    # The first event is wanted at b2 and in vain at b3, the second one is in vain on both links.
    assert found.false_positives == 3
    assert found.deliveries == 1


def test_counts_start_anew_and_tables_stay() -> None:
    network = Network(line(2), strategy="simple")
    network.join("ann", "b1")
    network.subscribe("ann", {"s": "x > 0", "t": "x > 1"})
    assert network.traffic().messages["Delta"] == 2
    network.reset()
    found = network.traffic()
    assert (found.control_messages, found.entries, found.tables["b2"].neighbours) == (0, 2, 2)
    network.unsubscribe("ann", ["s"])
    assert network.traffic().entries == 1


def test_a_refusal_is_an_error() -> None:
    network = Network(tree(3))
    network.join("ann", "b1")
    with pytest.raises(CoveyError, match="ann: there is no subscription 's'"):
        network.unsubscribe("ann", ["s"])


def test_a_load_is_one_change_and_its_entries_stand_for_it() -> None:
    network = Network(line(3), strategy="simple")
    network.join("ann", "b1")
    network.join("shop", "b3")
    texts = {f"s{at}": f"x = {at}" for at in range(100)}
    network.load("ann", texts, [TableEntry("all", "x < 100", tuple(texts))])
    assert network.traffic().messages["Delta"] == 2
    network.publish("shop", [{"x": at} for at in range(-50, 150)])
    found = network.traffic()
    assert found.tables["b3"].neighbours == 1
    assert (found.deliveries, found.matches, found.false_deliveries) == (100, 100, 0)
    assert found.false_positives == 2 * 50


def test_a_load_of_more_than_a_request_does_at_once_is_there_whole() -> None:
    network = Network(line(2), strategy="simple")
    network.join("ann", "b1")
    network.join("shop", "b2")
    for count in (1_000, 500):
        network.load("ann", {f"s{at}": f"x = {at}" for at in range(count)})
        assert network.traffic().tables["b2"].neighbours == count
        network.reset()
        network.publish("shop", [{"x": at} for at in range(2_000)])
        assert network.traffic().deliveries == count
