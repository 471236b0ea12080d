"""The negative space as the paper's figures 4 and 8 have it: rectangles cut dimension by dimension, none merged again.

It is the yardstick for the counts in the paper's tables and figures: `covey.relations.subsumption` cuts where most is
cut off and merges neighbours, so it holds fewer rectangles for the same space, and k seldom bites. Numpy alone, a scan
of all rectangles for each subscription; a column a rectangle. Rectangles without volume don't count.

With a threshold `k` it is the approximate check of figure 8. Rectangles of which a subscription leaves at most one
piece are cut at once. Of the others the best by a metric are cut, until more than k pieces have come ("while
newNegativeCount <= k"); the rest stay whole, so that what a subscription covers may still count as nobody's. Nothing is
ever taken off that no subscription covers: "subsumed" is always true.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from covey.lab.experiments import LabError
from covey.lab.workloads.rectangles import DOMAIN

Bounds = NDArray[np.float64]
Metric = Literal["benefit/cost", "benefit", "1/cost"]
METRICS: Final[tuple[Metric, ...]] = ("benefit/cost", "benefit", "1/cost")

MOST_RECTANGLES = 4_000_000
"""Some 256 MB in four dimensions."""


class PlainNegativeSpace:
    """What no subscription asks for, as disjoint rectangles."""

    def __init__(self, dimensions: int, k: int | None = None, metric: Metric = "benefit/cost") -> None:
        """All of the space. `k` bounds the pieces that a subscription adds, None doesn't; `metric` says which
        rectangles are cut first."""
        self._k = k
        self._metric = metric
        self._low: Bounds = np.zeros((dimensions, 1))
        self._high: Bounds = np.full((dimensions, 1), float(DOMAIN))
        self._size = 1

    def __len__(self) -> int:
        return self._size

    def volume(self) -> float:
        """The share of the whole space that is left."""
        sides = (self._high - self._low)[:, : self._size] / DOMAIN
        return float(sides.prod(axis=0).sum())

    def holds(self, point: Bounds) -> bool:
        """Whether a point is in the negative space."""
        low, high = self._low[:, : self._size], self._high[:, : self._size]
        return bool(((low <= point[:, None]) & (point[:, None] <= high)).all(axis=0).any())

    def subscribe(self, low: Bounds, high: Bounds) -> bool:
        """Subtract a subscription; whether anything of it was left to subtract, that is, whether it is active."""
        hits = self._hits(low, high)
        if len(hits) == 0:
            return False
        if self._k is not None:
            hits = self._selected(hits, low, high, self._k)
        pieces = _cut(self._low[:, hits], self._high[:, hits], low, high)
        lows, highs = (np.concatenate([piece[side] for piece in pieces], axis=1) for side in (0, 1))
        self._replace(hits, lows, highs)
        return True

    def _hits(self, low: Bounds, high: Bounds) -> NDArray[np.intp]:
        hit = np.ones(self._size, dtype=bool)
        for j in range(len(low)):
            hit &= self._low[j, : self._size] < high[j]
            hit &= self._high[j, : self._size] > low[j]
        return np.flatnonzero(hit)

    def _selected(self, hits: NDArray[np.intp], low: Bounds, high: Bounds, k: int) -> NDArray[np.intp]:
        """The rectangles that are cut: all that leave at most one piece, and the best of the others."""
        lows, highs = self._low[:, hits], self._high[:, hits]
        pieces = (lows < low[:, None]).sum(axis=0) + (highs > high[:, None]).sum(axis=0)
        shared = (np.minimum(highs, high[:, None]) - np.maximum(lows, low[:, None])).prod(axis=0)
        several = np.flatnonzero(pieces > 1)
        worth = {"benefit/cost": shared / np.maximum(pieces, 1), "benefit": shared, "1/cost": -pieces}[self._metric]
        best = several[np.argsort(-worth[several], kind="stable")]
        before = np.cumsum(pieces[best]) - pieces[best]
        return np.sort(np.concatenate([hits[pieces <= 1], hits[best[before <= k]]]))

    def _replace(self, hits: NDArray[np.intp], lows: Bounds, highs: Bounds) -> None:
        """Put pieces where the hits were, then at the end; where they are fewer, the last rectangles close the gap."""
        grown = self._size - len(hits) + lows.shape[1]
        if grown > MOST_RECTANGLES:
            raise LabError(f"the plain negative space has {grown:,} rectangles; the most is {MOST_RECTANGLES:,}")
        if grown > self._low.shape[1]:
            room = np.zeros((len(self._low), max(grown, 2 * self._low.shape[1]) - self._low.shape[1]))
            self._low, self._high = (np.concatenate([side, room], axis=1) for side in (self._low, self._high))
        places = np.concatenate([hits, np.arange(self._size, max(self._size, grown))])[: lows.shape[1]]
        self._low[:, places], self._high[:, places] = lows, highs
        gaps = hits[lows.shape[1] :]
        if len(gaps):
            # Gaps beyond the new end need no filling; as many rectangles there fill those before it.
            ahead = gaps[gaps < grown]
            behind = np.setdiff1d(np.arange(grown, self._size), gaps)
            self._low[:, ahead], self._high[:, ahead] = self._low[:, behind], self._high[:, behind]
        self._size = grown


def _cut(lows: Bounds, highs: Bounds, low: Bounds, high: Bounds) -> list[tuple[Bounds, Bounds]]:
    """What is left of rectangles: below and above the subscription in the first dimension, then in the next of the
    rest."""
    pieces = []
    for j in range(len(low)):
        below, above = lows[j] < low[j], highs[j] > high[j]
        under, over = highs[:, below].copy(), lows[:, above].copy()
        under[j], over[j] = low[j], high[j]
        pieces += [(lows[:, below], under), (over, highs[:, above])]
        lows[j] = np.maximum(lows[j], low[j])
        highs[j] = np.minimum(highs[j], high[j])
    return pieces
