"""Names and constants as SQL writes them: quoted wherever the lexer would read them as something else, and printed so
that their type survives (`1` and `1.0`, `-0.0`, `double('NaN')`).
"""

from __future__ import annotations

import math
import re
from datetime import datetime

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
