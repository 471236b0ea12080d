"""What is wrong with a file is said in one line for each row, and nothing else is lost."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import covey as library
from covey.events import parse_json
from tests.cli.conftest import EVENTS, MATCHES, SUBSCRIPTIONS, Outcome, lines

Run = Callable[..., Outcome]


@pytest.fixture
def flawed(tmp_path: Path) -> Path:
    good = [{"id": one, "filter": text} for one, text in SUBSCRIPTIONS]
    bad = ["not JSON", {"id": "late", "filter": "price => 5"}, {"filter": "TRUE"}, {"id": "cheap", "filter": "TRUE"}]
    rows = [*good[:2], "", *bad, {"id": "bare"}, {"id": 1.5, "filter": "TRUE"}, *good[2:]]
    return lines(tmp_path / "flawed.jsonl", rows)


def test_every_bad_subscription_is_named_and_nothing_is_matched(covey: Run, flawed: Path, events: Path) -> None:
    done = covey("match", flawed, events)
    assert (done.code, done.out) == (1, "")
    said = done.err.splitlines()
    assert len(said) == 7
    assert sum(f"{flawed} line " in line for line in said) == 6
    for part in (
        "line 4: not JSON",
        "line 5: subscription 'late': => is not an operator; did you mean >=? (character 7: price => 5)",
        "line 6: no id",
        "line 7: subscription 'cheap' stands in an earlier row",
        "line 8: subscription 'bare': no filter",
        "line 9: the id 1.5 is neither text nor an integer",
    ):
        assert part in done.err
    assert said[-1] == "covey: 6 subscriptions can't be used, so nothing was done; --on-error skip goes on without"


def test_an_output_file_is_not_touched_if_subscriptions_are_bad(
    covey: Run, flawed: Path, events: Path, tmp_path: Path
) -> None:
    (tmp_path / "out.jsonl").write_text("precious")
    assert covey("match", flawed, events, "-o", tmp_path / "out.jsonl").code == 1
    assert (tmp_path / "out.jsonl").read_text() == "precious"


def test_skip_goes_on_without_bad_subscriptions(covey: Run, flawed: Path, events: Path) -> None:
    done = covey("match", flawed, events, "--on-error", "skip")
    assert (done.code, done.rows) == (0, MATCHES)
    assert done.err.splitlines()[-1] == "covey: left out 6 subscriptions"


def test_all_before_a_bad_event_is_written(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    path = lines(tmp_path / "e.jsonl", [*EVENTS[:3], "[1]", EVENTS[3]])
    done = covey("match", subscriptions, path)
    assert (done.code, done.rows) == (1, MATCHES[:2])
    assert done.err.splitlines() == [
        f"covey: {path} line 4: a JSON array, not an object with attributes",
        "covey: stopped at that event; --on-error skip goes on without such events",
    ]


def test_skipped_events_keep_their_numbers(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    deep = f'{{"company": "IBM", "price": {"[" * 33}1{"]" * 33}}}'
    rows = [EVENTS[0], "", "{", "null", deep, EVENTS[3], "oops", {"price": [[1]], "company": "IBM"}]
    path = lines(tmp_path / "e.jsonl", rows)
    done = covey("match", subscriptions, path, "--on-error", "skip")
    assert done.code == 0
    assert [row["event"] for row in done.rows] == [0, 4, 6]
    bad = [line for line in range(1, 9) if f"line {line}:" in done.err]
    assert bad == [3, 4, 5, 7]
    assert "line 5: attribute 'price': lists are nested more than 32 deep" in done.err
    assert done.err.splitlines()[-1] == "covey: left out 4 events"


@pytest.mark.parametrize("size", [3, 64, 1000])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("gzipped", [False, True])
def test_many_lines_are_matched_and_complained_of_as_one_by_one(
    covey: Run,
    subscriptions: Path,
    tmp_path: Path,
    size: int,
    threads: int,
    gzipped: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("covey.cli.terminal.MOST_SHOWN", 1_000)
    deep = f'{{"company": "IBM", "price": {"[" * 33}1{"]" * 33}}}'
    some = [EVENTS[0], "", "{", '{"price": 5, "price": 500}', deep, EVENTS[3], " \t", '\ufeff{"price": 1}', "[1]"]
    rows = [some[at * at % 23 % len(some)] for at in range(300)]
    index = library.Index()
    index.add_many(SUBSCRIPTIONS)
    expected: list[dict[str, object]] = []
    wrong: list[int] = []
    number = 0
    for at, row in enumerate(rows, 1):
        try:
            event = row if isinstance(row, dict) else parse_json(row, first=at == 1)
            found = None if event is None else index.match(event)
        except library.EventError:
            wrong.append(at)
            found = []
        if found:
            expected.append({"event": number, "subscriptions": found})
        number += found is not None
    path = lines(tmp_path / "e.jsonl", rows)
    if gzipped:
        path = tmp_path / "e.jsonl.gz"
        path.write_bytes(gzip.compress((tmp_path / "e.jsonl").read_bytes()))
    options = ("--batch-size", size, "--threads", threads)
    done = covey("match", subscriptions, path, "--on-error", "skip", *options)
    assert (done.code, done.rows) == (0, expected)
    said = [int(line.split(" line ")[1].split(":")[0]) for line in done.err.splitlines() if " line " in line]
    assert said == wrong
    done = covey("match", subscriptions, path, *options)
    before = sum(row != "" and not (isinstance(row, str) and row.isspace()) for row in rows[: wrong[0] - 1])
    assert (done.code, done.rows) == (1, [row for row in expected if int(str(row["event"])) < before])
    assert len(done.err.splitlines()) == 2
    assert f"{path} line {wrong[0]}: " in done.err


def test_a_row_of_csv_with_a_field_too_many(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("price,company\n5,IBM\n1,2,3\n500,Dell\n,IBM\n7\n7.5,Dell\n")
    done = covey("match", subscriptions, path, "--on-error", "skip")
    assert [row["event"] for row in done.rows] == [0, 3, 5]
    assert f"{path} line 3: 3 fields where the header has 2" in done.err
    assert f"{path} line 6: 1 fields where the header has 2" in done.err
    done = covey("match", subscriptions, path)
    assert (done.code, [row["event"] for row in done.rows]) == (1, [0])


def test_an_event_that_breaks_the_schema_costs_only_itself(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"attributes": {"price": "double", "company": {"type": "string", "mandatory": true}}}')
    rows = [EVENTS[0], {"price": "cheap", "company": "x"}, {"price": 1}, EVENTS[3]]
    path = lines(tmp_path / "e.jsonl", rows)
    done = covey("match", subscriptions, path, "--schema", schema, "--on-error", "skip")
    assert [row["event"] for row in done.rows] == [0, 3]
    assert f"{path} line 2: attribute 'price': 'cheap' is a string; expected double" in done.err
    assert f"{path} line 3: attribute 'company' is mandatory and missing" in done.err


def test_a_column_of_the_wrong_type_concerns_only_those_who_name_it(
    covey: Run, subscriptions: Path, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"price": [b"5", b"6"], "company": ["IBM", "Dell"]}), tmp_path / "e.parquet")
    refused = covey("match", subscriptions, tmp_path / "e.parquet")
    assert refused.code == 1
    assert not refused.out
    assert "column 'price'" in refused.err
    done = covey("match", subscriptions, tmp_path / "e.parquet", "--on-error", "skip")
    assert done.code == 0
    assert done.rows == [{"event": 0, "subscriptions": ["ibm"]}]
    *named, left = done.err.splitlines()
    assert all("column 'price'" in line for line in named)
    assert left == f"covey: left out {len(named)} subscriptions"


def test_a_column_of_csv_that_changes_its_type_says_what_to_do(
    covey: Run, subscriptions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("covey.events.csv_files._BLOCK", 1024)
    (tmp_path / "e.csv").write_text("price,company\n" + "5,IBM\n" * 1000 + "cheap,IBM\n")
    done = covey("match", subscriptions, tmp_path / "e.csv")
    assert done.code == 1
    assert "'cheap'; say what its columns hold with --schema" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["match", "nowhere.jsonl", "-"], "nowhere.jsonl: No such file or directory"),
        (["match", "-", "-"], "only one of SUBSCRIPTIONS and EVENTS can be -"),
        (["match", "-", "nowhere.csv"], "nowhere.csv: No such file or directory"),
        (["match", "-", "e.txt"], "e.txt: can't tell its format from its name; say which with --format (jsonl, csv"),
        (["match", "s.txt", "-"], "s.txt: can't tell its format from its name; say which with --subscriptions-format"),
        (["match", "-"], "required: EVENTS; see covey match --help"),
        (["match", "-", "e.csv", "--batch-size", "0"], "'0' is not a number from 1 up"),
        (["match", "-", "e.csv", "--frob"], "--frob is not an option here"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "required: COMMAND"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(covey: Run, arguments: list[str], said: str) -> None:
    done = covey(*arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("covey: ")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_other_files_that_are_not_what_they_seem(covey: Run, subscriptions: Path, events: Path, tmp_path: Path) -> None:
    for name in ("x.parquet", "x.covey", "x.csv", "schema.json"):
        (tmp_path / name).write_text("" if name == "x.csv" else "junk")
    for arguments in (
        ["match", subscriptions, tmp_path / "x.parquet"],
        ["match", subscriptions, tmp_path / "x.csv"],
        ["match", tmp_path / "x.parquet", events],
        ["match", tmp_path / "x.covey", events],
        ["match", subscriptions, events, "--schema", tmp_path / "schema.json"],
        ["match", subscriptions, events, "--output", tmp_path / "x.txt"],
        ["match", subscriptions, events, "--output", tmp_path / "no" / "x.jsonl"],
        ["index", "stats", tmp_path / "x.covey"],
    ):
        done = covey(*arguments)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert str(tmp_path) in done.err


def test_a_missing_column_lists_those_there_are(covey: Run, events: Path, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("name,filter\na,TRUE\n")
    done = covey("match", tmp_path / "s.csv", events)
    assert "no column 'id'; it has name, filter. Name the right one with --id-column" in done.err
