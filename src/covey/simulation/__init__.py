"""Many brokers in one process, on simulated time, links and disks, with faults from one seed.

The brokers are those of `covey.routing`, unchanged. `random_scenario` makes a network, a workload and faults; `run`
plays them, holds everything that clients see against what must hold, and gives a trace's hash: the same scenario has
the same trace. `shrink` makes a scenario that fails shorter. May import `covey.routing` and all below it.
"""

from covey.simulation.runs import Report, run
from covey.simulation.scenarios import Action, Scenario, random_scenario
from covey.simulation.shrinking import shrink

__all__ = ["Action", "Report", "Scenario", "random_scenario", "run", "shrink"]
