"""The papers' own matchers, each against the interpreter: what they find is what filters mean."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.diagrams import SharedDiagram, Snapshot
from covey.filters import And, Between, Compare, Constant, Filter, In, IsNull, Not, Or
from covey.filters.algebra import leaves
from covey.filters.semantics import Semantics, matches
from covey.lab.counting_matcher import CountingMatcher
from covey.lab.experiments import LabError
from covey.lab.plain_diagrams import PlainDiagram
from covey.lab.plain_negative_space import METRICS, Metric, PlainNegativeSpace
from covey.lab.plain_scans import LinearScan, PlainCovering
from covey.lab.workloads import auctions
from covey.lab.workloads.rectangles import DOMAIN
from covey.relations.conjunctions import conjunction_of

VALUES = st.one_of(st.integers(0, 4), st.sampled_from(["x", "y", 2.5]))
NAMES = st.sampled_from(["a", "b", "c"])
TESTS = st.one_of(
    st.builds(Compare, NAMES, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), VALUES),
    st.builds(lambda name, values: In(name, tuple(values)), NAMES, st.lists(st.integers(0, 4), min_size=1, max_size=3)),
    st.builds(lambda name, low, more: Between(name, low, low + more), NAMES, st.integers(0, 3), st.integers(0, 3)),
    st.builds(IsNull, NAMES),
)
FILTERS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: _joined(And, parts)),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: _joined(Or, parts)),
        inner.map(Not),
    ),
    max_leaves=8,
)
EVENTS = st.dictionaries(NAMES, VALUES)


def _joined(kind: type[And] | type[Or], parts: list[Filter]) -> Filter:
    """And and Or are flat: the operators keep them so."""
    result = parts[0]
    for part in parts[1:]:
        result = result & part if kind is And else result | part
    return result


@settings(deadline=None)
@given(st.lists(FILTERS, min_size=1, max_size=8), st.lists(EVENTS, min_size=1, max_size=6))
def test_counting_and_scanning_find_what_the_interpreter_finds(filters: list[Filter], events: list[Any]) -> None:
    counting, scan = CountingMatcher(filters), LinearScan(filters)
    for event in events:
        expected = [at for at, one in enumerate(filters) if matches(one, event)]
        assert counting.match(event).matches.tolist() == expected
        assert scan.match(event) == expected
    assert counting.associations == sum(1 for one in filters for _ in leaves(one))
    assert len(scan) == len(filters)


def test_counting_takes_auctions_and_its_steps_are_bounded_by_the_table() -> None:
    drawn = auctions.generate(300, 60, 4)
    filters = [condition for _, condition in drawn.subscriptions]
    counting = CountingMatcher(filters)
    for event in drawn.events.to_pylist():
        found = counting.match(event)
        assert found.matches.tolist() == [at for at, one in enumerate(filters) if matches(one, event)]
        assert found.counted <= counting.associations
        assert found.evaluated <= counting.associations


def test_a_subscription_short_of_its_least_number_is_not_evaluated() -> None:
    both = Compare("a", "=", 1) & Compare("b", "=", 1)
    counting = CountingMatcher([both, both | Compare("c", "=", 1)])
    half = counting.match({"a": 1})
    assert (half.counted, half.evaluated) == (2, 3), "the Or can be met by one, the And can't"
    assert counting.match({}).counted == 0


def test_what_counting_does_not_know_is_refused() -> None:
    with pytest.raises(LabError, match="Constant isn't one of them"):
        CountingMatcher([Constant(True)])


@settings(deadline=None)
@given(
    st.sampled_from(["simple", "strict", "sql"]),
    st.lists(FILTERS, min_size=1, max_size=6),
    st.lists(EVENTS, min_size=1, max_size=5),
)
def test_diagrams_one_message_at_a_time(semantics: Semantics, filters: list[Filter], events: list[Any]) -> None:
    diagram = SharedDiagram(semantics)
    diagram.add_many(enumerate(filters))
    snapshot = Snapshot(diagram, restricted=False)
    plain = PlainDiagram(snapshot.flat)
    for event in events:
        truths = snapshot.truths(event)
        if semantics == "strict":
            found = plain.mv_eval_bdd(truths)
            adequate = [all(name in event for name in one.attributes()) for one in filters]
            assert [bool(value == 1) and fit for value, fit in zip(found.roots, adequate, strict=True)] == [
                matches(one, event, semantics=semantics) for one in filters
            ]
            assert found.looked <= 2 * found.visited
        else:
            found = plain.eval_bdd(truths)
            assert [bool(value) for value in found.roots] == [
                matches(one, event, semantics=semantics) for one in filters
            ]
            assert found.looked == found.visited


def test_an_undefined_atom_costs_no_look() -> None:
    diagram = SharedDiagram("strict")
    diagram.add_many(enumerate([Compare("a", "<", 3), Compare("b", "<", 3)]))
    snapshot = Snapshot(diagram, restricted=False)
    plain = PlainDiagram(snapshot.flat)
    assert plain.mv_eval_bdd(snapshot.truths({"a": 1})).looked == 2
    assert plain.mv_eval_bdd(snapshot.truths({"a": 1, "b": 1})).looked == 4


WHOLE = st.builds(Compare, NAMES, st.sampled_from(["=", "<=", ">="]), st.integers(0, 3))
CONJUNCTIONS = st.lists(WHOLE, min_size=1, max_size=3).map(lambda parts: _joined(And, list(parts)))
WORLD: list[dict[str, Any]] = [
    {name: value for name, value in zip("abc", values, strict=True) if value is not None}
    for values in product((None, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 9), repeat=3)
]


@settings(deadline=None, max_examples=60)
@given(st.lists(CONJUNCTIONS, min_size=1, max_size=6), CONJUNCTIONS)
def test_covering_in_one_pass_and_in_two_is_what_matching_says(table: list[Filter], new: Filter) -> None:
    normal = [conjunction_of(one) for one in (*table, new)]
    if any(one is None or not one.satisfiable for one in normal):
        return
    met = [{at for at, event in enumerate(WORLD) if matches(one, event)} for one in (*table, new)]
    covered = any(met[-1] <= one for one in met[:-1])
    covers = tuple(at for at, one in enumerate(met[:-1]) if one <= met[-1])
    *entries, own = [one for one in normal if one is not None]
    plain = PlainCovering(entries)
    once, twice = plain.one_pass(own), plain.two_passes(own)
    assert (once.covered, twice.covered, twice.covers) == (covered, covered, covers)
    if not covered:
        assert once.covers == covers
    assert once.looked <= twice.looked


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [0, 3, 20])
def test_the_approximate_cutting_never_says_subsumed_of_what_is_not(k: int, metric: Metric) -> None:
    rng = np.random.default_rng(k)
    low = rng.integers(0, 900, (120, 3)).astype(float)
    high = low + 1 + rng.random((120, 3)) * (DOMAIN - low - 1)
    exact, rough = PlainNegativeSpace(3), PlainNegativeSpace(3, k, metric)
    kept = 0
    for at in range(len(low)):
        wanted = exact.subscribe(low[at], high[at])
        found = rough.subscribe(low[at], high[at])
        assert found or not wanted, "subsumed only where the exact method says so"
        kept += found and not wanted
    assert rough.volume() >= exact.volume() - 1e-9
    assert kept > 0 or k > 3, "a small threshold misses some"


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**20), st.sampled_from(METRICS))
def test_points_of_the_negative_space_are_nobodys_where_nothing_limits(seed: int, metric: Metric) -> None:
    """Each subscription as a filter: the interpreter says which points somebody wants."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 800, (8, 2)).astype(float)
    high = low + rng.integers(1, 200, (8, 2))
    filters = [
        And(
            tuple(Compare(name, ">", float(low[at][j])) for j, name in enumerate("ab"))
            + tuple(Compare(name, "<", float(high[at][j])) for j, name in enumerate("ab"))
        )
        for at in range(len(low))
    ]
    space = PlainNegativeSpace(2, 10_000, metric)
    for at in range(len(low)):
        space.subscribe(low[at], high[at])
    for x, y in rng.uniform(0, DOMAIN, (60, 2)):
        wanted = any(matches(one, {"a": x, "b": y}) for one in filters)
        assert space.holds(np.array([x, y])) is not wanted
