"""`python -m tests.attacks [NAME ...]` (`make attack`): every attack at full size, and a table of what a bystander saw.

The attacker has one core, brokers and bystander have the other. Exits with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Final

from covey.network.limits import DEFAULT_NETWORK_LIMITS
from tests.attacks.attacks import ATTACKS
from tests.attacks.runs import Outcome, run

P99_SECONDS: Final = 0.05
MOST_SECONDS: Final = 0.5
MEMORY_BYTES: Final = DEFAULT_NETWORK_LIMITS.memory_mark_bytes + (200 << 20)
"""What a broker may take: its mark, which holds publishers back, and what else it needs."""
LONGEST: Final = 600.0
"""Seconds that one attack may take."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("names", nargs="*", help="which attacks; by itself all")
    parser.add_argument("--size", type=float, default=1.0, help="a part of the full size")
    options = parser.parse_args()
    if unknown := set(options.names) - set(ATTACKS):
        parser.error(f"no attack is called {', '.join(sorted(unknown))}; there are {', '.join(ATTACKS)}")
    print("| attack | answered | seconds | p50 ms | p99 ms | max ms | lost | missed | memory MiB | |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|---|", flush=True)
    good = True
    for name in options.names or ATTACKS:
        with tempfile.TemporaryDirectory() as folder:
            found = asyncio.run(run([name], options.size, Path(folder), LONGEST))[name]
        if isinstance(found, BaseException):
            good = False
            print(f"| {name} | | | | | | | | | failed: {str(found)[:200] or 'took too long'} |", flush=True)
            continue
        good &= _is_good(found)
        print(_row(name, found), flush=True)
    return 0 if good else 1


def _is_good(found: Outcome) -> bool:
    seen = found.seen
    in_time = seen.part(0.99) <= P99_SECONDS and seen.part(1.0) <= MOST_SECONDS
    return found.answered > 0 and not seen.lost and in_time and found.memory <= MEMORY_BYTES


def _row(name: str, found: Outcome) -> str:
    seen = found.seen
    times = " | ".join(f"{seen.part(share) * 1000:,.1f}" for share in (0.5, 0.99, 1.0))
    verdict = "" if _is_good(found) else "over the goal"
    return (
        f"| {name} | {found.answered:,} | {found.seconds:.1f} | {times} | {seen.lost} | {seen.missed} | "
        f"{found.memory / 2**20:,.0f} | {verdict} |"
    )


if __name__ == "__main__":
    sys.exit(main())
