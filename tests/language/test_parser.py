"""SQL text means the filter that Spark's grammar gives it."""

from __future__ import annotations

import math

import pytest

from covey.errors import FilterError
from covey.filters import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    ArrayContains,
    Between,
    Compare,
    Contains,
    EndsWith,
    Filter,
    IEquals,
    ILike,
    In,
    Is,
    IsNull,
    Like,
    Not,
    Or,
    RLike,
    StartsWith,
    SubstringOf,
)
from covey.language import parse

A1, B2, C3 = Compare("a", "=", 1), Compare("b", "=", 2), Compare("c", "=", 3)


def check(cases: dict[str, Filter]) -> None:
    for text, expected in cases.items():
        assert parse(text) == expected, text


def test_every_comparison_operator() -> None:
    check(
        {
            "a = 1": A1,
            "a == 1": A1,
            "a != 1": Compare("a", "!=", 1),
            "a <> 1": Compare("a", "!=", 1),
            "a < 1": Compare("a", "<", 1),
            "a <= 1": Compare("a", "<=", 1),
            "a > 1": Compare("a", ">", 1),
            "a >= 1": Compare("a", ">=", 1),
            "a !< 1": Compare("a", ">=", 1),
            "a !> 1": Compare("a", "<=", 1),
            "a <=> 1": Compare("a", "<=>", 1),
            "a = NULL": Compare("a", "=", None),
            "a<=>null": Compare("a", "<=>", None),
        }
    )


def test_a_constant_on_the_left_is_flipped() -> None:
    check(
        {
            "5 < a": Compare("a", ">", 5),
            "5 <= a": Compare("a", ">=", 5),
            "5 > a": Compare("a", "<", 5),
            "5 >= a": Compare("a", "<=", 5),
            "5 = a": Compare("a", "=", 5),
            "5 != a": Compare("a", "!=", 5),
            "'x' <=> a": Compare("a", "<=>", "x"),
        }
    )


def test_sets_ranges_and_patterns() -> None:
    check(
        {
            "a IN (1, 2)": In("a", (1, 2)),
            "a in ('x', NULL)": In("a", ("x", None)),
            "a NOT IN (-1, +2)": Not(In("a", (-1, 2))),
            "a BETWEEN 1 AND 2 AND b = 2": And((Between("a", 1, 2), B2)),
            "a NOT BETWEEN 'x' AND 'y'": Not(Between("a", "x", "y")),
            "a LIKE 'x%'": Like("a", "x%"),
            "a LIKE 'x!%' ESCAPE '!'": Like("a", "x!%", "!"),
            r"a LIKE 'x\%'": Like("a", "x\\%"),
            "a NOT LIKE '_'": Not(Like("a", "_")),
            "a ILIKE 'x%'": ILike("a", "x%"),
            "a not ilike 'x!%' escape '!'": Not(ILike("a", "x!%", "!")),
            "ilike = 5 AND ilike ILIKE 'x'": And((Compare("ilike", "=", 5), ILike("ilike", "x"))),
            "ilike(a, 'x')": ILike("a", "x"),
            "a LIKE ANY ('x', 'y%')": Or((Like("a", "x"), Like("a", "y%"))),
            "a LIKE SOME ('x')": Like("a", "x"),
            "a LIKE ALL ('x', 'y%')": And((Like("a", "x"), Like("a", "y%"))),
            "a NOT LIKE ANY ('x', 'y')": Or((Not(Like("a", "x")), Not(Like("a", "y")))),
            "a NOT ILIKE ALL ('x', 'y')": And((Not(ILike("a", "x")), Not(ILike("a", "y")))),
            "a ILIKE ANY ('x', NULL)": Or((ILike("a", "x"), Compare("a", "=", None))),
            "iequals(a, 'x')": IEquals("a", "x"),
            "a RLIKE '^x'": RLike("a", "^x"),
            r"a RLIKE r'\d+'": RLike("a", r"\d+"),
            r"a REGEXP '\\d+'": RLike("a", r"\d+"),
            "a NOT REGEXP 'x'": Not(RLike("a", "x")),
        }
    )


