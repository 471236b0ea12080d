"""Compaction: smaller tables that match the same."""

from __future__ import annotations

import itertools
import random

import pytest

import covey
from covey.filters import SEMANTICS, Filter, Semantics
from covey.history import EventSample
from covey.relations.compaction import Compacted, compact
from tests.random_worlds import event_of, filter_of


def conjunctions(count: int, seed: int) -> list[tuple[str, Filter]]:
    rng = random.Random(seed)
    made = []
    for number in range(count):
        parts = [f"a = {rng.randrange(4)}"] if rng.random() < 0.7 else []
        low = rng.randrange(10)
        parts += [f"b BETWEEN {low} AND {low + rng.randrange(6)}"] if rng.random() < 0.8 else []
        parts += [f"c IN ({', '.join(repr(word) for word in rng.sample('wxyz', 2))})"] if rng.random() < 0.5 else []
        made.append((f"s{number:03}", covey.parse(" AND ".join(parts) or "a IS NOT NULL")))
    return made


def events(count: int, seed: int) -> list[dict[str, object]]:
    rng = random.Random(seed)
    return [
        {
            name: value
            for name, value in (("a", rng.randrange(5)), ("b", rng.uniform(0, 16)), ("c", rng.choice("vwxyz")))
            if rng.random() < 0.9
        }
        for _ in range(count)
    ]


def check(
    found: Compacted,
    given: list[tuple[str, Filter]],
    sample: list[dict[str, object]],
    semantics: Semantics,
    *,
    exact: bool,
) -> int:
    """Every id in one entry, which matches what it does; with `exact`, an entry matches only what some of them does.
    Gives how many matches are in vain."""
    filters = dict(given)
    assert sorted(id for entry in found.entries for id in entry.stands_for) == sorted(filters)
    vain = 0
    for event in sample:
        for entry in found.entries:
            wanted = any(filters[id].matches(event, semantics=semantics) for id in entry.stands_for)
            matched = entry.filter.matches(event, semantics=semantics)
            assert matched or not wanted
            vain += matched and not wanted
    assert not (exact and vain)
    return vain


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_without_an_imperfect_step_the_table_is_smaller_and_matches_the_same(semantics: Semantics) -> None:
    given = conjunctions(150, 1)
    found = compact(given, semantics=semantics)
    assert len(found.entries) < 60
    check(found, given, events(120, 2), semantics, exact=True)
    sizes = [step.before for step in found.steps] + [found.steps[-1].after]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 150
    assert sizes[-1] == len(found.entries)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_filters_of_any_shape_are_compacted_too(semantics: Semantics) -> None:
    rng = random.Random(5)
    given = [(str(number), filter_of(rng, 2)) for number in range(60)]
    check(compact(given, semantics=semantics), given, [event_of(rng) for _ in range(60)], semantics, exact=True)


def test_imperfect_mergers_and_prunings_only_add_matches() -> None:
    rng = random.Random(5)
    lows = [round(rng.uniform(0, 14), 2) for _ in range(120)]
    given = [
        (str(number), covey.parse(f"a = {number % 3} AND b BETWEEN {low} AND {low + 0.2:.2f}"))
        for number, low in enumerate(lows)
    ]
    seen = EventSample(events(2_000, 4))
    exact = compact(given)
    merged = compact(given, imt=0.7, chances=seen)
    assert len(merged.entries) < len(exact.entries)
    assert check(exact, given, events(100, 5), "sql", exact=True) == 0
    assert check(merged, given, events(400, 5), "sql", exact=False) > 0
    parts = [(str(number), covey.parse(f"a = {number % 40} AND b > 2 AND c = 'w'")) for number in range(80)]
    pruned = compact(parts, prune=0.3, chances=seen, merging=False)
    assert len(pruned.entries) < len(compact(parts, merging=False).entries)
    assert sum(len(entry.filter.attributes()) for entry in pruned.entries) < 80
    assert check(pruned, parts, events(400, 5), "sql", exact=False) > 0


def test_a_threshold_by_traffic_lets_rare_mergers_be_wider() -> None:
    """A merger of rare filters may be mostly in vain and yet let little of all events through."""
    given = [(str(number), covey.parse(f"a = {number} AND b BETWEEN {number} AND {number + 2}")) for number in range(4)]
    seen = EventSample([{"a": n % 50, "b": n % 7} for n in range(7_000)])
    by_degree = compact(given, imt=0.1, chances=seen)
    by_traffic = compact(given, imt=0.1, measure="traffic", chances=seen)
    assert len(by_traffic.entries) < len(by_degree.entries) == len(given)
    asked = [{"a": a, "b": b} for a in range(50) for b in range(7)]
    vain = sum(
        any(entry.filter.matches(event) for entry in by_traffic.entries)
        and not any(condition.matches(event) for _, condition in given)
        for event in asked
    )
    assert 0 < vain <= 0.1 * len(asked)
    check(by_traffic, given, asked, "sql", exact=False)


def test_imperfect_steps_ask_for_events() -> None:
    with pytest.raises(covey.CoveyError, match="give chances="):
        compact(conjunctions(3, 1), imt=0.1)


def test_an_id_that_occurs_twice_is_refused() -> None:
    with pytest.raises(covey.DuplicateIdError, match="'x' occurs twice"):
        compact([("x", covey.parse("a = 1")), ("x", covey.parse("a = 2"))])


def test_an_empty_table_stays_empty() -> None:
    assert compact([]).entries == []


def test_progress_is_told() -> None:
    calls: list[tuple[str, int, int]] = []
    compact(conjunctions(20, 1), progress=lambda step, done, total: calls.append((step, done, total)))
    assert {step for step, _, _ in calls} >= {"identity", "covering"}
    assert all(0 <= done <= total for _, done, total in calls)


def test_steps_take_as_long_as_the_clock_that_is_given_says() -> None:
    readings = itertools.count(step=2.0)
    found = compact([("a", covey.parse("x < 1")), ("b", covey.parse("x < 2"))], clock=lambda: next(readings))
    assert {step.seconds for step in found.steps} == {2.0}
    assert {step.seconds for step in compact([("a", covey.parse("x < 1"))]).steps} == {0.0}
