"""Subscriptions that only Spark can compute: an index keeps them and says so, and the library refuses to match them.

They test attributes whose names begin with `spark:`. On Spark these are columns beside the events' own. Events from
elsewhere don't have them, and a test on what an event doesn't have is unknown: the subscription would never match, and
nobody would be told. So an index that has any takes events with these attributes alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from covey.errors import EventError
from covey.filters import Filter, Predicate
from covey.filters.terms import SPARK_ONLY


def check_only_spark(terms: Sequence[str], given: Collection[str]) -> None:
    """Refuse events without what only Spark computes."""
    missing = next((name for name in terms if name not in given), None)
    if missing is not None:
        more = f" and {len(terms) - 1:,} more" if len(terms) > 1 else ""
        raise EventError(f"only Spark computes {missing[len(SPARK_ONLY) :]}{more}; match with covey.spark.match_events")


def only_spark_text(condition: Filter) -> str | None:
    """The rule that only Spark reads, as it was written; None for others."""
    name = condition.attribute if isinstance(condition, Predicate) else ""
    return name[len(SPARK_ONLY) :] if name.startswith(SPARK_ONLY) else None


def names_of(events: Any) -> Collection[str]:
    """What attributes a batch has: the columns of a table, or what its first event has."""
    if hasattr(events, "schema"):
        return list(events.schema.names)
    return next(iter(events), ()) if isinstance(events, Sequence) else ()
