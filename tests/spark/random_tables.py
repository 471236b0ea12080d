"""Random tables of every type that covey reads from Spark, and random filters on which Spark SQL must agree.

Left out is what docs/language.md lists as different: constants of another kind than the column, doubles against
integers beyond 2^53, decimals with more digits than a double has, and what Java's regular expressions read otherwise
than RE2. So are constants outside the type of a BIGINT, and BETWEEN with such bounds on other whole numbers: Spark 4.3
answers true for `NULL <= 9223372036854775808`, where SQL has unknown.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from covey.filters import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Filter,
    Is,
    Not,
    Or,
)
from covey.filters.predicates import OPERATORS
from tests.predicate_table import On, lines

SCHEMA = """
    k int, b tinyint, h smallint, i int, l bigint, f float, d double, e decimal(15,3), w decimal(38,0), s string,
    v string, o boolean, t timestamp, n timestamp_ntz, a date, li array<int>, ld array<double>, ls array<string>,
    r struct<x:int,y:string,z:struct<w:double>,`p.q`:int>, m map<string,int>, z void, bin binary
"""

TEXTS = ["", "a", "b", "ab", "ba", "aab", "é", "e\u0301", "𝄞", "a%b", "a_b", "A", "a\nb", "zz", "'", "\\", "\uffff"]
TIMES = [
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2024, 1, 1, 12, 30, tzinfo=UTC),
    datetime(1969, 7, 20, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
]
SMALL: list[int | float] = [0, 1, 2, 3, -1, 0.5, 2.5, -0.0]
DOUBLES: list[int | float] = [*SMALL, 1.0, 0.1, math.inf, -math.inf, math.nan, 2**53, 1e300, 5e-324, 2**24 + 1]
DECIMALS = [
    Decimal(text) for text in ("0", "1", "2.5", "-1", "0.001", "0.100", "999999999999.999", "-999999999999.999")
]
WIDE = [Decimal(0), Decimal(1), Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(2**53 + 1), Decimal(2**63)]
PATTERNS = ["a%", "%a", "%a%", "a", "%", "_", "a_b", "%a%b%", "", "__%", "a\\%b"]
EXPRESSIONS = ["a", "^a", "^$", ".", "a+b", "[^a]", "(?i)A", "a|z", "^.{2}$"]

_BITS = {"b": 8, "h": 16, "i": 32, "l": 64}
_INTEGERS = {*_BITS, "w", "li", "r.x", "r.p.q", "m.k", "m.x y"}
_DOUBLES = {"f", "d", "ld", "r.z.w"}
_TEXTS = {"s", "v", "ls", "r.y"}
_TIMES = {"t", "n", "a"}
_LISTS = ("li", "ld", "ls")
NAMES = (
    *_BITS,
    "f",
    "d",
    "e",
    "w",
    "s",
    "v",
    "o",
    *_TIMES,
    *_LISTS,
    "r.x",
    "r.y",
    "r.z.w",
    "r.p.q",
    "m.k",
    "m.x y",
    "z",
)


def constant(rng: random.Random, name: str) -> Any:
    """A constant for a column."""
    if name in _BITS:
        top = 2 ** (_BITS[name] - 1)
        return rng.choice([*SMALL, top - 1, -top, *(() if name == "l" else (top, -top - 1))])
    if name == "w":
        return int(rng.choice(WIDE))
    if name in _DOUBLES:
        return rng.choice(DOUBLES)
    if name == "e":
        return rng.choice([0, 1, 2.5, -1, 0.001, 0.1, 999999999999.999, -999999999999.999, 10**12])
    if name in _TEXTS:
        return rng.choice(TEXTS)
    if name == "o":
        return rng.random() < 0.5
    return rng.choice(TIMES) if name in _TIMES else rng.choice(SMALL)


def predicate(rng: random.Random) -> Filter:
    """One test."""
    name = rng.choice(NAMES)
    roll = rng.random()
    if name == "z" or roll < 0.08:
        on: On = "anything"
    elif name in _LISTS:
        on = "lists"
    else:
        on = "texts" if name in _TEXTS and roll < 0.5 else "scalars"
    return rng.choice(lines(on, on_spark=True)).make(name, lambda what: _drawn(rng, name, what))


def _drawn(rng: random.Random, name: str, what: str) -> Any:
    match what:
        case "operator":
            return rng.choice(OPERATORS)
        case "constant":
            return None if rng.random() < 0.05 else constant(rng, name)
        case "constants":
            return tuple(None if rng.random() < 0.1 else constant(rng, name) for _ in range(rng.randint(1, 5)))
        case "ends" if name in _BITS:
            return rng.choice(SMALL), rng.choice(SMALL)
        case "ends":
            return constant(rng, name), None if rng.random() < 0.05 else constant(rng, name)
        case "element":
            wanted = constant(rng, name)
            return int(wanted) if name == "li" else float(wanted) if name == "ld" else wanted
    return rng.choice({"text": TEXTS, "pattern": PATTERNS, "expression": EXPRESSIONS}[what])


def filter_of(rng: random.Random, depth: int = 3) -> Filter:
    """A filter of any shape."""
    roll = rng.random()
    if depth == 0 or roll < 0.3:
        return rng.choice([TRUE, FALSE, UNKNOWN]) if rng.random() < 0.03 else predicate(rng)
    if roll < 0.42:
        return Not(filter_of(rng, depth - 1))
    if roll < 0.52:
        return Is(filter_of(rng, depth - 1), rng.choice([True, False, None]))
    parts = tuple(filter_of(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return And(parts) if rng.random() < 0.55 else Or(parts)


def row_of(rng: random.Random, key: int, missing: float = 0.2) -> tuple[Any, ...]:
    """A row of SCHEMA."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < missing else value

    def integer(bits: int) -> int:
        top = 2 ** (bits - 1)
        return rng.choice([0, 1, 2, 3, -1, top - 1, -top])

    def double() -> float:
        return float(rng.choice(DOUBLES))

    def text() -> str:
        return rng.choice(TEXTS)

    def listed(one: Any) -> list[Any]:
        return [maybe(one()) for _ in range(rng.randint(0, 3))]

    small = 2**24 + 1
    record = (maybe(integer(32)), maybe(text()), maybe((maybe(double()),)), maybe(integer(32)))
    mapped = {name: maybe(rng.choice([0, 1, 2, 3])) for name in ("k", "x y", "other") if rng.random() < 0.6}
    floats = [value for value in map(float, DOUBLES) if not 0 < abs(value) < 1e-40 and abs(value) != small]
    return (
        key, *(maybe(integer(bits)) for bits in _BITS.values()),
        maybe(rng.choice([value for value in floats if abs(value) < 1e38 or math.isinf(value) or math.isnan(value)])),
        maybe(double()), maybe(rng.choice(DECIMALS)), maybe(rng.choice(WIDE)), maybe(text()), maybe(text()),
        maybe(rng.random() < 0.5), maybe(rng.choice(TIMES)), maybe(rng.choice(TIMES).replace(tzinfo=None)),
        maybe(rng.choice([date(2024, 1, 1), date(1969, 7, 20), date(1, 1, 1), date(9999, 12, 31)])),
        maybe(listed(lambda: integer(32))), maybe(listed(double)), maybe(listed(text)), maybe(record), maybe(mapped),
        None, maybe(b"bytes"),
    )  # fmt: skip
