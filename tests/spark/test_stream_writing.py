"""What workers write of a stream's batches is what Spark would have written, or the batch isn't committed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession

import covey
from covey.spark.batch import COLUMNS
from covey.spark.stream import hit_counts, match_stream, query, read_matches, silent_rules
from covey.spark.stream.sink import LocalPlace
from covey.spark.stream.writing import Written, write_matches

SCHEMA = """
    n int, b tinyint, f float, d double, e decimal(15,3), w decimal(38,0), s string, o boolean, t timestamp,
    z timestamp_ntz, a date, l array<struct<x:int,y:string>>, r struct<x:int,p:struct<`q.r`:double>>, m map<string,int>,
    bin binary, `odd.name` string
"""
RULES = {7: "n >= 2", 8: "s = 'é' OR `odd.name` = 'o'", 9: "t < TIMESTAMP '2000-01-01 00:00:00Z' OR r.x = 3"}
PATIENCE = 600.0


def rows() -> list[tuple[Any, ...]]:
    times = [datetime(1, 1, 1), datetime(1582, 10, 10, 1, 2, 3, 456), datetime(9999, 12, 31, 23, 59, 59, 999_999)]
    made = [
        (n, n, 0.5, -0.0, Decimal("1.125"), Decimal(10**37), "é\u0000", True, at.replace(tzinfo=UTC), at, at.date(),
         [(1, None), None], (3, (2.5,)), {"k": None, "j": 2}, b"\xff\x00", "o")
        for n, at in enumerate(times)
    ]  # fmt: skip
    return [
        *made,
        (3, *(None for _ in range(15))),
        (4, 1, float("nan"), *(None for _ in range(7)), date(2024, 1, 1), [], None, {}, b"", "x"),
    ]


class World:
    """One file of events, one version of rules."""

    def __init__(self, spark: SparkSession, work: Path) -> None:
        self.spark, self.work = spark, work
        self.table = spark.createDataFrame(rows(), SCHEMA)

    def run(self, rules: dict[int, str] = RULES, **options: Any) -> list[Row]:
        work = self.work
        self.table.coalesce(1).write.parquet(str(work / "events"))
        (work / "changes").mkdir()
        changes = [{"version": 1, "op": "add", "id": id, "filter": text} for id, text in rules.items()]
        (work / "changes" / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changes))
        events = self.spark.readStream.schema(self.table.schema).parquet(str(work / "events"))
        started = match_stream(
            events, work / "changes", checkpoint=work / "checkpoint", sink=work / "sink", trigger="availableNow",
            **options,
        )  # fmt: skip
        assert started.awaitTermination(PATIENCE)
        found = read_matches(self.spark, work / "sink").select("n", COLUMNS[options.get("output", "array")], "version")
        return sorted(found.collect(), key=lambda row: row.n)


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


IDS = [[8, 9], [8, 9], [7, 8, 9], [7], [7]]


def test_columns_of_all_types_come_back_as_they_were(world: World) -> None:
    found = world.run()
    assert [row.subscriptions for row in found] == IDS
    by_anyone = world.spark.read.parquet(str(world.work / "sink"))
    own = ", ".join(f"`{name}`" for name in world.table.columns)
    for table in (read_matches(world.spark, world.work / "sink"), by_anyone):
        texts = table.selectExpr(f"to_json(struct({own})) AS text").collect()
        expected = world.table.selectExpr("to_json(struct(*)) AS text").collect()
        assert sorted(row.text for row in texts) == sorted(row.text for row in expected)
    assert by_anyone.columns == [*world.table.columns, "subscriptions", "version", "batch"]


def test_columns_that_only_spark_writes_are_written_by_it(world: World) -> None:
    world.table = world.table.select("n", "s", "t", "r", "`odd.name`").selectExpr("*", "INTERVAL '3' MONTH AS wait")
    found = world.run()
    assert [row.subscriptions for row in found] == IDS
    waits = read_matches(world.spark, world.work / "sink").selectExpr("wait = INTERVAL '3' MONTH AS same").collect()
    assert [row.same for row in waits] == [True] * len(IDS)


def test_pairs_are_written_by_workers_too(world: World) -> None:
    world.table = world.table.select("n", "s", "t", "r", "`odd.name`")
    found = world.run(output="pairs")
    assert [(row.n, row.subscription) for row in found] == [(n, id) for n, ids in enumerate(IDS) for id in ids]
    assert {row.subscription: row.hits for row in hit_counts(world.spark, world.work / "sink").collect()} == {
        7: 3, 8: 3, 9: 3,
    }  # fmt: skip


def test_counts_have_the_numbers_of_matches_alone(world: World) -> None:
    world.table = world.table.select("n", "s", "t", "r", "`odd.name`")
    found = world.run(output="counts")
    assert [(row.matches, row.version) for row in found] == [(len(ids), 1) for ids in IDS]
    for ask in (hit_counts, lambda *given: silent_rules(*given, world.work / "checkpoint")):
        with pytest.raises(covey.CoveyError, match="output='counts', which has no rules in it"):
            ask(world.spark, world.work / "sink")


def test_events_may_be_json_texts(world: World) -> None:
    texts = ['{"n": 2, "s": "é"}', None, "no event", '{"n": 1, "more": {"x": 3}}', '{"odd.name": "o"}', "{}"]
    world.table = world.spark.createDataFrame([*enumerate(texts)], "n int, value string").selectExpr(
        "n", "CAST(value AS BINARY) AS value"
    )
    rules = {1: "n >= 2", 2: "s = 'é' OR more.x = 3", 3: "n + 1 = 2", 4: "soundex(s) = 'A500'", 5: "NOT (n = 2)"}
    found = world.run(rules, json="value", bad_json="null")
    assert [row.subscriptions for row in found] == [[1, 2], None, None, [2, 3, 5], [], []]
    (bad,) = (world.work / "checkpoint" / "covey" / "bad").glob("*.jsonl")
    assert "soundex" in bad.read_text()  # which only Spark knows, and Spark computes nothing here
    for output, expected in (("counts", [2, None, None, 3, 0, 0]), ("pairs", [1, 2, 2, 3, 5])):
        with TemporaryDirectory() as other:
            again = World(world.spark, Path(other))
            again.table = world.table
            rows = again.run(rules, json="value", bad_json="null", output=output)
            assert [row[1] for row in rows] == expected


def test_a_text_that_is_no_event_fails_the_batch_unless_that_is_asked_for(world: World) -> None:
    world.table = world.spark.createDataFrame([(1, "no event")], "n int, value string")
    with pytest.raises(StreamingQueryException, match="a JSON text is no event"):
        world.run(json="value")
    with pytest.raises(covey.CoveyError, match="with json= it computes nothing"):
        match_stream(
            world.spark.readStream.schema("value string").parquet(str(world.work / "events")), world.work / "changes",
            checkpoint=world.work / "other", sink=world.work / "other", json="value", functions=["f"],
        )  # fmt: skip


def test_a_batch_whose_files_do_not_add_up_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*given: Any) -> Written:
        place: LocalPlace = given[-1]
        written = write_matches(*given)
        (Path(place.path) / "part-of-a-failed-attempt.parquet").touch()
        Path(place.path, written.files[0]).unlink()
        return written

    monkeypatch.setattr(query, "write_matches", lose)
    with pytest.raises(StreamingQueryException, match=r"wrote 5 rows .* the driver finds 0 of them there"):
        world.run()
    assert list((world.work / "sink").glob("batch=*")) == []


def test_files_of_attempts_that_failed_are_not_in_a_batch(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(*given: Any) -> Written:
        write_matches(*given)
        return write_matches(*given)

    monkeypatch.setattr(query, "write_matches", twice)
    assert len(world.run()) == len(IDS)
    assert world.spark.read.parquet(str(world.work / "sink")).count() == len(IDS)


def test_a_worker_that_does_not_see_the_sink_says_so(tmp_path: Path) -> None:
    with pytest.raises(covey.CoveyError, match="is seen by the driver and not by all of Spark's workers"):
        LocalPlace(str(tmp_path / "elsewhere")).open_output("part.parquet")
