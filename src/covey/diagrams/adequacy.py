"""Which sets of attributes subscriptions name, and which of them an event defines as a whole.

Under `strict` an event must define every attribute that a filter names, also those whose tests a reduced or restricted
diagram has lost. Equal sets are kept once, as rows of bits; one comparison with the event's bits decides all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from covey.diagrams.node_store import GrowingArray
from covey.diagrams.words import WORD, pack
from covey.filters.semantics import Lookup


class AttributeSets:
    """The sets of attributes of roots, by the roots' places."""

    def __init__(self, named: Sequence[frozenset[str]]) -> None:
        numbers: dict[frozenset[str], int] = {}
        of_root = np.array([numbers.setdefault(names, len(numbers)) for names in named], dtype=np.intp)
        self._numbers = numbers
        self._of_root = GrowingArray(of_root)
        self._bits = {name: at for at, name in enumerate(sorted(frozenset[str]().union(*numbers)))}
        self._words = np.zeros((max(1, len(numbers)), -(-len(self._bits) // WORD) or 1), dtype=np.uint64)
        for names, number in numbers.items():
            self._write(names, number)
        sizes = np.bincount(of_root, minlength=len(numbers))
        self._sizes = GrowingArray(sizes)
        by_set = np.argsort(of_root, kind="stable")
        self._roots_of_set = np.split(by_set, np.cumsum(sizes)[:-1]) if numbers else []

    @property
    def of_root(self) -> NDArray[np.intp]:
        """The number of each root's set."""
        return self._of_root.values

    def add(self, names: frozenset[str]) -> None:
        """The set of one more root."""
        number = self._numbers.setdefault(names, len(self._numbers))
        if number == len(self._roots_of_set):
            for name in sorted(names):
                self._bits.setdefault(name, len(self._bits))
            self._make_room()
            self._write(names, number)
            self._sizes.append(0)
            self._roots_of_set.append(np.empty(0, dtype=np.intp))
        self._roots_of_set[number] = np.append(self._roots_of_set[number], self._of_root.count)
        self._sizes.values[number] += 1
        self._of_root.append(number)

    def count(self, adequate: NDArray[np.bool_]) -> int:
        """How many roots have one of these sets."""
        return int(self._sizes.values[adequate].sum())

    def roots(self, adequate: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The places of the roots that have one of these sets, in no particular order; there must be some."""
        return np.concatenate([self._roots_of_set[each] for each in np.flatnonzero(adequate)])

    def adequate(self, lookup: Lookup) -> NDArray[np.bool_]:
        """Which sets the event defines as a whole."""
        defined = np.zeros(self._words.shape[1] * WORD, dtype=np.bool_)
        defined[: len(self._bits)] = [lookup(name) is not None for name in self._bits]
        words = self._words[: len(self._numbers)]
        adequate: NDArray[np.bool_] = np.logical_not((words & ~pack(defined[None, :])).any(axis=1))
        return adequate

    def _make_room(self) -> None:
        rows, columns = self._words.shape
        needed = len(self._numbers), -(-len(self._bits) // WORD)
        if needed[0] > rows or needed[1] > columns:
            room = np.zeros((max(rows, 2 * needed[0]), max(columns, needed[1])), dtype=np.uint64)
            room[:rows, :columns] = self._words
            self._words = room

    def _write(self, names: Iterable[str], number: int) -> None:
        for name in names:
            at = self._bits[name]
            self._words[number, at // WORD] |= np.uint64(1 << at % WORD)
