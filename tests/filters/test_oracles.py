"""The interpreter's three-valued logic is SQLite's and DuckDB's, on random filters and events with missing attributes.

Filters are written as SQL by a printer of the test's own, so that covey's printer and parser have no part in it. One
SELECT evaluates many filters on a table of many events. Left out where an engine means something else: NaN for SQLite
(which reads it as NULL), integers beyond 2**53 against doubles for DuckDB (which rounds them; SQLite compares them
exactly, and gets them), regular expressions and timestamps for SQLite (which has neither).
"""

from __future__ import annotations

import math
import random
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from covey.filters import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Between,
    Compare,
    Constant,
    Contains,
    EndsWith,
    Filter,
    In,
    Is,
    IsNull,
    Like,
    Not,
    Or,
    RLike,
    StartsWith,
    SubstringOf,
    matches,
)
from covey.filters.semantics import attribute_value, truth

FILTERS, EVENTS = 300, 40
SEEDS = range(4)

BIG = 2**53
INTS = [-2, -1, 0, 1, 2, 3]
DOUBLES = [-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 2.5, math.inf, -math.inf]
WORDS = ["", "a", "A", "ab", "abc", "b", "%", "a%b", "a_b", "é", "é\U0001f600", "\uffff", "\U00010000", "it's", "\\"]
PATTERNS = ["%", "_", "a%", "%b", "a_b", "%\\%%", "a\\_b", "", "__", "%a%b%", "\\\\", "é_", "A%"]
EXPRESSIONS = ["^a", "b$", "a.*b", "[A-Z]", "é|b", "^$", "a{2}"]
INSTANTS = [
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    datetime(1969, 12, 31, tzinfo=UTC),
]


@dataclass(frozen=True)
class Dialect:
    """What an engine can be asked, and how it writes what engines write differently."""

    domains: dict[str, tuple[str, list[Any]]]
    literal: Callable[[Any], str]
    text_tests: tuple[type[Filter], ...]
    evaluate: Callable[[list[dict[str, Any]], list[str], Dialect], list[Sequence[Any]]]
    null_safe: str
    contains: str
    starts_with: str
    ends_with: str


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sqlite_literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) and math.isinf(value):
        return "9e999" if value > 0 else "-9e999"
    return repr(int(value) if isinstance(value, bool) else value)


def duckdb_literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, bool):
        return str(value).upper()
    return sqlite_literal(value)


def in_sqlite(events: list[dict[str, Any]], expressions: list[str], dialect: Dialect) -> list[Sequence[Any]]:
    with sqlite3.connect(":memory:") as database:
        database.execute("PRAGMA case_sensitive_like = ON")
        database.execute(f"CREATE TABLE events ({', '.join(f'{n} {k}' for n, (k, _) in dialect.domains.items())})")
        marks = ", ".join("?" for _ in dialect.domains)
        database.executemany(
            f"INSERT INTO events VALUES ({marks})", [[event[name] for name in dialect.domains] for event in events]
        )
        return database.execute(f"SELECT {', '.join(expressions)} FROM events ORDER BY rowid").fetchall()


def in_duckdb(events: list[dict[str, Any]], expressions: list[str], dialect: Dialect) -> list[Sequence[Any]]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(":memory:") as database:
        definitions = ", ".join(f"{name} {kind}" for name, (kind, _) in dialect.domains.items())
        database.execute(f"CREATE TABLE events (place INTEGER, {definitions})")
        rows = [
            "(" + ", ".join([str(place), *(duckdb_literal(event[name]) for name in dialect.domains)]) + ")"
            for place, event in enumerate(events)
        ]
        database.execute(f"INSERT INTO events VALUES {', '.join(rows)}")
        found: list[Sequence[Any]] = database.execute(
            f"SELECT {', '.join(expressions)} FROM events ORDER BY place"
        ).fetchall()
        return found


TEXT_TESTS: tuple[type[Filter], ...] = (Like, StartsWith, EndsWith, Contains, SubstringOf)

SQLITE = Dialect(
    domains={
        "i": ("INTEGER", [*INTS, BIG, BIG + 1, 2**63 - 1, -(2**63)]),
        "d": ("REAL", [*DOUBLES, float(BIG), float(2**63)]),
        "s": ("TEXT", WORDS),
        "b": ("INTEGER", [True, False]),
    },
    literal=sqlite_literal,
    text_tests=TEXT_TESTS,
    evaluate=in_sqlite,
    null_safe="IS",
    contains="instr({0}, {1}) > 0",
    starts_with="substr({0}, 1, length({1})) = {1}",
    ends_with="(length({0}) >= length({1}) AND substr({0}, length({0}) - length({1}) + 1) = {1})",
)
DUCKDB = Dialect(
    domains={
        "i": ("BIGINT", INTS),
        "d": ("DOUBLE", [*DOUBLES, math.nan]),
        "s": ("VARCHAR", WORDS),
        "b": ("BOOLEAN", [True, False]),
        "t": ("TIMESTAMP", INSTANTS),
    },
    literal=duckdb_literal,
    text_tests=(*TEXT_TESTS, RLike),
    evaluate=in_duckdb,
    null_safe="IS NOT DISTINCT FROM",
    contains="contains({0}, {1})",
    starts_with="starts_with({0}, {1})",
    ends_with="ends_with({0}, {1})",
)


