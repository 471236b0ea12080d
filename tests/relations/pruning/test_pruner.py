"""Subscriptions that come, go and are restored; and where pruning stops."""

from __future__ import annotations

import random

import pytest

from covey import CoveyError, DuplicateIdError, UnknownIdError, parse
from covey.history import EventSample
from covey.relations.pruning import DIMENSIONS, Dimension, Pruner, Target
from covey.relations.pruning import pruner as module
from tests.relations.pruning.plain import Counted, Given, PlainPruner
from tests.relations.pruning.worlds import events, subscriptions

CHANCES = Counted(events(1, 32))
FILTERS = subscriptions(4, 40)


def fresh(dimension: Dimension = "network") -> Pruner:
    return Pruner(FILTERS, CHANCES, dimension)


def figures(of: Pruner) -> tuple[object, ...]:
    each = {id: (of.filter(id), of.degradation(id)) for id in of}
    return each, of.associations, of.predicates, of.bytes, of.pruned, of.remaining, of.total_possible


def test_all_chances_are_asked_for_in_one_call_and_known_ones_never_again() -> None:
    chances = Counted(events(1, 8))
    pruner = Pruner(FILTERS, chances)
    pruner.prune()
    pruner.add("again", FILTERS[0][1])
    assert chances.calls == 1
    pruner.add("new", parse("never_named_before = 1"))
    assert chances.calls == 2


def test_a_sample_of_events_gives_the_chances() -> None:
    sample = EventSample([{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1}, {"b": 1}])
    pruner = Pruner([("s", parse("a = 1 AND NOT b = 1"))], sample)
    assert pruner.selectivity("s") == (0.0, 0.75 * 0.25, 0.25)
    assert str(pruner.prune(1)[0].removed) == "a = 1"


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_removing_a_subscription_leaves_what_there_would_be_without_it(dimension: Dimension) -> None:
    pruner = fresh(dimension)
    pruner.prune(60)
    for id, _ in FILTERS[::3]:
        pruner.remove(id)
        assert id not in pruner
    kept = [one for one in FILTERS if one[0] in pruner]
    without = Pruner(kept, CHANCES, dimension)
    # The order of the rest doesn't depend on who else is in the queue.
    without.prune(pruner.pruned)
    assert figures(pruner) == figures(without)
    assert list(pruner.prune()) == list(without.prune())


def test_a_subscription_added_again_is_whole_again() -> None:
    pruner = fresh()
    id = pruner.prune()[0].id
    condition = dict(FILTERS)[id]
    assert pruner.filter(id) != condition
    pruner.remove(id)
    pruner.add(id, condition)
    assert pruner.filter(id) is condition
    assert pruner.degradation(id) == 0.0
    assert pruner.remaining > 0
    assert {one.id for one in pruner.prune()} == {id}


def test_restoring_all_and_pruning_again_gives_the_same_prunings() -> None:
    pruner = fresh()
    whole = figures(pruner)
    first = list(pruner.prune())
    pruner.restore()
    assert figures(pruner) == whole
    assert list(pruner.prune()) == first


def test_restoring_one_leaves_the_others_pruned() -> None:
    pruner = fresh()
    id = pruner.prune()[0].id
    condition = dict(FILTERS)[id]
    before = {other: pruner.filter(other) for other in pruner}
    pruner.restore(id)
    assert pruner.filter(id) is condition
    assert {one.id for one in pruner.prune()} == {id}
    assert {other: pruner.filter(other) for other in pruner} == before


def test_prune_to_goes_forth_and_back() -> None:
    pruner, straight = fresh(), fresh()
    straight.prune(30)
    pruner.prune_to(80)
    assert pruner.pruned == 80
    pruner.prune_to(30)
    assert figures(pruner) == figures(straight)
    pruner.prune_to(45)
    assert pruner.pruned == 45


@pytest.mark.parametrize("seed", range(3))
def test_packing_after_many_removals_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    filters = subscriptions(seed + 50, 30)
    loose, packed = (Pruner(filters, CHANCES) for _ in range(2))
    packings = 0
    pack = Pruner._pack

    def counted(self: Pruner) -> None:
        nonlocal packings
        packings += 1
        pack(self)

    monkeypatch.setattr(Pruner, "_pack", counted)
    for round in range(40):
        count = rng.randint(0, 3)
        gone = rng.choice(list(loose))
        for pruner, few in ((loose, 10**9), (packed, 0)):
            monkeypatch.setattr(module, "_FEW_EMPTY", few)
            pruner.prune(count)
            pruner.remove(gone)
            pruner.add(f"n{round}", filters[round % len(filters)][1])
        assert figures(loose) == figures(packed)
    assert packings
    assert list(loose.prune()) == list(packed.prune())


