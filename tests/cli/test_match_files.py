"""`covey match` on every kind of file."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import EVENTS, MATCHES, SUBSCRIPTIONS, Outcome, lines

Run = Callable[..., Outcome]


def csv_text(header: list[str], rows: list[list[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


EVENTS_CSV = csv_text(["price", "company"], [[event.get("price"), event.get("company")] for event in EVENTS])


def test_json_lines_give_one_line_for_each_event_with_matches(covey: Run, subscriptions: Path, events: Path) -> None:
    done = covey("match", subscriptions, events)
    assert (done.code, done.err) == (0, "")
    assert done.rows == MATCHES


def test_all_prints_events_without_matches_too(covey: Run, subscriptions: Path, events: Path) -> None:
    done = covey("match", subscriptions, events, "--all")
    assert [row["event"] for row in done.rows] == [0, 1, 2, 3]
    assert done.rows[1] == {"event": 1, "subscriptions": []}


def test_count_prints_only_the_totals(covey: Run, subscriptions: Path, events: Path) -> None:
    assert covey("match", subscriptions, events, "--count").rows == [{"events": 4, "matched_events": 3, "matches": 5}]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_the_size_of_batches_changes_nothing(covey: Run, subscriptions: Path, events: Path, size: int) -> None:
    assert covey("match", subscriptions, events, "--batch-size", size).rows == MATCHES


def test_an_empty_field_of_csv_is_missing(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(EVENTS_CSV)
    assert covey("match", subscriptions, tmp_path / "events.csv", "--batch-size", 2).rows == MATCHES


def test_subscriptions_may_be_csv_with_columns_of_other_names(covey: Run, events: Path, tmp_path: Path) -> None:
    rows = [[number, text, "more"] for number, (_, text) in enumerate(SUBSCRIPTIONS)]
    (tmp_path / "rules.csv").write_text(csv_text(["rule", "where", "note"], rows))
    done = covey("match", tmp_path / "rules.csv", events, "--id", "rule", "--filter", "where")
    assert [row["subscriptions"] for row in done.rows] == [["0", "1"], ["1", "3"], ["0"]]


def test_parquet_on_both_sides(covey: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [7, 8], "filter": ["a.x > 1", "b = 'y'"]}), tmp_path / "s.parquet")
    table = pa.table({"unused": [b"1", b"2", b"3"], "a": [{"x": 1}, {"x": 2}, None], "b": ["y", "y", "n"]})
    pq.write_table(table, tmp_path / "e.parquet")
    done = covey("match", tmp_path / "s.parquet", tmp_path / "e.parquet")
    assert done.rows == [{"event": 0, "subscriptions": [8]}, {"event": 1, "subscriptions": [7, 8]}]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_gzip_is_unpacked(covey: Run, subscriptions: Path, tmp_path: Path, suffix: str) -> None:
    text = EVENTS_CSV if suffix == "csv" else "".join(json.dumps(event) + "\n" for event in EVENTS)
    path = tmp_path / f"events.{suffix}.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert covey("match", subscriptions, path).rows == MATCHES


def test_half_a_gzip_file_is_an_error_in_one_line(covey: Run, subscriptions: Path, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"price": 5}\n' * 100_000)[:150])
    done = covey("match", subscriptions, path)
    assert done.code == 1
    assert "not a whole gzip file" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_events_may_come_from_standard_input(
    covey: Run, stdin: Callable[[bytes], None], subscriptions: Path, kind: str
) -> None:
    if kind == "parquet":
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(EVENTS), out)
        content = out.getvalue()
    else:
        content = (EVENTS_CSV if kind == "csv" else "\n".join(map(json.dumps, EVENTS))).encode()
    stdin(content)
    options = () if kind == "jsonl" else ("--format", kind)
    assert covey("match", subscriptions, "-", *options).rows == MATCHES


def test_subscriptions_may_come_from_standard_input(
    covey: Run, stdin: Callable[[bytes], None], subscriptions: Path, events: Path
) -> None:
    stdin(subscriptions.read_bytes())
    assert covey("match", "-", events).rows == MATCHES


def test_filters_may_be_json(covey: Run, events: Path, tmp_path: Path) -> None:
    condition = {"attribute": "price", "<": 10}
    as_object = lines(tmp_path / "a.jsonl", [{"id": "x", "filter": condition}])
    as_text = lines(tmp_path / "b.jsonl", [{"id": "x", "filter": json.dumps(condition)}])
    expected = [{"event": 0, "subscriptions": ["x"]}, {"event": 3, "subscriptions": ["x"]}]
    assert covey("match", as_object, events).rows == expected
    assert covey("match", as_text, events, "--dialect", "json").rows == expected


def test_output_to_parquet_and_json_lines(covey: Run, subscriptions: Path, events: Path, tmp_path: Path) -> None:
    for name in ("out.parquet", "out.jsonl", "out.jsonl.gz"):
        done = covey("match", subscriptions, events, "--output", tmp_path / name, "--batch-size", 2)
        assert (done.code, done.out) == (0, "")
        assert "3 of 4 events matched, 5 matches" in done.err
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == MATCHES
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == MATCHES
    assert gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()) == (tmp_path / "out.jsonl").read_bytes()


def test_ids_of_any_text_are_written_as_json(covey: Run, events: Path, tmp_path: Path) -> None:
    ids = ['say "hi"', "back\\slash", "line\nend", "naïve 😀"]
    path = lines(tmp_path / "s.jsonl", [{"id": one, "filter": "TRUE"} for one in ids])
    done = covey("match", path, events)
    assert [row["subscriptions"] for row in done.rows] == [ids] * 4


def test_semantics_and_schema_are_the_indexs(covey: Run, events: Path, tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", [{"id": "s", "filter": "NOT price > 100"}])
    assert [row["event"] for row in covey("match", path, events).rows] == [0, 3]
    assert [row["event"] for row in covey("match", path, events, "--semantics", "simple").rows] == [0, 2, 3]
    schema = tmp_path / "schema.json"
    schema.write_text('{"attributes": {"price": {"type": "double", "default": 200}}}')
    done = covey("match", path, events, "--semantics", "default", "--schema", schema)
    assert [row["event"] for row in done.rows] == [0, 3]


def test_a_schema_says_what_a_column_of_csv_holds(covey: Run, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("code,at\n007,2024-01-31T12:00:00Z\n7,2025-01-01T00:00:00Z\n")
    text = "code = '007' AND at < TIMESTAMP '2024-06-01'"
    path = lines(tmp_path / "s.jsonl", [{"id": "s", "filter": text}])
    schema = tmp_path / "schema.json"
    schema.write_text('{"attributes": {"code": "string", "at": "timestamp"}}')
    assert covey("match", path, tmp_path / "e.csv", "--schema", schema).rows == [{"event": 0, "subscriptions": ["s"]}]


def test_a_terminal_gets_a_table(
    covey: Run, subscriptions: Path, events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "34")
    done = covey("match", subscriptions, events)
    assert done.out.splitlines() == [
        "     event  matches  subscriptions",
        "         0        2  cheap, ibm",
        "         2        2  ibm, no price",
        "         3        1  cheap",
    ]
    monkeypatch.setenv("COLUMNS", "28")
    assert covey("match", subscriptions, events).out.splitlines()[1] == "         0        2  cheap,…"
