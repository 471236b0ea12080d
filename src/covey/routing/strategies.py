"""The stages that make of all entries what a neighbour must know: identity, covering, subsumption, merging (R2).

A stage is a table between two sets of filters by key. `change` takes what came and went on its input and gives what
comes and goes on its output, so stages stand in a row. For each of them the output matches whatever the input matches;
an entry that another one stands for is kept and comes back when that one goes (M7, M12). What a stage's output is may
depend on the order of changes (of two equivalent filters, either may stand for both), but what it means may not.

Covering keeps small tables by plain comparison of pairs; `covey.relations.covering` takes over where there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final, Protocol

from covey.filters.algebra import Filter
from covey.history import Chances
from covey.relations.covering import CoveringTable
from covey.relations.merging import Merger, MergerTable, MergingPolicy
from covey.relations.subsumption import NegativeSpace, Region, Space, rectangles_of_conjunction
from covey.routing.known_filters import KnownFilters, digest
from covey.routing.pairwise_covering import PairwiseCovering

PAIRWISE: Final = 64
"""Filters up to which covering compares pairs; half as many bring that back."""

MERGED_AGAIN_AFTER: Final = 0.125
"""Which part of a table must have changed before it is merged anew, whatever the policy says."""


@dataclass(slots=True)
class Change:
    """Entries that came and keys that went."""

    added: dict[str, Filter] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)

    def add(self, key: str, condition: Filter) -> None:
        """An entry comes; one that went and comes again is a change only if the filter is another."""
        self.added[key] = condition

    def remove(self, key: str) -> None:
        """An entry goes; one that only came in this change never was."""
        if self.added.pop(key, None) is None:
            self.removed.add(key)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class Follow:
    """What stands for an entry behind a stage."""

    key: str | None
    """In the stage's output; None where several entries do together."""
    by: Filter | None = None
    """The other filter that does; None where the entry goes on as it is, or where several do."""

    @property
    def is_itself(self) -> bool:
        """Whether the entry goes on as it is."""
        return self.key is not None and self.by is None


class Stage(Protocol):
    """A table between what is asked for and what is told."""

    name: str
    """What it does to an entry that another one stands for."""

    def change(self, change: Change, now: float) -> Change:
        """Take a change of the input; give the change of the output. Keys that come again come after they went."""

    def follow(self, key: str) -> Follow:
        """What stands for an entry of the input. Changes nothing."""


class Distinct:
    """Filters with the same key once (identity-based routing, Mühl et al., section 2.4)."""

    name = "identity"

    def __init__(self, key_of: Callable[[str, Filter], tuple[str, Filter]]) -> None:
        self._key_of = key_of
        self._keys: dict[str, str] = {}
        self._uses: dict[str, int] = {}

    def change(self, change: Change, now: float) -> Change:  # noqa: ARG002, D102
        out = Change()
        gone: list[str] = []
        for source in sorted(change.removed):
            key = self._keys.pop(source)
            self._uses[key] -= 1
            if not self._uses[key]:
                gone.append(key)
        for source, condition in change.added.items():
            key, normal = self._key_of(source, condition)
            self._keys[source] = key
            uses = self._uses.get(key)
            self._uses[key] = (uses or 0) + 1
            if uses is None:
                out.add(key, normal)
        for key in gone:
            if not self._uses[key]:
                del self._uses[key]
                out.remove(key)
        return out

    def follow(self, key: str) -> Follow:  # noqa: D102
        return Follow(self._keys[key])


