"""`covey spark stream`: batches as they come, with subscriptions that change, until it is told to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from covey.cli.spark.stream import Following
from covey.spark import read_matches
from tests.cli.conftest import Outcome, lines
from tests.spark.conftest import spark  # noqa: F401

pytestmark = pytest.mark.usefixtures("spark")

Run = Callable[..., Outcome]
OLD = 1_000_000_000


class Stream:
    """A stream in a directory, and what it has written."""

    def __init__(self, covey: Run, spark: SparkSession, folder: Path) -> None:  # noqa: F811
        self.covey, self.spark, self.folder = covey, spark, folder
        self.changes, self.events = folder / "changes", folder / "events"
        self.changes.mkdir()
        self.events.mkdir()

    def change(self, version: int, *rows: dict[str, Any]) -> None:
        lines(self.changes / f"{version}.jsonl", [{"version": version, **row} for row in rows])

    def quote(self, name: str, *prices: float) -> None:
        lines(self.events / f"{name}.jsonl", [{"price": price} for price in prices])

    def run(self, *options: object, subscriptions: Path | None = None) -> Outcome:
        return self.covey(
            "spark", "stream", subscriptions or self.changes, self.events, "-o", self.folder / "out",
            "--checkpoint", self.folder / "checkpoint", *options,
        )  # fmt: skip

    def found(self) -> set[tuple[float, tuple[str, ...], int]]:
        rows = read_matches(self.spark, self.folder / "out").collect()
        return {(row.price, tuple(sorted(row.subscriptions)), row.version) for row in rows}


@pytest.fixture
def stream(covey: Run, spark: SparkSession, tmp_path: Path) -> Stream:  # noqa: F811
    return Stream(covey, spark, tmp_path)


def test_a_stream_goes_on_from_its_checkpoint_with_newer_subscriptions(stream: Stream) -> None:
    stream.change(1, {"op": "add", "id": "ann", "filter": "price > 100"})
    stream.quote("a", 90.5, 120.5)
    first = stream.run("--once")
    assert (first.code, first.err) == (0, "")
    told = first.out.splitlines()
    assert told[0].startswith("batch 0: 2 events (")
    assert ", 1 matches (" in told[0]
    assert "version 1 (lag 0)" in told[0]
    assert told[1:] == ["done: 1 batch, 2 events, 1 matches, version 1"]
    stream.change(2, {"op": "add", "id": "bob", "filter": "price > 0"}, {"op": "remove", "id": "ghost", "filter": None})
    stream.quote("b", 130.5)
    second = stream.run("--once", "--events-schema", "price double")
    assert "batch 1: 1 events (" in second.out
    assert "1 bad changes" in second.out
    assert stream.found() == {(90.5, (), 1), (120.5, ("ann",), 1), (130.5, ("ann", "bob"), 2)}
    other = stream.run("--once", "--format", "pairs")
    assert (other.code, other.err.count("\n")) == (1, 1)
    assert "this checkpoint began with output='array', not 'pairs'" in other.err


def test_a_file_of_subscriptions_is_read_again_when_it_is_replaced(stream: Stream) -> None:
    rules = stream.folder / "rules.csv"
    rules.write_text("who,what\nann,price > 100\nbob,price > 0\n")
    os.utime(rules, (OLD, OLD))
    stream.quote("a", 120.5)
    options = ("--once", "--id", "who", "--filter", "what")
    assert stream.run(*options, subscriptions=rules).code == 0
    rules.write_text("who,what\nann,price > 200\nbob,price > 0\n")
    os.utime(rules, (OLD + 1, OLD + 1))
    stream.quote("b", 130.5)
    assert stream.run(*options, subscriptions=rules).code == 0
    assert stream.found() == {(120.5, ("ann", "bob"), OLD * 1000), (130.5, ("bob",), OLD * 1000 + 1000)}


def test_an_interrupt_ends_the_stream_after_the_batch_under_way(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Following.hear

    def hear(self: Following, report: Any) -> None:
        heard(self, report)
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()

    monkeypatch.setattr(Following, "hear", hear)
    before = signal.getsignal(signal.SIGINT)
    stream.change(1, {"op": "add", "id": "ann", "filter": "price > 100"})
    stream.quote("a", 120.5)
    done = stream.run("--trigger", "0.5")
    assert done.code == 130
    assert done.out.startswith("batch 0: 1 events")
    assert done.err == (
        "covey: stopped after 1 batch, 1 events, 1 matches, version 1; the same command goes on from there\n"
    )
    assert signal.getsignal(signal.SIGINT) is before
    assert stream.spark.streams.active == []
    assert stream.found() == {(120.5, ("ann",), 1)}
    assert [path for path in (stream.folder / "out").iterdir() if path.name.startswith("_writing")] == []


def test_an_error_of_the_stream_is_one_line(stream: Stream) -> None:
    stream.change(1, {"op": "add", "id": "ann", "filter": "price >"})
    stream.quote("a", 120.5)
    done = stream.run("--once", "--on-error", "raise")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("covey: 1 changes of subscriptions can't be applied: 1.jsonl, row 1, id 'ann': ")
    assert done.err.endswith("(at character 8 of the filter)\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["ghost", "events"], "ghost: No such file or directory"),
        (["x.covey", "events"], "a stream takes rows of subscriptions, not a saved index"),
        (["changes", "ghost"], "ghost: not a directory"),
        (["changes", "empty"], "empty: no files yet to tell what events hold; say it with --events-schema"),
        (["changes", "events", "--once", "--trigger", "1"], "not allowed with argument"),
        (["changes", "events", "--trigger", "0"], "'0' is not a number of seconds"),
        (["changes", "events", "--trigger", "soon"], "'soon' is not a number of seconds"),
        (["changes", "events", "--remote", "sc://x"], "--remote is not an option here"),
        (["changes", "events", "-o", "s3://bucket/x"], "output and checkpoint are directories"),
    ],
)
def test_a_mistake_is_one_line(stream: Stream, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str) -> None:
    monkeypatch.chdir(stream.folder)
    stream.quote("a", 1.5)
    (stream.folder / "empty").mkdir()
    done = stream.covey("spark", "stream", "-o", "out", "--checkpoint", "checkpoint", *options)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert done.err.count("\n") == 1
