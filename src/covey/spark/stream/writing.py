"""A micro-batch matched and written in one go, by the workers.

The matches of a batch are mostly ids, tens of them an event. Taken back to the JVM, made rows and then written by it as
Parquet, they cost it several times what matching costs the workers. So a worker is sent the events whole, matches them,
and writes the rows of the result itself, with Arrow, under a name that no other attempt has; back come the names of
files and how much is in them. Files that the job doesn't name are those of attempts that failed.

Columns of types that Arrow would write otherwise than Spark (intervals, variants, collations) leave this to Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from covey.spark.batch import Output, crossing_columns
from covey.spark.json_texts import JsonColumn, match_json_steps
from covey.spark.types import quoted
from covey.spark.worker_files import Placed
from covey.spark.workers import as_lists, match_steps

_WRITTEN = "name string, events bigint, matches bigint"
_GROUP = 131_072
"""Rows of a row group, below which steps are gathered: small groups cost readers more than they save."""
_PLAIN = (
    BinaryType, BooleanType, DateType, DecimalType, NumericType, TimestampNTZType, TimestampType,
)  # fmt: skip


class Place(Protocol):
    """A directory in which workers write, wherever it is."""

    def open_output(self, name: str) -> Any:
        """A new file there."""


@dataclass(frozen=True, slots=True)
class Written:
    """A batch in files, not committed yet."""

    files: list[str]
    events: int
    matches: int


Steps = Iterator[tuple[pa.Table, NDArray[np.int64], pa.Array, NDArray[np.bool_] | None]]
"""Rows, where each row's ids start and end, the ids, and which rows have no event, if some may."""
Stepping = Callable[[Iterator[pa.RecordBatch]], Steps]
Job = Callable[[Any], Written]
"""Writes a batch into a place."""


def is_carried(kind: DataType) -> bool:
    """Whether Arrow writes a column of this type as Spark does."""
    match kind:
        case ArrayType():
            return is_carried(kind.elementType)
        case MapType():
            return is_carried(kind.keyType) and is_carried(kind.valueType)
        case StructType():
            names = [field.name.lower() for field in kind.fields]
            return (
                bool(names) and len(set(names)) == len(names) and all(is_carried(one.dataType) for one in kind.fields)
            )
        case StringType():
            return kind == StringType() and type(kind) is StringType
    return isinstance(kind, _PLAIN)


def write_matches(
    events: DataFrame,
    placed: Placed,
    texts: JsonColumn | None,
    result: StructType,
    output: Output,
    version: int,
    place: Place,
) -> Written:
    """Match events, or the `texts` in one of their columns, and write the result, whose columns are `result`: the
    events' own, matches and version."""
    own = {quoted(name): number for number, name in enumerate(events.columns)}
    # Under numbers on the way, since mapInArrow takes no column with a dot in its name.
    sent = [F.col(name).alias(str(number)) for name, number in own.items()]
    attributes: list[tuple[str, int]] = []
    for name, text, column in [] if texts is not None else crossing_columns(events, placed):
        number = own.get(text)
        if number is None:
            number = len(sent)
            sent.append(column.alias(str(number)))
        attributes.append((name, number))
    step = _steps(placed, attributes) if texts is None else _json_steps(placed, texts, own[quoted(texts.column)])
    function = _writing(place, step, result, output, version)
    rows = events.select(*sent).mapInArrow(function, _WRITTEN).collect()
    files = sorted(row.name for row in rows)
    return Written(files, sum(row.events for row in rows), sum(row.matches for row in rows))


def _steps(placed: Placed, attributes: list[tuple[str, int]]) -> Stepping:
    """Match rows whose columns of these numbers are attributes."""
    files = placed.files

    def read(rows: pa.Table) -> pa.Table:
        if not attributes:
            return pa.table({"": pa.nulls(rows.num_rows, pa.int8())})
        return pa.Table.from_arrays([rows.column(number) for _, number in attributes], names=[n for n, _ in attributes])

    def steps(batches: Iterator[pa.RecordBatch]) -> Steps:
        for rows, offsets, ids in match_steps(batches, files, read):
            yield rows, offsets, ids, None

    return steps


def _json_steps(placed: Placed, texts: JsonColumn, number: int) -> Stepping:
    """Match the texts in one column."""
    files = placed.files

    def steps(batches: Iterator[pa.RecordBatch]) -> Steps:
        yield from match_json_steps(batches, files, texts.bad_json, number)

    return steps


def _writing(
    place: Place, step: Stepping, result: StructType, output: Output, version: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    count = len(result.fields) - 2
    kind = result.fields[-2].dataType

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        out = _File(place, result)
        matched = 0
        for rows, offsets, ids, missing in step(one for one in batches if one.num_rows):
            counts = np.diff(offsets)
            columns: list[pa.Array | pa.ChunkedArray] = [rows.column(number) for number in range(count)]
            if output == "pairs":
                take = pa.array(np.repeat(np.arange(rows.num_rows), counts))
                columns = [column.take(take) for column in columns]
                columns.append(_typed(ids, kind))
            elif output == "counts":
                columns.append(pa.array(counts, pa.int32(), mask=missing))
            else:
                assert isinstance(kind, ArrayType)
                columns.append(as_lists(offsets, _typed(ids, kind.elementType), missing))
            columns.append(pa.repeat(pa.scalar(version, pa.int64()), len(columns[-1])))
            out.events += rows.num_rows
            matched += len(ids)
            out.add(columns)
        name = out.close()
        if name is not None:
            yield pa.record_batch({"name": [name], "events": [out.events], "matches": [matched]})

    return write


class _File:
    """One file of Parquet, made when there is something to write."""

    def __init__(self, place: Place, result: StructType) -> None:
        self._place, self._result = place, result
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.Table] = []
        self._rows = 0
        self.events = 0

    def add(self, columns: list[pa.Array | pa.ChunkedArray]) -> None:
        if self._writer is None:
            kinds = [column.type for column in columns]
            schema = pa.schema([pa.field(one.name, kind) for one, kind in zip(self._result.fields, kinds, strict=True)])
            self._name = f"part-{uuid.uuid4().hex}.parquet"
            self._output = self._place.open_output(self._name)
            self._writer = pq.ParquetWriter(self._output, schema, compression="zstd")
        table = pa.Table.from_arrays(columns, schema=self._writer.schema)
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._rows and self._writer is not None:
            self._writer.write_table(pa.concat_tables(self._held))
        self._held, self._rows = [], 0

    def close(self) -> str | None:
        if self._writer is None:
            return None
        self._flush()
        self._writer.close()
        self._output.close()
        return self._name


def _typed(ids: pa.Array, kind: DataType) -> pa.Array:
    wanted = to_arrow_type(kind, timezone="UTC")
    return ids if ids.type.equals(wanted) else ids.cast(wanted)
