"""Which roots of a flat diagram belong together: MBDs, and roots that differ in one test.

Li, Hou and Jacobsen organise subscriptions as a set of MBDs, each a diagram with several output nodes (section 3.1,
figure 4), and look for mergers among the output nodes of one MBD: those with the same children differ from each other
in one test only (section 5.2). Here both are read off the arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covey.diagrams.flat import FlatDiagram
from covey.filters.two_valued import Test, attribute_of
from covey.kernels.diagrams import link_children, top_of


def mbds(diagram: FlatDiagram) -> list[list[int]]:
    """The numbers of a `diagram`'s roots, one list for each MBD: roots that are linked through shared inner nodes."""
    parent = np.arange(len(diagram.variable), dtype=np.int64)
    link_children(diagram.low, diagram.high, parent)
    groups: dict[int, list[int]] = {}
    for number, root in enumerate(diagram.roots.tolist()):
        groups.setdefault(int(top_of(parent, root)), []).append(number)
    return list(groups.values())


def same_children(diagram: FlatDiagram, test: Callable[[int], Test]) -> list[list[int]]:
    """Roots of a `diagram` that test the same attribute and go on alike, in lists of two or more: candidates for a
    merger. `test` gives a variable's test, as `PredicateIndex.test` does."""
    groups: dict[tuple[str, int, int], list[int]] = {}
    for number, root in enumerate(diagram.roots.tolist()):
        if root > 1:
            attribute = attribute_of(test(int(diagram.variable[root])))
            children = int(diagram.low[root]), int(diagram.high[root])
            groups.setdefault((attribute, *children), []).append(number)
    return [numbers for numbers in groups.values() if len(numbers) > 1]
