"""EvalBDD and MVEvalBDD one message at a time, node by node in plain Python: Campailla et al.'s figures 3 and 5.

A yardstick that counts what the paper says that time goes to: looks at a node's successors (section 6). EvalBDD looks
at one of them for every node, MVEvalBDD at both, but only where the node's own atom is defined; a node is visited in
any case, which is cheap since nodes lie one behind the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.attribute_tests import TRUE, UNDEFINED
from covey.diagrams.flat import FlatDiagram


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The roots' values, nodes visited, and looks at successors."""

    roots: NDArray[np.uint8]
    visited: int
    looked: int


class PlainDiagram:
    """The nodes of a diagram, children before parents."""

    def __init__(self, flat: FlatDiagram) -> None:
        self._nodes = list(zip(flat.variable.tolist()[2:], flat.low.tolist()[2:], flat.high.tolist()[2:], strict=True))
        self._roots = flat.roots

    def eval_bdd(self, truths: NDArray[np.uint8]) -> Evaluated:
        """Each root's value where every atom is true or false; an undefined one counts as false."""
        true = (truths == TRUE).tolist()
        value = [0, 1]
        for variable, low, high in self._nodes:
            value.append(value[high] if true[variable] else value[low])
        return self._result(value, len(self._nodes))

    def mv_eval_bdd(self, truths: NDArray[np.uint8]) -> Evaluated:
        """Each root's value, UNDEFINED wherever an undefined atom is below it."""
        atoms = truths.tolist()
        value = [0, 1]
        looked = 0
        for variable, low, high in self._nodes:
            atom = atoms[variable]
            if atom == UNDEFINED:
                value.append(UNDEFINED)
                continue
            looked += 2
            below = (value[low], value[high])
            value.append(UNDEFINED if UNDEFINED in below else below[atom == TRUE])
        return self._result(value, looked)

    def _result(self, value: list[int], looked: int) -> Evaluated:
        return Evaluated(np.array(value, np.uint8)[self._roots], len(self._nodes), looked)
