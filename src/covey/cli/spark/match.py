"""`covey spark match`: a table of events against a table of subscriptions, written as Parquet."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from covey.cli.arguments import UsageError
from covey.cli.findings import MOST_CHECKED, say_findings
from covey.cli.spark.arguments import SparkMatchOptions
from covey.cli.spark.session import cores, is_local, job_progress, session
from covey.cli.spark.sources import TABLE, data_files, read_events, read_subscriptions, rows
from covey.cli.subscriptions import SubscriptionFile, as_one_kind, lacks_columns, schema_of
from covey.cli.terminal import BadRowsError, Report, complain, one_line, unwatched
from covey.errors import CoveyError, SchemaError, skips
from covey.events import Schema
from covey.events.files import source
from covey.file_names import INDEX_SUFFIX, SUFFIXES, is_index
from covey.filters import Filter
from covey.filters.fitting import UNTYPED
from covey.filters.terms import SPARK_ONLY, term_of
from covey.language import parse
from covey.matching import AddManyError, BadSubscription, Index
from covey.matching.against import ANY, Seen, findings
from covey.matching.only_spark import only_spark_text
from covey.matching.table_columns import TableColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from covey.spark.json_texts import BadJson

_LISTS = "subscriptions"
SUBSCRIPTIONS_FORMAT = "--subscriptions-format"


@dataclass(slots=True)
class Built:
    """The index of the user's subscriptions, in a file."""

    path: str
    subscriptions: int
    seconds: float | None
    """None where it was there already."""
    report: Report
    """Of those that are left out."""
    places: Mapping[object, str] = field(default_factory=dict)
    """Where each stands, by id, where that is known."""
    refused: set[object] = field(default_factory=set)
    """Those that the events' columns can't answer."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What was done, for people and for programs."""

    subscriptions: int
    subscriptions_left_out: int
    build_seconds: float | None
    events: int
    matched_events: int
    matches: int
    match_seconds: float
    events_per_second: float
    cores: int | None
    master: str
    output: str

    def __str__(self) -> str:
        built = "saved before"
        if self.build_seconds is not None:
            built = f"indexed in {self.build_seconds:.2f} s ({self.subscriptions / self.build_seconds:,.0f} a second)"
        matched = f"matched in {self.match_seconds:.2f} s ({self.events_per_second:,.0f} a second)"
        average = self.matches / self.events if self.events else 0
        table = [
            ("subscriptions", f"{self.subscriptions:,}", built),
            ("events", f"{self.events:,}", matched),
            ("events matched", f"{self.matched_events:,}", ""),
            ("matches", f"{self.matches:,}", f"{average:,.1f} an event"),
            ("cores", "?" if self.cores is None else f"{self.cores:,}", self.master),
        ]
        width = max(len(number) for _, number, _ in table)
        lines = [f"{name:<14}  {number:>{width}}  {note}".rstrip() for name, number, note in table]
        return "\n".join([*lines, f"{'output':<14}  {self.output}"])


def run(options: SparkMatchOptions) -> int:
    """Match the tables."""
    assert options.output is not None
    _check(options)
    with ExitStack() as afterwards, session(options) as spark, tempfile.TemporaryDirectory(prefix="covey-") as scratch:
        if is_local(spark):
            check_free(options.output, overwrite=options.overwrite)
        built = _index(spark, options, Path(scratch))
        result = _bulk(spark, built, options) if options.bulk else _plain(spark, built, options)
        if options.index is not None and options.index != built.path:
            Index.open(built.path, verify=False).save(options.index)
        summary = _write(spark, result, built, options, afterwards)
        print(json.dumps(asdict(summary)) if options.json else summary)
    if built.report.count:
        complain(f"left out {built.report}")
    return 0


def _check(options: SparkMatchOptions) -> None:
    if is_index(options.subscriptions):
        if options.semantics is not None or options.schema is not None:
            raise CoveyError(
                f"{options.subscriptions} has a semantics and a schema of its own; leave --semantics and --schema out"
            )
        if options.index is not None:
            raise UsageError(f"{options.subscriptions} is an index already; leave --index out")
    if options.index is not None and not is_index(options.index):
        raise UsageError(f"{options.index}: an index's name ends in {INDEX_SUFFIX}")
    if options.bulk and options.missing_columns == "null":
        raise UsageError("--bulk reads the columns that there are; leave it out, or --missing-columns")
    if options.all and options.form == "pairs":
        raise UsageError("--all needs --format array: an event without matches has no pairs")


