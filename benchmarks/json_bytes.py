"""`python -m benchmarks.json_bytes [--write]`: events as bytes beside columns and dicts, and what terms cost.

All on `conj` with 100,000 subscriptions: the same events as an Arrow table, as lines of JSON, through `covey match`,
and one by one; then with one arithmetic term in every rule, out of 100 distinct ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import sections
from benchmarks.report import figure
from benchmarks.workloads import dictionaries, generate

RUNS = 4
SINGLE = 20_000
TERMS = 100
FORMS = (
    "price * {a} + volume / {b}", "price - volume * 0.{a}{b}", "(price + {a}.5) * {b}", "volume + {a} * price - {b}",
)  # fmt: skip


def main(arguments: list[str]) -> None:
    """Measure, and print or write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.json_bytes", description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=524_288)
    parser.add_argument("--write", action="store_true", help="put the section into docs/benchmarks.md")
    options = parser.parse_args(arguments)
    text = measure(options.subscriptions, options.events)
    if options.write:
        sections.write(
            "bytes", "Events as bytes, and terms", ["python", "-m", "benchmarks.json_bytes", *arguments], text
        )
    else:
        print(text)


def measure(count: int, events: int) -> str:
    """The section."""
    import covey

    workload = generate("conj", count, events)
    decoded = dictionaries(workload.events)
    lines = [json.dumps(event | _filler(number)).encode() for number, event in enumerate(decoded)]
    data = b"\n".join(lines)
    index = covey.Index()
    index.add_many(workload.subscriptions)
    rows = [("an Arrow table, `match_batch`", _rate(lambda: index.match_batch(workload.events), events))]
    rows.append(
        ("lines of JSON with ten attributes, `match_json_lines`", _rate(lambda: index.match_json_lines(data), events))
    )
    rows.append(("the same through `covey match` into a file", _command(index, data, events)))
    single = [
        ("a dict of ten attributes, `match`", _p50(index.match, list(map(json.loads, lines[:SINGLE])))),
        ("a dict of the three that rules name, `match`", _p50(index.match, decoded[:SINGLE])),
        ("JSON of ten attributes, `match_json`", _p50(index.match_json, lines[:SINGLE])),
        (
            "JSON of those three, `match_json`",
            _p50(index.match_json, [json.dumps(d).encode() for d in decoded[:SINGLE]]),
        ),
    ]
    with_terms = covey.Index()
    start = time.perf_counter()
    with_terms.add_many(_with_terms(workload.subscriptions))
    loaded = count / (time.perf_counter() - start)
    rows.append(
        (
            f"an Arrow table, one of {TERMS} terms in each rule",
            _rate(lambda: with_terms.match_batch(workload.events), events),
        )
    )
    text = ["| events as | events/s |", "|---|---:|", *(f"| {name} | {figure(rate)} |" for name, rate in rows)]
    text += ["", "| one event as | p50 µs |", "|---|---:|", *(f"| {name} | {figure(p50)} |" for name, p50 in single)]
    text += ["", f"Rules with terms load at {figure(loaded)} a second."]
    return "\n".join(text)


def _filler(number: int) -> dict[str, Any]:
    """Seven attributes that no rule names."""
    return {
        "id": number, "venue": "XNYS", "currency": "USD", "bid": 1.25, "ask": 1.5, "open": True, "note": "as reported",
    }  # fmt: skip


def _with_terms(subscriptions: list[tuple[str, str]]) -> list[tuple[str, str]]:
    rng = np.random.default_rng(7)
    numbers = rng.integers(0, TERMS, len(subscriptions)).tolist()
    bounds = np.round(rng.uniform(-100_000, 20_000, len(subscriptions)), 2).tolist()
    terms = [FORMS[n % len(FORMS)].format(a=n // 10 + 1, b=n % 10 + 2) for n in range(TERMS)]
    return [
        (id, f"{text} AND {terms[n]} > {bound}")
        for (id, text), n, bound in zip(subscriptions, numbers, bounds, strict=True)
    ]


def _rate(call: Callable[[], Any], events: int) -> float:
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        len(call())
        best = min(best, time.perf_counter() - start)
    return events / best


def _command(index: Any, data: bytes, events: int) -> float:
    """Events a second of `covey match`, less what it takes for one event: starting doesn't count."""
    with tempfile.TemporaryDirectory() as directory:
        at = Path(directory)
        index.save(at / "rules.covey")
        (at / "all.jsonl").write_bytes(data)
        (at / "one.jsonl").write_bytes(data[: data.index(b"\n")])
        times = {}
        for name in ("one", "all"):
            command = [str(Path(sys.executable).with_name("covey")), "match", "rules.covey", f"{name}.jsonl"]
            best = float("inf")
            for _ in range(2):
                with (at / "out").open("wb") as out:
                    start = time.perf_counter()
                    subprocess.run(command, stdout=out, check=True, cwd=directory)
                    best = min(best, time.perf_counter() - start)
            times[name] = best
    return events / (times["all"] - times["one"])


def _p50(call: Callable[[Any], Any], given: list[Any]) -> float:
    times = []
    for event in given:
        start = time.perf_counter()
        call(event)
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e6


if __name__ == "__main__":
    main(sys.argv[1:])
