"""Matching a stream against subscriptions that change, exactly once.

Each micro-batch runs these steps on the driver, through `foreachBatch`:

1. Is the batch's version decided? (`journal`) If not: read the changes that are complete, apply them to the
   index (`changes`), save the new version's snapshot, bind it to the events' columns, and write down "batch N uses
   version V". Rules that can't be read, compiled or bound are bad changes, and the version is used without them.
2. Match the events on the workers with snapshot V (`batch`), all of them with the same.
3. Commit the result as batch N, once (`sink`).

Then Spark notes in its checkpoint that N is done. Kill the driver anywhere and start again: Spark replays N with the
same events, since it wrote their offsets before N ran. Killed before the note of step 1, nothing had been written, and
a newer version may be chosen. Killed after it, the note and the snapshot are there, and the replay matches the same
events with the same subscriptions. Killed before the commit of step 3, no reader has seen the batch; after it, the
replay finds it committed and leaves it. So each (event, subscription) pair stands once in the sink, under the version
in its row.

A batch that fails though nothing was killed says so in its note. Where nothing of it can have been seen, which is so of
a sink without its commit, the next try takes a newer version if there is one, so that a version with which matching
itself fails is left behind by changing the rules. A writer may have written, and gets the same version again.

Events must come from a source that can replay (files, Kafka, rate; not a socket). A micro-batch with unchanged
subscriptions costs one listing of the change directory, and workers keep what they have open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StructField, StructType
from pyspark.sql.utils import is_remote

from covey.errors import CoveyError, OnError
from covey.spark.batch import COLUMNS, Output, check_output, match_placed
from covey.spark.json_texts import BadJson, JsonColumn, check_json
from covey.spark.options import SubscriptionOptions, check_keywords
from covey.spark.stream.bound_segments import BoundSegments
from covey.spark.stream.changes import SubscriptionLog, source_of
from covey.spark.stream.counts import Counter, Counts
from covey.spark.stream.ids import STRING
from covey.spark.stream.journal import Journal
from covey.spark.stream.listener import BatchReport, Listener, MatchListener, listener_of
from covey.spark.stream.notes import Notes, began, location
from covey.spark.stream.object_sink import ObjectSink
from covey.spark.stream.settings import RuleSettings
from covey.spark.stream.sink import BATCH, LocalPlace, Manifest
from covey.spark.stream.sinks import Sink, read_matches, sink_at
from covey.spark.stream.snapshots import Snapshot, placed_over
from covey.spark.stream.sources import BadChange, Source, Table, one_line
from covey.spark.stream.writing import Job, Place, Written, is_carried, write_matches
from covey.spark.types import quoted
from covey.spark.worker_files import Placed

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Writer = Callable[[DataFrame, int], None]
STARTS = 4
"""So often a query is asked to start."""
LATE = "to connect back"
"""What Spark says where Python took too long."""
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
    trigger: str | None = None,
    on_error: OnError = "skip",
    listener: Listener | None = None,
    json: str | None = None,
    bad_json: BadJson = "raise",
    **options: Unpack[SubscriptionOptions],
) -> StreamingQuery:
    """Start matching a streaming DataFrame against subscriptions that may change while it runs.

    `subscriptions` is a directory of change files, or a function that returns the table of (id, filter, version), which
    is called in every micro-batch; without a version, every table that differs from the one before is a new version.
    The result has the events' columns, `subscriptions` (an array of ids; with `output="pairs"` one row a match, with
    `subscription`; with `output="counts"` the number of `matches`) and `version`.
    It goes to `sink`, a directory that `read_matches` reads, or to
    `writer(result, batch_id)`, which is called again with the same result when a batch is replayed and has to write it
    once by its batch id. `trigger` is "availableNow", an interval such as "10 seconds", or None for one batch after the
    other. Bad rows of changes are collected in the checkpoint, or raised; so are rules that can't be used over these
    events. The other options are those of `match_events`, listed in `covey.spark.options.SubscriptionOptions`; `id` and
    `filter` are names in the table or in the rows of change files. Ids have the type of the table's, or of those in the
    first change file. `json` names a column of JSON texts that hold the events, as in `match_events`: Kafka's values
    needn't be parsed by Spark. A listener hears on how many events of a batch each rule had a term that failed.
    """
    if not events.isStreaming:
        raise CoveyError("the events are not a stream; match_events matches a table")
    if (sink is None) == (writer is None):
        raise CoveyError("give either sink= (a directory) or writer= (a function of a DataFrame and a batch id)")
    check_keywords("match_stream", options)
    given: dict[str, Any] = {**options, "functions": tuple(options.get("functions", ()))}
    if json is not None:
        check_json(events, json, bad_json)
    settings = RuleSettings(**given, columns=events.schema, as_json=json is not None)
    source, note = source_of(subscriptions, settings), began(checkpoint)
    id_type = (source.id_type() or STRING) if note is None else str(note.get("id_type", STRING))
    source.expect(id_type)
    schema = _result_schema(events.schema, output, id_type)
    if sink is not None and BATCH in (name.lower() for name in events.columns):
        raise CoveyError(f"the events have a column {BATCH!r} already; rename it, since a sink's batches go there")
    batches = _Batches(
        checkpoint=os.fspath(checkpoint),
        source=source,
        id_type=id_type,
        sink=None if sink is None else sink_at(sink),
        writer=writer,
        schema=schema.json(),
        output=output,
        texts=None if json is None else JsonColumn(json, bad_json),
        settings=settings,
        on_error=on_error,
        listener=listener_of(listener),
    )
    if not is_remote():
        batches.prepare(events.sparkSession)  # so that mistakes are errors here, and not of a query that stops
    stream = events.writeStream.foreachBatch(batches).option("checkpointLocation", location(checkpoint))
    if trigger == "availableNow":
        stream = stream.trigger(availableNow=True)
    elif trigger is not None:
        stream = stream.trigger(processingTime=trigger)
    return started(stream.start)


def started(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a query. A Connect server gives the Python that runs its batches ten seconds to come up, which no setting
    changes and a busy machine takes; nothing has run then, so it is asked again."""
    for left in reversed(range(STARTS)):
        try:
            return start()
        except PySparkException as error:
            if not left or LATE not in str(error):
                raise
    raise AssertionError


