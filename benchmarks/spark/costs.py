"""What building, changing and holding a large index costs on Spark."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.workloads import generate
from covey.spark import MatchListener, build_index, match_stream

MICRO_BATCH = 20_000


@dataclass(frozen=True)
class Cost:
    """A line of the table."""

    what: str
    figure: str


def costs_of(spark: SparkSession, options: argparse.Namespace, directory: Path) -> list[Cost]:
    """Build from text, memory of workers, and changes in a stream."""
    n = options.large
    workload = generate("conj-narrow", n, MICRO_BATCH)
    ids, texts = zip(*workload.subscriptions, strict=True)
    table = directory / "large.parquet"
    pq.write_table(pa.table({"id": ids, "filter": texts}), table, row_group_size=125_000)
    start = time.perf_counter()
    index = directory / "large.covey"
    build_index(spark.read.parquet(str(table)), index)
    seconds = time.perf_counter() - start
    costs = [Cost(f"bulk build of {n:,} subscriptions from text", f"{seconds:.1f} s")]
    events = spark.createDataFrame(workload.events).repartition(2).cache()
    events.count()
    costs += memory(events, index)
    costs += changes(spark, workload.events, workload.subscriptions, directory)
    return costs


def memory(events: DataFrame, index: Path) -> list[Cost]:
    """Private and shared memory of two workers that have matched on one index: what each holds of the mapped file
    counts once for both where pages are shared (PSS)."""
    from covey.spark.batch import match_events
    from covey.spark.worker_files import place

    match_events(events, index).write.format("noop").mode("overwrite").save()
    placed = place(events, index).files[0]

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from covey.matching import Index
        from covey.spark.workers import opened

        found: Index = opened(placed)
        total = 0
        for batch in batches:
            total += len(found.match_batch(pa.Table.from_batches([batch]), threads=1))
        time.sleep(2)  # until the other worker has its pages too, so that shared ones are counted as shared
        after = _smaps(placed.path)
        yield pa.RecordBatch.from_pydict(
            {"pid": [os.getpid()], "rss": [after[0]], "pss": [after[1]], "private": [after[2]], "matches": [total]}
        )

    kind = "pid bigint, rss bigint, pss bigint, private bigint, matches bigint"
    rows = events.mapInArrow(look, kind).collect()
    size = os.path.getsize(index)
    workers = len({row.pid for row in rows})
    together = sum(row.pss for row in rows)
    return [
        Cost("size of that index", f"{size / 1e6:,.0f} MB"),
        Cost(f"resident pages of the index in {workers} workers together (each page counted once)",
             f"{together / 1e6:,.0f} MB"),
        Cost("pages of the index that a worker has for itself", f"{max(row.private for row in rows) / 1e6:,.1f} MB"),
    ]  # fmt: skip


def _smaps(path: str) -> tuple[int, int, int]:
    """Resident, proportional and private bytes of a mapped file in this process."""
    rss = pss = private = 0
    inside = False
    name = os.path.basename(path)
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head = line.split(None, 1)[0]
        if "-" in head and not head.endswith(":"):
            inside = line.endswith(name)
        elif inside and head in ("Rss:", "Pss:", "Private_Clean:", "Private_Dirty:"):
            size = int(line.split()[1]) * 1024
            rss += size if head == "Rss:" else 0
            pss += size if head == "Pss:" else 0
            private += size if head.startswith("Private") else 0
    return rss, pss, private


def changes(spark: SparkSession, events: pa.Table, subscriptions: list[tuple[str, str]], directory: Path) -> list[Cost]:
    """Micro-batches of a running stream before, at and after a change of 1,000 subscriptions."""
    feed, table = directory / "feed", directory / "changes"
    feed.mkdir()
    table.mkdir()
    _write_changes(1, "add", subscriptions, table)
    source = spark.readStream.schema(spark.createDataFrame(events.slice(0, 1)).schema).parquet(str(feed))
    listener = MatchListener()
    query = match_stream(
        source, table, checkpoint=directory / "checkpoint", sink=directory / "matches", listener=listener
    )
    for step in range(6):
        if step == 4:
            texts = [text for _, text in subscriptions[1_000:2_000]]
            _write_changes(2, "replace", list(zip([id for id, _ in subscriptions[:1_000]], texts, strict=True)), table)
        _put(events, feed / f"events-{step}.parquet")
        query.processAllAvailable()
    query.stop()
    reports = list(listener.reports)
    plain, changed = reports[1:4], reports[4]
    assert changed.version == 2
    assert changed.changes == 1_000
    sent = sum(path.stat().st_size for path in (directory / "checkpoint/covey/index").glob("index-2-*.covey"))
    return [
        Cost(f"micro-batch of {events.num_rows:,} events, subscriptions unchanged: listing the changes",
             f"{min(one.change_seconds for one in plain):.3f} s"),
        Cost("matching and committing it", f"{min(one.seconds for one in plain):.2f} s"),
        Cost(f"change of 1,000 among {len(subscriptions):,} subscriptions, within the next micro-batch",
             f"{changed.change_seconds:.2f} s"),
        Cost("what each executor of a cluster is sent for it", f"{sent / 1e6:.2f} MB"),
    ]  # fmt: skip


def _put(events: pa.Table, path: Path) -> None:
    """Written beside its place and renamed, so that the stream never sees half a file."""
    hidden = path.with_name("." + path.name)
    pq.write_table(events, hidden)
    hidden.rename(path)


def _write_changes(version: int, operation: str, subscriptions: list[tuple[str, str]], directory: Path) -> None:
    ids, texts = zip(*subscriptions, strict=True)
    count = len(subscriptions)
    rows = pa.table({"op": [operation] * count, "id": ids, "filter": texts, "version": [version] * count})
    _put(rows, directory / f"changes-{version}.parquet")
