"""`match_events(json=...)`: events in a column of JSON texts match as `covey.Index` matches them."""

from __future__ import annotations

import json
import random

import pytest
from pyspark.sql import DataFrame, SparkSession

import covey
from covey.spark import match_events, matching
from tests.random_worlds import event_of, filter_of

TEXTS = [
    '{"company": "IBM", "price": 142.5}',
    '{\n  "company": "Dell",\n  "price": {"amount": 7}\n}\n',
    None,
    '\ufeff{"price": 1e400, "company": "a\\u0062"}',
    "{}",
]
FILTERS = [(1, "company = 'IBM' AND price < 150"), (2, "price.amount = 7"), (3, "company IS NULL"), (4, "price > 9")]
EXPECTED = [[1, 4], [2], None, [4], [3]]


@pytest.fixture(scope="module")
def rules(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(FILTERS, "id int, filter string")


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(n, text) for n, text in enumerate(TEXTS)], "k int, value string").coalesce(1)


def found(matched: DataFrame) -> dict[int, list[int] | None]:
    return {row.k: row.subscriptions for row in matched.select("k", "subscriptions").collect()}


def test_texts_and_bytes_match_as_the_events_in_them(values: DataFrame, rules: DataFrame) -> None:
    wanted = dict(enumerate(EXPECTED))
    assert found(match_events(values, rules, json="value")) == wanted
    as_bytes = values.selectExpr("k", "cast(value AS binary) AS value", "current_timestamp() AS timestamp")
    assert found(match_events(as_bytes, rules, json="value", memory_budget=1)) == wanted
    assert found(values.transform(matching(rules, json="value"))) == wanted
    counts = match_events(values, rules, json="value", output="counts").collect()
    assert {row.k: row.matches for row in counts} == {k: None if ids is None else len(ids) for k, ids in wanted.items()}


def test_only_matches_keeps_the_rows_that_match(values: DataFrame, rules: DataFrame) -> None:
    few = rules.where("id < 3")
    assert found(match_events(values, few, json="value", only_matches=True)) == {0: [1], 1: [2]}
    pairs = match_events(values, few, json="value", output="pairs", only_matches=True)
    assert sorted((row.k, row.subscription) for row in pairs.collect()) == [(0, 1), (1, 2)]


def test_only_matches_is_for_columns_too(spark: SparkSession) -> None:
    index = covey.Index()
    index.add("low", "price < 5")
    prices = spark.createDataFrame([(1, 3.0), (2, 7.0), (3, None)], "k int, price double")
    assert found(match_events(prices, index, only_matches=True)) == {1: ["low"]}  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(("text", "problem"), [("{", "not JSON"), ("[1]", "a JSON array"), (" ", "blank")])
def test_a_text_that_is_no_event_is_shown_or_null(
    spark: SparkSession, rules: DataFrame, text: str, problem: str
) -> None:
    frame = spark.createDataFrame([(0, TEXTS[0]), (1, text), (2, "{}")], "k int, value string").coalesce(1)
    with pytest.raises(Exception, match=f"a JSON text is no event: {problem}"):
        match_events(frame, rules, json="value").collect()
    assert found(match_events(frame, rules, json="value", bad_json="null")) == {0: [1, 4], 1: None, 2: [3]}


def test_what_makes_no_sense_with_json_is_refused(values: DataFrame, rules: DataFrame) -> None:
    for options, said in (
        ({"json": "values"}, "no column 'values'"),
        ({"json": "k"}, "a column of type int"),
        ({"json": "value", "bad_json": "skip"}, "use raise or null"),
        ({"json": "value", "functions": ["twice"]}, "with json= it computes nothing"),
        ({"json": "value", "failures": covey.spark.TermFailures()}, "with json= it computes none"),
    ):
        with pytest.raises(covey.CoveyError, match=said):
            match_events(values, rules, **options)  # type: ignore[call-overload]


def test_random_events_match_as_the_library_says(spark: SparkSession) -> None:
    rng = random.Random(5)
    index = covey.Index()
    index.add_many((f"s{number}", filter_of(rng)) for number in range(60))
    texts = [json.dumps(event_of(rng), default=str) for _ in range(200)]
    frame = spark.createDataFrame(list(enumerate(texts)), "k int, value string").repartition(3)
    wanted = {number: index.match_json(text) for number, text in enumerate(texts)}
    assert found(match_events(frame, index, json="value")) == wanted  # type: ignore[comparison-overlap]
