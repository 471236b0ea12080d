"""The relations that the papers state, by the papers' own examples."""

from __future__ import annotations

import pytest

from covey.language import parse
from covey.relations.exact import covers, equivalent, overlaps
from covey.relations.relate import Relation, relate


def related(f: str, g: str) -> Relation:
    return relate(parse(f), parse(g))


# Mühl, Fiege and Buchmann, sections 3.3 to 3.5


def test_price_above_ten_covers_a_price_between_twenty_and_thirty() -> None:
    found = related("price > 10", "price BETWEEN 20 AND 30")
    assert (found.covers, found.covered, found.overlaps) == (True, False, True)
    assert found.only_f is not None


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("x < 5", "x < 3"),
        ("x < 5", "x <= 4.5"),
        ("x <= 5", "x < 5"),
        ("x > 3", "x = 4"),
        ("x >= 4", "x IN (4, 9)"),
        ("x != 5", "x = 4"),
        ("x != 5", "x < 5"),
        ("x != 5", "x NOT IN (4, 5)"),
        ("x BETWEEN 1 AND 9", "x BETWEEN 2 AND 9"),
        ("x BETWEEN 1 AND 9", "x > 1 AND x < 9"),
        ("x IN (1, 2, 3)", "x IN (1, 3)"),
        ("x NOT IN (1)", "x NOT IN (1, 2)"),
        ("x NOT IN (1)", "x IN (2, 3)"),
        ("x IS NOT NULL", "x = 1"),
        ("x LIKE 'ab%'", "x LIKE 'abc%'"),
        ("x LIKE 'ab%'", "x = 'abx'"),
        ("contains(x, 'b')", "x LIKE 'ab%'"),
        ("endswith(x, 'b')", "endswith(x, 'ab')"),
        ("substring_of(x, 'abc')", "x IN ('ab', 'c')"),
    ],
)
def test_one_attribute_filter_covers_another_where_its_values_include_the_others(wide: str, narrow: str) -> None:
    found = related(wide, narrow)
    assert (found.covers, found.covered, found.equivalent, found.overlaps) == (True, False, False, True)


def test_proposition_1_each_constraint_that_covers_one_of_the_others_suffices() -> None:
    assert related("x > 1 AND y < 9", "x > 2 AND y < 8 AND z = 1").covers


def test_proposition_2_with_one_constraint_an_attribute_it_is_necessary_too() -> None:
    found = related("x > 1 AND y < 9", "x > 2 AND z = 1")
    assert found.covers is False
    assert found.only_g is not None


@pytest.mark.parametrize(
    ("f", "g"), [("x BETWEEN 2 AND 5", "x > 1 AND x < 4 AND x >= 2"), ("x != 4", "x >= 4 AND x != 4")]
)
def test_figure_2_several_constraints_may_be_covered_though_none_of_them_is(f: str, g: str) -> None:
    assert related(f, g).covers
    assert not any(related(f, part).covers for part in g.split(" AND ") if part != f)


def test_proposition_3_identity_is_identity_of_the_constraints_on_each_attribute() -> None:
    assert equivalent(parse("x = 5 AND y IN (2, 3)"), parse("y IN (3, 2) AND x BETWEEN 5 AND 5"))
    assert not equivalent(parse("x = 5 AND y IN (2, 3)"), parse("x = 5"))


def test_proposition_4_filters_overlap_unless_an_attribute_keeps_them_apart() -> None:
    assert overlaps(parse("x > 3 AND y = 1"), parse("x < 5 AND z = 2"))
    assert not overlaps(parse("x > 3 AND y = 1"), parse("x < 5 AND y = 2"))


# Li, Hou and Jacobsen, section 3.1 (S1 and S2 share two predicates), section 4.2 and figure 6

SAME = "time = 'July 20,2004' AND destination = 'Ottawa'"
S1, S2, ARRIVING = f"price = 150 AND {SAME}", f"price < 150 AND {SAME}", f"price = 80 AND {SAME}"


def test_s1_and_s2_have_nothing_in_common_but_predicates() -> None:
    found = related(S1, S2)
    assert (found.covers, found.covered, found.overlaps) == (False, False, False)
    assert found.sentence("S1", "S2") == "S1 and S2 are disjoint: no event matches both."


def test_the_arriving_subscription_is_covered_by_s2_and_unrelated_to_s1() -> None:
    """X is [0, 1], Y and Z are [1, 1]: the left-hand diagram gives 0, the right-hand one 1."""
    found = related(ARRIVING, S2)
    assert (found.covers, found.covered, found.equivalent) == (False, True, False)
    assert found.only_g is not None
    assert related(ARRIVING, S1).overlaps is False


@pytest.mark.parametrize(
    ("existing", "relation"),
    [
        (S1, (False, False)),
        (S2, (False, True)),
        (f"{ARRIVING} AND company = 'Air'", (True, False)),
        (f"{SAME} AND price = 80.0", (True, True)),
        (f"(price = 80 OR price = 90) AND {SAME}", (False, True)),
        (f"({S1}) OR ({S2})", (False, True)),
    ],
)
def test_the_four_covering_relations(existing: str, relation: tuple[bool, bool]) -> None:
    assert (covers(parse(ARRIVING), parse(existing)), covers(parse(existing), parse(ARRIVING))) == relation


def test_a_chain_of_thresholds_is_a_chain_of_covering() -> None:
    """Section 4.4: price >= 10 implies price >= 8, which implies price >= 5."""
    assert [related("price >= 5", f"price >= {n}").covers for n in (10, 8, 4)] == [True, True, False]
