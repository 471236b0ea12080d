"""Seeded random subscriptions and events for pruning: many conjunctions, so that there is something to prune."""

from __future__ import annotations

import random
from typing import Any

from covey.filters import And, Filter, Is, Not, Or
from tests.random_worlds import event_of, filter_of, predicate


def conjunctive(rng: random.Random, depth: int = 4) -> Filter:
    """A filter that has AND, OR and NOT on most of its levels."""
    roll = rng.random()
    if depth == 0 or roll < 0.15:
        return predicate(rng)
    if roll < 0.3:
        return Not(conjunctive(rng, depth - 1))
    if roll < 0.35:
        return Is(conjunctive(rng, depth - 1), rng.choice([True, False, None]))
    parts = tuple(conjunctive(rng, depth - 1) for _ in range(rng.randint(2, 4)))
    return And(parts) if rng.random() < 0.6 else Or(parts)


def subscriptions(seed: int, count: int, depth: int = 3) -> list[tuple[str, Filter]]:
    rng = random.Random(seed)
    return [(f"s{at}", (filter_of if rng.random() < 0.2 else conjunctive)(rng, depth)) for at in range(count)]


def events(seed: int, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [event_of(rng) for _ in range(count)]
