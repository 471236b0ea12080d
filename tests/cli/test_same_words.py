"""`covey match` and `covey spark match` give the same answers and say the same, of the same files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Outcome, lines
from tests.spark.conftest import spark  # noqa: F401

pytestmark = pytest.mark.usefixtures("spark")

Run = Callable[..., Outcome]

RULES: list[tuple[Any, Any]] = [
    ("slow", "latency_ms > 1000"),
    ("errors", "status >= 500 AND country IN ('DE', 'FR')"),
    ("operator", "status => 500"),
    ("slow", "latency_ms > 5000"),
    ("misspelt", "statis >= 500"),
    ("bare", "country = DE"),
    ("constant", "country = 'DE' OR 'FR'"),
    ("nested", "user.plan = 'pro'"),
    ("", "status = 1"),
    ("empty", None),
    ("kind", "latency_ms > 'slow'"),
    ("quoted", "status = '503'"),
    ("either", "status = '404' OR latency_ms > 1400"),
    ("unsaid", "statis IS NULL AND country = 'DE'"),
    ("contradiction", "status > 500 AND status < 400"),
    ("paths", "path LIKE '/api/%' AND NOT (status < 300 OR country <> 'US')"),
    ("missing", "latency_ms IS NULL"),
    ("unfinished", "status = 500 AND"),
    ("operator", "status = 200"),
]
EVENTS = pa.table(
    {
        "n": range(200),
        "status": pa.array([[200, 404, 503][n % 3] for n in range(200)], pa.int64()),
        "latency_ms": [None if n % 10 == 0 else n * 37 % 1500 + 0.5 for n in range(200)],
        "country": [["DE", "FR", "US", None][n % 4] for n in range(200)],
        "path": [["/", "/api/v1", "/apix"][n % 5 % 3] for n in range(200)],
    }
)


def put(kind: str, table: pa.Table, path: Path) -> Path:
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        lines(path, [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("same")
    table = pa.table({"id": [id for id, _ in RULES], "filter": [text for _, text in RULES]})
    for kind in ("jsonl", "csv", "parquet"):
        put(kind, table, made / f"rules.{kind}")
        put(kind, EVENTS, made / f"events.{kind}")
    with (made / "numbered.jsonl").open("w") as file:
        for number, (_, text) in enumerate(RULES):
            file.write(json.dumps({"id": number, "filter": text}) + "\n")
    return made


def said(outcome: Outcome) -> list[str]:
    """What is said of rules; other lines are of each command's own."""
    return sorted(line for line in outcome.err.splitlines() if re.search(r"subscription ['\d]", line))


def both(covey: Run, folder: Path, rules: str, output: Path, *options: str) -> tuple[Outcome, Outcome]:
    kind = "jsonl" if rules == "numbered.jsonl" else rules.rpartition(".")[2]
    given = folder / rules, folder / f"events.{kind}"
    here = covey("match", *given, "--columns", "n", *options)
    return here, covey("spark", "match", *given, "-o", output, "--columns", "n", *options)


def same_answers(here: Outcome, output: Path) -> dict[int, list[Any]]:
    found = {row["n"]: row["subscriptions"] for row in pq.read_table(output).to_pylist()}
    assert found == {row["n"]: row["subscriptions"] for row in here.rows}
    return found


@pytest.mark.parametrize("rules", ["rules.jsonl", "rules.csv", "rules.parquet", "numbered.jsonl"])
def test_answers_and_words_are_the_same(covey: Run, folder: Path, tmp_path: Path, rules: str) -> None:
    here, there = both(covey, folder, rules, tmp_path / "out", "--on-error", "skip")
    assert (here.code, there.code) == (0, 0), there.err
    found = same_answers(here, tmp_path / "out")
    assert len(found) > 100
    assert said(there) == said(here)
    assert len(said(here)) == (9 if rules == "numbered.jsonl" else 11 if rules == "rules.jsonl" else 12), said(here)
    fired = {id for ids in found.values() for id in ids}
    if rules in ("rules.csv", "rules.parquet"):
        assert {"quoted", "either"} <= fired  # columns have types, to which constants are converted
        assert "unsaid" not in fired
    elif rules == "rules.jsonl":
        assert {"either", "unsaid"} <= fired  # lines have no columns: what is nowhere is missing
        assert "quoted" not in fired


@pytest.mark.parametrize(("kind", "bad"), [("csv", 12), ("parquet", 12), ("jsonl", 7)])
def test_the_same_is_refused_where_nothing_is_to_be_skipped(
    covey: Run, folder: Path, tmp_path: Path, kind: str, bad: int
) -> None:
    here, there = both(covey, folder, f"rules.{kind}", tmp_path / "out")
    for done in (here, there):
        assert (done.code, done.out) == (1, "")
        assert done.err.splitlines()[-1] == (
            f"covey: {bad} subscriptions can't be used, so nothing was done; --on-error skip goes on without"
        )
    assert said(here) == said(there)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_good_rules_go_on_in_both(covey: Run, folder: Path, tmp_path: Path, kind: str, on_error: str) -> None:
    """Of events without columns a rule may name what none has: both go on, and say the same."""
    texts = {"slow": "latency_ms > 1000", "number": "status = '503'", "not": "NOT status = '503'", "us": "path = '/'"}
    if kind == "jsonl" or on_error == "skip":
        texts |= {"nowhere": "statis = 1", "nested": "user.plan IS NULL"}
    table = pa.table({"id": list(texts), "filter": list(texts.values())})
    given = put(kind, table, tmp_path / f"good.{kind}"), folder / f"events.{kind}"
    here = covey("match", *given, "--columns", "n", "--on-error", on_error)
    there = covey("spark", "match", *given, "-o", tmp_path / "out", "--columns", "n", "--on-error", on_error)
    assert (here.code, there.code) == (0, 0), there.err
    fired = {id for ids in same_answers(here, tmp_path / "out").values() for id in ids}
    assert fired == {"slow", "us"} | ({"nested"} if kind == "jsonl" else {"number", "not"})
    assert said(here) == said(there)
    assert bool(said(here)) == (kind == "jsonl" or on_error == "skip")