class Covering:
    """Only filters that no other one covers (Mühl et al., section 2.5; Li et al., section 4.1)."""

    name = "covering"

    def __init__(self, known: KnownFilters) -> None:
        self._known = known
        self._filters: dict[str, Filter] = {}
        self._pairs: PairwiseCovering | None = PairwiseCovering(known)
        self._table: CoveringTable | None = None

    def change(self, change: Change, now: float) -> Change:  # noqa: ARG002, D102
        out = Change()
        self._grow_or_shrink(len(change.added))
        for key in sorted(change.added.keys() & self._filters.keys()):
            self._remove(key, out)
        self._filters.update(change.added)
        if self._table is not None and len(change.added) > PAIRWISE:
            self._insert_many(change.added, out)
        else:
            for key, condition in change.added.items():
                self._insert(key, condition, out)
        for key in sorted(change.removed):
            if key not in change.added:
                self._remove(key, out)
        self._grow_or_shrink()
        return out

    def follow(self, key: str) -> Follow:  # noqa: D102
        root = key
        while (above := self._above(root)) is not None:
            root = above
        return Follow(root, None if root == key else self._filters[root])

    def _above(self, key: str) -> str | None:
        if self._pairs is not None:
            return self._pairs.above(key)
        assert self._table is not None
        found = self._table.covered_by(key)
        return None if found is None else str(found)

    def _insert(self, key: str, condition: Filter, out: Change) -> None:
        if self._pairs is not None:
            is_root, covered = self._pairs.insert(key, condition)
        else:
            assert self._table is not None
            insertion = self._table.insert(key, condition)
            is_root, covered = insertion.covered_by is None, [str(other) for other in insertion.covers]
        if is_root:
            out.add(key, condition)
        for other in covered:
            out.remove(other)

    def _insert_many(self, filters: dict[str, Filter], out: Change) -> None:
        assert self._table is not None
        for key, insertion in zip(filters, self._table.insert_many(filters.items()), strict=True):
            if insertion.covered_by is None:
                out.add(key, filters[key])
            for other in insertion.covers:
                out.remove(str(other))

    def _remove(self, key: str, out: Change) -> None:
        del self._filters[key]
        if self._pairs is not None:
            was_root, recovered, covered = self._pairs.remove(key)
        else:
            assert self._table is not None
            was_root = self._table.covered_by(key) is None
            removal = self._table.remove(key)
            recovered, covered = [str(other) for other in removal.recovered], [str(other) for other in removal.covers]
        if was_root:
            out.remove(key)
        for other in recovered:
            out.add(other, self._filters[other])
        for other in covered:
            out.remove(other)

    def _grow_or_shrink(self, coming: int = 0) -> None:
        """Both tables have the same roots, up to which of two equivalent filters is one; so the order of insertion says
        which, roots first."""
        if self._pairs is not None and len(self._filters) + coming > PAIRWISE:
            known = self._known
            self._table = CoveringTable(semantics=known.semantics, defaults=known.defaults, schema=known.schema)
            self._table.insert_many(self._roots_first(self._pairs.is_root))
            self._pairs = None
        elif self._table is not None and len(self._filters) < PAIRWISE // 2:
            table = self._table
            self._pairs = PairwiseCovering(self._known)
            for key, condition in self._roots_first(lambda key: table.covered_by(key) is None):
                self._pairs.insert(key, condition)
            self._table = None

    def _roots_first(self, is_root: Callable[[str], bool]) -> list[tuple[str, Filter]]:
        return sorted(self._filters.items(), key=lambda item: not is_root(item[0]))


class Subsumption:
    """Only filters that no union of others holds (Jafarpour et al.); those outside of the space pass."""

    name = "subsumption"

    def __init__(self, known: KnownFilters, space: Space, *, approximate: bool) -> None:
        self._known = known
        self._space = space
        self._negative = NegativeSpace(space, method="approximate" if approximate else "exact")
        self._filters: dict[str, Filter] = {}

    def change(self, change: Change, now: float) -> Change:  # noqa: ARG002, D102
        out = Change()
        for key, condition in change.added.items():
            if key in self._filters:
                self._remove(key, out)
            region = self._region(condition)
            self._filters[key] = condition
            if region is None or self._negative.subscribe(key, region).active:
                out.add(key, condition)
        for key in sorted(change.removed):
            if key not in change.added:
                self._remove(key, out)
        return out

    def follow(self, key: str) -> Follow:  # noqa: D102
        is_told = key not in self._negative or self._negative.is_active(key)
        return Follow(key if is_told else None)

    def _region(self, condition: Filter) -> Region | None:
        conjunction = self._known.conjunction(condition)
        return None if conjunction is None else rectangles_of_conjunction(conjunction, self._space)

    def _remove(self, key: str, out: Change) -> None:
        del self._filters[key]
        if key not in self._negative:
            out.remove(key)
            return
        if self._negative.is_active(key):
            out.remove(key)
        for other in self._negative.unsubscribe(key):
            out.add(str(other), self._filters[str(other)])


