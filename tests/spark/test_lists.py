"""Tests of lists' elements mean what Spark SQL means by the same text, nulls and records in lists included."""

from __future__ import annotations

import random

import pyarrow as pa
from pyspark.sql import SparkSession

import covey
from tests.matching.test_lists import TYPE, _event, _filter


def test_exists_forall_and_arrays_overlap_hold_where_spark_says_so(spark: SparkSession) -> None:
    rng = random.Random(11)
    rules = [_filter(rng) for _ in range(150)]
    events = [_event(rng) for _ in range(80)]
    table = pa.Table.from_pylist(
        [{**event, "key": at} for at, event in enumerate(events)], TYPE.append(pa.field("key", pa.int64()))
    )
    rows = spark.createDataFrame(table)
    for first in range(0, len(rules), 50):
        part = rules[first : first + 50]
        asked = rows.selectExpr("key", *(f"({rule}) AS r{at}" for at, rule in enumerate(part))).collect()
        parsed = [covey.parse(rule) for rule in part]
        for row in asked:
            for at, one in enumerate(parsed):
                assert one.matches(events[row["key"]]) is (row[f"r{at}"] is True), (part[at], events[row["key"]])