def test_tests_for_null_and_truth() -> None:
    check(
        {
            "a IS NULL": IsNull("a"),
            "a IS NOT NULL": Not(IsNull("a")),
            "(a) IS NULL": IsNull("a"),
            "(a = 1) IS TRUE": Is(A1, True),
            "(a = 1) IS NOT FALSE": Not(Is(A1, False)),
            "(a = 1) IS UNKNOWN": Is(A1, None),
            "(a = 1) IS NULL": Is(A1, None),
            "(a = 1) IS NOT NULL": Not(Is(A1, None)),
            "b IS TRUE": Is(Compare("b", "=", True), True),
            "b IS NOT UNKNOWN": Not(Is(Compare("b", "=", True), None)),
            "contains(s, 'x') IS FALSE": Is(Contains("s", "x"), False),
            "a IS DISTINCT FROM 1": Not(Compare("a", "<=>", 1)),
            "a IS NOT DISTINCT FROM NULL": Compare("a", "<=>", None),
        }
    )


def test_a_comparison_is_a_value_so_is_true_applies_to_all_of_it() -> None:
    check(
        {
            "a = 1 IS TRUE": Is(A1, True),
            "NOT a = 1 IS TRUE": Not(Is(A1, True)),
            "a = 1 IS TRUE AND b = 2": And((Is(A1, True), B2)),
            "a = 1 = TRUE": A1,
        }
    )


def test_a_condition_compares_with_true_false_and_null() -> None:
    contains = Contains("s", "x")
    check(
        {
            "contains(s, 'x') = TRUE": contains,
            "contains(s, 'x') = FALSE": Not(contains),
            "contains(s, 'x') != TRUE": Not(contains),
            "FALSE != contains(s, 'x')": contains,
            "contains(s, 'x') <=> TRUE": Is(contains, True),
            "(a = 1) <=> NULL": Is(A1, None),
            "(a = 1) = NULL": UNKNOWN,
        }
    )


def test_functions() -> None:
    check(
        {
            "contains(a, 'x')": Contains("a", "x"),
            "superstring(a, 'x')": Contains("a", "x"),
            "contains('text', a)": SubstringOf("a", "text"),
            "STARTSWITH(a, 'x')": StartsWith("a", "x"),
            'endswith(a, "x")': EndsWith("a", "x"),
            "substring_of(a, 'text')": SubstringOf("a", "text"),
            "substring(a, 'text')": SubstringOf("a", "text"),
            "like(a, 'x%')": Like("a", "x%"),
            "like(a, 'x!%', '!')": Like("a", "x!%", "!"),
            "rlike(a, 'x')": RLike("a", "x"),
            "regexp(a, 'x')": RLike("a", "x"),
            "regexp_like(a, 'x')": RLike("a", "x"),
            "array_contains(a, 5)": ArrayContains("a", 5),
            "exists(a.b)": Not(IsNull("a.b")),
            "EXISTS (a)": Not(IsNull("a")),
            "isnull(a)": IsNull("a"),
            "isnotnull(a)": Not(IsNull("a")),
            "in_rectangle(x, y, 0, 1, 2, 3.5)": And((Between("x", 0, 2), Between("y", 1, 3.5))),
        }
    )


def test_not_binds_looser_than_tests_and_tighter_than_and() -> None:
    check(
        {
            "NOT a = 1 AND b = 2": And((Not(A1), B2)),
            "! a = 1 OR b = 2": Or((Not(A1), B2)),
            "NOT NOT a = 1": Not(Not(A1)),
            "NOT a IN (1)": Not(In("a", (1,))),
            "NOT (a = 1 OR b = 2)": Not(Or((A1, B2))),
            "NOT b": Not(Compare("b", "=", True)),
        }
    )


def test_and_binds_tighter_than_or_and_both_are_flat() -> None:
    check(
        {
            "a = 1 OR b = 2 AND c = 3": Or((A1, And((B2, C3)))),
            "a = 1 AND b = 2 OR c = 3": Or((And((A1, B2)), C3)),
            "(a = 1 OR b = 2) AND c = 3": And((Or((A1, B2)), C3)),
            "a = 1 AND (b = 2 AND c = 3)": And((A1, B2, C3)),
            "((((a = 1)))) OR b = 2 OR c = 3": Or((A1, B2, C3)),
        }
    )


