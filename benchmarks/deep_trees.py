"""The two workloads with random Boolean trees.

`paper` follows section 8 of Campailla, Chaki, Clarke, Jha and Veith, "Efficient filtering in publish-subscribe
systems using binary decision diagrams": ten attributes, 208 atoms, 7.6 atoms a query. Its grammar is not published,
so that the shape here is our reading: a random binary tree, AND and OR equally likely, a tenth of the nodes negated.

`ads` is shaped after targeting rules in advertising: up to 56 predicates, nine levels, 122 attributes of which an
event defines 20.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pyarrow as pa

from benchmarks.trees import Tree

Parts = tuple[list[Tree], pa.Table]

NUMBER_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
PAPER_STRINGS = (
    "a", "b", "aa", "bb", "ab", "ba", "c", "d", "cc", "aab",
    "abb", "cab", "acd", "bbcc", "ddaa", "abcd", "caabd", "dcdc", "ccbbdd", "dddddddd",
)  # fmt: skip


def paper_atoms() -> list[Tree]:
    """The paper's 208 atomic formulas."""
    atoms: list[Tree] = []
    for attribute, op, value in product(("i1", "i2", "i3"), NUMBER_OPERATORS, (10, 30, 50, 70)):
        atoms.append(["cmp", attribute, op, value])
    for attribute, op, number in product(("d1", "d2", "d3"), NUMBER_OPERATORS, (10.0, 30.0, 50.0, 70.0)):
        atoms.append(["cmp", attribute, op, number])
    for attribute, text in product(("s1", "s2", "s3", "s4"), ("aa", "bb", "a", "b")):
        atoms += [["cmp", attribute, "=", text], ["cmp", attribute, "!=", text]]
        atoms += [["substring_of", attribute, text], ["contains", attribute, text]]
    assert len(atoms) == 208
    return atoms


