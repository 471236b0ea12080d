"""A shared diagram answers exactly as the interpreter, under every semantics, in every order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import events, filters

from covey.diagrams import ORDERS, History, SharedDiagram, Snapshot, attribute_of, mbds, same_children
from covey.errors import CoveyError, DuplicateIdError, LimitError, UnknownIdError
from covey.filters import SEMANTICS, Filter, Semantics, all_of, any_of, attr, matches
from covey.limits import Limits

NARROW = ("i", "s", "l")
DEFAULTS = {"i": 7, "s": "ab", "b": True}


def expected(subscriptions: list[Filter], event: dict[str, Any], semantics: Semantics) -> list[int]:
    return [
        at
        for at, condition in enumerate(subscriptions)
        if matches(condition, event, semantics=semantics, defaults=DEFAULTS)
    ]


@pytest.mark.parametrize("restricted", [False, True])
@pytest.mark.parametrize("semantics", SEMANTICS)
@settings(max_examples=examples(120), deadline=None)
@given(st.lists(filters(NARROW, 12) | filters(), min_size=1, max_size=6), st.lists(events(), min_size=1, max_size=4))
def test_answers_equal_the_interpreters(semantics, restricted, subscriptions, batch):
    diagram = SharedDiagram(semantics)
    diagram.add_many(enumerate(subscriptions))
    snapshot = Snapshot(diagram, restricted=restricted)
    wanted = [expected(subscriptions, event, semantics) for event in batch]
    assert [snapshot.match(event, defaults=DEFAULTS) for event in batch] == wanted
    assert snapshot.match_many(batch, defaults=DEFAULTS) == wanted


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=examples(40), deadline=None)
@given(st.lists(filters(NARROW), min_size=1, max_size=6), events())
def test_every_order_gives_the_same_answers(order, subscriptions, event):
    diagram = SharedDiagram()
    diagram.add_many(enumerate(subscriptions), order=order)
    assert Snapshot(diagram).match(event) == expected(subscriptions, event, "sql")
    diagram.reorder("random", seed=5)
    assert Snapshot(diagram).match(event) == expected(subscriptions, event, "sql")


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(filters(NARROW), min_size=1, max_size=8), st.lists(events(), min_size=1, max_size=3), st.data())
def test_removal_leaves_the_others_as_they_were(subscriptions, batch, data):
    diagram = SharedDiagram()
    for at, condition in enumerate(subscriptions):
        diagram.add(at, condition)
    gone = data.draw(st.sets(st.sampled_from(range(len(subscriptions)))))
    for at in gone:
        diagram.remove(at)
    # Freed variables are taken by new tests.
    diagram.add("new", attr("i") < 3)
    snapshot = Snapshot(diagram)
    for event in batch:
        kept = [at for at in expected(subscriptions, event, "sql") if at not in gone]
        assert [found for found in snapshot.match(event) if found != "new"] == kept
        assert ("new" in snapshot.match(event)) == matches(attr("i") < 3, event)


def test_tests_are_released_with_their_last_subscription():
    diagram = SharedDiagram()
    diagram.add("a", (attr("x") < 5) & (attr("y") == 1))
    diagram.add("b", (attr("x") < 5) | (attr("z") == 1))
    assert len(diagram.index) == 3
    diagram.remove("a")
    assert len(diagram.index) == 2
    diagram.remove("b")
    assert len(diagram.index) == 0
    assert diagram.node_count() == 0


def test_example_5_an_event_without_a_price_never_matches_under_strict():
    joined = (attr("price") < 1000) | (attr("price") > 500)
    diagram = SharedDiagram("strict")
    diagram.add("joined", joined)
    diagram.add("tautology", (attr("y") == 1) & ((attr("price") < 5) | ~(attr("price") < 5)))
    diagram.add("adequate", attr("company") == "IBM")
    for restricted in (False, True):
        snapshot = Snapshot(diagram, restricted=restricted)
        assert snapshot.match({"company": "IBM"}) == ["adequate"]
        # The diagram of the tautology has lost the price.
        assert snapshot.match({"company": "IBM", "y": 1}) == ["adequate"]
        assert snapshot.match_many([{"company": "IBM", "y": 1}, {}]) == [["adequate"], []]
        assert snapshot.match({"y": 1}) == []
        assert snapshot.match({"price": 700}) == ["joined"]
        assert snapshot.match({"price": 2, "y": 1}) == ["joined", "tautology"]
        # A price of another kind is defined, but neither comparison holds.
        assert snapshot.match({"price": "dear", "y": 1}) == ["tautology"]


def test_equal_parts_are_stored_once():
    shared = (attr("time") == "July 20") & (attr("to") == "Ottawa")
    diagram = SharedDiagram()
    diagram.add_many(
        [("s1", (attr("price") == 150) & shared), ("s2", (attr("price") < 150) & shared)], order="attribute"
    )
    assert diagram.node_count() == 4
    flat = diagram.flatten()
    assert same_children(flat, diagram.index.test) == [[0, 1]]
    diagram.add("s3", attr("company") == "IBM")
    assert mbds(diagram.flatten()) == [[0, 1], [2]]


TIME_AND_PLACE = (attr("time") == "July 20, 2004") & (attr("destination") == "Ottawa")
S1 = (attr("price") == 150) & TIME_AND_PLACE
S2 = (attr("price") < 150) & TIME_AND_PLACE


@pytest.mark.parametrize("arriving", [[S1, S2], [S2, S1]], ids=["S1, S2", "S2, S1"])
def test_figure_5_two_subscriptions_that_arrive_one_by_one_share_what_they_have_in_common(arriving):
    diagram = SharedDiagram()
    for at, condition in enumerate(arriving):
        diagram.add(at, condition)
    flat = diagram.flatten()
    assert flat.node_count == 4
    assert mbds(flat) == [[0, 1]]
    assert same_children(flat, diagram.index.test) == [[0, 1]]
    assert [attribute_of(diagram.index.test(int(flat.variable[root]))) for root in flat.roots] == ["price", "price"]
    diagram.reorder("learned")
    assert diagram.node_count() == 4


def test_a_new_test_goes_among_those_of_its_attribute_by_its_constant():
    diagram = SharedDiagram()
    for at, limit in enumerate((5, 1, 3, 9)):
        diagram.add(at, (attr("a") < limit) & (attr("b") == 0))
    flat = diagram.flatten()
    variables = sorted({int(variable) for variable in flat.variable[2:]}, key=lambda variable: flat.level[variable])
    assert [str(diagram.index.test(variable)) for variable in variables] == [
        "a < 1", "a < 3", "a < 5", "a < 9", "b = 0",
    ]  # fmt: skip
    assert flat.node_count == 5


def test_new_tests_of_many_subscriptions_go_there_too():
    diagram = SharedDiagram()
    diagram.add("s1", S1)
    diagram.add_many([("s2", S2), ("s3", (attr("price") > 150) & TIME_AND_PLACE)])
    assert diagram.node_count() == 5


def test_a_history_gives_new_attributes_their_place():
    past = History.of([(attr("price") == at) & TIME_AND_PLACE for at in range(9)])
    diagram = SharedDiagram(history=past)
    # As written, what differs would stand at the bottom and nothing be shared.
    diagram.add("s1", TIME_AND_PLACE & (attr("price") == 150))
    diagram.add("s2", TIME_AND_PLACE & (attr("price") < 150))
    assert diagram.node_count() == 4


def test_who_wants_no_level_moved_gets_new_tests_at_the_bottom():
    diagram = SharedDiagram(beside=False)
    diagram.add("s1", S1)
    diagram.add("s2", S2)
    assert diagram.node_count() == 6


def test_a_filter_that_is_only_small_as_written_keeps_that_order():
    diagram = SharedDiagram()
    diagram.add("both known", (attr("a") == -1) & (attr("b") == -1))
    pairs = any_of([(attr("a") == at) & (attr("b") == at) for at in range(20)])
    diagram.add("pairs", pairs)
    assert diagram.node_count() < 100
    assert Snapshot(diagram).match({"a": 3, "b": 3}) == ["pairs"]


def test_negation_shares_the_variable_of_the_complement():
    diagram = SharedDiagram("sql")
    diagram.add("a", ~(attr("x") < 5))
    diagram.add("b", attr("x") >= 5.0)
    assert len(diagram.index) == 1
    assert diagram["a"].root == diagram["b"].root


def test_one_subscription_alone_is_its_part_of_the_whole():
    diagram = SharedDiagram()
    diagram.add("a", any_of([attr("x") == 1, attr("y") == 2, attr("z") == 3]))
    diagram.add("b", all_of([attr("x") == 1, attr("y") == 2]))
    alone = diagram.flatten("a")
    assert alone.node_count == 3
    assert alone.roots.tolist() == [4]


def test_ids_are_unique_and_known():
    diagram = SharedDiagram()
    diagram.add("a", attr("x") == 1)
    with pytest.raises(DuplicateIdError, match="'a'"):
        diagram.add("a", attr("x") == 2)
    with pytest.raises(UnknownIdError, match="'b'"):
        diagram.remove("b")
    assert len(diagram.index) == 1


def test_a_filter_beyond_the_limit_leaves_nothing_behind():
    diagram = SharedDiagram(limits=Limits(diagram_nodes=4))
    with pytest.raises(LimitError, match="diagram_nodes"):
        diagram.add("wide", all_of([attr(f"a{at}") == at for at in range(9)]))
    assert len(diagram) == 0
    assert len(diagram.index) == 0


def test_a_filter_that_explodes_is_refused_at_once_and_the_diagram_lives_on():
    diagram = SharedDiagram()
    exploding = all_of([(attr(f"a{at:02}") == 1) | (attr(f"b{at:02}") == 1) for at in range(40)])
    with pytest.raises(LimitError, match="split"):
        diagram.add_many([("exploding", exploding)])
    assert len(diagram.index) == 0
    # In the order in which it is written the same filter is small.
    fresh = SharedDiagram()
    fresh.add("as written", exploding)
    assert fresh.node_count() == 80
    assert Snapshot(fresh).match({f"b{at:02}": 1 for at in range(40)}) == ["as written"]
    diagram.add("small", attr("x") == 1)
    assert Snapshot(diagram).match({"x": 1}) == ["small"]
    # What was tried in vain isn't in the way of the next that must be tried.
    with pytest.raises(LimitError, match="split"):
        diagram.add_many([("exploding", exploding)])
    diagram.add("as written", exploding)


def test_a_full_table_is_cleared_of_what_was_removed():
    diagram = SharedDiagram(node_capacity=64)
    for at in range(200):
        diagram.add(at, (attr("x") == at) & (attr("y") == at) & (attr("z") == at))
        diagram.remove(at)
    for at in range(10):
        diagram.add(at, (attr("x") == at) & (attr("y") == at))
    with pytest.raises(LimitError, match="node_capacity"):
        diagram.add_many((at, (attr("x") == at) & (attr("y") == at)) for at in range(10, 100))


def test_a_snapshot_of_a_changed_diagram_refuses():
    diagram = SharedDiagram()
    diagram.add("a", attr("x") == 1)
    snapshot = Snapshot(diagram)
    diagram.remove("a")
    with pytest.raises(CoveyError, match="changed"):
        snapshot.match({"x": 1})


def test_an_empty_diagram_matches_nothing():
    snapshot = Snapshot(SharedDiagram())
    assert snapshot.match({"x": 1}) == []
    assert snapshot.match_many([{"x": 1}]) == [[]]
