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
from pathlib import Path
from typing import TYPE_CHECKING, cast

from covey.cli.arguments import UsageError
from covey.cli.spark.arguments import SparkMatchOptions
from covey.cli.spark.session import cores, is_local, job_progress, session
from covey.cli.spark.sources import TABLE, read_events, read_subscriptions, rows
from covey.cli.subscriptions import SubscriptionFile, as_one_kind, schema_of
from covey.cli.terminal import MOST_SHOWN, BadRowsError, Report, complain, one_line, unwatched
from covey.errors import CoveyError, skips
from covey.events import Schema
from covey.events.files import source
from covey.file_names import INDEX_SUFFIX, is_index
from covey.language import parse
from covey.matching import AddManyError, BadSubscription, Index
from covey.matching.against import Seen
from covey.matching.only_spark import only_spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LISTS = "subscriptions"
SUBSCRIPTIONS_FORMAT = "--subscriptions-format"


@dataclass(slots=True)
class Built:
    """The index of the user's subscriptions, in a file."""

    path: str
    subscriptions: int
    seconds: float | None
    """None where it was there already."""
    left_out: int
    places: Mapping[object, str] = field(default_factory=dict)
    """Where each stands, by id, where that is known."""


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
    if built.left_out:
        complain(f"left out {built.left_out:,} subscription{'' if built.left_out == 1 else 's'}")
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
    if options.all and options.form == "pairs":
        raise UsageError("--all needs --format array: an event without matches has no pairs")


def _index(spark: SparkSession, options: SparkMatchOptions, scratch: Path) -> Built:
    if is_index(options.subscriptions):
        return Built(options.subscriptions, len(Index.open(options.subscriptions, verify=False)), None, 0)
    from covey.spark import build_index

    path = options.index or str(scratch / f"index{INDEX_SUFFIX}")
    report = Report("subscription", options.subscriptions)
    start = time.perf_counter()
    if is_local(spark) and os.path.isfile(options.subscriptions):
        path = str(scratch / f"index{INDEX_SUFFIX}")  # kept when it is known to fit the events
        added_here, left_out, places = _from_file(options, path)
        return Built(path, added_here, time.perf_counter() - start, left_out, places)
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
    return Built(path, added.added, time.perf_counter() - start, report.count)


def _from_file(options: SparkMatchOptions, path: str) -> tuple[int, int, dict[object, str]]:
    """The index of one file of this machine, read as `covey match` reads it, which names the lines that are bad; how
    many it has and how many not, and where each stands. What only Spark reads goes with the others."""
    from covey.spark.only_spark import add_rules

    given = SubscriptionFile(source(options.subscriptions, options.subscriptions_format, SUBSCRIPTIONS_FORMAT), options)
    schema = schema_of(options)
    index = Index(semantics=options.semantics or "sql", schema=schema)
    pairs = as_one_kind(list(given.pairs(unwatched)))
    if schema is not None:
        added = index.add_many(pairs, on_error="skip")
    else:
        added = add_rules(index, pairs, dialect="sql", on_error="skip")
    given.settle(added.errors)
    index.save(path)
    wrong = {bad.row for bad in added.errors}
    places = {id: f"{given.source.name} {given.place(at)}" for at, (id, _) in enumerate(pairs) if at not in wrong}
    return added.added, given.report.count, places


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
    placed = place(events, built.path, on_error="skip", memory_budget=options.memory_budget)
    _say_unfit(events, built, placed.errors, options)
    matched = match_placed(events, placed)
    if options.columns is None:
        return matched
    return matched.select(*(quoted(name) for name in options.columns), _LISTS)


def _say_unfit(events: DataFrame, built: Built, errors: Sequence[BadSubscription], options: SparkMatchOptions) -> None:
    """Say which rules these events' columns can't meet, in the words of `covey match` where it would say it too."""
    if errors:
        _name_unfit(events, built, errors)
        built.left_out += len(errors)
        built.subscriptions -= len(errors)
    if built.left_out and not skips(options.on_error):
        few = f"{built.left_out:,} subscription{'' if built.left_out == 1 else 's'}"
        raise BadRowsError(f"{few} can't be used, so nothing was done; --on-error skip goes on without")


def _name_unfit(events: DataFrame, built: Built, errors: Sequence[BadSubscription]) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    index = Index.open(built.path, verify=False)
    names = Schema.infer(to_arrow_schema(events.schema)).attributes
    seen = Seen.of_types({name: attribute.type for name, attribute in names.items()}, index.tested)
    for place, bad in enumerate(errors):
        if place < MOST_SHOWN:
            complain(_unfit(bad, index, seen, built.places))
    if len(errors) > MOST_SHOWN:
        complain(f"and {len(errors) - MOST_SHOWN:,} more can't be used on these events")


def _unfit(bad: BadSubscription, index: Index, seen: Seen, places: Mapping[object, str]) -> str:
    condition = index.filter(bad.id)
    text = only_spark_text(condition)
    if text is not None:
        try:
            parse(text)
        except CoveyError as error:
            place = f"{places[bad.id]}: " if bad.id in places else ""
            return f"{place}subscription {bad.id!r}: {one_line(error)}"
    found = seen.cannot_fire(bad.id, condition, index.semantics)
    return str(found) if found is not None else f"subscription {bad.id!r} can't be used: {one_line(bad.error)}"


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
    _say_unfit(spark.read.parquet(given.path), built, bad, options)
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
        subscriptions_left_out=built.left_out,
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
