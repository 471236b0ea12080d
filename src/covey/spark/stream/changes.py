"""Subscriptions as a log of versions: one index that follows the changes, and a snapshot of each version in use.

`refresh` brings the index from version V to the newest complete one by applying the rows in between, so that it costs
what changed and not what is there. `snapshot` saves the current version when it is new, and `snapshot_at` finds a
version that was used before a crash. The order of these steps is what makes a replay the same: a version is on disk
before any batch is told to use it, and a batch's version is on disk before the batch runs (`journal`). After a
crash the log opens the newest snapshot and reads only the files that came later, since a snapshot also lists the files
that led to it. A snapshot whose segments can't be opened (they are damaged, or of another covey) is built again from
just those files.

Rows that can't be applied are bad: text that isn't a filter, adding an id that is there, replacing or removing one that
isn't. They leave the subscription as it was, and each file's bad rows are written to `bad/<file>.jsonl`, one line a
row. With `on_error="raise"` they stop the stream instead.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from covey.errors import CoveyError, IndexFileError, OnError, skips
from covey.matching import Index
from covey.spark.addresses import is_address
from covey.spark.only_spark import add_rules
from covey.spark.stream.journal import local_path, write_durably
from covey.spark.stream.remote_changes import RemoteChanges
from covey.spark.stream.settings import RuleSettings
from covey.spark.stream.snapshots import Snapshot, SnapshotStore
from covey.spark.stream.sources import (
    BadChange,
    Change,
    ChangeDirectory,
    RowNames,
    Source,
    SubscriptionTable,
    Table,
    one_line,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN = 10


class BadChangesError(CoveyError):
    """Rows of changes that can't be applied, with `on_error="raise"`."""

    def __init__(self, bad: Sequence[BadChange]) -> None:
        self.bad = list(bad)
        lines = [str(change) for change in bad[:_SHOWN]]
        if len(bad) > _SHOWN:
            lines.append(f"… and {len(bad) - _SHOWN:,} more (see .bad)")
        super().__init__(f"{len(bad):,} changes of subscriptions can't be applied:\n" + "\n".join(lines))


def source_of(
    subscriptions: str | os.PathLike[str] | Table | DataFrame | Source, settings: RuleSettings | None = None
) -> Source:
    """What `subscriptions=` may be: a directory of change files, a table or a function that returns it."""
    names = RowNames() if settings is None else RowNames(settings.id, settings.filter)
    written = (settings or RuleSettings()).written
    if isinstance(subscriptions, str) and is_address(subscriptions):
        return RemoteChanges(subscriptions, names)
    if isinstance(subscriptions, (str, os.PathLike)):
        path = local_path(subscriptions, "subscriptions")
        if not path.is_dir():
            raise CoveyError(f"subscriptions {str(path)!r} is not a directory of change files")
        return ChangeDirectory(path, names)
    if isinstance(subscriptions, Source):
        return subscriptions
    if callable(subscriptions):
        return SubscriptionTable(subscriptions, names, written)
    if hasattr(subscriptions, "toArrow"):
        table = cast("DataFrame", subscriptions)
        return SubscriptionTable(lambda: table, names, written)
    raise CoveyError(
        "subscriptions are a directory of change files, a DataFrame or a function that returns one, "
        f"not {type(subscriptions).__name__}"
    )


