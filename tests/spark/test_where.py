"""Conditions as people write them for Spark's WHERE, each with the answer of `events.where`."""

from __future__ import annotations

import random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from covey.limits import Limits
from covey.spark import TermFailures, match_events
from tests.spark.random_conditions import table

ROWS = 40
CONDITIONS = """
    ev.i > 0
    EV.r.x = 1 AND ev.s LIKE 'a%'
    (i, j) IN ((1, 2), (5, 5), (2, 7))
    (i, s) = (1, 'a') OR (j, o) < (5, true)
    struct(i AS a).a = 5
    s LIKE v ESCAPE '/'
    s RLIKE v AND i > 0
    regexp(s, '^A') OR like(s, 'a%')
    - q < 0
    abs(w) = 1
    q div 2 = 2
    round(i, -1) = 0
    floor(d, 1) = 2.5
    date_add(day, j) > day
    date_add(day, 20000) > day
    timestampdiff(DAY, timestamp'2000-01-01', t) > 0
    datediff(MONTH, day, t) > 0
    dateadd(DAY, 1, day) > day
    next_day(day, 'MON') > day
    unix_timestamp(t) > 0
    from_unixtime(j, 'yyyy') = '1970'
    make_date(2000, 1, j) = day
    timestamp_millis(l) < t
    decode(i, 1, 'one', 5, 'five', 'other') = 'five'
    decode(bin, 'UTF-8') = 'a'
    cast(bin as string) = 'a'
    bin = 'a'
    elt(j, s, v) IS NULL
    coalesce(elt(j, s, v), 'zz') = 'zz'
    overlay(s PLACING 'x' FROM 1) = 'xb'
    split_part(s, '_', 1) = 'a'
    to_json(r) LIKE '%x%'
    x:['c']::string = 'y' OR x:[0]::int = 1
    collate(s, 'UTF8_LCASE') = 'AB'
    c IN ('a', NULL)
    cast(s as varchar(5)) = 'ab'
    exists(li, y -> 10 / y > 2)
    transform(li, y -> y * 2)[0] = 10
    aggregate(li, 0L, (total, y) -> total + y) > 5
    array_sort(li)[0] = 1
    array_contains(sequence(1, 5), i)
    map('a', i)['a'] = 5
    array_except(li, array(5)) = array()
    NOT coalesce(s LIKE 'a%' AND i > 0, FALSE)
    nvl(j > 1, TRUE) AND ifnull(o, FALSE)
    coalesce(i > j, FALSE) = p
"""
REFUSED = {
    "current_date > day": "depends on when",
    "unix_timestamp() > 0": "depends on when",
    "repeat(s, j) = 'a'": "must be a constant",
    "array_repeat(i, j)[0] = 5": "must be a constant",
    "sequence(1, j)[0] = 1": "must be constants",
    "format_string('%99999999d', i) = ''": "widest",
    "aggregate(ls, '', (a, y) -> a || a) = ''": "grow without bound",
    "xpath_string(s, 'a') = 'b'": "other files",
    "reflect('java.lang.Math', 'abs', i) = '5'": "runs code",
}


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return table(spark, random.Random(5), ROWS).alias("ev")


def by_spark(events: DataFrame, condition: str) -> tuple[set[int], set[int]]:
    """The rows for which a condition holds, and those that Spark answers for; a few are asked where some raise."""
    asked = events.where(condition).select("k")
    try:
        return {row.k for row in asked.collect()}, set(range(ROWS))
    except PySparkException:
        holds: set[int] = set()
        answered: set[int] = set()
        for key in range(0, ROWS, 8):
            try:
                holds.update(row.k for row in asked.where(F.col("k") == key).collect())
                answered.add(key)
            except PySparkException:
                pass
        return holds, answered


def test_each_condition_holds_where_spark_says_so(spark: SparkSession, events: DataFrame) -> None:
    conditions = [line.strip() for line in CONDITIONS.strip().splitlines()]
    rules = spark.createDataFrame(list(enumerate(conditions)), "id int, filter string")
    found: dict[int, set[int]] = {number: set() for number in range(len(conditions))}
    for row in match_events(events, rules).select("k", "subscriptions").collect():
        for number in row.subscriptions:
            found[number].add(row.k)
    for number, condition in enumerate(conditions):
        holds, answered = by_spark(events, condition)
        assert found[number] & answered == holds, condition


def test_a_condition_that_is_told_from_unknown_is_no_term(spark: SparkSession, events: DataFrame) -> None:
    # As rules that are made of two-valued ones have it: each has its own, and terms are limited.
    conditions = [f"i = {n} OR NOT coalesce(s LIKE '%{n}%' AND j > {n}, FALSE)" for n in range(5)]
    rules = spark.createDataFrame(list(enumerate(conditions)), "id int, filter string")
    few = Limits(terms=1)
    found = match_events(events, rules, limits=few).select("k", "subscriptions").collect()
    for number, condition in enumerate(conditions):
        assert {row.k for row in found if number in row.subscriptions} == by_spark(events, condition)[0], condition


def test_what_can_harm_others_is_refused_with_its_reason(spark: SparkSession, events: DataFrame) -> None:
    rules = spark.createDataFrame(list(REFUSED.items()), "filter string, reason string")
    errors = match_events(events, rules, id="filter", on_error="collect")[1].collect()
    said = {row.id: row.error for row in errors}
    assert said.keys() == REFUSED.keys()
    for condition, reason in REFUSED.items():
        assert reason in said[condition], condition
        assert "\n" not in said[condition], condition


def test_a_test_that_is_computed_whole_counts_its_failures(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, "a"), (2, "["), (3, "b")], "k int, v string")
    rules = spark.createDataFrame([("r", "'a' RLIKE v"), ("q", "'b' RLIKE v OR k = 2")], "id string, filter string")
    failures = TermFailures()
    found = match_events(events, rules, failures=failures).collect()
    assert {row.k: row.subscriptions for row in found} == {1: ["r"], 2: ["q"], 3: ["q"]}
    assert failures.counts == {"r": 1, "q": 1}


def test_without_ansi_mode_what_fails_there_too_is_unknown(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, "a"), (2, "["), (3, "b")], "k int, v string")
    rules = spark.createDataFrame([("r", "'a' RLIKE v"), ("p", "k + 1 > 2")], "id string, filter string")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found = match_events(events, rules).collect()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    assert {row.k: row.subscriptions for row in found} == {1: ["r"], 2: ["p"], 3: ["p"]}
