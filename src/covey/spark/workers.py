"""What runs inside Spark's Python workers: open the index, match batches, give lists of ids.

A worker opens an index by mapping its file, so all workers of a host share its pages, and keeps the last few open,
since Spark reuses workers for task after task. A worker may be replaced at any time; opening takes milliseconds.

Batches come as large as Spark sends them. They are regrouped, because covey's cost for an event falls with the number
of events at once: 65,536 where events match little, fewer where they match much, so that one step gives about two
million matches. The first step is small and each may be at most eight times the one before, so a surprise stays
bounded; the next task of a worker goes on with what the last one learned of the same index.

An index in several shards is matched shard by shard, each opened, used and let go before the next; the steps are four
times larger then, since a step opens every shard.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkFiles

from covey.events.columns import Source
from covey.matching import Index

Rows = TypeVar("Rows", pa.Array, pa.RecordBatch)

_MOST_OPEN = 4
_FIRST_ROWS = 4_096
_MOST_ROWS = 65_536
_MOST_ROWS_SHARDED = 262_144
_MATCHES = 2_000_000
_GROWTH = 8
_ROWS_OUT = 8_192
"""Rows a batch on the way back. The JVM reads small batches faster: a million rows of nine ids each took it 0.6 s in
batches of 10,000 rows, 1.0 s in batches of 65,536 and 1.4 s in batches of 131,072, on two cores."""

_open: OrderedDict[str, Index] = OrderedDict()
_suitable_rows: dict[str, int] = {}
"""By index file, the rows that the last task's steps came to; forgotten with the index."""


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
            closed, _ = _open.popitem(last=False)
            _suitable_rows.pop(closed, None)
    _open.move_to_end(file.path)
    return index


@dataclass
class Steps:
    """Batches regrouped into tables of as many rows as suit the last step's matches."""

    batches: Iterable[pa.RecordBatch]
    most: int
    rows: int

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
    batches: Iterable[pa.RecordBatch], files: Sequence[IndexFile], read: Callable[[pa.Table], Source] | None = None
) -> Iterator[tuple[pa.Table, NDArray[np.int64], pa.Array]]:
    """For each step its rows, where each event's ids start and end (one more offset than events), and the ids. Rows are
    events themselves, or hold events that are to be `read`."""
    whole = len(files) == 1
    rows = _suitable_rows.get(files[0].path, _FIRST_ROWS) if whole else _FIRST_ROWS
    steps = Steps(batches, _MOST_ROWS if whole else _MOST_ROWS_SHARDED, rows)
    for rows_of_step in steps:
        events = rows_of_step if read is None else read(rows_of_step)
        offsets, ids = _match(events, opened(files[0])) if whole else _match_shards(events, files)
        steps.matched(rows_of_step.num_rows, len(ids))
        if whole:
            _suitable_rows[files[0].path] = steps.rows
        yield rows_of_step, offsets, ids


def match_lists(batches: Iterable[pa.RecordBatch], files: Sequence[IndexFile]) -> Iterator[pa.Array]:
    """For each event the list of its subscriptions' ids."""
    for _, offsets, ids in match_steps(batches, files):
        yield from slices(as_lists(offsets, ids))


def match_counts(batches: Iterable[pa.RecordBatch], files: Sequence[IndexFile]) -> Iterator[pa.Array]:
    """For each event how many subscriptions it meets; ids aren't looked up."""
    steps = Steps(batches, _MOST_ROWS if len(files) == 1 else _MOST_ROWS_SHARDED, _FIRST_ROWS)
    for events in steps:
        counts = np.zeros(events.num_rows, np.int64)
        for file in files:
            index = opened(file) if len(files) == 1 else file.open()
            counts += index.match_batch(events, threads=1).counts()
        steps.matched(events.num_rows, int(counts.sum()))
        yield from slices(pa.array(counts, pa.int32()))


def slices(rows: Rows) -> Iterator[Rows]:
    """The same rows in pieces that suit the JVM."""
    for first in range(0, len(rows), _ROWS_OUT):
        yield rows.slice(first, _ROWS_OUT)


def as_lists(offsets: NDArray[np.int64], ids: pa.Array, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    """One list an event, null for those that are missing. A step's matches are few enough for 32-bit offsets, but for a
    single event with more."""
    mask = None if missing is None else pa.array(missing)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), ids, mask=mask)


def _match(events: Source, index: Index) -> tuple[NDArray[np.int64], pa.Array]:
    found = index.match_batch(events, threads=1)
    lists = found.lists()
    return lists.offsets.to_numpy().astype(np.int64), lists.values.cast(pa.string())


def _match_shards(events: Source, files: Sequence[IndexFile]) -> tuple[NDArray[np.int64], pa.Array]:
    """Shards hold runs of the subscriptions in their order, so an event's ids are its ids of each shard in turn."""
    counts: list[NDArray[np.int64]] = []
    ids: list[pa.Array] = []
    for file in files:
        offsets, of_shard = _match(events, file.open())
        counts.append(np.diff(offsets))
        ids.append(of_shard)
    event = np.concatenate([np.repeat(np.arange(len(of_shard)), of_shard) for of_shard in counts])
    order = np.argsort(event, kind="stable")
    total = np.concatenate(([0], np.cumsum(np.sum(counts, axis=0))))
    return total, pa.concat_arrays(ids).take(pa.array(order))
