"""Lines of JSON to columns: the attributes that somebody asks for are read where they stand, all else is skipped.

A line is read from its first byte to its last, so one that isn't JSON is never taken for an event. Whatever is unusual
is left to Python, which then decides: a whole line (`LEFT`) where its structure is unusual (escapes or duplicates among
keys, halves of surrogate pairs, deep nesting, anything that isn't plain JSON in UTF-8), a value (`SLICE`) where only
that is (lists, numbers that 64 bits don't hold exactly). So it is right wherever it answers.

Memory layout. Names are a tree whose node 0 is the object itself; node n is found in `table`, open addressing by a hash
of its parent and its key, `keys[key_starts[n]:key_starts[n + 1]]`. `attributes[n]` is the number of the attribute that
it is, or -1, and `inner[n]` says that names go on below it. A dotted name is there twice: key by key, and as one key.

For attribute a and line i, `kinds[a, i]` says what was found: `bits[a, i]` is an integer, a double's bits, 0 or 1 of a
boolean, or where a string (without quotes) or a slice starts, whose bytes `lengths[a, i]` counts; of a string with
escapes it is less than 0 (`gather` resolves them). `seen[n]` is 1 + the line in which node n was last found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.jit import forced, inner, kernel
from covey.kernels.strides import bytes_like, copy_bytes, hash_bytes, same_bytes
from covey.kernels.types import (
    Bytes,
    ByteTable,
    FrozenBytes,
    FrozenInt32s,
    FrozenInt64s,
    Int32Table,
    Int64,
    Int64s,
    Int64Table,
)
from covey.kernels.vectors import eight_at, lowest_bit, put_eight

MISSING, NULL, INTEGER, DOUBLE, STRING, BOOLEAN, RECORD, SLICE = range(8)
"""What an attribute is in a line."""
EVENT, BLANK, LEFT = range(3)
"""What a line is."""

MOST_LEVELS = 16
"""Levels that names go down; below, and in what is skipped beyond `_SKIPPED_LEVELS`, the line is left."""
_SKIPPED_LEVELS = 62
_DIGITS = 18
"""Digits of an integer, or of a double's mantissa, that are read here."""
_LONGEST_NUMBER = 1_000
_EXACT = 1 << 53
_POWERS = np.array([float(10**power) for power in range(23)])
_BAD = np.int64(-1)

_QUOTE, _BACKSLASH, _COMMA, _COLON, _DOT = ord('"'), ord("\\"), ord(","), ord(":"), ord(".")
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = ord("{"), ord("}"), ord("["), ord("]")
_MINUS, _PLUS, _ZERO, _NINE = ord("-"), ord("+"), ord("0"), ord("9")
_HIGH_BITS = np.uint64(0x8080808080808080)
_SPACES = np.uint64(0x2020202020202020)


class Names(NamedTuple):
    """The tree of names."""

    table: FrozenInt32s
    parents: FrozenInt32s
    attributes: FrozenInt32s
    inner: FrozenBytes
    key_starts: FrozenInt64s
    keys: FrozenBytes


class Found(NamedTuple):
    """What lines hold; see above."""

    lines: Bytes
    """`EVENT`, `BLANK` or `LEFT` for each line."""
    kinds: ByteTable
    bits: Int64Table
    lengths: Int32Table


@forced
def space_end(data, at, end):
    """Where white space ends."""
    while at < end and (data[at] == 32 or data[at] == 9 or data[at] == 13 or data[at] == 10):
        at += 1
    return at


@inner
def wide_character(data, at, end):
    """The end of a character of several bytes, or _BAD where they aren't UTF-8."""
    lead = data[at]
    second = data[at + 1] if at + 1 < end else np.uint8(0)
    if lead < 0xC2 or lead > 0xF4 or second & 0xC0 != 0x80:
        return _BAD
    if lead < 0xE0:
        return at + 2
    if at + 2 >= end or data[at + 2] & 0xC0 != 0x80:
        return _BAD
    if lead < 0xF0:
        if (lead == 0xE0 and second < 0xA0) or (lead == 0xED and second > 0x9F):
            return _BAD
        return at + 3
    if at + 3 >= end or data[at + 3] & 0xC0 != 0x80:
        return _BAD
    if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
        return _BAD
    return at + 4


@forced
def _is_hex(byte):
    return 48 <= byte <= 57 or 65 <= byte <= 70 or 97 <= byte <= 102