def random_filter(source: random.Random, dialect: Dialect, depth: int) -> Filter:
    if depth == 0 or source.random() < 0.2:
        return random_predicate(source, dialect)
    parts = tuple(random_filter(source, dialect, depth - 1) for _ in range(source.randint(2, 3)))
    match source.randrange(5):
        case 0 | 1:
            return And(parts)
        case 2 | 3:
            return Or(parts)
    inner = parts[0]
    return Is(inner, source.choice([True, False, None])) if source.random() < 0.3 else Not(inner)


def random_predicate(source: random.Random, dialect: Dialect) -> Filter:
    if source.random() < 0.03:
        return source.choice([TRUE, FALSE, UNKNOWN])
    name = source.choice(list(dialect.domains))
    values = dialect.domains[name][1]
    if name in "id":
        values = dialect.domains["i"][1] + dialect.domains["d"][1]

    def constant() -> Any:
        return None if source.random() < 0.05 else source.choice(values)

    if name == "s" and source.random() < 0.5:
        test = source.choice(dialect.text_tests)
        texts = PATTERNS if test is Like else EXPRESSIONS if test is RLike else WORDS
        return test(name, source.choice(texts))  # type: ignore[call-arg]
    match source.randrange(6):
        case 0:
            return IsNull(name)
        case 1:
            return Between(name, constant(), constant())
        case 2:
            return In(name, tuple(constant() for _ in range(source.randint(1, 4))))
    return Compare(name, source.choice(["=", "!=", "<", "<=", ">", ">=", "<=>"]), constant())


def sql(condition: Filter, dialect: Dialect) -> str:
    literal = dialect.literal
    match condition:
        case Constant(value):
            return f"({'1=1' if value else 'NULL=1' if value is None else '1=0'})"
        case And(parts):
            return f"({' AND '.join(sql(part, dialect) for part in parts)})"
        case Or(parts):
            return f"({' OR '.join(sql(part, dialect) for part in parts)})"
        case Not(part):
            return f"(NOT {sql(part, dialect)})"
        case Is(part, wanted):
            test = {True: "COALESCE({0}, 1=0)", False: "COALESCE(NOT {0}, 1=0)", None: "({0} IS NULL)"}[wanted]
            return test.format(sql(part, dialect))
        case IsNull(name):
            return f"({name} IS NULL)"
        case Compare(name, "<=>", value):
            return f"({name} {dialect.null_safe} {literal(value)})"
        case Compare(name, operator, value):
            return f"({name} {operator.replace('!=', '<>')} {literal(value)})"
        case Between(name, low, high):
            return f"({name} BETWEEN {literal(low)} AND {literal(high)})"
        case In(name, values):
            return f"({name} IN ({', '.join(map(literal, values))}))"
        case Like(name, pattern, escape):
            return f"({name} LIKE {quoted(pattern)} ESCAPE {quoted(escape)})"
        case RLike(name, pattern):
            return f"regexp_matches({name}, {quoted(pattern)})"
        case StartsWith(name, text):
            return f"({dialect.starts_with.format(name, quoted(text))})"
        case EndsWith(name, text):
            return f"({dialect.ends_with.format(name, quoted(text))})"
        case Contains(name, text):
            return f"({dialect.contains.format(name, quoted(text))})"
        case SubstringOf(name, text):
            return f"({dialect.contains.format(quoted(text), name)})"
    raise TypeError(type(condition).__name__)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dialect", [SQLITE, DUCKDB], ids=["sqlite", "duckdb"])
def test_three_valued_logic_is_the_oracles(dialect: Dialect, seed: int) -> None:
    source = random.Random(seed)
    filters = [random_filter(source, dialect, source.randint(0, 4)) for _ in range(FILTERS)]
    events = [
        {name: None if source.random() < 0.25 else source.choice(held) for name, (_, held) in dialect.domains.items()}
        for _ in range(EVENTS)
    ]
    answers = dialect.evaluate(events, [sql(one, dialect) for one in filters], dialect)
    seen: dict[bool | None, int] = {True: 0, False: 0, None: 0}
    for event, answer in zip(events, answers, strict=True):
        for condition, told in zip(filters, answer, strict=True):
            wanted = None if told is None else bool(told)
            got = truth(condition, lambda name, event=event: attribute_value(event, name), three_valued=True)
            assert got is wanted, (sql(condition, dialect), event)
            assert matches(condition, event) is (wanted is True)
            seen[wanted] += 1
    assert min(seen.values()) > FILTERS * EVENTS // 20, "each truth value has its share"
