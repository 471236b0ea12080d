"""An index keeps rules that only Spark reads: Spark matches them, and the library refuses to, by name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from covey import EventError, Index
from covey.spark import build_index, match_events, match_files

RULES = [
    ("sound", "soundex(Name.First) = 'A500' AND k.`odd.name` > 0"),
    ("plain", "price > 5"),
    ("whole", "elt(price, 'a', 'b') = 'b'"),
]


def test_a_saved_index_keeps_what_only_spark_computes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "rules.covey"
    bad = ("code", "reflect('java.lang.Math', 'abs', price) = '1'")
    rules = spark.createDataFrame([*RULES, bad], "id string, filter string")
    report = build_index(rules, path, on_error="collect")
    assert [one.id for one in report.errors] == ["code"]
    assert report.added == 3
    events = spark.sql(
        "SELECT * FROM VALUES (named_struct('first', 'Ann'), named_struct('odd.name', 1), 2), "
        "(named_struct('first', 'Bob'), named_struct('odd.name', 1), 9) AS t(name, k, price)"
    ).coalesce(1)
    found = match_events(events, str(path)).collect()
    assert [sorted(row.subscriptions) for row in found] == [["sound", "whole"], ["plain"]]
    events.write.parquet(str(tmp_path / "events"))
    read = match_files(spark, tmp_path / "events", str(path), columns=["price"])
    assert {row.price: sorted(row.subscriptions) for row in read.collect()} == {2: ["sound", "whole"], 9: ["plain"]}

    index = Index.open(path)
    refusal = r"only Spark computes soundex\(Name\.First\) = 'A500' AND k\.`odd\.name` > 0 and 1 more"
    with pytest.raises(EventError, match=refusal):
        index.match({"price": 9})
    for batch in ([{"price": 9}], pa.table({"price": [9]})):
        with pytest.raises(EventError, match=refusal):
            index.match_batch(batch)
    with pytest.raises(EventError, match=refusal):
        index.match_json_lines(b'{"price": 9}\n')
