"""The queries and messages of Campailla et al., section 8.

Ten attributes (three integers, three doubles, four strings), 208 atoms, 7.6 atoms a query on average. The paper's
grammar and its probabilities aren't published; they decide how many nodes a query has. Here a query is a random
binary tree of 2 to 13 atoms (rarely more), and the chance of AND was chosen, among a handful of shapes tried, so that
the nodes before restriction are what the paper counts: at 0.9 they are within 4% of it from 25,000 to 100,000
queries. Such trees contradict themselves often (about a third can't match), which is part of what restriction gains.

Messages give values to a part of the attributes, at least one: numbers from 0 to 80, strings from twenty alternatives.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters import And, Compare, Contains, Filter, Not, Or, SubstringOf
from covey.filters.predicates import OPERATORS
from covey.filters.values import Kind
from covey.lab.workloads.blocks import BLOCK, block_count, frame, generator, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INTEGERS: Final = ("i1", "i2", "i3")
DOUBLES: Final = ("d1", "d2", "d3")
STRINGS: Final = ("s1", "s2", "s3", "s4")
ATTRIBUTES: Final = INTEGERS + DOUBLES + STRINGS
KINDS: Final = dict.fromkeys(INTEGERS + DOUBLES, Kind.NUMBER) | dict.fromkeys(STRINGS, Kind.STRING)

CALIBRATED_AND: Final = 0.9
MOST_ATOMS: Final = 20
TEXTS: Final = (
    "a", "b", "aa", "bb", "ab", "ba", "c", "d", "cc", "aab",
    "abb", "cab", "acd", "bbcc", "ddaa", "abcd", "caabd", "dcdc", "ccbbdd", "dddddddd",
)  # fmt: skip
_TOP: Final = 80


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


_ATOMS: Final = atoms()


def query_block(seed: int, number: int, *, conjunctive: float = CALIBRATED_AND, negated: float = 0.0) -> list[Filter]:
    """One block of queries; an operator is AND with chance `conjunctive`, anything is negated with chance `negated`."""
    rng = generator(seed, "queries", number)
    # 2 to 13 atoms, 7.5 on average, and rarely more: 7.6.
    usual, rare = rng.integers(2, 14, BLOCK), rng.integers(14, MOST_ATOMS + 1, BLOCK)
    sizes = np.where(rng.random(BLOCK) < 0.99, usual, rare).tolist()
    leaves = rng.integers(0, len(_ATOMS), (BLOCK, MOST_ATOMS)).tolist()
    cuts, operators = (rng.random((BLOCK, MOST_ATOMS)).tolist() for _ in range(2))
    negations = rng.random((BLOCK, 2 * MOST_ATOMS)).tolist()
    trees = (
        _Tree(leaves[row], cuts[row], operators[row], negations[row], conjunctive, negated) for row in range(BLOCK)
    )
    return [tree.grown(size) for tree, size in zip(trees, sizes, strict=True)]


class _Tree:
    """A query that is grown from numbers drawn beforehand."""

    def __init__(
        self,
        leaves: list[int],
        cuts: list[float],
        operators: list[float],
        negations: list[float],
        conjunctive: float,
        negated: float,
    ) -> None:
        self._leaves, self._cuts = iter(leaves), iter(cuts)
        self._operators, self._negations = iter(operators), iter(negations)
        self._conjunctive = conjunctive
        self._negated = negated

    def grown(self, size: int) -> Filter:
        """A part with so many atoms."""
        if size == 1:
            built = _ATOMS[next(self._leaves)]
        else:
            cut = 1 + int(next(self._cuts) * (size - 1))
            parts = (self.grown(cut), self.grown(size - cut))
            built = And(parts) if next(self._operators) < self._conjunctive else Or(parts)
        return Not(built) if next(self._negations) < self._negated else built


def queries(count: int, seed: int = 1, *, conjunctive: float = CALIBRATED_AND, negated: float = 0.0) -> list[Filter]:
    """Random queries, in this process."""
    found: list[Filter] = []
    for number in range(block_count(count)):
        found += query_block(seed, number, conjunctive=conjunctive, negated=negated)
    return found[:count]


def query_frame(
    spark: SparkSession,
    count: int,
    seed: int = 1,
    *,
    conjunctive: float = CALIBRATED_AND,
    negated: float = 0.0,
    partitions: int | None = None,
) -> DataFrame:
    """The same as a DataFrame: row and filter (SQL text)."""

    def make(number: int) -> pa.Table:
        drawn = query_block(seed, number, conjunctive=conjunctive, negated=negated)
        return pa.table({"filter": [str(one) for one in drawn]})

    return frame(spark, count, make, partitions)


def message_block(seed: int, number: int, density: float) -> pa.Table:
    """One block of messages; attributes that a message doesn't define are null."""
    rng = generator(seed, "messages", number)
    undefined = _undefined(rng, density)
    columns: dict[str, pa.Array] = {}
    for place, name in enumerate(ATTRIBUTES):
        values: Any
        if name in INTEGERS:
            values = rng.integers(0, _TOP + 1, BLOCK)
        elif name in DOUBLES:
            # One decimal, so that some messages meet = and != on doubles.
            values = np.round(rng.uniform(0, _TOP, BLOCK), 1)
        else:
            values = np.array(TEXTS, dtype=object)[rng.integers(0, len(TEXTS), BLOCK)]
        columns[name] = pa.array(values, mask=undefined[:, place])
    return pa.table(columns)


def _undefined(rng: np.random.Generator, density: float) -> NDArray[np.bool_]:
    """Which attributes each message lacks; density x 10 are defined on average, also where that isn't whole."""
    wanted = density * len(ATTRIBUTES)
    defined = np.maximum(1, int(wanted) + (rng.random(BLOCK) < wanted - int(wanted)))
    ranks = np.argsort(np.argsort(rng.random((BLOCK, len(ATTRIBUTES))), axis=1), axis=1)
    return np.asarray(ranks >= defined[:, None])


def messages(count: int, density: float, seed: int = 2) -> list[dict[str, Any]]:
    """Random messages as dictionaries of what they define, in this process."""
    drawn = table(count, lambda number: message_block(seed, number, density)).to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in drawn]


def message_frame(
    spark: SparkSession, count: int, density: float, seed: int = 2, partitions: int | None = None
) -> DataFrame:
    """The same as a DataFrame, a column for each attribute."""
    return frame(spark, count, lambda number: message_block(seed, number, density), partitions)
