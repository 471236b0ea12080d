"""JSON values from a topic of Kafka's to matches: `python -m benchmarks.spark.kafka`.

A broker of its own on loopback, from the jars that tests use. The events are read from the topic by Spark's connector,
parsed and matched by covey's kernel in the workers, and the rows with their matches go to Spark's `noop` sink; beside
it the same with Spark's own `from_json` before, and the topic read alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from tests.spark.kafka_broker import broker, make_topic
from tools.jars import jars

import covey
from benchmarks.workloads import generate
from covey.spark import local_session, match_events

PARTITIONS = 2


def fill(address: str, texts: list[bytes]) -> None:
    """Write the texts to the topic, dealt out to its partitions."""
    make_topic(address, "events", PARTITIONS)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "batch.size": 1_000_000})
    for number, text in enumerate(texts):
        producer.produce("events", value=text, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.flush(60)
    assert producer.flush(60) == 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.kafka", description=__doc__)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=4)
    options = parser.parse_args()
    workload = generate("conj", options.subscriptions, options.events)
    texts = [json.dumps(event).encode() for event in workload.events.to_pylist()]
    with tempfile.TemporaryDirectory() as work, broker(Path(work)) as address:
        fill(address, texts)
        index = covey.Index()
        index.add_many(workload.subscriptions)
        settings = {"spark.jars": ",".join(map(str, jars("connector"))), "spark.driver.memory": "3g"}
        spark = local_session("covey from Kafka", 2, **settings)
        spark.sparkContext.setLogLevel("ERROR")
        source = {"kafka.bootstrap.servers": address, "subscribe": "events", "startingOffsets": "earliest"}
        raw = spark.read.format("kafka").options(**source).load()
        columns = spark.createDataFrame(workload.events.slice(0, 1)).schema
        parsed = raw.select(sf.from_json(sf.col("value").cast("string"), columns).alias("e")).select("e.*")
        makers: dict[str, Callable[[], DataFrame]] = {
            "the topic read alone": lambda: raw.select("value"),
            "`from_json`": lambda: parsed,
            '`match_events`, `json="value"`': lambda: match_events(raw.select("value"), index, json="value"),
            "`from_json`, `match_events`": lambda: match_events(parsed, index),
        }
        for what, make in makers.items():
            seconds = []
            for _ in range(options.runs + 1):
                start = time.perf_counter()
                make().write.format("noop").mode("overwrite").save()
                seconds.append(time.perf_counter() - start)
            print(f"{what}: {options.events / min(seconds[1:]):,.0f} events/s", flush=True)
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
