"""What the user names, as DataFrames: tables (`table:NAME`), files, directories and patterns of files.

Rows are read so that they mean what they mean to `covey match`: CSV has a header, quotes are doubled within quotes, an
empty field is missing, and a row with a wrong number of fields is an error, not a row with less in it. For that, CSV is
parsed whole rows at a time, so that one file is read by one task; many files are read in parallel. The types of CSV and
JSON lines are told by all of the rows, or given with `--events-schema`.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from covey.cli.spark.arguments import EventOptions, SparkCompactOptions, SparkStreamOptions, TableOptions
from covey.cli.spark.session import is_local
from covey.errors import CoveyError
from covey.file_names import FORMATS, SUFFIXES, Format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Kind: TypeAlias = Format | Literal["table"]
TABLE: Final = "table:"
_SPARK_NAMES: Final[dict[Kind, str]] = {"jsonl": "json", "csv": "csv", "parquet": "parquet"}
_CSV: Final = {"header": "true", "escape": '"', "multiLine": "true", "columnPruning": "false"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as the user named them."""

    name: str
    path: str
    """A path or pattern that Spark is given, or the name of a table."""
    kind: Kind


def rows(spark: SparkSession, name: str, forced: Format | None, option: str) -> Rows:
    """The table or files of that name; `option` is what forces a format. A local file that isn't there is an error."""
    if name.startswith(TABLE):
        return Rows(name, name.removeprefix(TABLE), "table")
    if "://" in name or not is_local(spark):
        return Rows(name, name, forced or _told(name, option, name))
    files = data_files(name)
    if not files:
        raise CoveyError(f"{name}: {'no files of rows in it' if os.path.isdir(name) else 'No such file or directory'}")
    # Spark reads relative paths where its JVM was started.
    return Rows(name, os.path.abspath(name), forced or _told(files[0], option, name))


def data_files(name: str) -> list[str]:
    """The files of a directory, a pattern or a file, by Spark's rule: names that start with _ or . are no data."""
    found: list[str] = []
    for one in [name] if os.path.exists(name) else sorted(glob.glob(name)):
        if not os.path.isdir(one):
            found.append(one)
            continue
        for at, folders, names in os.walk(one):
            folders[:] = sorted(folder for folder in folders if not folder.startswith(("_", ".")))
            found += [os.path.join(at, file) for file in sorted(names) if not file.startswith(("_", "."))]
    return found


def _told(path: str, option: str, name: str) -> Format:
    told = SUFFIXES.get(PurePath(path.removesuffix(".gz")).suffix.lower())
    if told is None:
        where = name if path == name else f"{name}: {os.path.basename(path)}"
        raise CoveyError(
            f"{where}: can't tell its format from its name; say which with {option} ({', '.join(FORMATS)})"
        )
    return told


def read_events(spark: SparkSession, options: EventOptions) -> DataFrame:
    """The events, whose columns are told by the files or by the user."""
    given = rows(spark, options.events, options.events_format, "--events-format")
    if given.kind == "table":
        return spark.table(given.path)
    reader = spark.read.option("mode", "FAILFAST" if options.on_error == "raise" else "DROPMALFORMED")
    if given.kind == "csv":
        reader = reader.options(**_CSV).option("inferSchema", str(options.events_schema is None).lower())
    if options.events_schema is not None:
        reader = reader.schema(options.events_schema)
    return reader.format(_SPARK_NAMES[given.kind]).load(given.path)


def read_event_stream(spark: SparkSession, options: SparkStreamOptions) -> DataFrame:
    """The events that appear in a directory or a table."""
    if options.events.startswith(TABLE):
        return spark.readStream.table(options.events.removeprefix(TABLE))
    here = is_local(spark) and "://" not in options.events
    path = os.path.abspath(options.events) if here else options.events
    if here and not os.path.isdir(path):
        raise CoveyError(f"{options.events}: not a directory; a stream's files appear in one")
    if here and not data_files(path) and (options.events_schema is None or options.events_format is None):
        raise CoveyError(
            f"{options.events}: no files yet to tell what events hold; say it with --events-schema "
            "'symbol string, price double' and --events-format"
        )
    kind = options.events_format or rows(spark, options.events, None, "--events-format").kind
    schema = options.events_schema
    if schema is None:
        schema = read_events(spark, options).schema
    stream = spark.readStream.schema(schema).format(_SPARK_NAMES[kind])
    if kind == "csv":
        stream = stream.options(**_CSV)
    if options.files_per_batch is not None:
        stream = stream.option("maxFilesPerTrigger", options.files_per_batch)
    return stream.load(path)


def read_subscriptions(spark: SparkSession, name: str, options: TableOptions) -> DataFrame:
    """The subscriptions: columns of ids and filters, which are text whatever they look like."""
    given = rows(spark, name, options.subscriptions_format, "--subscriptions-format")
    wanted = {"id": options.id_column, "filter": options.filter_column}
    return _with_columns(given, _frame(spark, given, list(wanted.values())), wanted)


def read_advertisements(spark: SparkSession, options: SparkCompactOptions) -> DataFrame:
    """Rows with a filter."""
    assert options.advertisements is not None
    given = rows(spark, options.advertisements, None, "a suffix")
    return _with_columns(given, _frame(spark, given, ["filter"]), {"filter": "filter"})


def _frame(spark: SparkSession, given: Rows, columns: list[str]) -> DataFrame:
    if given.kind == "table":
        return spark.table(given.path)
    if given.kind == "jsonl":
        # With the columns given, a filter that is a JSON object is read as its text.
        from pyspark.sql.types import StringType, StructField, StructType

        return spark.read.schema(StructType([StructField(column, StringType()) for column in columns])).json(given.path)
    if given.kind == "csv":
        return spark.read.options(**_CSV).option("mode", "FAILFAST").csv(given.path)
    return spark.read.parquet(given.path)


def _with_columns(given: Rows, frame: DataFrame, wanted: dict[str, str]) -> DataFrame:
    for option, name in wanted.items():
        if name not in frame.columns:
            raise CoveyError(
                f"{given.name}: no column {name!r}; it has {', '.join(frame.columns)}. "
                f"Name the right one with --{option}"
            )
    return frame
