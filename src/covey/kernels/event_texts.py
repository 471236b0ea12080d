"""All that an event says (`filters.event_texts`), from its line of JSON: the texts of its values, one a line.

Lines are those that `json_lines` has found to be events. What Python would write otherwise than it stands there is left
to it: keys with escapes or twice in one object, numbers that aren't printed as they are written. A number is if it is
whole, or a decimal of up to 15 digits without an exponent and without zeros at its end, since the shortest text for its
double is then its own.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inner, kernel
from covey.kernels.json_lines import space_end, string_end, unescape
from covey.kernels.types import Bytes, FrozenBytes, Int64s

_LEFT = np.int64(-1)
TEXT_LEVELS = 62
MOST_KEYS = 1024
_MOST_DIGITS = 100
_EXACT_DIGITS = 15
_SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_QUOTE, _BACKSLASH, _COMMA, _DOT, _MINUS, _ZERO = ord('"'), ord("\\"), ord(","), ord("."), ord("-"), ord("0")
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = ord("{"), ord("}"), ord("["), ord("]")
_KEY, _VALUE, _AFTER = range(3)


@inner
def _is_as_written(data, first, last):
    """Whether Python prints a number as it stands."""
    at = first + 1 if data[first] == _MINUS else first
    dot, significant = np.int64(-1), 0
    for place in range(at, last):
        byte = data[place]
        if byte == _DOT:
            dot = place
        elif byte < 48 or byte > 57:
            return False
        elif significant or byte != _ZERO:
            significant += 1
    if dot < 0:
        return last - at <= _MOST_DIGITS and not (at > first and data[at] == _ZERO)
    if significant > _EXACT_DIGITS or last - dot - 1 > _EXACT_DIGITS + 4:
        return False
    if data[last - 1] == _ZERO and last - dot > 2:
        return False
    if data[at] == _ZERO and significant:  # below 0.0001 it is printed with an exponent
        zeros = dot + 1
        while data[zeros] == _ZERO:
            zeros += 1
        return zeros - dot - 1 <= 3
    return True


@inner
def write_text(data, at, end, out, begin, hashes, first_key, is_object):
    """Write an event's text from `begin` on; gives where it ends, or _LEFT."""
    to, depth, keys, mode, texts = begin, -1, 0, _VALUE, 0
    while True:
        at = space_end(data, at, end)
        if mode == _AFTER:
            if depth < 0:
                return to
            if data[at] == _COMMA:
                mode = _KEY if is_object[depth] else _VALUE
            else:
                keys = first_key[depth]
                depth -= 1
            at += 1
        elif mode == _KEY:
            hashed = _SEED
            at += 1
            while data[at] != _QUOTE:
                if data[at] == _BACKSLASH:
                    return _LEFT
                hashed = (hashed ^ np.uint64(data[at])) * _PRIME
                at += 1
            if keys == len(hashes):
                return _LEFT
            for k in range(first_key[depth], keys):
                if hashes[k] == np.int64(hashed):
                    return _LEFT
            hashes[keys] = np.int64(hashed)
            keys += 1
            at = space_end(data, at + 1, end) + 1
            mode = _VALUE
        else:
            byte = data[at]
            if byte == _OPEN or byte == _OPEN_LIST:
                depth += 1
                if depth == len(first_key):
                    return _LEFT
                is_object[depth], first_key[depth] = byte == _OPEN, keys
                at = space_end(data, at + 1, end)
                if data[at] == _CLOSE or data[at] == _CLOSE_LIST:
                    depth -= 1
                    at += 1
                    mode = _AFTER
                else:
                    mode = _KEY if byte == _OPEN else _VALUE
                continue
            mode = _AFTER
            if byte == 110:  # null says nothing
                at += 4
                continue
            if texts:
                out[to] = 10
                to += 1
            texts += 1
            if byte == _QUOTE:
                close = string_end(data, at + 1, end)[0]
                to = unescape(data, at + 1, close, out, to)
                at = close + 1
                continue
            last = at
            while last < end and data[last] > 32 and data[last] != _COMMA and data[last] != _CLOSE:
                if data[last] == _CLOSE_LIST:
                    break
                last += 1
            if byte != 116 and byte != 102 and not _is_as_written(data, at, last):
                return _LEFT
            for k in range(at, last):
                out[to] = data[k]
                to += 1
            at = last


@kernel
def event_texts(data: FrozenBytes, starts: Int64s, ends: Int64s, out: Bytes, offsets: Int64s, left: Bytes):
    """The texts of events, of which event i is data[starts[i]:ends[i]], one after the other, and where each begins.
    Those that are left to Python are marked, and empty here; so are those that were marked before."""
    hashes, first_key = np.empty(MOST_KEYS, np.int64), np.empty(TEXT_LEVELS, np.int64)
    is_object = np.empty(TEXT_LEVELS, np.uint8)
    to = np.int64(0)
    for event in range(len(starts)):
        offsets[event] = to
        if left[event]:
            continue
        written = write_text(data, starts[event], ends[event], out, to, hashes, first_key, is_object)
        if written < 0:
            left[event] = 1
        else:
            to = written
    offsets[len(starts)] = to
