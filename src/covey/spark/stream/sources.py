"""Where subscriptions change: a directory of change files, or a table that is read again.

Both answer one question: "the log stands at version V; what has changed since?" The answer is a newest version and the
changes that lead to it, and it holds whole versions only, since a version that is half there would match differently
before and after a crash. For a directory this rests on one rule: **a file (or a directory with Spark's `_SUCCESS`)
holds all rows of the versions that it names.** Files arrive by a rename, as every careful writer does; names that start
with a dot or an underscore are looked past. What shows that it is still being written (a last line cut off, Parquet
without its footer) waits for the next micro-batch. Once version V has been used it is closed: a row that comes later
with a version of V or less is bad, because no batch that was matched under V has seen it.

Reading costs one listing of the directory a micro-batch, and each file is read once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError, FilterSyntaxError
from covey.filters import Compare
from covey.filters.terms import SPARK_ONLY
from covey.matching import Index
from covey.spark.build import type_of_ids
from covey.spark.stream.ids import STRING, id_text, type_in_arrow, type_in_json
from covey.spark.types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OPERATIONS = ("add", "replace", "remove")
_JSON = (".json", ".jsonl", ".ndjson")


class RowNames(NamedTuple):
    """What rows call their ids and filters."""

    id: str = "id"
    filter: str = "filter"

    @property
    def of_changes(self) -> tuple[str, str, str, str]:
        """All that a row of a change file has."""
        return "version", "op", self.id, self.filter


class Change(NamedTuple):
    """One row: what to do with one subscription, from which version on, and where that was written."""

    version: int
    op: str
    id: str
    filter: str
    source: str
    row: int


@dataclass(frozen=True, slots=True)
class BadChange:
    """A row that was not applied, and why, in one line."""

    source: str
    row: int
    id: str | None
    error: str

    def __str__(self) -> str:
        return f"{self.source}, row {self.row}, id {self.id!r}: {self.error}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"source": self.source, "row": self.row, "id": self.id, "error": self.error}


@dataclass(slots=True)
class Fetched:
    """What came since the version that the log stands at."""

    version: int
    changes: list[Change] = field(default_factory=list)
    bad: list[BadChange] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    """Files and directories that are dealt with now, whatever becomes of their rows."""
    waiting: int = 0
    """Files and directories that are not complete yet."""


@runtime_checkable
class Source(Protocol):
    """Subscriptions that change."""

    def fetch(self, index: Index, version: int, consumed: Collection[str]) -> Fetched:
        """All changes after `version`; `consumed` are the units that led to it."""

    def newest(self, version: int, consumed: Collection[str]) -> int:
        """The newest version that is complete by now, as far as that is cheap to say."""

    def id_type(self) -> str | None:
        """The type of the ids by what is there now; None where nothing is."""

    def expect(self, id_type: str) -> None:
        """Take ids of this type alone."""


def one_line(error: BaseException) -> str:
    """An error without its caret, for a line in a log."""
    if isinstance(error, FilterSyntaxError):
        return f"{error.message} (at character {error.position + 1} of the filter)"
    return " ".join(str(error).split())


# A directory of change files


class _UnfinishedError(Exception):
    """The file is still being written."""


class ChangeDirectory:
    """Change files in a directory: JSON lines or Parquet, each row {version, op, id, filter}."""

    def __init__(self, path: str | os.PathLike[str], names: RowNames | None = None) -> None:
        self.path = Path(path)
        self._names = names or RowNames()
        self._id_type = STRING
        self._read: dict[str, tuple[list[Change], list[BadChange]]] = {}

    def fetch(self, index: Index, version: int, consumed: Collection[str]) -> Fetched:  # noqa: ARG002
        """Rows of the files that are new, in the order of their versions, then of the files' names."""
        waiting = self._look(consumed)
        fetched = Fetched(version, waiting=waiting, units=sorted(self._read))
        for unit in fetched.units:
            changes, bad = self._read.pop(unit)
            fetched.bad += bad
            for change in changes:
                if change.version <= version:
                    late = f"version {change.version} is closed since version {version} is in use; give it a newer one"
                    fetched.bad.append(BadChange(change.source, change.row, change.id, late))
                else:
                    fetched.changes.append(change)
        fetched.changes.sort(key=lambda change: change.version)
        if fetched.changes:
            fetched.version = fetched.changes[-1].version
        return fetched

    def newest(self, version: int, consumed: Collection[str]) -> int:
        """Reads what is new; the next `fetch` will not read it again."""
        self._look(consumed)
        return max((change.version for changes, _ in self._read.values() for change in changes), default=version)

    def id_type(self) -> str | None:
        """That of the first file that is complete and has an id."""
        for unit in self._units():
            path = self._here(unit) / unit
            files = sorted(one for one in path.iterdir() if one.name[0] not in "._") if path.is_dir() else [path]
            for file in files:
                found = _type_of_ids(file, self._names.id)
                if found is not None:
                    return found
        return None

    def expect(self, id_type: str) -> None:
        """Take ids of this type alone."""
        self._id_type = id_type

    def read_again(self, units: Collection[str]) -> list[Change]:
        """The rows of units that were dealt with before."""
        gone = [unit for unit in units if not (self.path / unit).exists()]
        if gone:
            raise CoveyError(f"the index has to be built again, but {self.path / gone[0]} is gone")
        return [change for unit in sorted(units) for change in self._rows_of(unit)[0]]

    def _look(self, consumed: Collection[str]) -> int:
        """Read the units that are complete and new; how many are not complete."""
        waiting = 0
        for unit in self._units():
            if unit in consumed or unit in self._read:
                continue
            try:
                self._read[unit] = self._rows_of(unit)
            except _UnfinishedError:
                waiting += 1
        return waiting

    def _rows_of(self, unit: str) -> tuple[list[Change], list[BadChange]]:
        return _read_unit(self._here(unit), unit, self._id_type, self._names)

    def _here(self, unit: str) -> Path:  # noqa: ARG002
        """The directory on this machine in which a unit is."""
        return self.path

    def _units(self) -> Iterator[str]:
        try:
            with os.scandir(self.path) as entries:
                found = [entry.name for entry in entries if is_unit(entry.name)]
        except OSError as error:
            raise CoveyError(f"changes in {self.path}: {error.strerror or error}") from None
        return iter(sorted(found))


