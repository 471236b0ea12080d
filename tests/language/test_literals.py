"""Constants are read as Spark writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from covey.errors import FilterSyntaxError
from covey.filters import Compare
from covey.language import parse


def value(text: str) -> Any:
    condition = parse(f"a = {text}")
    assert isinstance(condition, Compare)
    return condition.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("007", 7),
        ("-5", -5),
        ("+5", 5),
        ("- -5", 5),
        ("-(5)", -5),
        ("9223372036854775808", 2**63),
        ("1L", 1),
        ("2s", 2),
        ("3Y", 3),
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("1e+22", 1e22),
        ("2.5D", 2.5),
        ("3D", 3.0),
        ("0.1F", 0.10000000149011612),
        ("3BD", 3),
        ("2.5bd", 2.5),
        ("CAST(5 AS DOUBLE)", 5.0),
        ("CAST('5' AS INT)", 5),
        ("double('1e3')", 1000.0),
        ("CAST(NULL AS DOUBLE)", None),
        ("boolean('true')", True),
    ],
)
def test_numbers(text: str, expected: object) -> None:
    assert (type(value(text)), value(text)) == (type(expected), expected)


def test_minus_zero_keeps_its_sign() -> None:
    assert repr(value("-0.0")) == "-0.0"
    assert repr(value("-0")) == "0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("''", ""),
        ("'it''s'", "it's"),
        ('"it\'s"', "it's"),
        ('"say ""x"""', 'say "x"'),
        ("'say \"\"'", 'say ""'),
        (r"'it\'s'", "it's"),
        (r"'a\\b'", "a\\b"),
        (r"'\n\r\t\b\0\Z'", "\n\r\t\b\0\x1a"),
        (r"'\%\_'", r"\%\_"),
        (r"'\x'", "x"),
        (r"'\101'", "A"),
        (r"'\u00e9'", "é"),
        (r"'\U0001F600'", "\U0001f600"),
        (r"'\uD83D\uDE00'", "\U0001f600"),
        ("'-- not /* a */ comment'", "-- not /* a */ comment"),
        ("'two\nlines'", "two\nlines"),
        (r"r'a\nb'", r"a\nb"),
        (r'R"\d"', r"\d"),
    ],
)
def test_strings(text: str, expected: str) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DATE '2024-01-31'", datetime(2024, 1, 31, tzinfo=UTC)),
        ("date'2024-1-2'", datetime(2024, 1, 2, tzinfo=UTC)),
        ("TIMESTAMP '2024'", datetime(2024, 1, 1, tzinfo=UTC)),
        ("TIMESTAMP '2024-01-31'", datetime(2024, 1, 31, tzinfo=UTC)),
        ("TIMESTAMP '2024-01-31 12:00'", datetime(2024, 1, 31, 12, tzinfo=UTC)),
        ("TIMESTAMP '2024-01-31 12:00:01.5'", datetime(2024, 1, 31, 12, 0, 1, 500_000, tzinfo=UTC)),
        ("timestamp '2024-01-31T12:00:00.123456789Z'", datetime(2024, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
        ("TIMESTAMP '2024-01-31 12:00:00+01:00'", datetime(2024, 1, 31, 11, tzinfo=UTC)),
        ("TIMESTAMP '2024-01-31 12:00:00 UTC-3'", datetime(2024, 1, 31, 15, tzinfo=UTC)),
        ("TIMESTAMP '2024-07-01 12:00:00 Europe/Amsterdam'", datetime(2024, 7, 1, 10, tzinfo=UTC)),
        ("TIMESTAMP_NTZ '2024-01-31'", datetime(2024, 1, 31, tzinfo=UTC)),
        ("CAST('2024-01-31' AS TIMESTAMP)", datetime(2024, 1, 31, tzinfo=UTC)),
        ("timestamp('2024-01-31')", datetime(2024, 1, 31, tzinfo=UTC)),
    ],
)
def test_times_are_instants_and_utc_unless_they_say_otherwise(text: str, expected: datetime) -> None:
    assert value(text) == expected
    assert value(text).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("TIMESTAMP '2024-02-30'", "day is out of range"),
        ("TIMESTAMP '2024-01-31 12:00:00 Mars/Olympus'", "the zone 'Mars/Olympus' is not known"),
        ("TIMESTAMP '2024-01-31 12:00:00+19:00'", "at most 18 hours"),
        ("TIMESTAMP '0001-01-01 00:00:00+01:00'", "is not a timestamp"),
        ("TIMESTAMP 'yesterday'", "is not a timestamp; write it as"),
        ("DATE '2024-01-31 12:00:00'", "or use TIMESTAMP"),
        ("1e400", "outside the range of a double"),
        ("1e39F", "outside the range of a double"),
        ("1e999999BD", "outside the range of a double"),
        ("1.5L", "suffix of an integer"),
        ("double('x')", "is not a number"),
        ("double('1_000')", "is not a number"),
        ("CAST('1.5' AS INT)", "is not an integer"),
        (r"'\uD800'", "half of a surrogate pair"),
        (r"'\UFFFFFFFF'", "is not a character"),
        ("9" * 5_000, "4,300 digits"),
    ],
)
def test_what_is_not_a_constant_says_why(text: str, reason: str) -> None:
    with pytest.raises(FilterSyntaxError, match=reason):
        value(text)
