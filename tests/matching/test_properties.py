"""Batch matching equals matching one event equals the plain interpreter, under all four semantics."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.random_worlds import DEFAULTS, event_of, filter_of
from tests.strategies import events, filters

import covey
from covey.filters import SEMANTICS, Semantics, matches
from covey.filters.values import Scalar
from covey.matching import tables as tables_module
from covey.matching.bulk import rows as bulk_module

ROUNDS = int(os.environ.get("COVEY_FUZZ_ROUNDS", examples(8)))
EXAMPLES = int(os.environ.get("COVEY_FUZZ_EXAMPLES", examples(60)))
FILTERS, EVENTS = 64, 64


def check(
    conditions: list[covey.Filter], batch: list[dict[str, object]], semantics: Semantics, order: str = "selectivity"
) -> None:
    """Half of the filters come in bulk as text, half one by one: both ways, and two segments, are tried."""
    defaults = DEFAULTS if semantics == "default" else {}
    index = IndexWithDefaults(semantics=semantics, order=order)
    half = len(conditions) // 2
    index.add_many((f"s{number}", str(one)) for number, one in enumerate(conditions[:half]))
    for number, one in enumerate(conditions[half:], start=half):
        index.add(f"s{number}", one)
    expected = [
        [
            f"s{number}"
            for number, one in enumerate(conditions)
            if matches(one, event, semantics=semantics, defaults=defaults)
        ]
        for event in batch
    ]
    assert index.match_batch(batch).to_pylist() == expected
    assert [index.match(event) for event in batch] == expected


class IndexWithDefaults(covey.Index):
    """Defaults without a schema, so that values of all kinds may meet every attribute."""

    @property
    def _defaults(self) -> dict[str, Scalar]:
        return DEFAULTS if self.semantics == "default" else {}


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_batch_equals_single_equals_interpreter(semantics: Semantics, seed: int) -> None:
    rng = random.Random(f"{semantics} {seed}")
    conditions = [filter_of(rng) for _ in range(FILTERS)]
    batch = [event_of(rng) for _ in range(EVENTS)]
    check(conditions, batch, semantics, rng.choice(["selectivity", "attribute", "frequency", "random"]))


def test_at_least_a_hundred_thousand_pairs_are_compared() -> None:
    assert ROUNDS * len(SEMANTICS) * FILTERS * EVENTS >= 100_000


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(filters(), min_size=1, max_size=12),
    st.lists(events(), min_size=1, max_size=12),
    st.sampled_from(SEMANTICS),
)
def test_any_filters_on_any_events(
    conditions: list[covey.Filter], batch: list[dict[str, object]], semantics: Semantics
) -> None:
    check(conditions, batch, semantics)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_many_events_alike_take_the_grouped_way(semantics: Semantics) -> None:
    """Large groups of events, several words long, with subscriptions that share keys and pivots."""
    rng = random.Random(semantics)
    conditions = [
        covey.parse(
            f"i = {rng.randint(0, 2)} AND d BETWEEN {rng.randint(0, 50)} AND {rng.randint(20, 80)}"
            f" AND (j < {rng.randint(0, 90)} OR NOT s = 'x{rng.randint(0, 3)}')"
        )
        for _ in range(60)
    ]
    conditions += [covey.parse(f"d > {rng.randint(0, 90)} AND j != {rng.randint(0, 20)}") for _ in range(30)]
    conditions += [covey.parse(f"s IN ('x{rng.randint(0, 3)}', 'x9') OR j = {rng.randint(0, 30)}") for _ in range(30)]
    conditions += [covey.parse(f"contains(s, '{rng.randint(0, 3)}') AND d < {rng.randint(0, 90)}") for _ in range(10)]
    batch: list[dict[str, object]] = [
        {
            name: value
            for name, value in {
                "i": rng.randint(0, 3),
                "j": rng.randint(0, 99),
                "d": rng.choice([rng.random() * 90, float("nan")]),
                "s": f"x{rng.randint(0, 4)}",
            }.items()
            if rng.random() < 0.9
        }
        for _ in range(700)
    ]
    check(conditions, batch, semantics)


def test_bulk_and_general_parsing_compile_to_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large loads take the parsing kernel; here small ones do as well."""
    rng = random.Random(77)
    conditions = [filter_of(rng) for _ in range(300)]
    batch = [event_of(rng) for _ in range(40)]
    rows = [(f"s{number}", str(one)) for number, one in enumerate(conditions)]
    general, bulk = covey.Index(), covey.Index()
    general.add_many(rows)
    monkeypatch.setattr(bulk_module, "_BULK", 0)
    bulk.add_many(rows)
    assert bulk.match_batch(batch).to_pylist() == general.match_batch(batch).to_pylist()
    bad = [("a", "x = 1"), ("b", "x = "), ("c", "y IN (1, 'a')"), ("d", "z > 2")]
    assert [one.id for one in covey.Index().add_many(bad, on_error="collect").errors] == ["b", "c"]


PLANS = {
    "composite keys": {"_COMPOSITE_UNITS": 1, "_COMPOSITE_CANDIDATES": 0.0},
    "sweep everything": {"_SHARED_ATOMS": 0, "_SWEPT_CHANCE": -1.0, "FEW_SWEPT": 0},
    "go through what is swept": {"_SHARED_ATOMS": 0, "_SWEPT_CHANCE": -1.0},
    "sweep what is likely": {"_SHARED_ATOMS": 0, "_SWEPT_CHANCE": 0.05, "_SWEEP_ALL": 2.0, "FEW_SWEPT": 0},
    "sweep only what has no key": {"_SHARED_ATOMS": 10**9},
}


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("plan", PLANS)
def test_no_plan_changes_an_answer(plan: str, semantics: Semantics, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLANS[plan].items():
        monkeypatch.setattr(tables_module, name, value)
    rng = random.Random(f"{plan} {semantics}")
    conditions = [filter_of(rng) for _ in range(40)]
    for _ in range(60):  # several equalities on several attributes
        equalities = [f"{name} = {rng.randint(0, 2)}" for name in rng.sample(["i", "j", "d", "r.x"], rng.randint(2, 4))]
        rest = [f"d < {rng.randint(0, 5)}", f"NOT s = '{rng.choice('ab')}'", f"j >= {rng.randint(0, 3)}"]
        conditions.append(covey.parse(" AND ".join([*equalities, *rng.sample(rest, rng.randint(0, 2))])))
    if plan == "go through what is swept":
        conditions = conditions[: tables_module.FEW_SWEPT]
    batch = [event_of(rng) for _ in range(60)]
    batch += [{"i": rng.randint(0, 2), "j": rng.randint(0, 2), "d": rng.randint(0, 2), "s": "a"} for _ in range(200)]
    check(conditions, batch, semantics)
