"""A driver of a stream from a topic to a topic, for tests that kill it: `kafka_driver.py WORK ADDRESS [POINT BATCH
[MASTER]]`.

Events are JSON in `quotes`, rules in the compacted topic `rules`, matches go to `matches`. WORK has `pending.json`,
lists of changes of rules of which the next is written to the topic before each new batch, so that a replayed batch
always has newer rules that it must not use. With a point and a batch the driver says when it gets there and waits to be
killed; at the point `json` nobody is, and covey reads the texts; at the point `worker` it is a Python worker that is
killed, in the middle of its transaction, and at the point `executor`, on a cluster's master, the executor that it
belongs to.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark import TaskContext
from pyspark.sql import functions as sf
from tools.jars import jars

from covey.spark.kafka import RulesTopic, TopicSink, topic_sink
from covey.spark.session import local_session
from covey.spark.stream import match_stream
from covey.spark.stream.changes import SubscriptionLog
from covey.spark.stream.journal import Journal
from tests.spark.stream_driver import say_and_wait, watch, wrap

EVENTS = "n int, price double, symbol string"
A_BATCH = 40
written_as_ever = topic_sink.write_part


def release(work: Path, address: str) -> None:
    """Write the next changes to the topic."""
    pending = json.loads((work / "pending.json").read_text())
    if pending:
        producer = Producer({"bootstrap.servers": address})
        for id, text in pending[0]:
            producer.produce("rules", key=id, value=text)
        producer.flush(60)
        (work / "pending.json").write_text(json.dumps(pending[1:]))


def write_until_killed(*, executor: bool) -> object:
    def write(sink: TopicSink, part: int, batch: int, rows: Iterable[tuple[str | None, str]]) -> int:
        def some() -> Iterator[tuple[str | None, str]]:
            for number, row in enumerate(rows):
                yield row
                if number == 5:
                    process = os.getpid()
                    while executor and not Path(f"/proc/{process}/comm").read_text().startswith("java"):
                        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
                    os.kill(process, signal.SIGKILL)
                    signal.pause()

        context = TaskContext.get()
        assert context is not None
        first = batch == 1 and part == 0 and context.attemptNumber() == 0
        return written_as_ever(sink, part, batch, some() if first else rows)

    return write


def write_all_but_one(wanted: int) -> object:
    def write(sink: TopicSink, part: int, batch: int, rows: Iterable[tuple[str | None, str]]) -> int:
        if batch == wanted and part == 1:
            time.sleep(120)
        return written_as_ever(sink, part, batch, rows)

    return write


def prepare(work: Path, address: str, sink: TopicSink, point: str, wanted: int) -> None:
    wrap(SubscriptionLog, "refresh", before=lambda *_: release(work, address))

    def at(batch: int) -> None:
        if batch == wanted:
            say_and_wait(point, batch)

    if point == "decided":
        wrap(Journal, "decide", after=lambda _, batch, version, **__: at(batch))
    elif point == "written":
        wrap(TopicSink, "__call__", after=lambda _, result, batch: at(batch))
    elif point == "between":
        watch(lambda: (work / "checkpoint" / "commits" / str(wanted)).exists(), point, wanted)
    elif point in ("worker", "executor"):
        topic_sink.write_part = write_until_killed(executor=point == "executor")
    elif point == "part":
        topic_sink.write_part = write_all_but_one(wanted)

        def half() -> None:
            while not sink._stream:
                time.sleep(0.05)
            notes = Consumer({"bootstrap.servers": address, "group.id": f"covey-{sink._stream}-0"})
            while notes.committed([TopicPartition(sink.topic, 0)], 60)[0].offset <= wanted:
                time.sleep(0.05)
            say_and_wait(point, wanted)

        threading.Thread(target=half, daemon=True).start()


def main(work: Path, address: str, point: str = "", batch: int = -1, master: str = "") -> None:
    sink = TopicSink(address, "matches", key=None if point == "json" else "n")
    prepare(work, address, sink, point, batch)
    quick = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "spark.log.level": "ERROR"}
    if master:
        quick |= {"spark.master": master, "spark.executor.memory": "512m", "spark.cores.max": "2",
                  "spark.driver.memory": "512m", "spark.pyspark.python": sys.executable}  # fmt: skip
    spark = local_session(cores=2, **quick, **{"spark.jars": ",".join(map(str, jars("connector")))})
    source = {"kafka.bootstrap.servers": address, "subscribe": "quotes", "startingOffsets": "earliest",
              "maxOffsetsPerTrigger": str(A_BATCH)}  # fmt: skip
    raw = spark.readStream.format("kafka").options(**source).load()
    text = sf.col("value").cast("string")
    if point == "json":
        events, column = raw.select(text.alias("value")), "value"
    else:
        events, column = raw.select(sf.from_json(text, EVENTS).alias("quote")).select("quote.*"), None
    query = match_stream(
        events, RulesTopic(address, "rules"), json=column,
        checkpoint=work / "checkpoint", writer=sink, trigger="availableNow",
    )  # fmt: skip
    query.awaitTermination()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *sys.argv[3:4], *map(int, sys.argv[4:5]), *sys.argv[5:6])
