"""An index asks attributes in the order that a profile of past subscriptions teaches."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from tests.random_worlds import event_of, filter_of

import covey
from covey.matching.segment import Segment

NAMES = ("a", "b", "c", "d", "e")


def past() -> covey.Profile:
    """Subscriptions that agree most on `b`, then `e`, and hardly on any of the others."""
    texts = [f"b > 0 AND e > {n % 3} AND a > {n} AND d > {n % 7} AND c > {n % 20}" for n in range(60)]
    return covey.Profile.of(subscriptions=map(covey.parse, texts))


def asked(segment: Segment) -> list[list[str]]:
    """The attributes that each entry's diagram asks, from the root on: children come before parents."""
    tables = segment.tables
    return [
        [segment.names[row >> 8] for row in tables.nodes[start : start + count, 0][::-1].tolist()]
        for start, count in zip(tables.entry_start.tolist(), tables.entry_nodes.tolist(), strict=True)
    ]


def rows(count: int) -> list[tuple[str, str]]:
    rng = random.Random(3)
    found = []
    for number in range(count):
        names = rng.sample(NAMES, 4)
        found.append((f"s{number}", " AND ".join(f"{name} != {rng.randrange(9)}" for name in names)))
    return found


def in_order(index: covey.Index, order: list[str]) -> bool:
    diagrams = [diagram for sealed in index.parts() for diagram in asked(sealed.segment)]
    assert any(len(diagram) > 2 for diagram in diagrams)
    return all(order.index(upper) <= order.index(lower) for diagram in diagrams for upper, lower in pairwise(diagram))


def test_the_order_is_that_of_the_profile(tmp_path: Path) -> None:
    order = past().attribute_order()
    assert order[-2:] == ["e", "b"]
    assert order != sorted(order)
    learned, plain = covey.Index(order="learned", profile=past()), covey.Index(order="attribute")
    for index in (learned, plain):
        index.add_many(rows(100))
    assert in_order(learned, order)
    assert not in_order(plain, order)
    # However subscriptions come: one by one, merged with others, from a file, after a file.
    one_by_one = covey.Index(order="learned", profile=past())
    for id, text in rows(200):
        one_by_one.add(id, text)
    assert in_order(one_by_one, order)
    one_by_one.compact()
    assert in_order(one_by_one, order)
    one_by_one.save(tmp_path / "index.covey")
    opened = covey.Index.open(tmp_path / "index.covey")
    opened.add_many([(f"more {id}", text) for id, text in rows(40)])
    assert in_order(opened, order)


@pytest.mark.parametrize("semantics", ["sql", "simple", "strict"])
def test_no_answer_depends_on_it(semantics: str) -> None:
    rng = random.Random(8)
    conditions = {f"s{number}": filter_of(rng) for number in range(150)}
    batch = [event_of(rng) for _ in range(60)]
    profile = covey.Profile.of(subscriptions=[filter_of(rng) for _ in range(40)])
    index = covey.Index(semantics=semantics, order="learned", profile=profile)  # type: ignore[arg-type]
    index.add_many(list(conditions.items())[:100])
    for id, condition in list(conditions.items())[100:]:
        index.add(id, condition)
    expected = [
        [id for id, one in conditions.items() if one.matches(event, semantics=semantics)]  # type: ignore[arg-type]
        for event in batch
    ]
    assert index.match_batch(batch).to_pylist() == expected
    assert [index.match(event) for event in batch] == expected


def test_a_profile_of_events_is_the_statistics_too() -> None:
    rows = [(f"s{number}", f"common = {number % 2} AND rare = {number % 10}") for number in range(500)]
    sample = [{"common": number % 2, "rare": number % 100} for number in range(1000)]
    profile = covey.Profile.of(sample, [covey.parse(text) for _, text in rows])
    by_profile, by_statistics = covey.Index(profile=profile), covey.Index(statistics=profile.statistics())
    for index in (by_profile, by_statistics):
        index.add_many(rows)
    one, other = (index.parts()[0].segment.tables for index in (by_profile, by_statistics))
    assert one.entry_low.tolist() == other.entry_low.tolist()
    assert one.nodes.tolist() == other.nodes.tolist()
    assert by_profile.stats().partitions == by_statistics.stats().partitions


def test_nothing_is_learned_from_nothing() -> None:
    with pytest.raises(covey.CoveyError, match="profile="):
        covey.Index(order="learned")
    with pytest.raises(covey.CoveyError, match="selectivity, attribute, frequency, random, learned"):
        covey.Index(order="alphabetic", profile=past())