@dataclass
class _Batches:
    """The function of `foreachBatch`, with its state. On Connect it is pickled, before it has any."""

    checkpoint: str
    source: Source
    id_type: str
    sink: Sink | None
    writer: Writer | None
    schema: str
    output: Output
    texts: JsonColumn | None
    settings: RuleSettings
    on_error: OnError
    listener: MatchListener | None
    _state: tuple[Journal, SubscriptionLog, Notes] | None = field(default=None, repr=False)
    _placed: tuple[Snapshot, str, Placed] | None = field(default=None, repr=False)
    """The version that was used last, over events with these columns."""
    _bound: BoundSegments = field(default_factory=BoundSegments, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_state": None, "_placed": None, "_bound": BoundSegments()}

    def prepare(self, spark: SparkSession) -> tuple[Journal, SubscriptionLog, Notes]:
        """Open the journal, the log and the sink, once a process."""
        if self._state is None:
            notes = Notes(self.checkpoint)
            journal = Journal(notes.directory)
            settings: dict[str, Any] = {"semantics": self.settings.meaning, "output": self.output}
            settings["schema"] = self.settings.schema_json
            if self.id_type != STRING:  # which is what a checkpoint has that says nothing
                settings["id_type"] = self.id_type
            stream = journal.identity(settings)
            if self.sink is not None:
                self.sink.claim(stream, self.schema)
                self.sink.check(spark)
            claim = getattr(self.writer, "claim", None)
            if claim is not None:  # a writer that must know whose batches it is given
                claim(stream, self.schema)
            notes.push()
            log = SubscriptionLog(notes.directory, self.source, settings=self.settings, on_error=self.on_error)
            self._state = journal, log, notes
        return self._state

    def __call__(self, events: DataFrame, batch: int) -> None:
        started = time.perf_counter()
        journal, log, notes = self.prepare(events.sparkSession)
        decided = journal.version_of(batch)
        changes = 0
        again = decided is not None and self._may_choose_again(journal, batch)
        if decided is None or again:
            changes = log.refresh()
        if decided is None or (again and log.version > decided):
            snapshot = log.snapshot()
            self._over(events, snapshot)  # before it is decided: what can't be used can't be used by a replay either
            version = journal.decide(batch, snapshot.version, again=again)
            notes.push()
            if version != snapshot.version:
                snapshot = log.snapshot_at(version)
        else:
            snapshot = log.snapshot_at(decided)
        changed = time.perf_counter() - started
        try:
            counts = self._write(events, batch, snapshot)
        except Exception as error:
            journal.fail(batch, one_line(error))
            notes.push()
            raise
        if changes:
            # A replay may still ask for the version of the batch before this one, until Spark notes this one's end.
            log.keep([snapshot.version, journal.version_of(batch - 1) or 0])
        journal.forget_before(batch)
        notes.push()
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

    def _may_choose_again(self, journal: Journal, batch: int) -> bool:
        """Whether a batch that has failed may take a newer version: nobody can have seen anything of it."""
        return self.sink is not None and journal.has_failed(batch) and self.sink.committed(batch) is None

    def _write(self, events: DataFrame, batch: int, snapshot: Snapshot) -> Counts | None:
        if self.sink is not None:
            manifest = self.sink.committed(batch)
            if manifest is None:
                manifest = self._to_sink(self.sink, events, batch, snapshot)
            return manifest.counts
        assert self.writer is not None
        if self.listener is None:
            self.writer(self._result(events, snapshot, None), batch)
            return None
        counter = Counter()
        self.writer(self._result(events, snapshot, counter), batch)
        return counter.counts_soon()

    def _to_sink(self, sink: Sink, events: DataFrame, batch: int, snapshot: Snapshot) -> Manifest:
        result = StructType.fromJson(loads(self.schema))
        counter = Counter()
        strange = [field.name for field in result.fields if not is_carried(field.dataType)]
        if strange and isinstance(sink, ObjectSink):
            raise CoveyError(f"a sink behind an address can't hold column {strange[0]!r}; use writer=, or leave it out")

        def by_workers(place: Place) -> Written:
            placed = self._over(events, snapshot)
            counted = counter.failing(events, placed)
            return write_matches(counted, placed, self.texts, result, self.output, snapshot.version, place)

        def by_spark(place: LocalPlace) -> Written:
            found = self._result(events, snapshot, counter)
            found.write.mode("overwrite").option("compression", "zstd").parquet(place.path)
            files = sorted(path.name for path in Path(place.path).glob("part-*.parquet"))
            counts = counter.counts()
            return Written(files, counts.events, counts.matches)

        job: Job = by_spark if strange else by_workers
        return sink.write(job, batch, snapshot.version, lambda: counter.failures, pairs=self.output == "pairs")

    def _over(self, events: DataFrame, snapshot: Snapshot) -> Placed:
        """A version over the events' columns; rules of it that can't be used there are bad changes."""
        columns = events.schema.json()
        if self._placed is None or self._placed[:2] != (snapshot, columns):
            found = placed_over(events, snapshot, self.settings, self._bound)
            source = f"version-{snapshot.version}"
            refused = [BadChange(source, bad.row, bad.id, one_line(bad.error)) for bad in found.errors]
            self.prepare(events.sparkSession)[1].report(refused)
            self._placed = snapshot, columns, replace(found, id_type=self.id_type)
        return self._placed[2]

    def _result(self, events: DataFrame, snapshot: Snapshot, counter: Counter | None) -> DataFrame:
        lists = COLUMNS["array"]
        placed = self._over(events, snapshot)
        if counter is not None:
            events = counter.failing(events, placed)
        if self.output == "counts":
            result = match_placed(events, placed, output="counts", texts=self.texts)
            if counter is not None:
                result = counter.counting(result, COLUMNS["counts"], lists=False)
            return result.withColumn(VERSION, sf.lit(snapshot.version).cast("bigint"))
        result = match_placed(events, placed, texts=self.texts)
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
    kinds: dict[Output, DataType] = {"array": ArrayType(ids), "pairs": ids, "counts": IntegerType()}
    return StructType([*events.fields, StructField(COLUMNS[output], kinds[output]), StructField(VERSION, LongType())])


__all__ = ["BatchReport", "MatchListener", "match_stream", "read_matches"]
