"""What a number of prunings costs, and the number that costs least, found on a sample.

Pruning makes an event cheaper to match, since fewer predicates stand in subscriptions, and dearer to route, since
pruned subscriptions match events that nobody asked for. `CostModel` weighs the two; its false matches are estimated,
or counted on sampled events. Any other measurement, a matcher's seconds say, can take its place in `best_count`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from covey.history import Chances
from covey.relations.pruning.control import CountSearch
from covey.relations.pruning.pruner import Pruner

_SUBSCRIPTIONS = 10_000
"""Subscriptions whose false matches are counted, spread evenly over all; the rest is taken to be like them."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost of one event on average, in a unit of the user's choice."""

    per_association: float
    """For each predicate in a subscription."""
    per_false_match: float
    """For each subscription that matches the event only since it was pruned."""
    chances: Chances | None = None
    """Where false matches are counted; without it they are the growth of the estimated average selectivity."""
    subscriptions: int = _SUBSCRIPTIONS
    """How many subscriptions are counted on at most."""

    def __call__(self, pruner: Pruner) -> float:
        """The cost at the number of prunings that the pruner is at."""
        return self.per_association * pruner.associations + self.per_false_match * self.false_matches(pruner)

    def false_matches(self, pruner: Pruner) -> float:
        """Matches of an event, on average, that the original subscriptions don't have."""
        if self.chances is None or not len(pruner):
            return pruner.expected_growth
        ids = list(pruner)
        stride = -(-len(ids) // self.subscriptions)
        chosen = ids[::stride]
        filters = [pruner.original(id) for id in chosen] + [pruner.filter(id) for id in chosen]
        before, after = np.split(self.chances.chances(filters, pruner.semantics), 2)
        return float((after - before).mean()) * len(ids)


@dataclass(frozen=True, slots=True)
class BestCount:
    """The number of prunings that costs least, its cost, and every (count, cost) that was measured on the way."""

    count: int
    cost: float
    curve: tuple[tuple[int, float], ...]


def best_count(pruner: Pruner, cost: Callable[[Pruner], float], *, search: CountSearch | None = None) -> BestCount:
    """Find the number of prunings at which `cost` is least, and leave the pruner there."""
    search = CountSearch(pruner.total_possible) if search is None else search
    while not search.settled:
        pruner.prune_to(search.decide())
        search.observe(cost(pruner))
    pruner.prune_to(search.best)
    return BestCount(search.best, search.cost, tuple(search.curve))
