"""All subscriptions of a table with one queue of prunings over them (Sect. 3.4).

Every subscription has its best next pruning in the queue; the best of all is done, and the subscription's new best
goes back. The trees lie in arrays (`kernels`), the originals beside them, so that a subscription can be restored.
Removing a subscription removes its tree; nothing else knows of its prunings, so nothing else changes. Places of
removed trees are reused by packing the arrays once most of them are empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.errors import CoveyError, DuplicateIdError, UnknownIdError
from covey.filters import Filter, Semantics
from covey.filters.semantics import check_semantics
from covey.history import Chances
from covey.kernels import pruning as kernels
from covey.kernels.pruning import GRID, Leaves, Log, Queue, Scratch, States, Trees
from covey.relations.growing_arrays import grown
from covey.relations.pruning.dimensions import ORDERS, Dimension, Selectivity, check_dimension
from covey.relations.pruning.leaves import ENTRY_BYTES, LeafTable
from covey.relations.pruning.prunings import Prunings, Target
from covey.relations.pruning.trees import Flattening, rebuilt

_FEW_EMPTY = 1024
"""Places of removed subscriptions that aren't worth packing."""
_PER_NODE = ("kind", "size", "leaf")


class Pruner:
    """Subscriptions by id, each as far pruned as the queue has come. For one thread at a time."""

    def __init__(
        self,
        subscriptions: Iterable[tuple[str, Filter]],
        chances: Chances,
        dimension: Dimension = "network",
        semantics: Semantics = "sql",
    ) -> None:
        self.semantics: Semantics = check_semantics(semantics)
        self._dimension = check_dimension(dimension)
        self._leaves = LeafTable(chances, self.semantics)
        self._tree_of: dict[str, int] = {}
        self._living: NDArray[np.int64] | None = None
        self._ids: list[str] = []
        self._filters: list[Filter | None] = []
        self._nodes = 0
        self._kept, self._trees = _no_trees(), _no_trees()
        self._states = States(
            np.zeros((0, 3)), _integers(0), np.zeros((0, 3)), _integers(0), _integers(0), _integers(0), _integers(0),
            np.zeros((0, 3), np.int64),
        )  # fmt: skip
        self._possible = _integers(0)
        self._queue = Queue(_integers(0), _integers(0), _integers(1))
        self._totals = _integers(4)
        self._scratch = _scratch(0)
        self.add_many(subscriptions)

    # Subscriptions

    def __len__(self) -> int:
        return len(self._tree_of)

    def __contains__(self, id: object) -> bool:
        return id in self._tree_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree_of)

    def add(self, id: str, filter: Filter) -> None:
        """Add one subscription, not pruned yet."""
        self.add_many([(id, filter)])

    def add_many(self, subscriptions: Iterable[tuple[str, Filter]]) -> None:
        """Add subscriptions; the chances of predicates that are new are asked for in one call."""
        added: dict[str, Filter] = {}
        for id, condition in subscriptions:
            if id in self._tree_of or id in added:
                raise DuplicateIdError(f"subscription {id!r} is there already; remove it before adding it again")
            if not isinstance(condition, Filter):
                raise CoveyError(f"subscription {id!r}: pruning takes filters; parse the text first")
            added[id] = condition
        if not added:
            return
        flat = Flattening(self._leaves)
        for condition in added.values():
            flat.add(condition)
        self._leaves.columns()
        first = len(self._ids)
        self._append(flat)
        self._ids.extend(added)
        self._filters.extend(added.values())
        self._tree_of.update((id, first + at) for at, id in enumerate(added))
        self._living = None
        self._admit(np.arange(first, len(self._ids)))
        self._possible[first : len(self._ids)] = self._states.possible[first : len(self._ids)]

    def remove(self, id: str) -> None:
        """Remove a subscription and with it all its prunings."""
        tree = self._tree(id)
        self._withdraw(tree)
        del self._tree_of[id]
        self._living = None
        self._filters[tree] = None
        if len(self._ids) - len(self._tree_of) > max(_FEW_EMPTY, len(self._tree_of)):
            self._pack()

    def original(self, id: str) -> Filter:
        """The subscription as it was added."""
        kept = self._filters[self._tree(id)]
        assert kept is not None
        return kept

    def filter(self, id: str) -> Filter:
        """The subscription as it is now: the filter that was added until its first pruning, then one without NOT
        above its predicates."""
        tree = self._tree(id)
        if not self._states.done[tree]:
            return self.original(id)
        part = self._part(tree, int(self._trees.length[tree]))
        kind, size, leaf = (getattr(self._trees, name)[part].tolist() for name in _PER_NODE)
        return rebuilt(kind, size, leaf, self._leaves.filters)

    def filters(self) -> Iterator[tuple[str, Filter]]:
        """All subscriptions as they are now."""
        return ((id, self.filter(id)) for id in self._tree_of)

    # Pruning

    def prune(self, count: int | None = None, target: Target | None = None) -> Prunings:
        """Do the best prunings, one after the other: `count` of them, or until `target` says so, or all."""
        if count is not None and count < 0:
            raise CoveyError(f"{count} prunings can't be done; prune_to() goes back to any number from 0 on")
        target = Target() if target is None else target
        limit = self.remaining if count is None else min(count, self.remaining)
        log = _log(limit, min(self._nodes, limit * len(self._scratch.list)))
        done = kernels.prune(
            limit, target.most(len(self)), target.goals(), self._trees, self._columns(), self._states, self._queue,
            self._totals, self._scratch, log, *self._rules(),
        )  # fmt: skip
        return Prunings(log, int(done), self._ids, self._leaves.filters)

    def prune_to(self, count: int) -> Prunings:
        """Come to `count` prunings in all: by going on, or by restoring everything and pruning anew."""
        if 0 <= count < self.pruned:
            self.restore()
        return self.prune(count - self.pruned)

    def restore(self, id: str | None = None) -> None:
        """Put one subscription, or all, back as it was added. Its prunings can then be done again."""
        if id is not None:
            tree = self._tree(id)
            self._withdraw(tree)
            self._put_back(tree)
            self._admit(np.array([tree]))
            return
        for name in Trees._fields:
            getattr(self._trees, name)[:] = getattr(self._kept, name)
        self._totals[:] = 0
        self._leaves.columns().uses[:] = 0
        self._queue.size[0] = 0
        self._admit(self._alive())

    @property
    def dimension(self) -> Dimension:
        """What is optimised. Setting it keeps the prunings done and orders those to come anew."""
        return self._dimension

    @dimension.setter
    def dimension(self, dimension: Dimension) -> None:
        self._dimension = check_dimension(dimension)
        kernels.replan(
            self._alive(), self._trees, self._columns(), self._states, self._queue, self._scratch, *self._rules()
        )

    # Figures

    @property
    def pruned(self) -> int:
        """Prunings done on the subscriptions that are there."""
        return int(self._states.done[self._alive()].sum())

    @property
    def remaining(self) -> int:
        """The most prunings that can still be done."""
        return int(self._states.possible[self._alive()].sum())

    @property
    def total_possible(self) -> int:
        """The most prunings that the originals have in them: k - 1 for each conjunction of k parts. A pruning that
        removes a conjunction removes those inside it, so fewer may do; memory-based pruning does them all."""
        return int(self._possible[self._alive()].sum())

    @property
    def associations(self) -> int:
        """Predicates in subscriptions, each counted as often as it stands in one."""
        return int(self._totals[kernels.ASSOCIATIONS])

    @property
    def predicates(self) -> int:
        """Distinct predicates, a negated one being another, that some subscription still has."""
        return int(self._totals[kernels.PREDICATES])

    @property
    def bytes(self) -> int:
        """Estimated bytes of all subscriptions: entry, text, and a diagram node for each atom."""
        return int(self._totals[kernels.BYTES])

    @property
    def mean_degradation(self) -> float:
        """The subscriptions' estimated degradation, on average; 0 where there are none."""
        return int(self._totals[kernels.DEGRADATION]) / GRID / max(1, len(self))

    @property
    def expected_growth(self) -> float:
        """By how many matches an event has more on average than with the originals, estimated."""
        alive = self._alive()
        return float((self._states.now[alive, 1] - self._states.base[alive, 1]).sum())

    def degradation(self, id: str) -> float:
        """The estimated degradation of one subscription against its original."""
        return int(self._states.degradation[self._tree(id)]) / GRID

    def selectivity(self, id: str) -> Selectivity:
        """The estimated selectivity of one subscription as it is now."""
        return Selectivity(*self._states.now[self._tree(id)].tolist())

    # Arrays

    def _tree(self, id: str) -> int:
        tree = self._tree_of.get(id)
        if tree is None:
            raise UnknownIdError(f"subscription {id!r} is not there")
        return tree

    def _alive(self) -> NDArray[np.int64]:
        """The trees of the subscriptions that are there, in the order in which they came."""
        if self._living is None:
            self._living = np.fromiter(self._tree_of.values(), dtype=np.int64, count=len(self._tree_of))
        return self._living

    def _columns(self) -> Leaves:
        return self._leaves.columns()

    def _rules(self) -> tuple[NDArray[np.int64], bool, bool]:
        return np.array(ORDERS[self._dimension]), self._dimension == "memory", self.semantics == "strict"

    def _part(self, tree: int, length: int) -> slice:
        start = int(self._trees.start[tree])
        return slice(start, start + length)

    def _append(self, flat: Flattening) -> None:
        """Lay the trees of a flattening behind the others, as originals and as trees to prune."""
        lengths = np.array(flat.lengths, dtype=np.int64)
        first, count = len(self._ids), len(self._ids) + len(lengths)
        nodes = self._nodes + len(flat.kind)
        starts = self._nodes + np.cumsum(lengths) - lengths
        stored = []
        for trees in (self._kept, self._trees):
            larger = Trees(
                *(grown(getattr(trees, name), nodes if name in _PER_NODE else count) for name in Trees._fields)
            )
            for name in _PER_NODE:
                getattr(larger, name)[self._nodes : nodes] = getattr(flat, name)
            larger.start[first:count] = starts
            larger.length[first:count] = lengths
            stored.append(larger)
        self._kept, self._trees = stored
        self._nodes = nodes
        self._states = States(*(grown(column, count) for column in self._states))
        self._possible = grown(self._possible, count)
        self._queue = Queue(grown(self._queue.heap, count), grown(self._queue.place, count), self._queue.size)
        if len(self._scratch.list) < lengths.max():
            self._scratch = _scratch(int(lengths.max()))

    def _admit(self, chosen: NDArray[np.int64]) -> None:
        kernels.admit(
            chosen, self._trees, self._columns(), self._states, self._queue, self._totals, self._scratch,
            *self._rules(), ENTRY_BYTES,
        )  # fmt: skip

    def _withdraw(self, tree: int) -> None:
        order, _, strict = self._rules()
        kernels.withdraw(
            tree, self._trees, self._columns(), self._states, self._queue, self._totals, self._scratch,
            order, strict, ENTRY_BYTES,
        )  # fmt: skip

    def _put_back(self, tree: int) -> None:
        part = self._part(tree, int(self._kept.length[tree]))
        for name in _PER_NODE:
            getattr(self._trees, name)[part] = getattr(self._kept, name)[part]
        self._trees.length[tree] = self._kept.length[tree]

    def _pack(self) -> None:
        """Close the gaps that removed subscriptions left, in the trees and among the leaves."""
        alive = self._alive()
        lengths = self._kept.length[alive]
        starts = np.cumsum(lengths) - lengths
        nodes = np.repeat(self._kept.start[alive] - starts, lengths) + np.arange(int(lengths.sum()))
        used = np.unique(self._kept.leaf[nodes])
        used = used[used >= 0].astype(np.int64)
        number = np.full(len(self._leaves) + 1, -1, dtype=np.int32)
        number[used] = np.arange(len(used))
        packed = []
        for trees in (self._kept, self._trees):
            leaf = number[trees.leaf[nodes]]
            packed.append(Trees(trees.kind[nodes], trees.size[nodes], leaf, starts.copy(), trees.length[alive]))
        self._kept, self._trees = packed
        self._leaves.forget(used)
        self._nodes = len(nodes)
        self._states = States(*(column[alive] for column in self._states))
        self._possible = self._possible[alive]
        self._ids = [self._ids[tree] for tree in alive]
        self._filters = [self._filters[tree] for tree in alive]
        self._tree_of = {id: tree for tree, id in enumerate(self._ids)}
        self._living = None
        self._queue = Queue(_integers(len(alive)), _integers(len(alive)), _integers(1))
        self.dimension = self._dimension


def _integers(length: int) -> NDArray[np.int64]:
    return np.zeros(length, dtype=np.int64)


def _no_trees() -> Trees:
    return Trees(np.zeros(0, np.int8), np.zeros(0, np.int32), np.zeros(0, np.int32), _integers(0), _integers(0))


def _scratch(length: int) -> Scratch:
    rows: list[NDArray[Any]] = [np.zeros((length, 3)), np.zeros((length, 3))]
    return Scratch(*rows, *(_integers(length) for _ in range(7)))


def _log(prunings: int, nodes: int) -> Log:
    return Log(
        np.zeros((prunings, 4), np.int64), _integers(prunings + 1), np.zeros(nodes, np.int8), np.zeros(nodes, np.int32),
        np.zeros(nodes, np.int32),
    )  # fmt: skip
