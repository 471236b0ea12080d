"""Matching Parquet files that workers read themselves.

The JVM's turning rows into Arrow is what limits `match_events`. In a bulk job over files it isn't needed: workers read
Parquet with Arrow, only the columns that filters name and those asked for, and strings as the dictionaries that the
file holds already. The driver reads the files' footers and deals out runs of row groups, so that one large file is
also matched in parallel. A row's number is its place in its file, from 0.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, DataType, LongType, StringType, StructField, StructType

from covey.errors import CoveyError
from covey.spark.batch import COLUMNS, Output, check_output, errors_frame, match_placed
from covey.spark.build import OnError
from covey.spark.options import SubscriptionOptions, check_keywords
from covey.spark.types import quoted, selection
from covey.spark.worker_files import Placed, Subscriptions, place
from covey.spark.workers import IndexFile, as_lists, match_steps, slices

_ROWS_A_TASK = 250_000
_BATCH = 131_072


@dataclass(frozen=True, slots=True)
class Run:
    """Row groups of a file: one task's work."""

    file: str
    groups: tuple[int, ...]
    first_row: int


def match_files(
    spark: SparkSession,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    subscriptions: Subscriptions,
    *,
    output: Output = "array",
    columns: Sequence[str] = (),
    on_error: OnError = "raise",
    rows_per_task: int = _ROWS_A_TASK,
    **options: Unpack[SubscriptionOptions],
) -> Any:
    """A DataFrame of (file, row, the `columns` asked for, subscriptions), or with `output="pairs"` a row for each match
    with its `subscription`. `paths` are Parquet files, directories of them, or patterns with `*`; workers must be able
    to read them, under the same names. They may be addresses that Arrow reads, such as `s3://…`.

    The other options are those of `match_events`; with `on_error="collect"` the result is a pair, too.
    """
    check_keywords("match_files", options)
    check_output(["file", "row", *columns], output)
    files = _files(paths)
    arrow = _opened(files[0]).schema_arrow
    passed = _passed(arrow, columns, files[0])
    placed = place(_without_rows(spark, arrow), subscriptions, on_error=on_error, **options)
    if placed.columns is not None and placed.columns.derived:
        matched = _by_spark(spark, files, list(columns), placed, output)
        return matched if on_error == "raise" else (matched, errors_frame(spark, list(placed.errors)))
    needed = _needed(arrow, placed.attributes)
    runs = [run for file in files for run in _runs(file, rows_per_task)]
    fields = [StructField("file", StringType(), False), StructField("row", LongType(), False), *passed]
    ids: DataType = ArrayType(StringType()) if output == "array" else StringType()
    result = StructType([*fields, StructField(COLUMNS[output], ids)])
    function = _reader(runs, placed.files, needed, list(columns), result, output)
    matched = spark.range(0, len(runs), 1, max(1, len(runs))).mapInArrow(function, result)
    if placed.id_type != "string":
        kind = f"array<{placed.id_type}>" if output == "array" else placed.id_type
        matched = matched.withColumn(COLUMNS[output], F.col(COLUMNS[output]).cast(kind))
    return matched if on_error == "raise" else (matched, errors_frame(spark, list(placed.errors)))


def _without_rows(spark: SparkSession, schema: pa.Schema) -> DataFrame:
    """A table with the files' columns, for rules to be read over; types that Spark hasn't are left out."""
    fields = []
    for field in schema:
        try:
            fields.append(StructField(field.name, from_arrow_type(_plain(field.type))))
        except PySparkTypeError:
            fields.append(StructField(field.name, BinaryType()))
    return spark.createDataFrame([], StructType(fields))


def _by_spark(spark: SparkSession, files: list[str], columns: list[str], placed: Placed, output: Output) -> DataFrame:
    """Through Spark's own reader, which can compute what filters have of terms."""
    read = spark.read.parquet(*files)
    matched = match_placed(read.select("*", "_metadata"), placed, output=output)
    path = F.col("_metadata.file_path")
    # Spark's path is an address; the file's name is what the workers' own reading gives, too.
    local = F.when(path.startswith("file:"), F.url_decode(F.regexp_replace(path, "^file:/*", "/"))).otherwise(path)
    kept = [F.col(quoted(name)) for name in columns]
    return matched.select(local.alias("file"), F.col("_metadata.row_index").alias("row"), *kept, F.col(COLUMNS[output]))


