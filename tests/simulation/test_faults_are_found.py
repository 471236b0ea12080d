"""The simulator finds faults that are put into brokers on purpose, each within a hundred seeds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import pytest

from covey.filters.algebra import Filter
from covey.relations.steps import Budget
from covey.routing import seen_events, undo
from covey.routing.by_table import Table
from covey.routing.client import Claim, Client
from covey.routing.clients import Clients
from covey.routing.covering_stage import Covering
from covey.routing.deferring import Deferring
from covey.routing.exporter import Exporter
from covey.routing.exports import Export
from covey.routing.links import Link
from covey.routing.messages import Permissions
from covey.routing.pairwise_covering import PairwiseCovering
from covey.routing.principals import Principals
from covey.routing.queues import Queues
from covey.routing.recalls import Recalls
from covey.routing.requests import Requests
from covey.routing.routing_table import RoutingTable
from covey.routing.settling import Waits
from covey.routing.stages import Change
from covey.routing.streams import Outbox
from covey.simulation import Report, Scenario, random_scenario, run, shrink

SEEDS = 100


def failing(scenarios: Iterator[Scenario], *, sends_before_commit: bool = False) -> Report | None:
    reports = (run(scenario, sends_before_commit=sends_before_commit) for scenario in scenarios)
    return next((report for report in reports if report.failures), None)


def with_strategy(strategy: str) -> Iterator[Scenario]:
    return (random_scenario(seed, strategy=strategy, brokers=4) for seed in range(SEEDS))  # type: ignore[arg-type]


def test_a_covered_subscription_that_is_not_recovered_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    remove = PairwiseCovering.remove

    def forgetful(self: PairwiseCovering, key: str, budget: Budget) -> tuple[bool, list[str], list[str]]:
        was_root, _, covered = remove(self, key, budget)
        return was_root, [], covered

    monkeypatch.setattr(PairwiseCovering, "remove", forgetful)
    assert failing(with_strategy("covering"))


def test_a_merger_for_the_wrong_neighbour_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def everywhere(self: Exporter, table: Table, hop: str, added: dict[str, Filter], removed: list[str]) -> None:
        named = {f"{hop}\n{key}": condition for key, condition in added.items()}
        gone = [f"{hop}\n{key}" for key in removed]
        for link in self._links.values():
            if link.in_tree:
                link.outward[table].export.change(named, gone, 0.0)

    monkeypatch.setattr(Exporter, "export", everywhere)
    assert failing(with_strategy("merging"))


def test_an_acknowledgement_before_the_commit_is_found() -> None:
    scenarios = (random_scenario(seed) for seed in range(SEEDS))
    assert failing(scenarios, sends_before_commit=True)


def test_a_covered_subscription_that_is_not_hidden_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Covering, "change", lambda self, change, now: change)
    assert failing(with_strategy("covering"))


def test_a_budget_that_drops_a_subscription_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = Deferring._tell

    def stingy(self: Deferring, key: str, condition: Filter, out: Change) -> None:
        if self._known.budget.left > 0:
            tell(self, key, condition, out)

    monkeypatch.setattr(Deferring, "_tell", stingy)
    assert failing(with_strategy("covering"))


def test_work_that_is_put_off_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deferring, "work", lambda self, now: None)
    assert failing(with_strategy("covering"))


def test_what_waits_and_goes_and_is_told_for_ever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deferring, "_untell", lambda self, key, out: None)
    assert failing(with_strategy("subsumption"))


def test_deltas_that_are_not_sent_again_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    tell = Link._tell

    def once(self: Link, *arguments: object) -> None:
        tell(self, *arguments)  # type: ignore[arg-type]
        for outward in self.outward:
            outward.unacked.clear()

    monkeypatch.setattr(Link, "_tell", once)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_missing_recalls_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recalls, "recall", lambda self, source, table, filters: None)
    assert failing(random_scenario(seed) for seed in range(600))


def test_confirmations_before_settling_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Waits, "add", lambda self, number, settling: None)
    monkeypatch.setattr(Recalls, "recall", lambda self, source, table, filters: None)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_credit_that_counts_only_events_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pump = Queues._pump_one

    def weightless(self: Queues, client: Client) -> None:
        client.credit_bytes = 1 << 40
        pump(self, client)

    monkeypatch.setattr(Queues, "_pump_one", weightless)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_a_stream_that_counts_only_items_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    unsent = Outbox.unsent
    monkeypatch.setattr(Outbox, "unsent", lambda self, flying, size, most: unsent(self, flying, 1 << 40, most))
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_a_window_that_a_lost_message_closes_for_good_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Link, "tell_taken_up_to", lambda self, sent: None)
    # Only a link that loses messages while its window is small can show it, which one scenario in ten has.
    scenarios = (random_scenario(seed, strategy="flooding", brokers=3) for seed in range(SEEDS))
    assert failing(replace(scenario, lossy=True, heavy=True) for scenario in scenarios)


def test_a_quota_that_is_not_given_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Principals.count

    def greedy(self: Principals, client: Client, table: Table, before: Claim | None, after: Claim | None) -> None:
        count(self, client, table, None if after is None else before, after)

    monkeypatch.setattr(Principals, "count", greedy)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_publications_that_are_held_back_and_forgotten_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requests, "_hold", lambda self, publications: None)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_events_that_are_known_by_their_ids_alone_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever forges the ids of events to come has the true ones dropped."""
    monkeypatch.setattr(seen_events, "fingerprint", lambda envelope: b"the same for all")
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_a_permission_that_is_not_rechecked_at_a_connection_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def trusting(self: Clients, client: Client, permissions: Permissions) -> None:
        client.permissions = permissions

    monkeypatch.setattr(Clients, "permit", trusting)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_a_permission_that_is_not_rechecked_after_a_reload_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requests, "permit", lambda self, _: None)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_a_queue_that_is_not_held_to_the_permission_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Queues, "_may_have", lambda self, client, envelope: True)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


@pytest.mark.parametrize(
    ("where", "what", "forgetful"),
    [
        (undo.RememberedDeque, "append", deque.append),
        (undo.RememberedSet, "add", set.add),
        (undo.RememberedDict, "__setitem__", dict.__setitem__),
        (RoutingTable, "_take_back", lambda self: None),
        (Export, "_take_back", lambda self, now: None),
    ],
)
def test_a_part_that_is_not_taken_back_when_a_turn_raises_is_found(
    where: type, what: str, forgetful: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, what, forgetful)
    assert failing(random_scenario(seed) for seed in range(SEEDS))


def test_a_failing_scenario_shrinks_to_a_short_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    remove = PairwiseCovering.remove
    monkeypatch.setattr(PairwiseCovering, "remove", lambda self, key, budget: (remove(self, key, budget)[0], [], []))
    report = failing(with_strategy("covering"))
    assert report is not None
    short = shrink(report.scenario, lambda scenario: bool(run(scenario).failures))
    assert run(short).failures
    assert len(short.actions) < len(report.scenario.actions)
    assert len(short.actions) <= 8
