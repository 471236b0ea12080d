from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey import parse
from covey.filters.values import Kind
from covey.relations.conjunctions import conjunction_of
from covey.relations.merging import RULES, merge
from covey.relations.merging.rules import complexity, widened, with_gaps_closed
from covey.relations.value_sets import DEFINED, EVERYTHING, MISSING, NOTHING, ValueSet
from tests.strategies import values


def of(text: str) -> ValueSet:
    conjunction = conjunction_of(parse(text))
    assert conjunction is not None
    return conjunction.get("x") or EVERYTHING


def by_hull(*texts: str) -> str:
    return str(merge([parse(text) for text in texts], imperfect=True, rules=("hull",)).filter)


def test_table_1_row_1_below_and_above_become_presence() -> None:
    assert by_hull("attr < 1", "attr > 2") == "attr IS NOT NULL"


def test_table_1_row_2_below_and_a_value_above_become_at_most_the_value() -> None:
    assert by_hull("attr < 1", "attr = 2") == "attr <= 2"


def test_table_1_row_3_above_and_a_value_below_become_at_least_the_value() -> None:
    assert by_hull("attr > 2", "attr = 1") == "attr >= 1"


def test_one_or_two_different_predicates_may_simply_be_dropped() -> None:
    parts = [parse("x = 1 AND y = 2 AND z = 3"), parse("x = 1 AND y = 5 AND z = 9")]
    assert str(merge(parts, imperfect=True, rules=("drop",)).filter) == "x = 1"


def test_strings_widen_to_their_common_prefix() -> None:
    parts = [parse("s = 'abc'"), parse("s = 'abd'")]
    assert str(merge(parts, imperfect=True, rules=("prefix",)).filter) == "startswith(s, 'ab')"
    assert widened(ValueSet.of(["b", "c"]), "prefix") == ValueSet.of_kind(Kind.STRING)
    assert widened(ValueSet.with_prefix("ab"), "prefix") == ValueSet.with_prefix("ab")
    assert widened(ValueSet.between("ab", None), "prefix") == ValueSet.of_kind(Kind.STRING)


def test_a_rule_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="'shrink' is not known"):
        widened(NOTHING, "shrink")  # type: ignore[arg-type]


@given(st.lists(values() | st.none(), min_size=1, max_size=4), st.lists(values("number"), min_size=2, max_size=2))
def test_each_rule_contains_the_one_before(members: list[Any], ends: list[Any]) -> None:
    union = ValueSet.of(members) | ValueSet.between(*ends)
    sets = [widened(union, rule) for rule in RULES]
    assert all(wide.issuperset(narrow) for narrow, wide in pairwise(sets))


@pytest.mark.parametrize(
    ("values", "listed"),
    [
        (of("x < 4"), 1),
        (of("x < 4 OR x > 7"), 1),
        (of("x != 4"), 1),
        (of("x NOT IN (1, 2, 3)"), 3),
        (of("x IN (1, 2, 3)"), 3),
        (of("x < 1 OR x = 3"), 2),
        (of("x BETWEEN 1 AND 2 OR x BETWEEN 4 AND 5"), 2),
        (DEFINED, 1),
        (MISSING, 1),
        (EVERYTHING, 0),
        (~of("x = 4"), 1),
    ],
)
def test_complexity_counts_what_is_listed_be_it_in_or_left_out(values: ValueSet, listed: int) -> None:
    assert complexity(values) == listed


def test_gaps_without_advertised_values_close_and_others_stay() -> None:
    free = of("x <= 150")
    assert with_gaps_closed(of("x > 150 OR x IN (120, 130)"), free) == of("x >= 120")
    assert with_gaps_closed(of("x > 150 OR x IN (120, 130)"), of("x < 125")) == of("x > 150 OR x IN (120, 130)")
    assert with_gaps_closed(of("x IN (1, 3, 9)"), of("x < 5")) == of("x BETWEEN 1 AND 3 OR x = 9")
