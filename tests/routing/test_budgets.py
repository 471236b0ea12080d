"""What a request puts off is told as it is until somebody gets on with it, and comes out the same in the end."""

from __future__ import annotations

import random
from typing import Any

import pytest

from covey.filters.algebra import Filter
from covey.language import parse
from covey.relations.steps import Budget
from covey.routing import BrokerLimits, MergingOptions, Permissions, covering_stage
from covey.routing.covering_stage import Covering
from covey.routing.deferring import TOGETHER, Deferring
from covey.routing.identity_stage import Identity
from covey.routing.inspection import link_views
from covey.routing.known_filters import KnownFilters
from covey.routing.merging_stage import Merging
from covey.routing.messages import Delta, FromClient, Subscribe, Work
from covey.routing.phases import Signal
from covey.routing.stages import Change
from covey.simulation.scenarios import random_filter
from tests.routing.harness import Net


def pigeonholes(holes: int, tag: str = "") -> str:
    """So many pigeons and one more in so many holes: nothing meets it, which takes a search exponential time."""
    pigeons = range(holes + 1)
    somewhere = ["(" + " OR ".join(f"{tag}p{i}h{j} = 1" for j in range(holes)) + ")" for i in pigeons]
    alone = [f"NOT ({tag}p{i}h{j} = 1 AND {tag}p{k}h{j} = 1)" for j in range(holes) for i in pigeons for k in range(i)]
    return " AND ".join(somewhere + alone)


def told(net: Net, near: str, far: str) -> list[str]:
    view = next(view for view in link_views(net.brokers[near]) if view.peer == far)
    return sorted(map(str, view.exported.subscriptions.values()))


def give(net: Net, name: str, steps: int = 1_000) -> None:
    net.handle(name, Work(steps))
    net.run()


def test_a_subscription_beyond_the_budget_is_told_as_it_is_and_taken_back_later() -> None:
    net = Net([("a", "b")], limits=BrokerLimits(request_steps=0))
    net.join("a", "ann")
    for id, text in {"wide": "p < 10", "narrow": "p < 5"}.items():
        net.subscribe("a", "ann", id, text)
    assert told(net, "a", "b") == ["p < 10", "p < 5"]
    assert net.brokers["a"].behind == 2
    give(net, "a")
    assert (told(net, "a", "b"), net.brokers["a"].behind) == (["p < 10"], 0)
    assert net.held("b", "a") == ["p < 10"]


@pytest.mark.parametrize("pairwise", [1, 64])
def test_hard_filters_take_a_bounded_number_of_steps_of_each_request(
    pairwise: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covering_stage, "PAIRWISE", pairwise)
    limits = BrokerLimits(pair_steps=500, request_steps=400)
    net = Net([("a", "b")], limits=limits)
    net.join("a", "ann")
    for number in range(5):
        net.subscribe("a", "ann", f"s{number}", pigeonholes(4) + f" AND x{number} = 1")
        spent = [broker._context.known.budget.spent for broker in net.brokers.values()]
        assert max(spent) <= limits.request_steps + 2 * limits.pair_steps
    rounds = 0
    while any(broker.behind for broker in net.brokers.values()):
        for name, broker in net.brokers.items():
            give(net, name)
            assert broker._context.known.budget.spent <= 1_000 + 2 * limits.pair_steps
        rounds += 1
        assert rounds < 1_000


def test_a_hard_permission_is_refused_with_the_reason() -> None:
    net = Net([], limits=BrokerLimits(permission_steps=1_000))
    net.join("a", "ann", Permissions(subscribe="x = 1"))
    assert not net.subscribe("a", "ann", "s", pigeonholes(6))
    assert "permission_steps" in net.refusals("ann")[0]


