"""Eight bytes at a time: the steps that texts are read, compared and hashed in.

A stretch is read as one number where all its eight bytes are there, and byte by byte at its end, so nothing is read
beyond what was given. What is found in a number is said by the high bits of its bytes.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import forced
from covey.kernels.vectors import eight_at, put_eight

_ONES = np.uint64(0x0101010101010101)
_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@forced
def bytes_like(word, byte):
    """The high bit of the first of eight bytes that is this one, and maybe of others behind it; other bits mean
    nothing."""
    differs = word ^ (_ONES * np.uint64(byte))
    return (differs - _ONES) & ~differs


@forced
def hash_bytes(seed, data, first, last):
    """A hash of data[first:last]; its lower bits are as good as any."""
    value = _SEED ^ np.uint64(seed) ^ np.uint64(last - first) << _HALF
    while first + 8 <= last:
        value = (value ^ eight_at(data, first)) * _PRIME
        value ^= value >> _HALF
        first += 8
    rest = np.uint64(0)
    for at in range(first, last):
        rest = rest << np.uint64(8) | np.uint64(data[at])
    value = (value ^ rest) * _PRIME
    return value ^ (value >> _HALF)


@forced
def same_bytes(one, at, other, there, length):
    """Whether one[at : at + length] is other[there : there + length]."""
    done = 0
    while done + 8 <= length:
        if eight_at(one, at + done) != eight_at(other, there + done):
            return False
        done += 8
    while done < length:
        if one[at + done] != other[there + done]:
            return False
        done += 1
    return True


@forced
def copy_bytes(data, first, length, out, to):
    """Write data[first : first + length] to out[to:]; up to seven bytes behind it may change as well."""
    if first + length + 8 <= len(data) and to + length + 8 <= len(out):
        for done in range(0, length, 8):
            put_eight(out, to + done, eight_at(data, first + done))
    else:
        for done in range(length):
            out[to + done] = data[first + done]
