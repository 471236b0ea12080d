"""CloudEvents SQL: casts, errors and short circuits as its specification has them, held against a plain evaluator."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tools.conformance import cesql, suites

import covey
from covey.errors import FilterError, FilterSyntaxError, LimitError
from covey.filters.dialect_functions import equal, is_in, to_boolean, to_integer, to_string

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "1",
    "source": "s",
    "type": "t.error",
    "hop": "5",
    "ttl": 10,
    "on": True,
    "ext": "a b",
}


def passes(expression: str, event: dict[str, Any] | None = None) -> bool:
    condition = covey.parse(expression, dialect="cesql")
    again = covey.parse(str(condition))
    assert again == condition, str(condition)
    index = covey.Index()
    index.add("one", expression, dialect="cesql")
    given = EVENT if event is None else event
    assert again.matches(given) is condition.matches(given) is bool(index.match(given))
    return condition.matches(given)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("hop = 5", True),
        ("hop < ttl", True),
        ("ttl < hop", False),
        ("hop = '5'", True),
        ("ttl = '10'", True),
        ("ttl = hop * 2", True),
        ("5 = hop", True),
        ("on", True),
        ("hop", False),  # a filter's value must be a Boolean
        ("on = 'true'", True),
        ("on = 1", True),
        ("NOT on", False),
        ("type LIKE '%.error'", True),
        ("ttl LIKE '1_'", True),
        ("ext LIKE 'a\\_b'", False),
        ("ext LIKE 'a%'", True),
        ("EXISTS hop", True),
        ("EXISTS SOURCE", True),
        ("EXISTS nothing", False),
        ("NOT EXISTS nothing", True),
        ("nothing = 'x'", False),
        ("NOT (nothing = 'x')", False),
        ("on OR nothing = 'x'", True),
        ("nothing = 'x' OR on", False),  # the left side is evaluated first, and its error stays
        ("NOT (nothing = 'x' AND FALSE)", False),
        ("NOT (FALSE AND nothing = 'x')", True),
        ("hop = 5 OR hop = 6", True),
        ("FALSE AND TRUE OR TRUE", False),
        ("TRUE OR FALSE AND FALSE", True),
        ("TRUE XOR TRUE OR TRUE", False),
        ("on AND nothing = 'x' OR on", False),
        ("FALSE AND nothing = 'x' OR on", False),
        ("hop = 5 AND ttl = 1 OR ttl = 10 AND on", True),
        ("hop IN (1, 5)", True),
        ("hop IN ('4', ttl)", False),
        ("ttl IN ('10', 'x')", True),
        ("ttl IN ('x', '10')", False),  # 'x' is no integer
        ("ttl IN (10, nothing)", True),
        ("ttl IN (nothing, 10)", False),
        ("ttl NOT IN (hop, nothing)", False),
        ("ttl NOT IN (hop, 1)", True),
        ("ext IN ('a b', 'c')", True),
        ("ext NOT IN ('c')", True),
        ("ttl NOT IN ('c')", False),
        ("1 / 0 = 1", False),
        ("hop / 2 = 2 AND -7 % 3 = -1 AND -7 / 2 = -3", True),
        ("2147483647 + 1 > 0", False),
        ("LENGTH(ext) = 3 AND UPPER(LEFT(ext, 1)) = 'A' AND TRIM(' x ') = 'x'", True),
        ("CONCAT(id, type) = '1t.error' AND CONCAT_WS('-', 'a', 1) = 'a-1'", True),
        ("SUBSTRING(type, 3) = 'error' AND SUBSTRING(type, -5, 3) = 'err'", True),
        ("ABS(INT('-4')) = 4 AND BOOL('TRUE') AND STRING(4) = '4'", True),
        ("TRUE XOR hop = 6", True),
        ("(hop = 5) = TRUE", True),
        ("INT(hop = 5) + 1 = 2", True),
    ],
)
def test_expressions_pass_as_the_specification_says(expression: str, answer: bool) -> None:
    assert passes(expression) is answer


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1 + 1", "gives an integer"),
        ("'a'", "gives a string"),
        ("a = ", "ends too early"),
        ("a LIKE b", "pattern in quotes"),
        ("ABC(1)", "not part of CloudEvents SQL"),
        ("LENGTH()", "takes 1 arguments"),
        ("99999999999 = a", "32 bits"),
        ("a = 'x", "no meaning"),
        ("a b", "join conditions"),
        ("a_b = 1", "letters and digits"),
        ("EXISTS 'a'", "EXISTS takes"),
    ],
)
def test_what_is_no_filter_is_refused_with_its_place(expression: str, message: str) -> None:
    with pytest.raises(FilterSyntaxError, match=message) as error:
        covey.parse(expression, dialect="cesql")
    assert "\n" not in error.value.message


def test_limits_hold() -> None:
    for text in ("(" * 200 + "TRUE" + ")" * 200, "NOT " * 500 + "TRUE", "a " * 70_000, "x + " * 5_000 + "1 = 1"):
        with pytest.raises((LimitError, FilterSyntaxError)):
            covey.parse(text, dialect="cesql")


def test_rules_are_related_to_those_of_sql() -> None:
    narrow = covey.parse("type = 'a' AND source LIKE 'x%'", dialect="cesql")
    assert covey.parse("type IN ('a', 'b')").covers(narrow)
    assert covey.parse("hop > 3", dialect="cesql").covers(covey.parse("hop = 5", dialect="cesql"))


# A plain evaluator: a value and whether there was an error, left to right, as section 3 says.


def evaluated(node: Any, event: dict[str, Any]) -> tuple[Any, bool]:
    kind, *parts = node
    if kind == "const":
        return parts[0], False
    if kind == "attr":
        return (event[parts[0]], False) if parts[0] in event else (False, True)
    if kind == "exists":
        return parts[0] in event, False
    if kind in ("AND", "OR"):
        left, wrong = cast(to_boolean, evaluated(parts[0], event), False)
        if not wrong and left is (kind == "OR"):
            return left, wrong
        right, other = cast(to_boolean, evaluated(parts[1], event), False)
        return (left or right) if kind == "OR" else (left and right), wrong or other
    if kind == "NOT":
        value, wrong = cast(to_boolean, evaluated(parts[0], event), False)
        return not value, wrong
    left, wrong = evaluated(parts[0], event)
    right, other = evaluated(parts[1], event)
    if wrong or other:
        return False, True
    try:
        if kind in ("=", "!="):
            return equal(left, right) is (kind == "="), False
        if kind == "in":
            return is_in(left, right), False
        if kind == "+":
            return to_integer(to_integer(left) + to_integer(right)), False
        return {"<": to_integer(left) < to_integer(right), ">=": to_integer(left) >= to_integer(right)}[kind], False
    except (ValueError, ArithmeticError):
        return False, True


def cast(function: Any, given: tuple[Any, bool], otherwise: Any) -> tuple[Any, bool]:
    value, wrong = given
    if wrong:
        return otherwise, True
    try:
        return function(value), False
    except (ValueError, ArithmeticError):
        return otherwise, True


def written(node: Any) -> str:
    kind, *parts = node
    if kind == "const":
        return str(parts[0]).upper() if not isinstance(parts[0], str) else f"'{parts[0]}'"
    if kind == "attr":
        return str(parts[0])
    if kind == "exists":
        return f"EXISTS {parts[0]}"
    if kind == "NOT":
        return f"(NOT {written(parts[0])})"
    if kind == "in":
        return f"({written(parts[0])} IN ({written(parts[1])}))"
    return f"({written(parts[0])} {kind} {written(parts[1])})"


def drawn(draw: random.Random, depth: int, boolean: bool) -> Any:
    if boolean:
        if depth == 0:
            return draw.choice([("const", True), ("const", False), ("exists", "a"), ("attr", "b")])
        kind = draw.choice(["AND", "OR", "NOT", "=", "!=", "<", ">=", "in"])
        if kind == "NOT":
            return (kind, drawn(draw, depth - 1, True))
        inner = kind in ("AND", "OR")
        return (kind, drawn(draw, depth - 1, inner), drawn(draw, depth - 1, inner))
    if depth == 0 or draw.random() < 0.6:
        return draw.choice(
            [("attr", "a"), ("attr", "b"), ("const", 1), ("const", "1"), ("const", "x"), ("const", True)]
        )
    return ("+", drawn(draw, depth - 1, False), drawn(draw, depth - 1, False))


EVENTS = [
    {key: value for key, value in (("a", a), ("b", b)) if value is not None}
    for a in (None, 1, "1", "x", True, "true", 0)
    for b in (None, 1, "2", False)
]


def test_random_expressions_agree_with_a_plain_evaluator() -> None:
    draw = random.Random(7)
    true = 0
    for _ in range(400):
        node = drawn(draw, draw.randrange(1, 4), True)
        condition = covey.parse(written(node), dialect="cesql")
        again = covey.parse(str(condition))
        for event in EVENTS:
            value, wrong = evaluated(node, event)
            wanted = value is True and not wrong
            true += wanted
            assert condition.matches(event) is wanted, (written(node), str(condition), event)
            assert again.matches(event) is wanted
    assert true > 500


WORDS = ["a", "5", "'x'", "(", ")", "AND", "OR", "NOT", "=", "<", "+", "-", "IN", "LIKE", ",", "EXISTS", "INT", "?"]


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_any_words_are_a_filter_or_one_line(words: list[str]) -> None:
    try:
        condition = covey.parse(" ".join(words), dialect="cesql")
    except FilterSyntaxError as error:
        if "\n" in error.message:
            raise
    else:
        assert covey.parse(str(condition)) == condition


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    try:
        covey.parse(text, dialect="cesql")
    except FilterError:
        return


def test_the_suite_s_boolean_cases_hold() -> None:
    place = suites()
    if place is None:
        pytest.skip("the conformance cases of CloudEvents SQL are not here; COVEY_SUITES says where they are")
    boolean, others = cesql.outcomes(place / "cesql")
    assert (boolean.cases, boolean.same) == (174, 174)
    assert others.cases == 101
    assert not others.different


def test_casts_are_those_of_the_specification() -> None:
    assert [to_string(value) for value in (True, False, 5, "x")] == ["true", "false", "5", "x"]
    assert [to_integer(value) for value in (True, "-7", 3.0)] == [1, -7, 3]
    assert [to_boolean(value) for value in ("TRUE", "false", 0, -3)] == [True, False, False, True]
    for cast, bad in ((to_integer, "1.5"), (to_integer, 2**31), (to_boolean, "yes"), (to_integer, 1.5)):
        with pytest.raises((ValueError, OverflowError)):
            cast(bad)
