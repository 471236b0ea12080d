"""A broker's journal in SQLite: rows by (space, key), one writer thread, group commit.

The journal is in WAL mode with `synchronous=FULL`: a commit that was reported is on the disk. The writer takes all that
waits at once and commits it as one transaction, so a commit's cost (one fsync) is shared by everything that came in
while the one before was under way; the later value of a row wins, which is what committing one by one would leave.
Whoever submits rows is called back, in the writer's thread, in the order of submission, after the commit.

The file is locked as long as it is open: two brokers can't share one.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Protocol, TypeAlias

from covey.network.errors import StorageError
from covey.routing.journal import Put, Record

FORMAT: Final = "1"
GROUP_RECORDS: Final = 20_000
"""Rows in one transaction: those that wait longer get the next."""

Done: TypeAlias = Callable[[Exception | None], None]
"""Told that everything up to here is committed, or why it can't be."""


class Journal(Protocol):
    """Where a broker's rows are kept."""

    def rows(self) -> Iterator[Put]:
        """All rows; before the first submit."""

    def submit(self, records: Sequence[Record], done: Done) -> None:
        """Commit records, then say so."""

    def close(self) -> None:
        """Commit what waits, and close."""


class MemoryJournal:
    """For a broker without a disk: what it would keep is gone with it."""

    def rows(self) -> Iterator[Put]:
        """None."""
        return iter(())

    def submit(self, records: Sequence[Record], done: Done) -> None:  # noqa: ARG002
        """Nothing waits for a disk."""
        done(None)

    def close(self) -> None:
        """Nothing to do."""


class SqliteJournal:
    """A broker's file."""

    def __init__(self, directory: Path, broker: str) -> None:
        self.path = directory / "broker.sqlite"
        self._connection = _open(self.path, broker)
        self._waiting: SimpleQueue[tuple[Sequence[Record], Done] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_on, name=f"journal of {broker}", daemon=True)
        self._thread.start()

    def rows(self) -> Iterator[Put]:
        """All rows; before the first submit."""
        for space, key, value in self._connection.execute("SELECT space, key, value FROM rows"):
            yield Put(space, key, value)

    def submit(self, records: Sequence[Record], done: Done) -> None:
        """Commit records, then say so (in another thread)."""
        self._waiting.put((records, done))

    def close(self) -> None:
        """Commit what waits, and close."""
        self._waiting.put(None)
        self._thread.join()
        self._connection.close()

    def _write_on(self) -> None:
        failed: Exception | None = None
        going = True
        while going:
            group, going = self._next_group()
            if failed is None:
                try:
                    self._commit(group)
                except sqlite3.Error as error:
                    failed = StorageError(f"{self.path}: {error}; the broker can't go on without its journal")
            for _, done in group:
                done(failed)

    def _next_group(self) -> tuple[list[tuple[Sequence[Record], Done]], bool]:
        """What waits, and whether to go on after it."""
        group: list[tuple[Sequence[Record], Done]] = []
        count = 0
        one = self._waiting.get()
        while one is not None:
            group.append(one)
            count += len(one[0])
            if count >= GROUP_RECORDS:
                return group, True
            try:
                one = self._waiting.get_nowait()
            except Empty:
                return group, True
        return group, False

    def _commit(self, group: list[tuple[Sequence[Record], Done]]) -> None:
        last = {(record.space, record.key): record for records, _ in group for record in records}
        if not last:
            return
        puts = [(one.space, one.key, one.value) for one in last.values() if isinstance(one, Put)]
        drops = [(one.space, one.key) for one in last.values() if not isinstance(one, Put)]
        run = self._connection
        run.execute("BEGIN IMMEDIATE")
        run.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", puts)
        run.executemany("DELETE FROM rows WHERE space = ? AND key = ?", drops)
        run.execute("COMMIT")


def _open(path: Path, broker: str) -> sqlite3.Connection:
    """The file, locked, and checked to be this broker's."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StorageError(f"{path}: {error}") from None
    try:
        _prepare(connection, path, broker)
    except (sqlite3.Error, StorageError) as error:
        connection.close()
        if "locked" in str(error):
            raise StorageError(f"{path} is in use by another broker; give each its own --data") from None
        raise error if isinstance(error, StorageError) else StorageError(f"{path}: {error}") from None
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, broker: str) -> None:
    for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")
    # Taking the write lock here, rather than at the first commit, is what keeps a second broker out.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS rows (space TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (space, key)) "
        "WITHOUT ROWID"
    )
    connection.execute("INSERT OR IGNORE INTO about VALUES ('format', ?), ('broker', ?)", (FORMAT, broker))
    about = dict(connection.execute("SELECT name, value FROM about"))
    connection.execute("COMMIT")
    if about["format"] != FORMAT:
        raise StorageError(f"{path} has format {about['format']}, and this covey reads {FORMAT}")
    if about["broker"] != broker:
        raise StorageError(
            f"{path} is the journal of broker {about['broker']!r}, not of {broker!r}; use another --data"
        )
