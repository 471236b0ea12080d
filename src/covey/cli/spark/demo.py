"""The demo on Spark: quotes in Parquet files matched as a batch, then quotes that arrive as a stream while traders
change their minds.

The stream is fed one file at a time, each after the micro-batch before it was reported, and changes are put between
two files: so each run of a seed gives the same matches, and the versions can be seen to take effect.
"""

from __future__ import annotations

import json
import queue
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from covey.cli.arguments import DemoOptions
from covey.cli.demo import NOTICE, PATIENCE, load_kernels, show_matches, show_wishes, timed
from covey.cli.spark.joins import Compared, compare
from covey.cli.spark.page import Batch, Page, html
from covey.cli.spark.session import cores, job_progress, session
from covey.cli.stocks import Market, changes, market, quotes, wishes
from covey.errors import CoveyError
from covey.file_names import INDEX_SUFFIX
from covey.matching import Index, Statistics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from covey.history import Profile
    from covey.spark.stream import BatchReport

_QUOTES: Final = 1_000_000
_FILES: Final = 8
_SYMBOLS: Final = 20
_ON_SCREEN: Final = 5
_BAR: Final = 40
_SAMPLE: Final = 32_768

_BATCHES: Final = 6
_STREAMED: Final = 0.3
"""Quotes of the stream, as a share of those of the batch."""
_CHANGES: Final = 0.02
"""Traders that change their minds in each version, as a share."""
_CHANGED_BEFORE: Final = {1: 2, 3: 3, 5: 4}
"""Which version comes before which micro-batch; version 1 is there from the start."""
_JOINS, _LEAVES = 2, 4
_YOU: Final = "you"
_LOOK: Final = 0.1
_WAIT: Final = 300.0
"""Seconds after which a micro-batch that isn't reported is taken to be lost."""


@dataclass(frozen=True, slots=True)
class Made:
    """The market in files."""

    stocks: Market
    texts: list[tuple[str, str]]
    quotes: pa.Table
    quotes_path: str
    traders_path: str
    streamed: list[pa.Table]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the demo, and what it took."""

    name: str
    rows: int
    what: str
    seconds: float
    matches: int | None = None

    def cells(self) -> tuple[str, ...]:
        """As a row of a table."""
        found = "" if self.matches is None else f"{self.matches:,}"
        return (
            self.name,
            f"{self.rows:,} {self.what}",
            found,
            f"{self.seconds:.1f} s",
            f"{self.rows / self.seconds:,.0f}",
        )


@dataclass(frozen=True, slots=True)
class Streamed:
    """What the stream has done."""

    reports: list[BatchReport]
    heard: dict[int, int]
    """By batch: quotes that the trader who joins has heard of."""
    wish: str


def run(options: DemoOptions, console: Console) -> int:
    """Show the whole way."""
    page = Path(str(options.output))
    if not page.absolute().parent.is_dir():
        raise CoveyError(f"{page}: the directory that it would be in doesn't exist")
    start = time.perf_counter()
    console.print("A market of made-up stocks. Starting Spark …\n")
    with tempfile.TemporaryDirectory(prefix="covey-demo-") as name, ThreadPoolExecutor(1) as beside:
        scratch = Path(name)
        # The JVM starts in another process meanwhile.
        making = beside.submit(_make, options, scratch)
        with session(options) as spark:
            made = _made(making, console)
            _warm(spark, made, scratch)
            _show(spark, made, options, scratch, time.perf_counter() - start, console)
    console.print(f"\nCharts of all this: [bold]{escape(str(page))}[/]. It took {time.perf_counter() - start:.0f} s.")
    return 0


def _made(making: Future[Made], console: Console) -> Made:
    """The market when it is made. Only this thread writes to the screen, where a bar stands until Spark has started."""
    try:
        return making.result(timeout=PATIENCE)
    except TimeoutError:
        console.print(NOTICE)
        return making.result()


def _make(options: DemoOptions, scratch: Path) -> Made:
    stocks, count = market(options.seed), options.quotes or _QUOTES
    load_kernels(stocks, options.seed)
    texts, day = wishes(stocks, options.traders, options.seed), quotes(stocks, count, options.seed)
    traders = scratch / "traders.parquet"
    ids, filters = zip(*texts, strict=True)
    parquet.write_table(pa.table({"id": ids, "filter": filters}), traders)
    folder = scratch / "quotes"
    folder.mkdir()
    for number, part in enumerate(_parts(day, _FILES)):
        parquet.write_table(part, folder / f"{number}.parquet")
    later = quotes(stocks, max(_BATCHES, int(count * _STREAMED)), options.seed + 1)
    return Made(stocks, texts, day, str(folder), str(traders), _parts(later, _BATCHES))


def _parts(table: pa.Table, count: int) -> list[pa.Table]:
    """The rows in as many runs."""
    edges = [table.num_rows * place // count for place in range(count + 1)]
    return [table.slice(first, last - first) for first, last in pairwise(edges)]


def _warm(spark: SparkSession, made: Made, scratch: Path) -> None:
    """Start Python workers and load the kernels there, on a few quotes: that happens once, and isn't matching."""
    from covey.spark import match_events

    few = str(scratch / "few.parquet")
    parquet.write_table(made.quotes.slice(0, 2_000), few)
    index = Index()
    index.add_many(made.texts[:2_000])
    workers = cores(spark) or 1
    match_events(spark.read.parquet(few).repartition(workers), index).write.format("noop").mode("overwrite").save()


