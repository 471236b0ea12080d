from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime
from typing import Any

import pytest

from covey import CoveyError, parse
from covey.filters import SEMANTICS, Filter, Semantics, any_of
from covey.history import EventSample
from covey.relations.merging import Meaning, Uniform, imperfect_degree, imperfect_degrees, merge
from tests.relations.merging.worlds import DEFAULTS, events, subscription

EVENTS = events(1, 250)


def counted(
    merger: Filter,
    parts: list[Filter],
    worlds: list[dict[str, Any]],
    semantics: Semantics = "sql",
    advertisements: list[Filter] | None = None,
) -> float:
    """Definitions 1 and 2, event by event."""

    def meets(condition: Filter, event: dict[str, Any]) -> bool:
        return condition.matches(event, semantics=semantics, defaults=DEFAULTS)

    allowed = [e for e in worlds if advertisements is None or any(meets(one, e) for one in advertisements)]
    matched = [event for event in allowed if meets(merger, event)]
    in_vain = [event for event in matched if not any(meets(part, event) for part in parts)]
    return len(in_vain) / len(matched) if matched else 0.0


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("advertised", [False, True])
def test_the_degree_is_the_fraction_of_matching_events_that_match_no_part(
    semantics: Semantics, advertised: bool
) -> None:
    rng = random.Random(5)
    sample = EventSample(EVENTS)
    meaning = Meaning(semantics, DEFAULTS)
    asked: list[tuple[Filter, list[Filter]]] = []
    for _ in range(25):
        parts = [subscription(rng) for _ in range(3)]
        merger = merge(parts, semantics=semantics, defaults=DEFAULTS, imperfect=True)
        asked.append((merger.filter, parts))
    advertisements = [parse("a < 5"), parse("b = 2 AND c > 1")] if advertised else []
    found = imperfect_degrees(asked, sample, advertisements=advertisements, meaning=meaning).degree
    wanted = [counted(*one, EVENTS, semantics, advertisements if advertised else None) for one in asked]
    assert found == pytest.approx(wanted)
    assert sum(degree > 0 for degree in wanted) > 6


def test_traffic_is_the_degree_times_the_chance_of_the_merger() -> None:
    ranges = Uniform({"x": (0, 9)})
    found = imperfect_degrees([(parse("x < 5"), [parse("x < 4")])], ranges)
    assert found.degree[0] == pytest.approx(0.2)
    assert found.traffic[0] == pytest.approx(0.1)


def test_advertised_prices_above_150_make_at_least_120_a_merger_without_false_positives() -> None:
    parts = [parse("price > 150"), parse("price = 130"), parse("price = 120")]
    advertisement = parse("price > 150")
    prices = Uniform({"price": (0, 300)})
    wide = parse("price >= 120")
    assert imperfect_degree(wide, parts, prices) > 0
    assert imperfect_degree(wide, parts, prices, advertisements=[advertisement]) == 0
    merger = merge(parts, imperfect=True, imt=0.0, max_pieces=1, chances=prices, advertisements=[advertisement])
    assert str(merger.filter) == "price >= 120"
    assert merger.degree == 0
    assert not merger.perfect
    assert merge(parts, imperfect=True, imt=0.0, max_pieces=1, chances=prices).perfect


def test_a_merger_that_no_event_matches_has_degree_0() -> None:
    assert imperfect_degree(parse("x < 5"), [parse("x < 4")], EventSample([{"x": 9}])) == 0


def test_uniform_chances_are_exact_on_integers() -> None:
    ranges = Uniform({"x": (0, 5), "y": (-2, 3), "s": ["a", "b", None]})
    grid = [{"x": x, "y": y, "s": s} for x, y, s in itertools.product(range(6), range(-2, 4), ["a", "b", None])]
    rng = random.Random(2)
    texts = ["x < 3", "x = 4", "y > 0", "y != 1", "s = 'a'", "s IS NULL", "x IN (1, 9)", "y BETWEEN -1 AND 2"]
    conditions = [
        any_of(parse(rng.choice(texts)) & parse(rng.choice(texts)) for _ in range(rng.randint(1, 4))) for _ in range(60)
    ]
    for semantics in ("sql", "simple"):
        wanted = [sum(one.matches(event, semantics=semantics) for event in grid) / len(grid) for one in conditions]
        assert ranges.chances(conditions, semantics) == pytest.approx(wanted)


def test_uniform_chances_of_real_and_timestamp_ranges_are_lengths() -> None:
    ranges = Uniform(
        {
            "d": (0.0, 4.0),
            "t": (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 11, tzinfo=UTC)),
            "b": [True, False],
        }
    )
    texts = ["d < 1", "d = 1", "d > 9", "t < timestamp '2024-01-03 00:00:00'", "b", "d < 1 AND b"]
    assert ranges.chances([parse(text) for text in texts]) == pytest.approx([0.25, 0, 0, 0.2, 0.5, 0.125])


def test_what_is_not_exact_is_counted_on_a_seeded_sample() -> None:
    ranges = Uniform({"s": ["ab", "b", "cb", "c"]}, seed=3)
    condition = parse("s RLIKE 'b$' AND s RLIKE '^[abc]'")
    chance = ranges.chances([condition])[0]
    assert chance == pytest.approx(0.75, abs=0.05)
    assert Uniform({"s": ["ab", "b", "cb", "c"]}, seed=3).chances([condition])[0] == chance


def test_attributes_without_a_range_are_missing() -> None:
    assert Uniform({}).chances([parse("x < 1"), parse("x IS NULL")]).tolist() == [0, 1]


def test_ranges_around_constants_reach_a_tenth_beyond_them() -> None:
    ranges = Uniform.around([parse("x > 10 AND s = 'a' AND d < 0.5"), parse("x < 110 AND b AND d > 10.5")])
    for event in ranges.events(200):
        assert 0 <= event["x"] <= 120
        assert -0.5 <= event["d"] <= 11.5
        assert event["b"] in (False, True)
    assert len({event["s"] for event in ranges.events(200)}) == 2


@pytest.mark.parametrize("given", [(1, 1), ("a", "b"), (2, 1), [], (1, datetime(2024, 1, 1))])
def test_a_range_that_is_none_is_an_error(given: Any) -> None:
    with pytest.raises(CoveyError, match="'x'"):
        Uniform({"x": given})


def test_the_first_instant_that_there_is_ends_a_range() -> None:
    late, early = parse("NOT t = TIMESTAMP '0001-01-01 00:00:00Z'"), parse("t = TIMESTAMP '1970-01-01 00:00:00Z'")
    assert merge([early, late], imperfect=True).degree == pytest.approx(0.0)
    first = parse("t >= TIMESTAMP '0001-01-01 00:00:00Z'")
    assert imperfect_degree(first, [late]) == pytest.approx(0.0)
