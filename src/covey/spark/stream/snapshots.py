"""Versions of a large index on disk, at the price of what changed.

An index is a few segments that never change and a bitmap of deletions for each. So a version is a short list: in which
file each segment stands, and its bitmap. Saving version V writes the segments that no file has yet into
`index-<V>-<hash>.covey`, and then the list into `version-<V>.json`, both synced and renamed into place. With 1,000
changes among 1,000,000 subscriptions that is a file of 1,000, however large the rest is; merging small segments into
larger ones is the index's own business and needs no other compaction here. A version counts as saved when its list is
there; a data file without a list that names it is debris of a crash, and is removed.

Workers map the files and keep the segments by file, so that a new version costs them the mapping of its small file.
The list travels to them with the task: bitmaps are compressed, some kilobytes for a million subscriptions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pyspark import SparkFiles
from pyspark.sql import DataFrame, SparkSession

from covey.errors import CoveyError, IndexFileError
from covey.events import Schema
from covey.filters import Semantics
from covey.matching import BadSubscription, Index
from covey.matching.segment import Segment
from covey.matching.state import Sealed
from covey.matching.storage import content_hash, index_header, read_index, write_index
from covey.spark.batch import match_placed
from covey.spark.plain_rules import Fields
from covey.spark.rules import Columns, index_of, with_plain
from covey.spark.stream.bound_segments import BoundSegments
from covey.spark.stream.journal import sync_directory, write_durably
from covey.spark.stream.settings import RuleSettings
from covey.spark.worker_files import Placed, is_local, linked, needed, place, save_for_workers
from covey.spark.workers import IndexFile

_KEPT_OPEN = 2
"""Versions that a process keeps open: the current one and the one before it."""
MOST_CULPRITS = 100
"""Rules of one version that are looked for, one by one, where the version as a whole can't be used."""


@dataclass(frozen=True, slots=True)
class SavedSegment:
    """Where a segment stands, and what is deleted of it."""

    file: str
    """In the directory of versions, or a path elsewhere on the driver (`bound_segments`)."""
    number: int
    deleted: bytes
    """The bitmap, compressed."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version, ready to be opened by any process that sees the directory."""

    directory: str
    version: int
    semantics: Semantics
    attributes: tuple[str, ...]
    segments: tuple[SavedSegment, ...]
    schema: str | None = None
    """The schema of the rules, as JSON."""


class SnapshotStore:
    """The directory of saved versions."""

    def __init__(self, directory: Path, settings: RuleSettings) -> None:
        self.directory = directory
        self._semantics = settings.meaning
        self._schema = settings.schema_json
        self._saved: list[tuple[Segment, str, int]] = []
        directory.mkdir(parents=True, exist_ok=True)

    def save(self, index: Index, version: int, units: Iterable[str]) -> Snapshot:
        """Save the index as this version; only segments that no file has are written."""
        sealed = index.parts()
        known = {id(segment): (file, number) for segment, file, number in self._saved}
        fresh = [part.segment for part in sealed if id(part.segment) not in known]
        if fresh:
            file = self._write(version, fresh)
            known.update((id(segment), (file, number)) for number, segment in enumerate(fresh))
        self._saved = [(part.segment, *known[id(part.segment)]) for part in sealed]
        snapshot = Snapshot(
            str(self.directory),
            version,
            self._semantics,
            index.attributes,
            tuple(SavedSegment(*known[id(part.segment)], zlib.compress(part.deleted.tobytes(), 1)) for part in sealed),
            None if self._schema is None else json.dumps(self._schema, sort_keys=True),
        )
        write_durably(self._list_of(version), json.dumps(_to_json(snapshot, units)).encode())
        return snapshot

    def _write(self, version: int, segments: list[Segment]) -> str:
        whole = [(segment, segment.none_deleted) for segment in segments]
        temporary = self.directory / f".writing-{os.getpid()}.covey"
        write_index(temporary, index_header(self._semantics, schema=self._schema), whole)
        name = f"index-{version}-{content_hash(temporary)}.covey"
        os.replace(temporary, self.directory / name)
        sync_directory(self.directory)
        return name

    def load(self, version: int) -> tuple[Snapshot, list[str]]:
        """A saved version, and the units that led to it."""
        path = self._list_of(version)
        try:
            return _from_json(str(self.directory), json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError) as error:
            raise IndexFileError(f"{path}: the list of version {version} can't be read ({error})") from None

    def open(self, snapshot: Snapshot) -> Index:
        """A saved version as an index that may be changed; its segments are known as saved."""
        index = opened(snapshot, {}, verify=True)
        pairs = zip(index.parts(), snapshot.segments, strict=True)
        self._saved = [(part.segment, saved.file, saved.number) for part, saved in pairs]
        return index

    def versions(self) -> list[int]:
        """All versions that are saved, ascending."""
        return sorted(int(path.stem.removeprefix("version-")) for path in self.directory.glob("version-*.json"))

    def keep(self, versions: Collection[int]) -> None:
        """Remove all other versions and the files that none of these names. Processes that have one mapped keep it."""
        named: set[str] = set()
        for version in self.versions():
            if version in versions:
                named.update(saved.file for saved in self.load(version)[0].segments)
            else:
                self._list_of(version).unlink(missing_ok=True)
        for path in [*self.directory.glob("index-*.covey"), *self.directory.glob(".writing-*.covey")]:
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _list_of(self, version: int) -> Path:
        return self.directory / f"version-{version}.json"