def _show(
    spark: SparkSession, made: Made, options: DemoOptions, scratch: Path, started: float, console: Console
) -> None:
    show_wishes(made.texts, console)
    console.print()
    known, profiled = _profile(spark, made)
    index, built = _build(spark, made, scratch, known.statistics())
    first = made.quotes.slice(0, _SAMPLE)
    show_matches(index, made.quotes, index.match_batch(first), console)
    by_symbol, batch = _match(spark, made, scratch)
    console.print(_bars(by_symbol))
    console.print()
    streamed, stream = _stream(spark, made, options, scratch, console)
    console.print()
    alone = _alone(spark, made, index, console)
    parts = [profiled, built, batch, stream]
    console.print(_table(parts))
    slower = batch.rows / batch.seconds / alone.rate
    console.print(
        f"[bold]Spark alone[/], by {alone.shapes} joins, one for each shape of wish, on {alone.quotes:,} of these "
        f"quotes: the same {alone.matches:,} matches, {alone.rate:,.0f} quotes/s, which is "
        f"[bold]{slower:,.0f} times slower[/]."
    )
    where = f"Spark {spark.version} on {cores(spark)} cores"
    console.print(f"{where}; it took {started:.1f} s to start Spark, its workers and the kernels. Seed {options.seed}.")
    page = _page(parts, slower, by_symbol, streamed, known.summary(), f"{where}, seed {options.seed}")
    Path(str(options.output)).write_text(html(page), encoding="utf-8")


def _profile(spark: SparkSession, made: Made) -> tuple[Profile, Part]:
    """What quotes and wishes are like, from which the index knows what is rare."""
    from covey.spark import profile

    with timed() as profiling, job_progress(spark, "tasks of profiling"):
        known = profile(spark.read.parquet(made.quotes_path), spark.read.parquet(made.traders_path))
    return known, Part("profile", made.quotes.num_rows, "quotes", profiling.seconds)


def _build(spark: SparkSession, made: Made, scratch: Path, statistics: Statistics) -> tuple[Index, Part]:
    from covey.spark import build_index

    path = scratch / f"traders{INDEX_SUFFIX}"
    with timed() as building, job_progress(spark, "tasks of indexing"):
        build_index(spark.read.parquet(made.traders_path), path, statistics=statistics)
    return Index.open(path), Part("index", len(made.texts), "traders", building.seconds)


def _match(spark: SparkSession, made: Made, scratch: Path) -> tuple[list[tuple[str, int]], Part]:
    """The matches of every symbol, the most first."""
    from pyspark.sql import functions as sf

    from covey.spark import match_events

    events = spark.read.parquet(made.quotes_path)
    with timed() as matching, job_progress(spark, "tasks of matching"):
        matched = match_events(events, scratch / f"traders{INDEX_SUFFIX}")
        found = matched.groupBy("symbol").agg(sf.sum(sf.size("subscriptions")).alias("matches")).collect()
    by_symbol = sorted(((row.symbol, row.matches) for row in found), key=lambda pair: (-pair[1], pair[0]))
    total = sum(matches for _, matches in by_symbol)
    return by_symbol, Part("batch", made.quotes.num_rows, "quotes", matching.seconds, total)


def _alone(spark: SparkSession, made: Made, index: Index, console: Console) -> Compared:
    """What Spark does without covey, on a sample; its matches must be the same."""
    with console.status("the same by joins, on a sample …"):
        alone = compare(spark, made.quotes, made.texts)
    ours = len(index.match_batch(made.quotes.slice(0, alone.quotes)))
    if alone.matches != ours:
        raise CoveyError(f"joins give {alone.matches:,} matches and covey {ours:,}; please report this")
    return alone


def _stream(
    spark: SparkSession, made: Made, options: DemoOptions, scratch: Path, console: Console
) -> tuple[Streamed, Part]:
    from covey.spark import match_stream, read_matches

    quotes_in, changes_in, sink = (scratch / name for name in ("stream", "changes", "matches"))
    quotes_in.mkdir()
    changes_in.mkdir()
    first = [{"version": 1, "op": "add", "id": name, "filter": text} for name, text in made.texts]
    _put(changes_in / "1.jsonl", first)
    wish = f"symbol = '{made.stocks.symbols[0]}'"
    events = spark.readStream.schema(spark.read.parquet(made.quotes_path).schema).parquet(str(quotes_in / "*"))
    heard: queue.SimpleQueue[BatchReport] = queue.SimpleQueue()
    console.print("[bold]The same as a stream[/], one line a micro-batch. Traders change their minds while it runs:")
    reports: list[BatchReport] = []
    query = match_stream(events, changes_in, checkpoint=scratch / "checkpoint", sink=sink, listener=heard.put)
    try:
        for number, part in enumerate(made.streamed):
            version = _CHANGED_BEFORE.get(number)
            if version is not None:
                rows = _changes(made, options, version, wish)
                _put(changes_in / f"{version}.jsonl", rows)
                console.print(f"  version {version}: {_said(rows, wish)}")
            _arrive(part, quotes_in / str(number), scratch / "next", cores(spark) or 1)
            reports.append(_next(heard, query))
            console.print(f"  {_line(reports[-1])}")
    finally:
        query.stop()
    counts = read_matches(spark, sink).where(f"array_contains(subscriptions, '{_YOU}')").groupBy("batch").count()
    by_batch = {int(row.batch): int(row["count"]) for row in counts.collect()}
    seconds = sum(report.seconds for report in reports)
    matches = sum(report.matches or 0 for report in reports)
    rows_streamed = sum(part.num_rows for part in made.streamed)
    return Streamed(reports, by_batch, wish), Part("stream", rows_streamed, "quotes", seconds, matches)


