"""Orders hold every test once; the learned one puts what is shared to the bottom and keeps company together."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import filters

from covey.diagrams import ORDERS, History, SharedDiagram, arrange, attribute_of
from covey.errors import CoveyError
from covey.filters import attr
from covey.history import learned_attributes


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(filters(), max_size=6))
def test_an_order_is_a_permutation(order, subscriptions):
    history = History.of(subscriptions)
    tests = list(history.tests)
    arranged = arrange(tests, order, history, seed=1)
    assert len(arranged) == len(tests)
    assert set(arranged) == set(tests)
    assert arranged == arrange(tests[::-1], order, history, seed=1)


def test_seeds_decide_the_random_order():
    tests = list(History.of([attr("a").is_in(range(at, at + 2)) for at in range(30)]).tests)
    assert arrange(tests, "random", seed=1) != arrange(tests, "random", seed=2)


@pytest.mark.parametrize("order", ["attribute", "learned"])
def test_tests_of_one_attribute_stay_together(order):
    history = History.of([(attr(f"a{at % 3}") < at) & (attr(f"a{at % 4}") == at) for at in range(24)])
    names = [attribute_of(test) for test in arrange(list(history.tests), order, history)]
    changes = sum(1 for left, right in pairwise(names) if left != right)
    assert changes == len(set(names)) - 1


def test_frequent_attributes_go_to_the_bottom():
    subscriptions = [(attr("common") == 1) & (attr(f"rare{at}") == at) for at in range(5)]
    history = History.of(subscriptions)
    assert learned_attributes(history.attributes, history)[-1] == "common"
    assert attribute_of(arrange(list(history.tests), "frequency", history)[-1]) == "common"


def test_concentrated_attributes_go_below_scattered_ones():
    subscriptions = [(attr("few") == at % 2) & (attr("many") == at) for at in range(20)]
    history = History.of(subscriptions)
    assert learned_attributes(history.attributes, history) == ["many", "few"]
    learned, against = SharedDiagram(), SharedDiagram()
    learned.add_many(enumerate(subscriptions), order="learned")
    # By name, `few` stands on top.
    against.add_many(enumerate(subscriptions), order="attribute")
    assert learned.node_count() < against.node_count()


def test_attributes_that_occur_together_stand_close():
    pairs = [(attr("destination") == 1) & (attr("price") == 1)] * 4 + [(attr("author") == 1) & (attr("title") == 1)] * 4
    history = History.of(pairs)
    order = learned_attributes(history.attributes, history)
    assert {frozenset(order[:2]), frozenset(order[2:])} == {
        frozenset(("destination", "price")),
        frozenset(("author", "title")),
    }
    assert history.together("destination", "price") == 1.0
    assert history.together("destination", "title") == 0.0


def test_an_unknown_order_is_named_with_the_known_ones():
    with pytest.raises(CoveyError, match="learned"):
        arrange([], "alphabetical")