@inner
def _escape(data, at, end):
    """The end of an escape that starts at a backslash; _BAD where it is none, or half of a surrogate pair."""
    if at + 1 >= end:
        return _BAD
    byte = data[at + 1]
    if byte == 117:  # u
        if at + 5 >= end:
            return _BAD
        for digit in range(at + 2, at + 6):
            if not _is_hex(data[digit]):
                return _BAD
        if (data[at + 2] == 68 or data[at + 2] == 100) and data[at + 3] >= 56:  # \ud8 and above
            return _BAD
        return at + 6
    if byte == 34 or byte == 92 or byte == 47 or byte == 98 or byte == 102 or byte == 110 or byte == 114 or byte == 116:
        return at + 2
    return _BAD


@forced
def _unusual(word):
    """The high bit of the first of eight bytes that is a quote, a backslash, a control character or no ASCII, and maybe
    of others behind it."""
    below = (word - _SPACES) & ~word
    return (bytes_like(word, _QUOTE) | bytes_like(word, _BACKSLASH) | below | word) & _HIGH_BITS


@inner
def string_end(data, at, end):
    """From after its first quote: where its last quote is, or _BAD; and whether it has escapes."""
    escaped = False
    while at < end:
        while at + 8 <= end:
            unusual = _unusual(eight_at(data, at))
            if unusual:
                at += lowest_bit(unusual) >> 3
                break
            at += 8
        if at >= end:
            break
        byte = data[at]
        if byte == _QUOTE:
            return at, escaped
        if byte == _BACKSLASH:
            escaped = True
            at = _escape(data, at, end)
        elif byte < 32:
            return _BAD, escaped
        elif byte < 128:
            at += 1
        else:
            at = wide_character(data, at, end)
        if at < 0:
            return _BAD, escaped
    return _BAD, escaped


@inner
def _number(data, at, end):
    """Where it ends, or _BAD; INTEGER, DOUBLE or SLICE; and its bits."""
    first = at
    negative = data[at] == _MINUS
    if negative:
        at += 1
    start = at
    mantissa = np.int64(0)
    digits = 0
    while at < end and _ZERO <= data[at] <= _NINE:
        if digits < _DIGITS:
            mantissa = 10 * mantissa + np.int64(data[at] - _ZERO)
        digits += 1
        at += 1
    if at == start or (data[start] == _ZERO and at > start + 1):
        return _BAD, SLICE, np.int64(0)
    whole = True
    power = 0
    if at < end and data[at] == _DOT:
        whole = False
        at += 1
        point = at
        while at < end and _ZERO <= data[at] <= _NINE:
            if digits < _DIGITS:
                mantissa = 10 * mantissa + np.int64(data[at] - _ZERO)
                power -= 1
            digits += 1
            at += 1
        if at == point:
            return _BAD, SLICE, np.int64(0)
    if at < end and (data[at] == 69 or data[at] == 101):  # E, e
        whole = False
        at += 1
        down = False
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            down = data[at] == _MINUS
            at += 1
        point = at
        given = 0
        while at < end and _ZERO <= data[at] <= _NINE:
            if given < 10_000:
                given = 10 * given + np.int64(data[at] - _ZERO)
            at += 1
        if at == point:
            return _BAD, SLICE, np.int64(0)
        power += -given if down else given
    if at - first > _LONGEST_NUMBER:
        return _BAD, SLICE, np.int64(0)
    if digits > _DIGITS:
        return at, SLICE, np.int64(0)
    if whole:
        return at, INTEGER, -mantissa if negative else mantissa
    if mantissa > _EXACT or power > 22 or power < -22:
        return at, SLICE, np.int64(0)
    value = np.float64(mantissa)
    value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    return at, DOUBLE, np.float64(-value if negative else value).view(np.int64)


@forced
def _is_word(data, at, end, word):
    """Whether `word`, four bytes in one integer, stands there."""
    if at + 4 > end:
        return False
    here = (
        np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16 | np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    )
    return here == word


_NULL = int.from_bytes(b"null", "big")
_TRUE = int.from_bytes(b"true", "big")
_ALSE = int.from_bytes(b"alse", "big")


@inner
def _scalar(data, at, end):
    """A string, a number or a word: where it ends, or _BAD; what it is; its bits or start; its length."""
    byte = data[at]
    if byte == _QUOTE:
        close, escaped = string_end(data, at + 1, end)
        if close < 0:
            return _BAD, MISSING, np.int64(0), 0
        length = close - at - 1
        return close + 1, STRING, at + 1, -length if escaped else length
    if byte == _MINUS or _ZERO <= byte <= _NINE:
        after, kind, bits = _number(data, at, end)
        if kind == SLICE:
            return after, SLICE, at, after - at
        return after, kind, bits, 0
    if _is_word(data, at, end, _NULL):
        return at + 4, NULL, np.int64(0), 0
    if _is_word(data, at, end, _TRUE):
        return at + 4, BOOLEAN, np.int64(1), 0
    if byte == 102 and _is_word(data, at + 1, end, _ALSE):
        return at + 5, BOOLEAN, np.int64(0), 0
    return _BAD, MISSING, np.int64(0), 0


