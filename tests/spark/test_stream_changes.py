"""Subscriptions as a log of versions: reading changes, applying them, saving versions. No Spark runs here."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq

from covey import CoveyError
from covey.spark.stream import snapshots as stream_snapshots
from covey.spark.stream.changes import BadChangesError, SubscriptionLog, source_of
from covey.spark.stream.journal import Journal, local_path, write_durably
from covey.spark.stream.settings import RuleSettings
from covey.spark.stream.snapshots import cached
from covey.spark.stream.sources import ChangeDirectory


def row(version: object, op: object, id: object, filter: object = None) -> dict[str, Any]:
    return {"version": version, "op": op, "id": id, "filter": filter}


def write(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))


class World:
    """A directory of changes and a log that follows it."""

    def __init__(self, work: Path) -> None:
        self.changes = work / "changes"
        self.changes.mkdir()
        self.directory = work / "covey"

    def log(self, **options: Any) -> SubscriptionLog:
        return SubscriptionLog(self.directory, ChangeDirectory(self.changes), **options)

    def files(self) -> dict[str, int]:
        """Data files and when they were written."""
        return {path.name: path.stat().st_mtime_ns for path in (self.directory / "index").glob("*.covey")}

    def bad(self) -> list[dict[str, Any]]:
        found = sorted((self.directory / "bad").glob("*.jsonl"))
        return [json.loads(line) for path in found for line in path.read_text().splitlines()]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def texts(log: SubscriptionLog) -> dict[str, str]:
    return {id: log.index.text(id) for id in log.index.ids()}


def test_nothing_is_version_0(world: World) -> None:
    log = world.log()
    assert (log.refresh(), log.version, len(log.index)) == (0, 0, 0)
    assert cached(log.snapshot()).match_batch([{"a": 1}]).to_pylist() == [[]]


def test_rows_are_applied_in_the_order_of_their_versions(world: World) -> None:
    write(world.changes / "b.jsonl", [row(1, "add", "x", "a = 1"), row(1, "add", "y", "a = 2")])
    write(
        world.changes / "a.jsonl", [row(3, "remove", "y"), row(2, "replace", "x", "a = 3"), row(2, "add", "z", "a = 4")]
    )
    log = world.log()
    assert log.refresh() == 5
    assert log.version == 3
    assert texts(log) == {"x": "a = 3", "z": "a = 4"}
    assert not world.bad()


def test_one_id_may_change_many_times_in_a_file(world: World) -> None:
    rows = [
        row(1, "add", "x", "a = 1"),
        row(1, "replace", "x", "a = 2"),
        row(1, "remove", "x"),
        row(1, "add", "x", "a = 3"),
    ]
    write(world.changes / "1.jsonl", [*rows, row(1, "add", "y", "b = 1")])
    log = world.log()
    log.refresh()
    assert texts(log) == {"x": "a = 3", "y": "b = 1"}


def test_parquet_and_directories_of_spark_are_read(world: World) -> None:
    table = pa.Table.from_pylist([row(1, "add", "x", "a = 1"), row(1, "add", "y", "a = 2")])
    pq.write_table(table, world.changes / "1.parquet")
    parts = world.changes / "v2"
    parts.mkdir()
    pq.write_table(pa.Table.from_pylist([row(2, "add", "z", "a = 3")]), parts / "part-0.parquet")
    log = world.log()
    log.refresh()
    assert (log.version, log.waiting) == (1, 1)
    (parts / "_SUCCESS").touch()
    log.refresh()
    assert (log.version, log.waiting) == (2, 0)
    assert sorted(texts(log)) == ["x", "y", "z"]


def test_a_file_that_is_being_written_waits(world: World) -> None:
    whole = json.dumps(row(1, "add", "x", "a = 1")) + "\n" + json.dumps(row(1, "add", "y", "a = 2"))
    (world.changes / "1.jsonl").write_text(whole[:-5])
    (world.changes / "2.parquet").write_bytes(b"PAR1 and no end")
    (world.changes / ".3.jsonl").write_text("hidden")
    log = world.log()
    assert (log.refresh(), log.version, log.waiting) == (0, 0, 2)
    (world.changes / "1.jsonl").write_text(whole)
    assert (log.refresh(), log.version, log.waiting) == (2, 1, 1)
    assert not world.bad()


def test_changes_may_be_written_in_another_dialect(world: World) -> None:
    write(world.changes / "1.jsonl", [row(1, "add", "a", "weight / 2 > 3"), row(1, "add", "b", "weight <")])
    log = world.log(settings=RuleSettings(dialect="jms"))
    log.refresh()
    assert texts(log) == {"a": "weight / 2 > 3"}
    assert "ends too early" in world.bad()[0]["error"]
    log.snapshot()
    write(world.changes / "2.jsonl", [row(2, "replace", "a", "weight IN (1, 2)")])
    again = world.log(settings=RuleSettings(dialect="jms"))
    again.refresh()
    assert texts(again) == {"a": "weight IN (1, 2)"}


def test_bad_rows_are_written_down_and_the_rest_is_applied(world: World) -> None:
    write(world.changes / "1.jsonl", [
        row(1, "add", "x", "a = 1"), row(1, "add", "bad", "a ="), row(1, "add", "x", "a = 2"),
        row(1, "replace", "no", "a = 1"), row(1, "remove", "no"), row(0, "add", "y", "a = 1"),
        row(1, "upsert", "y", "a = 1"), row(1, "add", "", "a = 1"), row(1, "add", "y"), [1, 2],
        row(True, "add", "y", "a = 1"), row(1, "replace", "x", "a = = 1"), row(1, "add", "w", "b = 1"),
    ])  # fmt: skip
    with (world.changes / "1.jsonl").open("a") as file:
        file.write("{broken\n" + json.dumps(row(2, "add", "v", "c = 1")) + "\n")
    (world.changes / "notes.txt").write_text("hello")
    log = world.log()
    log.refresh()
    assert texts(log) == {"x": "a = 1", "w": "b = 1", "v": "c = 1"}
    bad = world.bad()
    assert [one["row"] for one in bad if one["source"] == "1.jsonl"] == [*range(2, 13), 14]
    assert next(one["error"] for one in bad if one["source"] == "notes.txt").startswith("not a change file")
    assert log.bad_rows == len(bad) == 13
    assert all("\n" not in one["error"] for one in bad)
    assert "at character" in next(one["error"] for one in bad if one["id"] == "bad")


def test_bad_rows_stop_the_stream_when_asked(world: World) -> None:
    write(world.changes / "1.jsonl", [row(1, "add", "x", "a ="), row(1, "add", "y", "a = 1")])
    with pytest.raises(BadChangesError, match=r"1\.jsonl, row 1, id 'x'"):
        world.log(on_error="raise").refresh()
    write(world.changes / "1.jsonl", [row(1, "add", "x", "a = 1")])
    assert world.log(on_error="raise").refresh() == 1


def test_a_row_for_a_version_in_use_is_late(world: World) -> None:
    write(world.changes / "1.jsonl", [row(5, "add", "x", "a = 1")])
    log = world.log()
    log.refresh()
    write(world.changes / "2.jsonl", [row(5, "add", "y", "a = 2"), row(6, "add", "z", "a = 3")])
    log.refresh()
    assert (log.version, sorted(texts(log))) == (6, ["x", "z"])
    assert "version 5 is closed" in world.bad()[0]["error"]


def test_a_version_is_saved_once_and_only_what_changed_is_written(world: World) -> None:
    write(world.changes / "1.jsonl", [row(1, "add", f"s{n}", f"a = {n}") for n in range(3000)])
    log = world.log()
    log.refresh()
    first = log.snapshot()
    files = world.files()
    assert len(files) == 1
    log.refresh()
    assert log.snapshot() is first
    assert world.files() == files
    write(
        world.changes / "2.jsonl",
        [row(2, "replace", "s7", "b = 7"), row(2, "remove", "s8"), row(2, "add", "t", "b = 7")],
    )
    log.refresh()
    second = log.snapshot()
    fresh = world.files().keys() - files.keys()
    assert {name: when for name, when in world.files().items() if name in files} == files
    assert [name.split("-")[1] for name in fresh] == ["2"]
    small, large = ((world.directory / "index" / name).stat().st_size for name in (*fresh, *files))
    assert small * 10 < large
    events = [{"a": 7}, {"a": 8}, {"a": 9}, {"b": 7}]
    assert cached(first).match_batch(events).to_pylist() == [["s7"], ["s8"], ["s9"], []]
    assert cached(second).match_batch(events).to_pylist() == [[], [], ["s9"], ["s7", "t"]]


def test_a_process_opens_each_file_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    read = stream_snapshots.read_index

    def counted(path: str, **options: Any) -> Any:
        opened.append(Path(path).name)
        return read(path, **options)

    monkeypatch.setattr(stream_snapshots, "read_index", counted)
    write(world.changes / "1.jsonl", [row(1, "add", f"s{n}", f"a = {n}") for n in range(500)])
    log = world.log()
    for version in range(2, 6):
        log.refresh()
        for _ in range(3):
            cached(pickle.loads(pickle.dumps(log.snapshot())))
        write(world.changes / f"{version}.jsonl", [row(version, "add", f"t{version}", "a = 1")])
    assert len(opened) == len(set(opened)) == 4


def test_a_log_resumes_without_reading_old_files_again(world: World) -> None:
    write(world.changes / "1.jsonl", [row(1, "add", "x", "a = 1"), row(1, "add", "y", "a = 2")])
    log = world.log()
    log.refresh()
    log.snapshot()
    (world.changes / "1.jsonl").write_text("no longer what it was\n")
    write(world.changes / "2.jsonl", [row(2, "remove", "x")])
    again = world.log()
    assert (again.version, sorted(texts(again))) == (1, ["x", "y"])
    assert (again.refresh(), again.version, sorted(texts(again))) == (1, 2, ["y"])
    assert not world.bad()


def test_a_version_that_was_applied_but_not_saved_is_applied_again(world: World) -> None:
    write(world.changes / "1.jsonl", [row(1, "add", "x", "a = 1")])
    world.log().refresh()
    log = world.log()
    assert (log.version, log.refresh(), log.version) == (0, 1, 1)


def test_a_damaged_snapshot_is_built_again_from_its_files_only(world: World) -> None:
    write(world.changes / "1.jsonl", [row(1, "add", "x", "a = 1"), row(2, "replace", "x", "a = 2")])
    log = world.log()
    log.refresh()
    log.snapshot()
    for name in world.files():
        (world.directory / "index" / name).write_bytes(b"damaged")
    write(world.changes / "0.jsonl", [row(1, "add", "late", "a = 1"), row(3, "add", "z", "a = 3")])
    again = world.log()
    assert (again.version, texts(again)) == (2, {"x": "a = 2"})
    assert cached(again.snapshot()).match({"a": 2}) == ["x"]
    again.refresh()
    assert sorted(texts(again)) == ["x", "z"]


def test_versions_that_nobody_needs_go(world: World) -> None:
    log = world.log()
    for version in range(1, 8):
        write(world.changes / f"{version}.jsonl", [row(version, "add", f"s{version}", f"a = {version}")])
        log.refresh()
        log.snapshot()
        log.keep([version - 1])
    lists = sorted(path.name for path in (world.directory / "index").glob("version-*.json"))
    assert lists == ["version-6.json", "version-7.json"]
    needed = {saved.file for version in (6, 7) for saved in log.snapshot_at(version).segments}
    assert set(world.files()) == needed
    assert cached(log.snapshot_at(6)).match({"a": 6}) == ["s6"]


def test_the_newest_version_is_known_before_it_is_used(world: World) -> None:
    log = world.log()
    write(world.changes / "1.jsonl", [row(4, "add", "x", "a = 1")])
    assert (log.newest(), log.version) == (4, 0)
    log.refresh()
    assert (log.newest(), log.version) == (4, 4)


def test_a_batch_keeps_the_version_that_was_decided_first(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "covey")
    assert journal.version_of(3) is None
    assert journal.decide(3, 7) == 7
    assert Journal(tmp_path / "covey").decide(3, 9) == 7
    assert journal.version_of(3) == 7
    journal.forget_before(103)
    assert journal.version_of(3) is None


def test_a_checkpoint_keeps_its_settings(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "covey")
    name = journal.identity({"semantics": "sql"})
    assert journal.identity({"semantics": "sql"}) == name
    with pytest.raises(CoveyError, match="began with semantics='sql', not 'strict'"):
        journal.identity({"semantics": "strict"})


def test_a_durable_write_leaves_nothing_beside_it(tmp_path: Path) -> None:
    assert write_durably(tmp_path / "a", b"1")
    assert write_durably(tmp_path / "a", b"2")
    assert not write_durably(tmp_path / "a", b"3", once=True)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"2")]


def test_paths_of_other_stores_and_missing_directories_are_refused(tmp_path: Path) -> None:
    assert local_path("file:///tmp/x", "sink") == local_path("file:/tmp/x", "sink") == Path("/tmp/x")
    with pytest.raises(CoveyError, match="writer="):
        local_path("s3://bucket/x", "sink")
    with pytest.raises(CoveyError, match="not a directory of change files"):
        source_of(tmp_path / "none")
    with pytest.raises(CoveyError, match="not int"):
        source_of(7)  # type: ignore[arg-type]
