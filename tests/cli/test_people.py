"""What people meet on their first day: rules that can't fire, guessed types, directories, answers that are of use."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from covey import Index, Schema, explain, parse
from tests.cli.conftest import Outcome, lines

Run = Callable[..., Outcome]

EVENTS = [
    {"ts": "2026-01-01T00:00:00Z", "status": "down", "code": 7, "day": 1},
    {"ts": "2026-01-02T00:00:00Z", "status": "up", "code": 8, "day": 2},
]
RULES = [
    {"id": "down", "filter": "status = 'down'"},
    {"id": "misspelt", "filter": "statis = 'down'"},
    {"id": "late", "filter": "ts > TIMESTAMP '2025-01-01 00:00:00'"},
    {"id": "never", "filter": "code > 5 AND code < 3"},
    {"id": "either", "filter": "statis = 'down' OR status = 'lost'"},
    {"id": "absent", "filter": "statis IS NULL AND code > 100"},
]
WHY = {
    "misspelt": "no event has statis; did you mean status?",
    "late": "ts holds strings, and ts > TIMESTAMP '2025-01-01 00:00:00Z' is of timestamps; "
    'give a schema with {"ts": "timestamp"}, or write CAST(ts AS TIMESTAMP)',
    "never": "it contradicts itself",
}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return lines(tmp_path / "rules.jsonl", RULES)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return lines(tmp_path / "events.jsonl", EVENTS)


# Rules that can't fire


@pytest.mark.parametrize("copies", [1, 500])
def test_an_index_says_which_rules_cannot_fire(copies: int) -> None:
    index = Index()
    index.add_many(RULES)
    found = index.check_against(EVENTS * copies)
    assert {one.id: one.message for one in found} == WHY
    assert {one.id: one.message for one in index.check_against(pa.Table.from_pylist(EVENTS * copies))} == WHY
    assert str(found[0]) == "subscription 'misspelt' can't fire: no event has statis; did you mean status?"


def test_what_may_fire_is_not_reported() -> None:
    index = Index(semantics="simple")
    index.add_many({"a": "NOT statis = 'down'", "b": "code = 7 OR statis = 1", "c": "statis <=> NULL"})
    assert index.check_against(EVENTS) == []


def test_match_and_check_say_it_too(covey: Run, rules: Path, events: Path) -> None:
    done = covey("match", rules, events)
    assert done.rows == [{"event": 0, "subscriptions": ["down"]}]
    assert done.err.splitlines() == [f"covey: subscription {id!r} can't fire: {why}" for id, why in WHY.items()]
    checked = covey("check", rules, events)
    for id in ("misspelt", "late"):
        assert f"rule {id!r} can't fire on these events: {WHY[id]}" in checked.out
    assert "rule 'never' can never match" in checked.out
    assert "2 can't fire on these events" in checked.out


def test_a_few_events_say_little_of_what_events_may_have(covey: Run, tmp_path: Path) -> None:
    rules = lines(tmp_path / "r.jsonl", [{"id": "a", "filter": "halted = TRUE"}])
    assert covey("match", rules, lines(tmp_path / "few.jsonl", [{"n": 1}] * 9)).err == ""
    said = covey("match", rules, lines(tmp_path / "enough.jsonl", [{"n": 1}] * 10)).err
    assert said == "covey: subscription 'a' can't fire: no event has halted\n"


def test_a_later_batch_takes_a_suspicion_back(covey: Run, tmp_path: Path) -> None:
    rules = lines(tmp_path / "r.jsonl", [{"id": "a", "filter": "late > 100"}])
    events = lines(tmp_path / "e.jsonl", [*[{"n": n} for n in range(90)], {"late": 5}])
    done = covey("match", rules, events, "--batch-size", "10", "--threads", "1")
    assert (done.out, done.err) == ("", "")


def test_terms_are_looked_at_too(covey: Run, tmp_path: Path) -> None:
    """A text without quotes is another attribute, and the test one of a term, of which later batches have no column."""
    given = {"bare": "country == DE", "sum": "stauts + 1 > 500", "text": "upper(code) = 'X'"}
    rules = lines(tmp_path / "r.jsonl", [{"id": id, "filter": text} for id, text in given.items()])
    rows = [{"country": "DE", "status": n, "code": n} for n in range(90)]
    said = covey("match", rules, lines(tmp_path / "e.jsonl", rows), "--batch-size", "30", "--threads", "1").err
    assert said.splitlines() == [
        "covey: subscription 'bare' can't fire: no event has DE; a text is written in quotes: 'DE'",
        "covey: subscription 'sum' can't fire: no event has stauts; did you mean status?",
        "covey: subscription 'text' can't fire: upper(code) never has a value; code holds numbers",
    ]


@pytest.mark.parametrize(
    ("filter", "value", "remedy"),
    [
        ("x = 1234", "01234", 'put the constant in quotes, give a schema with {"x": "double"}, or write CAST('),
        ("x = '01234'", 1234, "write the constant without quotes, or give a schema with {\"x\": \"string\"} for CSV"),
        ("x > 'slow'", 5.5, "numbers, and x > 'slow' is of strings; compare it with numbers"),
        ("x LIKE '2026%'", datetime(2026, 1, 1), "and x LIKE '2026%' is of strings; write CAST(x AS STRING)"),
        ("x", "true", 'strings, and x = TRUE is of booleans; give a schema with {"x": "boolean"}, or write CAST('),
    ],
)  # fmt: skip
def test_what_to_write_instead_is_said(filter: str, value: object, remedy: str) -> None:
    index = Index()
    index.add("a", filter)
    (found,) = index.check_against([{"x": value}])
    assert remedy in found.message


def test_an_explanation_of_a_term_says_what_it_is_made_of() -> None:
    event = {"country": "DE", "price": 5, "volume": 3, "name": "x"}
    assert "   — DE is missing" in str(explain(parse("country = DE"), event))
    assert "   — country is 'DE', name is 'x'" in str(explain(parse("country = name"), event))
    assert "   — price * volume is 15: price is 5, volume is 3" in str(explain(parse("price * volume > 20"), event))
    assert "   — name + 1 has no value: name is 'x'" in str(explain(parse("name + 1 > 20"), event))


def test_an_explanation_names_a_mismatch_of_kinds() -> None:
    text = str(explain(parse("ts > TIMESTAMP '2025-01-01 00:00:00'"), EVENTS[0]))
    assert "ts is '2026-01-01T00:00:00Z': a string, where the test is of timestamps" in text


# CSV


def test_guessed_types_are_said_once_with_the_schema_to_write(covey: Run, tmp_path: Path) -> None:
    rules = lines(tmp_path / "r.jsonl", [{"id": "zip", "filter": "zip = '01234'"}])
    (tmp_path / "e.csv").write_text("zip,at\n1234,2026-01-01T00:00:00Z\n01234,2026-01-02T00:00:00Z\n")
    done = covey("match", rules, tmp_path / "e.csv")
    assert [row["event"] for row in done.rows] == [0, 1]
    said = [line for line in done.err.splitlines() if "guessed" in line]
    told = """types guessed from the first rows; to be sure, give --schema '{"zip": "int"}'"""
    assert said == [f"covey: {tmp_path / 'e.csv'}: {told}"]
    done = covey("match", rules, tmp_path / "e.csv", "--schema", '{"zip": "string"}')
    assert done.rows == [{"event": 1, "subscriptions": ["zip"]}]
    assert done.err == ""


def test_lines_of_csv_are_those_of_an_editor(covey: Run, tmp_path: Path) -> None:
    rules = tmp_path / "r.csv"
    rules.write_text('id,filter\na,"price <\n5"\nb,price <\nc,price < 7\nb,price < 9\n')
    events = lines(tmp_path / "e.jsonl", [{"price": 1}])
    done = covey("match", rules, events, "--on-error", "skip")
    assert [line.split(": ")[1].rpartition(" ")[2] for line in done.err.splitlines()[:2]] == ["4", "6"]
    table = tmp_path / "e.csv"
    table.write_text('note,price\n"two\nlines",1\nx,2,3\n')
    assert f"{table} line 4: 3 fields" in covey("match", rules, table, "--on-error", "skip").err


def test_check_and_report_read_rules_on_tables_as_match_does(covey: Run, tmp_path: Path) -> None:
    texts = {
        "quoted": "status = '503'",
        "day": "day > '2026-01-01'",
        "nowhere": "statis = 1",
        "kind": "status > 'high'",
    }
    rules = lines(tmp_path / "r.jsonl", [{"id": id, "filter": text} for id, text in texts.items()])
    table = tmp_path / "e.parquet"
    pq.write_table(pa.table({"status": [503, 404], "day": [datetime(2026, 1, 2), None]}), table)
    assert covey("match", rules, table, "--on-error", "skip").rows == [{"event": 0, "subscriptions": ["quoted", "day"]}]
    said = covey("check", rules, table).out
    assert [id for id in texts if f"rule {id!r} can't fire" in said] == ["nowhere", "kind"]
    found = json.loads(covey("report", rules, table, "--json").out)
    assert {one["rule"]: one["events"] for one in found["fired"]} == {"quoted": 1, "day": 1, "nowhere": 0, "kind": 0}


# Files


@pytest.fixture
def days(tmp_path: Path) -> Path:
    for day, prices in (("2026-01-01", [1, 50]), ("2026-01-02", [2, 60])):
        folder = tmp_path / "days" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"price": prices, "note": ["x", "y"]}), folder / "part-0.parquet")
    (tmp_path / "days" / "_SUCCESS").touch()
    return tmp_path / "days"


def test_a_directory_has_its_partitions_as_columns(covey: Run, days: Path, tmp_path: Path) -> None:
    rules = lines(tmp_path / "r.jsonl", [{"id": 1, "filter": "price < 10 AND day > DATE '2026-01-01'"}])
    name = str(days / "day=2026-01-02" / "part-0.parquet")
    expected = [{"file": name, "event": 0, "subscriptions": [1]}]
    for given in (days, f"{days}/*/*.parquet", days.as_uri()):
        rows = covey("match", rules, given).rows
        assert [{**row, "file": row["file"].removeprefix("file://")} for row in rows] == expected
    index = Index()
    index.add_many(rules)
    assert index.match_batch(days).to_pylist() == [[], [], [1], []]
    assert "no file has such a name" in covey("match", rules, tmp_path / "*.parquet").err


def test_answers_have_the_columns_and_the_form_that_is_asked_for(covey: Run, days: Path, tmp_path: Path) -> None:
    rules = lines(
        tmp_path / "r.jsonl",
        [{"id": "a", "filter": "price < 10"}, {"id": "b", "filter": "note = 'x'"}, {"id": "c", "filter": "price < 0"}],
    )
    one = days / "day=2026-01-01" / "part-0.parquet"
    assert covey("match", rules, one, "--columns", "price,note").rows == [
        {"event": 0, "price": 1, "note": "x", "subscriptions": ["a", "b"]}
    ]
    assert covey("match", rules, one, "--as", "pairs", "--columns", "price").rows == [
        {"event": 0, "price": 1, "subscription": "a"},
        {"event": 0, "price": 1, "subscription": "b"},
    ]
    assert covey("match", rules, days, "--as", "counts").rows == [
        {"subscription": "a", "events": 2},
        {"subscription": "b", "events": 2},
        {"subscription": "c", "events": 0},
    ]
    out = tmp_path / "out.parquet"
    assert covey("match", rules, days, "--as", "pairs", "-o", out).code == 0
    assert pq.read_table(out).num_rows == 4
    again = covey("match", rules, days, "--as", "pairs", "-o", out)
    assert (again.code, again.err) == (1, f"covey: {out} is there already; --overwrite replaces it\n")
    assert covey("match", rules, days, "-o", out, "--overwrite").code == 0


def test_every_form_goes_to_every_kind_of_file_even_where_nothing_matches(covey: Run, tmp_path: Path) -> None:
    rules = lines(tmp_path / "r.jsonl", [{"id": "a", "filter": "x > 1"}])
    some, none = lines(tmp_path / "some.jsonl", [{"x": 2}]), lines(tmp_path / "none.jsonl", [{"x": 0}])
    for form in ("pairs", "counts", "lists"):
        for suffix in (".jsonl", ".jsonl.gz", ".csv", ".parquet"):
            for events in (some, none):
                out = tmp_path / f"{form}-{events.stem}{suffix}"
                assert covey("match", rules, events, "--as", form, "--columns", "x", "-o", out).code == 0
                assert out.exists(), out
    assert (tmp_path / "lists-some.csv").read_text() == '"event","x","subscriptions"\n0,2,"[""a""]"\n'
    assert (tmp_path / "pairs-none.csv").read_text() == '"event","x","subscription"\n'
    assert pq.read_table(tmp_path / "lists-none.parquet").column_names == ["event", "x", "subscriptions"]
    assert json.loads(gzip.decompress((tmp_path / "pairs-some.jsonl.gz").read_bytes()))["subscription"] == "a"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("e.csv", b"x,x\n1,2\n", "column 'x' occurs 2 times; give each column a name of its own"),
        ("e.csv", b"", "an empty file; CSV has at least a line with the columns' names"),
        ("e.csv", b"y,x\n1,caf\xe9\n2,\xe9\n", "column 'x' isn't text in UTF-8; save the file as UTF-8"),
        ("e.csv", b"y,x\ncaf\xe9,1\n", None),
        ("e.jsonl", b'{"x": "caf\xe9"}\n', "line 1: not UTF-8 at byte 10"),
        ("e.jsonl", b"", None),
        ("e.jsonl", b'\xef\xbb\xbf{"x": 1}\r\n', None),
        ("e.jsonl", b'{"x": 123456789012345678901234567890}\n', None),
        ("e.parquet", b"PAR1", "not Parquet"),
    ],
)
def test_odd_files_are_read_or_refused_in_one_line(
    covey: Run, tmp_path: Path, name: str, content: bytes, said: str | None
) -> None:
    rules = lines(tmp_path / "r.jsonl", [{"id": "a", "filter": "x >= 1"}])
    (tmp_path / name).write_bytes(content)
    done = covey("match", rules, tmp_path / name)
    assert done.code == (0 if said is None else 1)
    assert "Traceback" not in done.err
    assert said is None or said in done.err


def test_rules_that_are_not_utf_8_are_refused_in_one_line(covey: Run, tmp_path: Path, events: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b"id,filter\na,name = 'caf\xe9'\n")
    done = covey("match", tmp_path / "r.csv", events)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.endswith("; save it as UTF-8\n")


def test_swapped_arguments_are_asked_about_after_some_lines(covey: Run, rules: Path, tmp_path: Path) -> None:
    events = lines(tmp_path / "many.jsonl", [{"price": n} for n in range(1_000)])
    done = covey("match", events, rules)
    assert done.code == 1
    said = done.err.splitlines()
    assert len(said) < 30
    assert any("and 980 more such subscriptions" in line for line in said)
    assert any("did you swap SUBSCRIPTIONS and EVENTS?" in line for line in said)


# Schemas


def test_a_schema_is_that_of_all_files(covey: Run, tmp_path: Path) -> None:
    lines(tmp_path / "1.jsonl", [{"price": 1, "note": "x", "mixed": 1}] * 3)
    lines(tmp_path / "2.jsonl", [{"price": 1.5, "at": "Paris", "mixed": "one"}] * 3)
    written = json.loads(covey("schema", tmp_path / "1.jsonl", tmp_path / "2.jsonl", "--sample", "2").out)
    assert written == {"price": "double", "note": "string", "at": "string"}


def test_a_schema_is_plain_json(covey: Run, events: Path, tmp_path: Path) -> None:
    assert Schema.from_json('{"ts": "timestamp"}') == Schema({"ts": "timestamp"})
    assert Schema.from_json('{"attributes": "string"}') == Schema({"attributes": "string"})
    written = json.loads(covey("schema", events).out)
    assert written == {"ts": "string", "status": "string", "code": "int", "day": "int"}
    assert covey("schema", events, "-o", tmp_path / "schema.json").code == 0
    rules = lines(tmp_path / "r.jsonl", [RULES[2]])
    mended = (tmp_path / "schema.json").read_text().replace('"ts": "string"', '"ts": "timestamp"')
    (tmp_path / "schema.json").write_text(mended)
    assert len(covey("match", rules, events, "--schema", tmp_path / "schema.json").rows) == 2


def test_a_rule_on_bytes_is_named_and_the_others_are_looked_at(tmp_path: Path, covey: Run) -> None:
    given = lines(tmp_path / "bytes.jsonl", [{"id": "raw", "filter": "raw IS NULL"}, {"id": "one", "filter": "n = 1"}])
    events = tmp_path / "bytes.parquet"
    pq.write_table(pa.table({"raw": [b"x", b"y"], "n": [1, 2]}), events)
    why = "column 'raw' is of Arrow type binary, which filters can't compare; cast it first"
    checked = covey("check", given, events)
    assert f"rule 'raw' can't fire on these events: {why}" in checked.out
    assert "rule 'one'" not in checked.out
    refused = covey("report", given, events)
    assert refused.code == 1
    assert f"bytes.jsonl line 1: subscription 'raw': {why}" in refused.err
    skipped = covey("report", "--on-error", "skip", given, events)
    assert skipped.code == 0
    assert "one: 1" in skipped.out
