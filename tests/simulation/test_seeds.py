"""A thousand networks with faults, all strategies, up to twenty brokers: nothing that must hold is ever violated."""

from __future__ import annotations

import pytest

from covey.routing import Strategy, covering_stage, entry_columns, entry_index, packed_events, routing_table
from covey.simulation import random_scenario, run
from tests.examples import examples

BLOCK = 50
FIRST = 50
"""Of so many `make test-core` tries some."""


@pytest.mark.parametrize(
    "start",
    [pytest.param(start, marks=[pytest.mark.thorough] * (start >= FIRST)) for start in range(0, 1000, BLOCK)],
)
def test_nothing_is_lost_doubled_or_unwanted_and_tables_settle(start: int) -> None:
    for seed in range(start, start + examples(BLOCK)):
        report = run(random_scenario(seed))
        assert not report.failures, f"seed {seed}: {report.failures[0]}"


@pytest.mark.parametrize("strategy", ["simple", "covering", "subsumption", "merging"])
def test_the_structures_for_large_tables_do_the_same(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covering_stage, "PAIRWISE", 3)
    monkeypatch.setattr(routing_table, "FEW", 3)
    monkeypatch.setattr(routing_table, "BATCH", 1)
    monkeypatch.setattr(packed_events, "PACKED_FROM", 1)
    monkeypatch.setattr(entry_columns, "PAIRS_OF_A_HOP", 1)
    monkeypatch.setattr(entry_index, "WAITING", 1)
    for seed in range(12):
        report = run(random_scenario(seed, strategy=strategy, brokers=4))
        assert not report.failures, f"seed {seed}: {report.failures[0]}"
