"""A change of a stream's rules is bound, written and sent by itself, whatever the other rules are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession

from covey.matching import Index
from covey.spark.batch import match_placed
from covey.spark.stream import snapshots
from covey.spark.stream.bound_segments import BoundSegments
from covey.spark.stream.settings import RuleSettings
from covey.spark.stream.snapshots import Snapshot, SnapshotFiles, SnapshotStore, placed_over
from covey.spark.worker_files import Placed

SETTINGS = RuleSettings()
MANY = 600


class Versions:
    """An index that changes, each version over the same events."""

    def __init__(self, events: DataFrame, work: Path) -> None:
        self.events, self.store, self.bound = events, SnapshotStore(work, SETTINGS), BoundSegments()
        self.index, self.version = Index(), 0

    def placed(self) -> tuple[Placed, dict[str, int]]:
        """The version as it is now, and its files with their sizes."""
        self.version += 1
        snapshot = self.store.save(self.index, self.version, ())
        placed = placed_over(self.events, snapshot, SETTINGS, self.bound)
        (files,) = placed.files
        assert isinstance(files, SnapshotFiles)
        return placed, {one.file: size(files.snapshot, one.file) for one in files.snapshot.segments}

    def found(self, placed: Placed) -> dict[int, list[str]]:
        return {row.n: sorted(row.subscriptions) for row in match_placed(self.events, placed).collect()}


def size(snapshot: Snapshot, file: str) -> int:
    return os.path.getsize(os.path.join(snapshot.directory, file))


@pytest.fixture
def versions(spark: SparkSession, tmp_path: Path) -> Versions:
    rows = [(n, float(n), bytes([n]), f"2024-01-0{n}") for n in (1, 2, 5)]
    events = spark.createDataFrame(rows, "n int, price double, b binary, day string").selectExpr(
        "n", "price", "b", "CAST(day AS DATE) AS day"
    )
    return Versions(events, tmp_path)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rules were bound, each time some were."""
    counts: list[int] = []
    as_ever = snapshots.index_of

    def counting(events: Any, rows: Any, *others: Any) -> Any:
        counts.append(len(rows))
        return as_ever(events, rows, *others)

    monkeypatch.setattr(snapshots, "index_of", counting)
    return counts


def test_rules_with_terms_are_bound_once_and_later_versions_bring_their_changes_alone(
    versions: Versions, read: list[int]
) -> None:
    index = versions.index
    index.add_many([(f"r{n}", f"price * 2 > {n}") for n in range(MANY)])
    index.add_many([("day", "day < '2024-01-02'"), ("plain", "n = 5")])
    placed, first = versions.placed()
    assert versions.found(placed)[1] == ["day", "r0", "r1"]
    assert sum(read) == MANY + 2
    read.clear()

    index.remove("r1")
    index.replace("r0", "price * 3 > 14")
    index.add("late", "day >= '2024-01-05'")
    placed, second = versions.placed()
    assert versions.found(placed) == {
        1: ["day"],
        2: ["r2", "r3"],
        5: ["late", "plain", "r0", *(f"r{n}" for n in range(2, 10))],
    }
    assert sum(read) == 2
    new = second.keys() - first.keys()
    assert sum(second[file] for file in new) < sum(first.values()) / 4
    assert first.keys() <= second.keys()


def test_a_rule_that_cannot_be_used_is_looked_for_once(versions: Versions, read: list[int]) -> None:
    index = versions.index
    index.add_many([(f"r{n}", f"n = {n}") for n in range(MANY)])
    index.add_many([("bytes", "b > 5"), ("text", "event_text() = 'x'")])
    placed, _ = versions.placed()
    assert {bad.id for bad in placed.errors} == {"bytes", "text"}
    assert versions.found(placed)[5] == ["r5"]
    read.clear()

    index.replace("r5", "n = 2")
    placed, _ = versions.placed()
    assert sum(read) == 0
    assert {bad.id for bad in placed.errors} == {"bytes", "text"}
    assert versions.found(placed) == {1: ["r1"], 2: ["r2", "r5"], 5: []}

    index.remove("bytes")
    index.replace("text", "n = 1")
    placed, _ = versions.placed()
    assert placed.errors == ()
    assert versions.found(placed)[1] == ["r1", "text"]


def test_terms_that_fail_are_counted_for_the_rules_that_are_there(versions: Versions) -> None:
    versions.index.add_many([("gone", "1 / (n - 1) > 0"), ("stays", "1 / (n - 2) > 0"), ("both", "1 / (n - 1) > 1")])
    versions.placed()
    versions.index.remove("gone")
    versions.index.add("new", "1 / (n - 1) > 2")
    placed, _ = versions.placed()
    assert placed.columns is not None
    assert sorted(rule for rules in placed.columns.failing.values() for rule in rules) == ["both", "new", "stays"]