def test_a_bare_attribute_is_true_and_constants_are_conditions() -> None:
    check(
        {
            "b": Compare("b", "=", True),
            "(b)": Compare("b", "=", True),
            "b AND TRUE": And((Compare("b", "=", True), TRUE)),
            "FALSE": FALSE,
            "null": UNKNOWN,
            "NOT TRUE": Not(TRUE),
        }
    )


def test_tests_on_constants_alone_fold() -> None:
    check(
        {
            "1 = 1": TRUE,
            "1 = 2": FALSE,
            "'a' < 'b'": TRUE,
            "NULL = 1": UNKNOWN,
            "NULL <=> NULL": TRUE,
            "1 = 1.0": TRUE,
            "double('NaN') = double('NaN')": TRUE,
            "0.0 = -0.0": TRUE,
            "5 IN (1, 5)": TRUE,
            "5 NOT IN (1, NULL)": Not(UNKNOWN),
            "5 BETWEEN 1 AND 3": FALSE,
            "'abc' LIKE 'a%'": TRUE,
            "NULL IS NULL": TRUE,
            "5 IS NULL": FALSE,
            "contains('abc', 'b')": TRUE,
            "TRUE = TRUE": TRUE,
        }
    )


def test_names_of_attributes() -> None:
    check(
        {
            "a.b.c = 1": Compare("a.b.c", "=", 1),
            "`odd name`.`x``y` = 1": Compare("odd name.x`y", "=", 1),
            "`in` = 1": Compare("in", "=", 1),
            "order.in = 1": Compare("order.in", "=", 1),
            "prix_é = 1": Compare("prix_é", "=", 1),
            "価格 = 1": Compare("価格", "=", 1),
            "_a1 = 1": Compare("_a1", "=", 1),
            "2nd = 1": Compare("2nd", "=", 1),
            "a.2nd = 1": Compare("a.2nd", "=", 1),
            "date = 1 AND timestamp = 2": And((Compare("date", "=", 1), Compare("timestamp", "=", 2))),
            "exists = 1 OR select = 2": Or((Compare("exists", "=", 1), Compare("select", "=", 2))),
            "r = 'x'": Compare("r", "=", "x"),
            "`a.b`.c IS NULL": IsNull("a.b.c"),
        }
    )


def test_keywords_are_read_in_any_case_and_names_keep_theirs() -> None:
    check({"A = 1 aNd Not b iS nULL": And((Compare("A", "=", 1), Not(IsNull("b"))))})


def test_space_and_comments_separate_and_mean_nothing() -> None:
    check(
        {
            "\n a\t=\r\n1 ": A1,
            "a = 1 -- the end": A1,
            "a -- one\n = 1": A1,
            "a /* one * two */ = /**/ 1": A1,
            "a=1 AND(b=2)": And((A1, B2)),
        }
    )


def test_parentheses_around_values() -> None:
    check({"(a) = (1)": A1, "((a)) = ((-1))": Compare("a", "=", -1), "a IN ((1), (2))": In("a", (1, 2))})


def test_infinity_and_nan_from_every_spelling() -> None:
    for text in ("double('inf')", "float('Infinity')", "CAST('+inf' AS DOUBLE)", "-double('-inf')"):
        assert parse(f"a = {text}") == Compare("a", "=", math.inf)
    assert parse("a = float('nan')") == Compare("a", "=", math.nan)


def test_an_unknown_dialect_lists_the_known() -> None:
    with pytest.raises(FilterError, match="'cobol' is not known; use one of sql, json"):
        parse("a = 1", dialect="cobol")


def test_what_is_not_text_is_refused() -> None:
    with pytest.raises(FilterError, match="a string, not int"):
        parse(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("NOT coalesce(a LIKE '%x%' AND b = 1, FALSE)", "(a LIKE '%x%' AND b = 1) IS NOT TRUE"),
        ("ifnull(a > 5, TRUE) OR nvl(NOT c = 1, FALSE)", "(a > 5) IS NOT FALSE OR (NOT c = 1) IS TRUE"),
    ],
)
def test_a_condition_that_is_told_from_unknown_stays_a_condition(text: str, meant: str) -> None:
    assert parse(text) == parse(meant)
    assert str(parse(text)) == meant
