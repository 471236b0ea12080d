from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import Attribute, Schema, parse
from covey.filters import SEMANTICS, Filter, Semantics
from covey.relations.exact import covers, equivalent
from covey.relations.merging import MergeError, merge
from tests.random_worlds import DEFAULTS, event_of, filter_of
from tests.strategies import events, filters

EVENTS = [event_of(random.Random(seed)) for seed in range(40)]


def merged(*texts: str, **options: Any) -> str:
    return str(merge([parse(text) for text in texts], **options).filter)


def met(condition: Filter, event: dict[str, Any], semantics: Semantics) -> bool:
    return condition.matches(event, semantics=semantics, defaults=DEFAULTS)


def check(parts: list[Filter], worlds: list[dict[str, Any]], semantics: Semantics, *, imperfect: bool) -> None:
    try:
        merger = merge(parts, semantics=semantics, defaults=DEFAULTS, imperfect=imperfect)
    except MergeError:
        assert semantics == "strict"
        assert not imperfect
        return
    assert merger.parts == tuple(parts)
    for event in worlds:
        wanted = any(met(part, event, semantics) for part in parts)
        found = met(merger.filter, event, semantics)
        assert found or not wanted, f"{event} is lost by {merger.filter}"
        if merger.perfect:
            assert found == wanted, f"{event} comes with {merger.filter}"


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("imperfect", [False, True])
def test_a_merger_matches_what_its_parts_match_and_nothing_more_if_perfect(
    semantics: Semantics, imperfect: bool
) -> None:
    for seed in range(80):
        rng = random.Random(seed)
        parts = [filter_of(rng, depth=rng.randint(0, 2)) for _ in range(rng.randint(1, 4))]
        check(parts, EVENTS, semantics, imperfect=imperfect)


@given(
    st.lists(filters(max_leaves=4), min_size=1, max_size=3), st.lists(events(), min_size=1, max_size=5), st.booleans()
)
def test_mergers_of_any_filters_cover_them_on_any_events(
    parts: list[Filter], worlds: list[dict[str, Any]], imperfect: bool
) -> None:
    for semantics in SEMANTICS:
        check(parts, worlds, semantics, imperfect=imperfect)


def test_perfect_mergers_are_not_weaker_than_they_need_to_be() -> None:
    assert merge([parse("x < 5"), parse("x > 3")]).perfect
    assert merge([parse("x < 5 AND y = 1"), parse("x > 7 AND z = 1")]).perfect
    assert not merge([parse("x < 5 AND y = 1"), parse("x > 7 AND y = 2")], imperfect=True).perfect


@pytest.mark.parametrize("seed", range(40))
def test_a_decision_procedure_agrees_that_mergers_cover_and_perfect_ones_are_equivalent(seed: int) -> None:
    rng = random.Random(seed)
    texts = [
        "x < 5",
        "x >= 5",
        "x = 7",
        "x IN (1, 9)",
        "x != 3",
        "x IS NULL",
        "y = 1",
        "y > 0 AND x < 2",
        "s LIKE 'a%'",
    ]
    parts = [parse(rng.choice(texts)) & parse(rng.choice(texts)) for _ in range(3)]
    perfect = merge(parts)
    assert equivalent(perfect.filter, parts[0] | parts[1] | parts[2])
    wide = merge(parts, imperfect=True)
    assert all(covers(wide.filter, part) for part in parts)


# Mühl, Fiege and Buchmann, section 3.6, by class of constraint.


def test_filters_with_equal_sets_but_one_have_their_sets_united() -> None:
    assert merged("x = 5 AND y IN (2, 3)", "x = 5 AND y IN (4, 5)") == "x = 5 AND y IN (2, 3, 4, 5)"


def test_set_exclusions_unite_to_what_both_exclude() -> None:
    assert merged("x NOT IN (2, 3)", "x NOT IN (3, 7)") == "x != 3"


def test_connected_intervals_unite() -> None:
    assert merged("x BETWEEN 2 AND 4", "x BETWEEN 3 AND 5") == "x BETWEEN 2 AND 5"


def test_comparisons_in_both_directions_exclude_an_interval() -> None:
    assert merged("x < 4", "x > 7") == "x < 4 OR x > 7"


def test_a_constraint_and_its_negation_leave_the_rest_and_that_the_attribute_is_there() -> None:
    both = merge([parse("p = 1 AND x = 5"), parse("p = 1 AND x != 5")])
    assert both.perfect
    assert both.filter.matches({"p": 1, "x": 2})
    assert not both.filter.matches({"p": 1})


def test_complements_over_a_mandatory_attribute_drop_the_constraint() -> None:
    schema = Schema({"x": Attribute("int", mandatory=True), "p": "int"})
    assert merged("p = 1 AND x < 5", "p = 1 AND x >= 5", schema=schema) == "p = 1"


def test_in_two_valued_semantics_a_predicate_and_its_negation_drop_out() -> None:
    assert merged("p = 1 AND x = 5", "p = 1 AND NOT x = 5", semantics="simple") == "p = 1"