def _index(spark: SparkSession, options: SparkMatchOptions, scratch: Path) -> Built:
    if is_index(options.subscriptions):
        report = Report("subscription", options.subscriptions)
        return Built(options.subscriptions, len(Index.open(options.subscriptions, verify=False)), None, report)
    from covey.spark import build_index

    path = options.index or str(scratch / f"index{INDEX_SUFFIX}")
    report = Report("subscription", options.subscriptions)
    start = time.perf_counter()
    if is_local(spark) and os.path.isfile(options.subscriptions):
        path = str(scratch / f"index{INDEX_SUFFIX}")  # kept when it is known to fit the events
        built = _from_file(options, path)
        built.seconds = time.perf_counter() - start
        return built
    try:
        with job_progress(spark, "tasks of reading subscriptions"):
            added = build_index(
                read_subscriptions(spark, options.subscriptions, options), path,
                id=options.id_column, filter=options.filter_column, dialect=options.dialect,
                semantics=options.semantics or "sql", schema=schema_of(options),
                on_error=options.on_error,
            )  # fmt: skip
    except AddManyError as error:
        _say(report, error.errors)
        raise BadRowsError(f"{report} can't be used, so nothing was done; --on-error skip goes on without") from None
    _say(report, added.errors)
    return Built(path, added.added, time.perf_counter() - start, report)


def _from_file(options: SparkMatchOptions, path: str) -> Built:
    """The index of one file of this machine, read as `covey match` reads it, which names the lines that are bad. What
    only Spark reads goes with the others, where Spark is asked."""
    from covey.spark.only_spark import add_rules

    given = SubscriptionFile(source(options.subscriptions, options.subscriptions_format, SUBSCRIPTIONS_FORMAT), options)
    schema = schema_of(options)
    index = Index(semantics=options.semantics or "sql", schema=schema)
    pairs = as_one_kind(list(given.pairs(unwatched)))
    if schema is not None or _as_lines(options):
        added = index.add_many(pairs, on_error="skip")
    else:
        added = add_rules(index, pairs, dialect="sql", on_error="skip")
    given.settle(added.errors)
    index.save(path)
    wrong = {bad.row for bad in added.errors}
    places = {id: given.place(at) for at, (id, _) in enumerate(pairs) if at not in wrong}
    return Built(path, added.added, None, given.report, places)


def _say(report: Report, errors: Sequence[BadSubscription]) -> None:
    for bad in errors:
        report.bad(f"subscription {bad.id!r}", one_line(bad.error))


def _plain(spark: SparkSession, built: Built, options: SparkMatchOptions) -> DataFrame:
    """The events' columns and an array of ids."""
    from covey.spark.batch import match_placed
    from covey.spark.types import quoted
    from covey.spark.worker_files import place

    events = read_events(spark, options)
    if options.columns is not None:
        _check_columns(options.columns, events.columns, options.events)
    if _as_lines(options):
        _settle(built, options)
        matched = _lines(spark, events, built, options)
    else:
        wanted, own = _with_missing(events, built) if _lacks(options) else (events, "*")
        placed = place(wanted, built.path, on_error="skip", memory_budget=options.memory_budget)
        _refuse(events, built, placed.errors, lacking=_lacks(options))
        _settle(built, options)
        matched = match_placed(wanted, placed)
        matched = matched if own == "*" else matched.select(own, _LISTS)
    _say_what_cannot_fire(events, built, lines=_as_lines(options))
    if options.columns is None:
        return matched
    return matched.select(*(quoted(name) for name in options.columns), _LISTS)


def _with_missing(events: DataFrame, built: Built) -> tuple[DataFrame, str]:
    """The events with all columns that rules name, and where their own are in it."""
    from pyspark.sql import functions as sf

    from covey.spark.missing_columns import with_missing
    from covey.spark.types import quoted, unused_name

    columns = TableColumns([_arrow(events)])
    index = Index.open(built.path, verify=False)
    names = {name for tested in index.tested for name in term_of(tested).attributes()}
    lacking = {name for name in names if not columns.has(name) and not name.startswith(SPARK_ONLY)}
    own = unused_name("covey events", events.columns)
    return with_missing(events.withColumn(own, sf.struct("*")), lacking), f"{quoted(own)}.*"


