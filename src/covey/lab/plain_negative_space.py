"""The negative space as the paper's figure 4 has it: rectangles cut dimension by dimension, none merged again.

It is the yardstick for the counts in the paper's table 1: `covey.relations.subsumption` cuts where most is cut off and
merges neighbours, so it holds fewer rectangles for the same space. Numpy alone, a scan of all rectangles for each
subscription; a column a rectangle. Rectangles without volume don't count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.lab.experiments import LabError
from covey.lab.workloads.rectangles import DOMAIN

Bounds = NDArray[np.float64]

MOST_RECTANGLES = 4_000_000
"""Some 256 MB in four dimensions."""


class PlainNegativeSpace:
    """What no subscription asks for, as disjoint rectangles."""

    def __init__(self, dimensions: int) -> None:
        self._low: Bounds = np.zeros((dimensions, 1))
        self._high: Bounds = np.full((dimensions, 1), float(DOMAIN))
        self._size = 1

    def __len__(self) -> int:
        return self._size

    def volume(self) -> float:
        """The share of the whole space that is left."""
        sides = (self._high - self._low)[:, : self._size] / DOMAIN
        return float(sides.prod(axis=0).sum())

    def subscribe(self, low: Bounds, high: Bounds) -> bool:
        """Subtract a subscription; whether anything of it was left to subtract, that is, whether it is active."""
        hits = self._hits(low, high)
        if len(hits) == 0:
            return False
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
