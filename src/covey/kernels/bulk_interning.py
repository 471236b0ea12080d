"""Numbers for spans of bytes: the hash table in which bulk parsing keeps names, strings and patterns.

Names, strings and patterns are numbered in the order in which they appear, by one hash table over spans of the texts:

    slots    [2^k]        an entry's number, or -1; linear probing, at most half full
    entries  [number, 5]  hash, first byte, end, tag, and the number among the names, strings or patterns

Spans are equal if their bytes and tags are. The tag is NAME_TAG, STRING_TAG, or (pattern + 1) << 32 | attribute.
Entries are taken back in the reverse order when a row is given up, which open addressing allows without tombstones.
"""

from __future__ import annotations

import numpy as np
from llvmlite.ir import Constant
from numba.extending import intrinsic

from covey.kernels.jit import forced, inner

_MULTIPLIER = -7046029254386353131  # 2^64 / golden ratio, odd

# Columns of `counts`: how much of each output is in use.
_TOKENS, _LEAVES, _ENTRIES, _NAMES, _STRINGS, _PATTERNS = range(6)

NAME_TAG, STRING_TAG = 0, 1


@intrinsic
def _borrowed(_, array):
    """The array without its count of references; whoever lends it must keep it.

    Numba counts references at each call that passes an array on, and atomically: that took three quarters of the time.
    """

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = Constant(view.meminfo.type, None)
        view.parent = Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), generate


@inner
def _keep(data, lexemes, bounds, pending, operands, slots):
    """Called after the last use of what was borrowed, so that it isn't freed before."""


@forced
def _hash(data, first, last, tag, seed):
    state = (seed ^ tag) * _MULTIPLIER
    for at in range(first, last):
        state = (state ^ data[at]) * _MULTIPLIER
        state ^= (state >> 29) & 0x7FFFFFFFF
    return state ^ (last - first)


@forced
def _slot(slots, entries, data, first, last, tag, hashed):
    """Where the span stands, or the free slot where it would."""
    mask = len(slots) - 1
    slot = hashed & mask
    while True:
        entry = slots[slot]
        if entry < 0:
            return slot
        if entries[entry, 0] == hashed and entries[entry, 3] == tag:
            known = entries[entry, 1]
            if entries[entry, 2] - known == last - first:
                same = True
                for offset in range(last - first):
                    if data[known + offset] != data[first + offset]:
                        same = False
                        break
                if same:
                    return slot
        slot = (slot + 1) & mask


@forced
def _intern(slots, entries, counts, which, data, first, last, tag, seed):
    """The number of a span among those of its sort; a new one if it's new."""
    hashed = _hash(data, first, last, tag, seed)
    slot = _slot(slots, entries, data, first, last, tag, hashed)
    entry = slots[slot]
    if entry < 0:
        entry = counts[_ENTRIES]
        slots[slot] = entry
        entries[entry, 0] = hashed
        entries[entry, 1] = first
        entries[entry, 2] = last
        entries[entry, 3] = tag
        entries[entry, 4] = counts[which]
        counts[_ENTRIES] += 1
        counts[which] += 1
    return entries[entry, 4]


@inner
def _take_back(slots, entries, data, before, after):
    """Remove the entries from `before` on, the last first."""
    for entry in range(after - 1, before - 1, -1):
        first, last = entries[entry, 1], entries[entry, 2]
        slots[_slot(slots, entries, data, first, last, entries[entry, 3], entries[entry, 0])] = -1


@inner
def _roomy(slots, entries, count):
    """Twice as many slots as there's room for entries, at least."""
    size = len(slots)
    while size < 2 * len(entries):
        size *= 2
    larger = np.full(size, -1, np.int32)
    for entry in range(count):
        slot = entries[entry, 0] & (size - 1)
        while larger[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        larger[slot] = entry
    return larger
