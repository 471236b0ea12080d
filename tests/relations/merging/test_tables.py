from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import Attribute, CoveyError, DuplicateIdError, Schema, parse
from covey.filters import FALSE, SEMANTICS, Filter, Semantics
from covey.history import EventSample
from covey.relations.exact import covers
from covey.relations.merging import Merger, Uniform, merge, merge_table
from covey.relations.merging.samples import ENOUGH
from tests.relations.merging.worlds import DEFAULTS, events, table
from tests.strategies import events as any_events
from tests.strategies import filters

EVENTS = events(7, 60)


def of(*texts: str, **options: Any) -> dict[str, tuple[int, ...]]:
    """Merged filters with the places of the texts that they stand for."""
    return {str(one.filter): one.parts for one in merge_table(enumerate(map(parse, texts)), **options)}


def check(
    entries: list[tuple[int, Filter]], merged: list[Merger[int]], worlds: list[dict[str, Any]], semantics: Semantics
) -> None:
    """Each id is in one entry, each entry matches what its parts do, and only that if it is perfect."""
    assert sorted(part for entry in merged for part in entry.parts) == sorted(id for id, _ in entries)
    for event in worlds:
        met = {id for id, one in entries if one.matches(event, semantics=semantics, defaults=DEFAULTS)}
        for entry in merged:
            found = entry.filter.matches(event, semantics=semantics, defaults=DEFAULTS)
            wanted = not met.isdisjoint(entry.parts)
            assert found or not wanted, f"{event} is lost by {entry}"
            assert found == wanted or not entry.perfect, f"{event} comes with {entry}"


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("max_pieces", [1, 8])
def test_at_threshold_0_every_entry_matches_exactly_what_its_parts_match(semantics: Semantics, max_pieces: int) -> None:
    for seed in range(2):
        entries = table(seed, 150)
        merged = merge_table(entries, semantics=semantics, defaults=DEFAULTS, max_pieces=max_pieces)
        check(entries, merged, EVENTS, semantics)
        assert all(entry.perfect and entry.degree == 0 for entry in merged)
        assert len(merged) < 100


@given(st.lists(filters(max_leaves=3), max_size=8), st.lists(any_events(), min_size=1, max_size=4))
def test_tables_of_any_filters_match_what_they_matched(parts: list[Filter], worlds: list[dict[str, Any]]) -> None:
    entries = list(enumerate(parts))
    for semantics in SEMANTICS:
        check(entries, merge_table(entries, semantics=semantics, defaults=DEFAULTS), worlds, semantics)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_above_0_every_entry_still_matches_what_its_parts_match(semantics: Semantics) -> None:
    entries = table(3, 150)
    sizes = []
    for imt in (0.0, 0.2, 1.0):
        merged = merge_table(
            entries, imt=imt, chances=EventSample(events(8, 500)), semantics=semantics, defaults=DEFAULTS, max_pieces=1
        )
        check(entries, merged, EVENTS, semantics)
        sizes.append(len(merged))
    assert sizes[0] > max(sizes[1:])


@pytest.mark.parametrize(("imt", "semantics"), [(0.05, "sql"), (0.15, "default"), (0.4, "sql"), (0.1, "strict")])
@pytest.mark.parametrize("advertised", [False, True])
def test_every_accepted_merger_has_a_degree_within_the_threshold_by_recount(
    imt: float, semantics: Semantics, advertised: bool
) -> None:
    def met(condition: Filter, event: dict[str, Any]) -> bool:
        return condition.matches(event, semantics=semantics, defaults=DEFAULTS)

    sample = events(8, 500, missing=0.3)
    advertisements = [parse("a > 2"), parse("b < 5")] if advertised else []
    entries = table(5, 150)
    merged = merge_table(
        entries,
        imt=imt,
        chances=EventSample(sample),
        advertisements=advertisements,
        max_pieces=1,
        semantics=semantics,
        defaults=DEFAULTS,
    )
    filters = dict(entries)
    allowed = [one for one in sample if not advertised or any(met(ad, one) for ad in advertisements)]
    recounted = 0
    for entry in merged:
        matched = [one for one in allowed if met(entry.filter, one)]
        in_vain = [one for one in matched if not any(met(filters[part], one) for part in entry.parts)]
        assert entry.degree <= imt
        if len(matched) >= ENOUGH:
            assert len(in_vain) / len(matched) <= entry.degree + 1e-12
            recounted += not entry.perfect
    assert recounted > 0


