"""Files of rows, by name: which format, compressed or not, standard input, directories, patterns and addresses.

A file is never read whole: the readers of events and subscriptions take it by lines or batches. Only Parquet on
standard input is first copied to a temporary file, since its table of contents stands at the end.

A directory is the files in it, in the order of their names, without those that begin with a dot or an underscore, as
Spark reads it. Directories below it that are called `name=value` give each file in them a column, of the type that
Spark tells by the values: integers, doubles, dates, or else strings. An address such as `s3://…` is what Arrow reads.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from glob import glob, has_magic
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa

from covey.errors import CoveyError, EventError
from covey.file_names import EVENT_FORMATS, FORMATS, SUFFIXES, EventFormat

if TYPE_CHECKING:
    from covey.events.json_batches import JsonLines

_ABOVE: Final = 2
"""What a row's number, from 0 below the header, is short of its line's, from 1."""
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Source:
    """A file of rows as the user named it."""

    path: str
    format: EventFormat
    compressed: bool = False
    partitions: Mapping[str, pa.Scalar] = field(default_factory=dict)
    """Columns that the directories say it has."""

    @property
    def name(self) -> str:
        """What errors call it."""
        return "standard input" if self.path == "-" else self.path

    @property
    def size(self) -> int | None:
        """Bytes, where that is known."""
        if is_address(self.path):
            return None
        return os.path.getsize(self.path) if self.path != "-" and os.path.isfile(self.path) else None

    @contextmanager
    def open(self) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """The rows' bytes, and the file whose position says how far reading has come."""
        if self.path == "-":
            yield from _standard_input(self.format)
            return
        with _opened(self.path) as raw:
            if not self.compressed:
                yield raw, raw
                return
            with gzip.GzipFile(fileobj=raw) as unpacked, io.BufferedReader(unpacked) as file:
                try:
                    yield file, raw
                except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                    raise CoveyError(f"{self.name}: not a whole gzip file: {error}") from None


def _standard_input(kind: EventFormat) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    file = sys.stdin.buffer
    if kind != "parquet":
        yield file, file
        return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield copy, copy


def source(path: str, forced: EventFormat | None = None, option: str = "--format", *, xml: bool = False) -> Source:
    """The file of that name; its suffix says the format unless it is forced. Standard input is JSON lines. With `xml`
    a name that ends in .xml is a format too.

    A file that can't be read is an error here, before any work is done; `option` is what forces a format.
    """
    if path == "-":
        return Source(path, forced or "jsonl")
    suffixes = PurePath(path).suffixes
    compressed = bool(suffixes) and suffixes[-1] == ".gz"
    if compressed:
        suffixes.pop()
    suffix = suffixes[-1].lower() if suffixes else ""
    told: EventFormat | None = "xml" if xml and suffix == ".xml" else SUFFIXES.get(suffix)
    kind = forced or told
    if kind is None:
        listed = ", ".join(EVENT_FORMATS if xml else FORMATS)
        raise CoveyError(f"{path}: can't tell its format from its name; say which with {option} ({listed})")
    if compressed and kind == "parquet":
        raise CoveyError(f"{path}: Parquet is compressed within; unpack the file first")
    with _opened(path):
        return Source(path, kind, compressed)


def sources(
    paths: Sequence[str], forced: EventFormat | None = None, option: str = "--format", *, xml: bool = False
) -> list[Source]:
    """The files that some names stand for: files, directories, patterns with `*`, and addresses, each in turn."""
    found: list[Source] = []
    for path in paths:
        files = files_of(path)
        found += (
            partitioned([source(file, forced, option, xml=xml) for file in files], path)
            if files != [path]
            else [source(path, forced, option, xml=xml)]
        )
    return found


