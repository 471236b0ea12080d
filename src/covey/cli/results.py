"""Where matches go: JSON lines, a Parquet file, a table for people, or only the totals.

Results stream: nothing is kept longer than its batch. JSON is put together in Arrow, since a Python loop over some
million ids would cost more than matching them did.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from pathlib import PurePath
from typing import IO, Final, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from covey.errors import CoveyError
from covey.file_names import SUFFIXES, Format

_MOST_IDS: Final = 2_000_000
"""Ids that are turned into text at a time."""

_NEEDS_ESCAPE: Final = r'["\\\x00-\x1f]'


class Results(Protocol):
    """A place for matches."""

    def write(self, numbers: NDArray[np.int64], lists: pa.Array) -> None:
        """Take the events of these numbers, each with its list of ids."""

    def close(self) -> None:
        """No more follow."""


class JsonLines:
    """`{"event": n, "subscriptions": [...]}`, one a line."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._quoted: tuple[pa.Array, pa.Array] | None = None

    def write(self, numbers: NDArray[np.int64], lists: pa.Array) -> None:
        """Write the lines, and see to it that a reader gets them now."""
        offsets = lists.offsets.to_numpy()
        first = 0
        while first < len(numbers):
            last = int(np.searchsorted(offsets, offsets[first] + _MOST_IDS, side="right")) - 1
            last = min(max(last, first + 1), len(numbers))
            self._write_part(numbers[first:last], lists.slice(first, last - first))
            first = last
        self._file.flush()

    def _write_part(self, numbers: NDArray[np.int64], lists: pa.Array) -> None:
        ids = lists.flatten()
        offsets = lists.offsets.to_numpy()
        quoted = self._quote(ids.dictionary).take(ids.indices)
        joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets - offsets[0], quoted), _text(", "))
        lines = pc.binary_join_element_wise(
            _text('{"event": '), pa.array(numbers).cast(pa.large_string()), _text(', "subscriptions": ['), joined,
            _text("]}\n"), _text(""),
        )  # fmt: skip
        self._file.write(memoryview(lines.buffers()[2]))

    def _quote(self, ids: pa.Array) -> pa.Array:
        """Ids as JSON strings; as a rule they are those of the batch before."""
        if self._quoted is not None and _same(self._quoted[0], ids):
            return self._quoted[1]
        known = ids.cast(pa.large_string())
        if pa.types.is_integer(ids.type):
            quoted = known
        elif pc.any(pc.match_substring_regex(known, _NEEDS_ESCAPE)).as_py():
            quoted = pa.array([json.dumps(one, ensure_ascii=False) for one in known.to_pylist()], pa.large_string())
        else:
            quoted = pc.binary_join_element_wise(_text('"'), known, _text('"'), _text(""))
        self._quoted = ids, quoted
        return quoted

    def close(self) -> None:
        """The file is closed by whoever opened it."""
        self._file.flush()


def _same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays are the same memory: comparing their strings would cost as much as quoting them."""
    places = [[buffer and buffer.address for buffer in array.buffers()] for array in (one, other)]
    return len(one) == len(other) and one.offset == other.offset and places[0] == places[1]


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


class JsonLinesFile(JsonLines):
    """JSON lines in a file of their own."""

    def __init__(self, path: str) -> None:
        opened = gzip.open(path, "wb", compresslevel=6) if path.endswith(".gz") else open(path, "wb")  # noqa: SIM115
        super().__init__(cast(IO[bytes], opened))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class ParquetFile:
    """Columns `event` and `subscriptions`; a file that is closed early is whole too."""

    _SCHEMA: Final = pa.schema([("event", pa.int64()), ("subscriptions", pa.list_(pa.string()))])

    def __init__(self, path: str) -> None:
        self._path = path
        self._writer: parquet.ParquetWriter | None = None  # until it is known what ids are

    def write(self, numbers: NDArray[np.int64], lists: pa.Array) -> None:
        """Add rows."""
        if len(numbers):
            whole = pa.types.is_integer(lists.type.value_type.value_type)
            ids = lists.cast(pa.list_(pa.int64() if whole else pa.string()))
            table = pa.table({"event": numbers, "subscriptions": ids})
            if self._writer is None:
                self._writer = parquet.ParquetWriter(self._path, table.schema)
            self._writer.write_table(table)

    def close(self) -> None:
        """Finish the file."""
        (self._writer or parquet.ParquetWriter(self._path, self._SCHEMA)).close()


class ForPeople:
    """A line an event, cut to the width of the terminal."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._width = shutil.get_terminal_size().columns
        self._started = False

    def write(self, numbers: NDArray[np.int64], lists: pa.Array) -> None:
        """Print the events."""
        if len(numbers) and not self._started:
            self._file.write(f"{'event':>10}  {'matches':>7}  subscriptions\n")
            self._started = True
        offsets = lists.offsets.to_numpy()
        ids = lists.flatten()
        for place, number in enumerate(numbers.tolist()):
            start, end = int(offsets[place] - offsets[0]), int(offsets[place + 1] - offsets[0])
            # No terminal shows more ids than it has columns.
            text = ", ".join(map(str, ids.slice(start, min(end - start, self._width)).to_pylist()))
            line = f"{number:>10}  {end - start:>7}  {text}"
            self._file.write((line if len(line) <= self._width else line[: self._width - 1] + "…") + "\n")
        self._file.flush()

    def close(self) -> None:
        """Nothing is left to do."""


class Nothing:
    """For `--count`: only the totals are wanted."""

    def write(self, numbers: NDArray[np.int64], lists: pa.Array) -> None:
        """Forget them."""

    def close(self) -> None:
        """Nothing is left to do."""


def results(output: str | None, *, count: bool) -> Results:
    """Where the user wants the matches: a file by its suffix, else standard output as fits who reads it."""
    if count:
        return Nothing()
    if output is None:
        return ForPeople(sys.stdout) if sys.stdout.isatty() else JsonLines(sys.stdout.buffer)
    return ParquetFile(output) if output_format(output) == "parquet" else JsonLinesFile(output)


def output_format(output: str) -> Format:
    """The format that a file's name asks for."""
    told = SUFFIXES.get(PurePath(output.removesuffix(".gz")).suffix)
    if told == "jsonl" or (told == "parquet" and not output.endswith(".gz")):
        return told
    raise CoveyError(f"{output}: can't tell how to write it from its name; end it in .jsonl, .jsonl.gz or .parquet")
