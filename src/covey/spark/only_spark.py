"""Rules that covey's own parser doesn't read and Spark does, as filters that an index can keep.

Such a rule is one test: of the attribute that is called `spark:` and the rule's text. Over a table it is read again
from there, by Spark's grammar, like any other rule; away from Spark the index refuses to match it by that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from covey.errors import CoveyError, FilterError
from covey.filters import Compare, Filter
from covey.filters.terms import SPARK_ONLY
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import AddManyError, AddReport, BadSubscription, Index
from covey.spark.conditions.binding import checked

Row = tuple[Any, str | Filter]


def only_spark(text: str, functions: Sequence[str] = (), limits: Limits = DEFAULT_LIMITS) -> Filter | None:
    """A rule by Spark's grammar; None where that doesn't have it, or rules may not call what it calls."""
    try:
        checked(text, functions, limits)
    except (CoveyError, RecursionError):
        return None
    return Compare(SPARK_ONLY + text.strip(), "=", True)


def add_rules(
    index: Index, rows: Iterable[tuple[Any, Any]], *, dialect: str, on_error: str, functions: Sequence[str] = ()
) -> AddReport:
    """Add rows to an index in their order, those that only Spark reads among them."""
    given: list[Row] = list(rows)
    try:
        return index.add_many(given, on_error="raise", dialect=dialect)
    except AddManyError as error:
        found = _with_only_spark(given, error.errors, dialect, functions)
    return index.add_many(found, on_error=on_error, dialect=dialect)  # type: ignore[arg-type]


def _with_only_spark(
    rows: list[Row], errors: Iterable[BadSubscription], dialect: str, functions: Sequence[str]
) -> list[Row]:
    """The rows, of which some that were bad are what Spark makes of them."""
    if dialect != "sql":
        return rows
    for bad in errors:
        id, text = rows[bad.row]
        found = only_spark(text, functions) if isinstance(text, str) and _is_about_text(bad.error) else None
        if found is not None:
            rows[bad.row] = id, found
    return rows


def _is_about_text(error: CoveyError) -> bool:
    """Whether the parser refused it: an id that stands twice is no reason to look at the text again."""
    return isinstance(error, FilterError)
