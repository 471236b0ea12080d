"""Pruning as its definition says, on filters as values: slow, without arrays or running products. The kernels' twin."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.filters import And, Filter, In, Is, Not, Or, Predicate, Semantics, matches
from covey.filters.algebra import all_of, any_of, leaves

GRID = 2**40
NEVER = 2**24


class Counted:
    """Chances counted by the interpreter on a list of events."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        self.events = events
        self.calls = 0
        self._known: dict[tuple[Filter, Semantics], float] = {}

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        self.calls += 1
        for one in filters:
            if (one, semantics) not in self._known:
                self._known[one, semantics] = share(one, self.events, semantics)
        return np.array([self._known[one, semantics] for one in filters])


class Given:
    """Chances by a leaf's text."""

    def __init__(self, chances: Mapping[str, float], otherwise: float = 0.5) -> None:
        self.known = chances
        self.otherwise = otherwise

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        return np.array([self.known.get(str(one), self.otherwise) for one in filters])


def share(condition: Filter, events: Sequence[Mapping[str, Any]], semantics: Semantics) -> float:
    return sum(matches(condition, event, semantics=semantics) for event in events) / len(events)


def normal(condition: Filter, negated: bool = False) -> Filter:
    """NOT pushed down to the leaves."""
    match condition:
        case And(parts) | Or(parts):
            join = all_of if isinstance(condition, And) is not negated else any_of
            return join([normal(part, negated) for part in parts])
        case Not(part):
            return normal(part, not negated)
        case Is(part, True) if not negated:
            return normal(part, False)
        case Is(part, False) if not negated:
            return normal(part, True)
    return Not(condition) if negated else condition


def prunings(tree: Filter) -> Iterator[tuple[Filter, Filter]]:
    """Every part that can go and what is left, in the order in which the parts begin."""
    if not isinstance(tree, (And, Or)):
        return
    join = all_of if isinstance(tree, And) else any_of
    for at, part in enumerate(tree.parts):
        rest = [*tree.parts[:at], *tree.parts[at + 1 :]]
        if isinstance(tree, And):
            yield part, join(rest)
        for removed, left in prunings(part):
            yield removed, join([*tree.parts[:at], left, *tree.parts[at + 1 :]])


def possible(tree: Filter) -> int:
    own = len(tree.parts) - 1 if isinstance(tree, And) else 0
    return own + sum(map(possible, tree.parts)) if isinstance(tree, (And, Or)) else 0


class Estimator:
    """The three estimates of a tree."""

    def __init__(self, chances: Any, semantics: Semantics) -> None:
        self._chances, self._semantics = chances, semantics
        self._known: dict[Filter, float] = {}

    def selectivity(self, tree: Filter) -> tuple[float, float, float]:
        if not isinstance(tree, (And, Or)):
            if tree not in self._known:
                self._known[tree] = float(self._chances.chances([tree], self._semantics)[0])
            return (self._known[tree],) * 3
        low, mean, high = zip(*map(self.selectivity, tree.parts), strict=True)
        at_once = max(0.0, sum(low) - (len(low) - 1))
        if isinstance(tree, And):
            return at_once, math.prod(mean), min(high)
        least = at_once if self._semantics == "strict" else max(low)
        return least, 1 - math.prod(1 - one for one in mean), min(1.0, sum(high))

    def fulfilled(self, tree: Filter) -> int:
        match tree:
            case And(parts):
                return sum(map(self.fulfilled, parts))
            case Or(parts):
                return min(map(self.fulfilled, parts))
        if any(isinstance(one, Predicate) for one in leaves(tree)):
            return 1
        return 0 if matches(tree, {}, semantics=self._semantics) else NEVER

    def size(self, tree: Filter) -> int:
        found = [one for one in leaves(tree) if isinstance(one, Predicate)]
        return 18 + 16 * sum(len(one.values) if isinstance(one, In) else 1 for one in found) + len(str(tree).encode())

    def degradation(self, original: Filter, tree: Filter) -> int:
        return self.loss(self.selectivity(original), tree)

    def loss(self, before: tuple[float, float, float], tree: Filter) -> int:
        """The degradation, with the selectivity of the original known."""
        after = self.selectivity(tree)
        return math.floor(max(0.0, *(b - a for a, b in zip(before, after, strict=True))) * GRID + 0.5)


Step = tuple[str, Filter, int, int, int]


class PlainPruner:
    """One queue over all subscriptions, of tuples and filters."""

    def __init__(
        self, subscriptions: Sequence[tuple[str, Filter]], chances: Any, dimension: str, semantics: Semantics
    ) -> None:
        self._estimator = Estimator(chances, semantics)
        self._dimension = dimension
        self.ids = [id for id, _ in subscriptions]
        self.originals = [normal(condition) for _, condition in subscriptions]
        self.trees = list(self.originals)
        self._queue: list[Any] = []
        for at in range(len(self.trees)):
            self._offer(at)

    def _offer(self, at: int) -> None:
        original, tree, estimator = self.originals[at], self.trees[at], self._estimator
        options: list[Any] = []
        before, fulfilled, size = estimator.selectivity(original), estimator.fulfilled(original), estimator.size(tree)
        for position, (removed, left) in enumerate(prunings(tree)):
            if self._dimension == "memory" and possible(removed):
                continue
            worse = estimator.loss(before, left)
            slower = fulfilled - estimator.fulfilled(left)
            larger = estimator.size(left) - size
            ranks = {
                "network": (worse, slower, larger),
                "memory": (larger, worse, slower),
                "throughput": (slower, worse, larger),
            }
            step = (self.ids[at], removed, worse, -slower, -larger)
            options.append((ranks[self._dimension], position, step, left))
        if options:
            rank, _, step, left = min(options, key=lambda option: option[:2])
            heapq.heappush(self._queue, (rank, at, step, left))

    def prune(self, count: int = 10**9) -> list[Step]:
        steps: list[Step] = []
        while self._queue and len(steps) < count:
            _, at, step, left = heapq.heappop(self._queue)
            self.trees[at] = left
            steps.append(step)
            self._offer(at)
        return steps

    def switch(self, dimension: str) -> None:
        self._dimension = dimension
        self._queue.clear()
        for at in range(len(self.trees)):
            self._offer(at)
