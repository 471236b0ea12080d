"""MessagePack maps to columns, as `json_lines` reads JSON: attributes that somebody asks for where they stand.

A message is read from its first byte to its last, so a damaged one is never taken for an event. A whole message is left
to Python (`LEFT`) where its structure is unusual (keys that aren't strings, duplicates, extensions, deep nesting,
strings that aren't UTF-8), a value (`SLICE`) where only that is (arrays, binary, integers beyond 64 bits with a sign).
Memory layout: that of `json_lines`; a slice is a whole value with its leading byte.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import forced, inner, kernel
from covey.kernels.json_lines import (
    BOOLEAN,
    DOUBLE,
    EVENT,
    INTEGER,
    LEFT,
    MISSING,
    MOST_LEVELS,
    NULL,
    RECORD,
    SLICE,
    STRING,
    Found,
    Names,
    find_node,
    wide_character,
)
from covey.kernels.types import FrozenBytes, Int64, Int64s

_BAD = np.int64(-1)
SKIPPED_LEVELS = 62
SCALAR, ARRAY, MAP, TEXT, BINARY, OTHER = range(6)
"""What a leading byte begins."""


@forced
def _big_endian(data, at, size):
    value = np.uint64(0)
    for byte in range(size):
        value = value << np.uint64(8) | np.uint64(data[at + byte])
    return value


@inner
def head(data, at, end):
    """What begins at `at`; where what it counts or holds begins, or _BAD; and how many members or bytes it has."""
    byte = np.int64(data[at])
    if byte <= 0x7F or byte >= 0xE0 or byte == 0xC0 or byte == 0xC2 or byte == 0xC3:
        return SCALAR, at + 1, np.int64(0)
    if byte <= 0x8F:
        return MAP, at + 1, byte & 0x0F
    if byte <= 0x9F:
        return ARRAY, at + 1, byte & 0x0F
    if byte <= 0xBF:
        return TEXT, at + 1, byte & 0x1F
    size = np.int64(0)
    what = OTHER
    if 0xC4 <= byte <= 0xC6:
        what, size = BINARY, np.int64(1) << (byte - 0xC4)
    elif 0xD9 <= byte <= 0xDB:
        what, size = TEXT, np.int64(1) << (byte - 0xD9)
    elif byte == 0xDC or byte == 0xDD:
        what, size = ARRAY, np.int64(2) << (byte - 0xDC)
    elif byte == 0xDE or byte == 0xDF:
        what, size = MAP, np.int64(2) << (byte - 0xDE)
    if what != OTHER:
        if at + 1 + size > end:
            return OTHER, _BAD, np.int64(0)
        return what, at + 1 + size, np.int64(_big_endian(data, at + 1, size))
    if byte == 0xCA or byte == 0xCB:
        size = np.int64(4) << (byte - 0xCA)
    elif 0xCC <= byte <= 0xCF:
        size = np.int64(1) << (byte - 0xCC)
    elif 0xD0 <= byte <= 0xD3:
        size = np.int64(1) << (byte - 0xD0)
    else:
        return OTHER, at + 1, np.int64(0)  # an extension, or a byte that begins nothing
    return SCALAR, (at + 1 if at + 1 + size <= end else _BAD), size


@inner
def text_end(data, at, end, length):
    """Where a text ends, or _BAD where it isn't UTF-8 or goes on behind the message."""
    stop = at + length
    if stop > end:
        return _BAD
    while at < stop:
        if data[at] < 128:
            at += 1
        else:
            at = wide_character(data, at, stop)
            if at < 0:
                return _BAD
    return at


@inner
def skip(data, at, end, left):
    """Where a value ends, or _BAD. left[depth] counts the members that are due, keys too, with a map's below 0."""
    depth = 0
    while True:
        if at >= end:
            return _BAD
        what, start, count = head(data, at, end)
        if start < 0 or what == OTHER:
            return _BAD
        if depth and left[depth] < 0 and left[depth] & 1 == 0 and what != TEXT:
            return _BAD  # a key
        if what == MAP or what == ARRAY:
            at = start
            if depth:
                left[depth] += 1 if left[depth] < 0 else -1
            if count:
                if depth == SKIPPED_LEVELS:
                    return _BAD
                depth += 1
                left[depth] = -2 * count if what == MAP else count
        else:
            at = text_end(data, start, end, count) if what == TEXT else start + count
            if at < 0 or at > end:
                return _BAD
            if depth:
                left[depth] += 1 if left[depth] < 0 else -1
        while depth and left[depth] == 0:
            depth -= 1
        if depth == 0:
            return at