def _as_lines(options: SparkMatchOptions) -> bool:
    """Whether the events are JSON lines and nothing says what columns they have: then they are matched as they are, by
    the kinds of their values, as `covey match` does. What Spark would infer of all of them together isn't in them."""
    name = options.events
    if options.events_schema is not None or name.startswith(TABLE):
        return False
    told = options.events_format or SUFFIXES.get(PurePath(_first(name).removesuffix(".gz")).suffix.lower())
    return told == "jsonl"


def _first(name: str) -> str:
    return next(iter(data_files(name)), name) if "://" not in name else name


def _lines(spark: SparkSession, events: DataFrame, built: Built, options: SparkMatchOptions) -> DataFrame:
    """The events' columns beside what their lines match."""
    from pyspark.sql import functions as sf

    from covey.spark.batch import match_placed
    from covey.spark.json_texts import JsonColumn
    from covey.spark.worker_files import place

    given = rows(spark, options.events, options.events_format, "--events-format")
    texts = spark.read.text(given.path).where(sf.trim("value") != "")
    if len(texts.columns) > 1:
        names = ", ".join(texts.columns[1:])
        raise CoveyError(f"{options.events}: JSON lines get no columns of directories ({names}); give --events-schema")
    placed = place(texts, built.path, on_error="raise", memory_budget=options.memory_budget, as_json=True)
    bad: BadJson = "null" if skips(options.on_error) else "raise"
    matched = match_placed(texts, placed, texts=JsonColumn("value", bad)).where(sf.col(_LISTS).isNotNull())
    return matched.select(sf.from_json("value", events.schema).alias("event"), _LISTS).select("event.*", _LISTS)


def _settle(built: Built, options: SparkMatchOptions) -> None:
    built.report.end()
    if built.report.count and not skips(options.on_error):
        raise BadRowsError(f"{built.report} can't be used, so nothing was done; --on-error skip goes on without")


def _lacks(options: SparkMatchOptions) -> bool:
    """Whether rules may name columns that aren't there: those of dialects that know no columns may, too."""
    return lacks_columns(options) or (options.missing_columns is None and options.dialect in UNTYPED)


def _refuse(events: DataFrame, built: Built, errors: Sequence[BadSubscription], *, lacking: bool) -> None:
    """Report rules that these events' columns can't answer, in the words of `covey match` where it would, too."""
    if not errors:
        return
    index = Index.open(built.path, verify=False)
    columns = TableColumns([_arrow(events)], lacking=lacking)
    built.subscriptions -= len(errors)
    built.refused |= {bad.id for bad in errors}
    for bad in errors:
        said = f"subscription {bad.id!r}: {one_line(_reason(bad, index.filter(bad.id), columns))}"
        built.report.bad(built.places.get(bad.id, ""), said)


def _reason(bad: BadSubscription, condition: Filter, columns: TableColumns) -> CoveyError:
    text = only_spark_text(condition)
    if text is None:
        return columns.refusal(condition) or bad.error
    try:
        return columns.refusal(parse(text)) or bad.error
    except CoveyError as error:
        return error


def _say_what_cannot_fire(events: DataFrame, built: Built, *, lines: bool) -> None:
    """As `covey match` says it after its answers."""
    index = Index.open(built.path, verify=False)
    if len(index) > MOST_CHECKED:
        return
    rules = [(id, index.filter(id)) for id in index.ids() if id not in built.refused]
    rules = [(id, condition) for id, condition in rules if only_spark_text(condition) is None]
    table = _arrow(events)
    columns = TableColumns([table], lacking=True)
    if not lines:
        rules = [(id, columns.read(condition)) for id, condition in rules if columns.refusal(condition) is None]
    try:
        types = {name: one.type for name, one in Schema.infer(table).attributes.items()}
    except SchemaError:  # a column `a.b` beside a record `a` that has a `b`
        return
    if not lines:  # what is within maps and lists, for instance
        named = {name for tested in index.tested for name in term_of(tested).attributes()}
        types = {name: ANY for name in named if columns.type(name) is not None} | types
    say_findings(findings(rules, Seen.of_types(types, index.tested, mixed=lines), index.semantics))


