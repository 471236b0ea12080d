"""Bulk build: a DataFrame of subscriptions to one saved index.

Rows come to the driver as Arrow and are compiled there in one pass. Measured on two cores, a million conjunctions take
3 to 5 s to come (parsed out of Parquet by the executors), 2.3 s of covey's own parsing and 9 s of compiling, which sees
all constants of all subscriptions at once and gives one segment. Compiling partitions on the executors would save some
seconds of a build and give as many segments as there are partitions, each of which every event meets: matching pays
for it for as long as the index lives. So executors read, filter and join the table, and the driver compiles.

The order of the subscriptions in the index is that of their ids, by code point, whatever the partitioning; so the same
rows give the same file, byte for byte. Of rows with one id the first that Spark hands over counts, as in files: that of
a file or a table is its first, that of a shuffled one any. The driver must hold the ids and texts of all subscriptions.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from covey.errors import CoveyError, OnError
from covey.events.schema import AnySchema
from covey.filters import Semantics
from covey.filters.fitting import UNTYPED, Types, fitted
from covey.language import check_dialect, parse
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching import AddReport, BadSubscription, Index, Statistics
from covey.matching.bulk import no_filter
from covey.spark.addresses import is_address, split
from covey.spark.only_spark import add_rules
from covey.spark.types import quoted

ERRORS_SHOWN = 5
"""Bad filters that an error of a whole table names."""
ID_TYPES = frozenset({"string", "tinyint", "smallint", "int", "bigint", "boolean", "date", "decimal"})
"""Types of ids that are written as text and read back without loss."""
INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
"""Those of integers, which an index keeps as such."""
ERRORS_SCHEMA = "row bigint, id string, error string"


def build_index(
    subscriptions: DataFrame,
    path: str | os.PathLike[str],
    *,
    id: str = "id",
    filter: str = "filter",
    semantics: Semantics = "sql",
    dialect: str = "sql",
    schema: AnySchema | None = None,
    statistics: Statistics | None = None,
    limits: Limits = DEFAULT_LIMITS,
    on_error: OnError = "raise",
    functions: Sequence[str] = (),
) -> AddReport:
    """Build an index of a DataFrame's subscriptions and save it; the report says how many it has and which rows are
    bad. With `on_error="raise"` bad rows are an AddManyError that lists all of them, and no file is written. Rules that
    only Spark reads are kept as such: `match_events` and `match_files` match them, the library refuses to. `functions`
    are those that are registered in the session and that rules may call."""
    index = Index(semantics=semantics, schema=schema, statistics=statistics, limits=limits)
    report = add_frame(
        index, subscriptions, id=id, filter=filter, dialect=dialect, on_error=on_error, functions=functions
    )
    if is_address(path):
        save_at(index, str(path))
    else:
        index.save(path)
    return report


def save_at(index: Index, address: str) -> None:
    """Save an index behind an address: it is there when all of it is."""
    directory, name = split(address)
    with tempfile.TemporaryDirectory() as here:
        index.save(Path(here, name))
        directory.upload(name, Path(here, name))


def add_frame(
    index: Index,
    subscriptions: DataFrame,
    *,
    id: str = "id",
    filter: str = "filter",
    dialect: str = "sql",
    on_error: OnError = "raise",
    functions: Sequence[str] = (),
) -> AddReport:
    """Add a DataFrame's rows to an index as one change, in the order of their ids. Integers stay such; ids of other
    types than string are written as Spark writes them."""
    ids, texts = _ordered(subscriptions, id, filter, dialect)
    whole = type_of_ids(subscriptions, id) in INTEGERS
    rows = zip(map(_integer, ids) if whole else ids, texts, strict=True)
    if index.schema is not None:  # which says what covey's own terms are, and nothing of Spark's
        return index.add_many(rows, on_error=on_error, dialect=dialect)
    return add_rules(index, rows, dialect=dialect, on_error=on_error, functions=functions)


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)


def frame_rows(
    subscriptions: DataFrame, *, id: str, filter: str, dialect: str, limits: Limits, types: Types
) -> tuple[list[tuple[str, str]], dict[int, CoveyError]]:
    """A DataFrame's rows in the order of their ids, as (id, SQL), and those that are no filters in their dialect. Those
    of dialects without types are fitted to the events' types."""
    ids, texts = _ordered(subscriptions, id, filter, dialect)
    errors: dict[int, CoveyError] = {}
    for row, text in enumerate(texts):
        try:
            if text is None:
                raise no_filter(None)
            if dialect != "sql":
                condition = parse(text, dialect, limits=limits)
                texts[row] = str(fitted(condition, types, columns=True) if dialect in UNTYPED else condition)
        except CoveyError as error:
            errors[row] = error
            texts[row] = "FALSE"
    return list(zip(ids, texts, strict=True)), errors


def _ordered(subscriptions: DataFrame, id: str, filter: str, dialect: str) -> tuple[list[str], list[str]]:
    """Ids, as text, and filters, in the order of the ids; of one id in that of the rows."""
    check_dialect(dialect)
    check_columns(subscriptions, id, filter)
    type_of_ids(subscriptions, id)
    column = F.col(quoted(id))
    rows = subscriptions.select(
        column.alias("by"), column.cast("string").alias("id"), F.col(quoted(filter)).cast("string").alias("filter")
    ).toArrow()
    rows = rows.append_column("row", pa.array(range(rows.num_rows), pa.int64()))
    keys = [("by", "ascending"), ("id", "ascending"), ("row", "ascending")]
    ordered = rows.take(pc.sort_indices(rows, sort_keys=keys))
    return ordered["id"].to_pylist(), ordered["filter"].to_pylist()


def type_of_ids(subscriptions: DataFrame, id: str) -> str:
    """The type of a table's ids, which matches keep."""
    kind = subscriptions.schema[id].dataType
    name = "string" if isinstance(kind, StringType) else str(kind.simpleString())
    if name.partition("(")[0] not in ID_TYPES:
        raise CoveyError(f"ids of type {name} can't be written as text and read back; cast the column {id!r} to string")
    return name


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


def errors_table(errors: list[BadSubscription]) -> pa.Table:
    """Bad rows as a table: row in the order of ids, id, and what is wrong."""
    return pa.table(
        {
            "row": pa.array([bad.row for bad in errors], pa.int64()),
            "id": pa.array([None if bad.id is None else str(bad.id) for bad in errors], pa.string()),
            "error": pa.array([str(bad.error) for bad in errors], pa.string()),
        }
    )