def is_unit(name: str) -> bool:
    """Whether a name in a directory of changes is one that counts."""
    return name[0] not in "._" and not name.endswith((".tmp", ".crc"))


def _read_unit(directory: Path, unit: str, id_type: str, names: RowNames) -> tuple[list[Change], list[BadChange]]:
    path = directory / unit
    if not path.is_dir():
        return _read_file(path, unit, id_type, names)
    if not (path / "_SUCCESS").exists():
        raise _UnfinishedError
    changes: list[Change] = []
    bad: list[BadChange] = []
    for name in sorted(entry.name for entry in path.iterdir() if entry.name[0] not in "._"):
        good, wrong = _read_file(path / name, f"{unit}/{name}", id_type, names)
        changes += good
        bad += wrong
    return changes, bad


def _read_file(path: Path, source: str, id_type: str, names: RowNames) -> tuple[list[Change], list[BadChange]]:
    try:
        if path.suffix == ".parquet":
            rows: Iterator[tuple[int, Any]] = _parquet_rows(path, names)
        elif path.suffix in _JSON:
            rows = _json_rows(path)
        else:
            return [], [BadChange(source, 0, None, "not a change file; names end in .jsonl, .json or .parquet")]
        changes: list[Change] = []
        bad: list[BadChange] = []
        for number, row in rows:
            made = _change(row, source, number, id_type, names)
            if isinstance(made, Change):
                changes.append(made)
            else:
                bad.append(made)
        return changes, bad
    except OSError as error:
        return [], [BadChange(source, 0, None, f"can't be read: {error.strerror or error}")]


def _type_of_ids(path: Path, id: str) -> str | None:
    try:
        if path.suffix == ".parquet":
            schema = pq.read_schema(path)
            return type_in_arrow(schema.field(id).type) if id in schema.names else None
        rows = _json_rows(path) if path.suffix in _JSON else iter(())
        return next((type_in_json(row[id]) for _, row in rows if isinstance(row, Mapping) and id in row), None)
    except (OSError, pa.ArrowInvalid, _UnfinishedError):
        return None


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                raise _UnfinishedError from None
            yield number, CoveyError(f"not JSON: {error}")


def _parquet_rows(path: Path, names: RowNames) -> Iterator[tuple[int, Any]]:
    try:
        table = pq.read_table(path, partitioning=None)
    except pa.ArrowInvalid:
        raise _UnfinishedError from None
    fields = names.of_changes
    missing = [name for name in fields if name not in table.column_names]
    if missing:
        yield 0, CoveyError(f"the column {missing[0]!r} is missing; a change file has {', '.join(fields)}")
        return
    columns = [table.column(name).to_pylist() for name in fields]
    for number, values in enumerate(zip(*columns, strict=True), start=1):
        yield number, dict(zip(fields, values, strict=True))


def _wrong_id(given: Any, id_type: str) -> str:
    if id_type == STRING:
        return f"an id is a string that is not empty, not {given!r}"
    return f"an id of this stream is of type {id_type}, not {given!r}"


def _change(row: Any, source: str, number: int, id_type: str, names: RowNames) -> Change | BadChange:
    if isinstance(row, CoveyError):
        return BadChange(source, number, None, str(row))
    if not isinstance(row, Mapping):
        return BadChange(source, number, None, "not a row of version, op, id and filter")
    version, op, given, text = (row.get(name) for name in names.of_changes)
    id = id_text(given, id_type)
    known = given if isinstance(given, str) else id
    if type(version) is not int or version < 1:
        return BadChange(source, number, known, f"a version is a whole number from 1 on, not {version!r}")
    if op not in OPERATIONS:
        return BadChange(source, number, known, f"op is one of {', '.join(OPERATIONS)}, not {op!r}")
    if id is None:
        return BadChange(source, number, known, _wrong_id(given, id_type))
    if op != "remove" and not isinstance(text, str):
        return BadChange(source, number, id, f"op {op} needs a filter as text, not {text!r}")
    return Change(version, op, id, text if isinstance(text, str) else "", source, number)


