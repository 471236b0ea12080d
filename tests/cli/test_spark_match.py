"""`covey spark match`: the answers of `covey match`, from files of every kind and from tables."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from covey.cli.stocks import market, quotes, wishes
from tests.cli.conftest import Outcome, lines
from tests.spark.conftest import spark  # noqa: F401

pytestmark = pytest.mark.usefixtures("spark")

Run = Callable[..., Outcome]
KINDS = ("jsonl", "csv", "parquet")
COUNT = 300


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=90)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        lines(path, [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Quotes and wishes in every format."""
    folder, stocks = tmp_path_factory.mktemp("files"), market(3, size=12)
    day = quotes(stocks, COUNT, 3)
    day = day.set_column(0, "symbol", day["symbol"].cast(pa.string())).append_column("n", pa.array(range(COUNT)))
    ids, filters = zip(*wishes(stocks, 400, 3), strict=True)
    for kind in KINDS:
        write(day, folder / f"quotes.{kind}")
        write(pa.table({"id": ids, "filter": filters}), folder / f"wishes.{kind}")
        (folder / kind).mkdir()
        for number in range(3):
            write(day.slice(number * COUNT // 3, COUNT // 3), folder / kind / f"{number}.{kind}")
    return folder


def expected(covey: Run, files: Path, kind: str = "parquet") -> dict[int, list[str]]:
    """What `covey match` says."""
    done = covey("match", files / f"wishes.{kind}", files / f"quotes.{kind}")
    assert done.code == 0
    return {row["event"]: sorted(row["subscriptions"]) for row in done.rows}


def found(output: Path, key: str = "n") -> dict[int, list[str]]:
    table = pq.read_table(output)
    assert table.column_names == [key, "subscriptions"]
    return {row[key]: sorted(row["subscriptions"]) for row in table.to_pylist()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_those_of_match_on_the_same_files(covey: Run, files: Path, tmp_path: Path, kind: str) -> None:
    done = covey(
        "spark", "match", files / f"wishes.{kind}", files / f"quotes.{kind}", "-o", tmp_path / "out", "--columns", "n"
    )
    assert (done.code, done.err) == (0, "")
    known = expected(covey, files, kind)
    assert found(tmp_path / "out") == known
    assert 0 < len(known) < COUNT
    told = {line[:14].strip(): line[14:].split() for line in done.out.splitlines()}
    assert told["subscriptions"][0] == "400"
    assert told["events"][0] == f"{COUNT}"
    assert told["events matched"] == [f"{len(known)}"]
    assert told["matches"][0] == f"{sum(map(len, known.values())):,}"
    assert told["cores"][0] == "2"
    assert told["output"] == [str(tmp_path / "out")]


@pytest.mark.parametrize("name", ["jsonl", "csv/*.csv"])
def test_a_directory_and_a_pattern_are_all_their_files(covey: Run, files: Path, tmp_path: Path, name: str) -> None:
    output = tmp_path / "out"
    done = covey("spark", "match", files / "wishes.jsonl", files / name, "-o", output, "--columns", "n", "--json")
    assert done.rows[0]["events"] == COUNT
    assert found(output) == expected(covey, files)


def test_tables_are_read_and_written_by_name(
    covey: Run,
    files: Path,
    spark: SparkSession,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark.read.parquet(str(files / "quotes.parquet")).createOrReplaceTempView("quotes_of_today")
    spark.read.parquet(str(files / "wishes.parquet")).createOrReplaceTempView("wishes_of_today")
    written: dict[str, dict[int, list[str]]] = {}

    def save(self: Any, name: str) -> None:  # a table of its own would need a warehouse on disk
        written[name] = {row.n: sorted(row.subscriptions) for row in self._df.collect()}

    monkeypatch.setattr("pyspark.sql.readwriter.DataFrameWriter.saveAsTable", save)
    done = covey(
        "spark", "match", "table:wishes_of_today", "table:quotes_of_today", "-o", "table:today.found", "--columns", "n"
    )
    assert (done.code, done.err) == (0, "")
    assert written == {"today.found": expected(covey, files)}


def test_pairs_are_one_row_a_match_with_the_events_columns(covey: Run, files: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = covey("spark", "match", files / "wishes.csv", files / "quotes.jsonl", "-o", output, "--format", "pairs")
    assert done.code == 0
    table = pq.read_table(output)
    assert {"n", "symbol", "price", "subscription"} < set(table.column_names)
    known = expected(covey, files)
    pairs = {(row["n"], row["subscription"]) for row in table.to_pylist()}
    assert pairs == {(number, name) for number, ids in known.items() for name in ids}
    assert table.num_rows == len(pairs)


def test_all_writes_events_without_matches_too(covey: Run, files: Path, tmp_path: Path) -> None:
    command = ("spark", "match", files / "wishes.csv", files / "quotes.parquet", "-o", tmp_path / "out", "--all")
    assert covey(*command, "--columns", "n").code == 0
    assert found(tmp_path / "out") == {number: [] for number in range(COUNT)} | expected(covey, files)
    assert "--all needs --format array" in covey(*command, "--format", "pairs").err


def test_bulk_tells_file_and_row(covey: Run, files: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = covey("spark", "match", files / "wishes.csv", files / "quotes.parquet", "-o", output, "--bulk")
    assert done.code == 0
    table = pq.read_table(output)
    assert table.column_names == ["file", "row", "subscriptions"]
    assert set(table["file"].to_pylist()) == {str(files / "quotes.parquet")}
    assert found_rows(table) == expected(covey, files)
    output = tmp_path / "pairs"
    done = covey(
        "spark", "match", files / "wishes.csv", files / "parquet", "-o", output, "--bulk", "--columns", "n,symbol",
        "--format", "pairs",
    )  # fmt: skip
    table = pq.read_table(output)
    assert table.column_names == ["file", "row", "n", "symbol", "subscription"]
    known = expected(covey, files)
    assert {(row["n"], row["subscription"]) for row in table.to_pylist()} == {
        (n, one) for n in known for one in known[n]
    }
    refused = covey("spark", "match", files / "wishes.csv", files / "csv", "-o", tmp_path / "no", "--bulk")
    assert "--bulk reads Parquet files only" in refused.err


def found_rows(table: pa.Table) -> dict[int, list[str]]:
    return {row["row"]: sorted(row["subscriptions"]) for row in table.to_pylist()}


def test_an_index_is_kept_and_taken_instead_of_subscriptions(covey: Run, files: Path, tmp_path: Path) -> None:
    index, events = tmp_path / "kept.covey", files / "quotes.parquet"
    first = covey(
        "spark", "match", files / "wishes.csv", events, "-o", tmp_path / "a", "--columns", "n", "--index", index
    )
    assert first.code == 0
    second = covey("spark", "match", index, events, "-o", tmp_path / "b", "--columns", "n", "--memory-budget", 20_000)
    assert second.code == 0
    assert "saved before" in second.out
    assert found(tmp_path / "a") == found(tmp_path / "b") == expected(covey, files)
    assert covey("match", index, events).rows != []
    for wrong in (["--semantics", "simple"], ["--index", index]):
        assert covey("spark", "match", index, events, "-o", tmp_path / "c", *wrong).code == 1


def test_names_semantics_and_dialect_are_those_of_match(covey: Run, tmp_path: Path) -> None:
    rules = lines(tmp_path / "rules.jsonl", [{"rule": 7, "where": {"not": {"attribute": "price", ">": 5}}}])
    events = lines(tmp_path / "events.jsonl", [{"n": 0, "price": 4}, {"n": 1}, {"n": 2, "price": 6}])
    options = ["--id", "rule", "--filter", "where", "--dialect", "json", "--semantics", "simple"]
    assert covey("spark", "match", rules, events, "-o", tmp_path / "out", "--columns", "n", *options).code == 0
    assert found(tmp_path / "out") == {0: [7], 1: [7]}
    assert [row["event"] for row in covey("match", rules, events, *options).rows] == [0, 1]


def test_events_may_be_told_what_they_hold(covey: Run, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text('code,note\n007,"two\nlines, ""quoted"""\n7,\n')
    rules = lines(tmp_path / "s.jsonl", [{"id": "a", "filter": "code = '007'"}, {"id": "b", "filter": "note IS NULL"}])
    command = ("spark", "match", rules, tmp_path / "e.csv", "-o", tmp_path / "out", "--events-schema")
    assert covey(*command, "code string, note string").code == 0
    assert {row["code"]: row["subscriptions"] for row in pq.read_table(tmp_path / "out").to_pylist()} == {
        "007": ["a"],
        "7": ["b"],
    }
    assert pq.read_table(tmp_path / "out")["note"].to_pylist().count('two\nlines, "quoted"') == 1


FLAWED: list[Any] = [
    {"id": "late", "filter": "n => 5"}, {"id": "good", "filter": "n < 2"}, {"filter": "TRUE"},
    {"id": "bare"}, {"id": "good", "filter": "n = 9"}, "not JSON",
]  # fmt: skip


def test_every_bad_subscription_is_named_and_nothing_is_written(covey: Run, files: Path, tmp_path: Path) -> None:
    path = lines(tmp_path / "flawed.jsonl", FLAWED)
    done = covey("spark", "match", path, files / "quotes.csv", "-o", tmp_path / "out", "--index", tmp_path / "i.covey")
    assert (done.code, done.out) == (1, "")
    said = done.err.splitlines()
    assert [line.split(": ")[1] for line in said[:-1]] == [f"{path} line {line}" for line in (1, 3, 4, 5, 6)]
    assert "subscription 'late': => is not an operator; did you mean >=? (character 3: n => 5)" in done.err
    assert said[-1] == "covey: 5 subscriptions can't be used, so nothing was done; --on-error skip goes on without"
    assert len(said) == 6
    assert [one.name for one in tmp_path.iterdir()] == ["flawed.jsonl"]


def test_collect_goes_on_without_bad_subscriptions(covey: Run, files: Path, tmp_path: Path) -> None:
    path = lines(tmp_path / "flawed.jsonl", FLAWED)
    command = ("spark", "match", path, files / "quotes.csv", "-o", tmp_path / "out", "--columns", "n")
    done = covey(*command, "--on-error", "collect")
    assert done.code == 0
    assert done.err.splitlines()[-1] == "covey: left out 5 subscriptions"
    assert found(tmp_path / "out") == {0: ["good"], 1: ["good"]}


@pytest.mark.parametrize(
    ("name", "content", "good"),
    [("e.jsonl", '{"n": 1}\nnope\n{"n": 2}\n', [1, 2]), ("e.csv", "n,m\n1,2\n3,4,5\n6,7\n", [1, 6])],
)
def test_rows_of_events_that_cannot_be_read_stop_it_or_are_dropped(
    covey: Run, tmp_path: Path, name: str, content: str, good: list[int]
) -> None:
    (tmp_path / name).write_text(content)
    rules = lines(tmp_path / "s.jsonl", [{"id": "a", "filter": "n > 0"}])
    command = ("spark", "match", rules, tmp_path / name, "-o", tmp_path / "out", "--columns", "n")
    done = covey(*command)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert not (tmp_path / "out").exists()
    assert covey(*command, "--on-error", "collect").code == 0
    assert found(tmp_path / "out") == {one: ["a"] for one in good}


def test_a_row_of_subscriptions_with_a_field_too_many_is_no_shorter_filter(
    covey: Run, files: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.csv").write_text("id,filter\na,n > 5\nb,n > 5, n < 3\n")
    done = covey("spark", "match", tmp_path / "s.csv", files / "quotes.csv", "-o", tmp_path / "out")
    assert (done.code, done.err.count("\n")) == (1, 2)
    assert "s.csv line 3: 3 fields" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl", "quotes.csv"], "nowhere.jsonl: No such file or directory"),
        (["wishes.csv", "nowhere.csv"], "nowhere.csv: No such file or directory"),
        (["wishes.csv", "none*.csv"], "none*.csv: No such file or directory"),
        (["wishes.csv", "empty"], "empty: no files of rows in it"),
        (["wishes.csv", "x.txt"], "x.txt: can't tell its format from its name; say which with --events-format"),
        (["x.txt", "quotes.csv"], "x.txt: can't tell its format from its name; say which with --subscriptions-format"),
        (["wishes.csv", "quotes.csv", "--columns", "n,ghost"], "quotes.csv: no column 'ghost'; it has symbol, sector"),
        (["wishes.csv", "quotes.csv", "--columns", "n,,"], "'n,,' is not a list of names"),
        (["wishes.csv", "quotes.csv", "--id", "name"], "no column 'name'; it has id, filter. Name the right"),
        (["wishes.csv", "quotes.csv", "--index", "x.idx"], "x.idx: an index's name ends in .covey"),
        (["wishes.csv", "quotes.csv", "--events-schema", "n n n"], "PARSE_SYNTAX_ERROR"),
        (["wishes.csv", "quotes.csv", "--conf", "x"], "'x' is not NAME=VALUE"),
        (["wishes.csv", "quotes.csv", "--cores", "2", "--master", "spark://x:7077"], "not allowed with argument"),
        (["wishes.csv", "quotes.csv", "--remote", "here"], "--remote here is not an address such as sc://host:15002"),
        (["wishes.csv"], "required: EVENTS"),
        (["wishes.csv", "quotes.csv", "--frob"], "--frob is not an option here"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_nothing_is_written(
    covey: Run, files: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(files)
    (files / "empty").mkdir(exist_ok=True)
    (files / "x.txt").touch()
    before = sorted(os.listdir(files))
    done = covey("spark", "match", *arguments, "-o", "out")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("covey: ")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert sorted(os.listdir(files)) == before


def test_rules_that_name_columns_that_are_not_there_are_listed_and_nothing_is_written(
    covey: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    pq.write_table(pa.table({"price": [b"1"]}), files / "wrong.parquet")
    before = sorted(os.listdir(files))
    done = covey("spark", "match", "wishes.csv", "wrong.parquet", "-o", "out")
    assert (done.code, done.out) == (1, "")
    assert "wishes.csv line 2: subscription 'trader-00000': there is no column change\n" in done.err
    assert len(done.err.splitlines()) < 30
    assert "Traceback" not in done.err
    assert sorted(os.listdir(files)) == before


def test_an_output_that_is_there_is_kept_unless_it_may_be_replaced(
    covey: Run, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "precious").touch()
    command = ("spark", "match", files / "wishes.csv", files / "quotes.parquet", "-o", output, "--columns", "n")
    assert f"{output} is there already; --overwrite replaces it" in covey(*command).err
    assert "the directory that it would be in doesn't exist" in covey(*command[:-4], "-o", output / "no" / "out").err

    def interrupted(self: object, path: str) -> None:
        Path(path).mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pyspark.sql.readwriter.DataFrameWriter.parquet", interrupted)
        assert covey(*command, "--overwrite").code == 130
    assert os.listdir(tmp_path) == ["out"]
    assert os.listdir(output) == ["precious"]
    assert covey(*command, "--overwrite").code == 0
    assert os.listdir(tmp_path) == ["out"]
    assert found(output) == expected(covey, files)


def test_the_summary_may_be_json(covey: Run, files: Path, tmp_path: Path) -> None:
    done = covey("spark", "match", files / "wishes.csv", files / "quotes.parquet", "-o", tmp_path / "out", "--json")
    told = json.loads(done.out)
    assert told["subscriptions"] == 400
    assert told["matches"] == sum(map(len, expected(covey, files).values()))
    assert told["events_per_second"] == pytest.approx(COUNT / told["match_seconds"])