def test_rare_mergers_are_judged_by_the_constraints_in_which_parts_differ() -> None:
    ranges = Uniform({"x": (0, 99), "y": (0, 99), "k": (0, 10**6)})
    parts = ["x < 50 AND y < 50 AND k = 1", "x < 60 AND y < 40 AND k = 1"]
    (entry,) = merge_table(enumerate(map(parse, parts)), imt=0.1, chances=ranges)
    assert str(entry.filter) == "k = 1 AND x < 60 AND y < 50"
    assert 0 < entry.degree < 0.05
    assert len(merge_table(enumerate(map(parse, parts)), imt=0.001, chances=ranges)) == 2


def test_mergers_that_no_event_of_the_sample_tells_anything_of_are_not_made() -> None:
    nothing = EventSample([{"x": 500}] * 100)
    assert len(of("x = 1 AND y = 1", "x = 2 AND y = 2", imt=0.9, chances=nothing)) == 2
    assert len(of("x = 1 AND y = 1", "x = 2 AND y = 2", imt=0.9, chances=EventSample([]))) == 2


def test_chances_without_events_are_asked_with_filters() -> None:
    class Unseen:
        """Chances that have no events to show."""

        def chances(self, filters: Any, semantics: Semantics = "sql") -> Any:
            return Uniform({"x": (0, 99), "y": (0, 99)}).chances(filters, semantics)

    parts = ("x < 50 AND y < 50", "x < 60 AND y < 40")
    assert list(of(*parts, imt=0.1, chances=Unseen())) == ["x < 60 AND y < 50"]
    assert len(of(*parts, imt=0.001, chances=Unseen())) == 2


def test_traffic_accepts_rare_mergers_of_a_high_degree() -> None:
    ranges = Uniform({"x": (0, 99), "y": (0, 9)})
    parts = ("x = 1 AND y < 5", "x = 2 AND y > 5")
    assert len(of(*parts, imt=0.1, chances=ranges)) == 2
    assert len(of(*parts, imt=0.1, chances=ranges, measure="traffic")) == 1


def test_identical_and_covered_subscriptions_are_part_of_the_covering_entry() -> None:
    assert of("x < 5", "x < 3 AND y = 1", "x < 5", "NOT x >= 5", "y = 1 AND z = 2") == {
        "x < 5": (0, 1, 2, 3),
        "y = 1 AND z = 2": (4,),
    }


def test_uniting_on_one_attribute_opens_the_way_to_another() -> None:
    quarters = ("x < 5 AND y < 5", "x >= 5 AND y < 5", "x < 5 AND y >= 5", "x >= 5 AND y >= 5")
    schema = Schema({"x": "int", "y": "int"})
    (merged,) = of(*quarters, schema=schema)
    assert parse(merged).matches({"x": 1, "y": 9})
    assert not parse(merged).matches({"x": 1})


def test_more_pieces_than_allowed_stay_apart() -> None:
    assert len(of(*(f"x = {10 * n}" for n in range(20)), max_pieces=8)) == 3
    assert len(of(*(f"x = {10 * n}" for n in range(20)), max_pieces=20)) == 1
    assert len(of(*(f"x = {10 * n}" for n in range(20)), max_pieces=1)) == 20


def test_intervals_open_to_both_sides_leave_out_one_even_where_one_piece_is_allowed() -> None:
    assert of("p = 1 AND x > 7", "p = 1 AND x < 4", max_pieces=1) == {"p = 1 AND (x < 4 OR x > 7)": (0, 1)}


