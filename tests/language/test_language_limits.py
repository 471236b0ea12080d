"""A text that is larger than a limit is refused, with the number, the limit and its name; at the limit it is read."""

from __future__ import annotations

import pytest

from covey.errors import LimitError
from covey.language import parse
from covey.limits import Limits

SMALL = Limits(text_length=200, tokens=30, depth=5, set_values=3, pattern_length=4)


@pytest.mark.parametrize(
    ("inside", "outside", "message"),
    [
        (f"a = '{'x' * 194}'", f"a = '{'x' * 195}'", "201 characters; the limit text_length is 200"),
        (" OR ".join(["a"] * 15), "NOT " + " OR ".join(["a"] * 15) + " OR b", "32 tokens; the limit tokens is 30"),
        ("(" * 5 + "a" + ")" * 5, "(" * 6 + "a" + ")" * 6, "6 levels deep or more; the limit depth is 5"),
        ("NOT " * 5 + "a", "NOT " * 6 + "a", "6 levels deep or more; the limit depth is 5"),
        ("NOT (NOT (NOT a))", "NOT (NOT (NOT (a)))", "6 levels deep or more; the limit depth is 5"),
        ("(((a))) AND (((b)))", "((((((a)))))) AND b", "6 levels deep or more; the limit depth is 5"),
        ("a IN (1, 2, 3)", "a IN (1, 2, 3, 4)", "4 values; the limit set_values is 3"),
        ("a LIKE '1234'", "a LIKE '12345'", "5 characters; the limit pattern_length is 4"),
        ("a RLIKE '1234'", "a RLIKE '12345'", "5 characters; the limit pattern_length is 4"),
        ("rlike(a, '1234')", "rlike(a, '12345')", "5 characters; the limit pattern_length is 4"),
    ],
)
def test_limits_of_sql(inside: str, outside: str, message: str) -> None:
    parse(inside, limits=SMALL)
    with pytest.raises(LimitError, match=message):
        parse(outside, limits=SMALL)


@pytest.mark.parametrize(
    ("inside", "outside", "message"),
    [
        (" " * 196 + "true", " " * 197 + "true", "201 characters; the limit text_length is 200"),
        (
            '{"not":' * 4 + "true" + "}" * 4,
            '{"not":' * 5 + "true" + "}" * 5,
            "6 levels deep or more; the limit depth is 5",
        ),
        ('{"attribute":"a","in":[1,2,3]}', '{"attribute":"a","in":[1,2,3,4]}', "4 values; the limit set_values is 3"),
        ('{"attribute":"a","like":"1234"}', '{"attribute":"a","like":"12345"}', "the limit pattern_length is 4"),
        ('{"attribute":"a","rlike":"1234"}', '{"attribute":"a","rlike":"12345"}', "the limit pattern_length is 4"),
    ],
)
def test_limits_of_json(inside: str, outside: str, message: str) -> None:
    parse(inside, dialect="json", limits=SMALL)
    with pytest.raises(LimitError, match=message):
        parse(outside, dialect="json", limits=SMALL)


@pytest.mark.parametrize(
    ("text", "dialect"), [("(" * 50_000, "sql"), ("[" * 50_000, "json"), ('{"not":' * 9_000, "json")]
)
def test_pythons_own_stack_is_never_seen(text: str, dialect: str) -> None:
    with pytest.raises(LimitError):
        parse(text, dialect=dialect, limits=Limits(tokens=10**6, depth=10**6))


def test_a_long_chain_is_read_in_time_that_its_length_takes() -> None:
    # Term by term this would take minutes.
    chain = parse(" || ".join(["a"] * 50_000) + " = 'x'")
    assert not chain.matches({"a": "x"})
    assert str(parse("'a' || 'b' || c || d * 2 || 'e' = 'x'")) == "'ab' || c || d * 2 || 'e' = 'x'"
