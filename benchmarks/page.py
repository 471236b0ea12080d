"""`python -m benchmarks.page`: measure everything and write docs/benchmarks.md, all of it from one commit.

Each part runs in a process of its own, one after the other, and puts its figures into the page. With changes that
aren't committed nothing is measured, and a part that fails is said at the end. The page names the commit; `--parts`
measures some of them, and refuses to add to figures of another commit. A machine of two cores that does nothing else
takes some minutes for each part; `--parts` splits the whole into runs of their own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import report, sections

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
LIMITS = ("--load-limit", "15", "--match-limit", "2")

PARTS: dict[str, list[str]] = {
    "engines": ["benchmarks", "--sizes", "10000,100000", "--peers-up-to", "10000", *LIMITS],
    "million": [
        "benchmarks", "--workloads", "conj-narrow,eq,text", "--sizes", "1000000", "--peers-up-to", "0", *LIMITS,
        "--append",
    ],
    "sigma": ["benchmarks.sigma", "--write"],
    "bytes": ["benchmarks.json_bytes", "--write"],
    "spark": ["benchmarks.spark", "--runs", "3", "--write"],
    "kafka": ["benchmarks.spark.kafka", "--write"],
    "cluster": ["benchmarks.spark.cluster", "--write"],
    "history": ["benchmarks.history", "--write"],
    "relations": ["benchmarks.relations", "--write"],
    "compaction": ["benchmarks.relations.compaction", "--write"],
    "strategies": ["benchmarks.strategies", "--write"],
    "broker": ["benchmarks.broker", "--runs", "3", "--write"],
}  # fmt: skip
"""What each part runs, in the page's order."""


def main(arguments: list[str]) -> int:
    """Run the parts; 1 where one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated; default: all")
    options = parser.parse_args(arguments)
    wanted = options.parts.split(",")
    for name in set(wanted) - set(PARTS):
        parser.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    here = commit()
    if here is None:
        parser.error("the tree has changes that aren't committed: a page is of one commit")
    if wanted[0] == next(iter(PARTS)):
        start_anew()
    elif known() not in (None, here):
        parser.error(f"the page has figures of commit {known()}, and this is {here}: measure all parts")
    took = {name: _run(name) for name in PARTS if name in wanted}
    failed = [name for name, seconds in took.items() if seconds is None]
    note(here, {name: seconds for name, seconds in took.items() if seconds is not None})
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def commit() -> str | None:
    """The commit of the tree; None where anything but the page's own files is changed."""
    changed = _git(
        "status", "--porcelain", "--", ":!docs/benchmarks.*", ":!benchmarks/results.json", ":!benchmarks/sections"
    )
    return None if changed else _git("rev-parse", "--short=10", "HEAD")


def start_anew() -> None:
    """No figure of an older commit stays."""
    for path in sections.KEPT.glob("*.md"):
        path.unlink()
    RESULTS.unlink(missing_ok=True)


def known() -> str | None:
    """The commit that the page's figures are of."""
    found: str | None = json.loads(RESULTS.read_text()).get("commit") if RESULTS.exists() else None
    return found


def note(here: str, took: dict[str, float]) -> None:
    """Say in the page which commit it is of, and how long its parts took."""
    results = json.loads(RESULTS.read_text())
    results["commit"] = here
    results["seconds"] = results.get("seconds", {}) | took
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    report.render(results, sections.PAGE)


def _run(name: str) -> float | None:
    """The seconds that a part took; None where it failed."""
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-m", *PARTS[name]], check=False, cwd=sections.ROOT)
    seconds = time.monotonic() - start
    print(f"{name}: {seconds:.0f} s, status {done.returncode}", file=sys.stderr, flush=True)
    return None if done.returncode else seconds


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], capture_output=True, text=True, check=True, cwd=sections.ROOT
    ).stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
