"""Rectangles of a filter mean what the filter means."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from covey import parse
from covey.filters import And, Filter, Not, matches
from covey.filters.semantics import SEMANTICS, Semantics
from covey.relations.subsumption import (
    Instant,
    Integer,
    NegativeSpace,
    Nominal,
    Number,
    Space,
    rectangle_of,
    rectangles_of,
)
from tests import random_worlds

SPACE = Space(
    [
        Number("i"),
        Number("j"),
        Number("d"),
        Number("r.x"),
        Number("r.y.z"),
        Nominal("s", ["b", "", "a", "ab"]),
        Nominal("t", ["a", "zz"]),
        Nominal("b", [False, True], other=False),
        Instant("w"),
        Nominal("l", [1, 2]),
    ]
)
SHOP = Space([Number("price", 0, 1000), Nominal("colour", ["red", "blue"]), Integer("size")])


def conjunction(rng: random.Random) -> Filter:
    parts = [random_worlds.predicate(rng) for _ in range(rng.randint(2, 4))]
    return And(tuple(Not(part) if rng.random() < 0.3 else part for part in parts))


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("seed", range(3))
def test_an_event_meets_a_filter_exactly_if_its_point_is_in_one_rectangle(seed: int, semantics: Semantics) -> None:
    rng = random.Random(seed)
    defaults = random_worlds.DEFAULTS if semantics == "default" else None
    events = [random_worlds.event_of(rng) for _ in range(60)]
    points = [SPACE.point(event) for event in events]
    found = 0
    for _ in range(150):
        condition = conjunction(rng)
        rectangles = rectangles_of(condition, SPACE, semantics, defaults)
        if rectangles is None:
            continue
        found += 1
        for event, point in zip(events, points, strict=True):
            assert point is not None
            holding = sum(point in rectangle for rectangle in rectangles)
            assert holding == matches(condition, event, semantics=semantics, defaults=defaults), (condition, event)
    assert found > 30


@pytest.mark.parametrize("seed", range(4))
def test_a_filter_that_is_subsumed_is_met_by_no_event_that_the_active_ones_miss(seed: int) -> None:
    rng = random.Random(seed)
    negative = NegativeSpace(SPACE, method="approximate" if seed % 2 else "exact", limit=20_000)
    filters: dict[int, Filter] = {}
    for name in range(60):
        condition = random_worlds.predicate(rng) if rng.random() < 0.5 else conjunction(rng)
        region = rectangles_of(condition, SPACE)
        if region is not None:
            filters[name] = condition
            negative.subscribe(name, region)
    assert negative.passives()
    active: list[Filter] = [filters[name] for name in negative.actives()]  # type: ignore[index]
    for _ in range(300):
        event = random_worlds.event_of(rng)
        if not any(matches(condition, event) for condition in active):
            assert not any(matches(filters[name], event) for name in negative.passives())  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "intervals"),
    [
        ("price BETWEEN 10 AND 20 AND size > 3", {"price": (10, 20), "size": (4, None)}),
        ("price >= 10 AND price <= 20", {"price": (10, 20)}),
        ("colour = 'red'", {"colour": "red"}),
        ("colour IN ('blue', 'red')", {"colour": ("red", "blue")}),
        ("size > 3 AND size < 5", {"size": 4}),
        ("TRUE", {}),
    ],
)
def test_a_conjunctive_filter_is_one_rectangle(text: str, intervals: dict[str, Any]) -> None:
    assert rectangle_of(parse(text), SHOP) == SHOP.rectangle(intervals)


@pytest.mark.parametrize(
    ("text", "count"),
    [("price != 5", 2), ("price != 5 AND size != 7", 4), ("price < 3 AND price > 4", 0), ("price > 2000", 0)],
)
def test_a_set_of_several_intervals_is_several_rectangles(text: str, count: int) -> None:
    rectangles = rectangles_of(parse(text), SHOP)
    assert rectangles is not None
    assert len(rectangles) == count
    assert rectangle_of(parse(text), SHOP) is None


@pytest.mark.parametrize(
    "text",
    [
        "weight = 3",
        "price < 3 OR size > 4",
        "colour LIKE '%e%'",
        "colour = 'pink'",
        "colour < 'c'",
        "size < 9999999999999999999",
    ],
)
def test_what_has_no_exact_rectangles_gives_none(text: str) -> None:
    assert rectangles_of(parse(text), SHOP) is None


def test_more_rectangles_than_the_limit_give_none() -> None:
    condition = parse("size NOT IN (1, 3, 5, 7)")
    assert len(rectangles_of(condition, SHOP) or ()) == 5
    assert rectangles_of(condition, SHOP, limit=4) is None


def test_missing_attributes_are_part_of_what_is_subsumed() -> None:
    negative = NegativeSpace(SHOP)
    for name, text in enumerate(["price < 500", "price >= 500", "price IS NULL"]):
        region = rectangles_of(parse(text), SHOP)
        assert region is not None
        negative.subscribe(name, region)
    red = rectangles_of(parse("colour = 'red'"), SHOP)
    assert red is not None
    assert not negative.is_subsumed(red), "a price of another kind is neither missing nor compared"
    priced = rectangles_of(parse("price BETWEEN 3 AND 700 AND colour = 'red'"), SHOP)
    assert priced is not None
    assert negative.is_subsumed(priced)


def test_timestamps_and_infinities_are_bounds_too() -> None:
    space = Space([Instant("t"), Number("x")])
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    rectangle = rectangle_of(parse("t >= TIMESTAMP '2024-01-01 00:00:00' AND x <= 5"), space)
    assert rectangle is not None
    assert space.point({"t": moment, "x": -math.inf}) in rectangle
    assert space.point({"t": moment, "x": math.nan}) not in rectangle
