"""`match_files`: workers read Parquet themselves."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import covey
from covey.spark import match_files


@pytest.fixture
def index() -> covey.Index:
    index = covey.Index()
    index.add_many([(f"s{n:02}", f"x = {n} OR text LIKE 'a{n}%' OR place.y > {n * 10}") for n in range(20)])
    return index


@pytest.fixture
def table() -> pa.Table:
    rng = random.Random(5)
    rows = 1000
    return pa.table(
        {
            "x": [rng.choice([None, *range(20)]) for _ in range(rows)],
            "text": [rng.choice([None, "", "a1", "a12", "é"]) for _ in range(rows)],
            "place": [rng.choice([None, {"y": rng.randint(0, 50)}]) for _ in range(rows)],
            "unnamed": [bytes([n % 256]) for n in range(rows)],
            "amount": pa.array([Decimal(n) / 4 for n in range(rows)], pa.decimal128(12, 2)),
        }
    )


def test_rows_of_files_in_parts_are_matched_as_the_table_is(
    spark: SparkSession, index: covey.Index, table: pa.Table, tmp_path: Path
) -> None:
    pq.write_table(table.slice(0, 700), tmp_path / "a.parquet", row_group_size=90)
    (tmp_path / "more").mkdir()
    pq.write_table(table.slice(700), tmp_path / "more" / "b.parquet", row_group_size=1000)
    (tmp_path / "_SUCCESS").touch()
    expected = index.match_batch(table).to_pylist()
    for budget in (None, 2000):
        matched = match_files(spark, tmp_path, index, columns=["amount", "x"], rows_per_task=200, memory_budget=budget)
        assert matched.columns == ["file", "row", "amount", "x", "subscriptions"]
        assert matched.schema["amount"].dataType.simpleString() == "decimal(12,2)"
        rows = sorted(matched.collect(), key=lambda row: (row.file, row.row))
        assert [row.subscriptions for row in rows] == expected
        assert [row.row for row in rows] == [*range(700), *range(300)]
        assert [row.x for row in rows] == table["x"].to_pylist()
        assert [row.amount for row in rows] == table["amount"].to_pylist()
        assert {Path(row.file).name for row in rows} == {"a.parquet", "b.parquet"}


def test_rows_that_match_nothing_are_left_out_where_that_is_asked_for(
    spark: SparkSession, table: pa.Table, tmp_path: Path
) -> None:
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=300)
    for rules in ({"few": "x = 3"}, {"few": "x = 3", "computed": "x * 2 = 8"}):  # by workers, and by Spark
        frame = spark.createDataFrame(list(rules.items()), "id string, filter string")
        every = match_files(spark, tmp_path, frame, columns=["x"]).collect()
        some = match_files(spark, tmp_path, frame, columns=["x"], only_matches=True).collect()
        assert 0 < len(some) < len(every)
        assert sorted(some) == sorted(row for row in every if row.subscriptions)
        counts = match_files(spark, tmp_path, frame, output="counts").collect()
        assert [(row.file, row.row, row.matches) for row in counts] == [
            (row.file, row.row, len(row.subscriptions)) for row in every
        ]
        some_counts = match_files(spark, tmp_path, frame, output="counts", only_matches=True).collect()
        assert sorted(some_counts) == sorted(row for row in counts if row.matches)
    nothing = spark.createDataFrame([("none", "x = 77")], "id string, filter string")
    assert match_files(spark, tmp_path, nothing, only_matches=True).count() == 0


def test_pairs_of_files_are_one_row_a_match(
    spark: SparkSession, index: covey.Index, table: pa.Table, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    pairs = match_files(spark, [str(path)], index, output="pairs", columns=["text"])
    assert pairs.columns == ["file", "row", "text", "subscription"]
    expected = index.match_batch(table).pairs().to_pylist()
    assert [(row.row, row.subscription) for row in pairs.collect()] == [
        (one["event"], one["subscription"]) for one in expected
    ]
    assert match_files(spark, str(tmp_path / "*.parquet"), index).count() == table.num_rows


def test_files_whose_columns_no_filter_names_still_have_rows(
    spark: SparkSession, table: pa.Table, tmp_path: Path
) -> None:
    pq.write_table(table, tmp_path / "a.parquet")
    subscriptions = spark.createDataFrame([("all", "TRUE")], "id string, filter string")
    assert match_files(spark, tmp_path, subscriptions, output="pairs").count() == table.num_rows


def test_mistakes_about_files_are_named(
    spark: SparkSession, index: covey.Index, table: pa.Table, tmp_path: Path
) -> None:
    with pytest.raises(covey.CoveyError, match=r"no Parquet files in .*nothing"):
        match_files(spark, tmp_path / "nothing", index)
    (tmp_path / "broken.parquet").write_bytes(b"not Parquet")
    with pytest.raises(covey.CoveyError, match=r"broken\.parquet: can't be read as Parquet"):
        match_files(spark, tmp_path, index)
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(covey.CoveyError, match="column 'price' is not in"):
        match_files(spark, tmp_path / "a.parquet", index, columns=["price"])
    index.add("binary", "unnamed = 1")
    with pytest.raises(covey.CoveyError, match=r"id 'binary': .*BINARY.* and .*INT"):
        match_files(spark, tmp_path / "a.parquet", index)


def agrees_with_spark(spark: SparkSession, path: Path, rules: dict[str, str]) -> None:
    """Every rule matches as many rows of the files as `where` does of the table that Spark reads there."""
    subscriptions = spark.createDataFrame([*rules.items()], "id string, filter string")
    found = match_files(spark, path, subscriptions, output="pairs").groupBy("subscription").count().collect()
    counts = {row["subscription"]: row["count"] for row in found}
    table = spark.read.parquet(str(path))
    expected = {id: table.where(rule).count() for id, rule in rules.items()}
    assert {id: counts.get(id, 0) for id in rules} == expected
    assert any(expected.values())


def test_directories_that_stand_for_columns_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    for company, year in (("IBM", 2019), ("A%2FB é", 2020), ("__HIVE_DEFAULT_PARTITION__", 2020)):
        at = tmp_path / f"company={company}" / f"Year={year}"
        at.mkdir(parents=True)
        pq.write_table(pa.table({"price": [1.0, 2.0, None]}), at / "part.parquet")
    agrees_with_spark(
        spark,
        tmp_path,
        {
            "null": "company IS NULL", "ibm": "company = 'IBM'", "escaped": "company = 'A/B é'", "year": "year > 2019",
            "both": "Company LIKE 'I%' AND price < 2", "neither": "company <> 'IBM' AND price IS NULL",
        },
    )  # fmt: skip
    index = covey.Index()
    index.add_many([("ibm", "company = 'IBM' AND price = 2")])
    (row,) = match_files(spark, tmp_path, index, output="pairs", columns=["company", "Year", "price"]).collect()
    assert (row.company, row.Year, row.price, row.row) == ("IBM", 2019, 2.0, 1)


def test_files_with_other_columns_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"price": [1, 2], "name": ["a", "b"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"extra": [1], "NAME": ["b"], "price": [5]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"extra": ["x", "y", "z"]}), tmp_path / "c.parquet")
    rules = {"price": "price > 1", "null": "price IS NULL", "name": "name = 'b'", "both": "NAME = 'b' AND Price = 5"}
    agrees_with_spark(spark, tmp_path, rules)
    assert match_files(spark, tmp_path, covey.Index(), columns=["name"]).where("name IS NULL").count() == 3


def test_files_whose_types_differ_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.int64())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": pa.array([3, None], pa.int32())}), tmp_path / "b.parquet")
    agrees_with_spark(spark, tmp_path, {"two": "n >= 2", "null": "n IS NULL"})


@pytest.mark.parametrize("marker", ["_delta_log/00000000000000000000.json", ".hoodie/x", "metadata/v1.metadata.json"])
def test_tables_of_formats_with_a_log_are_refused(
    spark: SparkSession, index: covey.Index, table: pa.Table, tmp_path: Path, marker: str
) -> None:
    (tmp_path / marker).parent.mkdir()
    (tmp_path / marker).touch()
    (tmp_path / "day=1").mkdir()
    pq.write_table(table, tmp_path / "day=1" / "a.parquet")
    for path in (tmp_path, tmp_path / "day=1", tmp_path / "day=1" / "a.parquet"):
        with pytest.raises(covey.CoveyError, match=r"is a table of (Delta|Hudi|Iceberg), whose files also hold rows"):
            match_files(spark, path, index)


def test_times_in_nanoseconds_are_matched_though_spark_cannot_read_them(spark: SparkSession, tmp_path: Path) -> None:
    at = pa.array([1_600_000_000_000_000_000, None], pa.timestamp("ns"))
    pq.write_table(pa.table({"at": at, "n": [1, 2]}), tmp_path / "a.parquet")
    index = covey.Index()
    index.add_many([("n", "n = 2"), ("at", "at IS NULL")])
    assert match_files(spark, tmp_path, index).select("subscriptions").collect()[1][0] == ["n", "at"]
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "b.parquet")
    with pytest.raises(covey.CoveyError, match=r"b\.parquet has other columns than .*a\.parquet"):
        match_files(spark, tmp_path, index)
