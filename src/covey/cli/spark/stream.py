"""`covey spark stream`: events as they come, with subscriptions that change, until Ctrl-C.

Ctrl-C ends the query after the batch under way; a second one ends it at once. Either way the sink holds whole batches,
and the checkpoint knows where to go on. Spark's own answer to Ctrl-C, to cancel all jobs, would fail the batch instead.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from covey.cli.arguments import UsageError
from covey.cli.spark.arguments import SparkStreamOptions
from covey.cli.spark.session import session
from covey.cli.spark.sources import TABLE, read_event_stream, read_subscriptions
from covey.errors import CoveyError
from covey.file_names import is_index

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from covey.spark.stream import BatchReport

_LOOK: Final = 0.3
"""Seconds between two looks at whether the query has ended or should end."""

PATIENCE: Final = 60.0
"""Seconds that the batch under way is given after Ctrl-C."""


@dataclass
class Following:
    """What the stream has done so far, and whether it should go on."""

    batches: int = 0
    events: int = 0
    matches: int = 0
    version: int = 0
    stopping: bool = False
    failed: BaseException | None = None

    def hear(self, report: BatchReport) -> None:
        """Print a batch's line. It is called in a thread of the stream's."""
        self.batches += 1
        self.events += report.events or 0
        self.matches += report.matches or 0
        self.version = report.version
        try:
            print(report.line(), flush=True)
        except BrokenPipeError as error:
            self.failed = error

    def __str__(self) -> str:
        batches = f"{self.batches:,} batch{'' if self.batches == 1 else 'es'}"
        return f"{batches}, {self.events:,} events, {self.matches:,} matches, version {self.version}"


def run(options: SparkStreamOptions) -> int:
    """Match the stream until it ends."""
    assert options.output is not None
    for name in (options.output, options.checkpoint):
        if name.startswith(TABLE) or "://" in name:
            raise UsageError(f"{name}: a stream's output and checkpoint are directories on a disk or a mount")
    if is_index(options.subscriptions):
        raise UsageError(f"{options.subscriptions}: a stream takes rows of subscriptions, not a saved index")
    with session(options) as spark:
        from covey.spark import match_stream

        followed = Following()
        events = read_event_stream(spark, options)
        with _interrupts(followed):
            query = match_stream(
                events,
                _subscriptions(spark, options),
                checkpoint=os.path.abspath(options.checkpoint),
                sink=os.path.abspath(options.output),
                output=options.form,
                semantics=options.semantics or "sql",
                dialect=options.dialect,
                trigger="availableNow" if options.once else _interval(options.trigger),
                on_error=options.on_error,
                listener=followed.hear,
            )
            _follow(query, followed)
    if followed.stopping:
        raise KeyboardInterrupt(f"stopped after {followed}; the same command goes on from there")
    print(f"done: {followed}")
    return 0


def _interval(seconds: float | None) -> str | None:
    return None if seconds is None else f"{round(seconds * 1000)} milliseconds"


def _subscriptions(spark: SparkSession, options: SparkStreamOptions) -> Any:
    """A directory of change files by its path; a table or a file as a function that reads it again."""
    name = options.subscriptions
    if os.path.isdir(name):
        return os.path.abspath(name)
    if name.startswith(TABLE):
        return lambda: _named(spark.table(name.removeprefix(TABLE)), options)
    if not os.path.exists(name):
        raise CoveyError(f"{name}: No such file or directory")
    return _file(spark, options)


def _file(spark: SparkSession, options: SparkStreamOptions) -> Callable[[], tuple[int, DataFrame]]:
    """A file of (id, filter), whose version is the time when it was written, in milliseconds."""

    def current() -> tuple[int, DataFrame]:
        version = os.stat(options.subscriptions).st_mtime_ns // 1_000_000
        return version, _named(read_subscriptions(spark, options.subscriptions, options), options)

    current()  # a file that can't be read is an error here, and not of a query that stops
    return current


def _named(table: DataFrame, options: SparkStreamOptions) -> DataFrame:
    """With columns of the names that a stream knows."""
    return table.withColumnsRenamed({options.id_column: "id", options.filter_column: "filter"})


@contextmanager
def _interrupts(followed: Following) -> Iterator[None]:
    """In the block, a first Ctrl-C only asks the stream to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def asked(_number: int, _frame: object) -> None:
        if followed.stopping:
            raise KeyboardInterrupt(f"stopped after {followed}; the same command goes on from there")
        followed.stopping = True

    before = signal.signal(signal.SIGINT, asked)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _follow(query: StreamingQuery, followed: Following) -> None:
    """Until the query ends, or should."""
    try:
        while not query.awaitTermination(_LOOK):
            if followed.failed is not None:
                raise followed.failed
            if followed.stopping:
                _finish_batch(query, followed)
                return
    finally:
        if query.isActive:
            query.stop()


def _finish_batch(query: StreamingQuery, followed: Following) -> None:
    batches, start = followed.batches, time.monotonic()
    while (
        followed.batches == batches
        and query.isActive
        and query.status["isTriggerActive"]
        and time.monotonic() - start < PATIENCE
    ):
        time.sleep(_LOOK / 3)