# A table that is read again

Table: TypeAlias = "Callable[[], DataFrame | tuple[int, DataFrame]]"


class SubscriptionTable:
    """A table of (id, filter) as it is now, with a version: a column of which the largest value counts, or given beside
    the DataFrame. It is read whole when its version is new, and compared with the index, so that what did not change
    is not compiled again.

    A table without a version is compared whenever its rows aren't those of the last time, which Spark tells by a sum of
    their hashes; where they differ from the index, that is the next version."""

    def __init__(
        self, table: Table, names: RowNames | None = None, written: Callable[[str], str] | None = None
    ) -> None:
        self._table = table
        self._written = written or str
        self._names = names or RowNames()
        self._id_type = STRING
        self._seen: tuple[int, int] | None = None

    def id_type(self) -> str | None:
        """That of the table's column."""
        return type_of_ids(self._current_rows(), self._names.id)

    def expect(self, id_type: str) -> None:
        """Take ids of this type alone."""
        self._id_type = id_type

    def fetch(self, index: Index, version: int, consumed: Collection[str]) -> Fetched:  # noqa: ARG002
        """The difference between the table and the index, when the table's version is new."""
        newest, rows = self._current()
        if newest is None:
            return self._compared(rows, index, version)
        if newest == version:
            return Fetched(version)
        if newest < version:
            raise CoveyError(f"the table of subscriptions went back from version {version} to {newest}")
        return self._difference(rows, index, newest)

    def _compared(self, rows: DataFrame, index: Index, version: int) -> Fetched:
        digest = self._digest(rows)
        if digest == self._seen:
            return Fetched(version)
        fetched = self._difference(rows, index, version + 1)
        self._seen = digest
        return fetched if fetched.changes or fetched.bad or version == 0 else Fetched(version)

    def _digest(self, rows: DataFrame) -> tuple[int, int]:
        """What rows have in common that are the same in whatever order."""
        columns = [F.col(quoted(name)) for name in self._names]
        both = F.xxhash64(*columns, F.hash(*columns)).cast("decimal(38,0)")
        found = rows.agg(F.count("*"), F.sum(both)).collect()[0]
        return int(found[0]), int(found[1] or 0)

    def _difference(self, rows: DataFrame, index: Index, newest: int) -> Fetched:
        wanted: dict[str, str] = {}
        fetched = Fetched(newest)
        source = f"table-{newest}"
        for number, (given, text) in enumerate(_id_and_filter(rows, self._names), start=1):
            id = id_text(given, self._id_type)
            if text is None and id is not None:
                continue  # a row that says "removed"
            if id is None:
                fetched.bad.append(BadChange(source, number, None, _wrong_id(given, self._id_type)))
            elif not isinstance(text, str):
                fetched.bad.append(BadChange(source, number, id, f"a filter is text, not {text!r}"))
            elif id in wanted:
                fetched.bad.append(BadChange(source, number, id, "the id stands twice in the table"))
            else:
                wanted[id] = text
        present = set(index.ids())
        fetched.changes = [Change(newest, "remove", id, "", source, 0) for id in present - wanted.keys()]
        for number, (id, text) in enumerate(wanted.items(), start=1):
            if id not in present:
                fetched.changes.append(Change(newest, "add", id, text, source, number))
            elif index.text(id) != text and not self._same(index, id, text):
                fetched.changes.append(Change(newest, "replace", id, text, source, number))
        return fetched

    def newest(self, version: int, consumed: Collection[str]) -> int:  # noqa: ARG002
        """The version in use: asking the table would be another Spark job."""
        return version

    def _same(self, index: Index, id: str, text: str) -> bool:
        """Whether a text of another dialect, or that only Spark reads, is what the index has."""
        try:
            written = self._written(text)
        except CoveyError:
            return False
        return index.text(id) in (written, str(Compare(SPARK_ONLY + written.strip(), "=", True)))

    def _current_rows(self) -> DataFrame:
        given = self._table()
        return _with_columns(given[1] if isinstance(given, tuple) else given, self._names)

    def _current(self) -> tuple[int | None, DataFrame]:
        given = self._table()
        if isinstance(given, tuple):
            version, rows = given
        elif "version" in given.columns:
            rows = given
            version = given.agg({"version": "max"}).collect()[0][0] or 1
        else:
            return None, _with_columns(given, self._names)
        if type(version) is not int or version < 1:
            raise CoveyError(f"the table's version is {version!r}; versions are whole numbers from 1 on")
        return version, _with_columns(rows, self._names)


def _with_columns(rows: DataFrame, names: RowNames) -> DataFrame:
    missing = [name for name in names if name not in rows.columns]
    if missing:
        raise CoveyError(f"the table of subscriptions has no column {missing[0]!r}; it has {', '.join(rows.columns)}")
    return rows


def _id_and_filter(rows: DataFrame, names: RowNames) -> Iterator[tuple[Any, Any]]:
    table = rows.select(*(F.col(quoted(name)) for name in names)).toArrow()
    return zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True)