def _files(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: list[str] = []
    for path in given:
        found += _inside(os.fspath(path))
    if not found:
        raise CoveyError(f"no Parquet files in {', '.join(str(path) for path in given) or 'an empty list of paths'}")
    return found


def _inside(path: str) -> list[str]:
    if "://" in path:
        system, inner = fs.FileSystem.from_uri(path)
        scheme = path[: path.index("://") + 3]
        if system.get_file_info(inner).type != fs.FileType.Directory:
            return [path]
        inside = system.get_file_info(fs.FileSelector(inner, recursive=True))
        return sorted(scheme + file.path for file in inside if _is_data(file.path))
    path = os.path.abspath(path)  # a worker's own directory may be another
    if os.path.isdir(path):
        inside = [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]
        return sorted(file for file in inside if _is_data(file[len(path) :]))
    if not os.path.exists(path):
        return sorted(file for pattern in glob.glob(path) for file in _inside(pattern))
    return [path]


def _is_data(path: str) -> bool:
    """Spark's rule: names that start with _ or . are not data."""
    parts = [part for part in path.split("/") if part]
    return path.endswith(".parquet") and not any(part.startswith(("_", ".")) for part in parts)


def _opened(file: str, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    try:
        if "://" in file:
            system, inner = fs.FileSystem.from_uri(file)
            return pq.ParquetFile(system.open_input_file(inner), read_dictionary=list(dictionaries), pre_buffer=True)
        return pq.ParquetFile(file, memory_map=True, read_dictionary=list(dictionaries), pre_buffer=False)
    except (OSError, pa.ArrowInvalid) as error:
        raise CoveyError(f"{file}: can't be read as Parquet: {error}") from None


def _runs(file: str, rows: int) -> Iterator[Run]:
    """Neighbouring row groups, until a task has enough rows."""
    metadata = _opened(file).metadata
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


def _passed(schema: pa.Schema, columns: Sequence[str], file: str) -> list[StructField]:
    fields = []
    for name in columns:
        if name in ("file", "row") or schema.get_field_index(name) < 0:
            why = "stands for the file's own" if name in ("file", "row") else f"is not in {file}"
            raise CoveyError(f"column {name!r} {why}; its columns are {', '.join(schema.names)}")
        fields.append(StructField(name, from_arrow_type(schema.field(name).type)))
    return fields


def _needed(schema: pa.Schema, attributes: Iterable[str]) -> list[str]:
    """The columns in which attributes are; an error where one is of a type that filters can't compare."""
    fields = []
    for field in schema:
        if any(name == field.name or name.startswith(field.name + ".") for name in attributes):
            try:
                fields.append(StructField(field.name, from_arrow_type(_plain(field.type))))
            except PySparkTypeError:
                raise CoveyError(
                    f"column {field.name!r} is of Arrow type {field.type}, which filters can't compare, and some "
                    "filter names it; write the file with another type"
                ) from None
    selection(StructType(fields), attributes)
    return [field.name for field in fields]


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _reader(
    runs: list[Run],
    files: tuple[IndexFile, ...],
    needed: list[str],
    columns: list[str],
    result: StructType,
    output: Literal["array", "pairs"],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from match_run(runs[number], files, needed, columns, result, output)

    return read


def match_run(
    run: Run,
    files: tuple[IndexFile, ...],
    needed: list[str],
    columns: list[str],
    result: StructType,
    output: Literal["array", "pairs"],
) -> Iterator[pa.RecordBatch]:
    """In a worker: match one run of row groups."""
    types = [to_arrow_type(field.dataType, timezone="UTC") for field in result.fields]
    parquet = _opened(run.file)
    strings = [field.name for field in parquet.schema_arrow if field.name in needed and pa.types.is_string(field.type)]
    parquet = _opened(run.file, strings)
    # Without columns Arrow can't say how many rows a batch has: the first column stands in.
    read = list(dict.fromkeys([*needed, *columns])) or parquet.schema_arrow.names[:1]
    batches = parquet.iter_batches(_BATCH, row_groups=list(run.groups), columns=read, use_threads=False)
    row = run.first_row
    for events, offsets, ids in match_steps(batches, files):
        numbers = pa.array(np.arange(row, row + events.num_rows, dtype=np.int64))
        row += events.num_rows
        kept = [numbers, *(events.column(name) for name in columns)]
        if output == "pairs":
            take = pa.array(np.repeat(np.arange(events.num_rows), np.diff(offsets)))
            kept = [column.take(take) for column in kept]
        count = len(kept[0])
        file = pa.array([run.file]).take(pa.array(np.zeros(count, dtype=np.int64)))
        found = as_lists(offsets, ids) if output == "array" else ids
        arrays = [_as(column, kind) for column, kind in zip([file, *kept, found], types, strict=True)]
        yield from slices(pa.RecordBatch.from_arrays(arrays, names=result.names))


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One array of just the declared type: Spark takes what it is given without a look."""
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column if column.type.equals(kind) else column.cast(kind)
