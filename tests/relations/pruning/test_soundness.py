"""A pruning only ever generalises: what a subscription matched it still matches, under every semantics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import parse
from covey.filters import SEMANTICS, And, Filter, Is, Semantics, matches
from covey.filters.algebra import leaves
from covey.relations.pruning import DIMENSIONS, Dimension, Pruner
from tests.random_worlds import DEFAULTS
from tests.relations.pruning.plain import Counted, Given, share
from tests.relations.pruning.worlds import events, subscriptions
from tests.strategies import events as drawn_events
from tests.strategies import filters

WORLD = events(5, 70)
CHANCES = Counted(WORLD)


def matched(condition: Filter, sample: list[dict[str, Any]], semantics: Semantics) -> set[int]:
    defaults = DEFAULTS if semantics == "default" else None
    return {at for at, event in enumerate(sample) if matches(condition, event, semantics=semantics, defaults=defaults)}


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_pruning_keeps_all_matches(dimension: Dimension, semantics: Semantics) -> None:
    pruner = Pruner(subscriptions(11, 12), Given({}), dimension, semantics)
    before = {id: matched(pruner.original(id), WORLD, semantics) for id in pruner}
    grown = 0
    while steps := pruner.prune(1):
        id = steps[0].id
        after = matched(pruner.filter(id), WORLD, semantics)
        assert before[id] <= after
        grown += len(after) - len(before[id])
        before[id] = after
    assert grown > 0


@given(filters(), st.lists(drawn_events(), min_size=1, max_size=5), st.sampled_from(SEMANTICS), st.data())
def test_any_filter_pruned_any_number_of_times_covers_its_original(
    condition: Filter, sample: list[dict[str, Any]], semantics: Semantics, data: st.DataObject
) -> None:
    pruner = Pruner([("one", condition)], Given({}), data.draw(st.sampled_from(DIMENSIONS)), semantics)
    pruner.prune(data.draw(st.integers(0, pruner.total_possible)))
    assert matched(condition, sample, semantics) <= matched(pruner.filter("one"), sample, semantics)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_pruned_to_the_end_a_subscription_has_no_conjunction_and_at_least_one_leaf(dimension: Dimension) -> None:
    pruner = Pruner(subscriptions(2, 30), Given({}), dimension)
    pruner.prune()
    assert pruner.remaining == 0
    for id in pruner:
        left = pruner.filter(id)
        if left is pruner.original(id):
            continue
        stack = [left]
        while stack:
            node = stack.pop()
            assert not isinstance(node, And)
            if not isinstance(node, Is):
                stack.extend(part for part in node.children() if node.children())
        assert list(leaves(left))
        assert left.attributes() <= pruner.original(id).attributes()


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        ("a = 1", 0),
        ("a = 1 OR b = 2", 0),
        ("a = 1 AND b = 2", 1),
        ("NOT (a = 1 AND b = 2)", 0),
        ("NOT (a = 1 OR b = 2 OR c = 3)", 2),
        ("a = 1 AND NOT (b = 2 OR c = 3)", 2),
        ("NOT (NOT (a = 1 AND b = 2))", 1),
        ("(a = 1 AND b = 2) IS TRUE", 1),
        ("(a = 1 OR b = 2) IS FALSE", 1),
        ("(a = 1 AND b = 2) IS UNKNOWN", 0),
        ("NOT ((a = 1 AND b = 2) IS TRUE)", 0),
        ("a = 1 AND (b = 2 OR (c = 3 AND d = 4))", 2),
    ],
)
def test_only_children_of_conjunctions_in_a_positive_place_can_go(text: str, possible: int) -> None:
    pruner = Pruner([("one", parse(text))], Given({}))
    assert pruner.total_possible == possible
    assert len(pruner.prune()) <= possible


def test_under_not_a_child_of_a_disjunction_goes() -> None:
    pruner = Pruner([("one", parse("NOT (a = 1 OR b = 2)"))], Given({"NOT a = 1": 0.9, "NOT b = 2": 0.2}))
    (step,) = pruner.prune()
    assert step.removed == parse("NOT a = 1")
    assert pruner.filter("one") == parse("NOT b = 2")


def test_a_disjunction_left_alone_in_a_disjunction_melts_into_it() -> None:
    pruner = Pruner([("one", parse("a = 1 OR (b = 2 AND (c = 3 OR d = 4))"))], Given({"b = 2": 1.0}))
    pruner.prune()
    assert pruner.filter("one") == parse("a = 1 OR c = 3 OR d = 4")


def test_an_unpruned_subscription_is_the_filter_that_was_added() -> None:
    condition = parse("NOT (a = 1 OR NOT (b = 2 AND c = 3))")
    pruner = Pruner([("one", condition)], Given({}))
    assert pruner.filter("one") is condition
    pruner.prune(1)
    assert pruner.original("one") is condition


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_the_share_of_matching_events_is_between_the_estimated_bounds_after_every_pruning(
    semantics: Semantics,
) -> None:
    pruner = Pruner(subscriptions(21, 25), CHANCES, "network", semantics)
    while True:
        for id in pruner:
            low, mean, high = pruner.selectivity(id)
            real = share(pruner.filter(id), WORLD, semantics)
            assert low - 1e-9 <= real <= high + 1e-9
            assert low - 1e-9 <= mean <= high + 1e-9
        if not pruner.prune(25):
            break
