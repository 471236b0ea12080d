"""Normal forms that are read off a filter are those that value sets give."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.events.meaning import Meaning
from covey.filters.algebra import And, Filter, Not, Or
from covey.filters.predicates import Between, Compare, In
from covey.filters.semantics import Semantics
from covey.language import parse
from covey.relations.conjunctions import _holds, conjunction_of
from covey.relations.plain_forms import is_plain_disjunction, plain_conjunction
from tests.strategies import filters, numbers, strings

SEMANTICS: tuple[Semantics, ...] = ("sql", "simple", "strict", "default")
CONSTANTS = st.one_of(
    numbers(), strings(), st.integers(-30, 30), st.floats(), st.decimals(-1000, 1000, places=2).map(float)
)


def _tests() -> st.SearchStrategy[Filter]:
    name = st.sampled_from("abcd")
    compares = st.builds(Compare, name, st.sampled_from(("=", "<", "<=", ">", ">=", "!=")), CONSTANTS)
    number = st.one_of(numbers(), st.integers(-30, 30), st.decimals(-1000, 1000, places=2).map(float))
    ranges = st.builds(Between, name, number, number)
    lists = st.one_of(
        st.builds(In, name, st.lists(number, min_size=1, max_size=4).map(tuple)),
        st.builds(In, name, st.lists(strings(), min_size=1, max_size=4).map(tuple)),
    )
    return st.one_of(compares, ranges, lists)


def _conjunctions() -> st.SearchStrategy[Filter]:
    parts = st.lists(_tests(), min_size=1, max_size=4)
    return parts.map(lambda parts: And(tuple(parts)) if len(parts) > 1 else parts[0])


@given(st.one_of(_conjunctions(), filters()), st.sampled_from(SEMANTICS))
def test_a_plain_conjunction_is_the_normal_form_that_value_sets_give(condition: Filter, semantics: Semantics) -> None:
    found = plain_conjunction(condition)
    if found is not None:
        conjunction = conjunction_of(condition, Meaning(semantics))
        assert conjunction is not None
        assert str(found) == str(conjunction.to_filter(semantics))
        assert found == conjunction.to_filter(semantics)


@given(_conjunctions(), _conjunctions(), st.booleans(), st.sampled_from(SEMANTICS))
def test_a_plain_disjunction_is_no_conjunction(one: Filter, other: Filter, negated: bool, semantics: Semantics) -> None:
    condition = Or((Not(one) if negated else one, other))
    if is_plain_disjunction(condition):
        assert _holds(condition, semantics) is None


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("s = 'S1' AND p BETWEEN 43.88 AND 143.88 AND v > 7", "p BETWEEN 43.88 AND 143.88 AND s = 'S1' AND v > 7"),
        ("v < -0.5", "v < -0.5"),
        ("b IN ('x', 'y') AND a = 3", "a = 3 AND b IN ('x', 'y')"),
    ],
)
def test_what_subscriptions_mostly_are_is_plain(text: str, normal: str) -> None:
    assert str(plain_conjunction(parse(text))) == normal


@pytest.mark.parametrize(
    "text",
    [
        "a > 1 AND a < 5", "a = 1.0", "a > 4.999999999999999", "a BETWEEN 3 AND 3", "a BETWEEN 5 AND 3", "a != 1",
        "a IN ('y', 'x')", "a IN ('x')", "a IN (1, NULL)", "a >= 'x'", "a = NULL", "a = TRUE", "NOT a = 1",
        "a < double('NaN')", "a = 'x' OR b = 'y'", "a > 1e300", "a = 100000000000", "TRUE",
    ],
)  # fmt: skip
def test_what_may_have_another_form_is_left_to_value_sets(text: str) -> None:
    assert plain_conjunction(parse(text)) is None


def test_alternatives_that_a_conjunction_could_unite_are_left_to_value_sets() -> None:
    texts = ("a = 1", "a = 1 AND b = 1", "a = 2 AND b = 1", "b = 1 AND c = 1")
    said = {
        (one, other)
        for one, other in itertools.permutations(texts, 2)
        if is_plain_disjunction(parse(f"({one}) OR ({other})"))
    }
    assert said == {
        pair
        for one, other in (("a = 1", "b = 1 AND c = 1"), ("a = 1 AND b = 1", "b = 1 AND c = 1"),
                           ("a = 2 AND b = 1", "b = 1 AND c = 1"))
        for pair in ((one, other), (other, one))
    }  # fmt: skip
