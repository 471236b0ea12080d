"""Identity: filters that mean the same once (Mühl et al., section 2.4), by the key of their normal form.

Making normal forms takes longer than all else that happens to an entry, so of a large change (a load, a link that joins
the tree) they are made later: until then an entry is told as it is, under the key that it came with. A merger that has
spent something (`spent_degrees.py`) is another entry than the same filter that hasn't; covering lets one of them go.
"""

from __future__ import annotations

from typing import Final

from covey.filters.algebra import Filter
from covey.routing.known_filters import KnownFilters
from covey.routing.spent_degrees import with_spent, without_spent
from covey.routing.stages import Change, Follow, Stage, own_key

ENTRY_STEPS: Final = 50
"""Steps that making a normal form counts as."""


class Identity(Stage):
    """Filters with the same normal form once."""

    name = "identity"

    def __init__(self, known: KnownFilters) -> None:
        self._known = known
        self._keys: dict[str, str] = {}
        """The keys of normal forms, by those that entries came with."""
        self._waiting: dict[str, Filter] = {}
        """What came and has no normal form yet, in order."""
        self._uses: dict[str, int] = {}
        """How many entries go on under a key."""

    @property
    def behind(self) -> int:  # noqa: D102
        return len(self._waiting)

    def change(self, change: Change, now: float) -> Change:  # noqa: ARG002, D102
        out = Change()
        at_once = len(change.added) <= self._known.normal_at_once
        for source, condition in change.added.items():
            before = self._leaves(source)
            if at_once:
                self._enter(source, condition, out)
            else:
                self._waiting[source] = condition
                self._count(*own_key(source, condition), 1, out)
            if before is not None:
                self._count(before, None, -1, out)
        for source in sorted(change.removed):
            if source not in change.added:
                before = self._leaves(source)
                if before is not None:
                    self._count(before, None, -1, out)
        return out

    def follow(self, key: str) -> Follow:  # noqa: D102
        return Follow(own_key(key, self._waiting[key])[0] if key in self._waiting else self._keys[key])

    def work(self, now: float) -> Change | None:  # noqa: ARG002, D102
        out, budget = Change(), self._known.budget
        for source in list(self._waiting):
            if budget.left <= 0:
                break
            budget.spend(ENTRY_STEPS)
            condition = self._waiting.pop(source)
            self._enter(source, condition, out)
            self._count(own_key(source, condition)[0], None, -1, out)
        return out

    def _enter(self, source: str, condition: Filter, out: Change) -> None:
        told, spent = without_spent(own_key(source, condition)[0])
        key, normal = self._known.normal(condition, told)
        key = with_spent(key, spent)
        self._keys[source] = key
        self._count(key, normal, 1, out)

    def _leaves(self, source: str) -> str | None:
        """An entry is gone; gives the key that it went on under."""
        condition = self._waiting.pop(source, None)
        return self._keys.pop(source, None) if condition is None else own_key(source, condition)[0]

    def _count(self, key: str, condition: Filter | None, by: int, out: Change) -> None:
        uses = self._uses.get(key, 0)
        self._uses[key] = uses + by
        if not uses and condition is not None:
            out.add(key, condition)
        elif not uses + by:
            del self._uses[key]
            out.remove(key)
