"""Kernels that subtract a box from rectangles: counting pieces, choosing what to split, splitting.

Memory layout. As in `store_kernels`: `bounds[row]` is d low cells, then d high cells. `hits` are rows that meet the
query. The first piece of a rectangle takes its row, so boxes of blocks stay right; further pieces go to the end.

A rectangle minus a box falls into as many pieces as faces of the box cut it (Proposition 2 of Jafarpour et al.). Their
Figure 4 cuts dimension by dimension. Here the next cut is the one whose slab is the largest share of what remains:
pieces stay large and compact, later subscriptions meet fewer of them, and neighbours can be merged more often.

Shares and volumes are doubles and only steer which of several right answers is taken. Differences of cells are taken
in uint64, where they can't overflow.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.rectangles import NOTHING_HIGH, NOTHING_LOW
from covey.kernels.sorting import descending_order
from covey.kernels.types import Flag, Flags, Float64s, Int64, Int64s, Int64Table

BENEFIT_PER_COST, BENEFIT, INVERSE_COST = 0, 1, 2
_ABSENT_SHARE = 2.0**-10
_DENSE_CELL = np.int64(1076 << 52)


@inlined
def _faces(row, query, d):
    count = 0
    for j in range(d):
        count += row[j] < query[j]
        count += query[d + j] < row[d + j]
    return count


@kernel
def count_new(bounds: Int64Table, hits: Int64s, query: Int64s):
    """How many rows more there will be after splitting all hits, rows that become empty not counted off."""
    d = len(query) // 2
    count = 0
    for row in hits:
        count += max(0, _faces(bounds[row], query, d) - 1)
    return count


@inlined
def _width(low, high):
    return np.float64(np.uint64(high) - np.uint64(low))


@inlined
def _largest_slab(rest, query, d):
    """The face of the query (a low one j, a high one d + j) that cuts off the largest share of what remains; or -1."""
    face, largest = -1, -1.0
    for j in range(d):
        width = _width(rest[j], rest[d + j])
        if rest[j] < query[j]:
            share = _width(rest[j], query[j]) / width
            if share > largest:
                face, largest = j, share
        if query[d + j] < rest[d + j]:
            share = _width(query[d + j], rest[d + j]) / width
            if share > largest:
                face, largest = d + j, share
    return face


@kernel
def split(bounds: Int64Table, size: Int64, hits: Int64s, query: Int64s):
    """Subtract the query from each hit. `bounds` has room for `count_new` more rows. Gives the new size and how many
    rows became empty.
    """
    d = len(query) // 2
    rest = np.empty(2 * d, np.int64)
    emptied = 0
    for row in hits:
        rest[:] = bounds[row]
        place = row
        face = _largest_slab(rest, query, d)
        if face < 0:
            bounds[row, :d] = NOTHING_LOW
            bounds[row, d:] = NOTHING_HIGH
            emptied += 1
        while face >= 0:
            bounds[place] = rest
            bounds[place, face + d if face < d else face - d] = query[face]
            rest[face] = query[face]
            face = _largest_slab(rest, query, d)
            if face >= 0:
                place = size
                size += 1
    return size, emptied


@kernel
def clip(bounds: Int64Table, hits: Int64s, query: Int64s):
    """What each hit has in common with the query."""
    d = len(query) // 2
    common = np.empty((len(hits), 2 * d), np.int64)
    for i in range(len(hits)):
        for j in range(d):
            common[i, j] = max(bounds[hits[i], j], query[j])
            common[i, d + j] = min(bounds[hits[i], d + j], query[d + j])
    return common


@inlined
def _decoded(cell):
    """The double at a cell of a `Number`; in the gap between two, the lower one."""
    size = abs(cell)
    if size > _DENSE_CELL:
        size = _DENSE_CELL + ((size - _DENSE_CELL) >> 1)
    number = np.int64(size).view(np.float64)
    return -number if cell < 0 else number


@inner
def share_of(low, high, first, extent, decoded):
    """The share of a dimension's values between two cells, plus a little for each cell of absent values."""
    absent = _width(low, min(high, first)) * _ABSENT_SHARE if low < first else 0.0
    if high <= first:
        return absent
    low = max(low, first)
    return absent + (_decoded(high) - _decoded(low) if decoded else _width(low, high)) / extent


@kernel
def volumes(rows: Int64Table, first: Int64s, extent: Float64s, decoded: Flags):
    """The volume of each row as a share of the space."""
    d = rows.shape[1] // 2
    result = np.ones(len(rows))
    for i in range(len(rows)):
        for j in range(d):
            result[i] *= share_of(rows[i, j], rows[i, d + j], first[j], extent[j], decoded[j])
    return result


@kernel
def choose(
    bounds: Int64Table,
    hits: Int64s,
    query: Int64s,
    benefits: Float64s,
    metric: Int64,
    budget: Int64,
    room: Int64,
    is_kept: Flag,
):
    """Which hits to split so that at most `budget` new rectangles come to be (Figure 8), as a mask, and their number.

    Hits that vanish, or of which one piece remains, are always taken. The others go by their metric, best first; one
    that would pass the budget is passed over for a smaller one. `room` bounds how many rows there may be more, with one
    more for each chosen hit where what is cut out `is_kept`.
    """
    d = len(query) // 2
    chosen = np.zeros(len(hits), np.bool_)
    cost = np.empty(len(hits), np.int64)
    worth = np.empty(len(hits), np.float64)
    for i in range(len(hits)):
        cost[i] = _faces(bounds[hits[i]], query, d)
        more = cost[i] - 1 + is_kept
        if cost[i] <= 1 and more <= max(0, room):
            chosen[i] = True
            room -= more
        if metric == BENEFIT_PER_COST:
            worth[i] = benefits[i] / max(1, cost[i])
        elif metric == BENEFIT:
            worth[i] = benefits[i]
        else:
            worth[i] = 1.0 / max(1, cost[i])
    spent = 0
    for i in descending_order(worth):
        more = cost[i] - 1 + is_kept
        if cost[i] > 1 and spent + cost[i] <= budget and more <= room:
            chosen[i] = True
            spent += cost[i]
            room -= more
    return chosen, spent
