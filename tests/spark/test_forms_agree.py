"""Every way of matching gives what `where` gives: `match_events`, `match_files` and the functions of SQL, over the same
random tables, in directories that stand for columns and in files whose columns differ."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from covey.spark import match_events, match_files, register
from tests.spark.test_agreement import by_spark

FILES, ROWS, RULES = 6, 12, 60
COMPANIES = ["IBM", "A%2FB", "7", "__HIVE_DEFAULT_PARTITION__"]
TEXTS = ["", "a", "ab", "A", "é", "7"]
TYPES = {"x": pa.int32(), "d": pa.float64(), "s": pa.string(), "o": pa.bool_(), "l": pa.int64()}
MAKERS: dict[str, Callable[[random.Random], Any]] = {
    "x": lambda rng: rng.randint(-2, 4), "d": lambda rng: rng.choice([0.0, -0.0, 0.5, 2.0, float("nan")]),
    "s": lambda rng: rng.choice(TEXTS), "o": lambda rng: rng.random() < 0.5, "l": lambda rng: rng.choice([0, 1, 2**40]),
}  # fmt: skip


def write(rng: random.Random, place: Path) -> None:
    """Files with some of the columns, in any order and case, below directories of two columns."""
    key = 0
    for number in range(FILES):
        names = list(TYPES) if number == 0 else rng.sample(list(TYPES), rng.randint(1, len(TYPES)))
        rng.shuffle(names)
        rows = range(key, key := key + ROWS)
        columns: dict[str, pa.Array] = {}
        for name in names:
            values = [None if rng.random() < 0.3 else MAKERS[name](rng) for _ in rows]
            # A file may hold whole numbers in fewer bits than the table has for them.
            kind = (
                pa.int32() if name == "l" and number and max(filter(None, values), default=0) < 2**31 else TYPES[name]
            )
            columns[rng.choice([name, name.upper()]) if number else name] = pa.array(values, kind)
        columns["k"] = pa.array(rows, pa.int32())
        columns["of_its_own" if number % 2 else "another"] = pa.array([number] * ROWS)
        company = COMPANIES[number % len(COMPANIES)] if number else "0"
        at = place / f"company={company}" / f"year={2019 if number == 0 else rng.choice([2019, 2020])}"
        at.mkdir(parents=True, exist_ok=True)
        # The first in the order of names is the one whose columns Spark takes for all.
        pq.write_table(pa.table(columns), at / f"{number}.parquet", row_group_size=5)


def rule(rng: random.Random, names: list[str], depth: int = 2) -> str:
    roll = rng.random()
    if depth and roll < 0.6:
        joined = rng.choice([" AND ", " OR "]).join(rule(rng, names, depth - 1) for _ in range(rng.randint(2, 3)))
        return f"NOT ({joined})" if rng.random() < 0.25 else f"({joined})"
    name = rng.choice(names)
    sign = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    if rng.random() < 0.15:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if name in ("s", "company"):
        word = rng.choice(TEXTS if name == "s" else ["IBM", "A/B", "7", "x"])
        return rng.choice([f"{name} {sign} '{word}'", f"{name} LIKE '{word[:1]}%'", f"{name} IN ('{word}', 'a')"])
    if name == "o":
        return f"o = {rng.choice(['TRUE', 'FALSE'])}"
    number = rng.choice([2019, 2020]) if name == "year" else rng.choice([-1, 0, 1, 2])
    return rng.choice(
        [f"{name} {sign} {number}", f"{name} BETWEEN {number} AND {number + 1}", f"{name} + 1 > {number}"]
    )


def lists(matched: DataFrame) -> dict[int, set[str]]:
    rows = matched.select("k", "subscriptions").collect()
    assert all(len(row.subscriptions) == len(set(row.subscriptions)) for row in rows)
    return {row.k: set(row.subscriptions) for row in rows}


def pairs(matched: DataFrame, keys: set[int]) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {key: set() for key in keys}
    rows = matched.select("k", "subscription").collect()
    for row in rows:
        found[row.k].add(row.subscription)
    assert len(rows) == sum(map(len, found.values()))
    return found


@pytest.mark.parametrize("seed", range(2))
def test_all_forms_hold_for_the_rows_for_which_spark_says_so(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    write(rng, tmp_path)
    table = spark.read.parquet(str(tmp_path))
    names = [name for name in table.columns if name in (*TYPES, "company", "year")]
    assert set(names) == {*TYPES, "company", "year"}
    texts = {f"r{number}": rule(rng, names) for number in range(RULES)}
    plain = {id: text for id, text in texts.items() if "+" not in text}
    assert 0 < len(plain) < len(texts)
    expected = by_spark(table, texts)
    assert set(expected) == set(range(FILES * ROWS))
    assert 0.05 < sum(map(len, expected.values())) / (RULES * len(expected)) < 0.95

    rules = spark.createDataFrame(list(texts.items()), "id string, filter string")
    plain_rules = spark.createDataFrame(list(plain.items()), "id string, filter string")
    of_plain = {key: ids & plain.keys() for key, ids in expected.items()}
    assert lists(match_events(table, rules)) == expected
    assert pairs(match_events(table, rules, output="pairs"), set(expected)) == expected
    assert lists(match_files(spark, tmp_path, rules, columns=["k"])) == expected  # by Spark, for the sums
    assert lists(match_files(spark, tmp_path, plain_rules, columns=["k"])) == of_plain  # by the workers
    assert pairs(match_files(spark, tmp_path, plain_rules, columns=["k"], output="pairs"), set(expected)) == of_plain
    some = lists(match_files(spark, tmp_path, plain_rules, columns=["k"], only_matches=True))
    assert some == {key: ids for key, ids in of_plain.items() if ids}

    table.createOrReplaceTempView("partitioned")
    register(spark, rules={"all": rules, "plain": plain_rules}, events=table)
    by_function = "SELECT k, covey_matches(struct(*), 'plain') AS subscriptions FROM partitioned"
    assert lists(spark.sql(by_function)) == of_plain
    assert pairs(spark.sql("SELECT * FROM covey_match(TABLE(partitioned), 'all')"), set(expected)) == expected
