"""Covering tables and compaction lose no event with tests of elements, presence, networks and text without case."""

from __future__ import annotations

import random
from typing import Any

import pytest

import covey
from covey.filters import Semantics
from covey.relations.compaction import compact
from covey.relations.covering import CoveringTable

TESTS = [
    "is_present(a)", "is_missing(a)", "a IS NULL", "a = 5", "b = 1", "is_missing(b)", "a LIKE '%x'", "a ILIKE 'X%'",
    "exists(l, x -> x > 1)", "exists(l, x -> x > 0)", "forall(l, x -> x = 1)", "array_contains(l, 1)",
    "cidr_match(a, '10.0.0.0/8')", "cidr_match(a, '10.0.0.0/9')", "exists(l, x -> is_missing(x.k))",
]  # fmt: skip
SHAPES = ["{0} AND {1}", "{0} OR {1}", "NOT {0}", "({0} OR {1}) AND {2}", "{0} AND {1} AND {2}", "{0}"]
A: list[dict[str, Any]] = [{}, *({"a": value} for value in (None, 5, 6, "xx", "Xy", "10.0.0.1", "10.200.0.1"))]
B: list[dict[str, Any]] = [{}, {"b": None}, {"b": 1}]
L: list[dict[str, Any]] = [{}, *({"l": value} for value in ([], [1], [2], [1, 2, None], [{}], [{"k": None}]))]
EVENTS = [{**a, **b, **held} for a in A for b in B for held in L]


@pytest.mark.parametrize("semantics", ["sql", "simple", "strict"])
def test_nothing_is_lost(semantics: Semantics) -> None:
    rng = random.Random(semantics)
    rules = {f"s{at}": covey.parse(rng.choice(SHAPES).format(*rng.sample(TESTS, 3))) for at in range(40)}
    matched = {
        id: {at for at, event in enumerate(EVENTS) if one.matches(event, semantics=semantics)}
        for id, one in rules.items()
    }
    table = CoveringTable(semantics=semantics)
    covered = [(id, by) for id, one in rules.items() if (by := table.insert(id, one).covered_by) is not None]
    assert all(matched[id] <= matched[by] for id, by in covered)
    assert len(covered) > 10
    kept = [entry.filter for entry in compact(rules.items(), semantics=semantics).entries]
    found = {at for at, event in enumerate(EVENTS) if any(one.matches(event, semantics=semantics) for one in kept)}
    assert found == set().union(*matched.values())
    assert len(kept) < len(rules)
