"""covey from SQL alone: `covey_matches`, `covey_match` and `covey_check` in a session that knows rules by name."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

import covey
from covey.filters import Filter
from covey.limits import DEFAULT_LIMITS
from covey.spark import Registered, build_index, match_events, match_files, register
from covey.spark.conditions import Settings, bind
from covey.spark.sql.functions import matcher
from tests.spark.random_tables import SCHEMA, filter_of, row_of

RULES = [(1, "company = 'IBM' AND price < 150"), (2, "volume >= 900"), (3, "price BETWEEN 5 AND 120")]
ARRAYS = "SELECT company, covey_matches(struct(*), 'rules') AS found FROM quotes ORDER BY company"
PAIRS = "SELECT * FROM covey_match(TABLE(quotes), 'rules') ORDER BY company, subscription"
FOUND = {"Acme": [3], "Dell": [2, 3], "IBM": [1, 2]}


@pytest.fixture(autouse=True)
def quotes(spark: SparkSession) -> DataFrame:
    rows = [("IBM", 142.5, 12_000), ("Dell", 118.0, 900), ("Acme", 7.0, None)]
    frame = spark.createDataFrame(rows, "company string, price double, volume int")
    frame.createOrReplaceTempView("quotes")
    return frame


@pytest.fixture
def rules(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(RULES, "id int, filter string")


def arrays(spark: SparkSession) -> dict[str, list[object]]:
    return {row.company: row.found for row in spark.sql(ARRAYS).collect()}


def why(registered: Registered | None, columns: dict[str, pa.Array] | pa.Array, name: str = "rules") -> str:
    """What covey says in a worker of a call that it refuses."""
    assert registered is not None
    events = pa.StructArray.from_arrays(columns.values(), columns) if isinstance(columns, dict) else columns
    with pytest.raises(covey.CoveyError) as caught:
        list(matcher(registered.named, StringType())(iter([(events, pa.array([name]))])))
    return str(caught.value)


def test_an_array_of_ids_is_a_function_of_the_row(spark: SparkSession, rules: DataFrame) -> None:
    register(spark, rules={"rules": rules})
    assert arrays(spark) == FOUND
    busy = f"SELECT company FROM ({ARRAYS}) WHERE size(found) > 1"
    assert {row.company for row in spark.sql(busy).collect()} == {"Dell", "IBM"}
    exploded = "SELECT company, explode(covey_matches(struct(company, volume, price), 'rules')) id FROM quotes"
    found = {(row.company, row.id) for row in spark.sql(exploded).collect()}
    assert found == {(company, id) for company, ids in FOUND.items() for id in ids}


def test_a_row_for_each_match_is_a_table(spark: SparkSession, rules: DataFrame, quotes: DataFrame) -> None:
    register(spark, rules={"rules": rules})
    found = spark.sql(PAIRS)
    assert found.schema == match_events(quotes, rules, output="pairs").schema
    assert [(row.company, row.subscription) for row in found.collect()] == [
        (company, id) for company, ids in sorted(FOUND.items()) for id in ids
    ]


def test_tables_views_paths_and_indexes_are_sources(spark: SparkSession, rules: DataFrame, tmp_path: Path) -> None:
    rules.createOrReplaceTempView("wishes")
    path = tmp_path / "rules.covey"
    build_index(rules, path)
    index = covey.Index()
    index.add_many([(str(id), text) for id, text in RULES])
    for source in ("wishes", spark.table("wishes"), path, str(path), index):
        registered = register(spark, rules={"rules": source})
        assert registered is not None
        assert {company: [int(str(id)) for id in ids] for company, ids in arrays(spark).items()} == FOUND
    with pytest.raises(covey.CoveyError, match="'nowhere' is neither a saved index nor a table"):
        register(spark, rules={"rules": "nowhere"})


def test_refresh_reads_what_has_changed(spark: SparkSession, rules: DataFrame) -> None:
    rules.createOrReplaceTempView("wishes")
    registered = register(spark, rules={"rules": "wishes"})
    assert registered is not None
    before = spark.sql(ARRAYS)
    spark.createDataFrame([(9, "price > 100")], "id int, filter string").createOrReplaceTempView("wishes")
    assert arrays(spark) == FOUND
    registered.refresh("rules")
    assert arrays(spark) == {"Acme": [], "Dell": [9], "IBM": [9]}
    assert {row.company: row.found for row in before.collect()} == FOUND
    with pytest.raises(covey.CoveyError, match="no rules 'wishes'"):
        registered.refresh("wishes")


def test_several_tables_of_rules_have_names(spark: SparkSession, rules: DataFrame) -> None:
    other = spark.createDataFrame([(7, "company LIKE 'I%'")], "id int, filter string")
    register(spark, rules={"rules": rules, "other": other})
    query = "SELECT company, covey_matches(struct(*), IF(company = 'IBM', 'other', 'rules')) AS found FROM quotes"
    assert {row.company: row.found for row in spark.sql(query).collect()} == {**FOUND, "IBM": [7]}
    texts = spark.createDataFrame([("a", "TRUE")], "id string, filter string")
    with pytest.raises(covey.CoveyError, match="int in 'rules', string in 'texts'"):
        register(spark, rules={"rules": rules, "texts": texts})


def test_rules_that_columns_decide_on_are_read_over_named_events(spark: SparkSession) -> None:
    days = "SELECT *, DATE '2020-01-01' AS Day FROM quotes"
    spark.sql(days).createOrReplaceTempView("days")
    late = spark.createDataFrame([("late", "day < '2024-01-01'")], "id string, filter string")
    with pytest.raises(covey.AddManyError, match="register it with events="):
        register(spark, rules={"rules": spark.createDataFrame([("x", "price * 2 > 5")], late.schema)})
    day = pa.array([date(2020, 1, 1)])
    assert "which is of type date here" in why(register(spark, rules={"rules": late}), {"day": day})
    registered = register(spark, rules={"rules": late}, events="days")
    query = "SELECT covey_matches(struct(*), 'rules') AS found FROM days"
    assert [row.found for row in spark.sql(query).collect()] == [["late"]] * 3
    assert "a column Day of type date, and here it is string" in why(registered, {"day": pa.array(["x"])})
    computed = spark.createDataFrame([("dear", "price * 2 > 200 AND day < '2024-01-01'")], late.schema)
    registered = register(spark, rules={"rules": computed}, events={"rules": spark.table("days")})
    found = spark.sql("SELECT * FROM covey_match(TABLE(days), 'rules')").collect()
    assert {(row.company, row.subscription) for row in found} == {("IBM", "dear"), ("Dell", "dear")}
    assert "use covey_match(TABLE(…), 'rules')" in why(registered, {"Day": day, "price": pa.array([7.0])})


def test_calls_that_cant_be_answered_say_why(spark: SparkSession, rules: DataFrame) -> None:
    registered = register(spark, rules={"rules": rules})
    columns = {"company": pa.array(["IBM"]), "price": pa.array([7.0]), "volume": pa.array([1], pa.int32())}
    assert "there are no rules 'rule'; registered are 'rules'" in why(registered, columns, "rule")
    assert "takes events as structs, not double" in why(registered, columns["price"])
    assert "the events have no column of that name; they have price" in why(registered, {"price": columns["price"]})
    two = {**columns, "Price": columns["price"]}
    assert "name price, and the events have 2 columns of that name" in why(registered, two)
    assert "price, which is of type string here" in why(registered, {**columns, "price": pa.array(["7"])})
    with pytest.raises(PySparkException, match="there are no rules 'rule'"):
        spark.sql("SELECT covey_matches(struct(*), 'rule') FROM quotes").collect()
    with pytest.raises(AnalysisException, match="which is of type string here"):
        spark.sql("SELECT * FROM covey_match(TABLE(SELECT company, volume, 'x' AS price FROM quotes), 'rules')")


def test_a_struct_that_is_null_has_no_array(spark: SparkSession, rules: DataFrame) -> None:
    register(spark, rules={"rules": rules})
    query = "SELECT company, covey_matches(IF(price > 100, struct(*), NULL), 'rules') AS found FROM quotes"
    assert {row.company: row.found for row in spark.sql(query).collect()} == {**FOUND, "Acme": None}


def test_a_stream_is_matched_with_the_rules_that_it_began_with(
    spark: SparkSession, rules: DataFrame, quotes: DataFrame, tmp_path: Path
) -> None:
    register(spark, rules={"rules": rules})
    quotes.write.json(str(tmp_path / "in"))
    spark.readStream.schema(quotes.schema).json(str(tmp_path / "in")).createOrReplaceTempView("incoming")
    found = spark.sql("SELECT company, covey_matches(struct(*), 'rules') AS found FROM incoming")
    places = {"path": str(tmp_path / "out"), "checkpointLocation": str(tmp_path / "checkpoint")}
    query = found.writeStream.format("parquet").options(**places).trigger(availableNow=True).start()
    query.awaitTermination()
    assert {row.company: row.found for row in spark.read.parquet(str(tmp_path / "out")).collect()} == FOUND


def test_what_is_wrong_with_a_rule_is_a_function_of_its_text(spark: SparkSession) -> None:
    register(spark, rules={})
    texts = ["price < 5", "price => 5", "reflect('a', 'b') = 1", "soundex(company) = 'A500'", None]
    found = spark.createDataFrame([(text,) for text in texts], "filter string")
    said = [row.wrong for row in found.selectExpr("covey_check(filter) AS wrong").collect()]
    assert said[0] is None
    assert said[1] == "=> is not an operator; did you mean >=? (at character 7 of the filter)"
    assert said[2] is not None
    assert "reflect" in said[2]
    assert said[3] is None
    assert said[4] == "the filter is NULL; write a condition"


def test_bad_rules_are_left_out_and_told_where_that_is_asked_for(spark: SparkSession, rules: DataFrame) -> None:
    mixed = rules.union(spark.createDataFrame([(8, "price =>"), (9, "price * 2 > 5")], rules.schema))
    with pytest.raises(covey.AddManyError):
        register(spark, rules={"rules": mixed})
    registered = register(spark, rules={"rules": mixed}, on_error="skip")
    assert registered is not None
    assert sorted(bad.id for bad in registered.errors["rules"]) == [8, 9]
    assert arrays(spark) == FOUND


ROUNDS = int(os.environ.get("COVEY_FUZZ_ROUNDS", "0")) // 100 or 1


def written(spark: SparkSession, rng: random.Random, at: Path) -> DataFrame:
    """Random rows in directories that stand for columns, in files whose columns differ."""
    every = [field for field in spark.createDataFrame([], SCHEMA).schema.names if field != "z"]
    for number, (part, columns) in enumerate(
        [("part=a/number=1", every), ("part=b/number=2", every[::-1]), ("part=b/number=3", ["k", "i", "s", "r"]),
         ("part=__HIVE_DEFAULT_PARTITION__/number=1", [name for name in every if name not in ("d", "s", "t")])]
    ):  # fmt: skip
        rows = [row_of(rng, 100 * number + key) for key in range(40)]
        frame = spark.createDataFrame(rows, SCHEMA).select(*columns)
        frame.coalesce(1).write.parquet(str(at / part))
    return spark.read.option("mergeSchema", "true").parquet(str(at))


def by_where(events: DataFrame, filters: dict[str, str]) -> set[tuple[int, str]]:
    texts = {id: text.replace("r.p.q", "r.`p.q`") for id, text in filters.items()}
    held = F.array_compact(F.array(*(F.expr(f"IF({text}, '{id}', NULL)") for id, text in texts.items())))
    return {(row.k, id) for row in events.select("k", held.alias("held")).collect() for id in row.held}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_every_form_answers_as_where_does(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    events = written(spark, rng, tmp_path / "events")
    spark.conf.set("spark.sql.parquet.mergeSchema", "true")
    try:
        conditions: dict[str, Filter] = {f"f{n}": filter_of(rng) for n in range(110)}
        filters = {id: str(one) for id, one in conditions.items() if "z" not in one.attributes()}
        filters |= {f"p{n}": f"part = '{'ab'[n % 2]}' AND NOT number > {n} OR i = {n}" for n in range(3)}
        filters |= {"none": "part IS NULL", "some": "number <> 1"}
        rules = spark.createDataFrame(list(filters.items()), "id string, filter string")
        expected = by_where(events, filters)
        assert 500 < len(expected) < 0.9 * len(filters) * 160
        found = {row.k: row.subscriptions for row in match_events(events, rules).select("k", "subscriptions").collect()}
        assert {(k, id) for k, ids in found.items() for id in ids} == expected
        files = match_files(spark, tmp_path / "events", rules, columns=["k"], output="pairs")
        assert {(row.k, row.subscription) for row in files.collect()} == expected
        bound = bind(events, list(filters.values()), Settings((), "unknown", "sql", DEFAULT_LIMITS))
        simple = {
            id: filters[id]
            for id, one in zip(filters, bound.filters, strict=True)
            if isinstance(one, Filter) and not one.attributes() & bound.derived
        }
        plain = spark.createDataFrame(list(simple.items()), rules.schema)
        assert len(simple) > 20
        # A table function is given Python's times, which don't have the first year in every zone.
        sane = " AND ".join(f"coalesce(year({name}), 2000) BETWEEN 1900 AND 2100" for name in "tna")
        known = events.where(sane).cache()
        keys = {row.k for row in known.select("k").collect()}
        expected = {pair for pair in expected if pair[0] in keys}
        known.createOrReplaceTempView("random_events")
        register(spark, rules={"rules": rules, "simple": plain}, events=events)
        rows = spark.sql("SELECT k, subscription FROM covey_match(TABLE(random_events), 'rules')").collect()
        assert {(row.k, row.subscription) for row in rows} == expected
        lists = spark.sql("SELECT k, covey_matches(struct(*), 'simple') AS found FROM random_events").collect()
        assert {(row.k, id) for row in lists for id in row.found} == {one for one in expected if one[1] in simple}
    finally:
        spark.conf.unset("spark.sql.parquet.mergeSchema")


def test_the_data_source_is_found_without_registering() -> None:
    code = """
