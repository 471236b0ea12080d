"""How long things took, counted in classes that grow: an addition each."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import inf
from typing import Final

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, inf)


class Histogram:
    """Times by classes, each of which has an upper end."""

    def __init__(self) -> None:
        self._counts = [0] * len(SECONDS)
        self.sum = 0.0
        """Of all times."""

    def observe(self, seconds: float) -> None:
        """One more took so long."""
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self.sum += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """How many took no longer than each end, as Prometheus has it."""
        ends = ["+Inf" if end == inf else repr(end) for end in SECONDS]
        return list(zip(ends, map(float, accumulate(self._counts)), strict=True))
