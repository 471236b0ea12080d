"""Events as a column of JSON texts, as Kafka's values are: read by covey's kernel in Spark's workers, not by the JVM.

Rules then mean what they mean in `covey.Index` on JSON events: attributes are those of the texts, of whatever types
these give them, and no other column of the DataFrame is looked at. A null has no event, and null instead of a list of
matches. A text that isn't an event is an error that shows it, or null too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError, EventError
from covey.events import BadLine
from covey.events.json_batches import JsonLines
from covey.events.term_columns import attributes_of
from covey.spark.workers import IndexFile, as_lists, match_steps, opened, slices

BadJson: TypeAlias = Literal["raise", "null"]
_TYPES = ("string", "binary")


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """Where the events are, and what becomes of texts that are none."""

    column: str
    bad_json: BadJson = "raise"


def check_json(events: DataFrame, column: str, bad_json: str) -> None:
    """Refuse what isn't a column of texts."""
    if bad_json not in ("raise", "null"):
        raise CoveyError(f"bad_json {bad_json!r} is not known; use raise or null")
    try:
        kind = events.select(F.col(column)).schema.fields[0].dataType.simpleString()
    except AnalysisException:
        raise CoveyError(f"the events have no column {column!r} to read JSON from") from None
    if kind not in _TYPES:
        raise CoveyError(f"json={column!r} is a column of type {kind}; JSON is read from string or binary")


def match_json_lists(
    batches: Iterable[pa.RecordBatch], files: Sequence[IndexFile], bad_json: BadJson
) -> Iterator[pa.Array]:
    """For each text of the batches' one column the list of its subscriptions' ids, or null where there is no event."""
    for _, ends, ids, missing in match_json_steps(batches, files, bad_json, 0):
        yield from slices(as_lists(ends, ids, missing))


def match_json_steps(
    batches: Iterable[pa.RecordBatch], files: Sequence[IndexFile], bad_json: BadJson, column_number: int
) -> Iterator[tuple[pa.Table, NDArray[np.int64], pa.Array, NDArray[np.bool_]]]:
    """For each step its rows, of which one column has the texts, where each row's ids start and end, the ids, and which
    rows have no event."""
    rows = np.empty(0, np.int64)

    def read(texts: pa.Table) -> JsonLines:
        nonlocal rows
        bad: list[BadLine] = []
        column = texts.column(column_number).combine_chunks()
        lines = JsonLines.of_column(column, bad=bad)
        rows = lines.scan(attributes_of(opened(files[0]).tested)) - 1
        if bad_json == "raise" and len(rows) < len(column) - column.null_count:
            _complain(column, bad, rows)
        return lines

    for texts, offsets, ids in match_steps(batches, files, read):
        counts = np.zeros(texts.num_rows, np.int64)
        counts[rows] = np.diff(offsets)
        missing = np.ones(texts.num_rows, np.bool_)
        missing[rows] = False
        yield texts, np.concatenate(([0], np.cumsum(counts))), ids, missing


def _complain(column: pa.Array, bad: list[BadLine], rows: NDArray[np.int64]) -> None:
    if bad:
        problem, text = bad[0].message.partition(": ")[2], bad[0].text
    else:
        without = np.setdiff1d(np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)), rows)
        problem, text = "blank", str(column[int(without[0])].as_py())
    raise EventError(f'a JSON text is no event: {problem}: {text!r}; bad_json="null" gives null for such texts')
