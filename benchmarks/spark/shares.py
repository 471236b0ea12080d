"""What covey's ways of matching cost on Spark, as shares of a `mapInArrow` that passes the columns through.

All ways run in turn, and that several times, in one session. A share is that of processor time, of the JVM and its
Python workers together: the pass-through's over the way's, so that 0.5 is twice its cost. It stays what it is while
the machine does other things, as wall time doesn't; events a second are beside it, by the shortest run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark.processors import interleaved, java_of
from benchmarks.workloads import generate
from covey.spark import build_index, match_events, match_files

PASSED = "`mapInArrow` that passes the columns through"
SUBSCRIPTIONS = 100_000
GOALS = {
    "`match_events`, arrays": 0.65,
    "`match_events`, pairs": 0.5,
    "`match_files`, arrays": 1.0,
    "`match_events`, `only_matches=True`, one event in 100 matches": 0.85,
    "`match_files`, `only_matches=True`, one event in 100 matches": 1.5,
}
"""Shares that are asked for with so many `conj` subscriptions on two cores."""


@dataclass(frozen=True, slots=True)
class Share:
    """A line of the table."""

    what: str
    rate: float
    """Events a second, by the shortest run."""
    cost: float
    """Processor time of an event in microseconds, by the cheapest run,"""
    java: float
    """of which the JVM's."""
    share: float
    """The pass-through's processor time over this."""
    wall_share: float
    goal: float | None

    def row(self) -> str:
        """In Markdown."""
        goal = "" if self.goal is None else f"{self.goal:.2f}"
        return (
            f"| {self.what} | {self.rate:,.0f} | {self.wall_share:.2f} | {self.cost:.2f} | {self.java:.2f} "
            f"| {self.share:.2f} | {goal} |"
        )


HEAD = """\
| | events/s | of the pass-through's | µs of processor time an event | of that Java's | share by processor time | goal |
|---|---:|---:|---:|---:|---:|---:|"""


def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What matches nothing."""
    yield from batches


def shares(spark: SparkSession, options: argparse.Namespace, directory: Path) -> list[Share]:
    """All ways at the larger number of subscriptions, the pass-through first."""
    count = options.events
    print(f"{options.subscriptions:,} subscriptions, {count:,} events", file=sys.stderr)
    workload = generate("conj", options.subscriptions, count)
    files = {"events": workload.events, "rare": one_in_a_hundred(workload.events)}
    for name, table in files.items():
        pq.write_table(table, directory / f"{name}.parquet", row_group_size=125_000)
    ids, texts = zip(*workload.subscriptions, strict=True)
    pq.write_table(pa.table({"id": ids, "filter": texts}), directory / "rules.parquet", row_group_size=125_000)
    start, index = time.perf_counter(), directory / "index.covey"
    build_index(spark.read.parquet(str(directory / "rules.parquet")), index)
    print(f"built in {time.perf_counter() - start:.1f} s", file=sys.stderr)
    events, few = (cached(spark.read.parquet(str(directory / f"{name}.parquet"))) for name in files)
    makers = makers_of(spark, index, events, few, directory)
    assert set(GOALS) < set(makers)
    found = interleaved(makers, [java_of(spark)], options.runs, warm=2)
    events.unpersist()
    few.unpersist()
    bare = found[PASSED]
    return [
        Share(what, count / best.wall, best.processor / count * 1e6, best.least.java / count * 1e6,
              bare.processor / best.processor, bare.wall / best.wall,
              GOALS.get(what) if options.subscriptions == SUBSCRIPTIONS else None)
        for what, best in found.items()
    ]  # fmt: skip


def makers_of(
    spark: SparkSession, index: Path, events: DataFrame, few: DataFrame, directory: Path
) -> dict[str, Callable[[], DataFrame]]:
    """The ways by their names. What matches is `events`, or `few` where one in a hundred does."""
    files, rare = directory / "events.parquet", directory / "rare.parquet"
    return {
        PASSED: lambda: events.mapInArrow(passed, events.schema),
        "`match_events`, arrays": lambda: match_events(events, index),
        "`match_events`, pairs": lambda: match_events(events, index, output="pairs"),
        "`match_events`, counts": lambda: match_events(events, index, output="counts"),
        "`match_files`, arrays": lambda: match_files(spark, files, index),
        "`match_events`, `only_matches=True`, one event in 100 matches": lambda: match_events(
            few, index, only_matches=True
        ),
        "`match_files`, `only_matches=True`, one event in 100 matches": lambda: match_files(
            spark, rare, index, only_matches=True
        ),
    }


def one_in_a_hundred(events: pa.Table) -> pa.Table:
    """The same events, of which 99 in 100 are of a symbol that no rule names."""
    symbols = events["symbol"].to_pylist()
    others = [symbol if number % 100 == 0 else "-" for number, symbol in enumerate(symbols)]
    return events.set_column(events.schema.get_field_index("symbol"), "symbol", pa.array(others))


def cached(events: DataFrame) -> DataFrame:
    """In the JVM's memory, so that reading costs all alike."""
    events = events.repartition(4).cache()
    events.count()
    return events


def table(found: Sequence[Share]) -> list[str]:
    """Lines of Markdown: the table, and which goals aren't met."""
    if not any(one.goal for one in found):
        return [HEAD, *(one.row() for one in found), ""]
    said = " ".join((_verdict("processor time", found, lambda one: one.share),
                     _verdict("the wall clock", found, lambda one: one.wall_share)))  # fmt: skip
    return [HEAD, *(one.row() for one in found), "", said, ""]


def _verdict(what: str, found: Sequence[Share], share: Callable[[Share], float]) -> str:
    missed = [f"{one.what} ({share(one):.2f} of {one.goal:.2f})" for one in found if one.goal and share(one) < one.goal]
    return f"By {what}, below their goals: {'; '.join(missed)}." if missed else f"By {what} all goals are met."