def test_gaps_that_no_advertisement_allows_close_at_threshold_0() -> None:
    prices = ("price > 150", "price = 130", "price = 120")
    merged = merge_table(enumerate(map(parse, prices)), advertisements=[parse("price > 150")], max_pieces=1)
    assert [(str(one.filter), one.perfect, one.degree) for one in merged] == [("price >= 120", False, 0.0)]
    assert len(merge_table(enumerate(map(parse, prices)), max_pieces=1)) == 3
    merged = merge_table(
        enumerate(map(parse, prices)), advertisements=[parse("price > 150"), parse("price < 125")], max_pieces=1
    )
    assert [str(one.filter) for one in merged] == ["price >= 130", "price = 120"]


def test_subscriptions_that_can_not_be_met_are_in_the_table_too() -> None:
    assert of("x < 1 AND x > 2", "y = 1") == {"y = 1": (1, 0)}
    assert merge_table([(0, FALSE), (1, FALSE)]) == [Merger(FALSE, (0, 1), True, 0.0)]
    assert merge_table([]) == []


def test_opaque_tests_are_counted_on_the_sample_too() -> None:
    rng = random.Random(1)
    sample = EventSample([{"s": rng.choice("abc") + rng.choice("xyz"), "x": rng.randint(0, 99)} for _ in range(2000)])
    parts = ("s RLIKE 'x$' AND x < 50", "s RLIKE 'x$' AND x > 51 AND x < 80")
    (entry,) = merge_table(enumerate(map(parse, parts)), imt=0.1, chances=sample, max_pieces=1)
    assert entry.perfect is False
    assert covers(entry.filter, parse(parts[0]))
    assert not covers(entry.filter, parse("x < 80"))


def test_two_entries_become_what_merge_makes_of_them() -> None:
    rng = random.Random(4)
    for seed in range(60):
        (_, left), (_, right) = table(seed, 2)
        single = merge([left, right])
        merged = merge_table([(0, left), (1, right)])
        if len(merged) == 1:
            event = rng.choice(EVENTS)
            assert merged[0].filter.matches(event) == single.filter.matches(event)


def test_integers_and_mandatory_attributes_are_known_to_imperfect_mergers_too() -> None:
    schema = Schema({"x": Attribute("int", mandatory=True), "y": "int"})
    ranges = Uniform({"x": (0, 99), "y": (0, 9)})
    parts = ("x < 50 AND y < 8", "x > 48 AND y < 9")
    assert list(of(*parts, imt=0.1, chances=ranges, rules=("hull",), schema=schema)) == ["y <= 8"]


def test_progress_names_the_stages() -> None:
    stages: list[str] = []
    merge_table(table(1, 50), imt=0.3, progress=lambda stage, done, total: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["reading", "uniting", "widening"]


def test_bad_arguments_are_errors() -> None:
    with pytest.raises(CoveyError, match=r"threshold is 1\.5"):
        merge_table([], imt=1.5)
    with pytest.raises(CoveyError, match="hull is tighter"):
        merge_table([], rules=("prefix",))
    with pytest.raises(DuplicateIdError, match="'a'"):
        merge_table([("a", parse("x = 1")), ("a", parse("x = 2"))])


def test_what_is_listed_beside_a_closed_gap_is_not_perfect_either() -> None:
    prices = ("price = 120", "price = 130", "price = 10")
    advertisements = [parse("price > 150"), parse("price < 50")]
    (entry,) = merge_table(enumerate(map(parse, prices)), advertisements=advertisements, max_pieces=2)
    assert entry.filter.matches({"price": 125})
    assert not entry.perfect


def test_a_widened_set_with_a_default_in_it_counts_events_that_miss_the_attribute() -> None:
    parts = [(0, parse("x < 3 AND y < 50")), (1, parse("x > 7 AND y < 60"))]
    sample = EventSample([{"x": 1, "y": 1}] * 100 + [{"y": 1}] * 100)
    options: dict[str, Any] = {"semantics": "default", "chances": sample, "rules": ("hull",), "max_pieces": 1}
    assert len(merge_table(parts, imt=0.2, defaults={"x": 5}, **options)) == 2
    assert len(merge_table(parts, imt=0.2, defaults={"x": 1}, **options)) == 1
