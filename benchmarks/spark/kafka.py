"""JSON values from a topic of Kafka's to matches: `python -m benchmarks.spark.kafka`.

A broker of its own on loopback, from the jars that tests use. The events are read from the topic by Spark's connector,
parsed and matched by covey's kernel in the workers, and the rows with their matches go to Spark's `noop` sink; beside
it the same with Spark's own `from_json` before, and the topic read alone. All take turns, and processor time is that of
Spark's JVM and its Python workers, without the broker's. Then both ways as streams into Parquet, the whole topic in
micro-batches: the first is told apart, since workers and the index start with it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.spark.kafka_broker import broker, make_topic
from tools.jars import jars

import covey
from benchmarks import sections
from benchmarks.machine import describe
from benchmarks.spark.processors import interleaved, java_of, seconds
from benchmarks.workloads import Workload, generate
from covey.spark import local_session, match_events, match_stream

PARTITIONS = 2
BATCHES = 5
GOAL = 150_000
AS_JSON = '`match_events`, `json="value"`'


@dataclass(frozen=True, slots=True)
class Line:
    """A way from the topic to matches."""

    what: str
    rate: float
    cost: float
    """Processor time of an event, in microseconds."""

    def row(self) -> str:
        """In Markdown."""
        return f"| {self.what} | {self.rate:,.0f} | {self.cost:.2f} |"


def fill(address: str, texts: Sequence[bytes]) -> None:
    """Write the texts to the topic, dealt out to its partitions."""
    make_topic(address, "events", PARTITIONS)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "batch.size": 1_000_000})
    for number, text in enumerate(texts):
        producer.produce("events", value=text, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


def as_tables(spark: SparkSession, source: dict[str, str], workload: Workload, runs: int) -> list[Line]:
    """The topic as one table, by each way."""
    index = covey.Index()
    index.add_many(workload.subscriptions)
    raw = spark.read.format("kafka").options(**source).load()
    parsed = from_json(spark, raw, workload)
    makers: dict[str, Callable[[], DataFrame]] = {
        "the topic read alone": lambda: raw.select("value"),
        "`from_json`": lambda: parsed,
        AS_JSON: lambda: match_events(raw.select("value"), index, json="value"),
        "`from_json`, `match_events`": lambda: match_events(parsed, index),
    }
    count = workload.events.num_rows
    found = interleaved(makers, [java_of(spark)], runs, warm=2)
    return [Line(what, count / best.wall, best.processor / count * 1e6) for what, best in found.items()]


def as_streams(spark: SparkSession, source: dict[str, str], workload: Workload, work: Path) -> list[Line]:
    """The topic as a stream into Parquet, by each way twice, of which the second counts: the best micro-batch, and the
    processor time of all of them."""
    (work / "changes").mkdir()
    ids, texts = zip(*workload.subscriptions, strict=True)
    rules = pa.table({"op": ["add"] * len(ids), "id": ids, "filter": texts, "version": [1] * len(ids)})
    pq.write_table(rules, work / "changes" / "1.parquet")
    count, lines = workload.events.num_rows, {}
    for number in range(2):
        for json_column in ("value", None):
            options = {**source, "maxOffsetsPerTrigger": str(-(-count // BATCHES))}
            raw = spark.readStream.format("kafka").options(**options).load()
            events = raw.select("value") if json_column else from_json(spark, raw, workload)
            place = work / f"{json_column}-{number}"
            before = sum(seconds([java_of(spark)]))
            query = match_stream(
                events, work / "changes", checkpoint=place / "checkpoint", sink=place / "sink",
                trigger="availableNow", json=json_column,
            )  # fmt: skip
            query.awaitTermination()
            cost = (sum(seconds([java_of(spark)])) - before) / count * 1e6
            batches = [one for one in query.recentProgress if one["numInputRows"]]
            rate = max(one["processedRowsPerSecond"] for one in batches[1:])
            what = '`match_stream`, `json="value"`' if json_column else "`from_json`, `match_stream`"
            lines[what] = Line(what, rate, cost)
            print(f"{what}: {rate:,.0f} events/s, {cost:.2f} µs of processor time an event",
                  file=sys.stderr, flush=True)  # fmt: skip
    return list(lines.values())


def from_json(spark: SparkSession, raw: DataFrame, workload: Workload) -> DataFrame:
    """The values parsed by Spark, into columns of the right types."""
    columns = spark.createDataFrame(workload.events.slice(0, 1)).schema
    return raw.select(sf.from_json(sf.col("value").cast("string"), columns).alias("e")).select("e.*")


def page(lines: Sequence[Line], options: argparse.Namespace) -> str:
    """The table."""
    facts = describe()
    rate = next(line.rate for line in lines if line.what == AS_JSON)
    return "\n".join(
        [
            f"{facts['Processor']}, {facts['Cores']} cores, shared with the broker. {options.events:,} events in a "
            f"topic of {PARTITIONS} partitions, {options.subscriptions:,} `conj` subscriptions; tables go to Spark's "
            "`noop` sink, streams to Parquet. Processor time is Spark's and its Python workers', the broker's apart.\n",
            "| | events/s | µs of processor time an event |", "|---|---:|---:|", *(line.row() for line in lines),
            f'\nThe goal is {GOAL:,} events/s from JSON to matches; with `json="value"` it is {rate:,.0f}.',
        ]
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.kafka", description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    workload = generate("conj", options.subscriptions, options.events)
    with tempfile.TemporaryDirectory() as work, broker(Path(work)) as address:
        fill(address, [json.dumps(event).encode() for event in workload.events.to_pylist()])
        settings = {"spark.jars": ",".join(map(str, jars("connector"))), "spark.driver.memory": "3g"}
        spark = local_session("covey from Kafka", 2, **settings)
        spark.sparkContext.setLogLevel("ERROR")
        source = {"kafka.bootstrap.servers": address, "subscribe": "events", "startingOffsets": "earliest"}
        lines = as_tables(spark, source, workload, options.runs) + as_streams(spark, source, workload, Path(work))
        spark.stop()
    text = page(lines, options)
    print(text)
    if options.write:
        sections.write("kafka", "From Kafka", ["python", "-m", "benchmarks.spark.kafka", *sys.argv[1:]], text)


if __name__ == "__main__":
    main()
