"""Restriction leaves fewer nodes and the same answers."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import events, filters

from covey.diagrams import Domain, SharedDiagram, Snapshot, restrict
from covey.diagrams.restriction import relate
from covey.filters import SEMANTICS, Compare, Filter, attr, matches
from covey.filters.values import Kind
from covey.lab.workloads import queries

TYPED = {name: Domain(kind) for name, kind in queries.KINDS.items()}
TOTAL = {name: Domain(kind, True) for name, kind in queries.KINDS.items()}


def restricted_size(*subscriptions: Filter, total: bool = False, order: str = "attribute") -> int:
    diagram = SharedDiagram("simple")
    diagram.add_many(enumerate(subscriptions), order=order)
    domains = {"n": Domain(Kind.NUMBER, True)} if total else None
    return restrict(diagram.flatten(), diagram.index.test, domains).node_count


@pytest.mark.parametrize("semantics", SEMANTICS)
@settings(max_examples=examples(150), deadline=None)
@given(st.lists(filters(("i", "s"), 14) | filters(("b", "t", "l"), 10), min_size=1, max_size=4), events())
def test_no_answer_changes_on_any_event(semantics, subscriptions, event):
    diagram = SharedDiagram(semantics)
    diagram.add_many(enumerate(subscriptions))
    wanted = [at for at, condition in enumerate(subscriptions) if matches(condition, event, semantics=semantics)]
    assert Snapshot(diagram).match(event) == wanted
    assert Snapshot(diagram, restricted=False).match(event) == wanted


@pytest.mark.parametrize("order", ["attribute", "random"])
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_no_answer_changes_on_the_papers_workload(semantics, order):
    subscriptions = queries.queries(400, seed=3)
    diagram = SharedDiagram(semantics)
    diagram.add_many(enumerate(subscriptions), order=order)
    batch = queries.messages(40, 0.5) + queries.messages(40, 1.0)
    plain, untyped = Snapshot(diagram, restricted=False), Snapshot(diagram)
    typed = Snapshot(diagram, domains=TYPED)
    assert max(typed.flat.node_count, untyped.flat.node_count) < plain.flat.node_count
    wanted = [
        [at for at, condition in enumerate(subscriptions) if matches(condition, event, semantics=semantics)]
        for event in batch
    ]
    for snapshot in (plain, untyped, typed):
        assert snapshot.match_many(batch) == wanted
        assert [snapshot.match(event) for event in batch] == wanted
    total = Snapshot(diagram, domains=TOTAL)
    assert total.match_many(batch[40:]) == wanted[40:]


@pytest.mark.parametrize("order", ["attribute", "random"])
def test_the_weaker_of_two_tests_stays_in_whatever_order(order):
    assert restricted_size((attr("n") < 5) | (attr("n") < 9), order=order) == 1
    assert restricted_size((attr("n") < 9) | (attr("n") < 5), order=order) == 1
    assert restricted_size((attr("n") == 10) & (attr("n") > 8), order=order) == 1
    assert restricted_size((attr("n") == 10) & (attr("n") < 8), order=order) == 0
    assert restricted_size((attr("n") < 9) & ((attr("n") < 5) | (attr("m") == 1)), order=order) <= 3


def test_what_is_known_of_an_attribute_is_used():
    joined = (attr("n") < 1000) | (attr("n") > 500)
    assert restricted_size(joined) == 2
    assert restricted_size(joined, total=True) == 0


def test_attributes_with_many_constants_are_restricted_root_by_root():
    subscriptions = [(attr("n") < at) & ((attr("n") < at + 1) | (attr("m") > at)) for at in range(0, 300, 2)]
    assert restricted_size(*subscriptions) == len(subscriptions)
    diagram = SharedDiagram()
    diagram.add_many(enumerate(subscriptions))
    snapshot = Snapshot(diagram)
    for value in (-1, 0, 17, 150.5, 298, 1000):
        assert snapshot.match({"n": value}) == [at for at in range(150) if value < 2 * at]


@pytest.mark.parametrize("seed", range(10))
def test_wide_attributes_change_no_answer(seed):
    chance = random.Random(seed)

    def comparison():
        name, operator = chance.choice(("n", "m")), chance.choice(("=", "!=", "<", "<=", ">", ">="))
        return Compare(name, operator, chance.choice((chance.randint(0, 200), chance.uniform(0, 200), math.nan, "x")))

    subscriptions = [
        (comparison() & comparison()) | (comparison() & ~(comparison() | comparison())) for _ in range(100)
    ]
    diagram = SharedDiagram("sql")
    diagram.add_many(enumerate(subscriptions))
    batch = [{"n": chance.choice((chance.randint(0, 200), math.nan, "x", None)), "m": 100.5} for _ in range(5)]
    wanted = [[at for at, each in enumerate(subscriptions) if matches(each, event)] for event in batch]
    assert Snapshot(diagram).match_many(batch) == wanted


def test_a_walk_that_ends_early_leaves_the_rest_as_it_was():
    subscriptions = queries.queries(200, seed=4)
    diagram = SharedDiagram("simple")
    diagram.add_many(enumerate(subscriptions))
    flat = diagram.flatten()
    few, many = (restrict(flat, diagram.index.test, steps=steps) for steps in (3, 4096))
    assert many.node_count < few.node_count <= flat.node_count


def test_restriction_keeps_the_order_of_variables():
    diagram = SharedDiagram("simple")
    diagram.add_many(enumerate(queries.queries(300, seed=6)), order="random", seed=2)
    flat = restrict(diagram.flatten(), diagram.index.test, TOTAL)
    for child in (flat.low[2:], flat.high[2:]):
        inner = child > 1
        parents, children = flat.variable[2:][inner], flat.variable[child[inner]]
        assert (flat.level[parents] < flat.level[children]).all()


@pytest.mark.thorough
def test_the_papers_factor_at_25_000_queries():
    """Section 8 reports 1.66 here, and 1.88 at 100,000."""
    diagram = SharedDiagram("simple", variable_for_inequality=True)
    diagram.add_many(enumerate(queries.queries(25_000)))
    flat = diagram.flatten()
    assert len(diagram.index) == 208
    assert 5.5 < flat.node_count / 25_000 < 9
    assert flat.node_count / restrict(flat, diagram.index.test, TOTAL).node_count >= 1.88


class PlainRestriction:
    """The walk of `restriction.py` in plain Python: nodes are 0, 1 or (variable, low, high), conditions are sets."""

    def __init__(self, flat, test, attributes):
        self.flat = flat
        self.attribute = {}
        self.worlds_of = {}
        self.condition = {}
        for name, variables in attributes.items():
            related = relate(variables, test, TOTAL[name])
            self.condition[name] = set(range(related.full.bit_length()))
            for variable, mask in zip(related.variables, related.masks, strict=True):
                self.attribute[variable] = name
                self.worlds_of[variable] = {at for at in self.condition[name] if mask >> at & 1}

    def tree(self, flat, node):
        if node < 2:
            return int(node)
        return (int(flat.variable[node]), self.tree(flat, flat.low[node]), self.tree(flat, flat.high[node]))

    def simplify(self, node):
        if node in (0, 1):
            return node
        variable, low, high = node
        name = self.attribute[variable]
        before = self.condition[name]
        yes, no = before & self.worlds_of[variable], before - self.worlds_of[variable]
        if not yes or not no:
            return self.simplify(high if yes else low)
        new_low, new_high = self.under(name, no, low), self.under(name, yes, high)
        if new_low == new_high or self.under(name, yes, new_low) == new_high:
            return new_low
        if self.under(name, no, new_high) == new_low:
            return new_high
        return (variable, new_low, new_high)

    def under(self, name, part, node):
        before = self.condition[name]
        self.condition[name] = part
        simplified = self.simplify(node)
        self.condition[name] = before
        return simplified


@pytest.mark.parametrize("conjunctive", [0.5, 0.9])
def test_the_kernel_equals_the_plain_walk(conjunctive):
    diagram = SharedDiagram("simple")
    diagram.add_many(enumerate(queries.queries(300, seed=8, conjunctive=conjunctive, negated=0.1)), order="random")
    flat = diagram.flatten()
    found = restrict(flat, diagram.index.test, TOTAL)
    used = set(flat.variable[2:].tolist())
    attributes = {name: [v for v in diagram.index.variables_of(name) if v in used] for name in TOTAL}
    plain = PlainRestriction(flat, diagram.index.test, attributes)
    for root, restricted_root in zip(flat.roots, found.roots, strict=True):
        assert plain.simplify(plain.tree(flat, root)) == plain.tree(found, restricted_root)
