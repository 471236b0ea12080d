"""The queries and messages of Campailla et al., section 8, as filters.

Ten attributes (three integers, three doubles, four strings), 208 atoms, 7.6 atoms a query on average. The paper's
grammar and its probabilities aren't published; they decide how many nodes a query has. Here a query is a random
binary tree of 2 to 13 atoms (rarely more), and the chance of AND was chosen, among a handful of shapes tried, so that
the nodes before restriction are what the paper counts: at 0.9 they are within 4% of it from 25,000 to 100,000
queries. Such trees contradict themselves often (about a third can't match), which is part of what restriction gains.
With AND and OR equally likely and a tenth of the operators negated there are 12 nodes a query before, and the factor
is smaller; `node_table.py` shows that row too.
"""

from __future__ import annotations

import random
from itertools import product
from typing import Any

from covey.filters import And, Compare, Contains, Filter, Not, Or, SubstringOf
from covey.filters.predicates import OPERATORS
from covey.filters.values import Kind

INTEGERS = ("i1", "i2", "i3")
DOUBLES = ("d1", "d2", "d3")
STRINGS = ("s1", "s2", "s3", "s4")
ATTRIBUTES = INTEGERS + DOUBLES + STRINGS
KINDS = dict.fromkeys(INTEGERS + DOUBLES, Kind.NUMBER) | dict.fromkeys(STRINGS, Kind.STRING)

CALIBRATED_AND = 0.9
TEXTS = (
    "a", "b", "aa", "bb", "ab", "ba", "c", "d", "cc", "aab",
    "abb", "cab", "acd", "bbcc", "ddaa", "abcd", "caabd", "dcdc", "ccbbdd", "dddddddd",
)  # fmt: skip


def atoms() -> list[Filter]:
    """The 208 atoms."""
    numbers: list[Filter] = [
        Compare(name, operator, value)
        for name, operator, value in product(INTEGERS + DOUBLES, OPERATORS[:6], (10, 30, 50, 70))
    ]
    texts: list[Filter] = []
    for name, text in product(STRINGS, ("aa", "bb", "a", "b")):
        texts += [Compare(name, "=", text), Compare(name, "!=", text), SubstringOf(name, text), Contains(name, text)]
    return numbers + texts


def queries(count: int, seed: int = 1, *, conjunctive: float = CALIBRATED_AND, negated: float = 0.0) -> list[Filter]:
    """Random queries; an operator is AND with chance `conjunctive`, and negated with chance `negated`."""
    chance = random.Random(seed)
    choices = atoms()

    def tree(size: int) -> Filter:
        if size == 1:
            built = chance.choice(choices)
        else:
            cut = chance.randint(1, size - 1)
            parts = (tree(cut), tree(size - cut))
            built = And(parts) if chance.random() < conjunctive else Or(parts)
        return Not(built) if chance.random() < negated else built

    return [tree(_size(chance)) for _ in range(count)]


def _size(chance: random.Random) -> int:
    # 2 to 13 atoms, 7.5 on average, and rarely more: 7.6.
    return chance.randint(2, 13) if chance.random() < 0.99 else chance.randint(14, 20)


def messages(count: int, density: float, seed: int = 2) -> list[dict[str, Any]]:
    """Random messages that define a part of the attributes, at least one."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        # The expected number of attributes is density x 10, also where that isn't whole.
        wanted = density * len(ATTRIBUTES)
        defined = int(wanted) + (chance.random() < wanted - int(wanted))
        found.append({name: _value(chance, name) for name in chance.sample(ATTRIBUTES, max(1, defined))})
    return found


def _value(chance: random.Random, name: str) -> Any:
    if name in INTEGERS:
        return chance.randint(0, 80)
    return round(chance.uniform(0, 80), 1) if name in DOUBLES else chance.choice(TEXTS)
