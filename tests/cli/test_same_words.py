"""`covey match` and `covey spark match` give the same answers and say the same, of the same files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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


@pytest.mark.parametrize("rules", ["rules.jsonl", "rules.csv", "rules.parquet", "numbered.jsonl"])
def test_answers_and_words_are_the_same(covey: Run, folder: Path, tmp_path: Path, rules: str) -> None:
    kind = "jsonl" if rules == "numbered.jsonl" else rules.rpartition(".")[2]
    given = folder / rules, folder / f"events.{kind}"
    here = covey("match", *given, "--on-error", "skip", "--columns", "n")
    there = covey("spark", "match", *given, "-o", tmp_path / "out", "--on-error", "skip", "--columns", "n")
    assert (here.code, there.code) == (0, 0), there.err
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert {row["n"]: row["subscriptions"] for row in found} == {row["n"]: row["subscriptions"] for row in here.rows}
    assert len(found) > 100
    words = [line for line in said(here) if "contradicts itself" not in line]  # Spark doesn't look for these
    assert said(there) == words
    assert len(words) == (8 if rules == "numbered.jsonl" else 10), words


@pytest.mark.parametrize(
    ("command", "bad"),
    [(("match",), 7), (("spark", "match", "-o", "out"), 11)],  # Spark refuses what names no column of the table, too
)
def test_nothing_is_done_where_nothing_is_to_be_skipped(
    covey: Run, folder: Path, tmp_path: Path, command: tuple[str, ...], bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = covey(*command, folder / "rules.csv", folder / "events.csv")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1] == (
        f"covey: {bad} subscriptions can't be used, so nothing was done; --on-error skip goes on without"
    )
    assert not (tmp_path / "out").exists()
