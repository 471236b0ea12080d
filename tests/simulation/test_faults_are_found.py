"""The simulator finds faults that are put into brokers on purpose, each within a hundred seeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from covey.filters.algebra import Filter
from covey.routing.exporting import Exporting
from covey.routing.links import Link
from covey.routing.pairwise_covering import PairwiseCovering
from covey.routing.recalls import Recalls
from covey.routing.settling import Waits
from covey.routing.strategies import Covering
from covey.simulation import Report, Scenario, random_scenario, run, shrink

SEEDS = 100


def failing(scenarios: Iterator[Scenario], *, sends_before_commit: bool = False) -> Report | None:
    reports = (run(scenario, sends_before_commit=sends_before_commit) for scenario in scenarios)
    return next((report for report in reports if report.failures), None)


def with_strategy(strategy: str) -> Iterator[Scenario]:
    return (random_scenario(seed, strategy=strategy, brokers=4) for seed in range(SEEDS))  # type: ignore[arg-type]


def test_a_covered_subscription_that_is_not_recovered_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    remove = PairwiseCovering.remove

    def forgetful(self: PairwiseCovering, key: str) -> tuple[bool, list[str], list[str]]:
        was_root, _, covered = remove(self, key)
        return was_root, [], covered

    monkeypatch.setattr(PairwiseCovering, "remove", forgetful)
    assert failing(with_strategy("covering"))


def test_a_merger_for_the_wrong_neighbour_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def everywhere(self: Exporting, table: int, hop: str, added: dict[str, Filter], removed: list[str]) -> None:
        named = {f"{hop}\n{key}": condition for key, condition in added.items()}
        gone = [f"{hop}\n{key}" for key in removed]
        for link in self.links.values():
            if link.in_tree:
                link.outward[table].export.change(named, gone, 0.0)

    monkeypatch.setattr(Exporting, "_export", everywhere)
    assert failing(with_strategy("merging"))


def test_an_acknowledgement_before_the_commit_is_found() -> None:
    scenarios = (random_scenario(seed) for seed in range(SEEDS))
    assert failing(scenarios, sends_before_commit=True)


def test_a_covered_subscription_that_is_not_hidden_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Covering, "change", lambda self, change, now: change)
    assert failing(with_strategy("covering"))


def test_deltas_that_are_not_sent_again_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = Link._tell

    def once(self: Link, *arguments: object) -> None:
        tell(self, *arguments)  # type: ignore[arg-type]
        for outward in self.outward:
            outward.unacked.clear()

    monkeypatch.setattr(Link, "_tell", once)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_missing_recalls_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recalls, "_recall", lambda self, source, table, filters: None)
    assert failing(random_scenario(seed) for seed in range(600))


def test_confirmations_before_settling_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waits, "add", lambda self, number, settling: None)
    monkeypatch.setattr(Recalls, "_recall", lambda self, source, table, filters: None)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_a_failing_scenario_shrinks_to_a_short_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    remove = PairwiseCovering.remove
    monkeypatch.setattr(PairwiseCovering, "remove", lambda self, key: (remove(self, key)[0], [], []))
    report = failing(with_strategy("covering"))
    assert report is not None
    short = shrink(report.scenario, lambda scenario: bool(run(scenario).failures))
    assert run(short).failures
    assert len(short.actions) < len(report.scenario.actions)
    assert len(short.actions) <= 8
