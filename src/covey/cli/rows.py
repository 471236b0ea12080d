"""Matches row by row, where lists of ids beside numbers of events aren't what is wanted: with the events' own columns,
one row a match, with the names of files, or counted for each subscription."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import IO, Any, Final

import pyarrow as pa
from pyarrow import csv, parquet

from covey.cli.events import EventBatch
from covey.errors import CoveyError
from covey.events.byte_batches import ByteBatch
from covey.file_names import SUFFIXES
from covey.filters.semantics import attribute_value
from covey.matching import Index, Matches

ALL: Final = "*"
_ROWS: Final = 65_536
"""Rows of a Parquet file that are written at a time."""


def rows_of(
    batch: EventBatch, found: Matches, *, file: str | None, columns: Sequence[str], pairs: bool, everything: bool
) -> Iterator[dict[str, Any]]:
    """The rows of some events' matches."""
    events = _events(batch) if columns else None
    for place, (number, ids) in enumerate(zip(batch.numbers.tolist(), found.to_pylist(), strict=True)):
        if not ids and not (everything and not pairs):
            continue
        row: dict[str, Any] = {} if file is None else {"file": file}
        row["event"] = number
        if events is not None:
            row |= _chosen(events[place], columns)
        if pairs:
            yield from ({**row, "subscription": id} for id in ids)
        else:
            yield {**row, "subscriptions": ids}


def _events(batch: EventBatch) -> list[Mapping[str, Any]]:
    given: Any = batch.events
    if isinstance(given, pa.RecordBatch):
        return list(given.to_pylist(maps_as_pydicts="lossy"))
    return list(given.whole_events()) if isinstance(given, ByteBatch) else list(given)


def _chosen(event: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    if ALL in columns:
        return dict(event)
    return {name: event[name] if name in event else _nested(event, name) for name in columns}


def _nested(event: Mapping[str, Any], name: str) -> Any:
    try:
        return attribute_value(event, name)
    except (TypeError, ValueError):
        return None


def counted(index: Index, fired: Counter[Any]) -> Iterator[dict[str, Any]]:
    """How many events each subscription was met by, most first, those that never fired last."""
    for one in sorted(index.ids(), key=lambda one: -fired[one]):
        yield {"subscription": one, "events": fired[one]}


class RowWriter:
    """Rows to standard output as JSON lines, or to a file by its suffix."""

    def __init__(self, output: str | None) -> None:
        self._output = output
        self._kind = None if output is None else SUFFIXES.get(PurePath(output).suffix)
        if output is not None and self._kind is None:
            raise CoveyError(f"{output}: can't tell how to write it from its name; end it in .jsonl, .csv or .parquet")
        self._file: IO[str] | None = None
        self._writer: Any = None
        self._held: list[dict[str, Any]] = []

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows; all have the same columns."""
        if self._kind in (None, "jsonl"):
            out = self._text()
            for row in rows:
                out.write(json.dumps(row, ensure_ascii=False, default=_plain) + "\n")
            out.flush()
            return
        for row in rows:
            self._held.append(dict(row))
            if len(self._held) >= _ROWS:
                self._put()

    def _text(self) -> IO[str]:
        if self._file is None:
            self._file = sys.stdout if self._output is None else open(self._output, "w", encoding="utf-8")  # noqa: SIM115
        return self._file

    def _put(self) -> None:
        assert self._output is not None
        table = pa.Table.from_pylist(self._held)
        self._held.clear()
        if self._writer is None:
            make = parquet.ParquetWriter if self._kind == "parquet" else csv.CSVWriter
            self._writer = make(self._output, table.schema)
        self._writer.write_table(table.cast(self._writer.schema) if self._kind == "parquet" else table)

    def close(self) -> None:
        """Finish the file."""
        if self._held:
            self._put()
        if self._writer is not None:
            self._writer.close()
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) or hasattr(value, "isoformat") else str(value)
