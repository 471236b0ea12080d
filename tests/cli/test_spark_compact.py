"""`covey spark compact`: fewer rows that stand for all, and how many each step left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Outcome, lines
from tests.spark.conftest import spark  # noqa: F401

pytestmark = pytest.mark.usefixtures("spark")

Run = Callable[..., Outcome]
ROWS = [("a", "price < 10"), ("b", "price < 5"), ("c", "10 > price"), ("d", "company = 'IBM'")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return lines(tmp_path / "s.jsonl", [{"id": one, "filter": text} for one, text in ROWS])


def match(covey: Run, rules: Path, events: Path) -> list[dict[str, Any]]:
    done = covey("match", rules, events)
    assert done.rows
    return done.rows


@pytest.mark.long
def test_every_subscription_is_behind_one_row_of_the_smaller_table(
    covey: Run, table: Path, events: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    done = covey("spark", "compact", table, "-o", output, "--no-merging")
    assert (done.code, done.err) == (0, "")
    rows = pq.read_table(output).to_pylist()
    assert {row["id"]: sorted(row["stands_for"]) for row in rows} == {"a": ["a", "b", "c"], "d": ["d"]}
    assert done.out.splitlines() == [
        "step      before  after   left",
        "identity       4      3  75.0%",
        "covering       3      2  66.7%",
        f"written to {output}",
    ]
    smaller = lines(tmp_path / "smaller.jsonl", [{"id": row["id"], "filter": row["filter"]} for row in rows])
    behind = {row["id"]: set(row["stands_for"]) for row in rows}
    candidates = {
        row["event"]: set().union(*(behind[one] for one in row["subscriptions"]))
        for row in match(covey, smaller, events)
    }
    assert all(candidates[row["event"]] >= set(row["subscriptions"]) for row in match(covey, table, events))


@pytest.mark.long
def test_mergers_may_be_imperfect_by_a_profile_and_advertisements(
    covey: Run, table: Path, events: Path, tmp_path: Path
) -> None:
    profile, output = tmp_path / "p.profile", tmp_path / "out"
    assert covey("spark", "profile", events, table, "-o", profile).code == 0
    advertisements = lines(tmp_path / "a.jsonl", [{"filter": "price > 0"}])
    options = ["--profile", profile, "--imt", "0.5", "--advertisements", advertisements]
    done = covey("spark", "compact", table, "-o", output, *options)
    assert (done.code, done.err) == (0, "")
    assert "\nmerging up to 0.5 " in done.out
    behind = [one for row in pq.read_table(output).to_pylist() for one in row["stands_for"]]
    assert sorted(behind) == ["a", "b", "c", "d"]


def test_mistakes_are_one_line(covey: Run, table: Path, tmp_path: Path) -> None:
    flawed = lines(tmp_path / "flawed.jsonl", [{"id": "x", "filter": "price =>"}])
    (tmp_path / "there").mkdir()
    for said, arguments in {
        "--imt and --prune need --profile": [table, "-o", tmp_path / "p", "--imt", "0.1"],
        "'2' is not a number from 0 to 1": [table, "-o", tmp_path / "p", "--imt", "2"],
        "is there already": [table, "-o", tmp_path / "there"],
        "nope.jsonl": [tmp_path / "nope.jsonl", "-o", tmp_path / "p"],
        "nope.profile": [table, "-o", tmp_path / "p", "--profile", tmp_path / "nope.profile"],
        "1 subscriptions can't be read: x: ": [flawed, "-o", tmp_path / "p"],
    }.items():
        done = covey("spark", "compact", *arguments)
        assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
        assert said in done.err
    assert not (tmp_path / "p").exists()