@inner
def number_of(data, at, size):
    """A scalar that is no text: what it is, and its bits."""
    byte = np.int64(data[at])
    if byte <= 0x7F:
        return INTEGER, byte
    if byte >= 0xE0:
        return INTEGER, byte - 256
    if byte == 0xC0:
        return NULL, np.int64(0)
    if byte == 0xC2 or byte == 0xC3:
        return BOOLEAN, byte - 0xC2
    bits = _big_endian(data, at + 1, size)
    if byte == 0xCA:
        return DOUBLE, np.float64(np.uint32(bits).view(np.float32)).view(np.int64)
    if byte == 0xCB:
        return DOUBLE, np.int64(bits)
    if byte == 0xCF and bits >> np.uint64(63):
        return SLICE, np.int64(0)
    if byte >= 0xD0 and size < 8 and bits >> np.uint64(8 * size - 1):
        return INTEGER, np.int64(bits) - (np.int64(1) << (8 * size))
    return INTEGER, np.int64(bits)


@inner
def read_message(data, at, end, line, names, found, seen, nodes, due, left):
    """Read one message; gives what it is. `nodes` and `due` say of each level which it is and what members are due."""
    if at >= end:
        return LEFT
    what, at, count = head(data, at, end)
    if what != MAP or at < 0:
        return LEFT
    depth = 0
    nodes[0], due[0] = 0, count
    while True:
        while due[depth] == 0:
            if depth == 0:
                return EVENT if at == end else LEFT
            depth -= 1
        due[depth] -= 1
        if at >= end:
            return LEFT
        what, start, length = head(data, at, end)
        if what != TEXT or start < 0:
            return LEFT
        at = text_end(data, start, end, length)
        if at < 0 or at >= end:
            return LEFT
        dotted = False
        for byte in range(start, at):
            dotted |= data[byte] == 46
        if dotted and depth > 0:
            return LEFT
        node = find_node(data, start, at, nodes[depth], names)
        what, start, count = head(data, at, end)
        if start < 0:
            return LEFT
        if node == 0:
            if dotted and what == MAP:
                return LEFT
            at = skip(data, at, end, left)
            if at < 0:
                return LEFT
            continue
        attribute = names.attributes[node]
        if seen[node] == line + 1:
            return LEFT
        seen[node] = line + 1
        if attribute >= 0 and found.kinds[attribute, line] != MISSING:
            return LEFT  # the same name in its two ways
        kind, bits, length = RECORD, np.int64(0), np.int64(0)
        if what == MAP:
            if dotted:
                return LEFT
            if names.inner[node]:
                if depth + 1 == MOST_LEVELS:
                    return LEFT
                depth += 1
                nodes[depth], due[depth] = node, count
                at = start
            else:
                at = skip(data, at, end, left)
        elif what == TEXT:
            kind, bits, length = STRING, start, count
            at = text_end(data, start, end, count)
        elif what == SCALAR:
            kind, bits = number_of(data, at, count)
            if kind == SLICE:
                bits, length = at, start + count - at
            at = start + count
        elif what == OTHER:
            return LEFT
        else:
            begin = at
            at = skip(data, at, end, left)
            kind, bits, length = SLICE, begin, at - begin
        if at < 0 or at > end:
            return LEFT
        if attribute >= 0:
            found.kinds[attribute, line] = kind
            found.bits[attribute, line] = bits
            found.lengths[attribute, line] = length


@kernel
def read_maps(
    data: FrozenBytes, starts: Int64s, ends: Int64s, begin: Int64, stop: Int64, names: Names, found: Found, seen: Int64s
):
    """Read messages `begin` to `stop`, of which message i is data[starts[i]:ends[i]]. `found.kinds` is MISSING."""
    nodes, due = np.zeros(MOST_LEVELS, np.int64), np.zeros(MOST_LEVELS, np.int64)
    left = np.zeros(SKIPPED_LEVELS + 1, np.int64)
    for line in range(begin, stop):
        found.lines[line] = read_message(data, starts[line], ends[line], line, names, found, seen, nodes, due, left)
