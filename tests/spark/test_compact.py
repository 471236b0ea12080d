"""Compaction of tables of subscriptions on Spark."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

import covey
from covey.filters import Filter
from covey.history import Profile
from covey.relations.compaction import compact as compact_here
from covey.spark import compact
from covey.spark.compact import covering as compact_covering

Rows = list[tuple[str, str]]


def subscriptions(count: int, seed: int) -> Rows:
    rng = random.Random(seed)
    made = []
    for number in range(count):
        parts = [f"sym = 'S{rng.randrange(6)}'"] if rng.random() < 0.7 else []
        low = rng.randrange(10)
        parts += [f"price BETWEEN {low} AND {low + rng.randrange(6)}"] if rng.random() < 0.8 else []
        parts += [f"kind IN ({', '.join(repr(word) for word in rng.sample('wxyz', 2))})"] if rng.random() < 0.4 else []
        text = " AND ".join(parts) or "sym IS NOT NULL AND price > 3"
        made.append((f"s{number:03}", text if rng.random() < 0.9 else f"({text}) OR kind = 'q{rng.randrange(3)}'"))
    return made


def events(count: int, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            name: value
            for name, value in (
                ("sym", f"S{rng.randrange(7)}"), ("price", rng.uniform(0, 16)), ("kind", rng.choice("vwxyzq")),
            )
            if rng.random() < 0.9
        }
        for _ in range(count)
    ]  # fmt: skip


def test_rows_without_an_id_and_ids_that_stand_twice_are_refused_by_name(spark: SparkSession) -> None:
    rows = [(None, "a = 1"), ("b", "a = 2"), ("b", "a = 3"), ("c", "a = 4")]
    with pytest.raises(covey.CoveyError, match="a row has NULL for an id; the id 'b' stands in 2 rows"):
        compact(spark.createDataFrame(rows, "id string, filter string"))


def test_integer_ids_come_back_as_integers(spark: SparkSession) -> None:
    rows = [(10, "a = 1"), (9, "a = 1"), (7, "a = 5 AND b = 1")]
    table = compact(spark.createDataFrame(rows, "id bigint, filter string")).table
    assert dict(table.dtypes) == {"id": "bigint", "filter": "string", "stands_for": "array<bigint>"}
    assert sorted((row.id, sorted(row.stands_for)) for row in table.collect()) == [(7, [7]), (10, [9, 10])]


def check(table: list[Any], given: Rows, sample: list[dict[str, Any]]) -> int:
    """Every id stands behind one entry, which matches what it does. Gives how many matches are in vain."""
    filters = {id: covey.parse(text) for id, text in given}
    entries: list[tuple[Filter, list[str]]] = [(covey.parse(row.filter), row.stands_for) for row in table]
    assert sorted(id for _, ids in entries for id in ids) == sorted(filters)
    assert all(row.id in row.stands_for for row in table)
    vain = 0
    for event in sample:
        for condition, ids in entries:
            wanted = any(filters[id].matches(event) for id in ids)
            matched = condition.matches(event)
            assert matched or not wanted
            vain += matched and not wanted
    return vain


def test_the_table_is_smaller_and_matches_the_same(spark: SparkSession) -> None:
    given = subscriptions(300, 1)
    found = compact(spark.createDataFrame(given, "id string, filter string").repartition(5))
    assert found.table.columns == ["id", "filter", "stands_for"]
    table = found.table.collect()
    assert check(table, given, events(100, 2)) == 0
    assert [step.name for step in found.steps] == ["identity", "covering", "merging", "covering of mergers"]
    assert found.steps[0].before == 300
    assert found.steps[-1].after == len(table) < 100


def test_covering_finds_what_one_table_of_all_conjunctions_finds(spark: SparkSession) -> None:
    given = [(id, text) for id, text in subscriptions(400, 3) if "OR" not in text]
    found = compact(spark.createDataFrame(given, "id string, filter string").repartition(3), merging=False)
    here = compact_here(((id, covey.parse(text)) for id, text in given), merging=False)
    assert sorted(row.id for row in found.table.collect()) == sorted(entry.id for entry in here.entries)


def test_a_crowded_place_is_split_and_nothing_is_missed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [(f"s{n:03}", f"price BETWEEN {n % 20} AND {n % 20 + n % 7}") for n in range(200)]
    frame = spark.createDataFrame(given, "id string, filter string")
    whole = sorted(row.id for row in compact(frame, merging=False).table.collect())
    monkeypatch.setattr(compact_covering, "PLACE_ROWS", 20)
    monkeypatch.setattr(compact_covering, "TASK_ROWS", 20)
    assert sorted(row.id for row in compact(frame, merging=False).table.collect()) == whole


def test_imperfect_steps_make_it_smaller_and_only_add_matches(spark: SparkSession) -> None:
    rng = random.Random(5)
    lows = [round(rng.uniform(0, 14), 2) for _ in range(120)]
    given = [
        (f"s{n:03}", f"sym = 'S{n % 3}' AND price BETWEEN {low} AND {low + 0.2:.2f}") for n, low in enumerate(lows)
    ]
    frame = spark.createDataFrame(given, "id string, filter string")
    profile = Profile.of(events(2_000, 6), [covey.parse(text) for _, text in given])
    advertised = spark.createDataFrame([("price < 15",)], "filter string")
    found = compact(frame, profile=profile, imt=0.7, advertisements=advertised, prune=0.3)
    sizes = {step.name: step.after for step in found.steps}
    assert sizes["merging up to 0.7"] < sizes["merging"]
    assert sizes["covering of the pruned"] <= sizes["merging up to 0.7"]
    assert check(found.table.collect(), given, events(100, 7)) > 0


def test_the_threshold_bounds_traffic_where_that_is_asked_for(spark: SparkSession) -> None:
    given = [(str(n), f"a = 1 AND b BETWEEN {n} AND {n + 1} AND c BETWEEN {n} AND {n + 1}") for n in range(4)]
    frame = spark.createDataFrame(given, "id string, filter string")
    seen = [{"a": n % 5, "b": n % 12, "c": n % 7} for n in range(4_200)]
    profile = Profile.of(seen, [covey.parse(text) for _, text in given])
    by_degree = compact(frame, profile=profile, imt=0.01).table.count()
    by_traffic = compact(frame, profile=profile, imt=0.01, measure="traffic").table.count()
    assert by_traffic < by_degree == 4


def test_mistakes_are_told(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", "x <"), ("b", "x = 1")], "id string, filter string")
    with pytest.raises(covey.CoveyError, match="1 subscriptions can't be read: a: "):
        compact(frame)
    with pytest.raises(covey.CoveyError, match="need profile="):
        compact(frame, imt=0.1)
    with pytest.raises(covey.CoveyError, match="imt is 2"):
        compact(frame, imt=2)
    with pytest.raises(covey.CoveyError, match="measure is 'bytes'; use one of degree, traffic"):
        compact(frame, measure="bytes")  # type: ignore[arg-type]


def test_an_empty_table_stays_empty(spark: SparkSession) -> None:
    assert compact(spark.createDataFrame([], "id string, filter string")).table.collect() == []