@pytest.mark.parametrize("then", DIMENSIONS)
def test_another_dimension_goes_on_from_where_the_last_one_stopped(then: Dimension) -> None:
    filters, chances = subscriptions(9, 10), CHANCES
    pruner, plain = Pruner(filters, chances, "throughput"), PlainPruner(filters, chances, "throughput", "sql")
    pruner.prune(10)
    plain.prune(10)
    pruner.dimension = then
    plain.switch(then)
    assert pruner.dimension == then
    assert pruner.pruned == 10
    assert [(one.id, one.removed) for one in pruner.prune()] == [step[:2] for step in plain.prune()]


def test_pruning_stops_at_the_count() -> None:
    pruner = fresh()
    assert len(pruner.prune(0)) == 0
    assert len(pruner.prune(12)) == 12
    assert pruner.pruned == 12
    with pytest.raises(CoveyError, match="-1 prunings"):
        pruner.prune(-1)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_no_subscription_degrades_beyond_the_target(dimension: Dimension) -> None:
    pruner = fresh(dimension)
    done = pruner.prune(target=Target(degradation=0.1))
    assert all(one.degradation <= 0.1 for one in done)
    assert pruner.prune(1)[0].degradation > 0.1


def test_subscriptions_degrade_no_more_than_the_target_on_average() -> None:
    pruner = fresh()
    assert len(pruner.prune(target=Target(mean_degradation=0.02)))
    assert pruner.mean_degradation <= 0.02
    pruner.prune(1)
    assert pruner.mean_degradation > 0.02


@pytest.mark.parametrize("figure", ["associations", "predicates", "bytes"])
def test_pruning_goes_on_until_a_size_is_down_to_its_goal_and_no_further(figure: str) -> None:
    pruner, counted = fresh("memory"), fresh("memory")
    goal = getattr(pruner, figure) * 3 // 4
    done = pruner.prune(target=Target(**{figure: goal}))
    assert getattr(pruner, figure) <= goal
    counted.prune(len(done) - 1)
    assert getattr(counted, figure) > goal
    assert not pruner.prune(target=Target(**{figure: goal}))


def test_a_target_below_nothing_is_an_error() -> None:
    with pytest.raises(CoveyError, match="degradation=-1"):
        Target(degradation=-1)


def test_predicates_are_counted_once_and_associations_as_often_as_they_stand() -> None:
    pruner = Pruner([("x", parse("a = 1 AND b = 2")), ("y", parse("a = 1 AND NOT b = 2 AND TRUE"))], Given({}))
    assert (pruner.associations, pruner.predicates) == (4, 3)
    pruner.remove("y")
    assert (pruner.associations, pruner.predicates) == (2, 2)


def test_prunings_are_a_sequence() -> None:
    done = fresh().prune(5)
    assert done[-1] == list(done)[4]
    assert done[1:3] == list(done)[1:3]
    assert done.degradations.tolist() == [one.degradation for one in done]
    with pytest.raises(IndexError):
        done[5]


def test_prunings_stay_readable_when_their_subscriptions_are_gone() -> None:
    pruner = fresh()
    done = pruner.prune(20)
    before = list(done)
    for id in list(pruner):
        pruner.remove(id)
    assert list(done) == before
    assert (len(pruner), pruner.associations, pruner.bytes, pruner.mean_degradation) == (0, 0, 0, 0.0)
    assert not pruner.prune()


def test_a_pruner_may_start_empty() -> None:
    pruner = Pruner([], Given({}))
    assert not pruner.prune()
    pruner.restore()
    pruner.dimension = "memory"
    pruner.add("one", parse("a = 1 AND b = 2"))
    assert len(pruner.prune()) == 1


def test_ids_are_unique_and_must_be_known() -> None:
    pruner = fresh()
    with pytest.raises(DuplicateIdError, match="s0"):
        pruner.add("s0", parse("a = 1"))
    for use in (pruner.remove, pruner.filter, pruner.original, pruner.restore, pruner.degradation):
        with pytest.raises(UnknownIdError, match="nobody"):
            use("nobody")
    with pytest.raises(CoveyError, match="'text'"):
        pruner.add("text", "a = 1")  # type: ignore[arg-type]


def test_a_conjunction_of_thousands_is_pruned_to_one() -> None:
    wide = parse(" AND ".join(f"a{at} = {at}" for at in range(1500)))
    pruner = Pruner([("wide", wide)], Given({"a700 = 700": 0.01}, 0.99))
    assert len(pruner.prune()) == 1499
    assert pruner.filter("wide") == parse("a700 = 700")