STAGES: dict[str, Any] = {
    "covering": Covering,
    "merging": lambda known: Merging(known, MergingOptions().advertisements),
}


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("pairwise", [2, 64])
def test_whatever_is_put_off_the_output_matches_all_that_the_input_matches(
    name: str, pairwise: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covering_stage, "PAIRWISE", pairwise)
    events = [{"k": kind, "p": price} for kind in "abcdz" for price in range(-1, 31)]

    def matched(filters: dict[str, Filter]) -> set[int]:
        return {at for at, event in enumerate(events) if any(one.matches(event) for one in filters.values())}

    for seed in range(6):
        rng = random.Random(f"{name} {pairwise} {seed}")
        known = KnownFilters()
        stage: Deferring = STAGES[name](known)
        given: dict[str, Filter] = {}
        output: dict[str, Filter] = {}

        def apply(change: Change | None, output: dict[str, Filter] = output) -> None:
            if change is not None:
                for key in change.removed:
                    output.pop(key, None)
                output.update(change.added)

        for now in range(40):
            known.budget = Budget(rng.choice([0, 0, 3, 40, 1_000]))
            removed = {key for key in given if rng.random() < 0.15}
            added = dict(known.normal(parse(random_filter(rng))) for _ in range(rng.randrange(3)))
            added = {key: condition for key, condition in added.items() if key not in given or key in removed}
            for key in removed:
                del given[key]
            given |= added
            apply(stage.change(Change(added, removed), float(now)))
            assert matched(output) >= matched(given)
            if rng.random() < 0.5:
                known.budget = Budget(rng.choice([1, 50]), is_for_work=True)
                apply(stage.work(float(now)))
                assert matched(output) >= matched(given)
        while stage.behind:
            known.budget = Budget(1, is_for_work=True)
            apply(stage.work(99.0))
        assert matched(output) == matched(given)
        if name == "covering":
            filters = list(output.values())
            assert not any(one is not other and known.covers(one, other) for one in filters for other in filters)


def test_a_restart_finds_what_was_put_off() -> None:
    net = Net([("a", "b")], limits=BrokerLimits(request_steps=0))
    net.join("a", "ann")
    for id, text in {"wide": "p < 10", "narrow": "p < 5"}.items():
        net.subscribe("a", "ann", id, text, durable=True)
    net.restart("a")
    assert told(net, "a", "b") == ["p < 10", "p < 5"]
    give(net, "a")
    assert (told(net, "a", "b"), net.brokers["a"].behind) == (["p < 10"], 0)


def test_requests_that_come_later_wait_behind_those_that_wait() -> None:
    known = KnownFilters()
    stage = Covering(known)
    known.budget = Budget(0)
    stage.change(Change({"x": parse("p < 5")}), 0.0)
    known.budget = Budget(1_000)
    assert stage.change(Change({"y": parse("p < 4")}), 0.0).added.keys() == {"y"}
    assert stage.behind == 2
    known.budget = Budget(1_000, is_for_work=True)
    assert stage.work(0.0) == Change({}, {"y"})


def test_a_message_for_a_client_does_not_depend_on_the_budget() -> None:
    net = Net([("a", "b")], limits=BrokerLimits(request_steps=0))
    net.join("a", "ann")
    net.join("b", "bob")
    net.subscribe("a", "ann", "wide", "p < 10")
    net.subscribe("a", "ann", "narrow", "p < 5")
    net.publish("b", "bob", {"p": 4})
    assert net.delivered("ann") == [{"p": 4}]


def test_changes_for_a_neighbour_go_in_messages_of_a_bounded_size_and_number() -> None:
    net = Net([("a", "b"), ("b", "c")], limits=BrokerLimits(delta_entries=3, deltas_flying=2))
    net.join("a", "ann")
    net.passed.clear()
    for number in range(20):
        net.handle("a", FromClient("ann", Subscribe(100 + number, f"s{number}", f"p = {number}")))
    out = net.brokers["a"].links["b"].outward.subscriptions
    assert len(out.unacked) == 2
    assert not any(net.confirmed("ann", 100 + number) for number in range(20))
    net.run()
    deltas = [
        message for one, other, message in net.passed if (one, other) == ("a", "b") and isinstance(message, Delta)
    ]
    assert max(len(delta.added) for delta in deltas) == 3
    assert all(net.confirmed("ann", 100 + number) for number in range(20))
    assert len(net.held("c", "b")) == 20


