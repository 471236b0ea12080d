"""A broker's journal in SQLite: rows by (space, key), one writer thread, group commit.

The journal is in WAL mode with `synchronous=FULL`: a commit that was reported is on the disk. The writer takes all that
waits at once and commits it as one transaction, so a commit's cost (one fsync) is shared by everything that came in
while the one before was under way; the later value of a row wins, which is what committing one by one would leave.
Whoever submits rows is called back, in the writer's thread, in the order of submission, after the commit.

The file is locked as long as it is open: two brokers can't share one. What is deleted is given back to the file system
in steps, when nothing waits and much of the file is free.

Where the disk is full, what waits goes on waiting and is tried again: `full` says so, and nothing was reported as
committed. Which files are taken, and what of a damaged one, is `journal_files.py`.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol, TypeAlias

from covey.network.errors import StorageError
from covey.network.journal_files import ALL_ROWS, open_journal, salvage
from covey.network.set_aside import set_aside
from covey.routing.journal import Put, Record

GROUP_RECORDS: Final = 20_000
"""Rows in one transaction: those that wait longer get the next."""
FULL_SECONDS: Final = 0.5
"""Until a commit is tried again for which the disk had no room."""
FREE_PAGES: Final = 1_024
"""Free pages that stay in the file whatever their part: they are used again soon."""
FREE_PART: Final = 0.5
"""The part of free pages above which the file is made smaller."""
IDLE_SECONDS: Final = 5.0
"""A journal that had nothing to write for so long is made as small as it can be."""
SHRINK_PAGES: Final = 2_048
"""Pages given back in one step, before what waits is looked at again."""

Done: TypeAlias = Callable[[Exception | None], None]
"""Told that everything up to here is committed, or why it can't be."""


class Journal(Protocol):
    """Where a broker's rows are kept."""

    def rows(self) -> Iterator[Put]:
        """All rows; when nothing waits."""

    def submit(self, records: Sequence[Record], done: Done) -> None:
        """Commit records, then say so."""

    def set_aside(self, input: Any, error: BaseException) -> None:
        """Write down an input that broke the broker."""

    def give_up(self) -> None:
        """The broker stops: don't wait any longer for room on the disk."""

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

    def set_aside(self, input: Any, error: BaseException) -> None:
        """There is no place for it; the log has it."""

    def give_up(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing to do."""


class SqliteJournal:
    """A broker's file."""

    def __init__(self, directory: Path, broker: str) -> None:
        self.path = directory / "broker.sqlite"
        self.broker = broker
        self.full = False
        """Whether rows wait because the disk is full."""
        self._connection = open_journal(self.path, broker)
        self._waiting: SimpleQueue[tuple[Sequence[Record], Done] | None] = SimpleQueue()
        self._closing = threading.Event()
        self._first: tuple[Sequence[Record], Done] | None = None
        self._has_first = False
        """Whether `_first` was taken out of what waits."""
        self._is_tidy = True
        self._thread = threading.Thread(target=self._write_on, name=f"journal of {broker}", daemon=True)
        self._thread.start()

    def rows(self) -> Iterator[Put]:
        """All rows; when nothing waits. Of a damaged file those that can be read; it is put aside."""
        try:
            rows = [Put(*row) for row in self._connection.execute(ALL_ROWS)]
        except sqlite3.DatabaseError:
            self._connection, rows = salvage(self._connection, self.path, self.broker)
        return iter(rows)

    def submit(self, records: Sequence[Record], done: Done) -> None:
        """Commit records, then say so (in another thread)."""
        self._waiting.put((records, done))

    def set_aside(self, input: Any, error: BaseException) -> None:
        """Write down an input that broke the broker, beside the journal."""
        set_aside(self.path.parent, input, error)

    def give_up(self) -> None:
        """The broker stops: don't wait any longer for room on the disk."""
        self._closing.set()

    def close(self) -> None:
        """Commit what waits, and close."""
        self.give_up()
        self._waiting.put(None)
        self._thread.join()
        self._connection.close()

    def _write_on(self) -> None:
        failed: Exception | None = None
        going = True
        while going:
            if failed is None and not self._is_tidy and self._is_idle():
                with contextlib.suppress(sqlite3.Error):
                    self._tidy()
            group, going = self._next_group()
            self._is_tidy = False
            if failed is None:
                try:
                    self._commit_when_possible(group)
                except sqlite3.Error as error:
                    failed = StorageError(f"{self.path}: {error}; the broker can't go on without its journal")
            for _, done in group:
                done(failed)
            if failed is None:
                with contextlib.suppress(sqlite3.Error):
                    self._shrink()

    def _is_idle(self) -> bool:
        """Whether nothing came for a while."""
        try:
            self._first = self._waiting.get(timeout=IDLE_SECONDS)
        except Empty:
            return True
        self._has_first = True
        return False

    def _next_group(self) -> tuple[list[tuple[Sequence[Record], Done]], bool]:
        """What waits, and whether to go on after it."""
        group: list[tuple[Sequence[Record], Done]] = []
        count = 0
        waiting = self._first if self._has_first else self._waiting.get()
        self._first, self._has_first = None, False
        while waiting is not None:
            group.append(waiting)
            count += len(waiting[0])
            if count >= GROUP_RECORDS:
                return group, True
            try:
                waiting = self._waiting.get_nowait()
            except Empty:
                return group, True
        return group, False

    def _commit_when_possible(self, group: list[tuple[Sequence[Record], Done]]) -> None:
        """Commit; where the disk is full, try again until it isn't, or the broker stops."""
        while True:
            try:
                self._commit(group)
            except sqlite3.OperationalError as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if not _is_full(error) or self._closing.is_set():
                    raise
                self.full = True
                self._closing.wait(FULL_SECONDS)
            else:
                self.full = False
                return

    def _commit(self, group: list[tuple[Sequence[Record], Done]]) -> None:
        last = {(record.space, record.key): record for records, _ in group for record in records}
        if not last:
            return
        puts = [(record.space, record.key, record.value) for record in last.values() if isinstance(record, Put)]
        drops = [(record.space, record.key) for record in last.values() if not isinstance(record, Put)]
        run = self._connection
        run.execute("BEGIN IMMEDIATE")
        # What goes makes room for what comes.
        run.executemany("DELETE FROM rows WHERE space = ? AND key = ?", drops)
        run.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", puts)
        run.execute("COMMIT")

    def _shrink(self) -> None:
        """Give free pages back to the file system, some at a time, where they are a large part of the file."""
        run = self._connection
        while self._waiting.empty():
            (free,), (pages,) = (run.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_count"))
            if free < FREE_PAGES or free < pages * FREE_PART:
                return
            # It is done in steps without rows, and `execute` would take one of them.
            run.executescript(f"PRAGMA incremental_vacuum({SHRINK_PAGES})")
            run.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            if run.execute("PRAGMA freelist_count").fetchone() == (free,):
                return  # a file of before, which can't shrink

    def _tidy(self) -> None:
        """Give back all that is free, and empty SQLite's own log: nobody waits."""
        run = self._connection
        (before,) = run.execute("PRAGMA freelist_count").fetchone()
        while before and self._waiting.empty():
            run.executescript(f"PRAGMA incremental_vacuum({SHRINK_PAGES})")
            (free,) = run.execute("PRAGMA freelist_count").fetchone()
            if free == before:
                break  # a file of before, which can't shrink
            before = free
        if self._waiting.empty():
            run.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._is_tidy = True


def _is_full(error: sqlite3.OperationalError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    # A write that fails for want of room is an error of input and output where it is the log that can't grow.
    return code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE or "full" in str(error)
