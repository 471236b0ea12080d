"""Every event of a small world, and which of them a filter matches: the brute force that relations are held against.

An event is one bit of an integer. A predicate is asked of each value by the interpreter; And, Or, Not and IS combine
the events where parts are true and where they are false, bit by bit. `test_exact.py` holds this against the
interpreter too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

from covey.filters import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Constant,
    Filter,
    Is,
    Like,
    Not,
    Or,
    Predicate,
    Semantics,
    StartsWith,
    SubstringOf,
)
from covey.filters.predicates import OPERATORS
from covey.filters.semantics import truth
from tests.predicate_table import NETWORKS, Line, On, lines

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
CONSTANTS: dict[str, list[Any]] = {
    "number": [0, 1, 2, 2.5, math.inf, math.nan],
    "string": ["", "a", "ab", "b"],
    "boolean": [False, True],
    "timestamp": [NOON],
}
VALUES: list[Any] = [
    None, -math.inf, -1, 0, 0.5, 1, 1.5, 2, 2.25, 2.5, 3, math.inf, math.nan, "", "A", "a", "aa", "ab", "abb", "b",
    "ba", "c",
    False, True, NOON, NOON.replace(hour=11), NOON.replace(hour=13), (), (1,), (1, 2), (2,), (None,), (1, None),
    (2, None), (1, 2, None),
]  # fmt: skip
EXPRESSIONS = ["^a", "b$", "a+b", "^[^a]*$", "(ab|ba)", "^.$", "a.b", "^a?b{2}$", "(?i)AB", "\\d"]
_ABOUT: tuple[On, ...] = ("texts", "lists")
PLAIN_PATTERNS = ["a%", "ab", "%", ""]


class SmallWorld:
    """All events over some attributes with values from one pool."""

    def __init__(self, names: str, values: Sequence[Any] = tuple(VALUES)) -> None:
        self.names = names
        self.values = values
        self.all = (1 << len(values) ** len(names)) - 1
        self._asked: dict[tuple[Predicate, bool, Any], tuple[int, int]] = {}
        self._units: dict[str, list[int]] = {name: [0] * len(values) for name in names}
        for at, chosen in enumerate(product(range(len(values)), repeat=len(names))):
            for name, value in zip(names, chosen, strict=True):
                self._units[name][value] |= 1 << at

    def event(self, at: int) -> dict[str, Any]:
        """The event of one bit."""
        chosen = []
        for _ in self.names:
            at, value = divmod(at, len(self.values))
            chosen.append(self.values[value])
        return {name: value for name, value in zip(self.names, reversed(chosen), strict=True) if value is not None}

    def matching(self, condition: Filter, semantics: Semantics, defaults: dict[str, Any]) -> int:
        """The events that match."""
        defaults = defaults if semantics == "default" else {}
        found = self._truths(condition, semantics == "sql", defaults)[0]
        for name in condition.attributes() if semantics == "strict" else ():
            found &= ~sum(unit for value, unit in zip(self.values, self._units[name], strict=True) if value is None)
        return found

    def _truths(self, condition: Filter, three_valued: bool, defaults: dict[str, Any]) -> tuple[int, int]:
        match condition:
            case And(parts):
                true, false = self.all, 0
                for part in parts:
                    its = self._truths(part, three_valued, defaults)
                    true, false = true & its[0], false | its[1]
                return true, false
            case Or(parts):
                false, true = self._truths(And(tuple(map(Not, parts))), three_valued, defaults)
                return true, false
            case Not(part):
                true, false = self._truths(part, three_valued, defaults)
                return false, true
            case Is(part, wanted):
                true, false = self._truths(part, three_valued, defaults)
                held = self.all & ~(true | false) if wanted is None else true if wanted else false
                return held, self.all & ~held
            case Constant(value):
                value = value if three_valued else bool(value)
                return (self.all if value is True else 0), (self.all if value is False else 0)
            case Predicate():
                return self._predicate(condition, three_valued, defaults)
        raise TypeError

    def _predicate(self, predicate: Predicate, three_valued: bool, defaults: dict[str, Any]) -> tuple[int, int]:
        name = predicate.attribute
        key = (predicate, three_valued, defaults.get(name))
        if key not in self._asked:
            self._asked[key] = self._ask(predicate, three_valued, defaults.get(name))
        return self._asked[key]

    def _ask(self, predicate: Predicate, three_valued: bool, default: Any) -> tuple[int, int]:
        true = false = 0
        name = predicate.attribute
        for value, unit in zip(self.values, self._units[name], strict=True):
            seen = default if value is None else value
            found = truth(predicate, lambda _, seen=seen: seen, three_valued=three_valued)  # type: ignore[misc]
            if found is True:
                true |= unit
            elif found is False:
                false |= unit
        return true, false


def random_filter(rng: random.Random, names: str, *, texts: bool, depth: int = 3, exact: bool = True) -> Filter:
    """A filter of any shape over few attributes and constants; `texts` adds patterns that are no intervals, and without
    `exact` come predicates that relations don't decide beside all others."""
    if not exact and rng.random() < 0.3:
        inexact = [line for on in _ABOUT for line in lines(on) if not line.exact]
        return _drawn(rng, rng.choice(names), rng.choice(inexact))
    roll = rng.random()
    if depth == 0 or roll < 0.3:
        return rng.choice([TRUE, FALSE, UNKNOWN]) if rng.random() < 0.03 else _predicate(rng, rng.choice(names), texts)

    def inner() -> Filter:
        return random_filter(rng, names, texts=texts, depth=depth - 1, exact=exact)

    if roll < 0.42:
        return Not(inner())
    if roll < 0.5:
        return Is(inner(), rng.choice([True, False, None]))
    parts = tuple(inner() for _ in range(rng.randint(2, 3)))
    return And(parts) if rng.random() < 0.5 else Or(parts)


