"""Matching Parquet files that workers read themselves.

The JVM's turning rows into Arrow is what limits `match_events`. In a bulk job over files it isn't needed: workers read
Parquet with Arrow, only the columns that filters name and those asked for, and strings as the dictionaries that the
file holds already. `parquet_files` says which files and columns there are, as Spark reads them, and when it is Spark
that must read. The driver reads the files' footers and deals out runs of row groups, so that one large file is also
matched in parallel. A row's number is its place in its file, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, StructField, StructType

from covey.errors import CoveyError, OnError, skips
from covey.spark.batch import COLUMNS, Output, check_output, errors_frame, match_placed
from covey.spark.options import SubscriptionOptions, check_keywords
from covey.spark.parquet_files import FileColumns, Paths, find, opened
from covey.spark.types import quoted, selection
from covey.spark.worker_files import Placed, Subscriptions, place
from covey.spark.workers import IndexFile, as_lists, match_steps, slices

_ROWS_A_TASK = 250_000
_BATCH = 131_072


@dataclass(frozen=True, slots=True)
class Run:
    """Row groups of a file: one task's work."""

    file: FileColumns
    groups: tuple[int, ...]
    first_row: int


def match_files(
    spark: SparkSession,
    paths: Paths,
    subscriptions: Subscriptions,
    *,
    output: Output = "array",
    columns: Sequence[str] = (),
    on_error: OnError = "raise",
    rows_per_task: int = _ROWS_A_TASK,
    only_matches: bool = False,
    **options: Unpack[SubscriptionOptions],
) -> Any:
    """A DataFrame of (file, row, the `columns` asked for, subscriptions), or with `output="pairs"` a row for each match
    with its `subscription`, or with `output="counts"` the number of `matches`. `paths` are Parquet files, directories
    of them, or patterns with `*`; workers must be able to read them, under the same names. Columns are those that Spark
    reads there, directories such as `company=IBM` and files with differing columns included. They may be addresses that
    Arrow reads, such as `s3://…`.

    `only_matches` keeps the rows that match something; the others don't leave the workers.
    The other options are those of `match_events`; with `on_error="skip"` the result is a pair, too.
    """
    check_keywords("match_files", options)
    check_output(["file", "row", *columns], output)
    table = find(spark, paths)
    passed = _passed(table.frame.schema, columns)
    placed = place(table.frame, subscriptions, on_error=on_error, **options)
    needed = _needed(table.frame.schema, placed.attributes)
    derived = placed.columns is not None and placed.columns.derived
    files = None if derived else table.plainly(dict.fromkeys([*needed, *columns]))
    if files is None:
        read = table.frame if table.by_spark else spark.read.parquet(*table.files)
        matched = _by_spark(read, list(columns), placed, output, only_matches)
        return (matched, errors_frame(spark, list(placed.errors))) if skips(on_error) else matched
    runs = [run for file in files for run in _runs(file, rows_per_task)]
    types = {name: to_arrow_type(table.frame.schema[name].dataType, timezone="UTC") for name in needed}
    fields = [StructField("file", StringType(), False), StructField("row", LongType(), False), *passed]
    kinds: dict[Output, DataType] = {"array": ArrayType(StringType()), "pairs": StringType(), "counts": IntegerType()}
    result = StructType([*fields, StructField(COLUMNS[output], kinds[output])])
    function = _reader(runs, placed.files, types, list(columns), result, output, only_matches)
    matched = spark.range(0, len(runs), 1, max(1, len(runs))).mapInArrow(function, result)
    if placed.id_type != "string" and output != "counts":
        kind = f"array<{placed.id_type}>" if output == "array" else placed.id_type
        matched = matched.withColumn(COLUMNS[output], F.col(COLUMNS[output]).cast(kind))
    return (matched, errors_frame(spark, list(placed.errors))) if skips(on_error) else matched


def _by_spark(read: DataFrame, columns: list[str], placed: Placed, output: Output, only_matches: bool) -> DataFrame:
    """Through Spark's own reader, which can compute what filters have of terms, and knows what files may be like."""
    matched = match_placed(read.select("*", "_metadata"), placed, output=output, only_matches=only_matches)
    path = F.col("_metadata.file_path")
    # Spark's path is an address; the file's name is what the workers' own reading gives, too.
    local = F.when(path.startswith("file:"), F.url_decode(F.regexp_replace(path, "^file:/*", "/"))).otherwise(path)
    kept = [F.col(quoted(name)) for name in columns]
    return matched.select(local.alias("file"), F.col("_metadata.row_index").alias("row"), *kept, F.col(COLUMNS[output]))