class Merging:
    """Mergers in the place of what they merge (Mühl et al., section 2.6; Li et al., section 5)."""

    name = "merging"

    def __init__(
        self, known: KnownFilters, policy: MergingPolicy, *, imt: float = 0.0, chances: Chances | None = None
    ) -> None:
        self._table: MergerTable[str] = MergerTable(
            imt=imt, chances=chances, policy=policy, semantics=known.semantics, defaults=known.defaults,
            schema=known.schema, perfect_only=imt == 0.0,
        )  # fmt: skip
        self._known = known
        self._keys: set[str] = set()
        self._told: dict[str, int] = {}
        self._changes = 0
        self._merged_at = -inf
        self._every = policy.every

    def change(self, change: Change, now: float) -> Change:  # noqa: ARG002, D102
        out = _Counted(self._told, self._known)
        for key in sorted(change.removed | (self._keys & change.added.keys())):
            self._keys.discard(key)
            self._changes += 1
            out.take(self._table.remove(key))
        for key, condition in change.added.items():
            self._keys.add(key)
            self._changes += 1
            out.take(self._table.add(key, condition))
        return out.change()

    def follow(self, key: str) -> Follow:  # noqa: D102
        entry = self._table.entry(key)
        own, _ = self._known.normal(self._table.filter(key))
        told, normal = self._known.normal(entry.filter)
        return Follow(told, None if told == own else normal)

    def is_due(self, now: float) -> bool:
        """Whether it is time to merge."""
        return self._changes > 0 and self._is_worth_it(now) and self._table.due(now)

    def merge(self, now: float) -> Change:
        """Merge all anew; gives the change of the output."""
        self._changes, self._merged_at = 0, now
        out = _Counted(self._told, self._known)
        out.take(self._table.merge(now))
        return out.change()

    def _is_worth_it(self, now: float) -> bool:
        """A merging looks at the whole table, so it waits until a part of it has changed, or for its time."""
        late = self._every is not None and now >= self._merged_at + self._every
        return late or self._changes >= MERGED_AGAIN_AFTER * len(self._keys)


class _Counted:
    """Entries of a merger table by the key of their filter; two with the same filter count twice and are told once."""

    def __init__(self, told: dict[str, int], known: KnownFilters) -> None:
        self._told = told
        self._known = known
        self._before: dict[str, bool] = {}
        self._filters: dict[str, Filter] = {}

    def take(self, change: _MergerChange) -> None:
        for entry in change.added:
            self._count(entry, 1)
        for entry in change.removed:
            self._count(entry, -1)

    def _count(self, entry: Merger[str], by: int) -> None:
        key, normal = self._known.normal(entry.filter)
        self._before.setdefault(key, self._told.get(key, 0) > 0)
        self._filters[key] = normal
        self._told[key] = self._told.get(key, 0) + by

    def change(self) -> Change:
        out = Change()
        for key, was_told in self._before.items():
            is_told = self._told[key] > 0
            if not self._told[key]:
                del self._told[key]
            if is_told and not was_told:
                out.add(key, self._filters[key])
            elif was_told and not is_told:
                out.remove(key)
        return out


class _MergerChange(Protocol):
    @property
    def added(self) -> tuple[Merger[str], ...]: ...
    @property
    def removed(self) -> tuple[Merger[str], ...]: ...


def own_key(source: str, condition: Filter) -> tuple[str, Filter]:
    """Simple routing: every entry by the key that it came with (after the hop's name)."""
    return source.partition("\n")[2], condition


def entry_key(broker: str, client: str, id: str, text: str) -> str:
    """The key of a client's entry, one in the whole network; another filter is another entry."""
    return f"{broker}/{digest(f'{len(client)}:{client}{id}')}/{digest(text)}"


def through(stages: Iterable[Stage], change: Change, now: float) -> Change:
    """A change through stages in a row."""
    for stage in stages:
        if not change:
            return change
        change = stage.change(change, now)
    return change
