"""Kernels that turn numbers and strings into codes (see `coding`): a search among the attribute's sorted constants.

A grid over the range of the constants narrows the search to a few of them. It is exact whatever the rounding: the
cell of a value is a monotone function of the value and is computed alike for constants and events, so a constant in
a lower cell is smaller, and one in a higher cell is larger.

Memory layout of strings: the constants of attribute a are texts slots[i], i from slot_first[a] to slot_first[a + 1],
open addressing by hash, -1 where a slot is free; text t is text_bytes[text_starts[t]:text_starts[t + 1]], in ascending
order within an attribute, which for UTF-8 is that of the characters.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import forced, inlined, kernel
from covey.kernels.strides import hash_bytes, same_bytes
from covey.kernels.types import (
    Flag,
    Float64,
    FrozenBytes,
    FrozenFloat64s,
    FrozenInt32s,
    FrozenInt64s,
    Int32s,
    Int64,
    Int64s,
)

_TWO_63 = 9223372036854775808.0
_EXACT = 1 << 53


@inlined
def split(value):
    """An integer as (nearest double, what it misses by)."""
    nearest = np.float64(value)
    if -_EXACT <= value <= _EXACT:
        return nearest, np.int64(0)
    if nearest >= _TWO_63:
        return nearest, (value - np.int64(9223372036854775807)) - 1
    return nearest, value - np.int64(nearest)


@inlined
def _cell(value, lowest, scale, cells):
    where = (value - lowest) * scale
    if not where > 0.0:  # also for NaN, which can't come here, and for what rounds below
        return 0
    if where >= cells:
        return cells - 1
    return np.int64(where)


@kernel
def build_grid(constants: FrozenFloat64s, grid: Int32s, lowest: Float64, scale: Float64):
    """grid[c]: the first constant in cell c or above; grid[cells] = number of constants."""
    cells = len(grid) - 1
    at = 0
    for cell in range(cells):
        while at < len(constants) and _cell(constants[at], lowest, scale, cells) < cell:
            at += 1
        grid[cell] = at
    grid[cells] = len(constants)


@inlined
def code_of(value, remainder, constants, remainders, first, last, grid, lowest, scale):
    """2 i + 1 if equal to constant i, else twice the number of constants below."""
    low, high = first, last
    if len(grid) > 1:
        cell = _cell(value, lowest, scale, len(grid) - 1)
        low, high = first + grid[cell], first + grid[cell + 1]
    exact = len(remainders) == 0
    while low < high:
        middle = (low + high) >> 1
        other = constants[middle]
        rest = 0 if exact else remainders[middle]
        if other < value or (other == value and rest < remainder):
            low = middle + 1
        else:
            high = middle
    if low < last and constants[low] == value and (0 if exact else remainders[low]) == remainder:
        return 2 * (low - first) + 1
    return 2 * (low - first)


@kernel
def encode_doubles(
    values: FrozenFloat64s,
    rows: Int64s,
    skip: Int64,
    out: Int32s,
    base: Int64,
    constants: FrozenFloat64s,
    remainders: FrozenInt64s,
    first: Int64,
    last: Int64,
    grid: Int32s,
    lowest: Float64,
    scale: Float64,
):
    """out[rows[i] - skip] = code of values[i]; without rows, out[i]."""
    dense = len(rows) == 0
    for i in range(len(values)):
        value = values[i]
        remainder = 0
        if value != value:
            value, remainder = np.inf, 1
        code = code_of(value, remainder, constants, remainders, first, last, grid, lowest, scale)
        out[i if dense else rows[i] - skip] = base + code


@kernel
def encode_integers(
    values: FrozenInt64s,
    rows: Int64s,
    skip: Int64,
    out: Int32s,
    base: Int64,
    constants: FrozenFloat64s,
    remainders: FrozenInt64s,
    first: Int64,
    last: Int64,
    grid: Int32s,
    lowest: Float64,
    scale: Float64,
):
    """As encode_doubles, for integers (also timestamps and booleans)."""
    dense = len(rows) == 0
    for i in range(len(values)):
        value, remainder = split(np.int64(values[i]))
        code = code_of(value, remainder, constants, remainders, first, last, grid, lowest, scale)
        out[i if dense else rows[i] - skip] = base + code


@kernel
def fill_texts(starts: FrozenInt64s, data: FrozenBytes, first: Int64, last: Int64, slots: Int32s):
    """Put texts `first` to `last` into the empty slots of their attribute."""
    mask = np.uint64(len(slots) - 1)
    for text in range(first, last):
        slot = hash_bytes(0, data, starts[text], starts[text + 1]) & mask
        while slots[np.intp(slot)] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[np.intp(slot)] = text


@forced
def _compare(data, first, last, text_starts, text_bytes, text):
    """Less than 0, 0 or more as some bytes stand to a text."""
    start = text_starts[text]
    length = text_starts[text + 1] - start
    for at in range(min(length, last - first)):
        one, other = data[first + at], text_bytes[start + at]
        if one != other:
            return np.int64(one) - np.int64(other)
    return last - first - length


@forced
def text_place(data, first, last, slots, slot_first, slot_last, text_starts, text_bytes, low, high, ordered):
    """Twice the number of an attribute's texts that are less than a string, plus 1 if it is the next one. Where it is
    none of them and nobody asks for their order, 0."""
    if slot_last > slot_first:
        mask = np.uint64(slot_last - slot_first - 1)
        slot = hash_bytes(0, data, first, last) & mask
        while True:
            text = slots[slot_first + np.intp(slot)]
            if text < 0:
                break
            start = text_starts[text]
            if text_starts[text + 1] - start == last - first and same_bytes(
                text_bytes, start, data, first, last - first
            ):
                return 2 * (text - low) + 1
            slot = (slot + np.uint64(1)) & mask
    if not ordered:
        return np.int64(0)  # all gaps are alike
    start = low
    while low < high:
        middle = (low + high) >> 1
        if _compare(data, first, last, text_starts, text_bytes, middle) > 0:
            low = middle + 1
        else:
            high = middle
    return 2 * (low - start)


@kernel
def code_texts(
    starts: FrozenInt64s,
    data: FrozenBytes,
    slots: FrozenInt32s,
    text_starts: FrozenInt64s,
    text_bytes: FrozenBytes,
    low: Int64,
    high: Int64,
    ordered: Flag,
    base: Int64,
    out: Int32s,
):
    """The codes of strings by an attribute's texts, `low` to `high`, which are in the slots given."""
    for row in range(len(out)):
        out[row] = base + text_place(
            data, starts[row], starts[row + 1], slots, 0, len(slots), text_starts, text_bytes, low, high, ordered
        )
