"""Printed filters read as SQL, and parsing them gives the same filter again."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import filters

from covey.filters import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    ArrayContains,
    Between,
    Compare,
    Contains,
    Filter,
    In,
    Is,
    IsNull,
    Like,
    Not,
    Or,
    RLike,
    SubstringOf,
)
from covey.filters.printing import to_sql
from covey.filters.quoting import KEYWORDS, name_to_sql
from covey.language import parse

A, B, C = Compare("a", "=", 1), Compare("b", "<", 2.5), IsNull("c")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (TRUE, "TRUE"),
        (FALSE, "FALSE"),
        (UNKNOWN, "NULL"),
        (A, "a = 1"),
        (Compare("a", "<=>", None), "a <=> NULL"),
        (Not(A), "NOT a = 1"),
        (Not(Not(A)), "NOT NOT a = 1"),
        (C, "c IS NULL"),
        (Not(C), "c IS NOT NULL"),
        (Not(Not(C)), "NOT c IS NOT NULL"),
        (In("a", (1, None, 2)), "a IN (1, NULL, 2)"),
        (Not(In("a", ("x",))), "a NOT IN ('x')"),
        (Not(Between("a", 1, 2)), "a NOT BETWEEN 1 AND 2"),
        (Not(Like("a", "x%")), "a NOT LIKE 'x%'"),
        (Like("a", "!%", "!"), "a LIKE '!%' ESCAPE '!'"),
        (Like("a", "\\%"), "a LIKE '\\\\%'"),
        (Not(RLike("a", "^x")), "a NOT RLIKE '^x'"),
        (Not(Contains("a", "x")), "NOT contains(a, 'x')"),
        (SubstringOf("a", "text"), "substring_of(a, 'text')"),
        (ArrayContains("a", 5), "array_contains(a, 5)"),
        (And((A, B, C)), "a = 1 AND b < 2.5 AND c IS NULL"),
        (Or((And((A, B)), C)), "a = 1 AND b < 2.5 OR c IS NULL"),
        (And((Or((A, B)), C)), "(a = 1 OR b < 2.5) AND c IS NULL"),
        (Not(And((A, B))), "NOT (a = 1 AND b < 2.5)"),
        (And((Not(A), B)), "NOT a = 1 AND b < 2.5"),
        (Is(A, True), "(a = 1) IS TRUE"),
        (Not(Is(Or((A, B)), None)), "(a = 1 OR b < 2.5) IS NOT UNKNOWN"),
        (Is(UNKNOWN, None), "(NULL) IS UNKNOWN"),
    ],
)
def test_text_is_what_a_person_would_write(condition: Filter, text: str) -> None:
    assert to_sql(condition) == text
    assert parse(text) == condition


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (True, "TRUE"),
        (10**40, "1" + "0" * 40),
        (-(2**63), "-9223372036854775808"),
        (1e22, "1e+22"),
        (5e-324, "5e-324"),
        (math.nan, "double('NaN')"),
        (math.inf, "double('Infinity')"),
        (-math.inf, "double('-Infinity')"),
        ("", "''"),
        ("it's", "'it''s'"),
        ('say "x"', "'say \"x\"'"),
        ("a\\b\n\t\0", "'a\\\\b\\n\\t\\u0000'"),
        ("\x1a\x7f", "'\\Z\\u007f'"),
        ("\U0001f600", "'\U0001f600'"),
        (datetime(2024, 1, 31, tzinfo=UTC), "TIMESTAMP '2024-01-31 00:00:00Z'"),
        (datetime(1, 1, 1, 0, 0, 0, 7, tzinfo=UTC), "TIMESTAMP '0001-01-01 00:00:00.000007Z'"),
    ],
)
def test_constants_keep_their_type_and_exact_value(value: object, text: str) -> None:
    condition = Compare("a", "=", value)  # type: ignore[arg-type]
    assert to_sql(condition) == f"a = {text}"
    assert parse(to_sql(condition)) == condition


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("price", "price"),
        ("a.b.c", "a.b.c"),
        ("prix_é", "prix_é"),
        ("a b.c", "`a b`.c"),
        ("x`y", "`x``y`"),
        ("in", "`in`"),
        ("a.Null", "a.`Null`"),
        ("date", "date"),
        ("exists", "exists"),
        ("1a", "`1a`"),
        ("a.1", "a.`1`"),
        ("", "``"),
        (".a", "`.a`"),
        ("a.", "`a.`"),
        ("a..b", "`a..b`"),
        (".", "`.`"),
        ("r", "r"),
        ("--", "`--`"),
        ("e\u0301", "`e\u0301`"),
    ],
)
def test_names_are_quoted_only_where_they_must_be(name: str, text: str) -> None:
    assert name_to_sql(name) == text
    assert parse(f"{text} IS NULL") == IsNull(name)


@pytest.mark.parametrize("word", sorted(KEYWORDS | {"timestamp", "cast", "contains", "escape", "unknown", "double"}))
def test_words_of_the_language_are_names_too(word: str) -> None:
    for name in (word, word.lower(), f"{word}.x", f"x.{word}"):
        for condition in (Compare(name, "=", "x"), IsNull(name), In(name, ("y",)), Contains(name, "z")):
            assert parse(to_sql(condition)) == condition


@given(filters())
@settings(max_examples=examples(500))
def test_parsing_a_printed_filter_gives_the_filter(condition: Filter) -> None:
    assert parse(to_sql(condition)) == condition


@given(st.text(), st.text())
def test_any_name_and_any_string_survive(name: str, value: str) -> None:
    condition = And((Compare(name, "=", value), Contains(name, value), IsNull(name)))
    assert parse(to_sql(condition)) == condition


def test_printing_is_not_bound_by_pythons_stack() -> None:
    condition: Filter = A
    for _ in range(5_000):
        condition = Not(Is(condition, True))
    assert to_sql(condition).count("IS NOT TRUE") == 5_000


def test_a_filter_shows_as_the_call_that_makes_it() -> None:
    assert repr(A) == "covey.parse('a = 1')"
    assert str(A) == "a = 1"