def _to_json(snapshot: Snapshot, units: Iterable[str]) -> dict[str, Any]:
    return {
        "version": snapshot.version,
        "semantics": snapshot.semantics,
        "schema": snapshot.schema,
        "attributes": snapshot.attributes,
        "segments": [
            {"file": segment.file, "number": segment.number, "deleted": base64.b64encode(segment.deleted).decode()}
            for segment in snapshot.segments
        ],
        "units": sorted(units),
    }


def _from_json(directory: str, given: dict[str, Any]) -> tuple[Snapshot, list[str]]:
    segments = tuple(
        SavedSegment(listed["file"], listed["number"], base64.b64decode(listed["deleted"]))
        for listed in given["segments"]
    )
    attributes = tuple(given["attributes"])
    listed = given["version"], given["semantics"], attributes, segments, given.get("schema")
    return Snapshot(directory, *listed), given["units"]


# Opening


def opened(
    snapshot: Snapshot, files: dict[str, list[Segment]], *, shipped: bool = False, verify: bool = False
) -> Index:
    """A version's index; files that are open already are in `files`, others are opened into it."""
    sealed = []
    for saved in snapshot.segments:
        if saved.file not in files:
            path = SparkFiles.get(_shipped_as(saved.file)) if shipped else os.path.join(snapshot.directory, saved.file)
            files[saved.file] = [segment for segment, _ in read_index(path, verify=verify)[1]]
        segment = files[saved.file][saved.number]
        deleted = np.frombuffer(zlib.decompress(saved.deleted), dtype=np.uint8)
        sealed.append(Sealed.marked(segment, deleted))
    schema = None if snapshot.schema is None else Schema.from_json(json.loads(snapshot.schema))
    return Index.of_parts(sealed, semantics=snapshot.semantics, schema=schema)


_lock = threading.Lock()
_files: dict[str, list[Segment]] = {}
_indexes: OrderedDict[Snapshot, Index] = OrderedDict()


def cached(snapshot: Snapshot, *, shipped: bool = False) -> Index:
    """A version's index, opened once in this process; for matching only."""
    with _lock:
        if snapshot in _indexes:
            _indexes.move_to_end(snapshot)
            return _indexes[snapshot]
        index = _indexes[snapshot] = opened(snapshot, _files, shipped=shipped)
        while len(_indexes) > _KEPT_OPEN:
            _indexes.popitem(last=False)
        used = {saved.file for version in _indexes for saved in version.segments}
        for name in _files.keys() - used:
            del _files[name]
        return index


@dataclass(frozen=True, slots=True)
class SnapshotFiles(IndexFile):
    """A version as an index file: where `covey.spark.batch` has the path of one file, this has several."""

    snapshot: Snapshot = field(kw_only=True)

    def open(self) -> Index:
        """Map what isn't mapped yet."""
        return cached(self.snapshot, shipped=self.shipped)


def _shipped_as(file: str) -> str:
    """A session takes one path for each name, and two of its streams may save versions of the same name: executors know
    files by their content, which `SnapshotStore` has put into the name."""
    return f"covey-{file.rpartition('-')[2]}"


def placed(spark: SparkSession, snapshot: Snapshot) -> Placed:
    """A version where workers find it: in the driver's directory, or shipped to every executor, each file once."""
    local = is_local(spark)
    if not local:
        shipped = _shipped.setdefault(spark, set())
        for name in {saved.file for saved in snapshot.segments} - shipped:
            path = linked(Path(snapshot.directory, name))
            assert path.name == _shipped_as(name)
            spark.addArtifact(str(path), file=True)
            shipped.add(name)
    # Workers know an open index by this name, so it tells apart all that differs.
    name = f"version-{snapshot.version}-{hashlib.sha256(repr(snapshot).encode()).hexdigest()[:32]}"
    return Placed((SnapshotFiles(name, not local, snapshot=snapshot),), snapshot.attributes)


def placed_over(
    events: DataFrame, snapshot: Snapshot, settings: RuleSettings, bound: BoundSegments | None = None
) -> Placed:
    """A version over these events' columns: as it is where covey reads its rules as Spark does, else bound to them,
    segment by segment; those that `bound` has aren't bound again. Rules of it that can't be used, for whatever reason,
    are left out and are among the errors."""
    index = cached(snapshot)
    if settings.as_json:
        return _placed_for_json(events, snapshot, index, settings)
    try:
        return _placed_whole(events, snapshot, index, settings, bound or BoundSegments())
    except Exception as error:  # one rule must not stop a stream, whatever is wrong with it
        rows = list(index.rows())
        culprits = _culprits(events, index, rows, settings, error)
    bad = {culprit.row for culprit in culprits}
    rest = Index(semantics=index.semantics, schema=index.schema, limits=settings.limits)
    rest.add_many([row for number, row in enumerate(rows) if number not in bad])
    found = _placed_anew(events, rest, settings)
    return replace(found, errors=(*culprits, *found.errors))


