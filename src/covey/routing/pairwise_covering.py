"""Covering of few filters, by comparing each with each root; `covey.relations.covering` is for many."""

from __future__ import annotations

from covey.filters.algebra import Filter
from covey.relations.steps import Budget, LaterError
from covey.routing.known_filters import KnownFilters


class PairwiseCovering:
    """Covering by comparing each filter with each root."""

    def __init__(self, known: KnownFilters) -> None:
        self._known = known
        self._filters: dict[str, Filter] = {}
        self._under: dict[str, str | None] = {}

    def is_root(self, key: str) -> bool:
        """Whether no other filter covers this one."""
        return self._under[key] is None

    def above(self, key: str) -> str | None:
        """The filter that this one is under; None for a root."""
        return self._under[key]

    def insert(self, key: str, condition: Filter, budget: Budget | None = None) -> tuple[bool, list[str]]:
        """Add a filter; whether it is a root, and which roots it covers. Raises LaterError, and nothing has changed,
        where a budget isn't enough."""
        covers = self._known.covers
        roots = [other for other, parent in self._under.items() if parent is None]
        for other in roots:
            if covers(self._filters[other], condition, budget):
                self._filters[key] = condition
                self._under[key] = other
                return False, []
        covered = [other for other in roots if covers(condition, self._filters[other], budget)]
        self._filters[key] = condition
        self._under[key] = None
        for other in covered:
            self._under[other] = key
        return True, covered

    def remove(self, key: str, budget: Budget | None = None) -> tuple[bool, list[str], list[str]]:
        """Remove a filter; whether it was a root, which filters are roots now, and which roots those cover. Filters
        that a budget isn't enough for are taken out too: they are no longer in here."""
        del self._filters[key]
        parent = self._under.pop(key)
        children = [other for other, above in self._under.items() if above == key]
        if parent is not None:
            for child in children:
                self._under[child] = parent
            return False, [], []
        orphans = {child: self._filters.pop(child) for child in children}
        for child in children:
            del self._under[child]
        hit: list[str] = []
        for child, condition in orphans.items():
            try:
                hit += self.insert(child, condition, budget)[1]
            except LaterError:
                self._take_out_all(child)
        recovered = [child for child in children if self._under.get(child, child) is None]
        return True, recovered, [other for other in hit if other not in children]

    def _take_out_all(self, key: str) -> None:
        """Take out what is under a filter that is out already."""
        for child in [other for other, above in self._under.items() if above == key]:
            del self._under[child], self._filters[child]
            self._take_out_all(child)

    def __contains__(self, key: str) -> bool:
        return key in self._under
