"""Stages whose work has a budget: what it doesn't reach waits, and is told as it is until then.

An entry that comes goes on at once, as it is, and waits to be looked at; where that finds that another stands for it,
it is taken back. An entry that goes waits too, and what stands for it, or what it stands for, stays as it was until
then. So whatever is put off, the output matches all that the input matches: too much is told for a while, never too
little, and nobody waits for an optimisation. In the end the output is what it would have been without a budget.

What waits isn't journalled: a restart gives a stage all entries again.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import islice
from typing import Final

from covey.filters.algebra import Filter
from covey.relations.steps import Budget
from covey.routing.known_filters import KnownFilters
from covey.routing.stages import Change, Stage

TOGETHER: Final = 16
"""Entries that are looked at in one piece."""
LEAVING_STEPS: Final = 20
"""Steps that taking an entry out counts as, besides what looking again at others takes."""


class Deferring(Stage):
    """A stage that looks at entries when there is budget for it (`KnownFilters.budget`)."""

    def __init__(self, known: KnownFilters) -> None:
        self._known = known
        self._inside: dict[str, Filter] = {}
        """What has been looked at."""
        self._waiting: dict[str, Filter] = {}
        """What came, in order."""
        self._leaving: dict[str, None] = {}
        """What was looked at and went."""

    @property
    def behind(self) -> int:
        """Entries that wait to be looked at."""
        return len(self._waiting) + len(self._leaving)

    def change(self, change: Change, now: float) -> Change:  # noqa: ARG002, D102
        out = Change()
        was_behind = self.behind > 0
        for key in sorted(change.removed | {key for key in change.added if self._standing(key) is not None}):
            if key in change.added and change.added[key] == self._standing(key):
                continue
            if self._waiting.pop(key, None) is not None:
                self._untell(key, out)
            elif key in self._inside:
                self._leaving[key] = None
        for key, condition in change.added.items():
            if condition == self._standing(key):
                self._leaving.pop(key, None)
                continue
            if key in self._inside:
                # Another filter under the same key: the one before must be gone before this one is looked at.
                self._leave_now(key, out)
            self._waiting[key] = condition
            self._tell(key, condition, out)
        if not was_behind:
            # Who comes later doesn't come first.
            self._advance(out)
        return out

    def work(self, now: float) -> Change | None:  # noqa: ARG002, D102
        if not self.behind:
            return None
        out = Change()
        self._advance(out)
        return out

    def _tell(self, key: str, condition: Filter, out: Change) -> None:
        """An entry that waits goes on as it is."""
        out.add(key, condition)

    def _untell(self, key: str, out: Change) -> None:
        """An entry waits no longer."""
        out.remove(key)

    def _standing(self, key: str) -> Filter | None:
        """The filter that a key has in here."""
        condition = self._waiting.get(key)
        return self._inside.get(key) if condition is None else condition

    def _advance(self, out: Change) -> None:
        budget = self._known.budget
        while self._leaving and budget.left > 0:
            self._leave_now(next(iter(self._leaving)), out)
        while self._waiting and budget.left > 0:
            some = dict(islice(self._waiting.items(), TOGETHER))
            taken = self._enter(some, out, budget)
            for key in list(some)[:taken]:
                self._inside[key] = self._waiting.pop(key)
            if taken < len(some):
                return

    def _leave_now(self, key: str, out: Change) -> None:
        self._leaving.pop(key, None)
        del self._inside[key]
        self._known.budget.spend(LEAVING_STEPS)
        for other in self._leave(key, out, self._known.budget):
            condition = self._inside.pop(other)
            if other in self._leaving:
                del self._leaving[other]
                continue
            self._waiting[other] = condition
            self._tell(other, condition, out)

    @abstractmethod
    def _enter(self, entries: dict[str, Filter], out: Change, budget: Budget) -> int:
        """Look at entries, which are told as they are so far; gives for how many, from the first on, the budget was
        enough."""

    @abstractmethod
    def _leave(self, key: str, out: Change, budget: Budget) -> list[str]:
        """An entry that was looked at is gone; gives those that must be looked at again, and are told till then."""
