"""Sorting for kernels that are kept on disk.

Numba's own `np.sort` and `np.argsort` must not be used in cached kernels. Their inner functions are closures whose
compiled names differ only by a number that is counted anew in every process. Two kernels that were compiled by
different processes, one sorting values and one sorting places, can therefore hold different functions of the same name;
a process that loads both runs the wrong one, and gives wrong answers without a word. The functions here are plain, each
with a name of its own.

`radix_order` takes integers from 0 up and gives their places in ascending order, equal ones as they stood: eleven bits
a pass, passes in which all have the same bits skipped. Linear, and quicker than comparing from some dozens on.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inner

_BITS = 11
_DIGITS = 1 << _BITS
_FEW = 32


@inner
def radix_order(keys):
    """Places of the keys, ascending by key; keys are not negative."""
    count = len(keys)
    order, other = np.empty(count, np.int64), np.empty(count, np.int64)
    highest = np.int64(0)
    for i in range(count):
        order[i] = i
        highest = max(highest, np.int64(keys[i]))
    places = np.empty(_DIGITS, np.int64)
    shift = 0
    while shift < 63 and highest >> shift > 0:
        for digit in range(_DIGITS):
            places[digit] = 0
        for i in range(count):
            places[(np.int64(keys[i]) >> shift) & (_DIGITS - 1)] += 1
        if places[(np.int64(keys[0]) >> shift) & (_DIGITS - 1)] < count:
            start = 0
            for digit in range(_DIGITS):
                size = places[digit]
                places[digit] = start
                start += size
            for i in range(count):
                digit = (np.int64(keys[order[i]]) >> shift) & (_DIGITS - 1)
                other[places[digit]] = order[i]
                places[digit] += 1
            order, other = other, order
        shift += _BITS
    return order


@inner
def sort_integers(values):
    """Sort integers from 0 up in their place."""
    count = len(values)
    if count <= _FEW:
        for i in range(1, count):
            value = values[i]
            j = i - 1
            while j >= 0 and values[j] > value:
                values[j + 1] = values[j]
                j -= 1
            values[j + 1] = value
        return
    order = radix_order(values)
    kept = values.copy()
    for i in range(count):
        values[i] = kept[order[i]]


@inner
def descending_order(worth):
    """Places of numbers, the greatest first, equal ones as they stand: merged from below."""
    count = len(worth)
    order, other = np.empty(count, np.int64), np.empty(count, np.int64)
    for i in range(count):
        order[i] = i
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            left, middle, end = start, min(start + width, count), min(start + 2 * width, count)
            right = middle
            for i in range(start, end):
                if left < middle and (right >= end or worth[order[left]] >= worth[order[right]]):
                    other[i] = order[left]
                    left += 1
                else:
                    other[i] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@inner
def first_above(values, value, start, end):
    """The first place from `start` to before `end` of ascending values whose value is above the given one, or `end`."""
    while start < end:
        middle = (start + end) >> 1
        if values[middle] > value:
            end = middle
        else:
            start = middle + 1
    return start
