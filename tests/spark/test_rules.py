"""Rules on Spark, case by case: types by the schema, names, terms that fail, functions that are allowed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

import covey
from covey.errors import FilterError
from covey.limits import Limits
from covey.spark import TermFailures, match_events, match_files
from covey.spark.conditions import analysis, binding

IDIOMS = [
    "day < '2000-01-02'", "day = DATE '2000-01-01'", "DAY BETWEEN '1999-01-01' AND '2000-06-01'",
    "day >= TIMESTAMP '2000-01-01 00:00:00'", "amount = '5'", "amount = 0.1", "amount > 0.1", "amount = 5",
    "amount * 2 >= 10", "code = 'ab'", "code IN ('ab', 'x')", "code LIKE 'ab%'", "code < 'b'", "word = 'RED'",
    "word LIKE 'r%'", "word IN ('Red', 'blue')", "place IS NULL", "place.x > 1", "Place.X = 2", "place IS NOT NULL",
    "tags IS NULL", "tags.colour = 'red'", "tags['size'] = 'L'", "numbers[2] = 'two'", "items IS NOT NULL",
    "array_contains(items.x, 2)", "items[0].x = 1", "exists(items, i -> i.x = 2 AND i.y = 'b')",
    "v:a.b::int = 5", "v:name::string = 'n'", "v IS NOT NULL", "variant_get(v, '$.a.b', 'int') > 4",
    "year(day) = 2000", "lower(code) = 'ab   '", "place.x + 1 = 3", "coalesce(amount, 0) = 0", "at < '2000-01-02'",
    "at = '2000-01-01 12:00:00'", "hour(at) = 12", "ok = 'true'", "CASE WHEN ok THEN amount ELSE 0 END > 1",
    "word ILIKE 'RE_'", "code LIKE ANY ('a%', 'x%')", "code RLIKE '^a(?=b)'", "amount NOT IN (5, 6)", "day = at",
]  # fmt: skip


@pytest.fixture(scope="module")
def everything(spark: SparkSession) -> DataFrame:
    spark.conf.set("spark.sql.session.timeZone", "Europe/Amsterdam")
    rows = spark.sql(
        """SELECT * FROM VALUES
        (1, DATE '2000-01-01', 5.000000000000000000BD, 'ab', 'Red', named_struct('x', 2), map('colour', 'red'),
         map(2, 'two'), array(named_struct('x', 1, 'y', 'a'), named_struct('x', 2, 'y', 'b')), '{"a": {"b": 5}}',
         TIMESTAMP '2000-01-01 12:00:00', true),
        (2, DATE '2000-06-01', 0.100000000000000005BD, 'x', 'blue', NULL, NULL, map(3, 'x'), array(), '{"name": "n"}',
         TIMESTAMP '2000-06-01 00:00:00', false),
        (3, NULL, 0.1BD, NULL, NULL, named_struct('x', NULL), map('size', 'L'), NULL, NULL, NULL, NULL, NULL)
        AS t(k, day, amount, code, word, place, tags, numbers, items, v, at, ok)"""
    )
    typed = rows.selectExpr(
        "k", "day", "CAST(amount AS DECIMAL(38,18)) amount", "rpad(code, 5, ' ') code", "word COLLATE UTF8_LCASE word",
        "place", "tags", "numbers", "items", "parse_json(v) v", "at", "ok",
    )  # fmt: skip
    return typed.withMetadata("code", {"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}).coalesce(1)


def matched(events: DataFrame, filters: list[str], **options: object) -> dict[str, list[int]]:
    rules = events.sparkSession.createDataFrame([(text, text) for text in filters], "id string, filter string")
    found: dict[str, list[int]] = {text: [] for text in filters}
    for row in match_events(events, rules, **options).collect():  # type: ignore[call-overload]
        for text in row.subscriptions:
            found[text].append(row.k)
    return found


def refused(events: DataFrame, filter: str, **options: object) -> str:
    with pytest.raises(covey.AddManyError) as caught:
        matched(events, [filter], **options)
    return str(caught.value.errors[0].error)


def test_every_idiom_means_what_where_means(spark: SparkSession, everything: DataFrame) -> None:
    try:
        expected = {
            text: [row.k for row in everything.where(text).collect()] for text in IDIOMS if text[:6] != "items["
        }
        found = matched(everything, IDIOMS)
        assert {text: found[text] for text in expected} == expected
        assert found["items[0].x = 1"] == [1]  # Spark raises, since the second row's list is empty
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_names_know_no_case_unless_the_session_says_so(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS k, 5 AS Price, 6 AS a, 7 AS A")
    assert matched(events, ["price = 5", "PRICE < 6"]) == {"price = 5": [1], "PRICE < 6": [1]}
    assert "the name 'a' stands for 2 columns (a, A)" in refused(events, "a = 6")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert matched(events, ["a = 6", "A = 7"]) == {"a = 6": [1], "A = 7": [1]}
        assert "no column 'price'; did you mean Price?" in refused(events, "price = 5")
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")


def test_a_term_that_fails_is_unknown_and_counted_for_its_rule_alone(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, 0, "5"), (2, 2, "x")], "k int, x int, s string").coalesce(1)
    filters = [
        ("half", "1 / x > 0.1"), ("guarded", "x <> 0 AND 1 / x > 0.1"), ("plain", "x = 0"), ("cast", "s = 5"),
        ("both", "1 / x > 0.1 OR s = 5"), ("otherwise", "coalesce(1 / x, 7) = 7"), ("if", "if(x = 0, 7, 1 / x) = 7"),
    ]  # fmt: skip
    rules = spark.createDataFrame(filters, "id string, filter string")
    failures = TermFailures()
    rows = match_events(events, rules, failures=failures).collect()
    assert [row.subscriptions for row in rows] == [["both", "cast", "if", "plain"], ["both", "guarded", "half"]]
    assert failures.counts == {"half": 1, "guarded": 1, "cast": 1, "both": 2, "otherwise": 1}
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        match_events(events, rules.where("id = 'half'"), on_term_error="raise").collect()


def test_rules_may_not_run_code_nor_depend_on_more_than_the_event(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS k, 'a' AS s, 5 AS price")
    assert "reflect() is not allowed in a rule: it runs code" in refused(
        events, "reflect('java.lang.Math', 'abs', -1) = '1'"
    )
    assert "java_method() is not allowed" in refused(events, "java_method('java.util.UUID', 'randomUUID') = s")
    assert "its result is another each time" in refused(events, "rand() < 0.5")
    assert "depends on when it is asked" in refused(events, "now() > TIMESTAMP '2000-01-01'")
    assert "current_user is not allowed in a rule: " in refused(events, "current_user = 'root'")
    assert "not on the event" in refused(events, "input_file_name() LIKE '%'")
    assert "queries and subqueries are not supported" in refused(events, "price IN (SELECT 5)")
    assert "queries and subqueries are not supported" in refused(events, "price = (SELECT max(id) FROM range(3))")
    assert "about many rows" in refused(events, "max(price) = 5")
    assert "no column '_metadata.file_path'" in refused(events, "_metadata.file_path LIKE '%'")
    assert "lowr() is not a function that rules may call; did you mean lower()?" in refused(events, "lowr(s) = 'a'")
    assert "the most is 10,000" in refused(events, "repeat(s, 1000000000) = 'a'")


def test_a_registered_function_is_allowed_where_the_caller_names_it(spark: SparkSession) -> None:
    spark.udf.register("twice", lambda x: None if x is None else 2 * x, "int")
    events = spark.sql("SELECT 1 AS k, 5 AS price UNION ALL SELECT 2, NULL").coalesce(1)
    assert matched(events, ["twice(price) = 10"], functions=["twice"]) == {"twice(price) = 10": [1]}
    assert "twice() is not a function that rules may call" in refused(events, "twice(price) = 10")
    with pytest.raises(covey.CoveyError, match="twice"):
        covey.parse("twice(price) = 10")


def test_ids_keep_their_type(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS k, 5 AS price")
    rules = spark.sql("SELECT * FROM VALUES (10, 'price = 5'), (9, 'price + 1 = 6') AS t(id, filter)")
    found = match_events(events, rules)
    assert found.schema["subscriptions"].dataType.simpleString() == "array<int>"
    assert found.first().subscriptions == [9, 10]
    assert [row.subscription for row in match_events(events, rules, output="pairs").collect()] == [9, 10]
    with pytest.raises(covey.CoveyError, match="ids of type binary"):
        match_events(events, rules.selectExpr("CAST(CAST(id AS STRING) AS BINARY) id", "filter"))


def test_files_whose_rules_have_terms_are_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    spark.sql("SELECT id AS k, CAST(id AS INT) AS price FROM range(6)").coalesce(1).write.parquet(path)
    rules = spark.createDataFrame([(1, "price * 2 = 6"), (2, "Price >= 4")], "id int, filter string")
    found = match_files(spark, path, rules, columns=["k"])
    assert found.columns == ["file", "row", "k", "subscriptions"]
    assert [(row.row, row.subscriptions) for row in found.where("size(subscriptions) > 0").collect()] == [
        (3, [1]), (4, [2]), (5, [2]),
    ]  # fmt: skip
    plain = match_files(spark, path, rules.where("id = 2"))
    assert {row.file for row in plain.collect()} == {row.file for row in found.collect()}


def test_what_is_wrong_is_said_in_one_line(spark: SparkSession) -> None:
    events = spark.sql("SELECT 1 AS k, 5 AS price, 'a' AS s")
    nested = "(" * 200 + "k = 1" + ")" * 200
    huge = "'" + "x" * 1_000_000 + "' = s"
    unread = ("CASE WHEN price > 1 THEN 2 = 2", "price + > 1", "s RLIKE '('", "price[0] = 1", r"s LIKE 'a\\b'")
    limited = refused(events, huge, limits=Limits(text_length=65_536))
    assert "the limit (text_length) is 65,536" in limited.split("\n")[0]
    for filter in (*unread, nested):
        error = refused(events, filter)
        assert len(error.split("\n")[0]) < 400, filter


def test_constants_with_more_digits_than_a_decimal_holds_are_rounded_as_spark_does(spark: SparkSession) -> None:
    events = spark.sql(
        "SELECT CAST(k AS INT) k, CAST(w AS DECIMAL(38,0)) w, CAST(l AS BIGINT) l FROM VALUES "
        "(1, '1', 5), (2, '2', 6), (3, '99999999999999999999999999999999999999', 7), (4, NULL, NULL) AS t(k, w, l)"
    )
    texts = ["w <> 1.125", "w > 0.5", "w = 1.4", "round(w, 1) < 2.5", "l = 5.0000000000000000000000000001", "l < 5.5"]
    expected = {text: [row.k for row in events.where(text).collect()] for text in texts}
    assert expected["w <> 1.125"] == [2, 3]
    assert expected["l = 5.0000000000000000000000000001"] == [1]
    assert matched(events, texts) == expected


def test_a_null_is_an_unknown_condition_and_a_constant_that_was_evaluated_does_not_fail(spark: SparkSession) -> None:
    events = spark.createDataFrame(
        [(0, 1.0, [1.0, float("nan")], True), (1, None, [None], None), (2, 3.0, None, False)],
        "k int, d double, ld array<double>, o boolean",
    ).coalesce(1)
    filters = [
        "NOT NULL", "NULL AND o", "NULL OR o", "NOT (NULL OR o)", "NULL IS TRUE", "NULL IS NOT TRUE", "NULL IS UNKNOWN",
        "exists(ld, x -> NULL)", "exists(ld, x -> x > 0 OR NULL)", "forall(ld, x -> NOT NULL)",
        "exists(ld, x -> NULL IS NOT TRUE)", "exists(ld, x -> x IN (double('NaN'), NULL))",
        "exists(ld, x -> x >= double('-Infinity'))", "exists(ld, x -> x BETWEEN 2 / 1 - 1 AND double('Infinity'))",
        "exists(ld, x -> x > CAST(NULL AS DOUBLE))", "exists(ld, x -> (1 = 1 OR 2 / 1 = 2) AND x > 0)",
        "coalesce(d, CAST('2' AS INT)) > 1", "1 = 1 AND 2 = 2", "NOT 1 IN (1, 2)", "1 BETWEEN 0 AND 2",
    ]  # fmt: skip
    rows = events.selectExpr("k", f"array({', '.join(f'({text}) IS TRUE' for text in filters)}) AS truths").collect()
    expected = {text: [row.k for row in rows if row.truths[place]] for place, text in enumerate(filters)}
    assert matched(events, filters) == expected
    assert matched(events, ["in_rectangle(1, d, 0, 0, 2, 2)"]) == {"in_rectangle(1, d, 0, 0, 2, 2)": [0]}
    assert matched(events, ["exists(ld, x -> x >= 1 / 0)"]) == {"exists(ld, x -> x >= 1 / 0)": []}


def test_spark_is_asked_about_few_of_a_long_lists_constants(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()

    def types_of(events: DataFrame, texts: Iterable[str]) -> dict[str, DataType | FilterError]:
        given = list(texts)
        asked.update(given)
        return analysis.types_of(events, given)

    monkeypatch.setattr(binding, "types_of", types_of)
    events = spark.createDataFrame([(7, "k7"), (2**40, "x"), (-3, None)], "n long, s string")
    numbers = ", ".join(str(n) for n in [*range(5_000), 2**40])
    texts = ", ".join(f"'k{n}'" for n in range(5_000))
    rules = spark.createDataFrame([("n", f"n IN ({numbers})"), ("s", f"s IN ({texts})")], "id string, filter string")
    found = match_events(events, rules).select("subscriptions").collect()
    assert [row.subscriptions for row in found] == [["n", "s"], ["n"], []]
    assert len(asked) < 20
