"""Of rows with one id the first counts, whoever reads them, and all say so in the same words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from covey import Index
from tests.cli.conftest import Outcome, lines
from tests.spark.conftest import spark  # noqa: F401

Run = Callable[..., Outcome]

ROWS = [
    {"id": "late", "filter": "price > 100"},
    {"id": "twice", "filter": "price < 10"},
    {"id": "twice", "filter": "price < 1"},
    {"id": "broken", "filter": "price <"},
    {"id": "broken", "filter": "price = 5"},
    {"id": "twice", "filter": "price BETWEEN 1 AND 90"},
]
WORDS = "subscription 'twice' stands in an earlier row too, and the first counts"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return lines(tmp_path / "rules.jsonl", ROWS)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return lines(tmp_path / "events.jsonl", [{"price": price} for price in (5, 50, 500)])


@pytest.mark.parametrize("name", ["skip", "collect"])
def test_the_library_keeps_the_first(name: str) -> None:
    index = Index()
    report = index.add_many([(row["id"], row["filter"]) for row in ROWS], on_error=name)  # type: ignore[arg-type]
    assert dict(index.rows()) == {"late": "price > 100", "twice": "price < 10"}
    assert [str(bad.error) for bad in report.errors if bad.id == "twice"] == [WORDS] * 2


def test_the_command_line_keeps_the_first(covey: Run, rules: Path, events: Path) -> None:
    done = covey("match", rules, events, "--on-error", "skip")
    assert done.rows == [
        {"event": 0, "subscriptions": ["twice"]},
        {"event": 2, "subscriptions": ["late"]},
    ]
    assert done.err.count(f"line 3: {WORDS}\n") == 1
    assert done.err.count(WORDS) == 2


def test_compact_skips_the_others(covey: Run, rules: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.parquet"
    done = covey("compact", rules, "-o", small, "--on-error", "skip", "--no-merging")
    assert done.code == 0
    assert done.err.count(WORDS) == 2
    assert pq.read_table(small).to_pydict()["filter"] == ["price > 100", "price < 10"]


def test_check_names_the_row_that_counts(covey: Run, rules: Path) -> None:
    assert f"the id stands in {rules} line 2 too, and the first counts" in covey("check", rules).out


@pytest.mark.usefixtures("spark")
def test_spark_keeps_the_first_in_the_same_words(covey: Run, rules: Path, events: Path, tmp_path: Path) -> None:
    local = covey("match", rules, events, "--on-error", "skip")
    done = covey("spark", "match", rules, events, "-o", tmp_path / "out", "--on-error", "skip")
    assert done.code == 0
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted((row["price"], row["subscriptions"]) for row in found) == [(5, ["twice"]), (500, ["late"])]
    assert _words(done.err) == _words(local.err)


def _words(said: str) -> list[str]:
    """What is said of each subscription, without where it stands."""
    return sorted(line.partition("subscription ")[2] for line in said.splitlines() if "subscription '" in line)
