"""`python -m benchmarks.sigma [--write]`: Sigma rules by the thousand on JSON lines, beside rsigma, as a section."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import sections
from benchmarks.report import figure
from benchmarks.sigma import rsigma, workload

SIZES = (3_000, 30_000, 300_000)
EVENTS = 20_000
SINGLE_EVENTS = 3_000
RUNS = 3
MEANT_FOR = 10
"""Events are meant for the first so many copies, which are there at every size."""


def main(arguments: list[str]) -> None:
    """Measure, and print or write the section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sigma", description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of rules")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--peers-up-to", type=int, default=3_000, help="rsigma is not tried with more rules than this")
    parser.add_argument("--peer-limit", type=float, default=120, help="seconds for one run of rsigma")
    parser.add_argument("--write", action="store_true", help="put the section into docs/benchmarks.md")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    base = workload.base_rules()
    if not base:
        print("SigmaHQ's rules aren't on this machine: name their directory in COVEY_SUITES", file=sys.stderr)
        return
    events = workload.events(options.events, MEANT_FOR)
    if options.one is not None:
        print(json.dumps(covey_on(base, options.one, events)))
        return
    results = [_run(base, int(size), events, options) for size in options.sizes.split(",")]
    text = table(results, events)
    if options.write:
        command = ["python", "-m", "benchmarks.sigma", *arguments]
        _keep_for_the_plot(results)
        sections.write("sigma", "Sigma rules, from JSON lines", command, text)
    else:
        print(text)


def _keep_for_the_plot(results: list[dict[str, Any]]) -> None:
    path = sections.ROOT / "benchmarks" / "results.json"
    kept = json.loads(path.read_text())
    kept["sigma"] = [
        {
            "workload": "sigma",
            "subscriptions": run["rules"],
            "results": [
                {"peer": peer, "events_per_second": figures["events_per_second"]}
                for peer, figures in (("covey", run), ("rsigma", run.get("peer", {})))
                if "events_per_second" in figures
            ],
        }
        for run in results
    ]
    path.write_text(json.dumps(kept, indent=1) + "\n")


def _run(base: list[workload.Rule], size: int, events: list[str], options: argparse.Namespace) -> dict[str, Any]:
    # A process of its own, as every engine has: what the size before left doesn't count.
    command = [sys.executable, "-m", "benchmarks.sigma", "--one", str(size), "--events", str(options.events)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
    print(f"sigma {size:,}: {found['events_per_second']:,.0f} events/s", file=sys.stderr, flush=True)
    if size <= options.peers_up_to:
        with tempfile.TemporaryDirectory() as directory:
            rules = Path(directory) / "rules"
            rules.mkdir()
            workload.write_rules(rules, base, size)
            found["peer"] = rsigma.measure(rules, events, Path(directory), options.peer_limit)
        same = found["peer"].get("matched") == found["matched"]
        if "matched" in found["peer"] and not same:
            ours, theirs = sum(found["matched"].values()), sum(found["peer"]["matched"].values())
            found["peer"] = {"peer": "rsigma", "wrong": f"{theirs:,} matches instead of {ours:,}"}
    return found


def covey_on(base: list[workload.Rule], size: int, events: list[str]) -> dict[str, Any]:
    """covey's figures."""
    import covey

    rules = [(str(number), sql) for number, (_, _, sql) in enumerate(workload.copies(base, size))]
    lines = [event.encode() for event in events]
    data = b"\n".join(lines)
    small = covey.Index()
    small.add_many(rules[:300])
    small.match_json_lines(data)
    small.match_json(lines[0])
    start = time.perf_counter()
    index = covey.Index()
    index.add_many(rules)
    index.match_json_lines(lines[0])
    found: dict[str, Any] = {"rules": size, "load_seconds": time.perf_counter() - start}
    for name, threads in (("events_per_second", 2), ("one_thread", 1)):
        best, cpu = float("inf"), float("inf")
        for _ in range(RUNS):
            start, began = time.perf_counter(), time.process_time()
            matches = index.match_json_lines(data, threads=threads)
            cpu = min(cpu, time.process_time() - began)
            best = min(best, time.perf_counter() - start)
        found |= {name: len(lines) / best, "cpu_us": cpu / len(lines) * 1e6}
    matched = Counter(int(id) for ids in matches.to_pylist() for id in ids)
    found["matched"] = {str(rule): times for rule, times in sorted(matched.items())}
    stats = index.stats()
    found |= {"swept": stats.swept, "bytes": stats.bytes / size}
    decoded = [json.loads(line) for line in lines[:SINGLE_EVENTS]]
    for name, call, given in (("json", index.match_json, lines[:SINGLE_EVENTS]), ("dict", index.match, decoded)):
        found |= {f"{name}_{key}": value for key, value in _latencies(call, given).items()}
    return found


def _latencies(call: Any, given: list[Any]) -> dict[str, float]:
    for event in given[:100]:
        call(event)
    times = []
    for event in given:
        start = time.perf_counter()
        call(event)
        times.append(time.perf_counter() - start)
    times.sort()
    return {"p50": times[len(times) // 2] * 1e6, "p99": times[len(times) * 99 // 100] * 1e6}


HEADER = (
    "rules", "engine", "build s", "bytes a rule", "events/s", "events/s, one thread", "processor µs an event",
    "one event, JSON, p50 µs", "p99 µs", "from a dict, p50 µs", "times rsigma per core",
)  # fmt: skip


def table(results: list[dict[str, Any]], events: list[str]) -> str:
    """The section."""
    average = sum(map(len, events)) / len(events)
    lines = [
        f"SigmaHQ's rules, multiplied by exchanging letters, on {len(events):,} events of {average:,.0f} bytes on "
        "average, half of which are meant for no rule. rsigma runs on one thread, and its time is that of all events "
        "less that of one; its matches are covey's, rule by rule.\n",
        "| " + " | ".join(HEADER) + " |",
        "|---:|---|" + "---:|" * (len(HEADER) - 2),
    ]
    for run in results:
        peer = run.get("peer", {})
        ratio = f"{figure(peer['cpu_us'] / run['cpu_us'])}×" if "cpu_us" in peer else ""
        cells = [
            f"{run['rules']:,}", "covey", figure(run["load_seconds"]), figure(run["bytes"]),
            figure(run["events_per_second"]), figure(run["one_thread"]), figure(run["cpu_us"]),
            figure(run["json_p50"]), figure(run["json_p99"]), figure(run["dict_p50"]), ratio,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
        if "cpu_us" in peer:
            cells = [
                f"{run['rules']:,}", "rsigma", figure(peer["load_seconds"]), "", "",
                figure(peer["events_per_second"]), figure(peer["cpu_us"]), "", "", "", "",
            ]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
    for run in results:
        for key in ("skipped", "error", "wrong"):
            if key in run.get("peer", {}):
                lines.append(f"\nrsigma ({run['rules']:,}): {run['peer'][key]}.")
    per_event = ", ".join(f"{sum(run['matched'].values()) / len(events):,.2f} at {run['rules']:,}" for run in results)
    swept = ", ".join(f"{run['swept']:,} of {run['rules']:,}" for run in results)
    lines.append(f"\nMatches an event: {per_event}. Swept, for lack of a literal: {swept}.")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
