"""Filters as SQL text, the inverse of `covey.language.parse`: parsing the text gives the same filter again.

What makes that exact: constants are printed so that their type survives (`1` and `1.0`, `-0.0`, `double('NaN')`),
strings and names are quoted wherever the lexer would read them as something else, and parentheses stand only where
precedence needs them. The text is also Spark SQL, apart from the functions and constants that Spark doesn't have
(`docs/language.md` lists them). Printing keeps its own stack: a filter built in Python can be deeper than Python's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Like,
    RLike,
    StartsWith,
    SubstringOf,
)
from covey.filters.values import Scalar

KEYWORDS = frozenset(["AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "RLIKE", "REGEXP", "IS", "NULL", "TRUE", "FALSE"])
"""Words that are never attribute names unless they are in backquotes."""

QUERY_WORDS = frozenset(["SELECT", "FROM", "WITH", "TABLE"])
"""Words that begin a query, which a filter isn't."""

QUOTED = KEYWORDS | QUERY_WORDS | {"WHERE", "CASE"}
"""Names that are printed in backquotes: at the start of a condition the others would look like a query."""

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f]")
_ESCAPES = {"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\x1a": "\\Z"}
_TRUTHS = {True: "TRUE", False: "FALSE", None: "NULL"}
_TESTS = {True: "TRUE", False: "FALSE", None: "UNKNOWN"}


def to_sql(condition: Filter) -> str:
    """The filter as a SQL WHERE condition."""
    pieces: list[str] = []
    stack: list[str | Filter] = [condition]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif isinstance(item, Not) and type(item.part) not in _INFIX_NOT:
            stack.extend(reversed(_enclosed(item.part, And, Or)))
            pieces.append("NOT ")
        else:
            stack.extend(reversed(_pieces(item)))
    return "".join(pieces)


def name_to_sql(name: str) -> str:
    """An attribute's dotted name, with backquotes around the parts that need them."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in QUOTED:
        return name
    parts = name.split(".")
    if not all(parts):
        return _backquoted(name)
    return ".".join(
        part if _PLAIN_NAME.fullmatch(part) and part.upper() not in QUOTED else _backquoted(part) for part in parts
    )


def constant_to_sql(value: Scalar | None) -> str:
    """A constant as a SQL literal that reads back as the same constant."""
    if value is None or isinstance(value, bool):
        return _TRUTHS[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return "double('NaN')" if math.isnan(value) else f"double('{'-' if value < 0 else ''}Infinity')"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(sep=' ')}Z'"
    return string_to_sql(value)


def string_to_sql(value: str) -> str:
    """A string in single quotes, with Spark's escapes for what would not survive as it is."""
    return f"'{_ESCAPED.sub(_escape, value)}'"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _backquoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"


def _enclosed(condition: Filter, *kinds: type[Filter]) -> list[str | Filter]:
    """A filter as a part of another: in parentheses where it is of a kind that binds looser."""
    return ["(", condition, ")"] if isinstance(condition, kinds) else [condition]


def _pieces(condition: Filter) -> list[str | Filter]:
    """A filter as text and the filters within it, in order."""
    negated = isinstance(condition, Not)
    inner = condition.part if isinstance(condition, Not) else condition
    match inner:
        case Constant(value):
            return [_TRUTHS[value]]
        case And(parts):
            return _joined(parts, " AND ", Or)
        case Or(parts):
            return _joined(parts, " OR ")
        case Is(part, truth):
            return ["(", part, f") IS {'NOT ' if negated else ''}{_TESTS[truth]}"]
    return [_PREDICATES[type(inner)](inner, "NOT " if negated else "")]


def _joined(parts: tuple[Filter, ...], operator: str, *enclosed: type[Filter]) -> list[str | Filter]:
    pieces: list[str | Filter] = []
    for part in parts:
        if pieces:
            pieces.append(operator)
        pieces.extend(_enclosed(part, *enclosed))
    return pieces


def _function(name: str, field: str) -> Callable[[Any, str], str]:
    def call(predicate: Any, _: str) -> str:
        return f"{name}({name_to_sql(predicate.attribute)}, {constant_to_sql(getattr(predicate, field))})"

    return call


def _compare(predicate: Compare, _: str) -> str:
    return f"{name_to_sql(predicate.attribute)} {predicate.operator} {constant_to_sql(predicate.value)}"


def _is_null(predicate: IsNull, negation: str) -> str:
    return f"{name_to_sql(predicate.attribute)} IS {negation}NULL"


def _in(predicate: In, negation: str) -> str:
    values = ", ".join(map(constant_to_sql, predicate.values))
    return f"{name_to_sql(predicate.attribute)} {negation}IN ({values})"


def _between(predicate: Between, negation: str) -> str:
    ends = f"{constant_to_sql(predicate.low)} AND {constant_to_sql(predicate.high)}"
    return f"{name_to_sql(predicate.attribute)} {negation}BETWEEN {ends}"


def _like(predicate: Like, negation: str) -> str:
    escape = "" if predicate.escape == "\\" else f" ESCAPE {string_to_sql(predicate.escape)}"
    return f"{name_to_sql(predicate.attribute)} {negation}LIKE {string_to_sql(predicate.pattern)}{escape}"


def _rlike(predicate: RLike, negation: str) -> str:
    return f"{name_to_sql(predicate.attribute)} {negation}RLIKE {string_to_sql(predicate.pattern)}"


_INFIX_NOT: frozenset[type[Filter]] = frozenset({IsNull, In, Between, Like, RLike, Is})

_PREDICATES: dict[type[Filter], Callable[[Any, str], str]] = {
    IsNull: _is_null,
    Compare: _compare,
    In: _in,
    Between: _between,
    Like: _like,
    RLike: _rlike,
    StartsWith: _function("startswith", "text"),
    EndsWith: _function("endswith", "text"),
    Contains: _function("contains", "text"),
    SubstringOf: _function("substring_of", "text"),
    ArrayContains: _function("array_contains", "value"),
}
