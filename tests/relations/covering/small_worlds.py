"""Filters over two or three attributes and a handful of values, with all events that can tell them apart.

Constants are the integers 0 to 3, so events with a value at, between and beyond them, one of another kind, a list and
nothing are all there is to tell: a filter is the set of those events that the interpreter says match it, and covering
is inclusion of such sets. That is an oracle of its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Hashable
from typing import Any

from covey.filters import And, Between, Compare, Filter, In, Is, IsNull, Not, Or
from covey.filters.semantics import Semantics, matches

NAMES = ("a", "b", "c")
VALUES: tuple[Any, ...] = (None, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, "x", [1])
DEFAULTS = {"a": 1, "b": 2.5}


def comparison(rng: random.Random, name: str) -> Filter:
    """A test that is a value set."""
    roll = rng.random()
    if roll < 0.1:
        return IsNull(name)
    if roll < 0.25:
        return In(name, tuple(rng.randint(0, 3) for _ in range(3)))
    if roll < 0.4:
        return Between(name, rng.randint(0, 2), rng.randint(1, 3))
    return Compare(name, rng.choice(("=", "!=", "<", "<=", ">", ">=")), rng.randint(0, 3))  # type: ignore[arg-type]


def conjunctive(rng: random.Random, names: tuple[str, ...] = NAMES) -> Filter:
    """A conjunction of some tests, on one attribute several times now and then."""
    parts = [comparison(rng, rng.choice(names)) for _ in range(rng.randint(1, 4))]
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


def boolean(rng: random.Random, names: tuple[str, ...] = NAMES, depth: int = 3) -> Filter:
    """A filter of any shape over value sets."""
    roll = rng.random()
    if depth == 0 or roll < 0.2:
        return comparison(rng, rng.choice(names))
    if roll < 0.3:
        return Not(boolean(rng, names, depth - 1))
    if roll < 0.38:
        return Is(boolean(rng, names, depth - 1), rng.choice((True, False, None)))
    parts = tuple(boolean(rng, names, depth - 1) for _ in range(rng.randint(2, 3)))
    return And(parts) if rng.random() < 0.5 else Or(parts)


class Oracle:
    """What each of some subscriptions matches, and who should be a root."""

    def __init__(self, semantics: Semantics, names: tuple[str, ...] = NAMES) -> None:
        self._semantics = semantics
        self._events = [
            {name: value for name, value in zip(names, values, strict=True) if value is not None}
            for values in itertools.product(VALUES, repeat=len(names))
        ]
        self.matched: dict[Hashable, int] = {}

    def matches_of(self, condition: Filter) -> int:
        """The events that match a filter, as bits."""
        bits = 0
        for number, event in enumerate(self._events):
            if matches(condition, event, semantics=self._semantics, defaults=DEFAULTS):
                bits |= 1 << number
        return bits

    def add(self, id: Hashable, condition: Filter) -> None:
        """One more subscription, the youngest."""
        self.matched[id] = self.matches_of(condition)

    def covers(self, outer: Hashable, inner: Hashable) -> bool:
        """Whether one covers another."""
        return not self.matched[inner] & ~self.matched[outer]

    def greatest(self) -> set[int]:
        """What the greatest subscriptions match."""
        distinct = set(self.matched.values())
        return {bits for bits in distinct if not any(bits != other and not bits & ~other for other in distinct)}
