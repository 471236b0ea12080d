"""Subsumption: only filters that no union of others holds (Jafarpour et al.)."""

from __future__ import annotations

from typing import Final

from covey.filters.algebra import Filter
from covey.relations.steps import Budget
from covey.relations.subsumption import NegativeSpace, Region, Space, rectangles_of_conjunction
from covey.routing.deferring import Deferring
from covey.routing.known_filters import KnownFilters
from covey.routing.stages import Change, Follow

ENTRY_STEPS: Final = 100
"""Steps that an entry counts as where it comes or goes."""


class Subsumption(Deferring):
    """Only filters that no union of others holds; those outside of the space pass."""

    name = "subsumption"

    def __init__(self, known: KnownFilters, space: Space, *, approximate: bool) -> None:
        super().__init__(known)
        self._space = space
        self._negative = NegativeSpace(space, method="approximate" if approximate else "exact")

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
        if key not in self._negative:
            out.remove(key)
            return []
        if self._negative.is_active(key):
            out.remove(key)
        for other in self._negative.unsubscribe(key):
            out.add(str(other), self._inside[str(other)])
        return []
