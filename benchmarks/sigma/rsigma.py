"""rsigma, the peer of the workload `sigma`: its command line on the same rules and events.

It is timed on all events and on one, and the difference is taken, so that neither reading rules nor starting counts.
Its matches are counted by rule, and must be covey's.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

ABSENT = "not available: no rsigma on this machine (`cargo install rsigma --version 0.23.0 --locked`)"


def program() -> str | None:
    """Where rsigma is."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin" / "rsigma"
    return shutil.which("rsigma") or (str(home) if home.exists() else None)


def measure(rules: Path, events: list[str], directory: Path, limit: float) -> dict[str, Any]:
    """Its times, and how often each rule (by number) matched."""
    found = program()
    if found is None:
        return {"peer": "rsigma", "skipped": ABSENT}
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout.split()
    version = next((word for word in said if word[:1].isdigit()), "of an unknown version")
    (directory / "one.jsonl").write_text(events[0] + "\n")
    (directory / "all.jsonl").write_text("\n".join(events) + "\n")
    try:
        one = _run(found, rules, directory / "one.jsonl", limit)
        several = [_run(found, rules, directory / "all.jsonl", limit) for _ in range(2)]
    except subprocess.TimeoutExpired:
        return {"peer": "rsigma", "error": f"stopped after {limit:.0f} s"}
    best = min(several, key=lambda run: run[0])
    done = len(events) - 1
    seconds, cpu = best[0] - one[0], best[1] - one[1]
    return {
        "peer": "rsigma", "version": f"rsigma {version}", "load_seconds": one[0], "events_per_second": done / seconds,
        "cpu_us": cpu / done * 1e6, "matched": {str(rule): times for rule, times in sorted(best[2].items())},
    }  # fmt: skip


def _run(found: str, rules: Path, events: Path, limit: float) -> tuple[float, float, Counter[int]]:
    """Seconds, seconds of processors, and matches by rule."""
    command = [found, "engine", "eval", "-r", str(rules), "-e", f"@{events}", "--input-format", "json", "--quiet"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=limit, check=False, text=True
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    matched = Counter(
        int(json.loads(line)["rule_id"].rpartition("-")[2]) for line in done.stdout.splitlines() if line.startswith("{")
    )
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, matched
