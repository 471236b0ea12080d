"""`python -m covey.simulation [SEEDS [FIRST]]`: many networks with faults; what fails is shrunk and printed.

Prints how many seeds, simulated hours, faults and deliveries there were; exits with 1 if something failed. One seed is
replayed by `python -m covey.simulation 1 SEED`.
"""

from __future__ import annotations

import sys
from collections import Counter

from covey.simulation.runs import run
from covey.simulation.scenarios import Scenario, random_scenario
from covey.simulation.shrinking import shrink

FAULTS = ("crash", "pause", "cut", "partition", "reset", "unlink", "press", "lie", "allow", "reroute", "defect")
_SAY_EVERY = 100


def main(arguments: list[str]) -> int:
    """Run the seeds; the result is the exit code."""
    count = int(arguments[0]) if arguments else 1_000
    first = int(arguments[1]) if len(arguments) > 1 else 0
    seconds = deliveries = failed = 0.0
    faults: Counter[str] = Counter()
    for done, seed in enumerate(range(first, first + count), 1):
        scenario = random_scenario(seed)
        report = run(scenario)
        seconds += report.seconds
        deliveries += report.deliveries
        faults.update(action.kind for action in scenario.actions if action.kind in FAULTS)
        if report.failures:
            failed += 1
            print(f"seed {seed}: {report.failures[0]}\n{_shortened(scenario)}", flush=True)
        if done % _SAY_EVERY == 0 or done == count:
            shown = ", ".join(f"{number:,} {kind}" for kind, number in sorted(faults.items()))
            print(
                f"{done:,} seeds, {seconds / 3600:.1f} simulated hours, {deliveries:,.0f} deliveries, faults: "
                f"{shown or 'none'}; {failed:.0f} failed", flush=True,
            )  # fmt: skip
    return 1 if failed else 0


def _shortened(scenario: Scenario) -> str:
    shorter = shrink(scenario, lambda one: bool(run(one).failures))
    return "\n".join(f"  {action}" for action in shorter.actions)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
