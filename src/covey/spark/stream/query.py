"""Matching a stream against subscriptions that change, exactly once.

Each micro-batch runs these steps on the driver, through `foreachBatch`:

1. Is the batch's version decided? (`journal`) If not: read the changes that are complete, apply them to the
   index (`changes`), save the new version's snapshot, and write down "batch N uses version V".
2. Match the events on the workers with snapshot V (`batch`), all of them with the same.
3. Commit the result as batch N, once (`sink`).

Then Spark notes in its checkpoint that N is done. Kill the driver anywhere and start again: Spark replays N with the
same events, since it wrote their offsets before N ran. Killed before the note of step 1, nothing had been written, and
a newer version may be chosen. Killed after it, the note and the snapshot are there, and the replay matches the same
events with the same subscriptions. Killed before the commit of step 3, no reader has seen the batch; after it, the
replay finds it committed and leaves it. So each (event, subscription) pair stands once in the sink, under the version
in its row.

Events must come from a source that can replay (files, Kafka, rate; not a socket). A micro-batch with unchanged
subscriptions costs one listing of the change directory, and workers keep what they have open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType
from pyspark.sql.utils import is_remote

from covey.errors import CoveyError
from covey.filters import Semantics
from covey.filters.semantics import check_semantics
from covey.language import check_dialect
from covey.spark.batch import COLUMNS, Output, check_output, match_placed
from covey.spark.conditions.binding import OnTermError
from covey.spark.stream.changes import OnError, SubscriptionLog, source_of
from covey.spark.stream.counts import Counter, Counts
from covey.spark.stream.ids import STRING, type_in_checkpoint
from covey.spark.stream.journal import Journal, local_path
from covey.spark.stream.listener import BatchReport, Listener, MatchListener, listener_of
from covey.spark.stream.sink import BATCH, ParquetSink, read_matches
from covey.spark.stream.snapshots import Snapshot, placed_over
from covey.spark.stream.sources import BadChange, Source, Table, one_line
from covey.spark.types import quoted
from covey.spark.worker_files import Placed

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Writer = Callable[[DataFrame, int], None]
VERSION = "version"
"""The column that says under which version of the subscriptions a row was matched."""


def match_stream(
    events: DataFrame,
    subscriptions: str | os.PathLike[str] | Table | DataFrame | Source,
    *,
    checkpoint: str | os.PathLike[str],
    sink: str | os.PathLike[str] | None = None,
    writer: Writer | None = None,
    output: Output = "array",
    semantics: Semantics = "sql",
    dialect: str = "sql",
    trigger: str | None = None,
    on_error: OnError = "collect",
    listener: Listener | None = None,
    functions: Sequence[str] = (),
    on_term_error: OnTermError = "unknown",
) -> StreamingQuery:
    """Start matching a streaming DataFrame against subscriptions that may change while it runs.

    `subscriptions` is a directory of change files, or a function that returns the table of (id, filter, version), which
    is called in every micro-batch. The result has the events' columns, `subscriptions` (an array of ids;
    with `output="pairs"` one row a match, with `subscription`) and `version`. It goes to `sink`, a directory that
    `read_matches` reads, or to `writer(result, batch_id)`, which is called again with the same result when a batch is
    replayed and has to write it once by its batch id. `dialect` is what the filters are written in. `trigger` is
    "availableNow", an interval such as "10 seconds", or None for one batch after the other. Bad rows of
    changes are collected in the checkpoint, or raised; so are rules that Spark refuses over these events. `functions`
    and `on_term_error` are those of `match_events`. Ids have the type of the table's, or of those in the first change
    file. A listener hears on how many events of a batch each rule had a term that failed.
    """
    if not events.isStreaming:
        raise CoveyError("the events are not a stream; match_events matches a table")
    if (sink is None) == (writer is None):
        raise CoveyError("give either sink= (a directory) or writer= (a function of a DataFrame and a batch id)")
    check_dialect(dialect)
    source, where = source_of(subscriptions), local_path(checkpoint, "checkpoint")
    id_type = type_in_checkpoint(where) or source.id_type() or STRING
    source.expect(id_type)
    schema = _result_schema(events.schema, output, id_type)
    if sink is not None and BATCH in (name.lower() for name in events.columns):
        raise CoveyError(f"the events have a column {BATCH!r} already; rename it, since a sink's batches go there")
    batches = _Batches(
        checkpoint=str(where),
        source=source,
        id_type=id_type,
        sink=None if sink is None else ParquetSink(sink),
        writer=writer,
        schema=schema.json(),
        output=output,
        semantics=check_semantics(semantics),
        dialect=dialect,
        on_error=on_error,
        listener=listener_of(listener),
        functions=tuple(functions),
        on_term_error=on_term_error,
    )
    if not is_remote():
        batches.prepare()  # so that mistakes are errors here, and not of a query that stops
    stream = events.writeStream.foreachBatch(batches).option("checkpointLocation", batches.checkpoint)
    if trigger == "availableNow":
        stream = stream.trigger(availableNow=True)
    elif trigger is not None:
        stream = stream.trigger(processingTime=trigger)
    return stream.start()


@dataclass
class _Batches:
    """The function of `foreachBatch`, with its state. On Connect it is pickled, before it has any."""

    checkpoint: str
    source: Source
    id_type: str
    sink: ParquetSink | None
    writer: Writer | None
    schema: str
    output: Output
    semantics: Semantics
    dialect: str
    on_error: OnError
    listener: MatchListener | None
    functions: tuple[str, ...] = ()
    on_term_error: OnTermError = "unknown"
    _state: tuple[Journal, SubscriptionLog] | None = field(default=None, repr=False)
    _placed: tuple[Snapshot, str, Placed] | None = field(default=None, repr=False)
    """The version that was used last, over events with these columns."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_state": None, "_placed": None}

    def prepare(self) -> tuple[Journal, SubscriptionLog]:
        """Open the journal, the log and the sink, once a process."""
        if self._state is None:
            directory = local_path(self.checkpoint, "checkpoint") / "covey"
            journal = Journal(directory)
            settings: dict[str, str] = {"semantics": self.semantics, "output": self.output}
            if self.id_type != STRING:  # which is what a checkpoint has that says nothing
                settings["id_type"] = self.id_type
            stream = journal.identity(settings)
            if self.sink is not None:
                self.sink.claim(stream, self.schema)
            log = SubscriptionLog(
                directory,
                self.source,
                semantics=self.semantics,
                dialect=self.dialect,
                on_error=self.on_error,
                functions=self.functions,
            )
            self._state = journal, log
        return self._state

    def __call__(self, events: DataFrame, batch: int) -> None:
        started = time.perf_counter()
        journal, log = self.prepare()
        decided = journal.version_of(batch)
        changes = 0
        if decided is None:
            changes = log.refresh()
            snapshot = log.snapshot()
            version = journal.decide(batch, snapshot.version)
            if version != snapshot.version:
                snapshot = log.snapshot_at(version)
        else:
            snapshot = log.snapshot_at(decided)
        changed = time.perf_counter() - started
        counts = self._write(events, batch, snapshot)
        if changes:
            # A replay may still ask for the version of the batch before this one, until Spark notes this one's end.
            log.keep([snapshot.version, journal.version_of(batch - 1) or 0])
        journal.forget_before(batch)
        if self.listener is not None:
            self.listener.on_batch(
                BatchReport(
                    batch=batch,
                    version=snapshot.version,
                    newest=max(log.newest(), snapshot.version),
                    events=None if counts is None else counts.events,
                    matches=None if counts is None else counts.matches,
                    failures={} if counts is None else counts.failures,
                    seconds=time.perf_counter() - started,
                    change_seconds=changed,
                    changes=changes,
                    bad_changes=log.bad_rows,
                    waiting=log.waiting,
                    replayed=decided is not None,
                )
            )

    def _write(self, events: DataFrame, batch: int, snapshot: Snapshot) -> Counts | None:
        if self.sink is not None:
            manifest = self.sink.committed(batch)
            if manifest is None:
                counter = Counter()
                result = self._result(events, snapshot, counter)
                manifest = self.sink.write(
                    result, batch, snapshot.version, counter.counts, pairs=self.output == "pairs"
                )
            return manifest.counts
        assert self.writer is not None
        if self.listener is None:
            self.writer(self._result(events, snapshot, None), batch)
            return None
        counter = Counter()
        self.writer(self._result(events, snapshot, counter), batch)
        return counter.counts_soon()

    def _over(self, events: DataFrame, snapshot: Snapshot) -> Placed:
        """A version over the events' columns; rules of it that Spark refuses are bad changes."""
        columns = events.schema.json()
        if self._placed is None or self._placed[:2] != (snapshot, columns):
            found = placed_over(events, snapshot, self.functions, self.on_term_error)
            source = f"version-{snapshot.version}"
            refused = [BadChange(source, bad.row, bad.id, one_line(bad.error)) for bad in found.errors]
            self.prepare()[1].report(refused)
            self._placed = snapshot, columns, replace(found, id_type=self.id_type)
        return self._placed[2]

    def _result(self, events: DataFrame, snapshot: Snapshot, counter: Counter | None) -> DataFrame:
        lists = COLUMNS["array"]
        placed = self._over(events, snapshot)
        if counter is not None:
            events = counter.failing(events, placed)
        result = match_placed(events, placed)
        if counter is not None:
            result = counter.counting(result, lists)
        if self.output == "pairs":
            columns = [sf.col(quoted(name)) for name in events.columns]
            result = result.select(*columns, sf.explode(lists).alias(COLUMNS["pairs"]))
        return result.withColumn(VERSION, sf.lit(snapshot.version).cast("bigint"))


def _result_schema(events: StructType, output: Output, id_type: str) -> StructType:
    """The events' columns, the matches, the version."""
    check_output(events.names, output)
    check_output(events.names, "array")  # which pairs are made from
    if VERSION in (name.lower() for name in events.names):
        raise CoveyError(f"the events have a column {VERSION!r} already; rename it, since the version goes there")
    ids = StructType.fromDDL(f"id {id_type}").fields[0].dataType
    kind: DataType = ArrayType(ids) if output == "array" else ids
    return StructType([*events.fields, StructField(COLUMNS[output], kind), StructField(VERSION, LongType())])


__all__ = ["BatchReport", "MatchListener", "match_stream", "read_matches"]
