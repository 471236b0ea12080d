"""Files of rows, by name: which format, compressed or not, or standard input.

A file is never read whole: the readers of events and subscriptions take it by lines or batches. Only Parquet on
standard input is first copied to a temporary file, since its table of contents stands at the end.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, Final, Literal, TypeAlias, get_args

from covey.errors import CoveyError

Format: TypeAlias = Literal["jsonl", "csv", "parquet"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

SUFFIXES: Final[dict[str, Format]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
INDEX_SUFFIX: Final = ".covey"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of rows as the user named it."""

    path: str
    format: Format
    compressed: bool = False

    @property
    def name(self) -> str:
        """What errors call it."""
        return "standard input" if self.path == "-" else self.path

    @property
    def size(self) -> int | None:
        """Bytes, where that is known."""
        return os.path.getsize(self.path) if self.path != "-" and os.path.isfile(self.path) else None

    @contextmanager
    def open(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """The rows' bytes, and the file whose position says how far reading has come."""
        if self.path == "-":
            yield from _standard_input(self.format)
            return
        with open(self.path, "rb") as raw:
            if not self.compressed:
                yield raw, raw
                return
            with gzip.GzipFile(fileobj=raw) as unpacked, io.BufferedReader(unpacked) as file:
                try:
                    yield file, raw
                except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                    raise CoveyError(f"{self.name}: not a whole gzip file: {error}") from None


def _standard_input(kind: Format) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    file = sys.stdin.buffer
    if kind != "parquet":
        yield file, file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield copy, copy


def source(path: str, forced: Format | None = None, option: str = "--format") -> Source:
    """The file of that name; its suffix says the format unless it is forced. Standard input is JSON lines.

    A file that can't be read is an error here, before any work is done; `option` is what forces a format.
    """
    if path == "-":
        return Source(path, forced or "jsonl")
    suffixes = PurePath(path).suffixes
    compressed = bool(suffixes) and suffixes[-1] == ".gz"
    if compressed:
        suffixes.pop()
    told = SUFFIXES.get(suffixes[-1].lower()) if suffixes else None
    kind = forced or told
    if kind is None:
        raise CoveyError(f"{path}: can't tell its format from its name; say which with {option} ({', '.join(FORMATS)})")
    if compressed and kind == "parquet":
        raise CoveyError(f"{path}: Parquet is compressed within; unpack the file first")
    with open(path, "rb"):
        return Source(path, kind, compressed)


def is_index(path: str) -> bool:
    """Whether a name is that of a saved index."""
    return PurePath(path).suffix == INDEX_SUFFIX