def generate_paper(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """Random queries over the 208 atoms; about two fifths of them match an event."""
    atoms = paper_atoms()
    sizes = 1 + rng.poisson(6.6, n)
    chosen = rng.integers(0, len(atoms), int(sizes.sum())).tolist()
    shapes = random.Random(int(rng.integers(2**32)))
    trees, at = [], 0
    for size in sizes.tolist():
        trees.append(_binary([atoms[c] for c in chosen[at : at + size]], shapes))
        at += size
    return trees, _paper_events(rng, n_events)


def _binary(leaves: list[Tree], shapes: random.Random) -> Tree:
    if len(leaves) == 1:
        tree = leaves[0]
    else:
        cut = 1 + int(shapes.random() * (len(leaves) - 1))
        operator = "and" if shapes.random() < 0.5 else "or"
        tree = [operator, _binary(leaves[:cut], shapes), _binary(leaves[cut:], shapes)]
    return ["not", tree] if shapes.random() < 0.1 else tree


def _paper_events(rng: np.random.Generator, n: int) -> pa.Table:
    columns: dict[str, pa.Array] = {f"i{i}": pa.array(rng.integers(0, 81, n)) for i in (1, 2, 3)}
    # One decimal, so that = and != on doubles are met by some events.
    columns |= {f"d{i}": pa.array(np.round(rng.uniform(0, 80, n), 1)) for i in (1, 2, 3)}
    strings = np.array(PAPER_STRINGS, dtype=object)
    columns |= {f"s{i}": pa.array(strings[rng.integers(0, len(strings), n)].tolist()) for i in (1, 2, 3, 4)}
    return pa.table(columns)


ADS_KINDS = ("int",) * 40 + ("double",) * 28 + ("string",) * 42 + ("boolean",) * 12
ADS_DEFINED = 20
ADS_MOST_PREDICATES = 56
ADS_DEEPEST = 9
ADS_STRING_VALUES = 40
ADS_INTEGER_TOP = 1000


def generate_ads(rng: np.random.Generator, n: int, n_events: int) -> Parts:
    """Targeting rules: a conjunction on top, alternatives and exclusions below; about 1% match an event."""
    attributes, popularity = _ads_attributes(rng)
    sizes = np.clip(np.round(rng.lognormal(1.7, 0.8, n)), 1, ADS_MOST_PREDICATES).astype(int)
    leaves = _ads_leaves(rng, attributes, popularity, int(sizes.sum()))
    shapes = random.Random(int(rng.integers(2**32)))
    trees, at = [], 0
    for size in sizes.tolist():
        trees.append(_alternating(leaves[at : at + size], "and", 1, shapes))
        at += size
    return trees, _ads_events(rng, attributes, popularity, n_events)


def _ads_attributes(rng: np.random.Generator) -> tuple[list[tuple[str, str]], np.ndarray]:
    kinds = rng.permutation(np.array(ADS_KINDS)).tolist()
    weights = 1.0 / np.arange(1, len(kinds) + 1)
    return [(f"{kind[0]}{i}", kind) for i, kind in enumerate(kinds)], weights / weights.sum()


def _ads_leaves(
    rng: np.random.Generator, attributes: list[tuple[str, str]], popularity: np.ndarray, n: int
) -> list[Tree]:
    chosen = rng.choice(len(attributes), n, p=popularity).tolist()
    forms = rng.random(n).tolist()
    values = rng.random((n, 3)).tolist()
    return [_ads_leaf(attributes[c], form, v) for c, form, v in zip(chosen, forms, values, strict=True)]


def _ads_leaf(named: tuple[str, str], form: float, draws: list[float]) -> Tree:
    """One predicate: `form` in 0..1 chooses its operator, `draws` its constants."""
    attribute, kind = named
    if kind == "boolean":
        return ["cmp", attribute, "=", form < 0.5]
    if kind == "string":
        names = [f"v{int(draw * ADS_STRING_VALUES)}" for draw in draws]
        if form < 0.55:
            return ["cmp", attribute, "=", names[0]]
        return ["in", attribute, sorted(set(names))] if form < 0.95 else ["cmp", attribute, "!=", names[0]]
    if kind == "int":
        low = int(draws[0] * ADS_INTEGER_TOP)
        if form < 0.3:
            # Small codes, as of a country or a format, which events often have too.
            return ["in", attribute, sorted({int(draw * 20) for draw in draws})]
        if form < 0.8:
            return ["between", attribute, low, low + 50 + int(draws[1] * 100)]
        return ["cmp", attribute, "<" if form < 0.9 else ">=", low]
    start = round(draws[0] * 100, 2)
    if form < 0.8:
        return ["between", attribute, start, round(start + 5 + draws[1] * 10, 2)]
    return ["cmp", attribute, "<=" if form < 0.9 else ">", start]


def _alternating(leaves: list[Tree], operator: str, level: int, shapes: random.Random) -> Tree:
    """AND and OR in turn; a `not` takes a level of its own, so that no tree is deeper than ADS_DEEPEST."""
    if len(leaves) == 1:
        return leaves[0]
    if level + 1 >= ADS_DEEPEST:
        return [operator, *leaves]
    other = "or" if operator == "and" else "and"
    children: Tree = []
    at = 0
    while at < len(leaves):
        take = 1 if shapes.random() < 0.5 else 1 + int(shapes.random() * max(1, (len(leaves) - at) * 0.6))
        group = leaves[at : at + take]
        at += take
        negated = shapes.random() < 0.12 and level + 3 <= ADS_DEEPEST
        child = _alternating(group, other, level + (2 if negated else 1), shapes)
        children.append(["not", child] if negated else child)
    return [operator, *children] if len(children) > 1 else children[0]


def _ads_events(
    rng: np.random.Generator, attributes: list[tuple[str, str]], popularity: np.ndarray, n: int
) -> pa.Table:
    # The largest of log-weight plus Gumbel noise are a weighted draw without replacement.
    noise = np.log(popularity) + rng.gumbel(size=(n, len(attributes)))
    defined = np.zeros((n, len(attributes)), dtype=bool)
    np.put_along_axis(defined, np.argpartition(-noise, ADS_DEFINED, axis=1)[:, :ADS_DEFINED], True, axis=1)
    columns = {name: _ads_column(rng, kind, ~defined[:, i]) for i, (name, kind) in enumerate(attributes)}
    return pa.table(columns)


def _ads_column(rng: np.random.Generator, kind: str, missing: np.ndarray) -> pa.Array:
    n = len(missing)
    if kind == "boolean":
        return pa.array(rng.random(n) < 0.5, mask=missing)
    if kind == "string":
        names = np.array([f"v{i}" for i in range(ADS_STRING_VALUES)], dtype=object)
        return pa.array(names[rng.integers(0, ADS_STRING_VALUES, n)], pa.string(), mask=missing)
    if kind == "int":
        codes = rng.random(n) < 0.3
        return pa.array(np.where(codes, rng.integers(0, 20, n), rng.integers(0, ADS_INTEGER_TOP, n)), mask=missing)
    return pa.array(np.round(rng.uniform(0, 100, n), 2), mask=missing)
