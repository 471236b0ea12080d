"""Tables and events of whatever library people have them in, as those that covey reads.

A table is what has Arrow's C interface (`__arrow_c_stream__`, `__arrow_c_array__`: pandas, polars, DuckDB, Arrow's
readers), an Arrow dataset, or a list or iterator of mappings. An event is a mapping, or a record that can be read as
one: a row of a DataFrame, a named tuple, a row of Spark's. No library is imported: objects are told by what they can.

pandas has NaN where a number is missing, so NaN is read as missing in what is pandas' own. Elsewhere NaN is a number
above all others, as in Spark, unless the caller says otherwise: of `to_dict("records")` nobody can tell any more where
it came from.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from covey.errors import CoveyError, EventError
from covey.events.byte_batches import ByteBatch
from covey.events.columns import Source
from covey.events.files import read_batch

AnyTable: TypeAlias = Any
"""What `as_table` takes."""


def as_batch(given: AnyTable) -> tuple[Source, bool]:
    """Events as columns are read from, and whether NaN is how they say that a value is missing."""
    if isinstance(given, (pa.Table, pa.RecordBatch, ByteBatch, list)):
        return given, False
    if isinstance(given, (str, os.PathLike)):
        return read_batch(given), False
    table = as_table(given)
    if table is not None:
        return table
    if isinstance(given, Mapping):
        raise EventError("a batch is a table or a list of events; match() takes one event, and pa.table() columns")
    if isinstance(given, (bytes, bytearray)):
        raise EventError("a batch is a table or a list of events, not bytes; match_json_lines() takes lines of JSON")
    if isinstance(given, Sequence):
        return given, False
    if isinstance(given, Iterable):
        return list(given), False
    raise TypeError(f"a batch is a table or a list of mappings, not {type(given).__name__}")


def as_table(given: AnyTable) -> tuple[Source, bool] | None:
    """A table of another library in Arrow, or as a list of records where Arrow has no type for a column; None for what
    is no table. With it, whether NaN is missing there."""
    if isinstance(given, (pa.Table, pa.RecordBatch)):
        return given, False
    if is_spark(given):
        raise CoveyError(
            "a Spark DataFrame is matched where it is, by covey.spark.match_events; toArrow() brings it here"
        )
    try:
        if hasattr(given, "__arrow_c_stream__"):
            return pa.table(given), of_pandas(given)
        if hasattr(given, "__arrow_c_array__"):
            return pa.record_batch(given), False
        if of_pandas(given) and hasattr(given, "columns"):
            return pa.Table.from_pandas(given), True
        if callable(getattr(given, "to_table", None)):  # datasets and scanners
            return given.to_table(), False
        if callable(getattr(given, "collect_schema", None)):  # a lazy frame of polars
            return pa.table(given.collect()), False
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        if of_pandas(given):  # a column of mixed values, which Python's own can be
            return given.to_dict("records"), True
        reason = str(error).splitlines()[0]
        raise CoveyError(f"a {type(given).__name__} is no table that Arrow can read: {reason}") from None
    return None


def as_event(given: Any) -> tuple[Mapping[str, Any], bool]:
    """An event as a mapping, and whether NaN is how it says that a value is missing."""
    if isinstance(given, Mapping):
        return given, False
    if of_pandas(given) and hasattr(given, "to_dict") and not hasattr(given, "columns"):
        return given.to_dict(), True
    if hasattr(given, "asDict"):  # a row of Spark's
        return given.asDict(recursive=True), False
    if hasattr(given, "_asdict"):
        return given._asdict(), False
    raise EventError(f"an event is a mapping of attributes, not {type(given).__name__}")


def without_nan(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event without the attributes that are NaN; the same where there are none."""
    kept = {name: without_nan(value) if isinstance(value, Mapping) else value for name, value in event.items()}
    return {name: value for name, value in kept.items() if not _is_nan(value)}


def records(given: AnyTable) -> Iterator[Mapping[str, Any]]:
    """The events of a batch as mappings, without what is missing."""
    batch, nan_is_missing = as_batch(given)
    if isinstance(batch, ByteBatch):
        yield from batch.whole_events()
        return
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        parts = batch.to_batches() if isinstance(batch, pa.Table) else [batch]
        rows: Iterable[Any] = (row for part in parts for row in part.to_pylist(maps_as_pydicts="lossy"))
    else:
        rows = batch
    for row in rows:
        event, missing = as_event(row)
        yield without_nan(event) if nan_is_missing or missing else event


def of_pandas(given: Any) -> bool:
    """Whether an object is pandas' own."""
    return type(given).__module__.partition(".")[0] == "pandas"


def is_spark(given: Any) -> bool:
    """Whether an object is a DataFrame of Spark's."""
    return hasattr(given, "toArrow") and hasattr(given, "sparkSession")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value