def files_of(path: str) -> list[str]:
    """The files that one name stands for."""
    if path == "-":
        return [path]
    if is_address(path):
        return _addresses(path)
    if os.path.isdir(path):
        below = sorted(
            os.path.relpath(os.path.join(folder, name), path) for folder, _, names in os.walk(path) for name in names
        )
        files = [os.path.join(path, name) for name in below if not _is_hidden(name)]
        if not files:
            raise CoveyError(f"{path}: a directory without files to read")
        return files
    if has_magic(path) and not os.path.exists(path):
        files = [file for one in sorted(glob(path, recursive=True)) for file in files_of(one)]
        if not files:
            raise CoveyError(f"{path}: no file has such a name")
        return files
    return [path]


def _is_hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) for part in PurePath(path).parts)


def partitioned(found: Sequence[Source], root: str) -> list[Source]:
    """The files with the columns that directories below the root say."""
    texts = [_partitions(one.path, root) for one in found]
    if not any(texts):
        return list(found)
    lines = next((one for one, said in zip(found, texts, strict=True) if said and one.format == "jsonl"), None)
    if lines is not None:
        raise CoveyError(f"{lines.path}: JSON lines get no columns of directories; rename those with a =")
    kinds = {name: _kind([said.get(name) for said in texts]) for said in texts for name in said}
    return [
        replace(one, partitions={name: _scalar(said.get(name), kind) for name, kind in kinds.items()})
        for one, said in zip(found, texts, strict=True)
    ]


def _partitions(path: str, root: str) -> dict[str, str | None]:
    """What directories say, by name; None where they say that there is no value."""
    start = re.split(r"[*?[]", root)[0]
    below = path.removeprefix(start if start == root else start.rpartition("/")[0])
    pairs = [part.partition("=") for part in PurePath(below).parts[:-1] if "=" in part]
    return {unquote(name): None if value == _NO_VALUE else unquote(value) for name, _, value in pairs}


def _kind(values: Sequence[str | None]) -> pa.DataType:
    """The type of a column by all of its texts, as Spark infers it."""
    given = [value for value in values if value is not None]
    for kind, read in ((pa.int64(), _integer), (pa.float64(), float), (pa.date32(), date.fromisoformat)):
        try:
            for value in given:
                read(value)
        except ValueError:
            continue
        return kind
    return pa.string()


def _integer(text: str) -> int:
    if not text.lstrip("+-").isascii() or not text.lstrip("+-").isdigit():
        raise ValueError
    return int(text)


