"""What a covering table holds: distinct filters, with the ids that share each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeAlias

from covey.filters.algebra import Filter
from covey.relations.conjunctions import Conjunction
from covey.relations.covering.bounds import Bounds
from covey.relations.covering.roots import Box
from covey.relations.exact import Event

Key: TypeAlias = Conjunction | Filter
"""A filter as the table asks about it: a conjunction in normal form, else as it was given."""

Identity: TypeAlias = Conjunction | frozenset[Conjunction] | Filter
"""What makes filters the same: a conjunction in normal form, all branches, else the filter's structure."""


def identity_of(key: Key, bounds: Bounds | None) -> Identity:
    """What a filter with these bounds shares with those that are the same. Boxes know their hashes; a filter's
    structure is gone through for it."""
    return key if bounds is None or not bounds.complete else frozenset(bounds.inner)


class Form:
    """A distinct filter. The first id that came with it speaks for it; the others are covered by that one."""

    __slots__ = (
        "_bounds", "age", "boolean", "counterexamples", "first", "hull", "identity", "inner", "key", "number", "others",
        "slot",
    )  # fmt: skip

    def __init__(self, key: Key, bounds: Bounds | None, identity: Identity, first: Hashable, age: int) -> None:
        self.key = key
        self.identity = identity
        self._bounds = bounds
        self.boolean = not isinstance(key, Conjunction)
        self.first = first
        self.others: OrderedDict[Hashable, None] | None = None
        self.age = age
        self.number = -1
        self.hull: Box | None = None
        """Where it is filed; None for what nothing meets."""
        self.inner: Box | None = None
        """The inner box that it is filed under too; None for conjunctions, and where neither tells anything."""
        self.slot = -1
        """Where its witnesses are; -1 where they are nowhere."""
        self.counterexamples: tuple[Event, ...] = ()
        """Events that meet it, by which it was found that others don't cover it."""

    @property
    def bounds(self) -> Bounds:
        """The filter's hull and inner boxes; a conjunction is its own."""
        if self._bounds is None:
            assert isinstance(self.key, Conjunction)
            self._bounds = Bounds(self.key, (self.key,) if self.key.satisfiable else (), True)
        return self._bounds

    @property
    def is_wide(self) -> bool:
        """Whether the hull says nothing, so that only witnesses tell it from others."""
        return self.boolean and self.hull is not None and not self.hull.variables

    @property
    def boxes(self) -> tuple[Conjunction, ...]:
        """Boxes that together have all that meets the filter."""
        return self.bounds.inner if self.bounds.complete else (self.bounds.hull,)

    def join(self, id: Hashable) -> None:
        """One more id with this filter."""
        if self.others is None:
            self.others = OrderedDict()
        self.others[id] = None

    def leave(self, id: Hashable) -> bool:
        """An id goes; True where it spoke for the form and another does from now on. There must be another."""
        assert self.others
        if id != self.first:
            del self.others[id]
            return False
        self.first, _ = self.others.popitem(last=False)
        return True
