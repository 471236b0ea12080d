"""`python -m benchmarks.spark`: covey on Spark beside a bare pass-through and beside what Spark users do today.

Warm, best of several, results written to Spark's `noop` sink. Events are cached in the JVM's memory, so that reading
them costs all alike, but for `match_files`, which reads Parquet. Prints tables in Markdown. Beside it,
`python -m benchmarks.spark.kafka` has JSON from a topic, and `python -m benchmarks.spark.cluster` one worker and two.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks import sections
from benchmarks.machine import describe
from benchmarks.spark import baselines
from benchmarks.spark.costs import Cost, costs_of
from benchmarks.spark.shares import PASSED, Share, cached, passed, shares, table
from benchmarks.workloads import Workload, generate
from covey.spark import local_session, match_events

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Line:
    """A line of a table of ways side by side."""

    what: str
    subscriptions: int
    rate: float


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(frame: DataFrame) -> float:
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def rate(make: Callable[[], DataFrame], events: int, runs: int) -> float:
    """Events a second, best of some runs after one that warms up."""
    frame = make()
    run(frame)
    return events / min(run(frame) for _ in range(runs))


def peer_lines(spark: SparkSession, options: argparse.Namespace, name: str) -> list[Line]:
    """covey and the others at the smaller number of subscriptions; the slow ones on fewer events."""
    n = options.small
    workload = generate(name, n, options.events)
    whole = cached(spark.createDataFrame(workload.events))
    some, few = (cached(spark.createDataFrame(workload.events.slice(0, size))) for size in (20_000, 600))
    subscriptions = spark.createDataFrame(workload.subscriptions, "id string, filter string")
    makers: list[tuple[str, Callable[[], DataFrame], int]] = [
        ("`match_events`, arrays", lambda: match_events(whole, subscriptions), options.events),
        (PASSED, lambda: whole.mapInArrow(passed, whole.schema), options.events),
    ]  # fmt: skip
    if name == "conj":
        makers += [
            ("broadcast hash join, written for this shape", lambda: baselines.hash_join(spark, whole, workload),
             options.events),
            ("brute force in Numba in `mapInArrow`, written for this shape",
             lambda: baselines.brute_force(some, workload), 20_000),
            ("broadcast nested loop join", lambda: baselines.nested_loop_join(spark, some, workload), 20_000),
        ]  # fmt: skip
    else:
        makers.append(
            ("brute force in Numba in `mapInArrow`", lambda: baselines.boolean_brute_force(some, workload), 20_000)
        )
    lines = []
    for what, make, count in makers:
        lines.append(Line(what, n, rate(make, count, options.runs)))
        say(f"{name}, {what}: {lines[-1].rate:,.0f} events/s")
    lines.append(Line("array of CASE expressions, tuned", n, case_rate(spark, few, workload)))
    say(f"{name}, {lines[-1].what}: {lines[-1].rate:,.0f} events/s")
    return lines


def case_rate(spark: SparkSession, events: DataFrame, workload: Workload) -> float:
    """Planning thousands of expressions takes long; the rate is that of the events beyond the first half."""
    half = events.limit(events.count() // 2).cache()
    seconds = []
    for frame in (half, half, events):
        seconds.append(run(baselines.case_array(spark, frame, workload)))
    for name in ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"):
        spark.conf.unset(name)
    more = seconds[2] - seconds[1]
    return half.count() / more if more > 0 else events.count() / seconds[2]


def page(found: Sequence[Share], title: str, parts: dict[str, list[Line]], costs: list[Cost], version: str) -> str:
    """covey beside the pass-through, then beside other ways, with each rate beside covey's."""
    facts = describe()
    rows = [f"{facts['Processor']}, {facts['Cores']} cores, {facts['Memory']}; PySpark {version}. {HOW}\n"]
    rows += [f"{title}\n", *table(found)]
    for heading, part in parts.items():
        rows += [f"{heading}\n", "| | events/s | covey is faster |", "|---|---:|---:|"]
        rows += [f"| {line.what} | {line.rate:,.0f} | {part[0].rate / line.rate:,.1f}× |" for line in part]
        rows.append("")
    rows.append(BOUNDS)
    if costs:
        rows += ["| | |", "|---|---:|", *(f"| {cost.what} | {cost.figure} |" for cost in costs), ""]
    return "\n".join(rows)


HOW = (
    "Events are cached in the JVM's memory, but for `match_files`, which reads Parquet; results go to Spark's `noop` "
    "sink. covey answers with ids, brute force with integers. Beside the pass-through all ways take turns, and what "
    "counts is the run that took the least of the processor, JVM and Python workers together; in the other tables it "
    "is the shortest of several runs."
)


BOUNDS = """\
What bounds these: two cores are shared by the JVM, which turns rows into Arrow and arrays of ids into rows, and by two
Python workers. `match_files` spares the first half of that; about half of its time is matching and half the JVM reading
some ten ids an event. The pass-through, which matches nothing, is the limit of `match_events`: where it is only some
ten times as fast as brute force that was written for one shape of filter, covey can't be twenty times as fast. The
machine is shared, and events a second of one run differ from those of another by a third; read shares.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--small", type=int, default=10_000, help="subscriptions for the comparison with other ways")
    parser.add_argument("--large", type=int, default=1_000_000, help="subscriptions for building and changing")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--runs", type=int, default=4, help="runs of which the best counts")
    parser.add_argument("--quick", action="store_true", help="100,000 events, 10,000 and 1,000 subscriptions")
    parser.add_argument("--shares", action="store_true", help="only covey beside the pass-through, with the goals")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    if options.quick:
        options.events, options.subscriptions, options.small, options.large = 100_000, 10_000, 1_000, 20_000
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    spark = local_session("covey benchmark", options.cores, **{"spark.driver.memory": "4g"})
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as directory:
        found = shares(spark, options, Path(directory))
        parts = {} if options.shares else {
            f"{options.small:,} `{name}` subscriptions:": peer_lines(spark, options, name) for name in ("conj", "bool")
        }  # fmt: skip
        costs = [] if options.shares else costs_of(spark, options, Path(directory))
        text = page(found, f"{options.subscriptions:,} `conj` subscriptions:", parts, costs, spark.version)
    print(text)
    if options.write:
        sections.write("spark", "On Spark", ["python", "-m", "benchmarks.spark", *sys.argv[1:]], text)


if __name__ == "__main__":
    main()