from covey.spark import local_session
spark = local_session(cores=1, **{"spark.log.level": "ERROR"})
try:
    spark.read.format("covey").load()
except Exception as error:
    print(next(line for line in str(error).splitlines() if "CoveyError" in line))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert "events have no schema of their own" in done.stdout, done.stderr[-2000:]


@pytest.mark.long
def test_all_of_it_works_through_spark_connect(tmp_path: Path) -> None:
    code = f"""
from covey.spark import local_session, register
spark = local_session(cores=1, connect=True, **{{"spark.driver.memory": "1g", "spark.log.level": "ERROR"}})
rows = [("IBM", 142.5, 12_000), ("Dell", 118.0, 900), ("Acme", 7.0, None)]
spark.createDataFrame(rows, "company string, price double, volume int").createOrReplaceTempView("quotes")
rules = spark.createDataFrame({RULES!r}, "id int, filter string")
rules.createOrReplaceTempView("wishes")
registered = register(spark, rules={{"rules": "wishes"}})
assert {{row.company: row.found for row in spark.sql({ARRAYS!r}).collect()}} == {FOUND!r}
assert [row.subscription for row in spark.sql({PAIRS!r}).collect()] == [3, 2, 3, 1, 2]
assert spark.sql("SELECT covey_check('price <') AS wrong").first().wrong.startswith("the filter ends")
rules.where("id = 3").createOrReplaceTempView("wishes")
registered.refresh()
assert [row.subscription for row in spark.sql({PAIRS!r}).collect()] == [3, 3]
try:
    spark.sql("SELECT * FROM covey_match(TABLE(quotes), 'rule')").collect()
except Exception as error:
    assert "registered are 'rules'" in str(error), error
    print("all of it")
"""
    script = tmp_path / "connect.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert "all of it" in done.stdout, done.stderr[-3000:]