def _runs(file: FileColumns, rows: int) -> Iterator[Run]:
    """Neighbouring row groups, until a task has enough rows."""
    metadata = opened(file.path).metadata
    groups: list[int] = []
    first = row = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        row += metadata.row_group(group).num_rows
        if row - first >= rows:
            yield Run(file, tuple(groups), first)
            groups, first = [], row
    if groups:
        yield Run(file, tuple(groups), first)


def _passed(schema: StructType, columns: Sequence[str]) -> list[StructField]:
    fields = []
    for name in columns:
        if name in ("file", "row") or name not in schema.names:
            why = "stands for the file's own" if name in ("file", "row") else "is not in the files"
            raise CoveyError(f"column {name!r} {why}; their columns are {', '.join(schema.names)}")
        fields.append(StructField(name, schema[name].dataType))
    return fields


def _needed(schema: StructType, attributes: Iterable[str]) -> list[str]:
    """The columns in which attributes are; an error where one is of a type that filters can't compare."""
    names = list(attributes)
    fields = [
        field for field in schema if any(name == field.name or name.startswith(f"{field.name}.") for name in names)
    ]
    selection(StructType(fields), names)
    return [field.name for field in fields]


def _reader(
    runs: list[Run],
    files: tuple[IndexFile, ...],
    needed: dict[str, pa.DataType],
    columns: list[str],
    result: StructType,
    output: Output,
    only_matches: bool = False,
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from match_run(runs[number], files, needed, columns, result, output, only_matches)

    return read


def match_run(
    run: Run,
    files: tuple[IndexFile, ...],
    needed: dict[str, pa.DataType],
    columns: list[str],
    result: StructType,
    output: Output,
    only_matches: bool = False,
) -> Iterator[pa.RecordBatch]:
    """In a worker: match one run of row groups."""
    types = [to_arrow_type(field.dataType, timezone="UTC") for field in result.fields]
    wanted = {**dict(zip(result.names, types, strict=True)), **needed}
    batches = _batches(run, {name: wanted[name] for name in dict.fromkeys([*needed, *columns])}, needed)
    row = run.first_row
    for events, offsets, ids in match_steps(batches, files):
        numbers = pa.array(np.arange(row, row + events.num_rows, dtype=np.int64))
        row += events.num_rows
        kept = [numbers, *(events.column(name) for name in columns)]
        if output == "pairs":
            take = pa.array(np.repeat(np.arange(events.num_rows), np.diff(offsets)))
            kept = [column.take(take) for column in kept]
        elif only_matches:
            found_some = np.flatnonzero(np.diff(offsets))
            kept = [column.take(pa.array(found_some)) for column in kept]
            offsets = np.concatenate((offsets[:1], offsets[found_some + 1]))  # what is left out has no ids
        count = len(kept[0])
        file = pa.array([run.file.path]).take(pa.array(np.zeros(count, dtype=np.int64)))
        found = as_lists(offsets, ids) if output == "array" else ids
        if output == "counts":
            found = pa.array(np.diff(offsets), pa.int32())
        arrays = [_as(column, kind) for column, kind in zip([file, *kept, found], types, strict=True)]
        yield from slices(pa.RecordBatch.from_arrays(arrays, names=result.names))


def _batches(run: Run, columns: dict[str, pa.DataType], coded: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """The row groups with the table's columns: those of the file, what its directories say, and null for the rest."""
    inside, constant = run.file.inside, run.file.constant
    schema = opened(run.file.path).schema_arrow
    read = {name: own for name, own in inside.items() if name in columns}
    strings = [read[name] for name in coded if name in read and pa.types.is_string(schema.field(read[name]).type)]
    parquet = opened(run.file.path, strings)
    # Without columns Arrow can't say how many rows a batch has: the first column stands in.
    names = list(dict.fromkeys(read.values())) or schema.names[:1]
    for batch in parquet.iter_batches(_BATCH, row_groups=list(run.groups), columns=names, use_threads=False):
        arrays = [
            batch.column(read[name]) if name in read else pa.repeat(pa.scalar(constant.get(name), kind), batch.num_rows)
            for name, kind in columns.items()
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns)) if arrays else batch


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One array of just the declared type: Spark takes what it is given without a look."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column if column.type.equals(kind) else column.cast(kind)
