from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.network.errors import StorageError
from covey.network.storage import SqliteJournal
from covey.routing.journal import Drop, Put, Record, replay


class Finished:
    def __init__(self) -> None:
        self.calls: list[Exception | None] = []
        self._changed = threading.Condition()

    def __call__(self, error: Exception | None) -> None:
        with self._changed:
            self.calls.append(error)
            self._changed.notify_all()

    def wait(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= count, 20)


RECORDS = st.lists(
    st.one_of(
        st.builds(Put, st.sampled_from("ab"), st.sampled_from("xyz"), st.binary(max_size=4)),
        st.builds(Drop, st.sampled_from("ab"), st.sampled_from("xyz")),
    ),
    max_size=8,
)


@settings(max_examples=25)
@given(groups=st.lists(RECORDS, max_size=5))
def test_a_journal_that_is_opened_again_has_what_replaying_the_records_gives(
    groups: list[list[Record]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    expected: dict[tuple[str, str], bytes] = {}
    journal, finished = SqliteJournal(directory, "a"), Finished()
    for records in groups:
        replay(expected, records)
        journal.submit(records, finished)
    journal.close()
    assert finished.calls == [None] * len(groups)
    again = SqliteJournal(directory, "a")
    try:
        assert {(row.space, row.key): row.value for row in again.rows()} == expected
    finally:
        again.close()


def test_what_is_reported_as_committed_is_in_the_file_for_another_process(tmp_path: Path) -> None:
    journal, finished = SqliteJournal(tmp_path, "a"), Finished()
    journal.submit([Put("s", "k", b"v")], finished)
    finished.wait(1)
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in tmp_path.glob("broker.sqlite*"):
        (copy / file.name).write_bytes(file.read_bytes())
    # A copy of the files is what a crash leaves.
    crashed = sqlite3.connect(copy / "broker.sqlite")
    assert crashed.execute("SELECT * FROM rows").fetchall() == [("s", "k", b"v")]
    crashed.close()
    journal.close()


def test_a_journal_is_durable_by_its_settings(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path, "a")
    settings = [journal._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    journal.close()
    assert settings == ["wal", 2]


def test_two_brokers_cannot_use_one_journal_at_the_same_time(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path, "a")
    with pytest.raises(StorageError, match="in use by another broker"):
        SqliteJournal(tmp_path, "a")
    journal.close()
    SqliteJournal(tmp_path, "a").close()


def test_a_broker_does_not_take_the_journal_of_another(tmp_path: Path) -> None:
    SqliteJournal(tmp_path, "a").close()
    with pytest.raises(StorageError, match="journal of broker 'a', not of 'b'"):
        SqliteJournal(tmp_path, "b")


def test_a_file_that_is_no_journal_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "broker.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(StorageError, match=r"broker\.sqlite"):
        SqliteJournal(tmp_path, "a")


def test_a_commit_that_fails_is_reported_and_nothing_after_it_is_called_committed(tmp_path: Path) -> None:
    journal, finished = SqliteJournal(tmp_path, "a"), Finished()
    journal._connection.execute("DROP TABLE rows")
    journal.submit([Put("s", "k", b"v")], finished)
    finished.wait(1)
    journal._connection.execute("CREATE TABLE rows (space TEXT, key TEXT, value BLOB, PRIMARY KEY (space, key))")
    journal.submit([Put("s", "k", b"v")], finished)
    finished.wait(2)
    journal.close()
    assert [type(error) for error in finished.calls] == [StorageError, StorageError]


def test_others_on_the_machine_cannot_read_a_journal(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "data", "a")
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "data", journal.path)]
    journal.close()
    assert modes == [0o700, 0o600]