class SubscriptionLog:
    """The subscriptions at the current version, and snapshots of the versions in use."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        source: Source,
        *,
        settings: RuleSettings | None = None,
        on_error: OnError = "skip",
    ) -> None:
        self.directory = Path(directory)
        self._source = source
        self._settings = settings = settings or RuleSettings()
        self._skips = skips(on_error)
        self._store = SnapshotStore(self.directory / "index", settings)
        self._bad = self.directory / "bad"
        self.version = 0
        self.index = Index(
            semantics=settings.meaning, dialect=settings.dialect, schema=settings.schema, limits=settings.limits
        )
        """The subscriptions at the current version."""
        self.waiting = 0
        """Change files that are not complete yet."""
        self.bad_rows = 0
        """Bad rows that this process has seen."""
        self._units: set[str] = set()
        self._snapshot: Snapshot | None = None
        saved = self._store.versions()
        if saved:
            self._resume(saved[-1])

    def refresh(self) -> int:
        """Go to the newest version that is complete; how many changes were applied."""
        fetched = self._source.fetch(self.index, self.version, self._units)
        bad = fetched.bad + (apply_changes(self.index, fetched.changes, self._settings) if fetched.changes else [])
        self.report(bad)
        self._units.update(fetched.units)
        self.waiting = fetched.waiting
        self.version = fetched.version
        return len(fetched.changes)

    def newest(self) -> int:
        """The newest version that is complete by now."""
        return self._source.newest(self.version, self._units)

    def snapshot(self) -> Snapshot:
        """The current version on disk; written only when it is new."""
        if self._snapshot is None or self._snapshot.version != self.version:
            self._snapshot = self._store.save(self.index, self.version, self._units)
        return self._snapshot

    def snapshot_at(self, version: int) -> Snapshot:
        """A version that was saved before, for a batch that is replayed."""
        return self.snapshot() if version == self.version else self._store.load(version)[0]

    def keep(self, versions: Iterable[int]) -> None:
        """Forget snapshots but these and the current one."""
        self._store.keep({*versions, self.version})

    def _resume(self, version: int) -> None:
        self._snapshot, units = self._store.load(version)
        self.version, self._units = version, set(units)
        try:
            dialect, self.index = self.index.dialect, self._store.open(self._snapshot)
            self.index.dialect = dialect
        except IndexFileError:
            if not isinstance(self._source, ChangeDirectory):
                raise
            rows = sorted(self._source.read_again(units), key=lambda change: change.version)
            apply_changes(self.index, [change for change in rows if change.version <= version], self._settings)
            self._snapshot = self._store.save(self.index, version, units)

    def report(self, bad: list[BadChange]) -> None:
        """Write rows that can't be applied into the checkpoint, or raise them."""
        if not bad:
            return
        if not self._skips:
            raise BadChangesError(bad)
        self.bad_rows += len(bad)
        self._bad.mkdir(exist_ok=True)
        by_file: dict[str, list[BadChange]] = {}
        for change in bad:
            by_file.setdefault(change.source.replace("/", "+"), []).append(change)
        for name, rows in by_file.items():
            rows.sort(key=lambda change: change.row)
            lines = "".join(json.dumps(row.to_dict(), ensure_ascii=False) + "\n" for row in rows)
            write_durably(self._bad / f"{name}.jsonl", lines.encode())


def apply_changes(index: Index, changes: Sequence[Change], settings: RuleSettings) -> list[BadChange]:
    """Apply rows in their order; those that can't be applied leave their subscription as it was and are returned.

    Rows of different ids don't depend on each other. So the first row of every id is one bulk change, the second row
    of those that have two is the next, and so on: nearly always there is one round.
    """
    rounds: list[list[Change]] = []
    seen: Counter[str] = Counter()
    for change in changes:
        if seen[change.id] == len(rounds):
            rounds.append([])
        rounds[seen[change.id]].append(change)
        seen[change.id] += 1
    bad: list[BadChange] = []
    for changes in rounds:
        bad += _apply_round(index, changes, settings)
    return bad


def _apply_round(index: Index, changes: Sequence[Change], settings: RuleSettings) -> list[BadChange]:
    bad: list[BadChange] = []
    good: list[Change] = []
    for change in changes:
        if (change.id in index) == (change.op == "add"):
            wrong = "is there already; op replace changes it" if change.op == "add" else "is not there"
            bad.append(BadChange(change.source, change.row, change.id, f"op {change.op}: the subscription {wrong}"))
        else:
            good.append(change)
    replaced = [change for change in good if change.op == "replace"]
    if replaced:
        # A filter that doesn't compile must not cost the subscription its old one, so they are tried on their own.
        trial = Index(semantics=index.semantics, schema=index.schema, limits=settings.limits)
        errors = _add(trial, replaced, settings)
        bad += errors
        kept = {error.id for error in errors}
        good = [change for change in good if change.id not in kept]
    for change in good:
        if change.op != "add":
            index.remove(change.id)
    return bad + _add(index, [change for change in good if change.op != "remove"], settings)


def _add(index: Index, changes: Sequence[Change], settings: RuleSettings) -> list[BadChange]:
    bad: list[BadChange] = []
    written: list[tuple[Change, str]] = []
    for change in changes:
        try:
            written.append((change, settings.written(change.filter)))
        except (CoveyError, RecursionError) as error:
            bad.append(BadChange(change.source, change.row, change.id, one_line(error)))
    return bad + _add_written(index, written, settings)


def _add_written(index: Index, changes: Sequence[tuple[Change, str]], settings: RuleSettings) -> list[BadChange]:
    if not changes:
        return []
    rows = [(change.id, text) for change, text in changes]
    try:
        if index.schema is not None or settings.as_json:  # where terms are covey's own, and nothing is Spark's
            report = index.add_many(rows, on_error="collect", dialect="sql")
        else:
            report = add_rules(index, rows, dialect="sql", on_error="collect", functions=settings.functions)
    except Exception as error:  # one rule must not stop a stream, whatever is wrong with it
        change = changes[0][0]
        if len(changes) == 1:
            return [BadChange(change.source, change.row, change.id, one_line(error))]
        middle = len(changes) // 2
        return _add_written(index, changes[:middle], settings) + _add_written(index, changes[middle:], settings)
    found = ((changes[bad.row][0], bad) for bad in report.errors)
    return [BadChange(change.source, change.row, change.id, one_line(bad.error)) for change, bad in found]
