"""Rules of a stream: what is wrong with one of them stops nothing, and the options with which they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import covey
from covey.spark.stream import match_stream, read_matches
from covey.spark.stream import snapshots as stream_snapshots

PATIENCE = 600.0
COLUMNS = "n int, b binary, price double"


class World:
    """Events with a column of bytes, and rules that change."""

    def __init__(self, spark: SparkSession, work: Path) -> None:
        self.spark, self.work = spark, work
        self.changes = work / "changes"
        self.changes.mkdir()
        self.files = 0

    def add_events(self, *numbers: int) -> None:
        rows = [(n, bytes([n]), float(n)) for n in numbers]
        table = self.spark.createDataFrame(rows, COLUMNS).coalesce(1)
        table.write.mode("append").parquet(str(self.work / "events"))

    def change(self, version: int, *rows: dict[str, Any]) -> None:
        hidden = self.changes / f".{version}"
        hidden.write_text("".join(json.dumps({"version": version, **row}) + "\n" for row in rows))
        hidden.rename(self.changes / f"{version}.jsonl")

    def run(self, rules: Any = None, **options: Any) -> None:
        events = self.spark.readStream.schema(COLUMNS).parquet(str(self.work / "events"))
        query = match_stream(
            events, self.changes if rules is None else rules, checkpoint=self.work / "checkpoint",
            sink=self.work / "sink", trigger="availableNow", **options,
        )  # fmt: skip
        assert query.awaitTermination(PATIENCE)

    def found(self) -> dict[int, tuple[int, list[Any]]]:
        """By event, the version and what matched."""
        return {
            row.n: (row.version, sorted(row.subscriptions))
            for row in read_matches(self.spark, self.work / "sink").collect()
        }

    def bad(self) -> dict[str, str]:
        """By id, why a rule isn't used."""
        found = sorted((self.work / "checkpoint" / "covey" / "bad").glob("*.jsonl"))
        lines = [json.loads(line) for path in found for line in path.read_text().splitlines()]
        return {line["id"]: line["error"] for line in lines}


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


def add(id: Any, filter: str) -> dict[str, Any]:
    return {"op": "add", "id": id, "filter": filter}


def test_rules_that_cannot_be_used_over_the_events_are_bad_whatever_is_bad_about_them(world: World) -> None:
    world.add_events(1, 5)
    world.change(
        1, add("good", "price > 2"), add("bytes", "b > 5"), add("nothing", "nope = 1"),
        add("all", "event_text() = 'x'"), add("rest", "event_text() LIKE '%y%' OR n = 1"),
        add("deep", "(" * 5_000 + "n = 1" + ")" * 5_000),
        add("aggregate", "count(n) > 1"),
    )  # fmt: skip
    world.run()
    assert world.found() == {1: (1, []), 5: (1, ["good"])}
    bad = world.bad()
    assert set(bad) == {"bytes", "nothing", "all", "rest", "deep", "aggregate"}
    assert "BINARY" in bad["bytes"]
    assert "event_text()" in bad["all"]


def test_a_rule_of_a_schema_on_a_column_of_bytes_is_bad_and_stops_nothing(world: World) -> None:
    world.add_events(1, 5)
    world.change(1, add("good", "price > 2"), add("bytes", "b = 'x'"), add("also", "n = 1 AND b = 'y'"))
    schema = covey.Schema({"price": "double", "n": "int", "b": "string"})
    world.run(schema=schema)
    assert world.found() == {1: (1, []), 5: (1, ["good"])}
    assert set(world.bad()) == {"bytes", "also"}
    assert "is of type binary" in world.bad()["bytes"]
    with pytest.raises(covey.CoveyError, match="this checkpoint began with schema="):
        world.run()


def test_with_more_culprits_than_are_looked_for_the_reason_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_snapshots, "MOST_CULPRITS", 2)
    world.add_events(1)
    world.change(1, *(add(f"r{n}", f"b = '{n}'") for n in range(4)))
    with pytest.raises(StreamingQueryException, match="column 'b' is of type binary"):
        world.run(schema=covey.Schema({"b": "string"}))


def test_a_version_with_which_matching_fails_is_left_behind_when_the_rules_change(world: World) -> None:
    world.add_events(0, 4)
    world.change(1, add("share", "1 / n > 0"), add("good", "price > 2"))
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=r"(?i)division by zero"):
            world.run(on_term_error="raise")
    note = json.loads((world.work / "checkpoint" / "covey" / "batches" / "0.json").read_text())
    assert note["version"] == 1
    assert "division by zero" in note["failed"].lower()
    world.change(2, {"op": "remove", "id": "share"})
    world.run(on_term_error="raise")
    assert world.found() == {0: (2, []), 4: (2, ["good"])}


def test_rows_may_call_their_ids_and_filters_otherwise(world: World) -> None:
    world.add_events(1, 5)
    rows = [{"op": "add", "rule": 7, "if": "price > 2"}, {"op": "add", "rule": 8, "filter": "price > 2"}]
    world.change(1, *rows)
    world.run(id="rule", filter="if")
    assert world.found() == {1: (1, []), 5: (1, [7])}
    assert "needs a filter" in world.bad()["8"]


def test_an_index_above_the_budget_is_matched_in_shards(world: World) -> None:
    world.add_events(1, 5)
    world.change(1, *(add(f"r{n:03}", f"n = {n}") for n in range(200)))
    world.run(memory_budget=4_000)
    assert world.found() == {1: (1, ["r001"]), 5: (1, ["r005"])}


def test_rules_may_be_written_in_a_dialect(world: World) -> None:
    world.add_events(1, 5)
    world.change(1, add("good", '{"price": [{"numeric": [">", 2]}]}'))
    world.run(dialect="eventbridge")
    assert world.found() == {1: (1, []), 5: (1, ["good"])}


def test_a_table_without_versions_that_is_rewritten_is_noticed(world: World) -> None:
    path = str(world.work / "rules")

    def rules(*rows: tuple[int, str]) -> None:
        world.spark.createDataFrame(list(rows), "id int, filter string").write.mode("overwrite").parquet(path)

    rules((1, "price > 2"), (2, "n = 1"))
    world.add_events(1)
    world.run(world.spark.read.parquet(path))
    rules((2, "n = 2"), (3, "price > 4"))
    world.add_events(5)
    world.run(lambda: world.spark.read.parquet(path))
    rules((3, "price > 4"), (2, "n = 2"))  # the same in another order
    world.add_events(6)
    world.run(lambda: world.spark.read.parquet(path))
    assert world.found() == {1: (1, [2]), 5: (2, [3]), 6: (2, [3])}


def test_a_table_without_versions_is_noticed_between_two_batches_of_a_run(world: World) -> None:
    rows = [[(1, "price > 2")], [(1, "price > 2")], [(1, "price > 20")], [(1, "price > 20")]]
    asked: list[int] = []

    def table() -> Any:
        asked.append(1)
        return world.spark.createDataFrame(rows[min(len(asked) - 2, 3)], "id int, filter string")

    for n in (4, 5, 6):
        world.add_events(n)
    events = world.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    query = match_stream(
        events.parquet(str(world.work / "events")), table, checkpoint=world.work / "checkpoint",
        sink=world.work / "sink", trigger="availableNow",
    )  # fmt: skip
    assert query.awaitTermination(PATIENCE)
    assert sorted(world.found().values()) == [(1, [1]), (1, [1]), (2, [])]
