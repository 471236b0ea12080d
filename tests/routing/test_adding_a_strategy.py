"""The walk in CONTRIBUTING, with a made-up strategy: its stage, its name, its plan, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from covey.filters.algebra import Filter, Or
from covey.routing import config
from covey.routing.config import STRATEGIES
from covey.routing.known_filters import KnownFilters
from covey.routing.stages import Change, Follow, Stage
from covey.routing.strategies import PLANS, Plan
from covey.simulation import random_scenario, run
from tests.routing.harness import Net

NAME: Any = "union"


class Union(Stage):
    """One entry for all: what any of them matches."""

    name = "union"

    def __init__(self, known: KnownFilters) -> None:
        self._known = known
        self._filters: dict[str, Filter] = {}
        self._before: str | None = None

    def change(self, change: Change, now: float) -> Change:
        for key in change.removed:
            del self._filters[key]
        self._filters.update(change.added)
        out = Change()
        if self._before is not None:
            out.remove(self._before)
        self._before = None
        if self._filters:
            all = [self._filters[key] for key in sorted(self._filters)]
            self._before, normal = self._known.normal(all[0] if len(all) == 1 else Or(tuple(all)))
            out.removed.discard(self._before)
            out.add(self._before, normal)
        return out

    def follow(self, key: str) -> Follow:
        return Follow(self._before, None if len(self._filters) == 1 else self._filters[key])


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(lambda _, known: [*PLANS["identity"].stages(config.BrokerConfig("a"), known), Union(known)])
    monkeypatch.setattr(config, "STRATEGIES", (*STRATEGIES, NAME))
    monkeypatch.setitem(PLANS, NAME, plan)  # type: ignore[arg-type]


def test_every_strategy_has_a_plan() -> None:
    assert tuple(PLANS) == STRATEGIES


@pytest.mark.usefixtures("made_up")
def test_neighbours_are_told_what_the_new_stage_makes_of_entries() -> None:
    net = Net([("a", "b")], strategy=NAME)
    net.join("a", "ann")
    net.join("b", "bob")
    assert net.subscribe("a", "ann", "s1", "p < 3")
    assert net.subscribe("a", "ann", "s2", "p > 7")
    assert net.held("b", "a") == ["p < 3 OR p > 7"]
    net.publish("b", "bob", {"p": 1}, {"p": 5}, {"p": 9})
    assert net.delivered("ann") == [{"p": 1}, {"p": 9}]
    assert net.unsubscribe("a", "ann", "s1")
    assert net.held("b", "a") == ["p > 7"]
    verdicts = [verdict.reason for verdict in net.brokers["a"].links["b"].outward.subscriptions.export.verdicts()]
    assert verdicts == ["forwarded"]


@pytest.mark.usefixtures("made_up")
def test_the_simulator_takes_the_new_strategy_as_it_is() -> None:
    for seed in range(12):
        assert not run(random_scenario(seed, strategy=NAME, brokers=4)).failures
