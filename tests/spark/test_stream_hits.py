"""Counts of hits, rules that don't match, and single versions for a `foreachBatch` of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

import covey
from covey.spark.stream import hit_counts, match_batch_version, newest_version, silent_rules
from covey.spark.stream.changes import BadChangesError
from tests.spark.test_stream_rules import COLUMNS, World, add


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path)


@pytest.mark.parametrize("output", ["array", "pairs"])
def test_hits_are_counted_by_rule_and_batch_and_rules_without_any_are_named(world: World, output: str) -> None:
    world.change(1, add(1, "n > 3"), add(2, "n = 4"), add(3, "n < 0"))
    for numbers in ((3, 4, 5), (6,), (7, 1)):
        world.add_events(*numbers)
        world.run(output=output)
    sink, checkpoint = world.work / "sink", world.work / "checkpoint"
    total = hit_counts(world.spark, sink)
    assert dict(total.dtypes)["subscription"] == "bigint"
    assert sorted(map(tuple, total.collect())) == [(1, 4, 2), (2, 1, 0)]
    by_batch = sorted(map(tuple, hit_counts(world.spark, sink, by_batch=True).collect()))
    assert by_batch == [(1, 0, 2), (1, 1, 1), (1, 2, 1), (2, 0, 1)]

    def silent(batches: int | None) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, silent_rules(world.spark, sink, checkpoint, batches=batches).collect()))

    assert silent(None) == [(3, "n < 0", None)]
    assert silent(2) == [(2, "n = 4", 0), (3, "n < 0", None)]
    assert silent(3) == silent(50) == silent(None)
    with pytest.raises(covey.CoveyError, match="batches is 0"):
        silent(0)


def test_a_batch_is_matched_with_the_version_that_is_asked_for_whatever_came_later(world: World) -> None:
    world.change(1, add("a", "n > 3"), add("b", "price / 2 > 2"))
    events = world.spark.createDataFrame([(n, None, float(n)) for n in (4, 5)], COLUMNS)

    def at(version: int, **options: Any) -> list[list[str]]:
        rows = match_batch_version(events, world.changes, version, **options).orderBy("n").collect()
        return [sorted(row.subscriptions) for row in rows]

    assert newest_version(world.changes) == 1
    assert at(1) == [["a"], ["a", "b"]]
    with pytest.raises(covey.CoveyError, match=r"version 2 of the rules in .* is not there; the newest is 1"):
        at(2)
    world.change(2, {"op": "remove", "id": "a"}, add("c", "n = 4"))
    world.change(4, add("d", "n >"))
    assert newest_version(world.changes) == 4
    assert at(2) == [["c"], ["b"]]
    assert at(3) == [["c"], ["b"]]
    assert at(1) == [["a"], ["a", "b"]]
    with pytest.raises(BadChangesError, match="id 'd'"):
        at(4)
    assert at(4, on_error="skip") == [["c"], ["b"]]
    assert at(0) == [[], []]


def test_a_loop_of_ones_own_gets_one_version_a_batch(world: World) -> None:
    world.change(1, add("a", "n > 3"))
    found: dict[int, list[tuple[int, list[str]]]] = {}

    def each(batch: DataFrame, number: int) -> None:
        rows = match_batch_version(batch, world.changes, newest_version(world.changes)).collect()
        found[number] = sorted((row.n, row.subscriptions) for row in rows)
        world.change(2, {"op": "replace", "id": "a", "filter": "n > 5"})

    for n in (4, 5):
        world.add_events(n)
    source = world.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    stream = source.parquet(str(world.work / "events")).writeStream.foreachBatch(each)
    query = stream.option("checkpointLocation", str(world.work / "own")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert [[ids for _, ids in rows] for rows in found.values()] == [[["a"]], [[]]]
