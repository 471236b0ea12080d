"""What a change of rules costs executors that don't see the driver's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from covey.matching import Index
from covey.spark.stream import snapshots
from covey.spark.stream.bound_segments import BoundSegments
from covey.spark.stream.settings import RuleSettings
from covey.spark.stream.snapshots import SnapshotStore, placed_over

MANY, FEW = 20_000, 1_000


def test_a_change_of_rules_ships_its_own_segment_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped: list[int] = []
    monkeypatch.setattr(snapshots, "is_local", lambda _: False)
    monkeypatch.setattr(
        SparkSession, "addArtifact", lambda _, path, file: shipped.append(os.path.getsize(path)) if file else None
    )
    monkeypatch.setattr(snapshots, "_shipped", {})
    events = spark.createDataFrame([(1, 2.0)], "n int, price double")
    store, index, bound = SnapshotStore(tmp_path, RuleSettings()), Index(), BoundSegments()
    index.add_many([(f"r{n}", f"n = {n} AND price > {n}") for n in range(MANY)])
    index.add("computed", "price * 2 > 3")
    for version in (1, 2):
        placed_over(events, store.save(index, version, ()), RuleSettings(), bound)
        if version == 1:
            first = sum(shipped)
            shipped.clear()
            index.remove_many([f"r{n}" for n in range(FEW)])
            index.add_many([(f"r{n}", f"n = {n} OR price < {n}") for n in range(FEW)])
    assert first > 50 * MANY
    assert 0 < sum(shipped) < 250 * FEW
