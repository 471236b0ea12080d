"""What to prune by and how far, from measurements."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from covey import CoveyError
from covey.relations.pruning import (
    DIMENSIONS,
    CostModel,
    CountSearch,
    Dimension,
    Load,
    Pruner,
    best_count,
    choose_dimension,
)
from tests.relations.pruning.plain import Counted, share
from tests.relations.pruning.worlds import events, subscriptions

TOTAL = 10_000


@pytest.mark.parametrize(
    ("load", "current", "progress", "expected"),
    [
        (Load(memory=0.1, bandwidth=0.2, processing=0.3), None, 0.0, "network"),
        (Load(memory=0.9, bandwidth=0.2, processing=0.3), None, 0.0, "memory"),
        (Load(memory=0.1, bandwidth=0.9, processing=0.8), None, 0.0, "network"),
        (Load(memory=0.1, bandwidth=0.2, processing=1.3), None, 0.0, "throughput"),
        # A little scarcer isn't worth a change; much scarcer is.
        (Load(memory=0.85, bandwidth=0.8, processing=0.1), "network", 0.0, "network"),
        (Load(memory=0.95, bandwidth=0.8, processing=0.1), "network", 0.0, "memory"),
        # What was scarce stays the aim until it is clearly relieved.
        (Load(memory=0.65, bandwidth=0.2, processing=0.1), "memory", 0.0, "memory"),
        (Load(memory=0.5, bandwidth=0.2, processing=0.1), "memory", 0.0, "network"),
        # Where a dimension doesn't pay any more, the next one that does.
        (Load(memory=0.1, bandwidth=0.2, processing=1.0), "throughput", 0.5, "network"),
        (Load(memory=0.9, bandwidth=0.2, processing=1.0), "throughput", 0.5, "memory"),
        (Load(memory=0.9, bandwidth=0.2, processing=1.0), "memory", 0.8, "network"),
    ],
)
def test_the_dimension_is_that_of_the_scarcest_resource(
    load: Load, current: Dimension | None, progress: float, expected: Dimension
) -> None:
    assert choose_dimension(load, current, progress) == expected


def test_a_load_that_is_no_share_is_an_error() -> None:
    with pytest.raises(CoveyError, match="network"):
        choose_dimension(Load(0.1, float("nan"), 0.1))


def bowl(count: int) -> float:
    return 1.0 + ((count - 3_700) / TOTAL) ** 2


def bend(count: int) -> float:
    """As in the paper: falling steadily, then sharply up."""
    share = count / TOTAL
    return 10.0 - 6.0 * share + (200.0 * (share - 0.75) ** 2 if share > 0.75 else 0.0)


def falling(count: int) -> float:
    return 2.0 - count / TOTAL


def rising(count: int) -> float:
    return 1.0 + count / TOTAL


def flat_then_up(count: int) -> float:
    return 1.0 + max(0, count - 6_000) / TOTAL


CURVES = [bowl, bend, falling, rising, flat_then_up]


def searched(cost: Callable[[int], float], search: CountSearch) -> tuple[int, int]:
    """The count found, and how many measurements it took."""
    measured = 0
    while not search.settled:
        search.observe(cost(search.decide()))
        measured += 1
        assert measured < 1_000
    return search.best, measured


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("points", [4, 5, 9])
def test_the_search_finds_the_bottom_of_a_curve_to_the_resolution(curve: Callable[[int], float], points: int) -> None:
    best, measured = searched(curve, CountSearch(TOTAL, points=points, resolution=0.01))
    lowest = min(range(TOTAL + 1), key=curve)
    assert curve(best) <= min(curve(min(TOTAL, lowest + 100)), curve(max(0, lowest - 100)))
    assert measured < 40


def test_the_search_finds_the_one_best_count_when_asked_for_it() -> None:
    assert searched(bowl, CountSearch(TOTAL, resolution=1 / TOTAL))[0] == 3_700


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("seed", range(5))
def test_noise_costs_little(curve: Callable[[int], float], seed: int) -> None:
    rng = random.Random(seed)
    best, _ = searched(lambda count: curve(count) * rng.gauss(1, 0.03), CountSearch(TOTAL, repeats=5))
    assert curve(best) <= 1.05 * min(map(curve, range(TOTAL + 1)))


def test_a_wild_measurement_is_outvoted() -> None:
    wild = iter([True])
    best, _ = searched(
        lambda count: 0.0 if count == 0 and next(wild, False) else bend(count), CountSearch(TOTAL, repeats=3)
    )
    assert bend(best) <= 1.02 * min(map(bend, range(TOTAL + 1)))


def test_of_equal_counts_the_least_pruned_is_chosen() -> None:
    assert searched(lambda _: 1.0, CountSearch(TOTAL))[0] == 0


def test_once_settled_the_search_stays_until_the_cost_drifts() -> None:
    search = CountSearch(TOTAL, drift=0.2)
    best, _ = searched(bend, search)
    for _ in range(10):
        search.observe(bend(search.decide()) * 1.1)
        assert search.decide() == best
    search.observe(bend(best) * 5)
    assert search.settled  # one outlier isn't a drift
    while search.settled:
        search.observe(rising(search.decide()) * 100)
    assert searched(rising, search)[0] == 0


def test_with_nothing_to_prune_nothing_is_searched() -> None:
    assert searched(bowl, CountSearch(0)) == (0, 1)


def test_a_search_that_makes_no_sense_is_an_error() -> None:
    with pytest.raises(CoveyError, match="points=3"):
        CountSearch(TOTAL, points=3)
    with pytest.raises(CoveyError, match="finite"):
        CountSearch(TOTAL).observe(float("inf"))


SAMPLE = events(1, 40)
FILTERS = subscriptions(8, 25)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("counted", [False, True])
def test_the_best_count_is_about_as_good_as_the_best_of_all_counts(dimension: Dimension, counted: bool) -> None:
    chances = Counted(SAMPLE)
    pruner = Pruner(FILTERS, chances, dimension)
    model = CostModel(per_association=1.0, per_false_match=1_000.0, chances=chances if counted else None)
    costs = [model(pruner)]
    while pruner.prune(1):
        costs.append(model(pruner))
    found = best_count(pruner, model)
    assert found.cost == costs[found.count] == model(pruner)
    assert pruner.pruned == found.count
    assert (found.count, found.cost) in found.curve
    assert found.cost <= min(costs) + 0.1 * (max(costs) - min(costs))
    assert costs[0] > min(costs) < costs[-1]


def test_free_forwarding_prunes_all_and_dear_forwarding_little() -> None:
    pruner = Pruner(FILTERS, Counted(SAMPLE), "memory")
    assert best_count(pruner, CostModel(1.0, 0.0)).count == pruner.total_possible
    dear = best_count(pruner, CostModel(1.0, 1e6))
    assert pruner.expected_growth < 0.01
    assert dear.count < pruner.total_possible / 2


def test_false_matches_are_what_pruned_filters_match_beyond_their_originals() -> None:
    chances = Counted(SAMPLE)
    pruner = Pruner(FILTERS, chances)
    model = CostModel(0.0, 1.0, chances)
    assert model.false_matches(pruner) == 0.0
    pruner.prune()
    grown = sum(share(pruner.filter(id), SAMPLE, "sql") - share(condition, SAMPLE, "sql") for id, condition in FILTERS)
    assert model.false_matches(pruner) == pytest.approx(grown)
    assert grown > 0.5
