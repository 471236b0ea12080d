"""Matching a stream while its subscriptions change: one version a micro-batch, said in each row."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from covey import CoveyError
from covey.filters import matches
from covey.language import parse
from covey.spark.stream import BatchReport, MatchListener, match_stream, read_matches
from covey.spark.stream.sink import ParquetSink

SCHEMA = "n int, price double, symbol string, `odd.name` int, at struct<city: string, rooms: array<int>>"
VERSIONS: dict[int, dict[str, str]] = {
    1: {"dear": "price > 50", "a": "symbol = 'a'", "all": "TRUE"},
    2: {
        "dear": "price > 80",
        "a": "symbol = 'a'",
        "odd": "`odd.name` = 1",
        "oslo": "at.city = 'Oslo' OR array_contains(at.rooms, 3)",
    },
    3: {"oslo": "NOT (at.city = 'Oslo')"},
}
PATIENCE = 600.0


def changes_to(version: int) -> list[dict[str, Any]]:
    """The rows that lead from the version before to this one."""
    before, now = VERSIONS.get(version - 1, {}), VERSIONS[version]
    rows = [{"version": version, "op": "remove", "id": id} for id in before.keys() - now.keys()]
    for id, text in now.items():
        if before.get(id) != text:
            rows.append({"version": version, "op": "replace" if id in before else "add", "id": id, "filter": text})
    return rows


class World:
    """Events and changes in files, a checkpoint and a sink."""

    def __init__(self, spark: SparkSession, work: Path) -> None:
        self.spark = spark
        self.work = work
        self.changes, self.checkpoint, self.sink = work / "changes", work / "checkpoint", work / "sink"
        self.changes.mkdir()
        (work / "events").mkdir()
        self.events: dict[int, dict[str, Any]] = {}

    def add_events(self, files: int) -> None:
        for _ in range(files):
            first = len(self.events)
            rows = [
                {"n": n, "price": None if n % 7 == 0 else n * 13 % 100, "symbol": "abc"[n % 3], "odd.name": n % 2,
                 "at": None if n % 5 == 0 else {"city": ["Oslo", "Rome"][n % 2], "rooms": [n % 4, 9]}}
                for n in range(first, first + 8)
            ]  # fmt: skip
            self.events.update((row["n"], row) for row in rows)
            path = self.work / "events" / f"{first:04}.json"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(path, (1_700_000_000 + first, 1_700_000_000 + first))  # Spark reads the oldest first

    def change(self, version: int, rows: list[dict[str, Any]] | None = None) -> None:
        hidden = self.changes / f".{version}"
        hidden.write_text("".join(json.dumps(row) + "\n" for row in rows or changes_to(version)))
        hidden.rename(self.changes / f"{version}.jsonl")

    def stream(self) -> DataFrame:
        source = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return source.json(str(self.work / "events"))

    def run(self, **options: Any) -> list[BatchReport]:
        """Match all events that are there; the reports."""
        listener = MatchListener(options.pop("listener", None))
        options = {"subscriptions": self.changes, "checkpoint": self.checkpoint, "trigger": "availableNow"} | options
        if "writer" not in options:
            options.setdefault("sink", self.sink)
        query = match_stream(self.stream(), **options, listener=listener)
        assert query.awaitTermination(PATIENCE)
        return list(listener.reports)

    def expected(self, n: int, version: int) -> list[str]:
        event = {name: value for name, value in self.events[n].items() if value is not None}
        return sorted(id for id, text in VERSIONS.get(version, {}).items() if matches(parse(text), event))

    def rows(self) -> list[Mapping[str, Any]]:
        return [row.asDict() for row in read_matches(self.spark, self.sink).collect()]

    def index_files(self) -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in (self.checkpoint / "covey" / "index").iterdir()}


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


def test_every_batch_uses_the_newest_version_and_says_which(world: World) -> None:
    world.add_events(5)
    reports = world.run(listener=lambda done: world.change(done.batch) if done.batch in (1, 2, 3) else None)
    assert [report.version for report in reports] == [0, 0, 1, 2, 3]
    rows = world.rows()
    assert sorted(row["n"] for row in rows) == list(range(40))
    assert {(row["batch"], row["version"]) for row in rows} == {(0, 0), (1, 0), (2, 1), (3, 2), (4, 3)}
    for row in rows:
        assert sorted(row["subscriptions"]) == world.expected(row["n"], row["version"])
    assert all(row["price"] == world.events[row["n"]]["price"] for row in rows)


def test_pairs_are_one_row_a_match(world: World) -> None:
    world.change(1)
    world.add_events(1)
    world.run(output="pairs")
    world.change(2)
    world.add_events(1)
    reports = world.run(output="pairs")
    found = sorted((row["n"], row["subscription"], row["version"]) for row in world.rows())
    versions = {n: 1 if n < 8 else 2 for n in range(16)}
    wanted = [(n, id, version) for n, version in versions.items() for id in world.expected(n, version)]
    assert found == sorted(wanted)
    (report,) = reports
    assert (report.batch, report.events, report.matches) == (1, 8, len([one for one in wanted if one[2] == 2]))


def test_batches_with_unchanged_subscriptions_write_no_index(world: World) -> None:
    world.change(1)
    world.add_events(4)
    seen: list[dict[str, int]] = []
    reports = world.run(listener=lambda done: seen.append(world.index_files()))
    assert len(seen) == 4
    assert seen[0]
    assert all(files == seen[0] for files in seen)
    assert [report.changes for report in reports] == [3, 0, 0, 0]
    world.add_events(1)
    world.run()
    assert world.index_files() == seen[0]


def test_a_stream_goes_on_where_it_stopped(world: World) -> None:
    world.change(1)
    world.add_events(2)
    world.run()
    world.change(2)
    world.add_events(1)
    (report,) = world.run()
    assert (report.batch, report.version, report.replayed) == (2, 2, False)
    assert world.run() == []
    assert sorted(row["n"] for row in world.rows()) == list(range(24))


def test_a_replayed_batch_keeps_its_version_though_newer_ones_are_there(world: World) -> None:
    world.change(1)
    world.add_events(2)
    written: list[tuple[int, set[int], int]] = []

    def writer(result: DataFrame, batch: int) -> None:
        rows = result.collect()
        written.append((batch, {row.version for row in rows}, len(rows)))
        if len(written) == 1:
            world.change(2)
            raise RuntimeError("the table is not there today")

    with pytest.raises(StreamingQueryException, match="not there today"):
        world.run(writer=writer)
    first, second = world.run(writer=writer)
    assert written == [(0, {1}, 8), (0, {1}, 8), (1, {2}, 8)]
    assert (first.replayed, first.version, first.newest, first.lag) == (True, 1, 2, 1)
    assert (second.replayed, second.version, second.lag) == (False, 2, 0)
    assert (second.events, second.matches) == (8, sum(len(world.expected(n, 2)) for n in range(8, 16)))


def test_a_batch_that_was_committed_is_not_written_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.change(1)
    world.add_events(1)
    commit = ParquetSink._commit

    def commit_and_die(self: ParquetSink, hidden: Path, batch: int) -> None:
        commit(self, hidden, batch)
        raise KeyError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(ParquetSink, "_commit", commit_and_die)
        with pytest.raises(StreamingQueryException, match="power cut"):
            world.run()
    (world.sink / "_writing-0-debris").mkdir()
    files = {path: path.stat().st_mtime_ns for path in (world.sink / "batch=0").iterdir()}
    (report,) = world.run()
    assert (report.replayed, report.events) == (True, 8)
    assert {path: path.stat().st_mtime_ns for path in (world.sink / "batch=0").iterdir()} == files
    assert len(world.rows()) == 8


@pytest.mark.parametrize("beside", [False, True], ids=["version in a column", "version beside"])
def test_a_table_of_subscriptions_is_read_again_when_its_version_is_new(world: World, beside: bool) -> None:
    current = 0

    def table() -> DataFrame | tuple[int, DataFrame]:
        rows = [(id, text, current) for id, text in VERSIONS[current].items()]
        rows += [("removed", None, current)]  # a row without a filter says that it is gone
        whole = world.spark.createDataFrame(rows, "id string, filter string, version int")
        return (current, whole.drop("version")) if beside else whole

    for version in VERSIONS:
        current = version
        world.add_events(1)
        world.run(subscriptions=table)
    rows = world.rows()
    assert len(rows) == 24
    assert {(row["batch"], row["version"]) for row in rows} == {(0, 1), (1, 2), (2, 3)}
    for row in rows:
        assert sorted(row["subscriptions"]) == world.expected(row["n"], row["version"])


def test_bad_changes_are_collected_and_the_stream_goes_on(world: World) -> None:
    world.change(1, [*changes_to(1), {"version": 1, "op": "add", "id": "bad", "filter": "price >"}])
    world.add_events(1)
    (report,) = world.run()
    assert (report.version, report.bad_changes) == (1, 1)
    assert "1 bad changes" in report.line()
    (line,) = (world.checkpoint / "covey" / "bad" / "1.jsonl.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == "bad"


def test_bad_changes_stop_the_stream_when_asked(world: World) -> None:
    world.change(1, [{"version": 1, "op": "add", "id": "bad", "filter": "price >> 1"}])
    world.add_events(1)
    with pytest.raises(StreamingQueryException, match="id 'bad'"):
        world.run(on_error="raise")
    assert read_matches(world.spark, world.sink).count() == 0


def test_a_rate_source_is_matched_while_it_runs(world: World) -> None:
    world.change(1, [{"version": 1, "op": "add", "id": "few", "filter": "value < 20"}])
    world.change(2, [{"version": 2, "op": "add", "id": "all", "filter": "value >= 0"}])
    events = world.spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    listener = MatchListener()
    query = match_stream(
        events, world.changes, checkpoint=world.checkpoint, sink=world.sink, trigger="1 second", listener=listener
    )
    try:
        wait_for(lambda: any(report.events for report in listener.reports))
        world.change(3, [{"version": 3, "op": "remove", "id": "all"}])
        wait_for(lambda: any(report.version == 3 and report.events for report in listener.reports))
    finally:
        query.stop()
    rows = world.rows()
    assert rows
    assert len({row["value"] for row in rows}) == len(rows)
    assert all(("all" in row["subscriptions"]) == (row["version"] == 2) for row in rows)
    assert all(("few" in row["subscriptions"]) == (row["value"] < 20) for row in rows)


def wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_sink_without_batches_is_an_empty_table(world: World) -> None:
    assert world.run() == []
    found = read_matches(world.spark, world.sink)
    assert found.columns == ["n", "price", "symbol", "odd.name", "at", "subscriptions", "version", "batch"]
    assert found.count() == 0
    with pytest.raises(CoveyError, match="not a sink"):
        read_matches(world.spark, world.work)


def test_a_sink_belongs_to_one_checkpoint(world: World) -> None:
    world.run()
    with pytest.raises(CoveyError, match="another checkpoint"):
        world.run(checkpoint=world.work / "other")
    with pytest.raises(CoveyError, match="output='array', not 'pairs'"):
        world.run(output="pairs")


def mistakes() -> Iterator[tuple[str, dict[str, Any], str]]:
    yield "two sinks", {"sink": "x", "writer": print}, "either sink= .* or writer="
    yield "no sink", {"sink": None}, "either sink= .* or writer="
    yield "output", {"output": "rows"}, "output 'rows' is not known"
    yield "semantics", {"semantics": "fuzzy"}, "semantics 'fuzzy' is not known"
    yield "on_error", {"on_error": "ignore"}, "on_error 'ignore' is not known"
    yield "store", {"sink": "nofs://bucket/sink"}, "nofs://bucket/sink: "


@pytest.mark.parametrize(
    ("options", "message"), [case[1:] for case in mistakes()], ids=[case[0] for case in mistakes()]
)
def test_mistakes_are_told_before_the_stream_starts(world: World, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CoveyError, match=message):
        world.run(**options)


def test_events_that_are_no_stream_or_have_a_column_of_the_result_are_refused(world: World) -> None:
    given = {"checkpoint": world.checkpoint, "sink": world.sink}
    with pytest.raises(CoveyError, match="match_events"):
        match_stream(world.spark.range(3), world.changes, **given)
    events = world.stream().withColumnRenamed("n", "Version")
    with pytest.raises(CoveyError, match="column 'version' already"):
        match_stream(events, world.changes, **given)
    with pytest.raises(CoveyError, match="column 'batch' already"):
        match_stream(world.stream().withColumnRenamed("n", "Batch"), world.changes, **given)


def test_a_listener_that_fails_does_not_stop_the_stream(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.add_events(1)

    def fail(report: BatchReport) -> None:
        raise ValueError("oh")

    assert len(world.run(listener=fail)) == 1
    assert "the listener failed: ValueError('oh')" in capsys.readouterr().err


def test_a_report_is_one_line() -> None:
    report = BatchReport(
        batch=7, version=3, newest=5, events=1000, matches=2500, seconds=0.5, change_seconds=0.25, changes=10,
        bad_changes=0, waiting=0, replayed=False,
    )  # fmt: skip
    assert report.line() == (
        "batch 7: 1,000 events (2,000/s), 2,500 matches (5,000/s), version 3 (lag 2), 0.50 s, 10 changes in 0.25 s"
    )


def test_ids_keep_their_type_and_terms_that_fail_are_counted(world: World) -> None:
    rules = {7: "100 / (n % 2) > 0", 12: "n = 1 AND elt(n, symbol, 'z') = 'b'"}
    rows = [{"version": 1, "op": "add", "id": id, "filter": text} for id, text in rules.items()]
    world.change(1, [*rows, {"version": 1, "op": "add", "id": "x", "filter": "n = 1"}])
    world.add_events(1)
    (report,) = world.run()
    assert report.bad_changes == 1
    assert report.failures == {"7": 4, "12": 6}
    assert {row["n"]: row["subscriptions"] for row in world.rows() if row["subscriptions"]} == {
        1: [7, 12], 3: [7], 5: [7], 7: [7],
    }  # fmt: skip
    world.add_events(1)
    (report,) = world.run(output="array")
    assert "12 failed terms" in report.line()
    assert read_matches(world.spark, world.sink).schema["subscriptions"].dataType.simpleString() == "array<bigint>"


def test_ids_of_a_table_keep_their_type(world: World) -> None:
    table = world.spark.createDataFrame([(3, "n > 5", 1), (1, "TRUE", 1)], "id smallint, filter string, version int")
    world.add_events(1)
    world.run(subscriptions=table, output="pairs")
    found = read_matches(world.spark, world.sink)
    assert found.schema["subscription"].dataType.simpleString() == "smallint"
    assert sorted((row.n, row.subscription) for row in found.collect() if row.n > 4) == [
        (5, 1), (6, 1), (6, 3), (7, 1), (7, 3),
    ]  # fmt: skip
