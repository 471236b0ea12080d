"""The baseline without an index: every subscription compiled to a Python lambda, all called for every event.

Negations are pushed down to the predicates. What is left is monotone, so that "unknown" may count as false, and
SQL's three-valued logic needs no more than a test for None where an attribute can be missing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Event = tuple[object, ...]
Filter = Callable[[Event], bool]
NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
CHUNK = 1000


class Compiler:
    """Trees to Python expressions over a tuple `e` of an event's values."""

    def __init__(self, attributes: list[str], events: list[dict[str, object]]) -> None:
        self.position = {name: i for i, name in enumerate(attributes)}
        self.optional = {name for name in attributes if any(name not in event for event in events)}

    def expression(self, tree: list[Any], negated: bool = False) -> str:
        kind = tree[0]
        if kind == "not":
            return self.expression(tree[1], not negated)
        if kind in ("and", "or"):
            joint = " and " if (kind == "and") != negated else " or "
            return "(" + joint.join(self.expression(child, negated) for child in tree[1:]) + ")"
        value = f"e[{self.position[tree[1]]}]"
        test = self.predicate(tree, value, negated)
        return f"({value} is not None and {test})" if tree[1] in self.optional else test

    def predicate(self, tree: list[Any], value: str, negated: bool) -> str:
        kind = tree[0]
        if kind == "cmp":
            operator = NEGATED[tree[2]] if negated else tree[2]
            return f"{value} {'==' if operator == '=' else operator} {tree[3]!r}"
        if kind == "between":
            inside = f"{tree[2]!r} <= {value} <= {tree[3]!r}"
            return f"not {inside}" if negated else inside
        word = "not in" if negated else "in"
        if kind == "in":
            return f"{value} {word} {tuple(tree[2])!r}"
        if kind == "icontains":
            return f"{tree[2].lower()!r} {word} {value}.lower()"
        return f"{tree[2]!r} {word} {value}" if kind == "contains" else f"{value} {word} {tree[2]!r}"


def load(path: Path, compiler: Compiler, limit: float) -> list[Filter] | None:
    """The compiled filters, or None when they took longer than the limit."""
    deadline = time.perf_counter() + limit
    filters: list[Filter] = []
    chunk: list[str] = []
    with path.open() as lines:
        for line in lines:
            chunk.append("lambda e: " + compiler.expression(json.loads(line)["tree"]))
            if len(chunk) == CHUNK:
                filters += eval("[" + ",\n".join(chunk) + "]")
                chunk = []
                if time.perf_counter() > deadline:
                    return None
    filters += eval("[" + ",\n".join(chunk) + "]")
    return filters


def match(filters: list[Filter], event: Event) -> list[int]:
    return [i for i, accepts in enumerate(filters) if accepts(event)]


def latencies(filters: list[Filter], events: list[Event], limit: float) -> tuple[list[float], int]:
    """Seconds of each event until the limit, and the matches."""
    times: list[float] = []
    matches = 0
    stop = time.perf_counter() + limit
    for event in events:
        start = time.perf_counter()
        matches += len(match(filters, event))
        end = time.perf_counter()
        times.append(end - start)
        if end > stop:
            break
    return times, matches


# The children inherit these by fork: a lambda cannot be pickled.
_filters: list[Filter] = []
_events: list[Event] = []


def _count(bounds: tuple[int, int]) -> int:
    return sum(len(match(_filters, event)) for event in _events[bounds[0] : bounds[1]])


def two_processes(filters: list[Filter], events: list[Event], limit: float) -> float:
    """Seconds for all events in two processes, the best of at most three."""
    _filters[:] = filters
    _events[:] = events
    step = max(1, len(events) // 16)
    parts = [(at, min(at + step, len(events))) for at in range(0, len(events), step)]
    best = float("inf")
    stop = time.perf_counter() + limit
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(_count, [(0, 0)] * 2)
        for _ in range(3):
            start = time.perf_counter()
            pool.map(_count, parts, chunksize=1)
            end = time.perf_counter()
            best = min(best, end - start)
            if end > stop:
                break
    return best


def resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--load-limit", type=float, default=120)
    parser.add_argument("--match-limit", type=float, default=20)
    options = parser.parse_args()
    attributes = list(json.loads((options.directory / "schema.json").read_text())["attributes"])
    raw = [json.loads(line) for line in (options.directory / "events.jsonl").open()]
    events = [tuple(event.get(name) for name in attributes) for event in raw]
    before = resident()
    start = time.perf_counter()
    filters = load(options.directory / "subscriptions.jsonl", Compiler(attributes, raw), options.load_limit)
    load_seconds = time.perf_counter() - start
    if filters is None:
        print(json.dumps({"peer": "lambdas", "error": f"could not load in {options.load_limit:.0f} s"}))
        sys.exit()
    rss = resident() - before
    times, matches = latencies(filters, events, options.match_limit / 2)
    done = len(times)
    seconds = two_processes(filters, events[:done], options.match_limit / 2)
    times.sort()
    print(
        json.dumps(
            {
                "peer": "lambdas",
                "version": f"Python {platform.python_version()}",
                "load_seconds": load_seconds,
                "rss_bytes": rss,
                "events": done,
                "matches": matches,
                "seconds": seconds,
                "events_per_second": done / seconds,
                "p50_us": times[done // 2] * 1e6,
                "p99_us": times[min(done - 1, done * 99 // 100)] * 1e6,
            }
        )
    )


if __name__ == "__main__":
    main()