@inner
def _skip(data, at, end):
    """Where a value ends, or _BAD. Which levels are objects stands in the bits of one integer."""
    objects = np.int64(0)
    depth = 0
    while True:
        # A value is due here.
        at = space_end(data, at, end)
        if at >= end:
            return _BAD
        byte = data[at]
        opened = False
        if byte == _OPEN or byte == _OPEN_LIST:
            if depth == _SKIPPED_LEVELS:
                return _BAD
            depth += 1
            objects = objects << 1 | (1 if byte == _OPEN else 0)
            at = space_end(data, at + 1, end)
            if at >= end:
                return _BAD
            opened = data[at] != (_CLOSE if byte == _OPEN else _CLOSE_LIST)
        else:
            at = _scalar(data, at, end)[0]
            if at < 0 or depth == 0:
                return at
        # Behind a value: close what ends, until another value is due.
        while not opened:
            at = space_end(data, at, end)
            if at >= end:
                return _BAD
            byte = data[at]
            if byte == _COMMA:
                at = space_end(data, at + 1, end)
                opened = True
            elif byte == (_CLOSE if objects & 1 else _CLOSE_LIST):
                at += 1
                objects >>= 1
                depth -= 1
                if depth == 0:
                    return at
            else:
                return _BAD
        if objects & 1:
            if at >= end or data[at] != _QUOTE:
                return _BAD
            at = string_end(data, at + 1, end)[0]
            if at < 0:
                return _BAD
            at = space_end(data, at + 1, end)
            if at >= end or data[at] != _COLON:
                return _BAD
            at += 1


@forced
def _same(data, first, last, names, node):
    start = names.key_starts[node]
    if names.key_starts[node + 1] - start != last - first:
        return False
    return same_bytes(names.keys, start, data, first, last - first)


@forced
def find_node(data, first, last, parent, names):
    """The node below `parent` with this key, or 0."""
    mask = np.uint64(len(names.table) - 1)
    at = hash_bytes(parent, data, first, last) & mask
    while True:
        node = names.table[at]
        if node == 0:
            return 0
        if names.parents[node] == parent and _same(data, first, last, names, node):
            return node
        at = (at + np.uint64(1)) & mask


@forced
def _key(data, at, end):
    """From after its first quote: where its last is, or _BAD also where it has escapes; and whether it has a dot."""
    dotted = False
    while at < end:
        while at + 8 <= end:
            word = eight_at(data, at)
            unusual, dots = _unusual(word), bytes_like(word, _DOT) & _HIGH_BITS
            if unusual:
                dotted |= dots & (unusual ^ (unusual - np.uint64(1))) != 0
                at += lowest_bit(unusual) >> 3
                break
            dotted |= dots != 0
            at += 8
        if at >= end:
            break
        byte = data[at]
        if byte == _QUOTE:
            return at, dotted
        if byte == _BACKSLASH or byte < 32:
            return _BAD, dotted
        if byte < 128:
            dotted |= byte == _DOT
            at += 1
        else:
            at = wide_character(data, at, end)
            if at < 0:
                return _BAD, dotted
    return _BAD, dotted


