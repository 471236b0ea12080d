"""Journals as files: whose they are, how they are laid out, and what is left of a damaged one.

A journal is an SQLite file with covey's `application_id`; its `user_version` is the number of its layout. Older layouts
are brought forward when they are opened, newer ones refused, and so is a file of somebody else: nothing is written to
it. The first layout had neither number; it is known by its tables.

Where SQLite finds a file damaged, the rows that can be read are copied to a new one, and the damaged file stays beside
it under another name.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from covey.network.errors import StorageError
from covey.routing.journal import Put

APPLICATION: Final = int.from_bytes(b"covy")
LAYOUT: Final = 3
"""1: rows and the broker's name. 2: an application id, the layout's number, and free pages that can be given back. 3:
rows that hold an event with its place in the window, and what a queue got in one turn; the broker itself brings forward
those of before."""
ALL_ROWS: Final = "SELECT space, key, value FROM rows"
LOG_BYTES: Final = 16 << 20
"""The write-ahead log is cut to this when it was longer."""

log = logging.getLogger("covey.network")


def open_journal(path: Path, broker: str) -> sqlite3.Connection:
    """The file, locked, checked to be this broker's, and laid out as this version has it."""
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
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"{path}: {error}; bring a backup of it back, or move it away to start with an empty one"
        ) from None
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, broker: str) -> None:
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    layout = _layout(connection, path)
    if layout == 0:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"journal_size_limit={LOG_BYTES}"):
        connection.execute(f"PRAGMA {pragma}")
    # Taking the write lock here, rather than at the first commit, is what keeps a second broker out.
    connection.execute("BEGIN IMMEDIATE")
    if layout == 0:
        connection.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        connection.execute(
            "CREATE TABLE rows (space TEXT, key TEXT, value BLOB NOT NULL, PRIMARY KEY (space, key)) WITHOUT ROWID"
        )
        connection.execute("INSERT INTO about VALUES ('format', ?), ('broker', ?)", (str(LAYOUT), broker))
    about = dict(connection.execute("SELECT name, value FROM about"))
    if about.get("broker") != broker:
        connection.execute("ROLLBACK")
        raise StorageError(
            f"{path} is the journal of broker {about.get('broker')!r}, not of {broker!r}; use another --data"
        )
    if layout < LAYOUT:
        _bring_forward(connection)
    connection.execute("COMMIT")
    if layout == 1:
        _make_shrinkable(connection, path)


def _layout(connection: sqlite3.Connection, path: Path) -> int:
    """The number of a file's layout, 0 for an empty file; raises StorageError where it isn't for this covey."""
    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if application == APPLICATION and tables >= {"about", "rows"}:
        layout = int(version)
    elif application == 0 and not tables:
        return 0
    elif application == 0 and tables == {"about", "rows"} and _is_first_layout(connection):
        layout = 1
    else:
        raise StorageError(f"{path} is an SQLite file of another program, not a journal; use another --data")
    if layout > LAYOUT:
        raise StorageError(
            f"{path} has layout {layout} and this covey reads up to {LAYOUT}; use the covey that wrote it, or later"
        )
    return layout


def _is_first_layout(connection: sqlite3.Connection) -> bool:
    try:
        about = dict(connection.execute("SELECT name, value FROM about"))
        connection.execute("SELECT space, key, value FROM rows LIMIT 1").fetchall()
    except (sqlite3.Error, ValueError):
        return False
    return about.get("format") == "1" and "broker" in about


def _bring_forward(connection: sqlite3.Connection) -> None:
    """From any layout before to this one, within the present transaction."""
    connection.execute("UPDATE about SET value = ? WHERE name = 'format'", (str(LAYOUT),))
    connection.execute(f"PRAGMA application_id={APPLICATION}")
    connection.execute(f"PRAGMA user_version={LAYOUT}")


def _make_shrinkable(connection: sqlite3.Connection, path: Path) -> None:
    """Let a file of the first layout give back free pages, which takes writing it anew."""
    try:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        connection.execute("VACUUM")
    except sqlite3.Error as error:
        log.warning("%s stays as large as it is, since it can't be written anew: %s", path, error)


def salvage(connection: sqlite3.Connection, path: Path, broker: str) -> tuple[sqlite3.Connection, list[Put]]:
    """What can be read of a damaged file, in a new one; the damaged one is kept under another name."""
    rows = list({(row.space, row.key): row for row in _readable(connection)}.values())
    connection.close()
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.rename(aside.with_name(aside.name + suffix))
    fresh = open_journal(path, broker)
    fresh.execute("BEGIN IMMEDIATE")
    fresh.executemany("INSERT INTO rows VALUES (?, ?, ?)", [(row.space, row.key, row.value) for row in rows])
    fresh.execute("COMMIT")
    log.warning(
        "%s was damaged: %s rows could be read and are kept, others are lost; the damaged file is %s",
        path,
        f"{len(rows):,}",
        aside,
    )
    return fresh, rows


def _readable(connection: sqlite3.Connection) -> Iterator[Put]:
    """Rows of a damaged file: from its start up to the damage, and from its end back to it."""
    for order in ("", " ORDER BY space DESC, key DESC"):
        try:
            for row in connection.execute(ALL_ROWS + order):
                yield Put(*row)
        except (sqlite3.DatabaseError, TypeError):
            continue
