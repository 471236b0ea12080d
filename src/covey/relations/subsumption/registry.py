"""Subscriptions by id, with all their rectangles in one array, so that those near a box are found by one comparison."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from covey.kernels import rectangles as store_kernels
from covey.kernels.rectangles import NOTHING_HIGH, NOTHING_LOW
from covey.relations.subsumption.rectangles import Rows
from covey.relations.subsumption.store import RectangleStore


class Registry:
    """A set of subscriptions, in the order in which they came."""

    def __init__(self, d: int) -> None:
        self._d = d
        self._rows = np.empty((16, 2 * d), np.int64)
        self._owner = np.empty(16, np.int64)
        self._size = 0
        self._next = 0
        self._ids: dict[int, Hashable] = {}
        self._numbers: dict[Hashable, int] = {}
        self._regions: dict[int, Rows] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._numbers)

    def __contains__(self, identifier: Hashable) -> bool:
        return identifier in self._numbers

    def region(self, identifier: Hashable) -> Rows:
        """The rectangles of a subscription."""
        return self._regions[self._numbers[identifier]]

    def add(self, identifier: Hashable, region: Rows) -> None:
        """Add a subscription that isn't there."""
        self._make_room(len(region))
        end = self._size + len(region)
        self._rows[self._size : end] = region
        self._owner[self._size : end] = self._next
        self._size = end
        self._ids[self._next] = identifier
        self._numbers[identifier] = self._next
        self._regions[self._next] = region
        self._next += 1

    def remove(self, identifier: Hashable) -> Rows:
        """Remove a subscription and give its rectangles."""
        number = self._numbers.pop(identifier)
        del self._ids[number]
        # Owners rise along the array, so a subscription's rows are found by two binary searches.
        first, last = np.searchsorted(self._owner[: self._size], [number, number + 1])
        self._rows[first:last, : self._d] = NOTHING_LOW
        self._rows[first:last, self._d :] = NOTHING_HIGH
        return self._regions.pop(number)

    def covers(self, row: Rows) -> bool:
        """Whether one rectangle of a subscription has all of a box in it."""
        return bool(store_kernels.covers_any(self._rows, self._size, row))

    def rows_near(self, region: Rows) -> Rows:
        """The rectangles that meet the box around a region."""
        return self._rows[: self._size][self._near(region)]

    def affected(self, region: Rows, freed: RectangleStore) -> list[Hashable]:
        """The subscriptions that may need a region that leaves, in their order: one of their rectangles meets what its
        leaving freed, or was covered by it.
        """
        near = np.flatnonzero(self._near(region))
        rows = self._rows[near]
        needs = freed.meets_each(rows)
        for left in region:
            needs |= ((left[: self._d] <= rows[:, : self._d]) & (rows[:, self._d :] <= left[self._d :])).all(axis=1)
        return [self._ids[number] for number in np.unique(self._owner[near[needs]]).tolist()]

    def _near(self, region: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        d, rows = self._d, self._rows[: self._size]
        if not len(region):
            return np.zeros(self._size, np.bool_)
        low, high = region[:, :d].min(axis=0), region[:, d:].max(axis=0)
        near = np.ones(self._size, np.bool_)
        for j in range(d):
            near &= (rows[:, j] < high[j]) & (low[j] < rows[:, d + j])
        return near

    def _make_room(self, more: int) -> None:
        if self._size + more <= len(self._rows):
            return
        alive = self._rows[: self._size, 0] < self._rows[: self._size, self._d]
        kept = int(alive.sum())
        capacity = 2 * (kept + more) + 16
        rows, owner = np.empty((capacity, 2 * self._d), np.int64), np.empty(capacity, np.int64)
        rows[:kept], owner[:kept] = self._rows[: self._size][alive], self._owner[: self._size][alive]
        self._rows, self._owner, self._size = rows, owner, kept
