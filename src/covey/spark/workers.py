"""What runs inside Spark's Python workers: open the index, match batches, give lists of ids.

A worker opens an index by mapping its file, so all workers of a host share its pages, and keeps the last few open,
since Spark reuses workers for task after task. A worker may be replaced at any time; opening takes milliseconds.

Batches come as large as Spark sends them. They are regrouped, because covey's cost for an event falls with the number
of events at once: 65,536 where events match little, fewer where they match much, so that one step gives about a million
matches. The first step is small and each may be at most eight times the one before, so a surprise stays bounded.

An index in several shards is matched shard by shard, each opened, used and let go before the next; the steps are four
times larger then, since a step opens every shard.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkFiles

from covey.matching import Index

_MOST_OPEN = 4
_FIRST_ROWS = 4_096
_MOST_ROWS = 65_536
_MOST_ROWS_SHARDED = 262_144
_MATCHES = 1_000_000
_GROWTH = 8

_open: OrderedDict[str, Index] = OrderedDict()


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A saved index as workers find it: a path, or the name of a file that Spark ships to every executor."""

    path: str
    shipped: bool = False

    def open(self) -> Index:
        """Map it, without reading it through."""
        return Index.open(SparkFiles.get(self.path) if self.shipped else self.path, verify=False)


def opened(file: IndexFile) -> Index:
    """The index of a file, kept open; the names of files carry a hash of the content, so a name is never stale."""
    index = _open.get(file.path)
    if index is None:
        index = _open[file.path] = file.open()
        while len(_open) > _MOST_OPEN:
            _open.popitem(last=False)
    _open.move_to_end(file.path)
    return index


@dataclass
class Steps:
    """Batches regrouped into tables of as many rows as suit the last step's matches."""

    batches: Iterable[pa.RecordBatch]
    most: int
    rows: int = _FIRST_ROWS

    def __iter__(self) -> Iterator[pa.Table]:
        held: list[pa.RecordBatch] = []
        room = self.rows
        for batch in self.batches:
            start = 0
            while batch.num_rows - start >= room:
                held.append(batch.slice(start, room))
                start += room
                yield pa.Table.from_batches(held)
                held, room = [], self.rows
            if start < batch.num_rows:
                held.append(batch.slice(start))
                room -= batch.num_rows - start
        if held:
            yield pa.Table.from_batches(held)

    def matched(self, rows: int, matches: int) -> None:
        """Set the next step's rows from what the last one gave."""
        wanted = _MATCHES * rows // max(1, matches)
        self.rows = max(1, min(wanted, self.most, _GROWTH * max(rows, self.rows // _GROWTH)))


def match_steps(
    batches: Iterable[pa.RecordBatch], files: Sequence[IndexFile]
) -> Iterator[tuple[pa.Table, NDArray[np.int64], pa.Array]]:
    """For each step its events, where each event's ids start and end (one more offset than events), and the ids."""
    steps = Steps(batches, _MOST_ROWS if len(files) == 1 else _MOST_ROWS_SHARDED)
    for events in steps:
        offsets, ids = _match(events, opened(files[0])) if len(files) == 1 else _match_shards(events, files)
        steps.matched(events.num_rows, len(ids))
        yield events, offsets, ids


def match_lists(batches: Iterable[pa.RecordBatch], files: Sequence[IndexFile]) -> Iterator[pa.Array]:
    """For each event the list of its subscriptions' ids."""
    for _, offsets, ids in match_steps(batches, files):
        yield as_lists(offsets, ids)


def as_lists(offsets: NDArray[np.int64], ids: pa.Array) -> pa.Array:
    """One list an event. A step's matches are few enough for 32-bit offsets, but for a single event with more."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), ids)


def _match(events: pa.Table, index: Index) -> tuple[NDArray[np.int64], pa.Array]:
    found = index.match_batch(events, threads=1)
    lists = found.lists()
    return lists.offsets.to_numpy().astype(np.int64), lists.values.cast(pa.string())


def _match_shards(events: pa.Table, files: Sequence[IndexFile]) -> tuple[NDArray[np.int64], pa.Array]:
    """Shards hold runs of the subscriptions in their order, so an event's ids are its ids of each shard in turn."""
    counts: list[NDArray[np.int64]] = []
    ids: list[pa.Array] = []
    for file in files:
        offsets, of_shard = _match(events, file.open())
        counts.append(np.diff(offsets))
        ids.append(of_shard)
    event = np.concatenate([np.repeat(np.arange(events.num_rows), of_shard) for of_shard in counts])
    order = np.argsort(event, kind="stable")
    total = np.concatenate(([0], np.cumsum(np.sum(counts, axis=0))))
    return total, pa.concat_arrays(ids).take(pa.array(order))
