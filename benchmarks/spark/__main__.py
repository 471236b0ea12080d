"""`python -m benchmarks.spark`: covey on Spark beside a bare pass-through and beside what Spark users do today.

One run, warm, best of several, results written to Spark's `noop` sink. Events are cached in the JVM's memory, so that
reading them costs all alike, but for `match_files`, which reads Parquet. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks import sections
from benchmarks.machine import describe
from benchmarks.spark import baselines
from benchmarks.spark.costs import Cost, costs_of
from benchmarks.workloads import Workload, generate
from covey.spark import build_index, local_session, match_events, match_files

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Line:
    """A line of the table."""

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


def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def covey_lines(spark: SparkSession, options: argparse.Namespace, directory: Path) -> list[Line]:
    """Pass-through and covey, at the larger number of subscriptions."""
    say(f"{options.subscriptions:,} subscriptions, {options.events:,} events")
    workload = generate("conj", options.subscriptions, options.events)
    parquet = directory / "events.parquet"
    pq.write_table(workload.events, parquet, row_group_size=125_000)
    table = directory / "subscriptions.parquet"
    ids, texts = zip(*workload.subscriptions, strict=True)
    pq.write_table(pa.table({"id": ids, "filter": texts}), table, row_group_size=125_000)
    start = time.perf_counter()
    index = directory / "index.covey"
    build_index(spark.read.parquet(str(table)), index)
    say(f"built in {time.perf_counter() - start:.1f} s")
    events = cached(spark.read.parquet(str(parquet)))
    n, count, runs = options.subscriptions, options.events, options.runs
    makers: dict[str, Callable[[], DataFrame]] = {
        "`mapInArrow` that passes the columns through": lambda: events.mapInArrow(passed, events.schema),
        "`match_events`, arrays": lambda: match_events(events, index),
        "`match_events`, pairs": lambda: match_events(events, index, output="pairs"),
        "`match_events`, counts": lambda: match_events(events, index, output="counts"),
        "`match_files`, arrays": lambda: match_files(spark, parquet, index),
    }
    rare = directory / "rare.parquet"
    pq.write_table(one_in_a_hundred(workload.events), rare, row_group_size=125_000)
    few = cached(spark.read.parquet(str(rare)))
    makers |= {
        "`match_events`, `only_matches=True`, one event in 100 matches": lambda: match_events(
            few, index, only_matches=True
        ),
        "`match_files`, `only_matches=True`, one event in 100 matches": lambda: match_files(
            spark, rare, index, only_matches=True
        ),
    }
    lines = []
    for what, make in makers.items():
        lines.append(Line(what, n, rate(make, count, runs)))
        say(f"{what}: {lines[-1].rate:,.0f} events/s")
    events.unpersist()
    few.unpersist()
    return lines


def one_in_a_hundred(events: pa.Table) -> pa.Table:
    """The same events, of which 99 in 100 are of a symbol that no rule names."""
    symbols = events["symbol"].to_pylist()
    others = [symbol if number % 100 == 0 else "-" for number, symbol in enumerate(symbols)]
    return events.set_column(events.schema.get_field_index("symbol"), "symbol", pa.array(others))


def peer_lines(spark: SparkSession, options: argparse.Namespace, name: str) -> list[Line]:
    """covey and the others at the smaller number of subscriptions; the slow ones on fewer events."""
    n = options.small
    workload = generate(name, n, options.events)
    whole = cached(spark.createDataFrame(workload.events))
    some, few = (cached(spark.createDataFrame(workload.events.slice(0, size))) for size in (20_000, 600))
    subscriptions = spark.createDataFrame(workload.subscriptions, "id string, filter string")
    makers: list[tuple[str, Callable[[], DataFrame], int]] = [
        ("`match_events`, arrays", lambda: match_events(whole, subscriptions), options.events),
        ("`mapInArrow` that passes the columns through", lambda: whole.mapInArrow(passed, whole.schema),
         options.events),
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


def cached(events: DataFrame) -> DataFrame:
    events = events.repartition(4).cache()
    events.count()
    return events


def page(parts: dict[str, list[Line]], costs: list[Cost], spark: SparkSession) -> str:
    """The tables, with each rate beside the first line's."""
    facts = describe()
    rows = [f"{facts['Processor']}, {facts['Cores']} cores, {facts['Memory']}; PySpark {spark.version}. {HOW}\n"]
    for number, (title, part) in enumerate(parts.items()):
        against = "covey is faster" if number else "of the pass-through"
        rows += [f"{title}\n", f"| | events/s | {against} |", "|---|---:|---:|"]
        for line in part:
            ratio = f"{part[0].rate / line.rate:,.1f}×" if number else f"{line.rate / part[0].rate:.2f}"
            rows.append(f"| {line.what} | {line.rate:,.0f} | {ratio} |")
        rows.append("")
    rows += [BOUNDS]
    rows += ["| | |", "|---|---:|", *(f"| {cost.what} | {cost.figure} |" for cost in costs), ""]
    return "\n".join(rows)


HOW = (
    "Events are cached in the JVM's memory, but for `match_files`, which reads Parquet; results go to Spark's `noop` "
    "sink; best of several runs after one that warms up. covey answers with ids, brute force with integers."
)


BOUNDS = """\
What bounds these: two cores are shared by the JVM, which turns rows into Arrow and arrays of ids into rows, and by two
Python workers. `match_files` spares the first half of that; about half of its time is matching and half the JVM reading
some ten ids an event. The pass-through, which matches nothing, is the limit of `match_events`: where it is only some
ten times as fast as brute force that was written for one shape of filter, covey can't be twenty times as fast. The
machine is shared, and figures of one run differ from those of another by a third; read ratios.
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
    parser.add_argument("--shares", action="store_true", help="only covey beside the pass-through")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    if options.quick:
        options.events, options.subscriptions, options.small, options.large = 100_000, 10_000, 1_000, 20_000
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    spark = local_session("covey benchmark", options.cores, **{"spark.driver.memory": "4g"})
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as directory:
        parts = {f"{options.subscriptions:,} `conj` subscriptions:": covey_lines(spark, options, Path(directory))}
        for name in () if options.shares else ("conj", "bool"):
            parts[f"{options.small:,} `{name}` subscriptions:"] = peer_lines(spark, options, name)
        costs = [] if options.shares else costs_of(spark, options, Path(directory))
        text = page(parts, costs, spark)
    print(text)
    if options.write:
        sections.write("spark", "On Spark", ["python", "-m", "benchmarks.spark", *sys.argv[1:]], text)


if __name__ == "__main__":
    main()
