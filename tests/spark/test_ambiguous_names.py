"""Columns and fields whose names Spark can't tell apart, or that are called what covey calls its own."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

import covey
from covey.spark import match_events, profile


@pytest.fixture(scope="module")
def prices(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(3.0, 5.0, 1)], "a double, b double, n int").toDF("Price", "price", "n")


@pytest.fixture(scope="module")
def twins(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT struct(1 AS a, 2 AS a, 3 AS b) AS s, 7 AS n")


def of_library(attribute: str) -> covey.Index:
    """An index with a schema of its own, whose attributes aren't read as Spark reads names."""
    index = covey.Index(schema=covey.Schema({attribute: "double"}))
    index.add("one", f"{attribute} > 1")
    return index


@pytest.mark.parametrize("output", ["array", "pairs"])
def test_events_may_have_a_column_that_is_called_what_matches_are_called_on_their_way(
    spark: SparkSession, output: str
) -> None:
    events = spark.createDataFrame([(2, "a", "b")], "n int, `covey matches` string, `Covey Matches_` string")
    rules = spark.createDataFrame([("one", "n = 2")], "id string, filter string")
    (row,) = match_events(events, rules, output=output).collect()  # type: ignore[call-overload]
    assert tuple(row) == (2, "a", "b", ["one"] if output == "array" else "one")


def test_a_name_that_stands_for_two_columns_is_refused_in_one_line(prices: DataFrame) -> None:
    with pytest.raises(covey.CoveyError, match=r"'price' stands for 2 columns \(Price, price\).*rename all but one"):
        match_events(prices, of_library("price"))
    assert [row.subscriptions for row in match_events(prices, of_library("n")).collect()] == [[]]


def test_a_field_that_stands_twice_in_a_struct_is_refused_in_one_line(twins: DataFrame) -> None:
    with pytest.raises(covey.CoveyError, match=r"'a' stands for 2 fields of 's' \(a, a\)"):
        match_events(twins, of_library("s.a"))
    assert [row.subscriptions for row in match_events(twins, of_library("s.b")).collect()] == [["one"]]


def test_case_tells_columns_apart_where_the_session_says_so(spark: SparkSession, prices: DataFrame) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert [row.subscriptions for row in match_events(prices, of_library("price")).collect()] == [["one"]]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_profile_leaves_out_what_no_filter_can_name_and_refuses_to_be_asked_for_it(
    prices: DataFrame, twins: DataFrame
) -> None:
    for events, kept, asked in ((prices, {"n"}, "price"), (twins, {"n", "s.b"}, "s.a")):
        found = profile(events).events
        assert found is not None
        assert set(found.sketches) == kept
        with pytest.raises(covey.CoveyError, match="stands for 2"):
            profile(events, attributes=[asked])
