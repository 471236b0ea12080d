"""A bound on what building one filter's diagram may cost.

A diagram's size is known only when it is built, and a filter of forty tests may need a million nodes in an unlucky
order, or more on the way than in the end. So a filter with many tests is built in a small table of its own first,
over its own tests in the order that they will have in the shared diagram. If it fits there, it is small enough in
the shared one, where each step gives the same nodes or fewer. With few tests no function is too large.
"""

from __future__ import annotations

from covey.diagrams.library import BDDManager, DDMemoryError
from covey.filters.algebra import Filter, leaves
from covey.filters.predicates import Between
from covey.filters.semantics import Semantics
from covey.filters.two_valued import Lowering, Test
from covey.limits import Limits

ALWAYS_SMALL = 16
"""Tests: a reduced diagram over 16 variables has some 8,000 nodes at most."""

_ROOM = 8
"""Room for what arises on the way, in multiples of the limit."""

_CACHE_ENTRIES = 1 << 14


def may_be_large(condition: Filter) -> bool:
    """Whether a filter has so many tests that its diagram might be too large."""
    return sum(1 + isinstance(leaf, Between) for leaf in leaves(condition)) > ALWAYS_SMALL


class Trial:
    """The small table, kept for the next filter."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._manager = self._empty()

    def fits(
        self, condition: Filter, order: list[Test], semantics: Semantics, *, variable_for_inequality: bool = False
    ) -> bool:
        """Whether the filter can be built within bounds, its tests in this order from top to bottom."""
        missing = len(order) - self._manager.num_vars()
        if missing > 0:
            self._manager.add_vars(missing)
        place = {test: at for at, test in enumerate(order)}
        lowering = Lowering(
            semantics,
            lambda test: self._manager.var(place[test]),
            self._manager.true(),
            self._manager.false(),
            variable_for_inequality=variable_for_inequality,
        )
        try:
            lowering.holds(condition)
        except DDMemoryError:
            # The library may be collecting by itself, beside us, and then doesn't collect when asked: the next filter
            # would find the table full. A new one is quicker than waiting.
            self._manager = self._empty()
            return False
        # Within one operation the library doesn't collect what is dead.
        self._manager.gc()
        return True

    def _empty(self) -> BDDManager:
        return BDDManager(_ROOM * self._limits.diagram_nodes, _CACHE_ENTRIES, 1)
