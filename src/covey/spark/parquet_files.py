"""Which files a path of Parquet names, and which columns they have together: as Spark reads them.

Spark says what the table is: its files, its columns with their types, and what directories such as `company=IBM` add.
Workers then read the files with Arrow, which is right where a file holds a column just as the table has it, under
whatever case and in whatever place, or doesn't have it at all, which is null. Where one file is otherwise (another
type, the calendar of an old Spark), all are read by Spark. So answers never depend on who reads.

What Spark can't read but Arrow can (an address such as `s3://…` without Hadoop's module for it, times in nanoseconds)
is read by Arrow alone, if all files have the same columns and no directory adds any. Directories of table formats,
whose files also hold rows that were deleted, are refused.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BinaryType, StructField, StructType

from covey.errors import CoveyError
from covey.spark.types import quoted
from covey.spark.visibility import check_readable

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_OLD_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FORMATS = {"_delta_log": "Delta", ".hoodie": "Hudi"}
"""By what stands in a table's directory."""


@dataclass(frozen=True, slots=True)
class FileColumns:
    """How one file holds the columns asked for."""

    path: str
    inside: Mapping[str, str]
    """The table's names, and the file's own; a column that is in neither mapping is null."""
    constant: Mapping[str, Any]
    """What the file's directories say."""


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """Files that are one table."""

    frame: DataFrame
    """As Spark reads them; without rows where only Arrow can."""
    files: tuple[str, ...]
    partitions: Mapping[str, Mapping[str, Any]] | None = field(default_factory=dict)
    """By file, what directories say; None where files differ in that, which is Spark's to sort out."""
    by_spark: bool = True
    case: bool = False
    """Whether names that differ by case alone are different columns."""

    def plainly(self, columns: Iterable[str]) -> list[FileColumns] | None:
        """How each file holds these columns, or None where Arrow wouldn't read all of them as Spark does."""
        if self.partitions is None:
            return None
        wanted = {name: self.frame.schema[name] for name in columns}
        found: list[FileColumns] = []
        for file in self.files:
            held = self._held(file, wanted, self.partitions.get(file, {}))
            if held is None:
                return None
            found.append(held)
        return found

    def _held(self, file: str, wanted: Mapping[str, StructField], constant: Mapping[str, Any]) -> FileColumns | None:
        parquet = opened(file)
        schema = parquet.schema_arrow
        if any(old in (parquet.metadata.metadata or {}) for old in _OLD_CALENDARS):
            return None
        names: dict[str, list[str]] = {}
        for name in schema.names:
            names.setdefault(name if self.case else name.lower(), []).append(name)
        inside: dict[str, str] = {}
        for name, column in wanted.items():
            found = names.get(name if self.case else name.lower(), [])
            if name in constant or not found:
                continue
            kind = spark_type(schema.field(found[0]).type)
            if len(found) > 1 or (self.by_spark and kind != column.dataType.simpleString()):
                return None
            inside[name] = found[0]
        return FileColumns(file, inside, {name: constant[name] for name in wanted if name in constant})


