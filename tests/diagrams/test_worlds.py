"""Worlds include whatever a value can give, and implications read from them hold for every value."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import filters, lists, values

from covey.diagrams import Domain, asked_by, implies, truth_of, worlds
from covey.errors import CoveyError
from covey.filters import Between, Compare, Contains, In, Is, IsNull, Like, StartsWith, SubstringOf, attr
from covey.filters.values import Kind, kind_of, normalise

ONE_NAME = filters(("s",), 4) | filters(("i",), 6) | filters(("l",), 4) | filters(("b",), 4) | filters(("t",), 4)
SEMANTICS = st.sampled_from(("sql", "simple"))


@settings(max_examples=examples(400), deadline=None)
@given(ONE_NAME, SEMANTICS, st.lists(st.none() | values() | values("string") | values("number") | lists(), min_size=1))
def test_every_value_is_in_some_world(condition, semantics, drawn):
    tests = sorted(asked_by(condition, semantics), key=str)
    for domain in (Domain(), Domain(required=True), *(Domain(kind, True) for kind in Kind)):
        found = worlds(tests, domain)
        if found is None:
            continue
        for raw in drawn:
            value = normalise(raw)
            if value is None and domain.required:
                continue
            if domain.kind is not None and value is not None and kind_of(value) is not domain.kind:
                continue
            mask = sum(1 << at for at, test in enumerate(tests) if truth_of(test, value) is True)
            assert mask in found


def test_the_cells_between_constants_are_the_worlds_of_comparisons():
    tests = [Compare("n", "<", 10), Compare("n", "<=", 10), Compare("n", "=", 30)]
    assert worlds(tests, Domain(Kind.NUMBER, True)) == [0b000, 0b010, 0b011, 0b100]


@pytest.mark.parametrize(
    ("given_test", "asked", "holds"),
    [
        (Compare("n", "=", 10), Compare("n", ">", 8), True),
        (Compare("n", ">", 8), Compare("n", "=", 10), False),
        (Compare("n", "=", 3), In("n", (1, 3)), True),
        (In("n", (1, 3)), Compare("n", "<=", 3), True),
        (Compare("n", "=", 2), Is(In("n", (1, 3)), False), True),
        (Compare("b", "!=", True), Compare("b", "=", False), True),
        (Compare("n", ">", 5), Compare("n", "<=", math.nan), True),
        (Contains("s", "aa"), Contains("s", "a"), True),
        (Contains("s", "a"), Contains("s", "aa"), False),
        (StartsWith("s", "ab"), Contains("s", "b"), True),
        (StartsWith("s", "ab"), Like("s", "a%"), True),
        (StartsWith("s", "ab"), Is(StartsWith("s", "b"), False), True),
        (SubstringOf("s", "ab"), Is(Contains("s", "c"), False), True),
        (SubstringOf("s", "a"), SubstringOf("s", "bab"), True),
        (Compare("s", "=", "abc"), Contains("s", "b"), True),
        (Compare("n", "<", 5), IsNull("n"), False),
        (Compare("n", "<", 5), Compare("n", "<", "5"), False),
    ],
)
def test_implications(given_test, asked, holds):
    assert implies(given_test, asked) is holds


def test_a_complement_needs_a_defined_value_of_the_kind():
    below, above = Compare("n", "<", 5), Compare("n", ">=", 5)
    assert 0 in (worlds([below, above]) or [])
    assert worlds([below, above], Domain(Kind.NUMBER, True)) == [0b01, 0b10]


def test_too_much_to_say_is_said():
    assert worlds([Compare("n", "=", at) for at in range(100)]) is None
    assert worlds([Contains("s", str(at)) for at in range(9)]) is None


def test_only_canonical_tests_have_worlds():
    with pytest.raises(CoveyError, match="canonical"):
        worlds([Between("n", 1, 2)])
    assert all(worlds([test]) for test in asked_by(attr("n").between(1, 2), "sql"))
