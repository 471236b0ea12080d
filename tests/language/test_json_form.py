"""Filters as JSON are short, round-trip, and their errors say where."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from tests.examples import examples
from tests.strategies import filters

from covey.errors import FilterError, FilterSyntaxError
from covey.filters import FALSE, TRUE, UNKNOWN, Compare, Filter, IsNull, Not
from covey.language import from_json, parse, to_json


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("TRUE", True),
        ("NULL", None),
        ("price <= 1000", {"attribute": "price", "<=": 1000}),
        ("company IN ('IBM', NULL)", {"attribute": "company", "in": ["IBM", None]}),
        ("a BETWEEN 1 AND 2.5", {"attribute": "a", "between": [1, 2.5]}),
        ("a IS NOT NULL", {"not": {"attribute": "a", "is_null": True}}),
        ("a LIKE 'x%'", {"attribute": "a", "like": "x%"}),
        ("a LIKE '!%' ESCAPE '!'", {"attribute": "a", "like": "!%", "escape": "!"}),
        ("a RLIKE 'x'", {"attribute": "a", "rlike": "x"}),
        ("contains(a, 'x')", {"attribute": "a", "contains": "x"}),
        ("substring_of(a, 'x')", {"attribute": "a", "substring_of": "x"}),
        ("array_contains(a, 5)", {"attribute": "a", "array_contains": 5}),
        ("a = 1 AND b = 2", {"and": [{"attribute": "a", "=": 1}, {"attribute": "b", "=": 2}]}),
        ("a = 1 OR NOT b = 2", {"or": [{"attribute": "a", "=": 1}, {"not": {"attribute": "b", "=": 2}}]}),
        ("(a = 1) IS UNKNOWN", {"is_unknown": {"attribute": "a", "=": 1}}),
        ("t >= TIMESTAMP '2024-01-01'", {"attribute": "t", ">=": {"timestamp": "2024-01-01T00:00:00Z"}}),
        ("a = double('NaN')", {"attribute": "a", "=": {"double": "NaN"}}),
        ("a < double('-inf')", {"attribute": "a", "<": {"double": "-Infinity"}}),
    ],
)
def test_the_json_form_of_each_kind_of_filter(sql: str, form: Any) -> None:
    assert to_json(parse(sql)) == form
    assert from_json(form) == parse(sql)


@given(filters())
@settings(max_examples=examples(300))
def test_json_text_gives_the_filter_again(condition: Filter) -> None:
    assert parse(json.dumps(to_json(condition), allow_nan=False), dialect="json") == condition


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"attribute": "a", "==": 1}, Compare("a", "=", 1)),
        ({"attribute": "a", "<>": 1}, Compare("a", "!=", 1)),
        ({"attribute": "a", "exists": True}, Not(IsNull("a"))),
        ({"attribute": "a", "exists": False}, IsNull("a")),
        ({"attribute": "a", "is_null": False}, Not(IsNull("a"))),
        ({"and": []}, TRUE),
        ({"or": []}, FALSE),
        ({"and": [None]}, UNKNOWN),
        ({"attribute": "a", "=": {"date": "2024-01-31"}}, Compare("a", "=", datetime(2024, 1, 31, tzinfo=UTC))),
        ({"attribute": "a", "=": {"double": "inf"}}, Compare("a", "=", math.inf)),
    ],
)
def test_forms_that_are_read_but_not_written(form: Any, expected: Filter) -> None:
    assert from_json(form) == expected


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (5, "at $: a filter is an object, true, false or null, not a number"),
        ({"and": [True, {"or": 5}]}, "at $.and[1].or: or takes a list of filters, not a number"),
        ({"and": [True, {"xor": []}]}, "at $.and[1]: the operator 'xor' is not known; use one of and, or"),
        ({"not": {"attribute": "a", "~": 1}}, "at $.not.~: the test '~' is not known; use one of =, !="),
        ({"<": 5}, 'at $: < tests an attribute; add "attribute": "its name"'),
        ({"attribute": "a"}, "at $: an attribute has one test"),
        ({"attribute": "a", "<": 5, ">": 1}, "at $: an attribute has one test"),
        ({"attribute": "a", "=": 1, "escape": "!"}, "at $: an attribute has one test"),
        ({"attribute": 5, "=": 1}, "at $.attribute: an attribute's name is a string, not a number"),
        ({"and": [{"attribute": "a", "in": [1, "x"]}]}, "at $.and[0]: the values of IN on 'a' mix number and string"),
        ({"attribute": "a", "in": []}, "at $: IN on 'a' has no values"),
        ({"attribute": "a", "in": [1, [2]]}, "at $.in[1]: a constant is a string, number, true"),
        ({"attribute": "a", "between": [1]}, "at $.between: a list of 2 values is expected"),
        ({"attribute": "a", "rlike": "("}, "at $: regular expression '(': missing )"),
        ({"attribute": "a", "contains": 5}, "at $.contains: a string is expected, not a number"),
        ({"attribute": "a", "is_null": 1}, "at $.is_null: is_null takes true or false, not a number"),
        ({"attribute": "a", "=": {"timestamp": "x"}}, "at $.=: 'x' is not a timestamp"),
        ({"attribute": "a", "=": math.inf}, "at $.=: the number is not finite"),
        ({"attribute": "a", "=": "\ud800"}, "at $.=: half of a surrogate pair"),
    ],
)
def test_errors_name_the_place_by_its_path(form: Any, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        from_json(form)
    assert str(caught.value).startswith(message)


def test_text_that_is_not_json_has_a_caret() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse('{"and": [true,]}', dialect="json")
    assert caught.value.position in (13, 14)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"attribute": "a", "=": NaN}', 'write {"double": "NaN"}'),
        ('{"attribute": "a", "=": 1, "=": 2}', "the key '=' stands twice"),
        ('{"attribute": "a", "=": ' + "9" * 5_000 + "}", "digits"),
        ('{"attribute": "a", "=": 1e999}', "not finite"),
    ],
)
def test_json_that_python_would_let_pass_is_refused(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text, dialect="json")
    assert message in str(caught.value)