def find(spark: SparkSession, paths: Paths) -> ParquetTable:
    """The table that these paths are."""
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    given = [path.removeprefix("file://") for path in given]
    if any("://" in path for path in given):
        return _by_arrow(spark, [file for path in given for file in _of_address(path)], given)
    roots = [root for path in given for root in _roots(path)]
    for root in roots:
        _refuse_formats(root)
    steps = {file: _between(root, file) for root in roots for file in _below(root)}
    if not steps:
        raise CoveyError(f"no Parquet files in {', '.join(given) or 'an empty list of paths'}")
    for file in steps:
        opened(file)  # what isn't Parquet is named here, in one line
    check_readable(spark, [str(file) for file in list(steps)[:1]], "file")
    partitioned = any("=" in step for inner in steps.values() for step in inner)
    reader = spark.read if partitioned else spark.read.option("recursiveFileLookup", "true")
    try:
        frame = reader.parquet(*(_literal(root) for root in roots))
        files = sorted(unquote(urlsplit(address).path) for address in frame.inputFiles())
    except (AnalysisException, PySparkException) as error:
        if partitioned:
            raise CoveyError(f"{', '.join(given)}: Spark can't read these as one table: {_first_line(error)}") from None
        return _by_arrow(spark, sorted(steps), given)
    case = str(spark.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    partitions = _partitions(spark, frame, {file: steps.get(file, []) for file in files}) if partitioned else {}
    return ParquetTable(frame, tuple(files), partitions, case=case)


def opened(file: str, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
    """A file by Arrow; these columns of text as the dictionaries that the file holds."""
    try:
        if "://" in file:
            system, inner = fs.FileSystem.from_uri(file)
            return pq.ParquetFile(system.open_input_file(inner), read_dictionary=list(dictionaries), pre_buffer=True)
        return pq.ParquetFile(file, memory_map=True, read_dictionary=list(dictionaries), pre_buffer=False)
    except (OSError, pa.ArrowInvalid) as error:
        raise CoveyError(f"{file}: can't be read as Parquet: {error}") from None


def spark_type(kind: pa.DataType) -> str | None:
    """Spark's name of an Arrow type, if it has one."""
    try:
        name: str = from_arrow_type(kind.value_type if pa.types.is_dictionary(kind) else kind).simpleString()
    except PySparkTypeError:
        return None
    return name


# Listing


def _roots(path: str) -> list[str]:
    """A path as it is, or what a pattern finds; a worker's own directory may be another, so whole paths."""
    path = os.path.abspath(path)
    return [path] if os.path.exists(path) else sorted(glob.glob(path))


def _below(root: str) -> Iterator[str]:
    if not os.path.isdir(root):
        yield root
        return
    for at, _, names in os.walk(root):
        for name in names:
            if not any(_is_hidden(part) for part in [*_between(root, os.path.join(at, name)), name]):
                yield os.path.join(at, name)


def _is_hidden(name: str) -> bool:
    """Spark's rule for what isn't data."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _between(root: str, file: str) -> list[str]:
    """The directories below a root that lead to a file."""
    inner = os.path.relpath(os.path.dirname(file), root)
    return [] if inner == "." or inner.startswith("..") else inner.split(os.sep)


def _literal(path: str) -> str:
    """A path that Hadoop doesn't take for a pattern."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in path)


def _of_address(path: str) -> list[str]:
    if "://" not in path:
        raise CoveyError(f"{path!r} is a path and others are addresses; match them in two calls")
    system, inner = fs.FileSystem.from_uri(path)
    scheme = path[: path.index("://") + 3]
    if system.get_file_info(inner).type != fs.FileType.Directory:
        return [path]
    found = system.get_file_info(fs.FileSelector(inner, recursive=True))
    names = sorted(one.path for one in found if one.type == fs.FileType.File)
    for name in names:
        marker = next((part for part in name.split("/") if part in _FORMATS), None)
        if marker is not None:
            raise _table_format(path, _FORMATS[marker])
    return [scheme + name for name in names if not any(_is_hidden(part) for part in name[len(inner) :].split("/"))]


def _refuse_formats(root: str) -> None:
    at = root if os.path.isdir(root) else os.path.dirname(root)
    while True:
        marker = next((name for name in _FORMATS if os.path.isdir(os.path.join(at, name))), None)
        if marker is not None:
            raise _table_format(at, _FORMATS[marker])
        if glob.glob(os.path.join(glob.escape(at), "metadata", "*.metadata.json")):
            raise _table_format(at, "Iceberg")
        if at == os.path.dirname(at):
            return
        at = os.path.dirname(at)


def _table_format(path: str, kind: str) -> CoveyError:
    return CoveyError(
        f"{path} is a table of {kind}, whose files also hold rows that are deleted or replaced; "
        f"read it with Spark's reader for {kind} and use match_events"
    )


# What directories say


def _partitions(
    spark: SparkSession, frame: DataFrame, files: Mapping[str, Sequence[str]]
) -> Mapping[str, Mapping[str, Any]] | None:
    """By file, the columns that its directories stand for, with values of the types that Spark found for them."""
    names = {name.lower(): name for name in frame.columns}
    texts: list[dict[str, str | None]] = []
    for steps in files.values():
        pairs = [step.partition("=") for step in steps if "=" in step]
        texts.append({names.get(unquote(name).lower(), ""): _text(value) for name, _, value in pairs})
    columns = list(texts[0])
    if "" in columns or any(list(found) != columns for found in texts):
        return None
    rows = list({tuple(found.values()) for found in texts})
    raw = spark.createDataFrame(rows, ", ".join(f"{quoted(name)} string" for name in columns))
    values = raw.select(*(F.col(quoted(name)).cast(frame.schema[name].dataType) for name in columns)).collect()
    by_texts = {row: dict(zip(columns, found, strict=True)) for row, found in zip(rows, values, strict=True)}
    return {file: by_texts[tuple(found.values())] for file, found in zip(files, texts, strict=True)}


def _text(value: str) -> str | None:
    return None if value == _NO_VALUE else unquote(value)


# Without Spark


def _by_arrow(spark: SparkSession, files: list[str], given: list[str]) -> ParquetTable:
    """Files that are read by Arrow alone."""
    if not files:
        raise CoveyError(f"no Parquet files in {', '.join(given)}")
    schema = opened(files[0]).schema_arrow.remove_metadata()
    for file in files:
        if not opened(file).schema_arrow.remove_metadata().equals(schema):
            raise CoveyError(
                f"{file} has other columns than {files[0]}, and Spark can't read them here to say what they are "
                "together; match files with the same columns in one call"
            )
        if any("=" in part for part in file.split("/")[:-1]):
            raise CoveyError(
                f"{file}: a directory stands for a column, and Spark can't read it here to say of which type; "
                "read it with spark.read.parquet and use match_events"
            )
    return ParquetTable(_without_rows(spark, schema), tuple(files), by_spark=False)


def _without_rows(spark: SparkSession, schema: pa.Schema) -> DataFrame:
    """A table with the files' columns, for rules to be read over; types that Spark hasn't stand as binary."""
    fields = []
    for column in schema:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        try:
            fields.append(StructField(column.name, from_arrow_type(kind)))
        except PySparkTypeError:
            fields.append(StructField(column.name, BinaryType()))
    return spark.createDataFrame([], StructType(fields))


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
