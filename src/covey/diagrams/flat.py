"""A shared diagram as plain arrays.

Node `i` tests `variable[i]` and goes on to `high[i]` where the test holds, else to `low[i]`. Node 0 is false, node 1
is true. Children come before parents, so that one pass upwards evaluates every node once. Nodes are sorted by
level, deepest first: those of one variable are neighbours, one *run*, and a pass asks for a variable's truth once a
run. `level[v]` is the place of variable `v` in the order, 0 on top.

Two ways here from a library's diagram: DDDMP, the exchange format of CUDD that oxidd writes too, for many roots at
once (under 1 µs a node, the file's text included), and a walk along the cofactors for one root (some 2 µs a node).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.library import BDDFunction, BDDManager
from covey.kernels.diagrams import mark_reached

Indices = NDArray[np.uint32]
Levels = NDArray[np.int64]

NO_VARIABLE: Final = np.uint32(0xFFFF_FFFF)
"""The variable of the two terminal nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class FlatDiagram:
    """Nodes as arrays, children before parents; one root for each function."""

    variable: Indices
    low: Indices
    high: Indices
    roots: Indices
    level: Levels

    @property
    def node_count(self) -> int:
        """Inner nodes; the two terminals don't count."""
        return len(self.variable) - 2

    def runs(self) -> tuple[Indices, Indices]:
        """Where the run of each variable starts, closed by the number of nodes; and the variable of each run."""
        inner = self.variable[2:]
        starts = np.flatnonzero(np.diff(inner, prepend=NO_VARIABLE)) + 2
        return np.append(starts, len(self.variable)).astype(np.uint32), self.variable[starts]

    def supports(self) -> list[set[int]]:
        """For each root the variables that it can reach."""
        below: list[frozenset[int]] = [frozenset(), frozenset()]
        for at in range(2, len(self.variable)):
            below.append(below[self.low[at]] | below[self.high[at]] | {int(self.variable[at])})
        return [set(below[root]) for root in self.roots]


def flatten(manager: BDDManager, functions: Sequence[BDDFunction]) -> FlatDiagram:
    """The diagram of all `functions` of a library's `manager`, by way of a DDDMP file."""
    level = np.array([manager.var_to_level(v) for v in range(manager.num_vars())], dtype=np.int64)
    with tempfile.TemporaryDirectory(prefix="covey-") as directory:
        path = Path(directory) / "diagram.dddmp"
        # A terminal that no function reaches isn't written; with both as roots of their own, false is 1 and true 2.
        listed = [manager.false(), manager.true(), *functions]
        manager.export_dddmp(path, listed, ascii=True, strict=False)
        header, _, body = path.read_bytes().partition(b".nodes\n")
    fields = _header(header)
    support = np.array(fields["ids"], dtype=np.int64)
    support = support[np.argsort(fields["permids"])].astype(np.uint32)
    inner = body.split(b"\n", 2)[2].partition(b".end")[0]
    rows = np.fromstring(inner.decode("ascii"), dtype=np.int64, sep=" ").reshape(-1, 4)
    terminals = np.array([0, 1], dtype=np.uint32)
    return sort_by_level(
        np.concatenate((np.full(2, NO_VARIABLE), support[rows[:, 1]] if len(rows) else terminals[:0])),
        np.concatenate((terminals, rows[:, 3] - 1)).astype(np.uint32),
        np.concatenate((terminals, rows[:, 2] - 1)).astype(np.uint32),
        np.array(fields["rootids"][2:], dtype=np.int64).astype(np.uint32) - np.uint32(1),
        level,
    )


def _header(header: bytes) -> dict[str, list[int]]:
    fields: dict[str, list[int]] = {"ids": [], "permids": [], "rootids": []}
    for line in header.decode("ascii").splitlines():
        name, *values = line.removeprefix(".").split()
        if name in fields:
            fields[name] = [int(value) for value in values]
    return fields


def walk(function: BDDFunction) -> FlatDiagram:
    """The diagram of one `function`, node by node along its cofactors."""
    manager = function.manager
    nodes, root = _nodes(function)
    level = np.array([manager.var_to_level(v) for v in range(manager.num_vars())], dtype=np.int64)
    return _sorted(nodes, root, level)


def walk_alone(function: BDDFunction) -> tuple[FlatDiagram, list[int]]:
    """The diagram of one function over its own variables, numbered from the top, and what each is outside. Costs
    nothing for variables that the function doesn't ask."""
    nodes, root = _nodes(function)
    variables = sorted({variable for variable, _, _ in nodes}, key=function.manager.var_to_level)
    number = {variable: at for at, variable in enumerate(variables)}
    level = np.arange(len(variables), dtype=np.int64)
    return _sorted([(number[variable], low, high) for variable, low, high in nodes], root, level), variables


def _nodes(function: BDDFunction) -> tuple[list[tuple[int, int, int]], int]:
    """The inner nodes of a function as (variable, low, high), children first, numbered from 2; and its root."""
    manager = function.manager
    numbers: dict[Any, int] = {manager.false(): 0, manager.true(): 1}
    nodes: list[tuple[int, int, int]] = []
    stack = [function]
    while stack:
        node = stack[-1]
        children = node.cofactors() if node not in numbers else None
        if children is None:
            stack.pop()
            continue
        waiting = [child for child in children if child not in numbers]
        if waiting:
            stack.extend(waiting)
            continue
        variable = node.node_var()
        assert variable is not None
        nodes.append((variable, numbers[children[1]], numbers[children[0]]))
        numbers[stack.pop()] = len(nodes) + 1
    return nodes, numbers[function]


def _sorted(nodes: list[tuple[int, int, int]], root: int, level: Levels) -> FlatDiagram:
    table = np.array([(NO_VARIABLE, 0, 0), (NO_VARIABLE, 1, 1), *nodes], dtype=np.int64).astype(np.uint32)
    roots = np.array([root], dtype=np.uint32)
    return sort_by_level(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy(), roots, level)


def sort_by_level(variable: Indices, low: Indices, high: Indices, roots: Indices, level: Levels) -> FlatDiagram:
    """The diagram of what the `roots` reach, sorted as this module promises by the `level` of each variable. Nodes are
    given by `variable`, `low` and `high`, children before parents."""
    reached = np.zeros(len(variable), dtype=np.bool_)
    reached[:2] = True
    reached[roots] = True
    mark_reached(low, high, reached)
    kept = np.flatnonzero(reached)
    inner = kept[2:]
    inner = inner[np.lexsort((inner, -level[variable[inner]]))]
    kept[2:] = inner
    place = np.zeros(len(variable), dtype=np.uint32)
    place[kept] = np.arange(len(kept), dtype=np.uint32)
    return FlatDiagram(variable[kept], place[low[kept]], place[high[kept]], place[roots], level)
