"""Book auctions pruned further and further and matched by counting, as Bittner and Hinze measure throughput.

Rows count steps, not time: predicates whose subscriptions' counters are raised, and predicates in trees that are
evaluated. `paper_steps` puts them together. How much an evaluated predicate costs beside a counted one isn't stated in
the paper, so it is a parameter; half is what an evaluation looks at that stops once it knows.

On the line of five brokers each has a fifth of the subscriptions from its own clients, and those are never pruned
(section 2): a broker's steps are four fifths of the pruned table's and one fifth of the whole one's, and every event is
filtered at each broker that it comes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import numpy as np
import pyarrow as pa

from covey.history import EventSample
from covey.lab.counting_matcher import CountingMatcher
from covey.lab.experiments import Cell, Row
from covey.lab.measuring import seconds, without_collecting
from covey.lab.pruned_tables import BROKERS, COARSE, SAMPLED, SHARES, crossings, workload
from covey.lab.readings import number
from covey.relations.pruning import Dimension, Pruner

WEIGHT: Final = 0.5
WEIGHTS: Final = (0.25, 0.5, 1.0)
"""What evaluating a predicate costs, beside counting it."""
SAMPLE: Final = 20_000
"""The table that steps are counted on, and events of the paper's; shares of steps don't depend on its size."""
EVENTS: Final = 400


def counted_tables(point: Row) -> list[Row]:
    """One dimension at every share of its prunings: steps and links an event."""
    dimension = cast(Dimension, point["dimension"])
    with without_collecting():
        drawn, events = workload(point)
        listed = _listed(events.slice(0, cast(int, point["counted events"])))
        pruner = Pruner(drawn, EventSample(events.slice(0, SAMPLED)), dimension)
        rows: list[Row] = []
        for share in SHARES if point["steps"] == "fine" else COARSE:
            pruner.prune_to(round(share * pruner.total_possible))
            matcher = CountingMatcher([condition for _, condition in pruner.filters()])
            rows.append({"prunings": share, **_counted(matcher, listed)})
    return rows


def _counted(matcher: CountingMatcher, events: list[Row]) -> Row:
    found = [matcher.match(event) for event in events]
    spent = seconds(lambda: [matcher.match(event) for event in events])
    wanted = np.array([int(np.bitwise_or.reduce(1 << one.matches % BROKERS, initial=0)) for one in found], np.uint8)
    links = crossings(wanted, np.arange(len(events)) % BROKERS)
    count = len(events)
    return {
        "counted": round(sum(one.counted for one in found) / count, 1),
        "evaluated": round(sum(one.evaluated for one in found) / count, 1),
        "matches": round(sum(len(one.matches) for one in found) / count, 2),
        "links": round(float(links.sum()) / count, 4),
        "counting µs": round(spent / count * 1e6, 1),
    }


def _listed(events: pa.Table) -> list[Row]:
    return [{name: value for name, value in event.items() if value is not None} for event in events.to_pylist()]


def paper_steps(row: Mapping[str, Cell], weight: float = WEIGHT) -> float:
    """The steps of one broker whose whole table is pruned."""
    return number(row, "counted") + weight * number(row, "evaluated")


def line_steps(row: Mapping[str, Cell], whole: Mapping[str, Cell], weight: float = WEIGHT) -> float:
    """The steps at all brokers of the line that an event comes to; `whole` is the row without prunings."""
    own = 1 / BROKERS
    each = (1 - own) * paper_steps(row, weight) + own * paper_steps(whole, weight)
    return each * (1 + number(row, "links"))
