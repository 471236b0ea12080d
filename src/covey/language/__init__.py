"""Text to filter and back: SQL WHERE first, JSON beside it; errors with a caret under the token that is wrong.

May import `covey.filters`, `covey.errors` and `covey.limits`; knows nothing of events, diagrams or indexes.
Filter to SQL is `covey.filters.printing.to_sql`, since filters print themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from covey.errors import FilterError, LimitError
from covey.filters.algebra import Filter
from covey.language.json_form import from_json, parse_json, to_json
from covey.language.parser import parse_sql
from covey.limits import DEFAULT_LIMITS, Limits

DIALECTS: Final[dict[str, Callable[[str, Limits], Filter]]] = {"sql": parse_sql, "json": parse_json}


def parse(text: str, dialect: str = "sql", limits: Limits = DEFAULT_LIMITS) -> Filter:
    """The filter that a text means. Raises `FilterSyntaxError`, with a caret, or `LimitError`."""
    reader = DIALECTS.get(dialect)
    if reader is None:
        raise FilterError(f"the dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")
    if not isinstance(text, str):
        raise FilterError(f"a filter's text is a string, not {type(text).__name__}")
    try:
        return reader(text, limits)
    except RecursionError:
        raise LimitError(
            f"the filter is nested too deep for Python's stack; the limit depth is {limits.depth:,}, set it lower"
        ) from None


__all__ = ["DIALECTS", "from_json", "parse", "to_json"]
