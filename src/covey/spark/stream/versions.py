"""One micro-batch against one version of the rules, for those who have a `foreachBatch` of their own.

Whoever writes the loop decides on the version, notes it beside the batch id, and after a crash asks for the same one
again: the rows of a directory of change files up to a version are the same whenever they are read. The index goes from
version to version by what changed; a version before the one that was asked for last is built from the start.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Unpack

from pyspark.sql import DataFrame

from covey.errors import CoveyError, OnError, skips
from covey.matching import Index
from covey.spark.batch import Output, match_placed
from covey.spark.options import SubscriptionOptions, check_keywords
from covey.spark.stream.bound_segments import BoundSegments
from covey.spark.stream.changes import BadChangesError, apply_changes, source_of
from covey.spark.stream.settings import RuleSettings
from covey.spark.stream.snapshots import Snapshot, SnapshotStore, placed_over
from covey.spark.stream.sources import BadChange, Change, ChangeDirectory, one_line
from covey.spark.worker_files import directory

MOST_KEPT = 8
"""Directories of changes that a process follows, and versions of each that it has on disk."""


def match_batch_version(
    events: DataFrame,
    rules: str | os.PathLike[str],
    version: int,
    *,
    output: Output = "array",
    on_error: OnError = "raise",
    **options: Unpack[SubscriptionOptions],
) -> DataFrame:
    """The events matched against the rules as they are at a version, as `match_events` gives it: for `foreachBatch`.

    `rules` is a directory of change files as `match_stream` has it, of which those of later versions don't count; a
    version that isn't there yet is an error, `newest_version` says which is. Bad rows, and rules that can't be used
    over these events, are a BadChangesError, or with `on_error="skip"` left out.
    """
    check_keywords("match_batch_version", options)
    skip = skips(on_error)
    given: dict[str, Any] = {**options, "functions": tuple(options.get("functions", ()))}
    settings = RuleSettings(**given, columns=events.schema)
    with _lock:
        follower = _follower(rules, settings)
        snapshot, bad = follower.at(version)
        placed = placed_over(events, snapshot, settings, follower.bound)
    source = f"version-{version}"
    bad = bad + [BadChange(source, error.row, error.id, one_line(error.error)) for error in placed.errors]
    if bad and not skip:
        raise BadChangesError(bad)
    return match_placed(events, placed, output=output)


def newest_version(rules: str | os.PathLike[str]) -> int:
    """The newest version that is complete in a directory of change files; 0 where none is."""
    return source_of(rules).newest(0, ())


class _Follower:
    """A directory of changes, and an index at some version of it."""

    def __init__(self, path: str, settings: RuleSettings) -> None:
        source = source_of(path, settings)
        assert isinstance(source, ChangeDirectory)
        source.expect(source.id_type() or "string")
        self._source, self._settings = source, settings
        self._rows: list[Change] = []
        self._unreadable: list[BadChange] = []
        self._units: set[str] = set()
        self._newest = 0
        self.bound = BoundSegments()
        self._store = SnapshotStore(Path(tempfile.mkdtemp(dir=directory())), settings)
        self._begin()

    def _begin(self) -> None:
        settings = self._settings
        self._version = 0
        self._bad: list[BadChange] = []
        self._index = Index(semantics=settings.meaning, schema=settings.schema, limits=settings.limits)

    def at(self, version: int) -> tuple[Snapshot, list[BadChange]]:
        """A version on disk, and the bad rows that led to it."""
        self._read()
        if version < 0 or version > self._newest:
            where = self._source.path
            raise CoveyError(f"version {version} of the rules in {where} is not there; the newest is {self._newest}")
        if version < self._version:
            self._begin()
        changes = [change for change in self._rows if self._version < change.version <= version]
        self._bad += apply_changes(self._index, changes, self._settings) if changes else []
        self._version = version
        snapshot = self._store.save(self._index, version, ())
        self._store.keep(self._store.versions()[-MOST_KEPT:])
        return snapshot, self._unreadable + self._bad

    def _read(self) -> None:
        fetched = self._source.fetch(self._index, self._newest, self._units)
        self._rows += fetched.changes
        self._unreadable += fetched.bad
        self._units.update(fetched.units)
        self._newest = fetched.version


_lock = threading.Lock()
_followers: OrderedDict[tuple[str, str], _Follower] = OrderedDict()


def _follower(rules: str | os.PathLike[str], settings: RuleSettings) -> _Follower:
    key = os.fspath(rules), repr(settings)
    if key not in _followers:
        _followers[key] = _Follower(key[0], settings)
        while len(_followers) > MOST_KEPT:
            _followers.popitem(last=False)
    _followers.move_to_end(key)
    return _followers[key]
