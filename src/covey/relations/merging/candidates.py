"""Which rows are worth a try as imperfect mergers: those that differ in one or two constraints, side by side.

Trying all pairs would be quadratic, and finding the best set of mergers is NP-complete (Crespo et al.). Li, Hou and
Jacobsen try subscriptions that share most of their predicates (section 5.2). Here rows are grouped by what they have
beside any two attributes, sorted by the sets of one of the two, then of the other, and each row is tried with its
neighbours in both orders. The number of candidates is linear in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from covey.relations.merging.constraints import Constraints, Row
from covey.relations.merging.rules import Rule, is_simple, widened
from covey.relations.merging.unions import random_numbers

ALL_PAIRS: Final = 8
"""Attributes of a row of which all pairs are left out in turn; of rows with more, neighbouring pairs."""


def candidate_pairs(places: Sequence[int], rows: Sequence[Row], constraints: Constraints) -> NDArray[np.int64]:
    """Pairs of places of rows, the lower first, each once."""
    set_first, piece = constraints.pieces()
    low_of, high_of = piece[set_first[:-1]], piece[set_first[1:] - 1]
    words = random_numbers(len(constraints.values), 0)
    tags = random_numbers(len(constraints.attributes), 1)[np.array(constraints.attribute_of, np.int64)]
    by_width: dict[int, list[int]] = {}
    for place in places:
        by_width.setdefault(len(rows[place]), []).append(place)
    found = [np.empty((0, 2), np.int64)]
    for width, own in by_width.items():
        if width:
            at = np.array(own, np.int64)
            sets = np.array([rows[place] for place in own], np.int64)
            found.extend(_neighbours(at, sets, words, tags, low_of, high_of))
    pairs = np.sort(np.concatenate(found), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def _neighbours(
    places: NDArray[np.int64],
    sets: NDArray[np.int64],
    words: NDArray[np.uint64],
    tags: NDArray[np.uint64],
    low_of: NDArray[np.int32],
    high_of: NDArray[np.int32],
) -> list[NDArray[np.int64]]:
    """Neighbours in both orders, for rows of one width."""
    width = sets.shape[1]
    whole = words[sets].sum(axis=1, dtype=np.uint64)
    chosen = list(combinations(range(width), 2)) if width <= ALL_PAIRS else [(at, at + 1) for at in range(width - 1)]
    result = []
    for one, other in chosen or [(0, 0)]:
        left, right = sets[:, one], sets[:, other]
        rest = whole - words[left] - (words[right] if other != one else np.uint64(0))
        key = rest ^ tags[left] ^ (tags[right] << np.uint64(1))
        for first, second in ((left, right), (right, left)):
            order = np.lexsort((high_of[second], low_of[second], high_of[first], low_of[first], key))
            alike = np.flatnonzero(key[order][1:] == key[order][:-1])
            result.append(np.stack((places[order[alike]], places[order[alike + 1]]), axis=1))
    return result


class Joins:
    """Rows around pairs of rows; what two constraints become is kept."""

    def __init__(self, constraints: Constraints, rules: Sequence[Rule], max_pieces: int) -> None:
        self._constraints = constraints
        self._rules = rules
        self._max_pieces = max_pieces
        self._known: dict[tuple[int, int], int] = {}

    def join(self, left: Row, right: Row) -> Row:
        """The row that constrains only what both do, each attribute by the first rule that is simple enough."""
        attribute_of = self._constraints.attribute_of
        theirs = {attribute_of[one]: one for one in right}
        joined = []
        for one in left:
            other = theirs.get(attribute_of[one])
            if other is None:
                continue
            both = one if one == other else self._join(min(one, other), max(one, other))
            if both >= 0:
                joined.append(both)
        return tuple(joined)

    def _join(self, one: int, other: int) -> int:
        """The constraint around two, or -1 for none."""
        known = self._known.get((one, other))
        if known is None:
            constraints = self._constraints
            parts = (constraints.values[one], constraints.values[other])
            union = parts[0] | parts[1]
            values = widened(union, self._rules[-1])
            for rule in self._rules:
                tried = widened(union, rule)
                if is_simple(tried, parts, self._max_pieces):
                    values = tried
                    break
            attribute = constraints.attribute_of[one]
            normal = constraints.normal(attribute, values)
            known = self._known[one, other] = -1 if normal is None else constraints.number(attribute, normal)
        return known
