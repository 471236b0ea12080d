# ruff: noqa: E501
"""A table with columns of every kind, and random conditions over it drawn from all functions that rules may call.

Nothing is left out for being hard: constants of other kinds than the column, names in any case, texts that are no
numbers, divisors that are zero, dates as text, three-digit zones. What Spark itself refuses is refused by both.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

SCHEMA = """
    k int, b tinyint, h smallint, i int, j int, l bigint, f float, d double, g double, e decimal(15,3), w decimal(38,0),
    q decimal(38,18), s string, v string, Name string, num string, o boolean, p boolean, t timestamp, n timestamp_ntz,
    day date, li array<int>, ls array<string>, r struct<x:int,y:string,z:struct<w:double>>, m map<string,int>,
    mi map<int,string>, items array<struct<x:int,y:string>>, bin binary, js string, u string, c string
"""
TEXTS = ["", "a", "b", "ab", "Ab", "AB", "ba", "İ", "ß", "ΣΑΣ", "é", "a%b", "a_b", " a ", "abc", "it's", "zz", "\\"]
NUMBERS = ["5", "-1", "0", "2.5", " 7 ", "1e3", "x", "", "99999999999", "NaN", "2000-01-01", "true"]
DATES = [date(2000, 1, 1), date(1999, 12, 31), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)]
TIMES = [
    datetime(2000, 1, 1, tzinfo=UTC), datetime(1999, 12, 31, 23, 0, tzinfo=UTC), datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 30, 45, 123_456, tzinfo=UTC), datetime(1960, 5, 5, tzinfo=UTC),
]  # fmt: skip
DOUBLES = [0.0, -0.0, 1.0, 0.1, 2.5, -3.75, float("inf"), float("nan"), 1e300, 9007199254740993.0, 0.30000000000000004]
WIDE = [0, 1, 5, 10**37, 10**38 - 1, -(10**38) + 1, 12345678901234567890123456789012345677]
FINE = ["0.1", "0.100000000000000005", "5", "-2.5", "99999999999999999999.999999999999999999", "0"]


def row_of(rng: random.Random, key: int) -> tuple[Any, ...]:
    """A row of SCHEMA."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.15 else value

    def integer(bits: int) -> int:
        return rng.choice([0, 1, 2, 5, -1, 7, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])

    def text() -> str:
        return rng.choice(TEXTS)

    def some(one: Any) -> list[Any]:
        return [maybe(one()) for _ in range(rng.randint(0, 3))]

    small = rng.choice([0, 1, 2, 5, 7, -1])
    return (
        key, *(maybe(integer(bits)) for bits in (8, 16, 32)), maybe(small), maybe(integer(64)),
        maybe(rng.choice([0.0, 0.5, 1.0, 2.5, -1.5, float("nan")])), maybe(rng.choice(DOUBLES)),
        maybe(rng.choice([0.0, 1.5, 2.5, -2.0])), maybe(Decimal(rng.choice(["0", "5", "2.500", "-1.125", "0.100"]))),
        maybe(Decimal(rng.choice(WIDE))), maybe(Decimal(rng.choice(FINE))), maybe(text()), maybe(text()), maybe(text()),
        maybe(rng.choice(NUMBERS)), maybe(rng.random() < 0.5), maybe(rng.random() < 0.5), maybe(rng.choice(TIMES)),
        maybe(rng.choice(TIMES).replace(tzinfo=None)), maybe(rng.choice(DATES)), maybe(some(lambda: integer(32))),
        maybe(some(text)), maybe((maybe(small), maybe(text()), maybe((maybe(rng.choice(DOUBLES)),)))),
        maybe({key: maybe(small) for key in ("a", "x y", "B") if rng.random() < 0.6}),
        maybe({key: maybe(text()) for key in (1, 2, 3) if rng.random() < 0.6}),
        maybe([maybe((maybe(small), maybe(text()))) for _ in range(rng.randint(0, 2))]),
        maybe(rng.choice([b"a", b"", b"\xff"])),
        maybe(rng.choice(['{"a": {"b": 5}, "c": "x"}', '{"a": 7, "c": null}', "[1, 2]", '{"c": "y"}'])),
        maybe(text()), maybe(rng.choice(["", "a", "ab", "AB", "abcde"])),
    )  # fmt: skip


