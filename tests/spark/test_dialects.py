"""Rules of dialects without types match a table's columns."""

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from covey.spark import match_events


def test_eventbridge_patterns_match_columns(spark: SparkSession) -> None:
    rows = [("aws.ec2", 5, ["a", "b"]), ("aws.s3", 7, [])]
    events = spark.createDataFrame(rows, "source string, n int, tags array<string>")
    patterns = [("one", '{"source": ["aws.ec2", 3], "tags": ["b"]}'), ("two", '{"n": [{"numeric": [">", 6]}, "7"]}')]
    rules = spark.createDataFrame(patterns, "id string, filter string")
    found = match_events(events, rules, dialect="eventbridge").collect()
    assert {row.source: row.subscriptions for row in found} == {"aws.ec2": ["one"], "aws.s3": ["two"]}
