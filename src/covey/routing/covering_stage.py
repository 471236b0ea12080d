"""Covering: only filters that no other one covers (Mühl et al., section 2.5; Li et al., section 4.1).

Small tables compare pairs; `covey.relations.covering` takes over where there are many. Which of the two it is changes
nothing but the time that it takes: both give a pair one answer, up to which of two equivalent filters is the root.
"""

from __future__ import annotations

import sys
from typing import Final

from covey.filters.algebra import Filter
from covey.relations.covering import CoveringLimits, CoveringTable
from covey.relations.steps import Budget, LaterError
from covey.routing.deferring import Deferring
from covey.routing.known_filters import KnownFilters
from covey.routing.pairwise_covering import PairwiseCovering
from covey.routing.stages import Change, Follow

PAIRWISE: Final = 64
"""Filters up to which covering compares pairs; half as many bring that back."""


class Covering(Deferring):
    """Only filters that no other one covers."""

    name = "covering"

    def __init__(self, known: KnownFilters) -> None:
        super().__init__(known)
        self._pairs: PairwiseCovering | None = PairwiseCovering(known)
        self._table: CoveringTable | None = None

    def change(self, change: Change, now: float) -> Change:  # noqa: D102
        out = Change()
        if self._grow_or_shrink(len(change.added), out):
            self._advance(out)
        return _joined(out, super().change(change, now))

    def follow(self, key: str) -> Follow:  # noqa: D102
        if key in self._waiting:
            return Follow(key)
        root = key
        while (above := self._above(root)) is not None:
            root = above
        return Follow(root, None if root == key else self._inside[root])

    def _above(self, key: str) -> str | None:
        if self._pairs is not None:
            return self._pairs.above(key)
        assert self._table is not None
        found = self._table.covered_by(key)
        return None if found is None else str(found)

    def _enter(self, entries: dict[str, Filter], out: Change, budget: Budget) -> int:
        if self._pairs is not None:
            return self._enter_pairs(self._pairs, entries, out, budget)
        assert self._table is not None
        insertions = self._table.insert_many(entries.items(), budget)
        for key, insertion in zip(entries, insertions, strict=False):
            if insertion.covered_by is not None:
                out.remove(key)
            for other in insertion.covers:
                out.remove(str(other))
        return len(insertions)

    def _enter_pairs(self, pairs: PairwiseCovering, entries: dict[str, Filter], out: Change, budget: Budget) -> int:
        taken = 0
        for key, condition in entries.items():
            if taken and budget.left <= 0:
                break
            try:
                is_root, covered = pairs.insert(key, condition, budget)
            except LaterError:
                break
            if not is_root:
                out.remove(key)
            for other in covered:
                out.remove(other)
            taken += 1
        return taken

    def _leave(self, key: str, out: Change, budget: Budget) -> list[str]:
        if self._pairs is not None:
            was_root, recovered, covered = self._pairs.remove(key, budget)
            left = [other for other in self._inside if other not in self._pairs]
        else:
            assert self._table is not None
            was_root = self._table.covered_by(key) is None
            removal = self._table.remove(key, budget)
            recovered, covered, left = (
                list(map(str, ids)) for ids in (removal.recovered, removal.covers, removal.left)
            )
        if was_root:
            out.remove(key)
        for other in recovered:
            out.add(other, self._inside[other])
        for other in covered:
            out.remove(other)
        return left

    def _grow_or_shrink(self, coming: int, out: Change) -> bool:
        """Where another structure takes over, all that was looked at is told and looked at again, roots first: of two
        equivalent filters the one that is a root stays one."""
        size = len(self._inside) + len(self._waiting)
        if self._pairs is not None and size + coming > PAIRWISE:
            pairs, known = self._pairs, self._known
            self._again([key for key in self._inside if pairs.above(key) is not None], out)
            self._table = CoveringTable(
                semantics=known.meaning.semantics,
                defaults=known.meaning.defaults,
                schema=known.meaning.schema,
                limits=CoveringLimits(exact_decisions=sys.maxsize, decision=known.pair),
            )
            self._pairs = None
        elif self._table is not None and size + coming < PAIRWISE // 2:
            table = self._table
            self._again([key for key in self._inside if table.covered_by(key) is not None], out)
            self._pairs, self._table = PairwiseCovering(self._known), None
        else:
            return False
        return True

    def _again(self, covered: list[str], out: Change) -> None:
        under = {key: self._inside.pop(key) for key in covered}
        for key in self._leaving:
            if under.pop(key, None) is None:
                del self._inside[key]
                out.remove(key)
        self._waiting = self._inside | under | self._waiting
        self._inside = {}
        self._leaving.clear()
        for key, condition in under.items():
            out.add(key, condition)


def _joined(first: Change, second: Change) -> Change:
    """Two changes, one after the other, as one."""
    for key in second.removed:
        first.remove(key)
    for key, condition in second.added.items():
        first.add(key, condition)
    return first
