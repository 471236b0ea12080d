from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.network import storage
from covey.network.errors import StorageError
from covey.network.journal_files import APPLICATION, LAYOUT
from covey.network.storage import SqliteJournal
from covey.routing.journal import Drop, Put, Record, replay
from tests.examples import examples


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


@settings(max_examples=examples(25))
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


def test_a_file_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "broker.sqlite"
    for script in (
        "CREATE TABLE people (name TEXT)",
        "CREATE TABLE about (name TEXT, value TEXT); CREATE TABLE rows (x)",
        "CREATE TABLE rows (space TEXT, key TEXT, value BLOB)",
        "PRAGMA application_id=7; CREATE TABLE about (name, value); CREATE TABLE rows (space, key, value)",
    ):
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()
        before = path.read_bytes()
        with pytest.raises(StorageError, match="of another program"):
            SqliteJournal(tmp_path, "a")
        assert path.read_bytes() == before


def test_a_newer_layout_is_refused_and_the_first_one_is_brought_forward(tmp_path: Path) -> None:
    SqliteJournal(tmp_path, "a").close()
    connection = sqlite3.connect(tmp_path / "broker.sqlite")
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    connection.execute(f"PRAGMA user_version={LAYOUT + 1}")
    connection.close()
    with pytest.raises(StorageError, match=f"has layout {LAYOUT + 1} and this covey reads up to {LAYOUT}"):
        SqliteJournal(tmp_path, "a")


def test_a_journal_of_the_first_layout_gets_the_number_of_this_one_and_can_shrink(tmp_path: Path) -> None:
    written = Path(__file__).parents[1] / "fixtures" / "written_0_1" / "journal.sqlite"
    (tmp_path / "broker.sqlite").write_bytes(written.read_bytes())
    SqliteJournal(tmp_path, "a").close()
    connection = sqlite3.connect(tmp_path / "broker.sqlite")
    found = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "auto_vacuum")]
    format = connection.execute("SELECT value FROM about WHERE name = 'format'").fetchone()[0]
    connection.close()
    assert found == [LAYOUT, 2]
    # A covey of before looks at this, and refuses it.
    assert format == str(LAYOUT)


def test_a_file_shrinks_when_most_of_it_is_free(tmp_path: Path) -> None:
    journal, finished = SqliteJournal(tmp_path, "a"), Finished()
    many = [Put("s", str(number), bytes(10_000)) for number in range(3_000)]
    journal.submit(many, finished)
    finished.wait(1)
    journal.submit([Drop("s", record.key) for record in many], finished)
    finished.wait(2)
    journal.close()
    assert (tmp_path / "broker.sqlite").stat().st_size < 10_000_000


def test_a_journal_that_is_idle_is_as_small_as_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "IDLE_SECONDS", 0.05)
    journal, finished = SqliteJournal(tmp_path, "a"), Finished()
    many = [Put("s", str(number), bytes(1_000)) for number in range(3_000)]
    journal.submit(many, finished)
    finished.wait(1)
    journal.submit([Drop("s", record.key) for record in many], finished)
    finished.wait(2)
    end = time.monotonic() + 60
    while sum(path.stat().st_size for path in tmp_path.iterdir()) > 100_000 and time.monotonic() < end:
        time.sleep(0.02)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 100_000
    journal.submit([Put("s", "after", b"1")], finished)
    finished.wait(3)
    journal.close()
    assert finished.calls == [None] * 3
    again = SqliteJournal(tmp_path, "a")
    assert list(again.rows()) == [Put("s", "after", b"1")]
    again.close()


def test_what_can_be_read_of_a_damaged_file_is_kept_and_the_file_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal, finished = SqliteJournal(tmp_path, "a"), Finished()
    journal.submit([Put("s", f"{number:05d}", b"x" * 500) for number in range(2_000)], finished)
    finished.wait(1)
    journal.close()
    path = tmp_path / "broker.sqlite"
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = b"\xee" * 8192
    path.write_bytes(data)
    damaged = SqliteJournal(tmp_path, "a")
    rows = {row.key for row in damaged.rows()}
    damaged.submit([Put("s", "new", b"y")], finished)
    finished.wait(2)
    damaged.close()
    assert 1_000 < len(rows) < 2_000
    assert {"00000", "01999"} <= rows
    assert (tmp_path / "broker.sqlite.damaged-1").stat().st_size == len(data)
    assert "was damaged" in caplog.text
    again = SqliteJournal(tmp_path, "a")
    assert {row.key for row in again.rows()} == rows | {"new"}
    again.close()


def test_a_full_disk_makes_commits_wait_until_there_is_room(tmp_path: Path) -> None:
    journal, finished = SqliteJournal(tmp_path, "a"), Finished()
    journal.submit([Put("s", "first", b"x")], finished)
    finished.wait(1)
    journal._connection.execute("PRAGMA max_page_count=20")
    journal.submit([Put("s", "large", bytes(500_000))], finished)
    while not journal.full:
        time.sleep(0.01)
    assert len(finished.calls) == 1
    journal._connection.execute("PRAGMA max_page_count=100000")
    finished.wait(2)
    journal.close()
    assert finished.calls == [None, None]
    assert not journal.full


def test_a_broker_that_stops_does_not_wait_for_room_on_the_disk(tmp_path: Path) -> None:
    journal, finished = SqliteJournal(tmp_path, "a"), Finished()
    journal._connection.execute("PRAGMA max_page_count=20")
    journal.submit([Put("s", "large", bytes(500_000))], finished)
    while not journal.full:
        time.sleep(0.01)
    journal.close()
    assert [type(error) for error in finished.calls] == [StorageError]
