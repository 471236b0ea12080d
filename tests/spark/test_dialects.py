"""Rules of dialects without types match a table's columns."""

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

import covey
from covey.errors import CoveyError
from covey.spark import match_events


def test_eventbridge_patterns_match_columns(spark: SparkSession) -> None:
    rows = [("aws.ec2", 5, ["a", "b"]), ("aws.s3", 7, [])]
    events = spark.createDataFrame(rows, "source string, n int, tags array<string>")
    patterns = [("one", '{"source": ["aws.ec2", 3], "tags": ["b"]}'), ("two", '{"n": [{"numeric": [">", 6]}, "7"]}')]
    rules = spark.createDataFrame(patterns, "id string, filter string")
    found = match_events(events, rules, dialect="eventbridge").collect()
    assert {row.source: row.subscriptions for row in found} == {"aws.ec2": ["one"], "aws.s3": ["two"]}


def test_what_event_ruler_says_of_null_lists_and_records_is_said_of_columns(spark: SparkSession) -> None:
    schema = "id int, state string, tags array<string>, disks array<struct<kind: string, free: int>>"
    rows = [
        (0, "on", ["a", "b"], [("ssd", 9), ("hdd", 1)]), (1, None, [], [("ssd", 1)]), (2, "off", None, None),
        (3, "On", ["b"], []),
    ]  # fmt: skip
    events = spark.createDataFrame(rows, schema)
    patterns = {
        "other": ('{"state": [{"anything-but": "on"}]}', {2, 3}),
        "there": ('{"tags": [{"exists": true}]}', {0, 3}),
        "absent": ('{"tags": [{"exists": false}]}', {1, 2}),
        "case": ('{"state": [{"equals-ignore-case": "ON"}]}', {0, 3}),
        "prefix": ('{"tags": [{"prefix": "a"}]}', {0}),
        "record": ('{"disks": {"kind": ["ssd"], "free": [{"numeric": ["<", 5]}]}}', {1}),
        "no": ('{"disks": {"kind": [{"exists": false}]}}', {2, 3}),
    }
    rules = spark.createDataFrame([(id, text) for id, (text, _) in patterns.items()], "id string, filter string")
    found = {row.id: set(row.subscriptions) for row in match_events(events, rules, dialect="eventbridge").collect()}
    for id, (text, wanted) in patterns.items():
        assert {row for row, ids in found.items() if id in ids} == wanted, text


def test_what_needs_whole_events_is_refused_by_name(spark: SparkSession) -> None:
    events = spark.createDataFrame([("x",)], "a string")
    rules = spark.createDataFrame([("one", "event_text() LIKE '%x%'")], "id string, filter string")
    with pytest.raises(CoveyError, match=r"event_text\(\)"):
        match_events(events, rules).collect()
    index = covey.Index(schema=covey.Schema({"a": "string"}))
    index.add("one", "event_text() LIKE '%x%'")
    with pytest.raises(CoveyError, match=r"event_text\(\) is all of an event"):
        match_events(events, index).collect()


CESQL = [
    "age > 5", "age + 1 = 6", "age * 1000000 > 0", "age / 2 = 2", "age % 2 = 1", "-age < 0", "ABS(age) = 5",
    "NOT (age = 5)", "number = 7", "number > 5", "active = TRUE", "number = TRUE", "INT(name) = 12", "BOOL(name)",
    "name != 'ann'",
    "LENGTH(name) > 2", "UPPER(name) = 'ANN'", "TRIM(name) = 'x'", "LEFT(name, 2) = 'an'", "RIGHT(name, 1) = 'n'",
    "SUBSTRING(name, 2) = 'nn'", "SUBSTRING(name, -2, 1) = 'n'", "CONCAT(name, age) = 'ann5'",
    "CONCAT_WS('-', name, age) = 'ann-5'", "name = age", "age IN (5, 7)", "name IN ('ann', '12')",
    "age IN (number, 12)", "STRING(half) = '2'", "half = 2",
    "name LIKE 'a%'", "active AND age > 1", "name = 'ann' XOR active", "EXISTS name",
]  # fmt: skip


def test_cesql_matches_columns_as_it_matches_events(spark: SparkSession) -> None:
    rows = [
        (0, 5, 7, "ann", True, 2.0), (1, -5, 5, "12", False, 2.5), (2, 2147483647, 12, "TRUE", None, -1.0),
        (3, None, None, " x\t", True, None), (4, 12, 2**40, "+12", False, 3e9), (5, 0, 0, None, True, 0.0),
    ]  # fmt: skip
    names = ["k", "age", "number", "name", "active", "half"]
    events = spark.createDataFrame(rows, "k int, age int, number bigint, name string, active boolean, half double")
    rules = spark.createDataFrame([(rule, rule) for rule in CESQL], "id string, filter string")
    found = match_events(events, rules, dialect="cesql").collect()
    index = covey.Index(dialect="cesql")
    index.add_many([(rule, rule) for rule in CESQL])
    for row, matched in zip(rows, sorted(found, key=lambda one: one.k), strict=True):
        event = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        assert sorted(matched.subscriptions) == sorted(index.match(event)), event