def _scalar(value: str | None, kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(None, kind) if value is None else pa.scalar(value, pa.string()).cast(kind)


def with_partitions(batch: pa.RecordBatch, partitions: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
    """A batch with the columns that its file's directories say, unless it has them itself."""
    for name, value in partitions.items():
        if name not in batch.schema.names:
            batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
    return batch


def is_address(path: str) -> bool:
    """Whether a name is an address of a file system that Arrow knows."""
    return "://" in path


def _opened(path: str) -> Any:
    if not is_address(path):
        return open(path, "rb")
    from pyarrow import fs

    try:
        system, inner = fs.FileSystem.from_uri(path)
        return system.open_input_file(inner)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise CoveyError(f"{path}: {' '.join(str(error).split())}") from None


def _addresses(path: str) -> list[str]:
    from pyarrow import fs

    try:
        system, inner = fs.FileSystem.from_uri(path)
        if system.get_file_info(inner).type != fs.FileType.Directory:
            return [path]
        infos = system.get_file_info(fs.FileSelector(inner, recursive=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise CoveyError(f"{path}: {' '.join(str(error).split())}") from None
    start = path.removesuffix("/")
    names = sorted(info.path for info in infos if info.type == fs.FileType.File)
    below = [name[len(inner.removesuffix("/")) :] for name in names]
    return [start + one for one in below if not _is_hidden(one)]


def read_rows(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[Mapping[str, Any] | CoveyError]:
    """The rows of a file as mappings, and what is wrong in the place of those that can't be read. Of CSV the `columns`
    are text whatever they look like; a table without one of them is an error."""
    for one in sources([os.fspath(path)]):
        with one.open() as (file, _):
            yield from _line_rows(file, one) if one.format == "jsonl" else _table_rows(file, one, columns)


def _line_rows(file: IO[bytes], one: Source) -> Iterator[Mapping[str, Any] | CoveyError]:
    from covey.events.json_lines import BadLine, read_json_lines

    bad: list[BadLine] = []
    for row in read_json_lines(file, name=one.name, bad=bad):
        yield from (EventError(line.message) for line in bad)
        bad.clear()
        yield row
    yield from (EventError(line.message) for line in bad)


def _table_rows(file: IO[bytes], one: Source, columns: Sequence[str]) -> Iterator[Mapping[str, Any] | CoveyError]:
    from covey.events import csv_files

    bad = BadRows(one)
    if one.format == "parquet":
        batches: Iterator[pa.RecordBatch] = parquet_file(file, one.name).iter_batches()
    else:
        batches = csv_files.batches(file, one.name, dict.fromkeys(columns, pa.string()), bad, "is it CSV?")
    for batch in batches:
        table = with_partitions(batch, one.partitions)
        lacking = [name for name in columns if name not in table.schema.names]
        if lacking:
            hint = "; are these events?" if len(lacking) == len(columns) else ""
            raise CoveyError(f"{one.name}: no column {lacking[0]!r}; it has {', '.join(table.schema.names)}{hint}")
        yield from table.to_pylist()
    yield from bad.errors


def read_batch(path: str | os.PathLike[str]) -> pa.Table | JsonLines:
    """All events of a file, a directory, a pattern or an address, in memory."""
    from covey.events import csv_files

    found = sources([os.fspath(path)])
    tables: list[pa.Table] = []
    lines: list[bytes] = []
    for one in found:
        with one.open() as (file, _):
            if one.format == "jsonl":
                lines.append(file.read())
                continue
            bad = BadRows(one)
            if one.format == "parquet":
                parts: Iterable[pa.RecordBatch] = parquet_file(file, one.name).iter_batches()
            else:
                parts = csv_files.batches(file, one.name, {}, bad, "give a table with the right types")
            tables += [pa.table(with_partitions(part, one.partitions)) for part in parts]
            bad.check()
    if lines and tables:
        raise CoveyError(f"{path}: JSON lines beside files of other kinds; match them one after the other")
    if lines:
        from covey.events.json_batches import JsonLines

        return JsonLines(b"\n".join(lines))
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def table_columns(found: Sequence[Source]) -> list[pa.Schema] | None:
    """The columns of files that are tables, each file's; None where one has no columns, as JSON lines and XML, or can't
    be asked before it is read, as CSV on standard input."""
    from covey.events import csv_files

    tables: list[pa.Schema] = []
    for one in found:
        if one.format not in ("csv", "parquet") or one.path == "-":
            return None
        with one.open() as (file, _):
            told = parquet_file(file, one.name).schema_arrow if one.format == "parquet" else csv_files.columns(file)
        if told is None:
            return None
        for name, value in one.partitions.items():
            if name not in told.names:
                told = told.append(pa.field(name, value.type))
        tables.append(told)
    return tables


class BadRows:
    """Rows of CSV with a wrong number of fields. Arrow calls this while it parses, where nothing may be raised."""

    def __init__(self, one: Source) -> None:
        self._name = one.name
        self.errors: list[EventError] = []

    def __call__(self, row: int, problem: str) -> None:
        """Note a row, counted from 0 below the header."""
        self.errors.append(EventError(f"{self._name} line {row + _ABOVE}: {problem}"))

    def check(self) -> None:
        """Raise the first."""
        if self.errors:
            raise self.errors[0]


def parquet_file(file: IO[bytes], name: str) -> Any:
    """The Parquet file, or an error that names it."""
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(file)
    except pa.ArrowInvalid as error:
        raise CoveyError(f"{name}: not Parquet: {' '.join(str(error).split())}") from None
