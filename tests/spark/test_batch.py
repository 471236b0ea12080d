"""`match_events` and `matching`: forms of input and output, columns that cross, errors."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import covey
from covey.spark import build_index, match_events, matching
from covey.spark.worker_files import place
from covey.spark.workers import Steps
from tests.spark.random_tables import SCHEMA, filter_of, row_of

QUOTES = [
    ("IBM", 142.5, 12_000),
    ("Dell", 118.0, 900),
    ("Acme", 7.0, None),
    (None, None, None),
]
FILTERS = [
    ("ann", "company = 'IBM' AND price < 150"),
    ("bob", "volume >= 900"),
    ("cyd", "company LIKE 'D%' OR price IS NULL"),
    ("dee", "volume IS NULL AND PRICE > 100"),
]
EXPECTED = [["ann", "bob"], ["bob", "cyd"], [], ["cyd"]]


@pytest.fixture(scope="module")
def quotes(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(QUOTES, "company string, price double, volume int").coalesce(1)


@pytest.fixture(scope="module")
def subscriptions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(FILTERS, "id string, filter string")


def lists(matched: DataFrame) -> list[list[str]]:
    return [row.subscriptions for row in matched.collect()]


def by_key(matched: DataFrame) -> dict[int, list[str]]:
    return {row.k: row.subscriptions for row in matched.select("k", "subscriptions").collect()}


def refused(spark: SparkSession, columns: str, filter: str) -> str:
    index = covey.Index()
    index.add("one", filter)
    with pytest.raises(covey.CoveyError) as caught:
        match_events(spark.createDataFrame([], columns), index)
    return str(caught.value)


def test_events_keep_their_columns_and_get_the_subscriptions_that_they_meet(
    quotes: DataFrame, subscriptions: DataFrame
) -> None:
    matched = match_events(quotes, subscriptions)
    assert matched.columns == [*quotes.columns, "subscriptions"]
    assert matched.schema["subscriptions"].dataType.simpleString() == "array<string>"
    assert [tuple(row)[:3] for row in matched.collect()] == QUOTES
    assert lists(matched) == EXPECTED


def test_pairs_are_one_row_a_match(quotes: DataFrame, subscriptions: DataFrame) -> None:
    pairs = match_events(quotes, subscriptions, output="pairs")
    assert pairs.columns == [*quotes.columns, "subscription"]
    assert [(row.company, row.subscription) for row in pairs.collect()] == [
        (quote[0], id) for quote, ids in zip(QUOTES, EXPECTED, strict=True) for id in ids
    ]


def test_counts_are_the_numbers_of_matches(quotes: DataFrame, subscriptions: DataFrame) -> None:
    for budget in (None, 1_000):
        counts = match_events(quotes, subscriptions, output="counts", memory_budget=budget)
        assert counts.columns == [*quotes.columns, "matches"]
        assert [row.matches for row in counts.collect()] == [len(ids) for ids in EXPECTED]
    some = match_events(quotes, subscriptions, output="counts", only_matches=True)
    assert [row.matches for row in some.collect()] == [len(ids) for ids in EXPECTED if ids]
    with pytest.raises(covey.CoveyError, match="a column 'Matches' already"):
        match_events(quotes.withColumnRenamed("price", "Matches"), subscriptions, output="counts")


def test_an_index_a_file_and_a_table_give_the_same(quotes: DataFrame, subscriptions: DataFrame, tmp_path: Path) -> None:
    index = covey.Index()
    index.add_many(FILTERS)
    index.save(tmp_path / "index.covey")
    for given in (index, tmp_path / "index.covey", str(tmp_path / "index.covey"), subscriptions):
        assert lists(match_events(quotes, given)) == EXPECTED
        assert lists(quotes.transform(matching(given))) == EXPECTED


def test_a_job_keeps_the_index_that_it_was_given_when_the_file_is_replaced(quotes: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "index.covey"
    index = covey.Index()
    index.add("ann", "company = 'IBM'")
    index.save(path)
    before = match_events(quotes, path)
    index.replace("ann", "company = 'Dell'")
    index.save(path)
    assert lists(match_events(quotes, path)) == [[], ["ann"], [], []]
    assert lists(before) == [["ann"], [], [], []]


def test_partitions_and_shards_change_nothing(spark: SparkSession) -> None:
    partitions = 5
    rng = random.Random(7)
    filters = [(f"f{number}", str(filter_of(rng))) for number in range(100)]
    rows = [row_of(rng, key) for key in range(200)]
    table = spark.createDataFrame(filters, "id string, filter string")
    events = spark.createDataFrame(rows, SCHEMA).repartition(partitions, "k")
    whole = match_events(events, table)
    assert whole.select(F.spark_partition_id().alias("partition")).distinct().count() == partitions
    index = covey.Index()
    index.add_many(sorted(filters))
    expected = by_key(match_events(events.coalesce(1), index))
    assert sum(map(len, expected.values())) > 1000
    assert by_key(whole) == expected
    assert len(place(events, index, memory_budget=20_000).files) > 2
    assert by_key(match_events(events, table, memory_budget=20_000)) == expected


def test_semantics_and_schema_hold_on_spark(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, None), (None, 1)], "a int, b int").coalesce(1)
    table = spark.createDataFrame([("n", "NOT a > 5")], "id string, filter string")
    assert lists(match_events(events, table)) == [["n"], []]
    assert lists(match_events(events, table, semantics="simple")) == [["n"], ["n"]]
    schema = covey.Schema({"a": covey.Attribute("int", default=9), "b": covey.Attribute("int")})
    assert lists(match_events(events, table, semantics="default", schema=schema)) == [["n"], []]
    mandatory = covey.Schema({"a": covey.Attribute("int"), "b": covey.Attribute("int", mandatory=True)})
    both = spark.createDataFrame([(1, 2)], "a int, b int")
    assert lists(match_events(both, table, schema=mandatory)) == [["n"]]


def test_filters_may_be_json(spark: SparkSession, quotes: DataFrame) -> None:
    rows = [("ann", '{"attribute": "price", "<": 100}'), ("bob", "{"), ("cyd", '{"attribute": "price", "in": 5}')]
    table = spark.createDataFrame(rows, "id string, filter string")
    matched, errors = match_events(quotes, table, dialect="json", on_error="collect")
    assert lists(matched) == [[], [], ["ann"], []]
    assert [(row.row, row.id) for row in errors.collect()] == [(1, "bob"), (2, "cyd")]
    with pytest.raises(covey.AddManyError, match="row 2, id 'cyd'"):
        match_events(quotes, table, dialect="json")


def test_bad_filters_are_all_named_or_collected(spark: SparkSession, quotes: DataFrame) -> None:
    rows = [("bob", "price => 5"), ("ann", "price < 10"), ("cyd", "price <"), ("eli", None), ("ann", "TRUE")]
    table = spark.createDataFrame([*rows, (None, "TRUE")], "id string, filter string")
    with pytest.raises(covey.AddManyError) as caught:
        match_events(quotes, table)
    assert [bad.id for bad in caught.value.errors] == ["ann", "bob", "cyd", "eli", None]
    assert "id 'bob': => is not an operator; did you mean >=?\n  price => 5\n        ^" in str(caught.value)
    matched, errors = match_events(quotes, table, on_error="collect")
    assert errors.columns == ["row", "id", "error"]
    assert [row.id for row in errors.collect()] == ["ann", "bob", "cyd", "eli", None]
    # Of two rows with one id the first counts, as everywhere.
    assert lists(matched) == [[], [], ["ann"], []]


def test_subscriptions_may_be_none_and_filters_may_name_no_column(spark: SparkSession, quotes: DataFrame) -> None:
    empty = spark.createDataFrame([], "id string, filter string")
    assert lists(match_events(quotes, empty)) == [[], [], [], []]
    constant = spark.createDataFrame([(10, "TRUE"), (9, "1 = 1"), (8, "'a' = 'b'")], "id int, filter string")
    assert lists(match_events(quotes, constant)) == [[9, 10]] * 4


def test_a_column_that_is_not_there_is_an_error_of_the_rule_that_names_it(
    spark: SparkSession, quotes: DataFrame
) -> None:
    table = spark.createDataFrame(
        [("a", "nowhere = 1"), ("b", "Price < 10"), ("c", "prize < 10")], "id string, filter string"
    )
    matched, errors = match_events(quotes, table, on_error="collect")
    assert lists(matched) == [[], [], ["b"], []]
    said = {row.id: row.error for row in errors.collect()}
    assert said["a"].startswith("the events have no column 'nowhere'; they have company, price, volume")
    assert said["c"] == "the events have no column 'prize'; did you mean price?"


def test_names_of_columns_and_ids_are_a_choice(spark: SparkSession, quotes: DataFrame) -> None:
    table = spark.createDataFrame([("price < 10", "ann")], "`the rule` string, who string")
    assert lists(match_events(quotes, table, id="who", filter="the rule"))[2] == ["ann"]
    with pytest.raises(covey.CoveyError, match="one column 'id'; theirs are the rule, who"):
        match_events(quotes, table)


def test_dots_and_spaces_in_names_of_columns(spark: SparkSession) -> None:
    events = spark.sql(
        "SELECT 1 AS `a.b`, named_struct('b', 2, 'c d', 3) AS a, map('x', 4, 'y.z', 5) AS m, 6 AS `back``quote`"
        " UNION ALL SELECT NULL, named_struct('b', 7, 'c d', 8), map('q', 9), NULL"
    ).coalesce(1)
    filters = ["a.b = 1", "a.b = 7", "a.`c d` = 3", "m.x = 4", "m.y.z = 5", "`back``quote` = 6", "m.q = 9", "a.b = 2"]
    filters.append("`a.b` = 1")
    table = spark.createDataFrame([(text, text) for text in filters], "id string, filter string")
    found = lists(match_events(events, table))
    assert found[0] == sorted(["`a.b` = 1", "a.b = 2", "a.`c d` = 3", "m.x = 4", "m.y.z = 5", "`back``quote` = 6"])
    assert found[1] == sorted(["a.b = 7", "m.q = 9"])


def test_what_spark_cannot_compare_is_an_error_of_the_rule_with_the_reason(spark: SparkSession) -> None:
    assert '("INTERVAL DAY TO SECOND" and "INT")' in refused(spark, "x interval day to second", "x = 1")
    assert '("VARIANT" and "INT")' in refused(spark, "x variant", "x = 1")
    assert '("BINARY" and "INT")' in refused(spark, "s struct<x: binary>", "s.x = 1")
    assert "'x' can't be read as DATE" in refused(spark, "day date", "day < 'x'")
    assert '("DATE" and "INT")' in refused(spark, "day date", "day < 5")
    index = covey.Index()
    index.add("one", "y = 1")
    matched = match_events(spark.sql("SELECT 1 AS y, INTERVAL '1' DAY AS x, CAST('a' AS BINARY) AS z"), index)
    assert matched.select("subscriptions").collect() == [Row(subscriptions=["one"])]


def test_a_column_that_is_there_already_is_an_error(quotes: DataFrame, subscriptions: DataFrame) -> None:
    with pytest.raises(covey.CoveyError, match="a column 'Subscriptions' already"):
        match_events(quotes.withColumnRenamed("price", "Subscriptions"), subscriptions)
    with pytest.raises(covey.CoveyError, match="a column 'subscription' already"):
        match_events(quotes.withColumn("subscription", F.lit(1)), subscriptions, output="pairs")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "sets"}, "output 'sets' is not known"),
        ({"on_error": "ignore"}, "on_error 'ignore' is not known"),
        ({"dialect": "xpath"}, "dialect 'xpath' is not known"),
        ({"memory_budget": 0}, "memory_budget is 0 bytes"),
    ],
)
def test_options_that_are_not_there_are_errors(
    quotes: DataFrame, subscriptions: DataFrame, options: dict[str, object], message: str
) -> None:
    with pytest.raises(covey.CoveyError, match=message):
        match_events(quotes, subscriptions, **options)  # type: ignore[call-overload]


def test_an_index_brings_its_own_semantics(quotes: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(covey.CoveyError, match="the index has semantics 'simple', not 'sql'"):
        match_events(quotes, covey.Index(semantics="simple"), semantics="sql")
    with pytest.raises(covey.CoveyError, match=r"nowhere\.covey: No such file"):
        match_events(quotes, tmp_path / "nowhere.covey")
    with pytest.raises(covey.CoveyError, match="not list"):
        match_events(quotes, [])  # type: ignore[call-overload]


def test_a_filter_on_the_result_does_not_match_twice(quotes: DataFrame, subscriptions: DataFrame) -> None:
    matched = match_events(quotes, subscriptions).where(F.size("subscriptions") > 0)
    plan = matched._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1
    assert len(matched.collect()) == 3


def test_only_what_filters_name_crosses_into_python(quotes: DataFrame, spark: SparkSession) -> None:
    table = spark.createDataFrame([("a", "r.x = 1 AND b = 2")], "id string, filter string")
    events = spark.createDataFrame([row_of(random.Random(1), 1)], SCHEMA)
    plan = match_events(events, table)._jdf.queryExecution().executedPlan().toString()
    called = plan[plan.index("ArrowEvalPython [") :]
    assert called[called.index("(") : called.index(")")].count(",") == 1


def test_a_shipped_file_is_found_by_workers(
    spark: SparkSession, quotes: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covey.spark.worker_files.is_local", lambda _: False)
    index = covey.Index()
    index.add_many(FILTERS)
    placed = place(quotes, index)
    assert placed.files[0].shipped
    assert lists(match_events(quotes, index)) == EXPECTED


def test_a_worker_that_is_killed_in_the_middle_is_replaced_and_nothing_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    marker = str(tmp_path / "killed")

    def killed_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == 1 and not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    index = covey.Index()
    index.add_many([(f"s{n}", f"id BETWEEN {n * 10_000} AND {n * 10_000 + 9_999}") for n in range(10)])
    events = spark.range(0, 100_000, 1, 2).mapInArrow(killed_once, "id bigint")
    counted = match_events(events, index, output="pairs").groupBy("subscription").count().collect()
    assert os.path.exists(marker)
    assert {row.subscription: row["count"] for row in counted} == {f"s{n}": 10_000 for n in range(10)}


def test_steps_regroup_batches_and_lose_no_row() -> None:
    rng = random.Random(3)
    sizes = [rng.choice([0, 1, 5, 100, 5000]) for _ in range(200)]
    values = iter(range(sum(sizes)))
    batches = [pa.RecordBatch.from_pydict({"x": pa.array([next(values) for _ in range(n)], pa.int64())}) for n in sizes]
    steps = Steps(batches, most=10_000, rows=4_096)
    seen: list[int] = []
    for table in steps:
        seen += table.column("x").to_pylist()
        assert table.num_rows <= 10_000
        steps.matched(table.num_rows, rng.choice([0, 10, 10_000_000]))
    assert seen == list(range(sum(sizes)))


def test_a_build_is_the_same_file_whatever_the_partitioning(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(11)
    rows = [(f"f{number}", str(filter_of(rng))) for number in range(300)]
    for partitions in (1, 5):
        rng.shuffle(rows)
        table = spark.createDataFrame(rows, "id string, filter string").repartition(partitions)
        assert build_index(table, tmp_path / f"{partitions}.covey").added == 300
    assert (tmp_path / "1.covey").read_bytes() == (tmp_path / "5.covey").read_bytes()
    assert list(covey.Index.open(tmp_path / "1.covey").ids()) == sorted(id for id, _ in rows)


def test_a_build_with_bad_rows_writes_no_file_unless_they_are_collected(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame([("a", "x ="), ("b", "x = 1")], "id string, filter string")
    with pytest.raises(covey.AddManyError, match="1 subscriptions can't be added"):
        build_index(table, tmp_path / "index.covey")
    assert not (tmp_path / "index.covey").exists()
    report = build_index(table, tmp_path / "index.covey", on_error="collect")
    assert (report.added, [bad.id for bad in report.errors]) == (1, ["a"])


def test_rules_may_be_a_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rules.csv").write_text("rule,where\n1,price > 5\n2,price >\n3,prize > 5\n4,abs(price) > 5\n")
    events = spark.createDataFrame([(1.0,), (9.0,)], "price double")
    found, wrong = match_events(events, tmp_path / "rules.csv", id="rule", filter="where", on_error="skip")
    assert [row.subscriptions for row in found.collect()] == [[], ["1", "4"]]
    assert [row.id for row in wrong.collect()] == ["2", "3"]
    typed = match_events(events, str(tmp_path / "rules.csv"), id="rule", filter="where", on_error="skip",
                         schema={"price": "double"})[0]  # fmt: skip
    assert typed.collect()[1].subscriptions == ["1", "4"]
