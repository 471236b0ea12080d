"""What one point of the negative space's experiments measures, in a Spark worker."""

from __future__ import annotations

import time
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from covey.lab.experiments import Row
from covey.lab.plain_negative_space import Metric, PlainNegativeSpace
from covey.lab.readings import number
from covey.lab.workloads.rectangles import EXPONENT, Ends, ends, regions, space
from covey.relations.subsumption import NegativeSpace
from covey.relations.subsumption.negative_space import DEFAULT_K

STEPS: Final = 5
"""Counts are noted at every fifth, as in the paper's tables."""
PROBES: Final = 20
"""Random events inside each passive subscription that some active one must want too."""


def grow(point: Row) -> list[Row]:
    """Subscribe all; at every fifth what is redundant, by subsumption and by a single other, the rectangles, and how
    many subscriptions were so large that they added more than k's default."""
    bounds = _bounds(point)
    negative = _negative(point)
    covered = np.cumsum(covered_by_one(bounds))
    subscriptions = regions(negative.space, bounds)
    fifth = max(1, len(subscriptions) // STEPS)
    rows: list[Row] = []
    large = 0
    start = time.process_time()
    for place, region in enumerate(subscriptions, 1):
        large += negative.subscribe(place, region).growth > DEFAULT_K
        if place % fifth == 0:
            redundant = len(negative.passives())
            rows.append(
                {
                    "subscriptions": place,
                    "redundant": redundant,
                    "covered": int(covered[place - 1]),
                    "beyond_covering": redundant - int(covered[place - 1]),
                    "rectangles": negative.rectangle_count(),
                    "large": large,
                    "megabytes": negative.nbytes() / 1e6,
                    "cpu_seconds": time.process_time() - start,
                }
            )
    return rows


def grow_plain(point: Row) -> list[Row]:
    """The paper's own cutting, exact or with a threshold, up to `stop` subscriptions where the point has one. With
    "covering first" a subscription that another covers alone never comes to the negative space."""
    bounds = low, high = _bounds(point)
    fifth = max(1, len(low) // STEPS)
    stop = int(number(point, "stop")) if "stop" in point else len(low)
    covered = covered_by_one(bounds)
    plain = PlainNegativeSpace(low.shape[1], _threshold(point), cast(Metric, point.get("metric", "benefit/cost")))
    rows: list[Row] = []
    redundant = beyond = 0
    start = time.process_time()
    for place in range(1, min(len(low), stop) + 1):
        known = bool(point.get("covering first")) and bool(covered[place - 1])
        active = not known and plain.subscribe(low[place - 1], high[place - 1])
        redundant += not active
        beyond += not active and not covered[place - 1]
        if place % fifth == 0:
            rows.append(
                {
                    "subscriptions": place,
                    "redundant": redundant,
                    "covered": int(covered[:place].sum()),
                    "beyond_covering": beyond,
                    "rectangles": len(plain),
                    "cpu_seconds": time.process_time() - start,
                }
            )
    return rows


def _threshold(point: Row) -> int | None:
    """The k of a point, None for the exact method."""
    if point.get("method", "exact") == "exact":
        return None
    return int(number(point, "k")) if "k" in point else DEFAULT_K


def leave(point: Row) -> Row:
    """Unsubscribe random active subscriptions, then rebuild; what each took and left."""
    bounds = _bounds(point)
    negative = _negative(point)
    for place, region in enumerate(regions(negative.space, bounds)):
        negative.subscribe(place, region)
    before = negative.rectangle_count()
    actives = negative.actives()
    rng = np.random.default_rng(int(number(point, "seed")))
    leaving = rng.choice(len(actives), min(len(actives), int(number(point, "leaving"))), replace=False)
    start = time.perf_counter()
    promoted = sum(len(negative.unsubscribe(actives[place])) for place in leaving)
    left = time.perf_counter() - start
    after, lost = negative.rectangle_count(), _lost(negative, bounds, rng)
    start = time.perf_counter()
    negative.rebuild()
    return {
        "milliseconds_each": 1000 * left / len(leaving),
        "promoted_each": promoted / len(leaving),
        "rectangles_before": before,
        "rectangles_after": after,
        "rectangles_rebuilt": negative.rectangle_count(),
        "rebuild_seconds": time.perf_counter() - start,
        "events_lost": lost,
    }


def covered_by_one(bounds: Ends) -> NDArray[np.bool_]:
    """Which subscriptions an earlier one covers alone."""
    low, high = bounds
    covered = [
        bool(((low[:place] <= low[place]).all(axis=1) & (high[:place] >= high[place]).all(axis=1)).any())
        for place in range(len(low))
    ]
    return np.array(covered, dtype=bool)


def _lost(negative: NegativeSpace, bounds: Ends, rng: np.random.Generator) -> int:
    """How many random events inside passive subscriptions no active one wants: each would be lost upstream."""
    low, high = bounds
    active = np.array([int(str(place)) for place in negative.actives()])
    lost = 0
    for name in negative.passives():
        place = int(str(name))
        events = low[place] + rng.random((PROBES, low.shape[1])) * (high[place] - low[place])
        inside = (events[:, None] >= low[active]) & (events[:, None] <= high[active])
        lost += PROBES - int(inside.all(axis=2).any(axis=1).sum())
    return lost


def _bounds(point: Row) -> Ends:
    run = int(number(point, "run")) if "run" in point else 0
    exponent = number(point, "exponent") if "exponent" in point else EXPONENT
    seed = 1_000 * int(number(point, "seed")) + run
    return ends(int(number(point, "dimensions")), int(number(point, "of")), seed, exponent)


def _negative(point: Row) -> NegativeSpace:
    return NegativeSpace(
        space(int(number(point, "dimensions"))),
        method="exact" if point.get("method") == "exact" else "approximate",
        k=int(number(point, "k")) if "k" in point else DEFAULT_K,
        metric=point.get("metric", "benefit/cost"),  # type: ignore[arg-type]
    )