def _arrive(quotes: pa.Table, target: Path, beside: Path, files: int) -> None:
    """Quotes in as many files as can be read at a time, which all appear at once."""
    beside.mkdir()
    for number, part in enumerate(_parts(quotes, files)):
        parquet.write_table(part, beside / f"{number}.parquet")
    beside.rename(target)


def _put(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write beside the target, then rename: a reader sees the whole file or none."""
    hidden = path.with_name("." + path.name)
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    hidden.rename(path)


def _changes(made: Made, options: DemoOptions, version: int, wish: str) -> list[dict[str, Any]]:
    rows = changes(made.stocks, len(made.texts), int(len(made.texts) * _CHANGES), options.seed, version)
    if version == _JOINS:
        rows.append({"version": version, "op": "add", "id": _YOU, "filter": wish})
    if version == _LEAVES:
        rows.append({"version": version, "op": "remove", "id": _YOU, "filter": None})
    return rows


def _said(rows: Sequence[dict[str, Any]], wish: str) -> str:
    new = sum(row["op"] == "replace" for row in rows)
    gone = sum(row["op"] == "remove" and row["id"] != _YOU for row in rows)
    yours = [row["op"] for row in rows if row["id"] == _YOU]
    you = {"add": f", and you join: {wish}", "remove": ", and you leave"}[yours[0]] if yours else ""
    return f"{new:,} traders want something else, {gone:,} leave{you}"


def _next(heard: queue.SimpleQueue[BatchReport], query: StreamingQuery) -> BatchReport:
    """The report of the micro-batch under way; an error where the query ended instead."""
    start = time.monotonic()
    while time.monotonic() - start < _WAIT:
        try:
            return heard.get(timeout=_LOOK)
        except queue.Empty:
            if query.awaitTermination(_LOOK):  # which raises what has ended it
                raise CoveyError("the stream has ended") from None
    raise CoveyError(f"the stream gave no answer for {_WAIT:.0f} s")


def _line(report: BatchReport) -> str:
    changed = f", {report.changes:,} changes in {report.change_seconds:.2f} s" if report.changes else ""
    return (
        f"batch {report.batch}  {report.events or 0:>7,} quotes  {report.matches or 0:>10,} matches  "
        f"version {report.version}  {report.seconds:5.2f} s  {report.events_per_second:>8,.0f} quotes/s{changed}"
    )


def _bars(by_symbol: Sequence[tuple[str, int]]) -> Table:
    table = Table("most heard of", "matches", "", box=None, pad_edge=False, header_style="bold")
    most = max((matches for _, matches in by_symbol), default=0) or 1
    for symbol, matches in by_symbol[:_ON_SCREEN]:
        table.add_row(symbol, f"{matches:,}", "█" * round(_BAR * matches / most))
    table.columns[1].justify = "right"
    return table


_HEADING: Final = ("part", "of", "matches", "time", "a second")


def _table(parts: Sequence[Part]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in _HEADING:
        table.add_column(name, justify="left" if name == "part" else "right")
    for part in parts:
        table.add_row(*part.cells())
    return table


def _page(
    parts: Sequence[Part],
    slower: float,
    by_symbol: Sequence[tuple[str, int]],
    streamed: Streamed,
    known: str,
    where: str,
) -> Page:
    _, index, batch, stream = parts
    return Page(
        title="covey: who hears of what",
        subtitle=f"{index.rows:,} traders, {batch.rows:,} stock quotes, all made up; {where}",
        facts=[
            ("matches", f"{batch.matches or 0:,}"),
            ("quotes/s, batch", f"{batch.rows / batch.seconds:,.0f}"),
            ("quotes/s, stream", f"{stream.rows / stream.seconds:,.0f}"),
            ("times slower by joins", f"{slower:,.0f}"),
        ],
        symbols=by_symbol[:_SYMBOLS],
        joined=f"“{_YOU}”, who asked for {streamed.wish}",
        batches=[Batch(report.version, streamed.heard.get(report.batch, 0)) for report in streamed.reports],
        known=known,
        parts=[_HEADING, *(part.cells() for part in parts)],
    )
