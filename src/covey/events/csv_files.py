"""CSV by blocks, as Arrow record batches. The types of columns are told by the first block; an empty field is missing.

Rows with a wrong number of fields are handed to `bad` with their number, counted from 0 below the header; Arrow leaves
them out of the batches, and blank lines too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final

import pyarrow as pa
from pyarrow import csv

from covey.errors import EventError

_BLOCK: Final = 8 << 20
"""Bytes that decide on the columns' types, and the most that is held at a time."""

_HEADER_AND_ONE: Final = 2


def batches(
    file: IO[bytes], name: str, types: Mapping[str, pa.DataType], bad: Callable[[int, str], None], remedy: str
) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file. `remedy` ends the error about a value that isn't of its column's type."""

    def skip(row: Any) -> str:
        bad(row.number - _HEADER_AND_ONE, f"{row.actual_columns} fields where the header has {row.expected_columns}")
        return "skip"

    try:
        yield from _reader(file, types, skip)
    except pa.ArrowInvalid as error:
        problem = str(error).splitlines()[0]
        if "invalid UTF8" in problem:
            remedy = "save it as UTF-8"
        elif "Empty CSV" in problem:
            problem, remedy = "an empty file", "CSV has at least a line with the columns' names"
        raise EventError(f"{name}: {problem}; {remedy}") from None


def columns(file: IO[bytes]) -> pa.Schema | None:
    """The columns and the types that the first block tells, none of a column that isn't text in UTF-8; None where it
    can't be read. `batches` will say both."""
    try:
        found: pa.Schema = _reader(file, {}, lambda _: "skip").schema
    except pa.ArrowInvalid:
        return None
    return pa.schema([column.with_type(pa.null()) if pa.types.is_binary(column.type) else column for column in found])


def _reader(file: IO[bytes], types: Mapping[str, pa.DataType], skip: Callable[[Any], str]) -> csv.CSVStreamingReader:
    # Arrow numbers rows only where it parses on one thread.
    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(block_size=_BLOCK, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        convert_options=csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True),
    )
