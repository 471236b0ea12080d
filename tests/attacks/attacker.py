"""One attacker in a process of his own: `python -m tests.attacks.attacker NAME URL SIZE`; prints what was answered."""

from __future__ import annotations

import asyncio
import sys

from tests.attacks.attacks import ATTACKS, Target

if __name__ == "__main__":
    name, url, size = sys.argv[1:]
    run = ATTACKS[name].run
    print(asyncio.run(run(Target(url, float(size)))), flush=True)  # type: ignore[arg-type]
