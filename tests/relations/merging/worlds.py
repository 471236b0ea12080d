"""Small random tables of subscriptions and events in which constants meet often."""

from __future__ import annotations

import random
from typing import Any

from covey.filters import FALSE, Compare, Contains, Filter, In, IsNull, Not, StartsWith, all_of, any_of

DEFAULTS: dict[str, Any] = {"a": 3, "s": "ab"}


def predicate(rng: random.Random, name: str) -> Filter:
    """A test on one attribute: `s` has strings, the others numbers from 0 to 9."""
    if rng.random() < 0.03:
        return rng.choice([IsNull(name), Not(IsNull(name))])
    if name == "s":
        text = rng.choice(["", "a", "ab", "abc", "b", "ba"])
        return rng.choice(
            [Compare(name, "=", text), StartsWith(name, text), Contains(name, text), Compare(name, "<", text)]
        )
    roll = rng.random()
    if roll < 0.15:
        return In(name, tuple(rng.sample(range(10), 3)))
    if roll < 0.3:
        low = rng.randint(0, 8)
        return Compare(name, ">=", low) & Compare(name, "<=", low + rng.randint(0, 4))
    if roll < 0.4:
        return Not(Compare(name, rng.choice(["=", "<"]), rng.randint(0, 9)))  # type: ignore[arg-type]
    return Compare(name, rng.choice(["<", "<=", ">", ">=", "=", "!="]), rng.randint(0, 9))  # type: ignore[arg-type]


def subscription(rng: random.Random, names: str = "abcs") -> Filter:
    """A conjunction on two or three attributes mostly; a point, a disjunction or never true, sometimes."""
    roll = rng.random()
    if roll < 0.02:
        return FALSE
    if roll < 0.06 or len(names) == 1:
        name = rng.choice(names)
        return Compare(name, "=", "ab" if name == "s" else rng.randint(0, 9))
    parts = [predicate(rng, name) for name in rng.sample(names, min(rng.choice((2, 3, 3)), len(names)))]
    return any_of(parts) & predicate(rng, names[0]) if roll < 0.1 else all_of(parts)


def table(seed: int, size: int, names: str = "abcs") -> list[tuple[int, Filter]]:
    """Subscriptions with ids."""
    rng = random.Random(seed)
    return [(id, subscription(rng, names)) for id in range(size)]


def events(seed: int, count: int, names: str = "abcs", missing: float = 0.15) -> list[dict[str, Any]]:
    """Partial events."""
    rng = random.Random(seed)
    result = []
    for _ in range(count):
        event: dict[str, Any] = {}
        for name in names:
            if rng.random() >= missing:
                event[name] = rng.choice(["", "a", "ab", "abc", "b", "ba", "c"]) if name == "s" else rng.randint(-1, 10)
        result.append(event)
    return result
