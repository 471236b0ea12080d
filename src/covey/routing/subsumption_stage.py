"""Subsumption: only filters that no union of others holds (Jafarpour et al.).

What filters that went leave behind makes the negative space larger than it need be, and an approximate one forwards
more than it must; `rebuild_after` computes all of it anew (their offline reconstruction), when the budget has room.
"""

from __future__ import annotations

from typing import Final

from covey.filters.algebra import Filter
from covey.relations.steps import Budget
from covey.relations.subsumption import NegativeSpace, Region, rectangles_of_conjunction
from covey.routing.config import SubsumptionOptions
from covey.routing.deferring import Deferring
from covey.routing.known_filters import KnownFilters
from covey.routing.stages import Change, Follow

ENTRY_STEPS: Final = 100
"""Steps that an entry counts as where it comes or goes."""


class Subsumption(Deferring):
    """Only filters that no union of others holds; those outside of the space pass."""

    name = "subsumption"

    def __init__(self, known: KnownFilters, options: SubsumptionOptions) -> None:
        super().__init__(known)
        self._space = options.space
        self._negative = NegativeSpace(
            options.space,
            method="approximate" if options.approximate else "exact",
            k=options.k,
            metric=options.metric,
            dynamic_threshold=options.dynamic_threshold,
        )
        self._rebuild_after = options.rebuild_after
        self.defers = options.rebuild_after is not None
        self._gone = 0
        """Filters that went since all was computed anew."""
        self._rebuild_waits = False

    @property
    def behind(self) -> int:  # noqa: D102
        return super().behind + self._rebuild_waits

    def catch_up(self, now: float) -> Change | None:  # noqa: ARG002, D102
        if self._rebuild_after is None or self._gone < self._rebuild_after:
            return None
        steps, budget = ENTRY_STEPS * len(self._inside), self._known.budget
        self._rebuild_waits = budget.left < steps and not budget.is_for_work
        if self._rebuild_waits:
            return None
        budget.spend(steps)
        self._gone = 0
        out = Change()
        rebuilt = self._negative.rebuild()
        for key in map(str, rebuilt.promoted):
            out.add(key, self._inside[key])
        for key in map(str, rebuilt.demoted):
            out.remove(key)
        return out

    def work(self, now: float) -> Change | None:  # noqa: D102
        self._rebuild_waits = False
        return super().work(now)

    def follow(self, key: str) -> Follow:  # noqa: D102
        is_active = key not in self._negative or self._negative.is_active(key)
        return Follow(key if is_active else None)

    def _enter(self, entries: dict[str, Filter], out: Change, budget: Budget) -> int:
        taken = 0
        for key, condition in entries.items():
            if taken and budget.left <= 0:
                break
            budget.spend(ENTRY_STEPS)
            region = self._region(condition)
            if region is not None and not self._negative.subscribe(key, region).active:
                out.remove(key)
            taken += 1
        return taken

    def _region(self, condition: Filter) -> Region | None:
        conjunction = self._known.conjunction(condition)
        return None if conjunction is None else rectangles_of_conjunction(conjunction, self._space)

    def _leave(self, key: str, out: Change, budget: Budget) -> list[str]:
        budget.spend(ENTRY_STEPS)
        self._gone += 1
        if key not in self._negative:
            out.remove(key)
            return []
        if self._negative.is_active(key):
            out.remove(key)
        for other in self._negative.unsubscribe(key):
            out.add(str(other), self._inside[str(other)])
        return []