def _predicate(rng: random.Random, name: str, texts: bool) -> Filter:
    roll = rng.random()
    if roll < 0.08:
        on: On = "anything"
    elif roll < 0.16:
        on = "lists"
    elif texts and roll < 0.6:
        return text_test(rng, name)
    elif roll < 0.24:
        # Only those that are value sets, so that a small world has every case.
        return rng.choice(
            [Like(name, rng.choice(PLAIN_PATTERNS)), StartsWith(name, rng.choice("ab")), SubstringOf(name, "ab")]
        )
    else:
        on = "scalars"
    return _made(rng, name, on)


def text_test(rng: random.Random, name: str) -> Filter:
    """A test on texts over the letters a and b."""
    return _made(rng, name, "texts")


def _made(rng: random.Random, name: str, on: On) -> Filter:
    exact = lines(on, exact=True)
    return _drawn(rng, name, rng.choice([*exact, exact[0]]))


def _drawn(rng: random.Random, name: str, line: Line) -> Filter:
    kind = rng.choice(["number", "number", "number", "string", "boolean", "timestamp"])
    pool = [*CONSTANTS[kind], None] if rng.random() < 0.1 else CONSTANTS[kind]

    def draw(what: str) -> Any:
        match what:
            case "operator":
                return rng.choice(OPERATORS)
            case "constants":
                return tuple(rng.choice(pool) for _ in range(rng.randint(1, 3)))
            case "ends":
                return rng.choice(pool), rng.choice(pool)
            case "text":
                return "".join(rng.choice("ab") for _ in range(rng.randint(0, 2)))
            case "pattern":
                return "".join(rng.choice("ab%%_") for _ in range(rng.randint(1, 4)))
        pools = {"constant": pool, "expression": EXPRESSIONS, "element": [1, 1.0, 2, None], "network": NETWORKS}
        return rng.choice(pools[what])

    return line.make(name, draw)