def _arrow(events: DataFrame) -> pa.Schema:
    """The columns of types that Arrow has, too."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    found: list[pa.Field] = []
    for column in events.schema.fields:
        try:
            found.append(pa.field(column.name, to_arrow_type(column.dataType, timezone="UTC")))
        except PySparkException:
            found.append(pa.field(column.name, pa.null()))
    return pa.schema(found)


def _bulk(spark: SparkSession, built: Built, options: SparkMatchOptions) -> DataFrame:
    """File, row, the columns asked for, and an array of ids."""
    from covey.spark import match_files

    given = rows(spark, options.events, options.events_format, "--events-format")
    if given.kind != "parquet":
        raise UsageError(f"{options.events}: --bulk reads Parquet files only; leave it out")
    matched, wrong = match_files(
        spark, given.path, built.path, columns=options.columns or (), memory_budget=options.memory_budget,
        on_error="skip",
    )  # fmt: skip
    whole = Index.open(built.path, verify=False).integer_ids
    bad = [BadSubscription(row.row, int(row.id) if whole else row.id, CoveyError(row.error)) for row in wrong.collect()]
    _refuse(spark.read.parquet(given.path), built, bad, lacking=False)
    _settle(built, options)
    return cast("DataFrame", matched)


def _check_columns(wanted: list[str], there: list[str], name: str) -> None:
    for column in wanted:
        if column not in there:
            raise CoveyError(f"{name}: no column {column!r}; it has {', '.join(there)}")


def _write(
    spark: SparkSession, matched: DataFrame, built: Built, options: SparkMatchOptions, afterwards: ExitStack
) -> Summary:
    from pyspark.sql import Observation
    from pyspark.sql import functions as sf

    found = sf.size(_LISTS)
    counter = Observation()
    result = matched.observe(
        counter,
        sf.count(sf.lit(1)).alias("events"),
        sf.count_if(found > 0).alias("matched"),
        sf.coalesce(sf.sum(found), sf.lit(0)).alias("matches"),
    )
    if options.form == "pairs":
        result = result.withColumn("subscription", sf.explode(_LISTS)).drop(_LISTS)
    elif not options.all:
        result = result.where(found > 0)
    start = time.perf_counter()
    with job_progress(spark, "tasks of matching"):
        write(spark, result, str(options.output), afterwards, overwrite=options.overwrite)
    seconds = max(time.perf_counter() - start, 1e-9)
    counts = counter.get
    return Summary(
        subscriptions=built.subscriptions,
        subscriptions_left_out=built.report.count,
        build_seconds=built.seconds,
        events=counts["events"],
        matched_events=counts["matched"],
        matches=counts["matches"],
        match_seconds=seconds,
        events_per_second=counts["events"] / seconds,
        cores=cores(spark),
        master=options.remote or str(spark.conf.get("spark.master", "")),
        output=str(options.output),
    )


def check_free(output: str, *, overwrite: bool) -> None:
    """Whether a directory may be written, before any work is done."""
    if output.startswith(TABLE) or "://" in output:
        return
    if not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise CoveyError(f"{output}: the directory that it would be in doesn't exist")
    if os.path.exists(output) and not overwrite:
        raise CoveyError(f"{output} is there already; --overwrite replaces it")
    if os.path.exists(output) and not os.path.isdir(output):
        raise CoveyError(f"{output} is a file; results are a directory")


def write(
    spark: SparkSession, result: DataFrame, output: str, afterwards: ExitStack, *, overwrite: bool = False
) -> None:
    """Write a result as Parquet or as a table. On this machine a directory appears whole, by a rename, or not. What is
    left is removed `afterwards`, when the session has ended: until then, tasks of an interrupted job may write."""
    if output.startswith(TABLE):
        result.write.mode("overwrite" if overwrite else "errorifexists").saveAsTable(output.removeprefix(TABLE))
    elif "://" in output or not is_local(spark):
        result.write.mode("overwrite" if overwrite else "errorifexists").parquet(output)
    else:
        check_free(output, overwrite=overwrite)
        target = os.path.abspath(output)
        hidden = os.path.join(os.path.dirname(target), f".{os.path.basename(target)}.{uuid.uuid4().hex}")
        for leftover in (hidden, f"{hidden}.old"):
            afterwards.callback(shutil.rmtree, leftover, ignore_errors=True)
        result.write.parquet(hidden)
        _replace(hidden, target)


def _replace(fresh: str, output: str) -> None:
    if os.path.exists(output):
        os.rename(output, f"{fresh}.old")
    os.rename(fresh, output)
