"""`python -m benchmarks`: run covey and its peers, keep the results, write the page."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import engines, machine, oracle, report
from benchmarks.workloads import GENERATORS, generate, write

HERE = Path(__file__).parent
# Nearly half of the subscriptions match each of `paper`'s events: more events would only repeat the writing out.
MOST_EVENTS = {"paper": 1000}
# covey matches in batches, so its throughput is taken on more events than the peers and the oracle can go through.
BATCH_EVENTS = {"paper": 2048, "ads": 32_768, "range": 131_072, "range-narrow": 131_072, "bool": 262_144}
MOST_BATCH_EVENTS = 524_288
# The oracle evaluates every subscription on every checked event.
MOST_CHECKS = 1_000_000_000


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--workloads", default=",".join(GENERATORS), help="comma-separated; default: all")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000", help="numbers of subscriptions")
    parser.add_argument("--peers", default=",".join(engines.peers()), help="comma-separated; default: all there are")
    parser.add_argument("--events", type=int, default=10_000, help="events that peers match and totals are checked on")
    parser.add_argument(
        "--peers-up-to", type=int, default=100_000, help="peers are not tried with more subscriptions than this"
    )
    parser.add_argument("--append", action="store_true", help="keep the runs that the results file has")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load-limit", type=float, default=120, help="seconds for loading subscriptions")
    parser.add_argument("--match-limit", type=float, default=20, help="seconds for matching")
    parser.add_argument(
        "--quick", action="store_true", help="1,000 and 10,000 subscriptions, 1,000 events, short limits"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"), help="the page")
    parser.add_argument("--results", type=Path, default=HERE / "results.json", help="the figures, for rendering again")
    parser.add_argument("--render", action="store_true", help="only render the page from the kept results")
    options = parser.parse_args(arguments)
    if options.quick:
        options.sizes, options.events, options.match_limit = "1000,10000", 1000, 4
    options.workloads = [name for name in options.workloads.split(",") if name]
    options.sizes = sorted(int(size) for size in options.sizes.split(","))
    options.peers = [name for name in options.peers.split(",") if name]
    for name in set(options.workloads) - set(GENERATORS):
        parser.error(f"no workload {name!r}; there are {', '.join(GENERATORS)}")
    for name in set(options.peers) - set(engines.peers()):
        parser.error(f"no peer {name!r}; there are {', '.join(engines.peers())}")
    return options


def say(text: str) -> None:
    """Progress, apart from the results."""
    print(text, file=sys.stderr, flush=True)


def run_size(name: str, size: int, options: argparse.Namespace, dropped: dict[str, str]) -> dict[str, Any]:
    """All engines on one workload of one size. `dropped` holds peers that failed a smaller size, and why."""
    events = min(options.events, MOST_EVENTS.get(name, options.events), MOST_CHECKS // size)
    batch = events if options.quick else max(events, BATCH_EVENTS.get(name, MOST_BATCH_EVENTS))
    workload = generate(name, size, batch, options.seed)
    first = replace(workload, events=workload.events.slice(0, events))
    checked = oracle.check(first)
    truth = oracle.Oracle(first.trees, first.events)
    say(f"{name} {size:,}: {truth.total(events):,} matches ({checked:,} of a sample agree with DuckDB)")
    directory = Path(tempfile.mkdtemp(prefix="covey-bench-"))
    try:
        write(workload, directory, events)
        del workload, first
        peers = options.peers if size <= options.peers_up_to else []
        results = [_run_engine(engine, size, directory, truth, options, dropped) for engine in ["covey", *peers]]
    finally:
        shutil.rmtree(directory)
    return {
        "workload": name,
        "subscriptions": size,
        "events": events,
        "expected": truth.total(events),
        "results": results,
    }


def _run_engine(
    engine: str, size: int, directory: Path, truth: oracle.Oracle, options: argparse.Namespace, dropped: dict[str, str]
) -> engines.Result:
    if engine in dropped:
        result: engines.Result = {"peer": engine, "skipped": dropped[engine]}
    else:
        result = engines.judge(engines.run(engine, directory, options.load_limit, options.match_limit), truth)
    if engine != "covey" and not engines.measured(result) and engine not in dropped:
        dropped[engine] = result.get("skipped", f"not tried, since it failed at {size:,}")
    say("  " + _summary(engine, result))
    return result


def _summary(engine: str, result: engines.Result) -> str:
    for key in ("wrong", "error", "skipped"):
        if key in result:
            return f"{engine}: {key.upper() + ': ' if key == 'wrong' else ''}{result[key]}"
    return (
        f"{engine}: built in {result['load_seconds']:.2f} s, {result['events_per_second']:,.0f} events/s, "
        f"p50 {result['p50_us']:,.1f} µs, p99 {result['p99_us']:,.1f} µs ({result['events']:,} events)"
    )


def _command(arguments: list[str]) -> str:
    """The command as the page prints it: without where files went, which is the reader's own affair."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--output")
    parser.add_argument("--results")
    return shlex.join(["python", "-m", "benchmarks", *parser.parse_known_args(arguments)[1]])


def main(arguments: list[str]) -> None:
    """Run what was asked for; results are kept after every size, so that an interrupted run loses little."""
    options = parse(arguments)
    if options.render:
        report.render(json.loads(options.results.read_text()), options.output)
        return
    results: dict[str, Any] = {"commands": [], "machine": machine.describe(), "runs": []}
    if options.append:
        results = json.loads(options.results.read_text())
    results["commands"].append(_command(arguments))
    for name in options.workloads:
        dropped: dict[str, str] = {}
        for size in options.sizes:
            results["runs"].append(run_size(name, size, options, dropped))
            options.results.write_text(json.dumps(results, indent=1) + "\n")
            report.render(results, options.output)
    say(f"wrote {options.output}")


if __name__ == "__main__":
    main(sys.argv[1:])