def table(spark: SparkSession, rng: random.Random, rows: int) -> DataFrame:
    """Rows of SCHEMA, `js` read as the variant `x`, `u` without case, and `c` a CHAR(5)."""
    # Out of Arrow it is a local relation, over which Spark answers most conditions without a job.
    given = spark.createDataFrame([row_of(rng, key) for key in range(rows)], SCHEMA)
    made = spark.createDataFrame(given.toArrow(), given.schema)
    made = made.withColumn("x", F.expr("parse_json(js)")).withColumn("u", F.expr("u COLLATE UTF8_LCASE"))
    return made.withColumn("c", F.expr("rpad(c, 5, ' ')")).withMetadata("c", {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"})


class Conditions:
    """Draws conditions."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one(self, *choices: Any) -> Any:
        """One of several; functions are called."""
        found = self.rng.choice(choices)
        return found() if callable(found) else found

    def name(self, *names: str) -> str:
        """A column, in any case."""
        found = self.rng.choice(names)
        return self.rng.choice([found, found, found.upper(), found.lower()])

    # Constants

    def integer(self) -> str:
        return self.one("0", "1", "2", "5", "-1", "7", "100", "2147483647", "-128", "9223372036854775807", "3000000000")

    def fraction(self) -> str:
        return self.one("0.1", "2.5", "-3.75", "0.5", "1.125", "1e0", "2.5D", "1e3", "0.1000000000000000055", "2.5BD")

    def number(self) -> str:
        return self.one(self.integer, self.fraction)

    def quoted(self, text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    def constant_text(self) -> str:
        return self.quoted(self.rng.choice(TEXTS))

    def number_text(self) -> str:
        return self.quoted(self.one("5", "0", "-1", "2", " 7 "))

    def date_text(self) -> str:
        return self.one("'2000-01-01'", "'1999-12-31'", "'2024-2-29'", "'2000-01-01 10:00:00'")

    def time_text(self) -> str:
        return self.one(
            "'2000-01-01'", "'1999-12-31 23:00:00'", "'2024-02-29T12:30:45.123456'", "'2000-01-01 00:00:00Z'"
        )

    # Terms

    def whole(self, depth: int = 2) -> str:
        """An integer."""
        if depth == 0 or self.rng.random() < 0.4:
            return self.one(lambda: self.name("b", "h", "i", "j", "l", "r.x"), "m['a']", "m.a", "li[0]", "items[0].x",
                            lambda: self.one("x:a.b::int", "try_cast(x:a AS int)", "m['x y']"))  # fmt: skip
        inner = depth - 1
        return self.one(
            lambda: (
                f"{self.whole(inner)} {self.one('+', '-', '*', '%', 'div')} {self.one(self.integer, lambda: self.whole(inner))}"
            ),
            lambda: f"({self.whole(inner)} {self.one('+', '-', '*')} {self.whole(inner)}) % 7",
            lambda: f"- {self.whole(inner)}",
            lambda: f"abs({self.whole(inner)})",
            lambda: f"{self.one('length', 'char_length')}({self.text(inner)})",
            lambda: f"instr({self.text(inner)}, 'a')",
            lambda: f"{self.one('year', 'month', 'day', 'weekday', 'quarter', 'dayofyear')}({self.day(inner)})",
            lambda: f"{self.one('hour', 'minute')}({self.time(inner)})",
            lambda: f"{self.one('coalesce', 'nvl', 'ifnull')}({self.whole(inner)}, {self.integer()})",
            lambda: f"nullif({self.whole(inner)}, {self.one('0', '5')})",
            lambda: f"if({self.condition(0)}, {self.whole(inner)}, {self.integer()})",
            lambda: f"CASE WHEN {self.condition(0)} THEN {self.whole(inner)} WHEN o THEN 5 ELSE {self.whole(0)} END",
            lambda: f"{self.one('greatest', 'least')}({self.whole(inner)}, {self.whole(0)}, 3)",
            lambda: (
                f"CAST({self.one(self.real, lambda: self.name('num', 's'))} AS {self.one('INT', 'BIGINT', 'SMALLINT')})"
            ),
            lambda: f"size({self.name('li', 'ls', 'm')})",
            lambda: f"{self.one('floor', 'ceil')}({self.real(inner)})",
            lambda: f"mod({self.whole(inner)}, {self.one('3', 'j', '0')})",
            lambda: f"datediff({self.day(0)}, {self.day(0)})",
            lambda: f"element_at(li, {self.one('1', '2', '-1')})",
            lambda: f"{self.name('num')}::int",
        )

    def real(self, depth: int = 2) -> str:
        """A number with a fraction."""
        if depth == 0 or self.rng.random() < 0.4:
            return self.name("f", "d", "g", "e", "q", "w", "r.z.w")
        inner = depth - 1
        return self.one(
            lambda: f"{self.real(inner)} {self.one('+', '-', '*', '/')} {self.one(self.number, lambda: self.real(0))}",
            lambda: f"{self.whole(inner)} / {self.one('2', 'j', lambda: self.whole(0))}",
            lambda: f"round({self.real(inner)}, {self.one('0', '1', '2')})",
            lambda: f"{self.one('sqrt', 'sign', 'abs')}({self.real(inner)})",
            lambda: f"power({self.real(0)}, 2)",
            lambda: f"coalesce({self.real(inner)}, {self.fraction()})",
            lambda: (
                f"CAST({self.one(lambda: self.name('num'), lambda: self.whole(0))} AS {self.one('DOUBLE', 'DECIMAL(20,4)')})"
            ),
            lambda: f"- {self.real(inner)}",
            lambda: f"ln({self.real(0)})",
            lambda: f"e * {self.one('q', 'w', 'e', '2')}",
        )

    def text(self, depth: int = 2) -> str:
        """A text."""
        if depth == 0 or self.rng.random() < 0.4:
            return self.one(lambda: self.name("s", "v", "Name", "num", "r.y", "c"), "mi[1]", "items[0].y", "x:c::string",
                            "ls[0]", "get(ls, 1)")  # fmt: skip
        inner = depth - 1
        return self.one(
            lambda: f"{self.one('lower', 'upper', 'trim', 'ltrim', 'rtrim', 'reverse', 'initcap')}({self.text(inner)})",
            lambda: f"substr({self.text(inner)}, {self.one('1', '2', '-2')}, {self.one('1', '2')})",
            lambda: f"{self.one('left', 'right')}({self.text(inner)}, {self.one('1', '2')})",
            lambda: f"replace({self.text(inner)}, 'a', {self.constant_text()})",
            lambda: (
                f"concat({self.text(inner)}, {self.one(self.constant_text, lambda: self.text(0), lambda: self.whole(0))})"
            ),
            lambda: f"{self.text(inner)} || {self.one(self.constant_text, lambda: self.text(0))}",
            lambda: f"CAST({self.one(self.whole, self.day, lambda: self.name('o', 'e'))} AS STRING)",
            lambda: f"coalesce({self.text(inner)}, {self.constant_text()})",
            lambda: f"nullif({self.text(inner)}, {self.constant_text()})",
            lambda: f"CASE {self.name('j')} WHEN 1 THEN {self.text(inner)} WHEN 5 THEN 'five' ELSE 'x' END",
            lambda: f"regexp_replace({self.text(inner)}, '[ab]+', '')",
            lambda: f"split({self.text(0)}, 'a')[0]",
        )

    def day(self, depth: int = 1) -> str:
        """A date."""
        if depth == 0 or self.rng.random() < 0.6:
            return self.name("day")
        return self.one("CAST(t AS DATE)", "date_add(day, 30)", "last_day(day)", "to_date(num)", "CAST(num AS DATE)",
                        "CAST(n AS DATE)", "coalesce(day, DATE '2000-01-01')")  # fmt: skip

    def time(self, depth: int = 1) -> str:
        """A timestamp."""
        if depth == 0 or self.rng.random() < 0.6:
            return self.name("t", "n", "t")
        return self.one("date_trunc('HOUR', t)", "date_trunc('MONTH', t)", "t + INTERVAL 1 DAY", "t - INTERVAL '2' HOUR",
                        "CAST(day AS TIMESTAMP)", "CAST(num AS TIMESTAMP)", "n + INTERVAL 1 HOUR")  # fmt: skip

    # Conditions

    def operator(self) -> str:
        return self.one("=", "!=", "<", "<=", ">", ">=", "<=>", "<>", "==")

    def test(self) -> str:
        """One test."""
        negated = "NOT " if self.rng.random() < 0.2 else ""
        return negated + self.one(
            lambda: f"{self.whole()} {self.operator()} {self.one(self.integer, self.number, self.number_text)}",
            lambda: f"{self.one(self.integer, self.fraction)} {self.operator()} {self.one(self.whole, self.real)}",
            lambda: f"{self.real()} {self.operator()} {self.one(self.number, self.fraction, self.number_text)}",
            lambda: f"{self.text()} {self.operator()} {self.one(self.constant_text, self.constant_text, self.integer)}",
            lambda: (
                f"{self.day()} {self.operator()} {self.one(self.date_text, lambda: 'DATE ' + self.date_text()[:11] + chr(39), lambda: 'TIMESTAMP ' + self.time_text())}"
            ),
            lambda: (
                f"{self.time()} {self.operator()} {self.one(self.time_text, lambda: 'TIMESTAMP ' + self.time_text(), self.date_text)}"
            ),
            lambda: f"{self.time()} {self.operator()} DATE '2000-01-01'",
            lambda: f"{self.whole()} {self.operator()} {self.one(self.whole, self.real)}",
            lambda: f"{self.text()} {self.operator()} {self.text()}",
            lambda: f"{self.day()} {self.operator()} {self.one(self.day, self.time)}",
            lambda: f"{self.whole()} IN ({', '.join(self.integer() for _ in range(3))})",
            lambda: f"{self.one(self.whole, self.real)} NOT IN ({self.number()}, {self.number()})",
            lambda: f"{self.text()} IN ({self.constant_text()}, {self.constant_text()}, 'a')",
            lambda: f"{self.name('day')} IN ({self.date_text()}, {self.date_text()})",
            lambda: f"{self.name('l', 'i')} IN ('5', '7')",
            lambda: f"{self.one(self.whole, self.real)} BETWEEN {self.number()} AND {self.number()}",
            lambda: f"{self.day()} BETWEEN {self.date_text()} AND {self.date_text()}",
            lambda: f"{self.text()} {self.one('LIKE', 'NOT LIKE', 'ILIKE', 'NOT ILIKE')} {self.one(*PATTERNS)}",
            lambda: (
                f"{self.text()} {self.one('LIKE', 'NOT LIKE', 'ILIKE')} {self.one('ANY', 'ALL', 'SOME')} ('a%', '%B', {self.one(*PATTERNS[:6])})"
            ),
            lambda: f"{self.text()} RLIKE {self.one(*EXPRESSIONS)}",
            lambda: f"{self.one('startswith', 'endswith', 'contains')}({self.text()}, {self.constant_text()})",
            lambda: f"{self.one('u', 'lower(u)')} {self.one('=', '<')} {self.constant_text()}",
            # With İ, which has two characters in lower case, Spark's answer depends on whether it made LIKE an equality.
            lambda: f"{self.one('u', 'lower(u)')} LIKE {self.quoted(self.one(*(one for one in TEXTS if one != 'İ')))}",
            lambda: f"u IN ('A', 'ab', {self.constant_text()})",
            lambda: f"c {self.one('=', '<', '>=', '!=')} {self.one(self.constant_text, repr('ab'), repr('abcdefgh'))}",
            lambda: (
                f"{self.name('r', 'm', 'x', 'bin', 'items', 'li', 'day', 's', 'r.z', 'o')} IS {self.one('', 'NOT ')}NULL"
            ),
            lambda: f"{self.one(self.whole, self.text, self.real)} IS {self.one('', 'NOT ')}NULL",
            lambda: self.name("o", "p"),
            lambda: f"o {self.one('=', '!=', '<=>')} {self.one('TRUE', 'false', repr('true'), 'p', repr('no'))}",
            lambda: f"({self.test()}) IS {self.one('', 'NOT ')}{self.one('TRUE', 'FALSE', 'UNKNOWN')}",
            lambda: (
                f"array_contains({self.one('li, 5', 'ls, ' + repr('a'), 'items.x, 5', 'li, 2L', 'items.y, ' + repr('a'))})"
            ),
            lambda: f"{self.one('exists', 'forall')}(ls, x -> x LIKE 'a%' {self.one('', 'AND length(x) > 1')})",
            lambda: f"{self.one('exists', 'forall')}(items, y -> y.x > {self.integer()} OR y.y = 'a')",
            lambda: f"arrays_overlap(ls, array('a', {self.constant_text()}))",
            lambda: f"bin {self.one('=', '<')} X'61'",
            lambda: (
                f"w {self.one('=', '<', '>')} {self.one('12345678901234567890123456789012345677', '5', '10000000000000000000000000000000000000')}"
            ),
            lambda: f"q {self.one('=', '<', '>')} {self.one('0.1', '0.100000000000000005', '5', '-2.5', repr('5'))}",
            lambda: f"{self.name('d', 'g', 'f')} = {self.name('e', 'f', 'q')}",
            lambda: f"x:a.b::int {self.operator()} {self.integer()}",
            lambda: f"{self.name('mi')}[{self.one('1', '2', '9')}] {self.operator()} {self.constant_text()}",
            lambda: f"{self.name('m')}.B {self.operator()} {self.integer()}",
        )

    def condition(self, depth: int = 2) -> str:
        """A condition of any shape."""
        roll = self.rng.random()
        if depth == 0 or roll < 0.5:
            return self.test()
        if roll < 0.58:
            return f"NOT ({self.condition(depth - 1)})"
        joined = f" {self.one('AND', 'OR')} ".join(f"({self.condition(depth - 1)})" for _ in range(2))
        return f"{joined}"


PATTERNS = ("'a%'", "'%b'", "'A%'", "'_b'", "'%'", "''", r"'a\\%b'", "'a!%b' ESCAPE '!'", "'İ%'", "'%σ%'")
EXPRESSIONS = ("'^a'", "'[ab]+$'", "'(?i)AB'", "'.'", r"'\\d+'", "'a(?=b)'", "'^$'")
