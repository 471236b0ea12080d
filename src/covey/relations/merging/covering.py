"""Which rows of a table are covered by others, all at once.

A row covers another where each of its sets has the other's set of the same attribute in it, so its attributes are among
the other's. Rows are grouped by their attributes, and a group is compared with the groups whose attributes are a part
of its own: with k attributes 2^k looked up, or all groups gone through where that is less. Inside a group rows are
sorted by the low end of the sets of one attribute, the one with the most distinct sets, and blocks of rows that all end
too low are skipped (`kernels.find_covering`).

Cost: with n rows in groups of g, about n times (the groups below one) times g / 2 compares of some nanoseconds; where
sets on the sorted attribute are narrow, g / 64 of them. Rows on the same few attributes with wide ranges are the worst
case, quadratic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.kernels.merging import BLOCK, find_covering, tallest_of
from covey.relations.merging.constraints import Constraints, Row

Signature: TypeAlias = tuple[int, ...]

LOOKED_UP: Final = 12
"""Attributes of a row whose subsets are looked up; for more, all groups are gone through."""


def rows_as_arrays(rows: Sequence[Row]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each row starts, and the rows' sets."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    first = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    return first, np.fromiter((one for row in rows for one in row), np.int64, int(first[-1]))


def covering_rows(
    rows: Sequence[Row], constraints: Constraints, may_cover: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """For each of several different rows the place of one that covers it, or -1.

    Only rows that `may_cover` are looked at as those that cover.
    """
    covering = np.full(len(rows), -1, np.int64)
    if len(rows) < 2:
        return covering
    row_first, row_sets = rows_as_arrays(rows)
    set_first, piece = constraints.pieces()
    groups = _grouped(rows, constraints)
    signatures = list(groups)
    low_of, high_of = piece[set_first[:-1]], piece[set_first[1:] - 1]
    member, low, high, pivot = _sorted_groups(list(groups.values()), row_first, row_sets, low_of, high_of)
    group_first = _starts([len(places) for places in groups.values()])
    tallest_first = _starts([-(-len(places) // BLOCK) for places in groups.values()])
    tallest = tallest_of(group_first, high, tallest_first)
    pairs = sorted(_pairs(signatures), key=lambda pair: len(signatures[pair[0]]))
    position_first = _starts([len(signatures[outer]) for outer, _ in pairs])
    position = np.fromiter(
        (signatures[inner].index(attribute) for outer, inner in pairs for attribute in signatures[outer]),
        np.int64,
        int(position_first[-1]),
    )
    if may_cover is None:
        may_cover = np.ones(len(rows), np.bool_)
    find_covering(
        np.array([outer for outer, _ in pairs], np.int64), np.array([inner for _, inner in pairs], np.int64),
        position_first, position, group_first, member, pivot, low, high, tallest_first, tallest, row_first, row_sets,
        set_first, piece, may_cover, covering,
    )  # fmt: skip
    return covering


def _grouped(rows: Sequence[Row], constraints: Constraints) -> dict[Signature, list[int]]:
    attribute_of = constraints.attribute_of
    groups: dict[Signature, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(tuple([attribute_of[one] for one in row]), []).append(place)
    return groups


def _sorted_groups(
    groups: Sequence[list[int]],
    row_first: NDArray[np.int64],
    row_sets: NDArray[np.int64],
    low_of: NDArray[np.int32],
    high_of: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    members, lows, highs = [], [], []
    pivots = np.zeros(len(groups), np.int64)
    for at, group in enumerate(groups):
        places = np.array(group, np.int64)
        width = int(row_first[places[0] + 1] - row_first[places[0]])
        if width:
            sets = row_sets[row_first[places][:, None] + np.arange(width)]
            distinct = [len(np.unique(sets[:, k])) for k in range(width)] if len(places) > BLOCK else [0]
            pivots[at] = pivot = int(np.argmax(distinct))
            order = np.argsort(low_of[sets[:, pivot]], kind="stable")
            places, chosen = places[order], sets[order, pivot]
            lows.append(low_of[chosen])
            highs.append(high_of[chosen])
        else:
            lows.append(np.zeros(len(places), np.int32))
            highs.append(np.zeros(len(places), np.int32))
        members.append(places)
    return np.concatenate(members), np.concatenate(lows), np.concatenate(highs), pivots


def _pairs(signatures: Sequence[Signature]) -> Iterable[tuple[int, int]]:
    """Pairs of groups, the first's attributes among the second's."""
    numbers = {signature: at for at, signature in enumerate(signatures)}
    for inner, signature in enumerate(signatures):
        if len(signature) <= LOOKED_UP and 2 ** len(signature) <= len(signatures):
            for size in range(len(signature) + 1):
                for chosen in combinations(signature, size):
                    outer = numbers.get(chosen)
                    if outer is not None:
                        yield outer, inner
        else:
            own = set(signature)
            yield from ((outer, inner) for outer, other in enumerate(signatures) if own.issuperset(other))


def _starts(lengths: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.array(lengths, np.int64))))