def test_a_table_may_lack_columns_if_it_is_told(covey: Run, folder: Path, tmp_path: Path) -> None:
    texts = {
        "either": "statis = 1 OR status = 503",
        "none": "user.plan IS NULL AND status = '404'",
        "not": "NOT statis = 1",
    }
    rules = lines(tmp_path / "rules.jsonl", [{"id": id, "filter": text} for id, text in texts.items()])
    given = rules, folder / "events.parquet", "--missing-columns", "null"
    here = covey("match", *given, "--columns", "n")
    there = covey("spark", "match", *given, "-o", tmp_path / "out")
    assert (here.code, there.code) == (0, 0), there.err
    assert {id for ids in same_answers(here, tmp_path / "out").values() for id in ids} == {"either", "none"}
    assert said(here) == said(there)
    assert pq.read_table(tmp_path / "out").column_names == [*EVENTS.column_names, "subscriptions"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_times_are_compared_with_texts_in_both(covey: Run, tmp_path: Path, kind: str) -> None:
    days = [date(2026, 1, 1 + n % 5) for n in range(20)]
    at = [datetime(2026, 1, 1 + n % 5, n % 24, tzinfo=UTC) for n in range(20)]
    events = put(kind, pa.table({"n": range(20), "day": days, "at": at}), tmp_path / f"events.{kind}")
    texts = {"on": "day = '2026-01-03'", "late": "at > '2026-01-04 12:00:00Z'", "nowhere": "on = 1", "bad": "day > 'x'"}
    rules = lines(tmp_path / "rules.jsonl", [{"id": id, "filter": text} for id, text in texts.items()])
    here = covey("match", rules, events, "--columns", "n", "--on-error", "skip")
    there = covey("spark", "match", rules, events, "-o", tmp_path / "out", "--columns", "n", "--on-error", "skip")
    assert (here.code, there.code) == (0, 0), there.err
    found = same_answers(here, tmp_path / "out")
    assert {id for ids in found.values() for id in ids} == {"on", "late"}
    assert said(here) == said(there)
    assert len(said(here)) == 2


def test_what_columns_can_never_meet_is_refused_in_both(covey: Run, tmp_path: Path) -> None:
    """Terms of wrong kinds, records as a whole, bytes: SQL refuses them, and so does a table here."""
    rows = [
        {
            "n": n,
            "flag": n % 2 == 0,
            "at": datetime(2025 + n % 2, 1, 1, tzinfo=UTC),
            "user": {"plan": ["pro", None][n % 2]},
            "tags": [("size", "LM"[n % 2])],
            "codes": [n, 5],
            "raw": b"x",
        }
        for n in range(20)
    ]
    types = {
        "n": pa.int64(), "flag": pa.bool_(), "at": pa.timestamp("us", "UTC"), "user": pa.struct({"plan": pa.string()}),
        "tags": pa.map_(pa.string(), pa.string()), "codes": pa.list_(pa.int64()), "raw": pa.binary(),
    }  # fmt: skip
    events = put("parquet", pa.Table.from_pylist(rows, pa.schema(types)), tmp_path / "events.parquet")
    good = {
        "plan": "user.plan = 'pro'", "first": "codes[0] > 15", "any": "exists(codes, e -> e = 3)",
        "large": "tags.size = 'L'", "year": "year(at) = 2026", "cast": "length(CAST(n AS STRING)) = 2",
        "coalesced": "coalesce(user.plan, 'x') = 'x'",
    }  # fmt: skip
    bad = {
        "times": "at = n", "sum": "flag + 1 > 2", "shifted": "at + 1 > at", "record": "user = 1", "map": "tags = 'L'",
        "list": "upper(codes) = 'X'", "either": "coalesce(flag, 1) = 1", "bytes": "raw > 1",
    }  # fmt: skip
    rules = lines(tmp_path / "rules.jsonl", [{"id": id, "filter": text} for id, text in (good | bad).items()])
    given = rules, events, "--columns", "n", "--on-error", "skip"
    here, there = covey("match", *given), covey("spark", "match", *given, "-o", tmp_path / "out")
    assert (here.code, there.code) == (0, 0), here.err + there.err
    assert {id for ids in same_answers(here, tmp_path / "out").values() for id in ids} == {*good}
    assert said(here) == said(there)
    assert len(said(here)) == len(bad)
    refused = covey("match", *given[:-1], "raise")
    assert refused.err.splitlines()[-1].startswith(f"covey: {len(bad)} subscriptions can't be used")
