"""The counting matcher, which Bittner and Hinze measure throughput on: a yardstick, small and plain.

Matching an event has two steps. First each fulfilled predicate adds one to the counters of all subscriptions that it is
in. Then a subscription whose counter reaches `pmin`, the least number of fulfilled predicates that it can be met with,
is evaluated as a tree. So what an event costs is known in whole numbers, however busy the machine is: the additions
(`counted`) and the predicates in the trees that are evaluated (`evaluated`). Pruning for throughput takes away
predicates where `pmin` stays highest; pruning for network load takes away those that most events fulfil.

Predicates are placed by the papers' index (`covey.diagrams.predicate_index`). Filters are And, Or and Not over
predicates, in three-valued logic, as SQL has it: Not goes to the leaves, where it asks whether a predicate is false.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.attribute_tests import TRUE
from covey.diagrams.predicate_index import PredicateIndex
from covey.filters import And, Filter, Not, Or, Predicate
from covey.filters.algebra import Is
from covey.filters.semantics import attribute_value
from covey.lab.experiments import LabError

Numbers = NDArray[np.int64]

NO_NODE = -1


@dataclass(frozen=True, slots=True)
class Counted:
    """What an event met, and what that took."""

    matches: Numbers
    counted: int
    evaluated: int


class CountingMatcher:
    """Subscriptions known by their places."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self.index = PredicateIndex()
        trees = _Trees(self.index)
        least = [trees.add(place, condition) for place, condition in enumerate(filters)]
        self._least = np.array(least, np.int64)
        self._parent, self._need = np.array(trees.parent, np.int64), np.array(trees.need, np.int64)
        self._depth, self._owner = np.array(trees.depth, np.int64), np.array(trees.owner, np.int64)
        leaf_variable = np.array(trees.leaf_variable, np.int64)
        order = np.argsort(leaf_variable, kind="stable")
        self._leaves = np.array(trees.leaf_node, np.int64)[order]
        """The leaves' nodes, by variable: those of one variable are its associations."""
        self._starts = np.searchsorted(leaf_variable[order], np.arange(self.index.size + 1))
        self._sizes = np.bincount(self._owner[self._leaves], minlength=len(filters))
        self._reached = np.zeros(len(self._parent), np.int64)

    @property
    def associations(self) -> int:
        """Predicates in subscriptions."""
        return len(self._leaves)

    def match(self, event: Mapping[str, Any]) -> Counted:
        """The subscriptions that an event meets."""
        truths = self.index.truth_assignment(lambda name: attribute_value(event, name))
        leaves = self._associations(np.flatnonzero(truths == TRUE))
        owners = self._owner[leaves]
        counters = np.bincount(owners, minlength=len(self._least))
        candidates = counters >= self._least
        matches = self._evaluate(leaves[candidates[owners]])
        return Counted(matches, len(leaves), int(self._sizes[candidates].sum()))

    def _associations(self, fulfilled: Numbers) -> Numbers:
        """The leaves of these variables, one after the other."""
        starts, ends = self._starts[fulfilled], self._starts[fulfilled + 1]
        lengths = ends - starts
        before = np.concatenate([[0], np.cumsum(lengths)])
        found: Numbers = self._leaves[np.arange(before[-1]) + np.repeat(starts - before[:-1], lengths)]
        return found

    def _evaluate(self, true: Numbers) -> Numbers:
        """From true leaves up, level by level: an And is true once all its parts are, an Or once one is."""
        roots = [true[self._parent[true] == NO_NODE]]
        waiting = true[self._parent[true] != NO_NODE]
        for depth in range(int(self._depth[waiting].max(initial=0)), 0, -1):
            here = self._depth[waiting] == depth
            parents = self._parent[waiting[here]]
            np.add.at(self._reached, parents, 1)
            touched = np.unique(parents)
            met = touched[self._reached[touched] >= self._need[touched]]
            self._reached[touched] = 0
            roots.append(met[self._parent[met] == NO_NODE])
            waiting = np.concatenate([waiting[~here], met[self._parent[met] != NO_NODE]])
        return np.sort(self._owner[np.concatenate(roots)])


class _Trees:
    """All trees as lists; a node is known by its place."""

    def __init__(self, index: PredicateIndex) -> None:
        self._index = index
        self.parent: list[int] = []
        self.need: list[int] = []
        self.depth: list[int] = []
        self.owner: list[int] = []
        self.leaf_node: list[int] = []
        self.leaf_variable: list[int] = []

    def add(self, owner: int, condition: Filter, negated: bool = False, parent: int = NO_NODE, depth: int = 0) -> int:
        """Append a tree; gives its least number of fulfilled predicates."""
        while isinstance(condition, Not):
            condition, negated = condition.part, not negated
        node = len(self.parent)
        self.parent.append(parent)
        self.depth.append(depth)
        self.owner.append(owner)
        self.need.append(1)
        if isinstance(condition, And | Or):
            every = isinstance(condition, And) != negated
            self.need[node] = len(condition.parts) if every else 1
            least = [self.add(owner, part, negated, node, depth + 1) for part in condition.parts]
            return sum(least) if every else min(least)
        if not isinstance(condition, Predicate):
            kind = type(condition).__name__
            raise LabError(f"the counting matcher knows And, Or and Not over predicates; {kind} isn't one of them")
        self.leaf_node.append(node)
        self.leaf_variable.append(self._index.variable(Is(condition, False) if negated else condition))
        return 1
