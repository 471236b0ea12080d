"""`python -m benchmarks.spark.cluster`: how much faster two workers of a standalone cluster are than one.

A master and two workers run on loopback in processes of their own, as in the tests, each with an executor that is
pinned to a core of its own, its JVM and its Python: left alone, the JVM reads on while Python matches, and one worker
takes more than a core. A session that may have one executor matches first, then one that may have both; executors read
the events from Parquet files.

Driver and master share these cores, as they don't on a real cluster. So beside the wall clock stands what doesn't
depend on what else the cores do: the processor time of the one executor over that of the busier one of two. It is 2
where the work is shared evenly and nothing is done twice.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from tests.spark.cluster import running

from benchmarks import sections
from benchmarks.machine import describe
from benchmarks.spark.processors import below, command_of, seconds, threads_of
from benchmarks.workloads import generate
from covey.spark import build_index, local_session, match_events

GOAL = 1.7
EXECUTOR = "CoarseGrainedExecutorBackend"
FILES = 16
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Run:
    """One job over all events."""

    wall: float
    executors: tuple[float, ...]
    """Processor seconds of each, its JVM and its Python."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.cluster", description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        prepare(work, options)
        with running(work) as cluster:
            found = {workers: measured(cluster.address, workers, work, options) for workers in (1, 2)}
    text = page(found, options)
    print(text)
    if options.write:
        sections.write("cluster", "On a cluster", ["python", "-m", "benchmarks.spark.cluster", *sys.argv[1:]], text)


def prepare(work: Path, options: argparse.Namespace) -> None:
    """Events in files of the same size, and rules."""
    workload = generate("conj", options.subscriptions, options.events)
    events, size = work / "events", -(-options.events // FILES)
    events.mkdir()
    for number in range(FILES):
        pq.write_table(workload.events.slice(number * size, size), events / f"{number}.parquet")
    ids, texts = zip(*workload.subscriptions, strict=True)
    pq.write_table(pa.table({"id": ids, "filter": texts}), work / "rules.parquet")


def measured(address: str, workers: int, work: Path, options: argparse.Namespace) -> list[Run]:
    """Runs of a session that has so many executors, after those that warm up."""
    settings = {
        "spark.master": address, "spark.cores.max": workers, "spark.executor.cores": 1, "spark.executor.memory": "600m",
        "spark.driver.memory": "1g", "spark.sql.files.maxPartitionBytes": "32m", "spark.locality.wait": "0",
    }  # fmt: skip
    spark = local_session(f"covey on {workers}", **settings)
    spark.sparkContext.setLogLevel("ERROR")
    index = work / f"rules-{workers}.covey"
    build_index(spark.read.parquet(str(work / "rules.parquet")), index)
    matched = match_events(spark.read.parquet(str(work / "events")), index)
    runs = []
    for number in range(2 + options.runs):
        run = timed(matched)
        print(f"{workers}: {run.wall:.2f} s, {', '.join(f'{one:.2f}' for one in run.executors)} of executors",
              file=sys.stderr, flush=True)  # fmt: skip
        executors = pin()
        if number >= 2 and len(executors) == workers:
            runs.append(run)
    spark.stop()
    if not runs:
        raise SystemExit(f"the cluster gave {len(executors)} executors instead of {workers}")
    return runs


def timed(frame: DataFrame) -> Run:
    executors = pin()
    before, start = [sum(seconds([one])) for one in executors], time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    wall = time.perf_counter() - start
    return Run(wall, tuple(sum(seconds([one])) - was for one, was in zip(executors, before, strict=True)))


def pin() -> list[int]:
    """The executors' JVMs. Each is bound to a core of its own with all of its threads and all that is below it, and so
    is what they start from now on."""
    executors = sorted(one for one in below(os.getpid()) if EXECUTOR in command_of(one))
    cores = sorted(os.sched_getaffinity(0))
    for number, executor in enumerate(executors):
        for process in (executor, *below(executor)):
            for thread in threads_of(process):
                with suppress(ProcessLookupError):  # it has just ended
                    os.sched_setaffinity(thread, {cores[number % len(cores)]})
    return executors


def page(found: dict[int, list[Run]], options: argparse.Namespace) -> str:
    """The table."""
    facts = describe()
    one, two = found[1], found[2]
    wall = min(run.wall for run in one) / min(run.wall for run in two)
    alone, busier = min(max(run.executors) for run in one), min(max(run.executors) for run in two)
    rows = [
        f"{facts['Processor']}, {facts['Cores']} cores. {options.events:,} events in {FILES} Parquet files against "
        f"{options.subscriptions:,} `conj` subscriptions, as arrays, on executors that are pinned to a core each, "
        "JVM and Python; the best of several runs. Driver and master share the cores.\n",
        "| workers | seconds | events/s | processor seconds of the busiest executor, JVM and Python |",
        "|---:|---:|---:|---:|",
    ]
    for workers, runs in found.items():
        least = min(run.wall for run in runs)
        busy = min(max(run.executors) for run in runs)
        rows.append(f"| {workers} | {least:.2f} | {options.events / least:,.0f} | {busy:.2f} |")
    rows.append(
        f"\nTwo workers are {wall:.2f} times one by the wall clock, and {alone / busier:.2f} times by the processor "
        f"time of the busiest executor; the goal is {GOAL}. The driver plans and gathers on the same cores, which "
        "costs the wall clock where there are two."
    )
    return "\n".join(rows)


if __name__ == "__main__":
    main()
