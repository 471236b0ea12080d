"""A driver that is killed with `kill -9`, again and again, and started again from its checkpoint: every event stands in
the sink once, with what the plain interpreter says of it under the version in its row."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow.parquet as pq

from covey.filters import matches
from covey.language import parse

pytestmark = pytest.mark.long  # a driver and its JVM are started eleven times

DRIVER = Path(__file__).with_name("stream_driver.py")
FILES = 9
EVENTS_A_FILE = 30
VERSIONS = 24


def make(work: Path) -> tuple[dict[int, dict[str, Any]], list[dict[str, Any]]]:
    """Events and changes, on disk and as rows."""
    random_ = random.Random(7)
    for name in ("events", "pending", "changes"):
        (work / name).mkdir()
    events: dict[int, dict[str, Any]] = {}
    for file in range(FILES):
        rows = []
        for _ in range(EVENTS_A_FILE):
            event = {"n": len(events), "price": random_.choice([None, random_.uniform(0, 100)]),
                     "symbol": random_.choice("abcd"), "volume": random_.randrange(1000)}  # fmt: skip
            events[len(events)] = event
            rows.append(event)
        path = work / "events" / f"{file}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))  # Spark reads the oldest first

    def condition() -> str:
        number, symbol = random_.randrange(100), random_.choice("abcd")
        return random_.choice([
            f"price > {number}", f"symbol = '{symbol}' AND volume < {10 * number}", "price IS NULL",
            f"NOT (price < {number}) OR symbol IN ('a', '{symbol}')", f"volume >= {10 * number}",
        ])  # fmt: skip

    changes = [{"version": 1, "op": "add", "id": f"s{one}", "filter": condition()} for one in range(60)]
    living = [change["id"] for change in changes]
    for version in range(2, VERSIONS + 1):
        random_.shuffle(living)
        gone, other = living[:2], living[2:8]
        fresh = [f"s{version}-{one}" for one in range(3)]
        changes += [{"version": version, "op": "remove", "id": id, "filter": None} for id in gone]
        changes += [{"version": version, "op": "replace", "id": id, "filter": condition()} for id in other]
        changes += [{"version": version, "op": "add", "id": id, "filter": condition()} for id in fresh]
        changes.append({"version": version, "op": "add", "id": f"bad{version}", "filter": "price >"})
        living = living[2:] + fresh
    for version in range(1, VERSIONS + 1):
        rows = [change for change in changes if change["version"] == version]
        (work / "pending" / f"{version:03}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return events, changes


def subscriptions_at(version: int, changes: list[dict[str, Any]]) -> dict[str, str]:
    """All subscriptions of a version, straight from the rows."""
    found: dict[str, str] = {}
    for change in changes:
        if change["version"] > version or change["id"].startswith("bad"):
            continue
        if change["op"] == "remove":
            del found[change["id"]]
        else:
            found[change["id"]] = change["filter"]
    return found


def drive(work: Path, point: str | None = None, batch: int = -1, *, group: bool = False, connect: bool = False) -> str:
    """Run the driver; with a point, kill it there, by its pid alone or together with its JVM."""
    arguments = [sys.executable, str(DRIVER), str(work), *([point, str(batch)] if point else [])]
    arguments += ["--connect"] if connect else []
    said = ""
    with (work / "stderr.txt").open("w+") as errors:
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            cwd=DRIVER.parents[2],
        )  # fmt: skip
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if line.startswith("at "):
                    (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
                    break
            code = process.wait(60)
        finally:
            if process.poll() is None:
                process.kill()
        if point:
            assert code == -signal.SIGKILL, (work / "stderr.txt").read_text()[-3000:]
        else:
            assert code == 0, (work / "stderr.txt").read_text()[-3000:]
    return said


def rows_of(sink: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for directory in sink.glob("batch=*"):
        batch = int(directory.name.removeprefix("batch="))
        for name in json.loads((directory / "_manifest.json").read_bytes())["files"]:
            rows += [{**row, "batch": batch} for row in pq.read_table(directory / name, partitioning=None).to_pylist()]
    return rows


def check(
    work: Path, events: dict[int, dict[str, Any]], changes: list[dict[str, Any]], batches: int | None = FILES
) -> list[int]:
    """Everything once, under the version stated; the versions of the batches.

    Spark notes a file that it will read, then the batch that reads it. A driver that is killed between the two finds
    the file noted, takes the next one too, and makes one batch of both: `batches=None` where that may have been.
    """
    rows = rows_of(work / "sink")
    assert sorted(row["n"] for row in rows) == sorted(events)
    versions: dict[int, int] = {}
    parsed: dict[int, list[tuple[str, Any]]] = {}
    for row in rows:
        version = row["version"]
        assert versions.setdefault(row["batch"], version) == version
        if version not in parsed:
            parsed[version] = [(id, parse(text)) for id, text in subscriptions_at(version, changes).items()]
        event = {name: value for name, value in events[row["n"]].items() if value is not None}
        expected = sorted(id for id, condition in parsed[version] if matches(condition, event))
        assert sorted(row["subscriptions"]) == expected
    in_order = [version for _, version in sorted(versions.items())]
    assert sorted(versions) == list(range(len(versions)))
    assert batches is None or len(versions) == batches
    assert in_order == sorted(in_order)
    return in_order


def test_a_stream_that_is_killed_at_every_step_matches_each_event_once(tmp_path: Path) -> None:
    events, changes = make(tmp_path)
    notes = tmp_path / "checkpoint" / "covey" / "batches"
    decided: dict[int, int] = {}
    kills = [("decided", 0, False), ("saved", 1, True), ("writing", 1, False), ("written", 3, True),
             ("between", 4, True), ("committed", 6, False)]  # fmt: skip
    for point, batch, group in kills:
        drive(tmp_path, point, batch, group=group)
        committed = (tmp_path / "sink" / f"batch={batch}").exists()
        assert committed == (point in ("committed", "between"))
        for note in notes.glob("*.json"):
            version = json.loads(note.read_bytes())["version"]
            assert decided.setdefault(int(note.stem), version) == version
    said = drive(tmp_path)
    assert "replayed" in said
    assert "lag 1" in said  # newer changes were there, and the replayed batch left them alone
    in_order = check(tmp_path, events, changes)
    assert all(in_order[batch] == version for batch, version in decided.items())
    assert len(set(in_order)) == FILES
    assert not list((tmp_path / "sink").glob("_writing-*"))


def test_a_stream_that_is_killed_at_any_moment_matches_each_event_once(tmp_path: Path) -> None:
    events, changes = make(tmp_path)
    random_ = random.Random(11)
    arguments = [sys.executable, str(DRIVER), str(tmp_path)]
    for _ in range(2):
        with (tmp_path / "stderr.txt").open("w") as errors:
            process = subprocess.Popen(
                arguments, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
                cwd=DRIVER.parents[2],
            )  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()  # the first batch of this run is done
            time.sleep(random_.uniform(0.0, 1.2))
            os.kill(process.pid, signal.SIGKILL)
            process.wait(60)
            process.stdout.close()
    drive(tmp_path)
    check(tmp_path, events, changes, batches=None)


LATE = """
import os, sys, time
late = os.path.join(os.path.dirname(__file__), "late")
if any("foreach_batch_worker" in part for part in sys.orig_argv) and not os.path.exists(late):
    open(late, "w").close()
    time.sleep(15)
"""
"""Python as on a machine that is busy: it comes up later than Spark waits for it, once."""


def test_a_stream_runs_on_spark_connect_though_python_comes_up_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc")
    events, changes = make(tmp_path)
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(LATE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "slow"))
    drive(tmp_path, connect=True)
    assert (tmp_path / "slow" / "late").exists()
    check(tmp_path, events, changes)
