"""Which roots of a flat diagram belong together: MBDs, and roots that differ in one test.

Li, Hou and Jacobsen organise subscriptions as a set of MBDs, each a diagram with several output nodes (section 3.1,
figure 4), and look for mergers among the output nodes of one MBD: those with the same children differ from each other
in one test only (section 5.2). Here both are read off the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.flat import FlatDiagram, Indices
from covey.diagrams.jit import kernel
from covey.diagrams.lowering import Test, attribute_of


def mbds(diagram: FlatDiagram) -> list[list[int]]:
    """The numbers of the roots, one list for each MBD: roots that are linked through shared inner nodes."""
    parent = np.arange(len(diagram.variable), dtype=np.int64)
    _link(diagram.low, diagram.high, parent)
    groups: dict[int, list[int]] = {}
    for number, root in enumerate(diagram.roots.tolist()):
        groups.setdefault(int(_top(parent, root)), []).append(number)
    return list(groups.values())


def same_children(diagram: FlatDiagram, test: Callable[[int], Test]) -> list[list[int]]:
    """Roots that test the same attribute and go on alike, in lists of two or more: candidates for a merger."""
    groups: dict[tuple[str, int, int], list[int]] = {}
    for number, root in enumerate(diagram.roots.tolist()):
        if root > 1:
            attribute = attribute_of(test(int(diagram.variable[root])))
            children = int(diagram.low[root]), int(diagram.high[root])
            groups.setdefault((attribute, *children), []).append(number)
    return [numbers for numbers in groups.values() if len(numbers) > 1]


@kernel
def _top(parent: NDArray[np.int64], node: Any) -> Any:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def _link(low: Indices, high: Indices, parent: NDArray[np.int64]) -> None:
    for node in range(2, len(low)):
        for child in (low[node], high[node]):
            if child > 1:
                parent[_top(parent, np.int64(child))] = _top(parent, np.int64(node))