def test_what_went_is_told_only_behind_all_that_came() -> None:
    """What stands for it may be among that."""
    net = Net([("a", "b")], limits=BrokerLimits(delta_entries=2, deltas_flying=1))
    net.join("a", "ann")
    for number in range(5):
        net.subscribe("a", "ann", f"s{number}", f"p = {number}")
    net.passed.clear()
    for number, text in enumerate(("q = 1", "q = 2", "q = 3", "p < 10", "q = 4")):
        net.handle("a", FromClient("ann", Subscribe(100 + number, f"t{number}", text)))
    while net._waiting:
        name, input = net._waiting.popleft()
        net.handle(name, input)
        held = [parse(text) for text in net.held("b", "a")]
        assert all(any(one.matches({"p": number}) for one in held) for number in range(5))
    assert net.held("b", "a") == ["p < 10", "q = 1", "q = 2", "q = 3", "q = 4"]


def test_normal_forms_of_a_large_change_are_made_later_and_come_out_the_same() -> None:
    known = KnownFilters()
    known.normal_at_once = 2
    stage = Identity(known)
    texts = {"c:ann\nx": "p < 5", "c:ann\ny": "5 > p", "c:ann\nz": "NOT p >= 7"}
    given = {source: parse(text) for source, text in texts.items()}
    assert stage.change(Change(given), 0.0).added.keys() == {"x", "y", "z"}
    assert stage.behind == 3
    assert stage.change(Change({}, {"c:ann\nz"}), 0.0) == Change({}, {"z"})
    key, normal = known.normal(parse("p < 5"))
    known.budget = Budget(1, is_for_work=True)
    assert stage.work(0.0) == Change({key: normal}, {"x"})
    assert stage.work(0.0) == Change({}, set()), "the budget is used up"
    known.budget = Budget(1_000, is_for_work=True)
    assert stage.work(0.0) == Change({}, {"y"})
    assert (stage.behind, stage.follow("c:ann\nx").key) == (0, key)
    assert not stage.change(Change({}, {"c:ann\nx"}), 0.0)
    assert stage.change(Change({}, {"c:ann\ny"}), 0.0) == Change({}, {key})


def test_a_piece_of_work_looks_at_few_entries_however_many_wait() -> None:
    net = Net([("a", "b")], limits=BrokerLimits(request_steps=0))
    net.join("a", "ann")
    for at in range(200):
        net.subscribe("a", "ann", f"s{at}", f"x = {at} AND y < {at % 7}")
    before = net.brokers["a"].behind
    assert before == 200
    pieces = 0
    while net.brokers["a"].behind:
        give(net, "a", 1)
        after = net.brokers["a"].behind
        assert 0 < before - after <= TOGETHER
        before, pieces = after, pieces + 1
    assert pieces >= 200 / TOGETHER


def test_a_neighbour_that_comes_back_to_a_large_table_is_greeted_without_printing_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = Net([("a", "b")], limits=BrokerLimits(recall_filters=5))
    net.join("a", "ann")
    for at in range(100):
        net.subscribe("a", "ann", f"s{at}", f"x = {at}")
    net.restart("b")
    net.disconnect("a", "b")
    net.brokers["a"].links["b"].take(Signal.RECALLING)
    net.brokers["a"].links["b"].outward.subscriptions.all_doubtful = True
    printed: list[Filter] = []
    to_text = Filter.__str__
    monkeypatch.setattr(Filter, "__str__", lambda self: printed.append(self) or to_text(self))
    net.passed.clear()
    net.connect("a", "b")
    recalls = [message.recalls for near, _, message in net.passed if near == "a" and isinstance(message, Delta)]
    assert ["TRUE"] in recalls
    assert len(printed) <= 20
