"""`covey compact`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Outcome

Run = Callable[..., Outcome]

ROWS = [
    {"id": "a", "filter": "price < 10"},
    {"id": "b", "filter": "price < 5 AND company = 'IBM'"},
    {"id": "c", "filter": "price < 10.0"},
    {"id": "d", "filter": "price BETWEEN 10 AND 20"},
    {"id": "e", "filter": "company = 'Dell' OR halted = TRUE"},
]


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def entries(path: Path) -> dict[str, Any]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def test_sizes_are_printed_and_the_smaller_set_is_written(covey: Run, rules: Path, tmp_path: Path) -> None:
    result = covey("compact", str(rules), "-o", str(tmp_path / "small.jsonl"))
    assert result.code == 0
    assert "identity" in result.out
    assert "covering" in result.out
    assert "merging" in result.out
    found = entries(tmp_path / "small.jsonl")
    assert sorted(id for row in found.values() for id in row["stands_for"]) == ["a", "b", "c", "d", "e"]
    assert sorted(found["a"]["stands_for"]) == ["a", "b", "c", "d"]
    assert found["a"]["filter"] == "price <= 20"
    assert found["e"]["stands_for"] == ["e"]


def test_parquet_is_written_too(covey: Run, rules: Path, tmp_path: Path) -> None:
    assert covey("compact", str(rules), "-o", str(tmp_path / "small.parquet"), "--no-merging").code == 0
    table = pq.read_table(tmp_path / "small.parquet")
    assert table.column_names == ["id", "filter", "stands_for", "how"]
    assert sorted(table["id"].to_pylist()) == ["a", "d", "e"]


def test_imperfect_steps_learn_from_events(covey: Run, rules: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("".join(json.dumps({"price": n % 15, "company": "Dell"}) + "\n" for n in range(300)))
    result = covey("compact", str(rules), "--events", str(events), "--imt", "0.5", "--prune", "0.5",
                 "-o", str(tmp_path / "small.jsonl"))  # fmt: skip
    assert result.code == 0
    assert "merging up to 0.5" in result.out
    assert "pruning up to 0.5" in result.out
    assert sorted(id for row in entries(tmp_path / "small.jsonl").values() for id in row["stands_for"]) == list("abcde")


def test_the_threshold_bounds_traffic_where_that_is_asked_for(covey: Run, tmp_path: Path) -> None:
    rules, events = tmp_path / "rare.jsonl", tmp_path / "events.jsonl"
    texts = [f"a = {n} AND b BETWEEN {n} AND {n + 2}" for n in range(4)]
    rules.write_text("".join(json.dumps({"id": str(n), "filter": text}) + "\n" for n, text in enumerate(texts)))
    events.write_text("".join(json.dumps({"a": n % 50, "b": n % 7}) + "\n" for n in range(3_500)))

    def left(*more: str) -> int:
        out = tmp_path / "small.jsonl"
        assert covey("compact", str(rules), "--events", str(events), "--imt", "0.1", "-o", str(out), *more).code == 0
        return len(entries(out))

    assert left() == left("--measure", "degree") == 4
    assert left("--measure", "traffic") < 4


def test_mistakes_are_told_in_one_line(covey: Run, rules: Path, tmp_path: Path) -> None:
    assert "need --profile or --events" in covey("compact", str(rules), "--imt", "0.5").err
    assert "'2' is not a number from 0 to 1" in covey("compact", str(rules), "--imt", "2").err
    (tmp_path / "bad.jsonl").write_text('{"id": "x", "filter": "price <"}\n{"id": "y", "filter": "price < 1"}\n')
    result = covey("compact", str(tmp_path / "bad.jsonl"), "-o", str(tmp_path / "out.jsonl"))
    assert result.code == 1
    assert "line 1: subscription 'x'" in result.err
    assert not (tmp_path / "out.jsonl").exists()
    assert covey("compact", str(tmp_path / "bad.jsonl"), "--on-error", "skip").code == 0
    (tmp_path / "ads.txt").write_text("price < 10\nprice <\n")
    result = covey("compact", str(rules), "--advertisements", str(tmp_path / "ads.txt"))
    assert "ads.txt line 2" in result.err
