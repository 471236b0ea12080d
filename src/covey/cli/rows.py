"""Matches row by row, where lists of ids beside numbers of events aren't what is wanted: with the events' own columns,
one row a match, with the names of files, or counted for each subscription."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import IO, Any, Final, cast

import pyarrow as pa
from pyarrow import csv, parquet

from covey.cli.events import EventBatch
from covey.errors import CoveyError
from covey.events.byte_batches import ByteBatch
from covey.file_names import SUFFIXES, Format
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


def row_format(output: str) -> Format:
    """The format that a file's name asks for."""
    told = SUFFIXES.get(PurePath(output.removesuffix(".gz")).suffix)
    if told is None or (told != "jsonl" and output.endswith(".gz")):
        raise CoveyError(
            f"{output}: can't tell how to write it from its name; end it in .jsonl, .jsonl.gz, .csv or .parquet"
        )
    return told


class RowWriter:
    """Rows to standard output as JSON lines, or to a file by its suffix."""

    def __init__(self, output: str | None, empty: pa.Schema) -> None:
        self._output = output
        self._empty = empty
        """What a table without rows has for columns."""
        self._kind = None if output is None else row_format(output)
        self._file: IO[str] | None = None
        self._writer: Any = None
        self._schema: pa.Schema | None = None
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
            self._file = sys.stdout if self._output is None else _opened(self._output)
        return self._file

    def _put(self) -> None:
        assert self._output is not None
        rows = self._held if self._kind == "parquet" else list(map(_flat, self._held))
        table = pa.Table.from_pylist(rows) if rows else self._without_rows()
        self._held.clear()
        if self._writer is None:
            make = parquet.ParquetWriter if self._kind == "parquet" else csv.CSVWriter
            self._writer, self._schema = make(self._output, table.schema), table.schema
        try:
            self._writer.write_table(table.cast(self._schema))
        except (pa.ArrowInvalid, ValueError) as error:
            reason = " ".join(str(error).split())
            raise CoveyError(
                f"{self._output}: rows have other types than those before: {reason}; write .jsonl"
            ) from None

    def _without_rows(self) -> pa.Table:
        fields = [pa.field(one.name, pa.string()) if self._kind == "csv" else one for one in self._empty]
        return pa.schema(fields).empty_table()

    def close(self) -> None:
        """Finish the file."""
        if self._held or (self._writer is None and self._kind in ("csv", "parquet")):
            self._put()
        elif self._kind == "jsonl":
            self._text()
        if self._writer is not None:
            self._writer.close()
        if self._file is not None and self._file is not sys.stdout:
            self._file.close()


def _opened(path: str) -> IO[str]:
    if path.endswith(".gz"):
        return cast(IO[str], gzip.open(path, "wt", encoding="utf-8", compresslevel=6))
    return open(path, "w", encoding="utf-8")


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as CSV can have it: lists and records are their JSON."""
    return {
        name: json.dumps(value, ensure_ascii=False, default=_plain) if isinstance(value, (list, dict)) else value
        for name, value in row.items()
    }


def empty_schema(columns: Sequence[str], *, file: bool, form: str, whole: bool) -> pa.Schema:
    """The columns of a table without rows; ids are integers where `whole`."""
    id = pa.int64() if whole else pa.string()
    if form == "counts":
        return pa.schema([("subscription", id), ("events", pa.int64())])
    found = [("subscription", id) if form == "pairs" else ("subscriptions", pa.list_(id))]
    shown = [(name, pa.null()) for name in columns if name != ALL]
    return pa.schema([*([("file", pa.string())] if file else []), ("event", pa.int64()), *shown, *found])


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) or hasattr(value, "isoformat") else str(value)
