"""`python -m benchmarks.relations.compaction`: `covey compact` of many subscriptions, as a user runs it, on one core.

Subscriptions are those of `covey.lab.workloads.predicate_pools` as text, in a file of JSON lines; the command parses
them, goes through identity, covering, perfect merging and covering of mergers, and writes what is left. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import sections
from covey.lab.workloads.predicate_pools import SET_A, SET_B, Pool, draw


def write(pool: Pool, count: int, path: Path) -> None:
    with path.open("w") as out:
        for number, condition in enumerate(draw(pool, count).subscriptions()):
            out.write(json.dumps({"id": f"s{number}", "filter": str(condition)}) + "\n")


def measured(path: Path, directory: Path) -> tuple[str, float]:
    """What the command prints, and its seconds on one core."""
    command = [sys.executable, "-m", "covey.cli", "compact", str(path), "-o", str(directory / "small.jsonl")]
    core = {min(os.sched_getaffinity(0))}
    start = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, preexec_fn=lambda: os.sched_setaffinity(0, core)
    )
    return done.stdout, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relations.compaction", description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    parts = []
    with tempfile.TemporaryDirectory() as name:
        for pool in (SET_A, SET_B):
            path = Path(name) / "subscriptions.jsonl"
            write(pool, options.subscriptions, path)
            printed, seconds = measured(path, Path(name))
            steps = "\n".join(line for line in printed.splitlines() if not line.startswith("written"))
            memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            parts.append(
                f"Set {pool.name}, {options.subscriptions:,} subscriptions: {seconds:.0f} s on one core from file to "
                f"file, at most {memory:,.0f} MB resident.\n\n```text\n{steps}\n```\n"
            )
            print(parts[-1], flush=True)
    if options.write:
        command = ["python", "-m", "benchmarks.relations.compaction", *sys.argv[1:]]
        sections.write("compaction", "Compaction", command, "\n".join(parts))


if __name__ == "__main__":
    main()
