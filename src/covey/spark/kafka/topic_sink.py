"""Matches to a topic, each batch once: for `match_stream(writer=...)`.

Spark's own sink for Kafka writes at least once: a task that is tried again, or a batch that is replayed, writes a
second time. Here each part of a batch is one transaction of Kafka's, and within that transaction goes a note that the
part is written: the position that a consumer group of the part's own would go on from, which is the number of the next
batch. Whoever writes the part again first ends what an earlier attempt left open (that is what `init_transactions`
does, and it shuts out an attempt that isn't quite dead), then reads the note, and writes nothing if the batch is in it.

That rests on a part having the same rows each time: a batch's rows are dealt out by a hash of their key and value into
a fixed number of parts. Readers ask for `isolation.level=read_committed`. Kafka forgets the notes of a stream that has
been still for as long as it keeps consumer groups (`offsets.retention.minutes`, a week by itself).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from covey.errors import CoveyError
from covey.spark.kafka.client import SECONDS, failed, kafka_client
from covey.spark.types import quoted

_PARTS = 2
_IN_FLIGHT = 10_000
"""Records handed to Kafka's client between looks at what it has sent."""


@dataclass
class TopicSink:
    """A topic that a stream's matches go to, as JSON, with one column as key if that is named."""

    servers: str
    topic: str
    key: str | None = None
    parts: int = _PARTS
    """Transactions that a batch is written in, side by side; a stream keeps the number that it began with."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of Kafka's client."""
    _stream: str = ""

    def claim(self, stream: str, schema: str) -> None:  # noqa: ARG002
        """The stream whose batches these are: two streams have the same numbers of batches."""
        kafka_client()
        if self.parts < 1:
            raise CoveyError(f"parts is {self.parts}; use 1 or more")
        self._stream = stream

    def __call__(self, result: DataFrame, batch: int) -> None:
        """Write a batch, or what is missing of it."""
        if not self._stream:
            raise CoveyError("a TopicSink is given to match_stream(writer=...), which tells it whose batches these are")
        key = F.lit(None) if self.key is None else F.col(quoted(self.key))
        rows = result.select(key.cast("string").alias("key"), F.to_json(F.struct("*")).alias("value"))
        parts = rows.repartition(self.parts, "key", "value")
        parts.mapInArrow(_writer(self, batch), "written bigint").collect()


def _writer(sink: TopicSink, batch: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        rows = (
            (key, value) for one in batches for key, value in zip(*map(pa.Array.to_pylist, one.columns), strict=True)
        )
        written = write_part(sink, context.partitionId(), batch, rows)
        yield pa.RecordBatch.from_pydict({"written": pa.array([written], pa.int64())})

    return write


def write_part(sink: TopicSink, part: int, batch: int, rows: Iterable[tuple[str | None, str]]) -> int:
    """In a worker: write a part of a batch, unless it is written; how many records that were."""
    kafka = kafka_client()
    name = f"covey-{sink._stream}-{part}"
    servers = {**sink.options, "bootstrap.servers": sink.servers}
    producer = kafka.Producer({"linger.ms": 20, **servers, "transactional.id": name})
    notes = kafka.Consumer({**servers, "group.id": name, "enable.auto.commit": False})
    note = kafka.TopicPartition(sink.topic, 0)
    try:
        producer.init_transactions(SECONDS)
        if notes.committed([note], SECONDS)[0].offset > batch:
            return 0
        producer.begin_transaction()
        count = 0
        for key, value in rows:
            count += 1
            if count % _IN_FLIGHT == 0:
                producer.flush(SECONDS)
            producer.produce(sink.topic, value=value.encode(), key=None if key is None else key.encode())
        done = kafka.TopicPartition(sink.topic, 0, batch + 1)
        producer.send_offsets_to_transaction([done], notes.consumer_group_metadata(), SECONDS)
        producer.commit_transaction(SECONDS)
    except kafka.KafkaException as error:
        raise failed(f"topic {sink.topic}", error) from None
    finally:
        notes.close()
    return count
