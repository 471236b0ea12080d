"""History on Spark."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import covey
from covey.history import EventSample, Profile
from covey.spark import build_index, match_events, profile

FILTERS = [("a", "n < 100 AND word = 'w1'"), ("b", "n < 100"), ("c", "inner.x IS NULL OR n = 5"), ("d", "n < 100")]


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> object:
    return spark.range(0, 20_000, 1, 5).select(
        (F.col("id") % 1000).alias("n"),
        F.concat(F.lit("w"), F.col("id") % 7).alias("word"),
        F.struct(F.when(F.col("id") % 4 > 0, F.col("id") * 0.5).alias("x")).alias("inner"),
        F.lit(b"bytes").alias("unused"),
    )


def test_a_profile_counts_all_partitions_for_named_attributes(spark: SparkSession, events: object) -> None:
    found = profile(events, spark.createDataFrame(FILTERS, "id string, filter string").repartition(3))
    assert found.events is not None
    assert found.events.count == 20_000
    assert {name: sketch.present for name, sketch in found.events.sketches.items()} == {
        "n": 20_000, "word": 20_000, "inner.x": 15_000,
    }  # fmt: skip
    assert found.events.sample.num_rows == 16_384
    assert found.subscriptions.count == 4
    assert dict(found.subscriptions.attributes) == {"n": 4, "word": 1, "inner.x": 1}
    assert str(found.subscriptions.popular(1)[0][0]) == "n < 100"
    assert found.version == 1


def test_chances_are_close_to_what_spark_counts(spark: SparkSession, events: object) -> None:
    found = profile(events, spark.createDataFrame(FILTERS, "id string, filter string"))
    for _, text in FILTERS:
        counted = events.where(text).count() / 20_000
        assert found.chances([covey.parse(text)])[0] == pytest.approx(counted, abs=0.02)


def test_without_subscriptions_every_comparable_column_is_looked_at(events: object) -> None:
    found = profile(events)
    assert found.events is not None
    assert sorted(found.events.sketches) == ["inner.x", "n", "word"]


def test_today_is_merged_into_yesterdays_profile(spark: SparkSession, events: object, tmp_path: Path) -> None:
    first = profile(events, spark.createDataFrame(FILTERS, "id string, filter string"))
    first.save(tmp_path / "p.profile")
    other = events.withColumn("n", F.lit(7).cast("bigint")).limit(5_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        second = profile(other, spark.createDataFrame([("e", "later = 1")], "id string, filter string"),
                         previous=Profile.open(tmp_path / "p.profile"))  # fmt: skip
    assert [str(one.message) for one in caught if "left out" in str(one.message)]
    assert second.events is not None
    assert (second.events.count, second.version, second.subscriptions.count) == (25_000, 2, 5)
    assert second.chances([covey.parse("n = 7")])[0] == pytest.approx(5_020 / 25_000, abs=0.02)


def test_bad_filters_are_named_and_counted(spark: SparkSession) -> None:
    rows = [(f"bad{n}", "n <") for n in range(20)] + [("good", "n < 1")]
    with pytest.raises(covey.CoveyError, match=r"20 subscriptions can't be read: bad\d+: .*; and 15 more"):
        profile(None, spark.createDataFrame(rows, "id string, filter string").repartition(4))
    with pytest.raises(covey.CoveyError, match="need one column 'filter'"):
        profile(None, spark.createDataFrame([("a",)], "id string"))
    with pytest.raises(covey.CoveyError, match="needs events, subscriptions, or both"):
        profile()


def test_an_empty_table_gives_an_empty_profile(spark: SparkSession, events: object) -> None:
    found = profile(events.where("n < 0"), attributes=["n", "nowhere"])
    assert found.events is not None
    assert found.events.count == 0
    assert found.chances([covey.parse("n = 1")]).tolist() == [0.0]


def test_an_index_built_with_a_profile_answers_the_same(spark: SparkSession, events: object, tmp_path: Path) -> None:
    subscriptions = spark.createDataFrame(FILTERS, "id string, filter string")
    found = profile(events, subscriptions)
    build_index(subscriptions, tmp_path / "learned.covey", statistics=found.statistics())
    learned = match_events(events.limit(500), tmp_path / "learned.covey").collect()
    assert learned == match_events(events.limit(500), subscriptions).collect()


def test_the_sample_alone_answers_as_the_profile_where_it_can(events: object) -> None:
    found = profile(events)
    assert found.events is not None
    asked = [covey.parse("n < 500 AND word = 'w2'")]
    assert found.chances(asked).tolist() == EventSample(found.events.sample).chances(asked).tolist()
