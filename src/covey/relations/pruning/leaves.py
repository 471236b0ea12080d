"""The distinct leaves of all subscription trees, and what each counts for in the three dimensions.

Network: the leaf's chance, asked of a `Chances` for all new leaves in one call. Memory: what covey keeps of a leaf,
which is its text (for `explain` and merging) and a diagram node of 16 bytes for each atom; `IN` has an atom a value,
`BETWEEN` is one interval. Throughput: how many fulfilled predicates it takes, which is one; a constant takes none if
it is true and can't be had for any number otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from covey.filters import Filter, In, Not, Predicate, Semantics, matches
from covey.filters.algebra import leaves as leaves_of
from covey.history import Chances
from covey.kernels.pruning import NEVER, Leaves
from covey.relations.growing_arrays import grown

NODE_BYTES = 16
"""What one atom takes in covey's decision diagrams."""
ENTRY_BYTES = 18
"""What a subscription takes in covey's tables beside its diagram and its text."""


class LeafTable:
    """Numbers distinct leaves in the order in which they come."""

    def __init__(self, chances: Chances, semantics: Semantics) -> None:
        self.filters: list[Filter] = []
        self._chances = chances
        self._semantics = semantics
        self._plain: dict[Filter, int] = {}
        self._negated: dict[Filter, int] = {}
        self._known = 0
        self._columns = Leaves(np.zeros(0), *(np.zeros(0, np.int64) for _ in range(4)))

    def __len__(self) -> int:
        return len(self.filters)

    def number(self, leaf: Filter, negated: bool) -> int:
        """The number of a leaf, or of its negation."""
        numbers = self._negated if negated else self._plain
        found = numbers.get(leaf)
        if found is None:
            found = numbers[leaf] = len(self.filters)
            self.filters.append(Not(leaf) if negated else leaf)
        return found

    def columns(self) -> Leaves:
        """What every leaf counts for; the chances of those that came since the last call are asked for now."""
        first, count = self._known, len(self.filters)
        if count == first:
            return self._columns
        columns = Leaves(*(grown(column, count) for column in self._columns))
        fresh = self.filters[first:]
        columns.chance[first:count] = _checked(self._chances.chances(fresh, self._semantics), len(fresh))
        for at, leaf in enumerate(fresh, first):
            columns.predicates[at], atoms = _predicates(leaf)
            columns.bytes[at] = len(str(leaf).encode()) + NODE_BYTES * atoms
            columns.fulfilled[at] = 1 if atoms else self._constant(leaf)
        self._columns, self._known = columns, count
        return columns

    def _constant(self, leaf: Filter) -> int:
        return 0 if matches(leaf, {}, semantics=self._semantics) else NEVER

    def forget(self, kept: NDArray[np.int64]) -> None:
        """Keep these leaves only, numbered in this order."""
        number = {int(old): new for new, old in enumerate(kept)}
        for numbers in (self._plain, self._negated):
            alive = {leaf: number[old] for leaf, old in numbers.items() if old in number}
            numbers.clear()
            numbers.update(alive)
        self.filters = [self.filters[old] for old in kept]
        self._columns = Leaves(*(column[kept] for column in self._columns))
        self._known = len(kept)


def _checked(chances: Sequence[float] | NDArray[np.float64], count: int) -> NDArray[np.float64]:
    found = np.asarray(chances, dtype=np.float64)
    if found.shape != (count,):
        raise ValueError(f"chances of {count} filters were asked for, an array of shape {found.shape} came back")
    return np.clip(np.nan_to_num(found), 0.0, 1.0)


def _predicates(leaf: Filter) -> tuple[int, int]:
    """Predicates within a leaf, and the atoms that a matcher makes of them."""
    if isinstance(leaf, Predicate):
        return 1, len(leaf.values) if isinstance(leaf, In) else 1
    found = [one for one in leaves_of(leaf) if isinstance(one, Predicate)]
    return len(found), sum(len(one.values) if isinstance(one, In) else 1 for one in found)
