"""Spark publishes rows: as a batch from all tasks, or as a stream, each micro-batch once.

A stream's tasks only pack their rows; when all are there, the driver publishes them, so what a task did twice, or in
vain, is published once, or not at all. First it writes the batch into the spool, once: a replayed batch publishes what
stands there, though a second run may have had its rows in another order. Row `i` of batch `n` has the publication
number `n · 2^24 + i + 1`, and a broker ignores numbers that aren't above the last one of that publisher. The
publisher's name has the spool's identity in it, since another checkpoint starts with batch 0 again.

Tasks of a batch publish what they have as they go, since a table may be larger than any memory. Spark runs a task that
failed again from the start, so there an event may be published twice.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from covey.errors import CoveyError
from covey.spark.source.columns import documents_of, events_of
from covey.spark.source.inbox import ATTEMPT_SECONDS, unreachable
from covey.spark.source.options import Address, WriteOptions
from covey.spark.stream.journal import write_durably

if TYPE_CHECKING:
    from covey.network.asyncio import Client

CHUNK_EVENTS: Final = 1_000
"""Events that are published together."""
BATCH_EVENTS: Final = 1 << 24
"""Events in one micro-batch: numbers of the next follow."""
BATCH_BYTES: Final = 256 << 20
"""One micro-batch, packed, in the driver's memory."""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[dict[str, Any]])
_unpack_batch = msgspec.msgpack.Decoder(list[bytes])


@dataclass
class Published(WriterCommitMessage):  # type: ignore[misc]
    """What a task did."""

    events: int


@dataclass
class Packed(WriterCommitMessage):  # type: ignore[misc]
    """What a task has to publish: chunks of events."""

    events: int
    chunks: list[bytes]


def _events(batches: Iterator[pa.RecordBatch], schema: StructType, options: WriteOptions) -> Iterator[dict[str, Any]]:
    return events_of(batches, schema) if options.xml is None else documents_of(batches, options.xml)


class CoveyWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """`df.write.format("covey")`."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Publish the rows of one task."""
        return Published(asyncio.run(self._publish(iterator)))

    async def _publish(self, iterator: Iterator[pa.RecordBatch]) -> int:
        events, published = _events(iterator, self._schema, self._options), 0
        client = await _reached(self._options.address, None)
        try:
            while chunk := list(islice(events, CHUNK_EVENTS)):
                await client.publish(chunk, durable=True)
                published += len(chunk)
        except CoveyError as error:
            raise CoveyError(f"row {published + 1} of a task, or one soon after: {error}") from None
        finally:
            await client.close()
        return published


class CoveyStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """`df.writeStream.format("covey")`."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        if options.spool is None:
            raise CoveyError(
                "a stream to a broker keeps the batch that is under way in a directory: give "
                "option('checkpointLocation', ...) or option('spool', ...)"
            )
        self._options = options
        self._spool = options.spool
        self._schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Pack the rows of one task."""
        events, count, size, chunks = _events(iterator, self._schema, self._options), 0, 0, []
        while chunk := list(islice(events, CHUNK_EVENTS)):
            chunks.append(_pack(chunk))
            count, size = count + len(chunk), size + len(chunks[-1])
            _check_size(count, size)
        return Packed(count, chunks)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish a micro-batch."""
        packed = [message for message in messages if isinstance(message, Packed)]
        _check_size(sum(one.events for one in packed), sum(len(chunk) for one in packed for chunk in one.chunks))
        outbox = Outbox(self._spool)
        chunks = outbox.decide(batchId, [chunk for one in packed for chunk in one.chunks])
        if chunks:
            name = f"{self._options.publisher}-{outbox.id}"
            try:
                asyncio.run(_publish_batch(self._options.address, name, chunks, batchId))
            except CoveyError as error:
                raise CoveyError(
                    f"batch {batchId}: {error} (it stands in {outbox.path(batchId)}; a batch that the broker refuses "
                    "is computed anew once that file is removed)"
                ) from None
        outbox.forget_before(batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing was published."""


class Outbox:
    """What the micro-batches of one stream publish, in its spool."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        path = directory / "outbox.json"
        write_durably(path, json.dumps({"outbox": uuid.uuid4().hex[:16]}).encode(), once=True)
        self.id: str = json.loads(path.read_bytes())["outbox"]

    def decide(self, batch: int, chunks: Sequence[bytes]) -> list[bytes]:
        """What a batch publishes: this, or what it was when it ran for the first time."""
        path = self.path(batch)
        write_durably(path, _pack(list(chunks)), once=True)
        return _unpack_batch.decode(path.read_bytes())

    def path(self, batch: int) -> Path:
        """Where a batch stands."""
        return self._directory / f"{batch}.batch"

    def forget_before(self, batch: int) -> None:
        """This batch is published: those before can't come again."""
        for path in self._directory.glob("*.batch"):
            if int(path.stem) < batch:
                path.unlink(missing_ok=True)


def _check_size(events: int, size: int) -> None:
    if events > BATCH_EVENTS or size > BATCH_BYTES:
        raise CoveyError(
            f"a micro-batch of {events:,} events in {size:,} bytes is too large to publish (BATCH_EVENTS is "
            f"{BATCH_EVENTS:,}, BATCH_BYTES {BATCH_BYTES:,}); let the source give less at a time"
        )


async def _publish_batch(address: Address, name: str, chunks: Sequence[bytes], batch: int) -> None:
    client = await _reached(address, name)
    try:
        number = batch * BATCH_EVENTS + 1
        for chunk in chunks:
            events = _unpack.decode(chunk)
            await asyncio.wait_for(client.publish(events, durable=True, first=number), address.patience)
            number += len(events)
    except TimeoutError:
        raise unreachable(address, CoveyError("events aren't confirmed")) from None
    finally:
        await client.close()


async def _reached(address: Address, name: str | None) -> Client:
    from covey.network.errors import ConnectionLostError

    end = time.monotonic() + address.patience
    while True:
        try:
            return await address.connect(name, reconnect=name is not None)
        except ConnectionLostError as error:
            if time.monotonic() > end:
                raise unreachable(address, error) from None
            await asyncio.sleep(ATTEMPT_SECONDS)
