"""Spark reads a durable subscription: as a stream, exactly once, or what is queued now, as a batch.

The stream's offsets are positions in the spool (`covey.spark.source.spool`). `latestOffset` takes what has come, spools
it and only then says how far that goes; tasks read the spool; `commit` writes down how far Spark is and acknowledges so
much to the broker. At whatever moment the driver or the broker dies, an event is with the broker, unacknowledged, or in
the spool, or both, and then it is known by its delivery number. So each event has one position, and Spark reads each
position once.

A batch read has no commit: it acknowledges when Spark has taken its last row. A task that fails before that has taken
nothing; one that fails after it is not given the events again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from covey.errors import CoveyError
from covey.spark.source.columns import Rows
from covey.spark.source.inbox import ATTEMPT_SECONDS, Inbox
from covey.spark.source.options import ReadOptions
from covey.spark.source.spool import SEGMENT_EVENTS, Slice, Spool, SpooledEvent, read_slice

if TYPE_CHECKING:
    from covey.network.asyncio import Delivery

Offset = dict[str, Any]


@dataclass
class SpooledPartition(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    slice: Slice


class Feed:
    """What the driver's side of a stream holds: the spool, the inbox, and what isn't acknowledged."""

    def __init__(self, options: ReadOptions) -> None:
        if options.spool is None:
            raise CoveyError(
                "a stream from a broker keeps what isn't committed in a directory: give option('checkpointLocation', "
                "...) as the query has it, or option('spool', ...)"
            )
        self._options = options
        self.spool = Spool(options.spool)
        self.spool.open(options.subscription)
        self._inbox = Inbox(options, options.most_a_trigger, self.spool.begin_era)
        self._open: deque[tuple[int, Delivery]] = deque()

    def receive(self, most: int) -> int:
        """Spool what has come; how much of it is new."""
        self._connected()
        return self._spool(self._inbox.take(min(most, self.spool.room)))

    def drain(self, most: int) -> None:
        """Spool all that is queued at the broker now."""
        from covey.network.errors import ConnectionLostError

        taken = 0
        while taken < most and self.spool.room:
            if not self._connected():
                time.sleep(ATTEMPT_SECONDS / 5)
                continue
            arrived = self._inbox.take(min(most - taken, self.spool.room, SEGMENT_EVENTS))
            taken += len(arrived)
            self._spool(arrived)
            try:
                if not arrived and self._inbox.is_empty():
                    return
            except ConnectionLostError:
                continue

    def commit(self, position: int) -> None:
        """Spark is done with all up to a position."""
        self.spool.commit(position)
        done: list[Delivery] = []
        while self._open and self._open[0][0] <= position:
            done.append(self._open.popleft()[1])
        self._inbox.acknowledge(done)

    def close(self) -> None:
        """Give back everything."""
        self._inbox.close()
        self.spool.close()

    def _connected(self) -> bool:
        state = self._inbox.ready()
        if state is None:
            # What the former session delivered comes again.
            self._open.clear()
        return state is not False

    def _spool(self, deliveries: Sequence[Delivery]) -> int:
        if self._inbox.missed and self._options.fail_on_data_loss:
            raise CoveyError(
                f"the broker dropped {self._inbox.missed:,} events that {self._options.subscription!r} was too slow "
                "for; raise its limit queue, or go on with option('failOnDataLoss', 'false')"
            )
        new = [delivery for delivery in deliveries if self.spool.position_of(delivery.number) is None]
        self.spool.append([SpooledEvent(delivery.number, delivery.event, delivery.attributes) for delivery in new])
        finished: list[Delivery] = []
        for delivery in deliveries:
            position = self.spool.position_of(delivery.number)
            if position:
                self._open.append((position, delivery))
            else:
                finished.append(delivery)
        self._inbox.acknowledge(finished)
        return len(new)


class CoveyStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """`spark.readStream.format("covey")`. Tasks have a copy of this, without the feed."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(schema, fail_fast=options.fail_fast)
        self._opened: Feed | None = None
        self._target: int | None = None

    @property
    def _feed(self) -> Feed:
        if self._opened is None:
            self._opened = Feed(self._options)
        return self._opened

    def initialOffset(self) -> Offset:  # noqa: N802
        """Where a query without a checkpoint starts: at what no query has committed."""
        return self._offset(self._feed.spool.committed.position)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """`maxEventsPerTrigger`."""
        return ReadMaxRows(self._options.most_a_trigger)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take what is queued now, and no more after that."""
        self._feed.drain(self._options.most)
        self._target = self._feed.spool.last

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """How far the next micro-batch goes."""
        at = self._position(start)
        spool = self._feed.spool
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._options.most
        if self._target is None and spool.last - at < most:
            if isinstance(limit, ReadMaxRows):
                self._feed.receive(most - (spool.last - at))
            else:
                self._feed.drain(most - (spool.last - at))
        end = spool.last if self._target is None else self._target
        return self._offset(max(at, min(end, at + most)))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """How far the spool goes."""
        return None if self._opened is None else self._offset(self._opened.spool.last)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One task for each piece of a segment."""
        slices = self._feed.spool.slices(self._position(start), self._position(end))
        return [SpooledPartition(part) for part in slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        assert isinstance(partition, SpooledPartition)
        yield self._rows.batch(read_slice(partition.slice))

    def commit(self, end: Offset) -> None:
        """Acknowledge."""
        self._feed.commit(self._position(end))

    def stop(self) -> None:
        """End the session. The subscription stays."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _offset(self, position: int) -> Offset:
        return {"spool": self._feed.spool.id, "position": position}

    def _position(self, offset: Offset) -> int:
        spool, position = self._feed.spool, int(offset["position"])
        if offset["spool"] != spool.id or position > spool.last:
            raise CoveyError(
                f"the checkpoint doesn't go with the spool {str(spool.directory)!r}; restore the spool that it had, or "
                "start with a new checkpoint and a new spool"
            )
        return position


class CoveyReader(DataSourceReader):  # type: ignore[misc]
    """`spark.read.format("covey")`."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._rows = Rows(schema, fail_fast=options.fail_fast)

    def partitions(self) -> Sequence[InputPartition]:
        """One: a queue has one end."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """What is queued now."""
        inbox = Inbox(self._options, min(SEGMENT_EVENTS, self._options.most), lambda: None)
        try:
            while not inbox.ready():
                time.sleep(ATTEMPT_SECONDS / 5)
            taken: list[Delivery] = []
            while len(taken) < self._options.most:
                arrived = inbox.take(self._options.most - len(taken))
                if arrived:
                    taken += arrived
                    yield self._rows.batch(
                        [SpooledEvent(delivery.number, delivery.event, delivery.attributes) for delivery in arrived]
                    )
                elif inbox.is_empty():
                    break
            inbox.acknowledge(taken)
        finally:
            inbox.close()
