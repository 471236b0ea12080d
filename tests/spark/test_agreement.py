"""`match_events` gives what Spark SQL itself gives for `where(filter)`, filter by filter."""

from __future__ import annotations

import os
import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from covey.spark import match_events
from tests.spark.random_tables import SCHEMA, filter_of, row_of

ROUNDS = int(os.environ.get("COVEY_FUZZ_ROUNDS", "0")) // 100 or 2
FILTERS, ROWS = 150, 120


def by_spark(events: DataFrame, filters: dict[str, str]) -> dict[int, set[str]]:
    """Which filters hold for each row, as Spark evaluates them: one column of truths, so that it is one job."""
    found: dict[int, set[str]] = {}
    names = list(filters)
    for first in range(0, len(names), 50):
        part = names[first : first + 50]
        # Spark takes the quotes of a name with dots at their word, covey doesn't.
        texts = [filters[name].replace("r.p.q", "r.`p.q`") for name in part]
        truths = F.array(*(F.expr(f"coalesce(({text}), false)") for text in texts))
        for row in events.select("k", truths.alias("truths")).collect():
            found.setdefault(row.k, set()).update(n for n, truth in zip(part, row.truths, strict=True) if truth)
    return found


def by_covey(matched: DataFrame) -> dict[int, set[str]]:
    rows = matched.select("k", "subscriptions").collect()
    assert all(len(row.subscriptions) == len(set(row.subscriptions)) for row in rows)
    return {row.k: set(row.subscriptions) for row in rows}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_filters_hold_for_the_rows_for_which_spark_says_so(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    filters = {f"f{number}": str(filter_of(rng)) for number in range(FILTERS)}
    events = spark.createDataFrame([row_of(rng, key) for key in range(ROWS)], SCHEMA).coalesce(2).cache()
    subscriptions = spark.createDataFrame(list(filters.items()), "id string, filter string")
    expected, found = by_spark(events, filters), by_covey(match_events(events, subscriptions))
    events.unpersist()
    wrong = [
        (filters[name], name in found[key], key)
        for key in expected
        for name in sorted(expected[key] ^ found[key], key=lambda name: len(filters[name]))
    ]
    assert not wrong, sorted(wrong, key=lambda one: len(one[0]))[:5]
    assert 0.02 < sum(map(len, expected.values())) / (FILTERS * ROWS) < 0.98


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_timestamps_are_instants_whatever_the_zone_of_the_session(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        events = spark.sql("SELECT 1 AS k, TIMESTAMP '2024-06-01 12:00:00Z' AS t UNION ALL SELECT 2, NULL")
        filters = {
            "at": "t = TIMESTAMP '2024-06-01 12:00:00Z'",
            "before": "t < TIMESTAMP '2024-06-01 12:00:00Z'",
            "elsewhere": "t <= TIMESTAMP '2024-06-01 08:00:00-04:00'",
            "not": "NOT t > TIMESTAMP '2024-06-01 12:00:00Z'",
        }
        subscriptions = spark.createDataFrame(list(filters.items()), "id string, filter string")
        assert by_covey(match_events(events, subscriptions)) == by_spark(events, filters)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
