"""Merging: mergers in the place of what they merge (Mühl et al., section 2.6; Li et al., section 5).

A merging looks at the whole table in one piece. A request does it only where its budget has room for that; else it is
left for when there is time.

An imperfect merger goes on with what it has spent of the threshold, and what comes as a merger counts with what it has
spent: so a path of brokers stays within one threshold (`spent_degrees.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final, Protocol

from covey.filters.algebra import Filter
from covey.history import Chances
from covey.relations.merging import Merger, MergerTable, MergingPolicy
from covey.relations.steps import Budget
from covey.routing.config import MergingOptions
from covey.routing.deferring import Deferring
from covey.routing.known_filters import KnownFilters
from covey.routing.spent_degrees import spent_of, with_spent, without_spent
from covey.routing.stages import Change, Follow

MERGED_AGAIN_AFTER: Final = 0.125
"""Which part of a table must have changed before it is merged anew, whatever the policy says."""
ADVERTISEMENTS: Final = 64
"""Advertisements of a neighbour up to which degrees are of advertised events alone; with more of them, asking takes too
long, and all events count."""
ENTRY_STEPS: Final = 20
"""Steps that an entry counts as where it comes, goes or is merged."""


class Merging(Deferring):
    """Mergers in the place of what they merge."""

    name = "merging"
    defers = True

    def __init__(
        self, known: KnownFilters, policy: MergingPolicy, options: MergingOptions | None = None,
        chances: Chances | None = None,
    ) -> None:  # fmt: skip
        """Without options, perfect mergers only."""
        super().__init__(known)
        imt = 0.0 if options is None else options.imt
        self._carries = options is None or options.bounds == "path"
        self._table: MergerTable[str] = MergerTable(
            imt=imt, chances=chances, policy=policy, measure="degree" if options is None else options.measure,
            semantics=known.meaning.semantics, defaults=known.meaning.defaults, schema=known.meaning.schema,
            perfect_only=imt == 0.0, spent=self._spent,
        )  # fmt: skip
        self._uses: dict[str, int] = {}
        """How many entries of the table, and entries that wait, have a filter, by its key: it goes on once."""
        self._changes = 0
        self._merged_at = -inf
        self._every = policy.every
        self._merging_waits = False

    @property
    def behind(self) -> int:  # noqa: D102
        return len(self._waiting) + len(self._leaving) + self._merging_waits

    def _enter(self, entries: dict[str, Filter], out: Change, budget: Budget) -> int:
        taken = 0
        for key, condition in entries.items():
            if taken and budget.left <= 0:
                break
            budget.spend(ENTRY_STEPS)
            self._changes += 1
            self._take(self._table.add(key, condition), out)
            self._untell(key, out)
            taken += 1
        return taken

    def _leave(self, key: str, out: Change, budget: Budget) -> list[str]:
        budget.spend(ENTRY_STEPS)
        change = self._table.remove(key)
        self._changes += 1 + len(change.added)
        self._take(change, out)
        return []

    def follow(self, key: str) -> Follow:  # noqa: D102
        if key in self._waiting:
            return Follow(key)
        entry = self._table.entry(key)
        own, _ = self._known.normal(self._table.filter(key))
        merged, normal = self._told(entry)
        return Follow(merged, None if without_spent(merged)[0] == own else normal)

    def advertise(self, advertised: Sequence[Filter]) -> None:
        """What of a merger no event can meet that comes from where it is told costs nothing (Li et al., definition 2):
        merge by that when merging is next due."""
        if self._table.imt and self._table.advertise(advertised if len(advertised) <= ADVERTISEMENTS else ()):
            self._changes += len(self._inside)

    def catch_up(self, now: float) -> Change | None:  # noqa: D102
        if not (self._changes and self._is_worth_it(now) and self._table.due(now, bandwidth=self._known.bandwidth)):
            return None
        steps, budget = ENTRY_STEPS * len(self._inside), self._known.budget
        self._merging_waits = budget.left < steps and not budget.is_for_work
        if self._merging_waits:
            return None
        budget.spend(steps)
        self._changes, self._merged_at = 0, now
        out = Change()
        self._take(self._table.merge(now), out)
        return out

    def work(self, now: float) -> Change | None:  # noqa: D102
        self._merging_waits = False
        return super().work(now)

    def _is_worth_it(self, now: float) -> bool:
        """A merging looks at the whole table, so it waits until a part of it has changed, or for its time."""
        late = self._every is not None and now >= self._merged_at + self._every
        return late or self._changes >= MERGED_AGAIN_AFTER * len(self._inside)

    def _tell(self, key: str, condition: Filter, out: Change) -> None:
        self._count(key, condition, 1, out)

    def _untell(self, key: str, out: Change) -> None:
        self._count(key, None, -1, out)

    def _take(self, change: _MergerChange, out: Change) -> None:
        for entry in change.added:
            self._count(*self._told(entry), 1, out)
        for entry in change.removed:
            self._count(*self._told(entry), -1, out)

    def _told(self, entry: Merger[str]) -> tuple[str, Filter]:
        """What an entry goes on as: its normal form, with what it has spent."""
        key, normal = self._known.normal(entry.filter)
        return (with_spent(key, entry.degree) if self._carries else key), normal

    def _spent(self, key: str) -> float:
        return spent_of(key) if self._carries else 0.0

    def _count(self, key: str, condition: Filter | None, by: int, out: Change) -> None:
        uses = self._uses.get(key, 0)
        self._uses[key] = uses + by
        if not uses and condition is not None:
            out.add(key, condition)
        elif not uses + by:
            del self._uses[key]
            out.remove(key)


class _MergerChange(Protocol):
    @property
    def added(self) -> tuple[Merger[str], ...]: ...
    @property
    def removed(self) -> tuple[Merger[str], ...]: ...
