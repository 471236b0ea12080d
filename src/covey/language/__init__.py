"""Text to filter and back: SQL WHERE first, JSON and the rules of others beside it; errors with a caret under the token
that is wrong.

May import `covey.filters`, `covey.errors` and `covey.limits`; knows nothing of events, diagrams or indexes.
Filter to SQL is `covey.filters.printing.to_sql`, since filters print themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Final

from covey.errors import FilterError, LimitError
from covey.filters.algebra import Filter
from covey.filters.terms import terms_read_by
from covey.language.bounds import over_limit
from covey.language.json_form import from_json, parse_json, to_json
from covey.language.parser import parse_sql, read_term
from covey.limits import DEFAULT_LIMITS, Limits

terms_read_by("covey.language")


def _read_by(name: str) -> Callable[[str, Limits], Filter]:
    """A dialect's reader, in a module of that name. Most programs use none; a first match doesn't wait for it."""

    def read(text: str, limits: Limits) -> Filter:
        module = import_module(f"covey.language.{'jms' if name == 'amqp' else name}")
        found: Filter = getattr(module, f"parse_{name}")(text, limits)
        return found

    return read


DIALECTS: Final[dict[str, Callable[[str, Limits], Filter]]] = {
    "sql": parse_sql,
    "json": parse_json,
    "cesql": _read_by("cesql"),
    "jms": _read_by("jms"),
    "amqp": _read_by("amqp"),
    "eventbridge": _read_by("eventbridge"),
    "sigma": _read_by("sigma"),
}


def check_dialect(dialect: str) -> None:
    """Refuse the name of a dialect that there isn't."""
    if dialect not in DIALECTS:
        raise FilterError(f"the dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")


def in_sql(text: str, dialect: str, limits: Limits = DEFAULT_LIMITS) -> Filter:
    """The filter of a text in any dialect, for those who keep filters as SQL: what it prints must be within the limits
    too, since it will be read again."""
    condition = parse(text, dialect, limits)
    printed = str(condition)
    if len(printed) > limits.text_length:
        raise over_limit(f"the filter has {len(printed):,} characters as SQL", "text_length", limits)
    return condition


def sql_text(given: str | Filter, dialect: str = "sql", limits: Limits = DEFAULT_LIMITS) -> str:
    """A filter as the SQL that brokers take, whatever it is written in; SQL itself stays as it is written."""
    check_dialect(dialect)
    return str(in_sql(given, dialect, limits)) if isinstance(given, str) and dialect != "sql" else str(given)


def parse(text: str, dialect: str = "sql", limits: Limits = DEFAULT_LIMITS) -> Filter:
    """The filter that a text means. Raises `FilterSyntaxError`, with a caret, or `LimitError`."""
    check_dialect(dialect)
    if not isinstance(text, str):
        raise FilterError(f"a filter's text is a string, not {type(text).__name__}")
    try:
        return DIALECTS[dialect](text, limits)
    except RecursionError:
        raise LimitError(
            f"the filter is nested too deep for Python's stack; the limit depth is {limits.depth:,}, set it lower"
        ) from None


__all__ = ["DIALECTS", "check_dialect", "from_json", "in_sql", "parse", "read_term", "sql_text", "to_json"]
