"""A driver on a cluster that shares only some directories with it: `cluster_driver.py ADDRESS SHARED OWN BROKER …`.

ADDRESS is a master's (`spark://…`), or that of a Connect server on the cluster (`sc://…`). OWN is a directory that
nobody but this process sees, SHARED one that all see. What follows are the steps to
go through, by themselves all. Prints what it found as one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import covey
from covey.spark import build_index, compact, local_session, match_events, match_files, profile, register
from covey.spark.stream import match_stream, read_matches

RULES = [("dear", "price > 50"), ("a", "symbol = 'a'"), ("none", "price < 0"), ("share", "price / 2 > 40")]
SCHEMA = "n int, price double, symbol string"
PATIENCE = 240.0


class Driver:
    """One session, and what it does with the same events and rules."""

    def __init__(self, spark: SparkSession, shared: Path, own: Path, broker: str) -> None:
        self.spark, self.shared, self.own, self.broker = spark, shared, own, broker
        self.connect = not hasattr(spark, "_jsparkSession")
        self.notes = shared if self.connect else own
        """Where a stream's changes and checkpoint are: the loop of a stream runs beside a Connect server."""
        self.rules = spark.createDataFrame(RULES, "id string, filter string")
        self.events = spark.read.schema(SCHEMA).json(str(shared / "events"))

    def as_events(self) -> Any:
        return pairs(match_events(self.events, self.rules, output="pairs"))

    def as_files(self) -> Any:
        self.events.write.mode("overwrite").parquet(str(self.shared / "table"))
        return pairs(match_files(self.spark, self.shared / "table", self.rules, output="pairs", columns=["n"]))

    def as_a_saved_index(self) -> Any:
        build_index(self.rules, self.own / "rules.covey")
        return pairs(match_events(self.events, self.own / "rules.covey", output="pairs"))

    def with_an_executor_killed(self) -> Any:
        events = self.events.repartition(4).mapInArrow(killing(self.shared / "killed"), SCHEMA)
        found = pairs(match_events(events, self.rules, output="pairs"))
        return {"killed": (self.shared / "killed").exists(), "matches": found}

    def as_profile(self) -> Any:
        found = profile(self.events, self.rules.where("id <> 'share'"))
        assert found.events is not None
        return {"events": found.events.count, "attributes": sorted(found.events.sketches)}

    def as_compaction(self) -> Any:
        more = self.spark.createDataFrame([("dearer", "price > 60")], "id string, filter string")
        found = compact(self.rules.where("id <> 'share'").union(more)).table.collect()
        return sorted([row.id, *sorted(row.stands_for)] for row in found)

    def stream(self, name: str, sink: Path) -> Any:
        """Match all events as a stream: what it wrote, or how it failed."""
        changes = self.notes / "changes"
        if not changes.exists():
            changes.mkdir()
            rows = [{"version": 1, "op": "add", "id": id, "filter": text} for id, text in RULES]
            (changes / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        events = self.spark.readStream.schema(SCHEMA).json(str(self.shared / "events"))
        try:
            match_stream(
                events, changes, checkpoint=self.notes / name, sink=sink, trigger="availableNow"
            ).awaitTermination(PATIENCE)
        except (StreamingQueryException, covey.CoveyError) as error:
            return {"error": str(error), "committed": [path.name for path in sink.glob("batch=*")]}
        return {"matches": sorted([row.n, id] for row in read_matches(self.spark, sink).collect() for id in row[3])}

    def unseen_file(self) -> Any:
        (self.own / "unseen").mkdir()
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"price": [60.0]}), self.own / "unseen" / "1.parquet")
        try:
            return pairs(match_files(self.spark, self.own / "unseen", self.rules.where("id = 'dear'"), output="pairs"))
        except Exception as error:
            return [type(error).__name__, str(error).splitlines()[0]]

    def through_a_broker(self) -> Any:
        """A table to a broker, back as a stream, and to the broker again."""
        register(self.spark)
        with covey.connect_sync(self.broker, name=f"client-{self.connect}") as client:
            wishes = client.subscribe("twice IS NOT NULL", id="wishes", durable=True)
            self._pass_on()  # with which the stream's subscription begins
            self.events.select("n").where("n < 20").write.format("covey").option("url", self.broker).mode(
                "append"
            ).save()
            self._pass_on()
            found = [wishes.get(timeout=PATIENCE).attributes["twice"] for _ in range(20)]
            for id in ("wishes",):
                client.unsubscribe(id)
        return sorted(found)

    def _pass_on(self) -> None:
        checkpoint = str(self.shared / "broker-checkpoint")
        source = self.spark.readStream.format("covey").option("url", self.broker)
        source = source.option("subscription", f"stream-{self.connect}").option("filter", "n >= 0")
        events = source.option("checkpointLocation", checkpoint).schema("n int").load()
        sink = events.selectExpr("2 * n AS twice").writeStream.format("covey").option("url", self.broker)
        query = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination(PATIENCE)


def pairs(found: DataFrame) -> list[list[Any]]:
    return sorted([row.n, row.subscription] for row in found.select("n", "subscription").collect())


def killing(mark: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Passes rows on, but for the first task, which ends its executor as a crash would."""
    path = str(mark)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield batch
                continue
            process = os.getpid()
            while not Path(f"/proc/{process}/comm").read_text().startswith("java"):
                process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(process, signal.SIGKILL)
            signal.pause()

    return run


def session(address: str) -> SparkSession:
    if address.startswith("sc://"):
        made: SparkSession = SparkSession.builder.remote(address).getOrCreate()
        return made
    settings = {
        "spark.master": address, "spark.executor.memory": "512m", "spark.cores.max": "2", "spark.driver.memory": "512m",
        "spark.pyspark.python": sys.executable, "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }  # fmt: skip
    return local_session("covey on a cluster", **settings)


def main(address: str, shared: Path, own: Path, broker: str, *wanted: str) -> None:
    driver = Driver(session(address), shared, own, broker)
    steps: dict[str, Callable[[], Any]] = {
        "events": driver.as_events,
        "files": driver.as_files,
        "saved index": driver.as_a_saved_index,
        "executor killed": driver.with_an_executor_killed,
        "profile": driver.as_profile,
        "compaction": driver.as_compaction,
        "one stream": lambda: driver.stream("one", shared / "sink-one"),
        "another over the same changes": lambda: driver.stream("another", shared / "sink-another"),
        "sink that workers don't see": lambda: driver.stream("lost", own / "sink"),
        "file that workers don't see": driver.unseen_file,
        "through a broker": driver.through_a_broker,
    }
    found = {}
    for name in wanted or steps:
        started = time.perf_counter()
        found[name] = steps[name]()
        print(f"{name}: {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    print(json.dumps(found), flush=True)
    driver.spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