@inner
def read_object(data, at, end, line, names, found, seen, stack):
    """Read one line, data[at:end]; gives what it is. `found.kinds` of the line is MISSING all over."""
    at = space_end(data, at, end)
    if at >= end:
        return BLANK
    if data[at] != _OPEN:
        return LEFT
    depth = 0
    stack[0] = 0
    at += 1
    first = True
    while True:
        at = space_end(data, at, end)
        if at >= end:
            return LEFT
        if first and data[at] == _CLOSE:
            at += 1
        else:
            # A member: its key, its node, its value.
            if data[at] != _QUOTE:
                return LEFT
            start = at + 1
            close, dotted = _key(data, start, end)
            if close < 0 or (dotted and depth > 0):
                return LEFT
            at = space_end(data, close + 1, end)
            if at >= end or data[at] != _COLON:
                return LEFT
            at = space_end(data, at + 1, end)
            if at >= end:
                return LEFT
            byte = data[at]
            node = find_node(data, start, close, stack[depth], names)
            if node == 0:
                if dotted and byte == _OPEN:
                    return LEFT
                at = _skip(data, at, end)
            else:
                attribute = names.attributes[node]
                if seen[node] == line + 1:
                    return LEFT
                seen[node] = line + 1
                if attribute >= 0 and found.kinds[attribute, line] != MISSING:
                    return LEFT  # the same name in its two ways
                if byte == _OPEN:
                    if dotted:
                        return LEFT
                    if attribute >= 0:
                        found.kinds[attribute, line] = RECORD
                    if names.inner[node]:
                        if depth + 1 == MOST_LEVELS:
                            return LEFT
                        depth += 1
                        stack[depth] = node
                        at += 1
                        first = True
                        continue
                    at = _skip(data, at, end)
                elif byte == _OPEN_LIST:
                    begin = at
                    at = _skip(data, at, end)
                    if attribute >= 0 and at >= 0:
                        found.kinds[attribute, line] = SLICE
                        found.bits[attribute, line] = begin
                        found.lengths[attribute, line] = at - begin
                else:
                    at, kind, bits, length = _scalar(data, at, end)
                    if attribute >= 0:
                        found.kinds[attribute, line] = kind
                        found.bits[attribute, line] = bits
                        found.lengths[attribute, line] = length
            if at < 0:
                return LEFT
            at = space_end(data, at, end)
            if at >= end:
                return LEFT
            if data[at] == _COMMA:
                at += 1
                first = False
                continue
            if data[at] != _CLOSE:
                return LEFT
            at += 1
        # An object has ended, and maybe those around it.
        while depth > 0:
            depth -= 1
            at = space_end(data, at, end)
            if at >= end:
                return LEFT
            if data[at] == _COMMA:
                at += 1
                first = False
                break
            if data[at] != _CLOSE:
                return LEFT
            at += 1
        else:
            at = space_end(data, at, end)
            return EVENT if at == end else LEFT


@kernel
def read_lines(
    data: FrozenBytes, starts: Int64s, ends: Int64s, begin: Int64, stop: Int64, names: Names, found: Found, seen: Int64s
):
    """Read lines `begin` to `stop`, of which line i is data[starts[i]:ends[i]]. `found.kinds` is MISSING all over."""
    stack = np.zeros(MOST_LEVELS, np.int64)
    for line in range(begin, stop):
        found.lines[line] = read_object(data, starts[line], ends[line], line, names, found, seen, stack)


@kernel
def hash_key(parent: Int64, key: FrozenBytes, mask: Int64):
    """Where the search for a key begins; for building the table."""
    return np.int64(hash_bytes(parent, key, 0, len(key)) & np.uint64(mask))


@forced
def _hex(byte):
    return np.int64(byte & 15) + (9 if byte > 57 else 0)


@inner
def unescape(data, at, end, out, to):
    """Write a string with its escapes resolved, of which `_string` found that all are good; gives where it ends."""
    while at < end:
        while at + 8 <= end and to + 8 <= len(out):
            word = eight_at(data, at)
            put_eight(out, to, word)
            escapes = bytes_like(word, _BACKSLASH) & _HIGH_BITS
            if escapes:
                at += lowest_bit(escapes) >> 3
                to += lowest_bit(escapes) >> 3
                break
            at += 8
            to += 8
        if at >= end:
            break
        byte = data[at]
        if byte != _BACKSLASH:
            out[to] = byte
            at += 1
            to += 1
            continue
        byte = data[at + 1]
        at += 2
        if byte != 117:  # u
            if byte == 98:
                byte = 8
            elif byte == 102:
                byte = 12
            elif byte == 110:
                byte = 10
            elif byte == 114:
                byte = 13
            elif byte == 116:
                byte = 9
            out[to] = byte
            to += 1
            continue
        code = _hex(data[at]) << 12 | _hex(data[at + 1]) << 8 | _hex(data[at + 2]) << 4 | _hex(data[at + 3])
        at += 4
        if code < 0x80:
            out[to] = code
            to += 1
        elif code < 0x800:
            out[to], out[to + 1] = 0xC0 | code >> 6, 0x80 | code & 63
            to += 2
        else:
            out[to], out[to + 1], out[to + 2] = 0xE0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63
            to += 3
    return to


@kernel
def gather(data: FrozenBytes, starts: Int64s, lengths: FrozenInt32s, out: Bytes, offsets: Int64s):
    """The bytes of strings one after the other, and where each begins."""
    at = np.int64(0)
    for row in range(len(starts)):
        offsets[row] = at
        start, length = starts[row], np.int64(lengths[row])
        if length < 0:
            at = unescape(data, start, start - length, out, at)
            continue
        copy_bytes(data, start, length, out, at)
        at += length
    offsets[len(starts)] = at
