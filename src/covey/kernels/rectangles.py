"""Kernels over a store of rectangles: finding those that meet a box, merging neighbours, placing near ones together.

Memory layout. `bounds[row]` is one rectangle: d low cells, then d high cells, int64, half-open; with d = 4 it is one
cache line. A row that holds nothing has low = NOTHING_LOW and high = NOTHING_HIGH in every dimension, so it meets no
box. `boxes[b]` is a box, in the same layout, that holds every rectangle of rows b * BLOCK to (b + 1) * BLOCK. Rows
shrink in place, so a box may be larger than need be, never smaller.

A search looks at every box and, where the box meets the query, at its rows: m / BLOCK steps and the blocks that
really are near, since `near_order` puts rows in the order of a k-d tree's leaves.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.types import Int64, Int64s, Int64Table

BLOCK = 64
NOTHING_LOW = np.int64(2**63 - 1)
NOTHING_HIGH = np.int64(-(2**63))
_MIX = np.uint64(0x9E3779B97F4A7C15)
_STACK = 256
_SAMPLE = 256


@inlined
def _meets(row, query, d):
    for j in range(d):
        if query[j] >= row[d + j] or row[j] >= query[d + j]:
            return False
    return True


@kernel
def find(bounds: Int64Table, boxes: Int64Table, size: Int64, query: Int64s, hits: Int64s):
    """Write the rows that meet the query to `hits`, in rising order; give their number."""
    d = len(query) // 2
    count = 0
    for block in range((size + BLOCK - 1) // BLOCK):
        if _meets(boxes[block], query, d):
            for row in range(block * BLOCK, min(size, (block + 1) * BLOCK)):
                if _meets(bounds[row], query, d):
                    hits[count] = row
                    count += 1
    return count


@kernel
def meets_any(bounds: Int64Table, boxes: Int64Table, size: Int64, query: Int64s):
    """Whether some row meets the query."""
    d = len(query) // 2
    for block in range((size + BLOCK - 1) // BLOCK):
        if _meets(boxes[block], query, d):
            for row in range(block * BLOCK, min(size, (block + 1) * BLOCK)):
                if _meets(bounds[row], query, d):
                    return True
    return False


@kernel
def meets_each(bounds: Int64Table, boxes: Int64Table, size: Int64, queries: Int64Table):
    """For each query whether some row meets it."""
    result = np.empty(len(queries), np.bool_)
    for i in range(len(queries)):
        result[i] = meets_any(bounds, boxes, size, queries[i])
    return result


@kernel
def enclose(bounds: Int64Table, boxes: Int64Table, first: Int64, size: Int64):
    """Set the boxes of the blocks from row `first` on."""
    d = bounds.shape[1] // 2
    for block in range(first // BLOCK, (size + BLOCK - 1) // BLOCK):
        for j in range(d):
            low, high = NOTHING_LOW, NOTHING_HIGH
            for row in range(block * BLOCK, min(size, (block + 1) * BLOCK)):
                low = min(low, bounds[row, j])
                high = max(high, bounds[row, d + j])
            boxes[block, j] = low
            boxes[block, d + j] = high


@kernel
def covers_any(bounds: Int64Table, size: Int64, query: Int64s):
    """Whether some row alone has all of the query in it."""
    d = len(query) // 2
    for row in range(size):
        j = 0
        while j < d and bounds[row, j] <= query[j] and query[d + j] <= bounds[row, d + j]:
            j += 1
        if j == d:
            return True
    return False


@inlined
def _slot(bounds, row, start, j, d, mask):
    """Where the search for the rectangle begins that is `row` in all dimensions but j, and starts at `start` in j."""
    mixed = np.uint64(start) * _MIX
    for k in range(2 * d):
        if k not in (j, d + j):
            mixed = (mixed ^ (mixed >> np.uint64(29)) ^ np.uint64(bounds[row, k])) * _MIX
    return np.int64((mixed >> np.uint64(20)) & np.uint64(mask))


@inlined
def _continues(bounds, row, next_row, j, d):
    if bounds[next_row, j] != bounds[row, d + j]:
        return False
    for k in range(2 * d):
        if k not in (j, d + j) and bounds[next_row, k] != bounds[row, k]:
            return False
    return True


@inner
def _enter(bounds, size, j, d, table):
    """Fill the hash table with the rows, by where they start in dimension j."""
    mask = len(table) - 1
    table[:] = -1
    for row in range(size):
        if bounds[row, 0] < bounds[row, d]:
            slot = _slot(bounds, row, bounds[row, j], j, d, mask)
            while table[slot] >= 0:
                slot = (slot + 1) & mask
            table[slot] = row


@inner
def _follower(bounds, row, j, d, table):
    """The row that goes on where `row` ends in dimension j, or -1."""
    mask = len(table) - 1
    slot = _slot(bounds, row, bounds[row, d + j], j, d, mask)
    while table[slot] >= 0:
        if _continues(bounds, row, table[slot], j, d):
            return np.int64(table[slot])
        slot = (slot + 1) & mask
    return np.int64(-1)


@kernel
def merge_neighbours(bounds: Int64Table, size: Int64):
    """Join disjoint rectangles that differ in one dimension only and meet there; give how many rows became empty.

    One dimension after the other. Rows are entered into a hash table by where they start; a rectangle is followed by at
    most one other, because they are disjoint, so a chain is joined by looking up its end again and again.
    """
    d = bounds.shape[1] // 2
    slots = 2
    while slots < 2 * size:
        slots *= 2
    table = np.empty(slots, np.int32)
    joined = 0
    for j in range(d):
        _enter(bounds, size, j, d, table)
        for row in range(size):
            follower = _follower(bounds, row, j, d, table) if bounds[row, 0] < bounds[row, d] else np.int64(-1)
            while follower >= 0:
                bounds[row, d + j] = bounds[follower, d + j]
                bounds[follower, :d] = NOTHING_LOW
                bounds[follower, d:] = NOTHING_HIGH
                joined += 1
                follower = _follower(bounds, row, j, d, table)
    return joined


@inlined
def _centre(bounds, row, j, d):
    return (bounds[row, j] >> 1) + (bounds[row, d + j] >> 1)


@inner
def _widest(bounds, order, first, last, d):
    """The dimension in which the centres of some of a run's rows are spread most."""
    widest, spread = 0, np.uint64(0)
    step = max(1, (last - first) // _SAMPLE)
    for j in range(d):
        low = high = _centre(bounds, order[first], j, d)
        for place in range(first + 1, last, step):
            centre = _centre(bounds, order[place], j, d)
            low = min(low, centre)
            high = max(high, centre)
        if np.uint64(high) - np.uint64(low) > spread:
            widest, spread = j, np.uint64(high) - np.uint64(low)
    return widest


@inner
def _select(bounds, order, first, last, middle, j, d):
    """Hoare's quickselect: the run's rows before `middle` have centres no larger than those from it on."""
    left, right = first, last - 1
    while left < right:
        pivot = _centre(bounds, order[(left + right) // 2], j, d)
        low, high = left, right
        while low <= high:
            while _centre(bounds, order[low], j, d) < pivot:
                low += 1
            while _centre(bounds, order[high], j, d) > pivot:
                high -= 1
            if low <= high:
                order[low], order[high] = order[high], order[low]
                low += 1
                high -= 1
        if middle <= high:
            right = high
        elif middle >= low:
            left = low
        else:
            break


@kernel
def near_order(bounds: Int64Table, size: Int64):
    """The rows that hold something, ordered so that each block is a leaf of a k-d tree."""
    d = bounds.shape[1] // 2
    order = np.empty(size, np.int64)
    count = 0
    for row in range(size):
        if bounds[row, 0] < bounds[row, d]:
            order[count] = row
            count += 1
    stack = np.empty((_STACK, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, count
    depth = 1
    while depth > 0:
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]
        if last - first > BLOCK:
            j = _widest(bounds, order, first, last, d)
            middle = first + ((last - first) // 2 + BLOCK - 1) // BLOCK * BLOCK
            _select(bounds, order, first, last, middle, j, d)
            stack[depth, 0], stack[depth, 1] = first, middle
            stack[depth + 1, 0], stack[depth + 1, 1] = middle, last
            depth += 2
    return order[:count].copy()
