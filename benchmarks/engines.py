"""Running one engine on one directory, and judging its totals against the oracle.

Engines are programs that print a JSON line: covey by `benchmarks.subject`, a peer by its `run` script. The harness
runs them one after the other, never two at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.oracle import Oracle

HERE = Path(__file__).parent
# A peer's `run` may have to compile first; its own limits begin after that.
BUILD_ALLOWANCE = 600.0
Result = dict[str, Any]


def peers() -> list[str]:
    """Names of the peers that have a `run` script."""
    return sorted(run.parent.name for run in (HERE / "peers").glob("*/run") if os.access(run, os.X_OK))


def run(engine: str, directory: Path, load_limit: float, match_limit: float) -> Result:
    """The line that the engine printed, or one with `error` in its place."""
    program = (
        [sys.executable, "-m", "benchmarks.subject"] if engine == "covey" else [str(HERE / "peers" / engine / "run")]
    )
    command = [*program, str(directory), "--load-limit", f"{load_limit:g}", "--match-limit", f"{match_limit:g}"]
    environment = os.environ | {"PYTHON": sys.executable}
    # Ten match limits: covey's batch cannot be stopped in the middle.
    allowance = BUILD_ALLOWANCE + load_limit + 10 * match_limit
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, timeout=allowance, check=False, text=True, env=environment
        )
    except subprocess.TimeoutExpired:
        return {"peer": engine, "error": f"stopped after {time.perf_counter() - start:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return {"peer": engine, "error": f"ended with status {done.returncode}"}
    result: Result = json.loads(lines[-1])
    return result | {"peer": engine}


def judge(result: Result, oracle: Oracle) -> Result:
    """The result with `wrong` set where a total of matches differs from the oracle's."""
    for events, matches in (("events", "matches"), ("single_events", "single_matches")):
        if events in result:
            expected = oracle.total(result[events])
            if result[matches] != expected:
                return result | {"wrong": f"{result[matches]:,} matches instead of {expected:,}"}
    return result


def measured(result: Result) -> bool:
    """Whether the result has times that may be printed."""
    return not any(key in result for key in ("wrong", "error", "skipped"))
