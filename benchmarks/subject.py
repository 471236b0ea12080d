"""covey on the benchmark's files, in a process of its own like every peer; prints one JSON line.

Beyond the peers' contract it reports `bytes_per_subscription` (the saved file) and `open_seconds`. Numba compiles
kernels on first use, which the peers had done before they started, so a small index of the same workload is built
and matched first, outside every clock. Building is timed until the first event has been matched, so that work put
off by `add_many` is counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from benchmarks.workloads import dictionaries

WARM_UP_SUBSCRIPTIONS = 5000  # enough for the bulk parser's kernel to be used
BATCH_MATCHES = 60_000_000  # bounds the memory of one result
BATCH_RUNS_AT_LEAST = 3
OPEN_RUNS = 5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--load-limit", type=float, default=120)
    parser.add_argument("--match-limit", type=float, default=20)
    options = parser.parse_args()
    try:
        import covey
    except ImportError as problem:
        print(json.dumps({"peer": "covey", "skipped": f"not importable: {problem}"}))
        return
    print(json.dumps({"peer": "covey", "version": _version()} | measure(covey, options)))


def measure(covey: Any, options: argparse.Namespace) -> dict[str, float]:
    """All figures of one workload; `covey` is the imported package."""
    with pa.ipc.open_file(str(options.directory / "events.arrow")) as reader:
        events = reader.read_all()
    subscriptions = _subscriptions(options.directory / "subscriptions.jsonl")
    with (options.directory / "events.jsonl").open() as lines:
        checked = sum(1 for _ in lines)
    _warm_up(covey, subscriptions, events.slice(0, checked))
    before = resident()
    start = time.perf_counter()
    index = covey.Index(semantics="sql")
    index.add_many(subscriptions)
    index.match_batch(events.slice(0, 1))
    built = time.perf_counter() - start
    figures = {"load_seconds": built, "rss_bytes": resident() - before}
    figures |= _storage(covey, index, len(subscriptions))
    figures |= _batch(index, events, checked, options.match_limit / 2)
    return figures | _single(index, dictionaries(events.slice(0, checked)), options.match_limit / 2)


def resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _version() -> str:
    try:
        return f"covey {version('covey')}"
    except PackageNotFoundError:
        return "covey (source tree)"


def _subscriptions(path: Path) -> list[tuple[str, str]]:
    with path.open() as lines:
        return [(row["id"], row["filter"]) for row in map(json.loads, lines)]


def _warm_up(covey: Any, subscriptions: list[tuple[str, str]], events: pa.Table) -> None:
    index = covey.Index(semantics="sql")
    index.add_many(list(islice(subscriptions, WARM_UP_SUBSCRIPTIONS)))
    len(index.match_batch(events))
    index.match(dictionaries(events.slice(0, 1))[0])


def _storage(covey: Any, index: Any, n: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "index.covey"
        index.save(str(path))
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        best = float("inf")
        for _ in range(OPEN_RUNS):
            start = time.perf_counter()
            covey.Index.open(str(path))
            best = min(best, time.perf_counter() - start)
    return {"bytes_per_subscription": size / n, "open_seconds": best}


def _batch(index: Any, events: pa.Table, checked: int, limit: float) -> dict[str, float]:
    """Throughput on all events that a result has room for; the total is told for the first `checked` ones alone."""
    matches = len(index.match_batch(events.slice(0, checked)))
    room = int(BATCH_MATCHES / max(matches / checked, 1e-9))
    batch = events.slice(0, max(checked, min(events.num_rows, room)))
    stop = time.perf_counter() + limit
    best, runs, found = float("inf"), 0, 0
    while runs < BATCH_RUNS_AT_LEAST or (runs < 10 and time.perf_counter() < stop):
        start = time.perf_counter()
        found = len(index.match_batch(batch))
        best = min(best, time.perf_counter() - start)
        runs += 1
        if runs == 1 and best > 4 * limit:
            print(f"one batch took {best:.0f} s: measured once", file=sys.stderr)
            break
    return {
        "events": checked,
        "matches": matches,
        "batch_events": batch.num_rows,
        "batch_matches": found,
        "seconds": best,
        "events_per_second": batch.num_rows / best,
        "matches_per_second": found / best,
    }


def _single(index: Any, events: list[dict[str, object]], limit: float) -> dict[str, float]:
    times: list[float] = []
    matches = 0
    stop = time.perf_counter() + limit
    for event in events:
        start = time.perf_counter()
        found = index.match(event)
        end = time.perf_counter()
        times.append(end - start)
        matches += len(found)
        if end > stop:
            break
    done = len(times)
    times.sort()
    return {
        "single_events": done,
        "single_matches": matches,
        "p50_us": times[done // 2] * 1e6,
        "p99_us": times[min(done - 1, done * 99 // 100)] * 1e6,
    }


if __name__ == "__main__":
    main()
