"""A driver of a stream for tests that kill it: `python stream_driver.py WORK [POINT BATCH]`.

WORK has `events/` (all there from the start, one file a micro-batch), `pending/` (change files, of which one moves to
`changes/` at the start of the driver and one before each new batch, so that a replayed batch always has newer
changes that it must not use). With a point and a batch the driver says when it gets there and waits to be killed.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from covey.spark.session import local_session
from covey.spark.stream import BatchReport, match_stream
from covey.spark.stream.changes import SubscriptionLog
from covey.spark.stream.journal import Journal
from covey.spark.stream.sink import ParquetSink

POINTS = ("saved", "decided", "writing", "written", "committed", "between")
EVENTS = "n int, price double, symbol string, volume int"


def say_and_wait(point: str, batch: int) -> None:
    print(f"at {point} {batch}", flush=True)
    time.sleep(120)
    sys.exit("nobody killed me")


def release(work: Path) -> None:
    pending = sorted((work / "pending").iterdir())
    if pending:
        pending[0].rename(work / "changes" / pending[0].name)


def wrap(owner: type, name: str, *, before: Callable[..., None] | None = None, after: Any = None) -> None:
    original = getattr(owner, name)

    def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        if before is not None:
            before(self, *arguments, **named)
        result = original(self, *arguments, **named)
        if after is not None:
            after(self, *arguments, **named)
        return result

    setattr(owner, name, wrapped)


def watch(happened: Callable[[], bool], point: str, batch: int) -> None:
    def poll() -> None:
        while not happened():
            time.sleep(0.01)
        say_and_wait(point, batch)

    threading.Thread(target=poll, daemon=True).start()


def prepare(work: Path, point: str | None, wanted: int) -> None:
    """Put a pause where it was asked for."""
    wrap(SubscriptionLog, "refresh", before=lambda *_: release(work))

    def at(batch: int) -> None:
        if batch == wanted and point is not None:
            say_and_wait(point, batch)

    if point == "saved":
        wrap(Journal, "decide", before=lambda _, batch, version, **__: at(batch))
    elif point == "decided":
        wrap(Journal, "decide", after=lambda _, batch, version, **__: at(batch))
    elif point == "written":
        wrap(ParquetSink, "_commit", before=lambda _, hidden, batch: at(batch))
    elif point == "committed":
        wrap(ParquetSink, "_commit", after=lambda _, hidden, batch: at(batch))
    elif point == "writing":
        watch(lambda: any((work / "sink").glob(f"_writing-{wanted}-*")), point, wanted)
    elif point == "between":
        watch(lambda: (work / "checkpoint" / "commits" / str(wanted)).exists(), point, wanted)


def slow(events: DataFrame) -> DataFrame:
    """The same events, 50 ms each."""

    def pause(n: int) -> bool:
        time.sleep(0.05)
        return True

    return events.where(sf.udf(pause, "boolean")("n"))


def report(done: BatchReport) -> None:
    print(done.line(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("point", nargs="?", choices=POINTS)
    parser.add_argument("batch", nargs="?", type=int, default=-1)
    parser.add_argument("--connect", action="store_true")
    given = parser.parse_args()
    work: Path = given.work
    release(work)
    prepare(work, given.point, given.batch)
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.log.level": "ERROR"}
    spark = local_session(cores=2, connect=given.connect, **quick)
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(str(work / "events"))
    query = match_stream(
        slow(events) if given.point in ("writing", "between") else events,
        work / "changes",
        checkpoint=work / "checkpoint",
        sink=work / "sink",
        trigger="availableNow",
        listener=report,
    )
    query.awaitTermination()
    print("done", flush=True)


if __name__ == "__main__":
    main()
