"""A flat diagram that takes roots one by one: what is new of a root is appended, the rest of it is there already.

Children stay before parents, which is all that EvalBDD, MVEvalBDD and the sweep need. Runs get shorter: an appended
node is mostly a run of its own, and costs a little more than one that is sorted in. `tidy` sorts all by level again and
drops what no root reaches, without a look at filters or at the library's diagram.

A node is found by its variable and children. Those that were sorted are searched in their variable's run, which is one
vectorised comparison; appended ones are in a dictionary. Variables that were released and taken by another test need
no care: a node says "this variable, these children", whatever the test is, and dead nodes that come to life again mean
what their variables mean now.

Cost of a root: its own nodes, each a search in one run. `tidy`: one sort of all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.flat import FlatDiagram, Indices, Levels, sort_by_level

_FIRST_ROOM = 64


class GrowingArray:
    """A one-dimensional array that takes values at its end; doubling keeps that cheap."""

    __slots__ = ("_room", "count")

    def __init__(self, values: NDArray[Any]) -> None:
        self._room = values
        self.count = len(values)

    @property
    def values(self) -> NDArray[Any]:
        """What is in it, contiguous."""
        return self._room[: self.count]

    def append(self, value: int) -> None:
        """One value more."""
        if self.count == len(self._room):
            room = np.zeros(max(_FIRST_ROOM, 2 * self.count), dtype=self._room.dtype)
            room[: self.count] = self.values
            self._room = room
        self._room[self.count] = value
        self.count += 1


class NodeStore:
    """The nodes and roots of a snapshot."""

    def __init__(self, flat: FlatDiagram) -> None:
        self._take(flat)

    def _take(self, flat: FlatDiagram) -> None:
        self._variable, self._low, self._high = (GrowingArray(part) for part in (flat.variable, flat.low, flat.high))
        self._roots = GrowingArray(flat.roots.copy())
        starts, variables = flat.runs()
        self._run_start, self._run_variable = GrowingArray(starts), GrowingArray(variables)
        self._sorted = len(flat.variable)
        self._spans: dict[int, tuple[int, int]] | None = None
        self._appended: dict[tuple[int, int, int], int] = {}

    @property
    def nodes(self) -> int:
        """Rows of the arrays: inner nodes, dead ones included, and the two terminals."""
        return self._variable.count

    @property
    def roots(self) -> Indices:
        """The node of each root, by its place."""
        return self._roots.values

    def runs(self) -> tuple[Indices, Indices]:
        """As `FlatDiagram.runs`."""
        return self._run_start.values, self._run_variable.values

    def children(self) -> tuple[Indices, Indices]:
        """`low` and `high` of each node."""
        return self._low.values, self._high.values

    def flat(self, level: Levels) -> FlatDiagram:
        """All of it as a flat diagram; the arrays aren't copied."""
        return FlatDiagram(self._variable.values, self._low.values, self._high.values, self.roots, level)

    def is_untidy(self) -> bool:
        """Whether so much was appended that sorting it in costs no more than it did to append it."""
        return self.nodes > 2 * self._sorted + _FIRST_ROOM

    def add(self, part: FlatDiagram, variables: Sequence[int]) -> None:
        """Append the one root of a small diagram, whose variable `v` is `variables[v]` here."""
        place = [0, 1]
        for at in range(2, len(part.variable)):
            key = (variables[part.variable[at]], place[part.low[at]], place[part.high[at]])
            known = self._find(key)
            place.append(self._append(key) if known is None else known)
        self._roots.append(place[part.roots[0]])

    def remove(self, root: int) -> None:
        """Make the root at a place false; its nodes stay until `tidy`."""
        self._roots.values[root] = 0

    def tidy(self, kept: NDArray[np.intp], level: Levels) -> None:
        """Keep these roots and what they reach, sorted by level. Their nodes must be ordered by it."""
        self._take(sort_by_level(self._variable.values, self._low.values, self._high.values, self.roots[kept], level))

    def _find(self, key: tuple[int, int, int]) -> int | None:
        known = self._appended.get(key)
        if known is not None:
            return known
        if self._spans is None:
            starts, variables = (part.tolist() for part in self.runs())
            self._spans = dict(zip(variables, pairwise(starts), strict=True))
        variable, low, high = key
        span = self._spans.get(variable)
        if span is None:
            return None
        start, end = span
        found = np.flatnonzero((self._low.values[start:end] == low) & (self._high.values[start:end] == high))
        return start + int(found[0]) if len(found) else None

    def _append(self, key: tuple[int, int, int]) -> int:
        variable, low, high = key
        number = self.nodes
        self._variable.append(variable)
        self._low.append(low)
        self._high.append(high)
        self._appended[key] = number
        # The last start closes the last run: a node of its variable makes that longer, any other starts one more.
        if self._run_variable.count and self._run_variable.values[-1] == variable:
            self._run_start.values[-1] = number + 1
        else:
            self._run_variable.append(variable)
            self._run_start.append(number + 1)
        return number
