"""How likely the workload's filters are to match: counted over all its events, without a sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.filters.algebra import Filter
from covey.filters.semantics import Semantics, matches
from covey.simulation.scenarios import KINDS

EVENTS = [{"k": kind, "p": price} for kind in KINDS for price in range(0, 22, 3)]


class UniformChances:
    """Every event of a small world equally often."""

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        """For each filter the fraction of events that match it."""
        counts = [sum(matches(condition, event, semantics=semantics) for event in EVENTS) for condition in filters]
        return np.array(counts, dtype=np.float64) / len(EVENTS)