def test_integers_beside_each_other_connect_where_a_schema_makes_them_integers() -> None:
    assert merged("x <= 4", "x >= 5 AND x < 9", schema=Schema({"x": "int"})) == "x <= 8"
    assert merged("x <= 4", "x >= 5 AND x < 9") != "x <= 8"


def test_figure_5_two_outputs_of_a_diagram_merge_into_the_wider_price() -> None:
    common = "AND time = 'July20th,2004' AND destination = 'Ottawa'"
    assert merged(f"price < 150 {common}", f"price <= 150 {common}") == f"price <= 150 {common}"


# Other filters.


def test_identical_filters_merge_into_one_as_it_was_written() -> None:
    assert merged("x > 1 AND x < 3", "x > 1 AND x < 3") == "x > 1 AND x < 3"


def test_a_covering_filter_is_the_merger() -> None:
    assert merged("x < 5 AND y = 1", "x < 9") == "x < 9"


def test_filters_without_a_common_form_merge_into_their_disjunction() -> None:
    assert (
        merged("x = 1 AND y = 2", "y = 2 AND z = 3", "x = 1 AND y = 2 AND w = 4")
        == "x = 1 AND y = 2 OR y = 2 AND z = 3"
    )


def test_tests_that_are_no_value_sets_stay_as_they_are_while_the_rest_merges() -> None:
    assert merged("s RLIKE 'x' AND b < 3", "s RLIKE 'x' AND b BETWEEN 2 AND 9") == "b <= 9 AND s RLIKE 'x'"


def test_strict_filters_on_different_attributes_have_no_perfect_merger() -> None:
    with pytest.raises(MergeError, match="strict"):
        merge([parse("x = 1"), parse("y = 1")], semantics="strict")
    wide = merge([parse("x = 1"), parse("y = 1")], semantics="strict", imperfect=True)
    assert wide.filter.matches({"x": 1}, semantics="strict")
    assert wide.filter.matches({"y": 1}, semantics="strict")


def test_nothing_has_no_merger() -> None:
    with pytest.raises(MergeError, match="at least one"):
        merge([])


def test_filters_that_can_not_be_met_add_nothing() -> None:
    assert merged("x < 1 AND x > 2", "y = 3") == "y = 3"
    assert merged("x < 1 AND x > 2", "x < 1 AND x > 3") == "x < 1 AND x > 2"


# Imperfect mergers and the threshold.


def test_imperfect_mergers_constrain_each_attribute_that_all_parts_constrain() -> None:
    assert merged("a = 1 AND b = 2", "a = 3 AND b = 5 AND c = 1", imperfect=True) == "a IN (1, 3) AND b IN (2, 5)"


def test_a_merger_above_the_threshold_is_made_perfect_instead() -> None:
    parts = [parse("a = 1 AND b = 2"), parse("a = 3 AND b = 5")]
    wide = merge(parts, imperfect=True)
    assert 0 < wide.degree < 1
    assert merge(parts, imperfect=True, imt=wide.degree) == wide
    exact = merge(parts, imperfect=True, imt=wide.degree - 1e-9)
    assert exact.perfect
    assert exact.degree == 0


def test_prices_that_are_hard_to_merge_perfectly_merge_into_one_interval() -> None:
    prices = ("price > 150", "price = 145", "price = 147", "price = 148")
    assert merged(*prices, imperfect=True, max_pieces=1) == "price >= 145"
    assert merged(*prices, imperfect=True) == "price IN (145, 147, 148) OR price > 150"


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_what_nobody_advertises_closes_gaps_and_costs_nothing_among_advertised_events(semantics: Semantics) -> None:
    closed = 0
    for seed in range(150):
        rng = random.Random(seed)
        parts = [filter_of(rng, depth=rng.randint(0, 1)) for _ in range(rng.randint(1, 4))]
        advertised = [filter_of(rng, depth=rng.randint(0, 1)) for _ in range(rng.randint(1, 2))]
        try:
            merger = merge(parts, semantics=semantics, defaults=DEFAULTS, advertisements=advertised)
        except MergeError:
            continue
        closed += not merger.perfect
        for event in EVENTS:
            wanted = any(met(part, event, semantics) for part in parts)
            found = met(merger.filter, event, semantics)
            if merger.perfect or any(met(one, event, semantics) for one in advertised):
                assert found == wanted
            assert found or not wanted
    assert closed or semantics == "strict"  # where most have no merger at all


def test_a_merger_is_what_a_table_of_the_same_filters_gives() -> None:
    prices, advertised = ("price > 150", "price = 130", "price = 120"), [parse("price > 150")]
    assert merged(*prices, advertisements=advertised) == "price >= 120"
    assert merged(*prices, advertisements=advertised, imperfect=True, imt=0.0) == "price >= 120"
    assert not merge(map(parse, prices), advertisements=advertised).perfect
