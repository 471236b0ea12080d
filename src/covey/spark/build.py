"""Bulk build: a DataFrame of subscriptions to one saved index.

Rows come to the driver as Arrow and are compiled there in one pass. Measured on two cores, a million conjunctions take
3 to 5 s to come (parsed out of Parquet by the executors), 2.3 s of covey's own parsing and 9 s of compiling, which sees
all constants of all subscriptions at once and gives one segment. Compiling partitions on the executors would save some
seconds of a build and give as many segments as there are partitions, each of which every event meets: matching pays
for it for as long as the index lives. So executors read, filter and join the table, and the driver compiles.

The order of the subscriptions in the index is that of their ids, by code point, whatever the partitioning; so the same
rows give the same file, byte for byte. The driver must hold the ids and texts of all subscriptions.
"""

from __future__ import annotations

import os
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError
from covey.events import Schema
from covey.filters import Filter, Semantics
from covey.language import DIALECTS, parse
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import AddManyError, AddReport, BadSubscription, Index, Statistics
from covey.spark.types import quoted

OnError = Literal["raise", "collect"]
ERRORS_SHOWN = 5
"""Bad filters that an error of a whole table names."""
ERRORS_SCHEMA = "row bigint, id string, error string"


def build_index(
    subscriptions: DataFrame,
    path: str | os.PathLike[str],
    *,
    id: str = "id",
    filter: str = "filter",
    semantics: Semantics = "sql",
    dialect: str = "sql",
    schema: Schema | None = None,
    statistics: Statistics | None = None,
    limits: Limits = DEFAULT_LIMITS,
    on_error: OnError = "raise",
) -> AddReport:
    """Build an index of a DataFrame's subscriptions and save it; the report says how many it has and which rows are
    bad. With `on_error="raise"` bad rows are an AddManyError that lists all of them, and no file is written."""
    index = Index(semantics=semantics, schema=schema, statistics=statistics, limits=limits)
    report = add_frame(index, subscriptions, id=id, filter=filter, dialect=dialect, on_error=on_error)
    index.save(path)
    return report


def add_frame(
    index: Index,
    subscriptions: DataFrame,
    *,
    id: str = "id",
    filter: str = "filter",
    dialect: str = "sql",
    on_error: OnError = "raise",
) -> AddReport:
    """Add a DataFrame's rows to an index as one change, in the order of their ids. Ids of other types than string are
    written as Spark writes them."""
    if dialect not in DIALECTS:
        raise CoveyError(f"the dialect {dialect!r} is not known; use one of {', '.join(DIALECTS)}")
    check_columns(subscriptions, id, filter)
    rows = subscriptions.select(
        F.col(quoted(id)).cast("string").alias("id"), F.col(quoted(filter)).cast("string").alias("filter")
    ).toArrow()
    ordered = rows.take(pc.sort_indices(rows, sort_keys=[("id", "ascending"), ("filter", "ascending")]))
    ids: list[str] = ordered["id"].to_pylist()
    texts: list[str] = ordered["filter"].to_pylist()
    if dialect == "sql":
        return index.add_many(zip(ids, texts, strict=True), on_error=on_error)
    return _add_parsed(index, ids, texts, dialect, on_error)


def check_columns(subscriptions: DataFrame, *names: str) -> None:
    """Whether a table of subscriptions has the columns that are asked of it."""
    for name in names:
        if subscriptions.columns.count(name) != 1:
            has = ", ".join(subscriptions.columns)
            raise CoveyError(f"the subscriptions need one column {name!r}; theirs are {has} (id= and filter= choose)")


def unreadable(count: int, shown: list[str]) -> CoveyError:
    """One error for all filters that can't be read, of which some are shown."""
    more = f"; and {count - len(shown)} more" if count > len(shown) else ""
    return CoveyError(f"{count} subscriptions can't be read: {'; '.join(shown)}{more}")


def _add_parsed(index: Index, ids: list[str], texts: list[str], dialect: str, on_error: OnError) -> AddReport:
    """As `add_many`, for a dialect that it doesn't read."""
    good: list[tuple[str, str | Filter]] = []
    places: list[int] = []
    errors: list[BadSubscription] = []
    for row, (id, text) in enumerate(zip(ids, texts, strict=True)):
        try:
            good.append((id, parse(text, dialect)))
            places.append(row)
        except CoveyError as error:
            errors.append(BadSubscription(row, id, error))
    trial = Index(semantics=index.semantics, schema=index.schema) if errors and on_error == "raise" else index
    report = trial.add_many(good, on_error="collect" if errors else on_error)
    errors += [BadSubscription(places[bad.row], bad.id, bad.error) for bad in report.errors]
    errors.sort(key=lambda bad: bad.row)
    if errors and on_error == "raise":
        raise AddManyError(errors)
    return AddReport(report.added, errors)


def errors_table(errors: list[BadSubscription]) -> pa.Table:
    """Bad rows as a table: row in the order of ids, id, and what is wrong."""
    return pa.table(
        {
            "row": pa.array([bad.row for bad in errors], pa.int64()),
            "id": pa.array([bad.id for bad in errors], pa.string()),
            "error": pa.array([str(bad.error) for bad in errors], pa.string()),
        }
    )