def _placed_for_json(events: DataFrame, snapshot: Snapshot, index: Index, settings: RuleSettings) -> Placed:
    """A version for JSON texts, whose attributes are no columns: nothing has to be bound."""
    if not _is_above(snapshot, settings.memory_budget):
        return replace(placed(events.sparkSession, snapshot), attributes=())
    return place(events, index, limits=settings.limits, memory_budget=settings.memory_budget, as_json=True)


def _placed_whole(
    events: DataFrame, snapshot: Snapshot, index: Index, settings: RuleSettings, bound: BoundSegments
) -> Placed:
    if _is_above(snapshot, settings.memory_budget):
        return _placed_anew(events, index, settings)
    columns: Columns | None = None
    bad: tuple[BadSubscription, ...] = ()
    if index.schema is None:
        saved = [(one.file, one.number, one.deleted) for one in snapshot.segments]
        parts = list(zip(index.parts(), saved, strict=True))
        found = bound.find(events, parts, lambda rows: _bound(events, index, rows, settings), save_for_workers)
        if not found.agree:
            return _placed_anew(events, index, settings)
        if found.bound:
            snapshot = replace(snapshot, segments=tuple(SavedSegment(*one) for one in found.segments))
            index = cached(snapshot)
        columns, bad = with_plain(found.columns, index, Fields.of(events)), tuple(found.bad)
    placed_so = placed(events.sparkSession, snapshot)
    result = replace(placed_so, attributes=needed(index), columns=columns, errors=bad)
    match_placed(events, result)  # which Spark's analyser looks at
    return result


def _bound(
    events: DataFrame, index: Index, rows: list[tuple[str, str]], settings: RuleSettings
) -> tuple[Index, list[BadSubscription], Columns]:
    """Rules of a segment over the events' columns, and those that can't be used."""
    try:
        made, errors, columns = index_of(events, rows, settings.on_spark(), "collect")
        match_placed(events, Placed((), needed(made), columns))
    except Exception as error:
        culprits = _culprits(events, index, rows, settings, error)
    else:
        return made, errors, columns
    bad = {culprit.row for culprit in culprits}
    places = [number for number in range(len(rows)) if number not in bad]
    made, errors, columns = index_of(events, [rows[place] for place in places], settings.on_spark(), "collect")
    match_placed(events, Placed((), needed(made), columns))
    return made, [*culprits, *(BadSubscription(places[one.row], one.id, one.error) for one in errors)], columns


def _placed_anew(events: DataFrame, index: Index, settings: RuleSettings) -> Placed:
    found = place(
        events, index, on_error="collect", limits=settings.limits, memory_budget=settings.memory_budget,
        functions=settings.functions, on_term_error=settings.on_term_error,
    )  # fmt: skip
    match_placed(events, found)
    return found


def _is_above(snapshot: Snapshot, budget: int | None) -> bool:
    files = {saved.file for saved in snapshot.segments}
    return (
        budget is not None and sum(os.path.getsize(os.path.join(snapshot.directory, file)) for file in files) > budget
    )


def _culprits(
    events: DataFrame, index: Index, rows: list[tuple[str, str]], settings: RuleSettings, error: Exception
) -> list[BadSubscription]:
    """The rules for which a version as a whole fails, by halves: as many trials as culprits times doublings."""
    found: list[BadSubscription] = []

    def look(first: int, last: int) -> None:
        wrong = _trial(events, index, rows[first:last], settings)
        if wrong is None:
            return
        if len(found) >= MOST_CULPRITS or last == first:
            raise error
        if last - first == 1:
            reason = wrong if isinstance(wrong, CoveyError) else CoveyError(f"{type(wrong).__name__}: {wrong}")
            found.append(BadSubscription(first, rows[first][0], reason))
            return
        middle = (first + last) // 2
        look(first, middle)
        look(middle, last)

    look(0, 0)  # where even no rule at all fails, no rule is to blame
    look(0, len(rows))
    if not found:
        raise error
    return found


def _trial(events: DataFrame, index: Index, rows: list[tuple[str, str]], settings: RuleSettings) -> Exception | None:
    """What is wrong with these rules over the events, in all that is done with them before events are matched."""
    try:
        if index.schema is not None:
            part, columns = Index(semantics=index.semantics, schema=index.schema, limits=settings.limits), None
            part.add_many(rows)
        else:
            part, _, columns = index_of(events, rows, settings.on_spark(), "collect")
        match_placed(events, Placed((), needed(part), columns))
    except Exception as error:
        return error
    return None


_shipped: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
