"""Disjoint rectangles in flat arrays, with blocks of near rectangles as their spatial index.

Why not an R-tree: a subscription meets hundreds of negative rectangles, each of which is replaced by several others.
An R-tree from a library gives each of them to Python as an object and moves its nodes at every one; here a search is
one kernel call over two arrays, splitting another, and rows are put in the order of a k-d tree's leaves only when a
third more of them have come since. The same pass merges neighbours, which the paper names as future work and which
keeps rectangles few. Both cost O(m log m) once in a while, that is O(log m) for each new rectangle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.kernels import rectangles as store_kernels
from covey.kernels import splitting as split_kernels
from covey.relations.growing_arrays import grown
from covey.relations.subsumption.rectangles import Rows

GROWTH = 1.3
"""Rows are merged and ordered anew when there are this many times more than after the last time."""

WORTHWHILE = 1.05
"""As much growth makes merging worth a try before a limit is held against a subscription."""

_SLACK = 4 * store_kernels.BLOCK


class RectangleStore:
    """Disjoint rectangles that can be searched by a box and have boxes subtracted from them."""

    def __init__(self, rows: Rows) -> None:
        self._bounds = rows.copy()
        self._boxes = np.empty((0, rows.shape[1]), np.int64)
        self._hits = np.empty(0, np.int64)
        self._size = len(rows)
        self._empty = 0
        self._reserve(0)
        self.tidy()

    def __len__(self) -> int:
        return self._size - self._empty

    def rows(self) -> Rows:
        """All rectangles, as a copy."""
        d = self._bounds.shape[1] // 2
        filled = self._bounds[: self._size]
        return filled[filled[:, 0] < filled[:, d]].copy()

    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self._bounds.nbytes + self._boxes.nbytes + self._hits.nbytes

    def meets(self, query: Rows) -> bool:
        """Whether some rectangle has a point in common with the box."""
        return bool(store_kernels.meets_any(self._bounds, self._boxes, self._size, query))

    def meets_each(self, queries: Rows) -> NDArray[np.bool_]:
        """For each of several boxes whether some rectangle has a point in common with it."""
        met: NDArray[np.bool_] = store_kernels.meets_each(self._bounds, self._boxes, self._size, queries)
        return met

    def find(self, query: Rows) -> NDArray[np.int64]:
        """The rows that meet the box. They hold until the store changes, and the array until the next search."""
        count = store_kernels.find(self._bounds, self._boxes, self._size, query, self._hits)
        return self._hits[:count]

    def growth(self, hits: NDArray[np.int64], query: Rows) -> int:
        """How many rows splitting the hits adds."""
        return int(split_kernels.count_new(self._bounds, hits, query))

    def common(self, hits: NDArray[np.int64], query: Rows) -> Rows:
        """What each hit has in common with the box."""
        common: Rows = split_kernels.clip(self._bounds, hits, query)
        return common

    def choose(
        self,
        hits: NDArray[np.int64],
        query: Rows,
        benefits: NDArray[np.float64],
        metric: int,
        budget: int,
        room: int,
        is_kept: bool,
    ) -> tuple[NDArray[np.bool_], int]:
        """Which hits are best split within a budget of new rectangles, and how much of it they take."""
        chosen, spent = split_kernels.choose(self._bounds, hits, query, benefits, metric, budget, room, is_kept)
        return chosen, int(spent)

    def split(self, hits: NDArray[np.int64], query: Rows) -> None:
        """Subtract the box from the hits."""
        self._reserve(self.growth(hits, query))
        first = self._size
        # Where the array of hits was replaced by _reserve, the old one is still whole.
        self._size, emptied = split_kernels.split(self._bounds, self._size, hits, query)
        self._empty += emptied
        self._added(first)

    def add(self, rows: Rows) -> None:
        """Add rectangles that are disjoint from all others."""
        self._reserve(len(rows))
        first = self._size
        self._bounds[first : first + len(rows)] = rows
        self._size += len(rows)
        self._added(first)

    def tidy(self) -> None:
        """Merge neighbours, drop empty rows, and order what remains."""
        store_kernels.merge_neighbours(self._bounds, self._size)
        order = store_kernels.near_order(self._bounds, self._size)
        self._size, self._empty = len(order), 0
        self._bounds[: self._size] = self._bounds[order]
        store_kernels.enclose(self._bounds, self._boxes, 0, self._size)
        self._tidied = self._size

    def tidy_if_grown(self) -> bool:
        """Tidy where enough rows have come since the last time for that to pay."""
        grown = self._size > self._tidied * WORTHWHILE
        if grown:
            self.tidy()
        return grown

    def _added(self, first: int) -> None:
        if self._size > self._tidied * GROWTH + _SLACK or self._empty > self._size // 2 + _SLACK:
            self.tidy()
        else:
            store_kernels.enclose(self._bounds, self._boxes, first, self._size)

    def _reserve(self, more: int) -> None:
        needed = self._size + more
        if needed > len(self._hits):
            self._bounds = grown(self._bounds, max(needed, store_kernels.BLOCK))
            capacity = len(self._bounds)
            self._boxes = grown(self._boxes, capacity // store_kernels.BLOCK + 1)
            self._hits = np.empty(capacity, np.int64)
