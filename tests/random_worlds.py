"""Random filters and events over few attributes and colliding values, by seed: quick enough for many thousand pairs."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from typing import Any

from covey.filters import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Filter,
    Is,
    Not,
    Or,
)
from covey.filters.predicates import OPERATORS
from tests.predicate_table import ADDRESSES, NETWORKS, On, lines

NUMBERS: list[int | float] = [
    0, 1, 2, 3, 5, -1, 0.5, 2.5, -0.0, 1.0, math.inf, -math.inf, math.nan, 2**53, 2**53 + 1, float(2**53), 2**63 - 1,
    -(2**63), 2**63, 10**30, 1e300, 5e-324,
]  # fmt: skip
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "ba",
    "aab",
    "é",
    "e\u0301",
    "𝄞",
    "a%b",
    "a_b",
    "A",
    "a\nb",
    "\x00",
    "zz",
    "AB",
    "bΣ",
    "İ",
    *ADDRESSES,
]
TIMES = [
    datetime(2024, 1, 1, tzinfo=UTC),
    datetime(2024, 1, 1, microsecond=1, tzinfo=UTC),
    datetime(1969, 7, 20, tzinfo=UTC),
]
PATTERNS = ["a%", "%a", "%a%", "a", "%", "_", "a_b", "%a%b%", "", "__%"]
EXPRESSIONS = ["a", "^a", "b$", "^$", ".", "a+b", "[^a]", "(?i)A"]
ELEMENTS: list[Any] = [1, 2.5, "a", True, None, math.nan]
NAMES = ["i", "j", "d", "s", "t", "b", "w", "l", "r.x", "r.y.z"]
DEFAULTS: dict[str, Any] = {"i": 1, "d": math.nan, "s": "a", "b": True, "r.x": 2.5}


def constant(rng: random.Random, name: str) -> Any:
    """A constant that suits the attribute, mostly."""
    roll = rng.random()
    if roll < 0.03:
        return None
    if roll < 0.08:
        name = rng.choice(NAMES)
    match name[0]:
        case "s" | "t":
            return rng.choice(TEXTS)
        case "b":
            return rng.random() < 0.5
        case "w":
            return rng.choice(TIMES)
        case _:
            return rng.choice(NUMBERS)


def predicate(rng: random.Random) -> Filter:
    """One predicate."""
    name = rng.choice(NAMES)
    roll = rng.random()
    if roll < 0.08:
        on: On = "anything"
    elif name == "l" and roll < 0.7:
        on = "lists"
    else:
        on = "texts" if name in ("s", "t") and roll < 0.5 else "scalars"
    return rng.choice(lines(on)).make(name, lambda what: _drawn(rng, name, what))


def _drawn(rng: random.Random, name: str, what: str) -> Any:
    match what:
        case "operator":
            return rng.choice(OPERATORS)
        case "constant":
            return constant(rng, name)
        case "constants" | "ends":
            values = [constant(rng, name) for _ in range(5)]
            kind = next((value for value in values if value is not None), None)
            alike = [value for value in values if _alike(value, kind)]
            return tuple(alike) if what == "constants" else (alike[0], alike[-1])
    pools = {"text": TEXTS, "pattern": PATTERNS, "expression": EXPRESSIONS, "element": ELEMENTS, "network": NETWORKS}
    return rng.choice(pools[what])


def _alike(left: Any, right: Any) -> bool:
    def kind(value: Any) -> type:
        return float if isinstance(value, int) and not isinstance(value, bool) else type(value)

    return left is None or right is None or kind(left) is kind(right)


def filter_of(rng: random.Random, depth: int = 4) -> Filter:
    """A filter of any shape."""
    roll = rng.random()
    if depth == 0 or roll < 0.25:
        return rng.choice([TRUE, FALSE, UNKNOWN]) if rng.random() < 0.04 else predicate(rng)
    if roll < 0.4:
        return Not(filter_of(rng, depth - 1))
    if roll < 0.5:
        return Is(filter_of(rng, depth - 1), rng.choice([True, False, None]))
    parts = tuple(filter_of(rng, depth - 1) for _ in range(rng.randint(2, 4)))
    return And(parts) if rng.random() < 0.55 else Or(parts)


def event_of(rng: random.Random) -> dict[str, Any]:
    """A partial event; nested records in either form."""
    event: dict[str, Any] = {}
    for name in NAMES:
        if rng.random() < 0.3:
            continue
        if name == "l":
            event[name] = [rng.choice([1, 2, 2.5, "a", "b", True, None, math.nan]) for _ in range(rng.randint(0, 3))]
        elif "." in name and rng.random() < 0.5:
            inner = event
            *path, last = name.split(".")
            for step in path:
                inner = inner.setdefault(step, {})
            inner[last] = constant(rng, name)
        else:
            event[name] = constant(rng, name)
    return event
