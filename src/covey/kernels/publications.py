"""Publications as they come in MessagePack, and deliveries as they leave: an event's bytes go from one to the other.

Only what is plain is read: events without ids, flat, of texts, numbers, booleans and nulls, whose names are texts, each
there once, and none of them a broker's own. All else is left to Python, whole, so that what is refused is refused by
the one who knows why.

Memory layout. Event i has its map at data[starts[i]:ends[i]]; `durable[i]` and `numbers[i]` are what its publisher says
of it. The events of message k are those from firsts[k] to firsts[k + 1]. Delivery d is out[ends[d - 1]:ends[d]].
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import forced, inner, kernel
from covey.kernels.json_lines import INTEGER
from covey.kernels.messagepack import ARRAY, MAP, SCALAR, TEXT, head, number_of, text_end
from covey.kernels.strides import copy_bytes, hash_bytes, same_bytes
from covey.kernels.types import Bytes, FrozenBytes, FrozenInt64s, Int64, Int64s

LEFT = -1
"""Something isn't plain."""
MOST_NAMES = 64
"""Attributes of an event that is read here: each name is compared with all others."""
LONGEST_EVENT = 1 << 16
"""Bytes."""
DELIVERY_BYTES = 80
"""What a delivery takes at most beside its event and its texts."""
_BAD = np.int64(-1)
_DOT = 46


@inner
def _plain_map(data, at, end, reserved, hashes):
    """Where a plain event ends, or _BAD where it isn't plain."""
    what, at, count = head(data, at, end)
    if what != MAP or at < 0 or count > MOST_NAMES:
        return _BAD
    for name in range(count):
        if at >= end:
            return _BAD
        what, start, length = head(data, at, end)
        if what != TEXT or start < 0:
            return _BAD
        at = text_end(data, start, end, length)
        if at < 0 or at >= end:
            return _BAD
        is_reserved = length >= len(reserved) and same_bytes(data, start, reserved, 0, len(reserved))
        if is_reserved and (length == len(reserved) or data[start + len(reserved)] == _DOT):
            return _BAD
        hashes[name] = hash_bytes(0, data, start, at)
        for other in range(name):
            if hashes[other] == hashes[name]:
                return _BAD
        what, start, length = head(data, at, end)
        if start < 0:
            return _BAD
        if what == TEXT:
            at = text_end(data, start, end, length)
        elif what == SCALAR:
            at = start + length
        else:
            return _BAD
        if at < 0 or at > end:
            return _BAD
    return at


@inner
def _publication(data, at, end, name, reserved, largest, hashes, place, starts, ends, durable, numbers):
    """Read an event; gives where it ends, or _BAD."""
    what, at, count = head(data, at, end)
    if what != ARRAY or at < 0 or count < 2 or count > 5:
        return _BAD
    if at + len(name) > end or not same_bytes(data, at, name, 0, len(name)):
        return _BAD
    starts[place] = at + len(name)
    at = _plain_map(data, starts[place], end, reserved, hashes)
    if at < 0 or at - starts[place] > LONGEST_EVENT:
        return _BAD
    ends[place], durable[place], numbers[place] = at, 0, 0
    if count > 2:
        if at >= end or (data[at] != 0xC2 and data[at] != 0xC3):
            return _BAD
        durable[place] = data[at] - 0xC2
        at += 1
    if count > 3:
        if at >= end:
            return _BAD
        what, start, length = head(data, at, end)
        if what != SCALAR or start < 0:
            return _BAD
        kind, bits = number_of(data, at, length)
        if kind != INTEGER or bits < 0 or bits > largest:
            return _BAD
        numbers[place] = bits
        at = start + length
    if count > 4:
        if at >= end or data[at] != 0xA0:
            return _BAD  # it has an id
        at += 1
    return at


@kernel
def read_publications(
    data: FrozenBytes, bounds: Int64s, name: FrozenBytes, reserved: FrozenBytes, largest: Int64, firsts: Int64s,
    starts: Int64s, ends: Int64s, durable: Bytes, numbers: Int64s,
):  # fmt: skip
    """Read lists of events, of which list k is data[bounds[k]:bounds[k + 1]]; gives how many events there are, or LEFT.
    An event begins with `name`. There is room for as many as there can be."""
    hashes = np.empty(MOST_NAMES, np.uint64)
    place = np.int64(0)
    for message in range(len(bounds) - 1):
        firsts[message] = place
        at, end = bounds[message], bounds[message + 1]
        if at >= end:
            return np.int64(LEFT)
        what, at, count = head(data, at, end)
        if what != ARRAY or at < 0:
            return np.int64(LEFT)
        for _ in range(count):
            if at >= end or place >= len(starts):
                return np.int64(LEFT)
            at = _publication(data, at, end, name, reserved, largest, hashes, place, starts, ends, durable, numbers)
            if at < 0:
                return np.int64(LEFT)
            place += 1
        if at != end:
            return np.int64(LEFT)
    firsts[len(bounds) - 1] = place
    return place


@forced
def _put_number(out, to, value):
    """Write a number that isn't below 0, in as few bytes as there can be; gives where it ends."""
    if value < 0x80:
        out[to] = value
        return to + 1
    size = 1
    mark = 0xCC
    if value >= np.int64(1) << 32:
        size, mark = 8, 0xCF
    elif value >= 1 << 16:
        size, mark = 4, 0xCE
    elif value >= 1 << 8:
        size, mark = 2, 0xCD
    out[to] = mark
    for byte in range(size):
        out[to + size - byte] = (value >> (8 * byte)) & 0xFF
    return to + size + 1


@forced
def _put_text_head(out, to, length):
    if length < 32:
        out[to] = 0xA0 | length
        return to + 1
    if length < 1 << 8:
        out[to], out[to + 1] = 0xD9, length
        return to + 2
    out[to], out[to + 1], out[to + 2] = 0xDA, length >> 8, length & 0xFF
    return to + 3


@forced
def _put_list_head(out, to, length):
    if length < 16:
        out[to] = 0x90 | length
        return to + 1
    if length < 1 << 16:
        out[to], out[to + 1], out[to + 2] = 0xDC, length >> 8, length & 0xFF
        return to + 3
    out[to] = 0xDD
    for byte in range(4):
        out[to + 4 - byte] = (length >> (8 * byte)) & 0xFF
    return to + 5


@forced
def _put_key(out, to, origin, number):
    """Write an event's key: its origin, a slash, and its number in digits."""
    digits = 1
    above = np.int64(10)
    while digits < 18 and number >= above:
        digits += 1
        above *= 10
    if number >= above:
        digits += 1
    to = _put_text_head(out, to, len(origin) + 1 + digits)
    copy_bytes(origin, 0, len(origin), out, to)
    to += len(origin)
    out[to] = 47
    for digit in range(digits):
        out[to + digits - digit] = 48 + number % 10
        number //= 10
    return to + digits + 1


@kernel
def write_deliveries(
    data: FrozenBytes, starts: Int64s, ends: Int64s, durable: Bytes, numbers: Int64s, pairs: FrozenInt64s,
    names: FrozenBytes, name_starts: FrozenInt64s, name_lengths: FrozenInt64s, publishers: FrozenBytes,
    publisher_starts: Int64s, publisher_of: Int64s, begins: FrozenBytes, origin: FrozenBytes, first: Int64,
    overhead: Int64, out: Bytes, out_ends: Int64s,
):  # fmt: skip
    """Write deliveries without a number; gives how many, and where they end. There is one for each event that pairs
    name: pairs[i] is its place, ascending, and names[name_starts[i]:] a subscription that it is for, packed. Publisher
    p is publishers[publisher_starts[p]:publisher_starts[p + 1]], packed. A delivery begins with `begins`; an event's
    key is made of `origin` and of its place behind `first`, and what it takes of the credit is its size and
    `overhead`."""
    to, delivery, pair = np.int64(0), np.int64(0), np.int64(0)
    while pair < len(pairs):
        place = pairs[pair]
        copy_bytes(begins, 0, len(begins), out, to)
        to += len(begins)
        last = pair
        while last < len(pairs) and pairs[last] == place:
            last += 1
        to = _put_list_head(out, to, last - pair)
        while pair < last:
            copy_bytes(names, name_starts[pair], name_lengths[pair], out, to)
            to += name_lengths[pair]
            pair += 1
        length = ends[place] - starts[place]
        copy_bytes(data, starts[place], length, out, to)
        to += length
        publisher = publisher_of[place]
        size = publisher_starts[publisher + 1] - publisher_starts[publisher]
        copy_bytes(publishers, publisher_starts[publisher], size, out, to)
        to = _put_number(out, to + size, numbers[place])
        out[to] = 0xC2 + durable[place]
        to = _put_key(out, to + 1, origin, first + place)
        out[to] = 0xC2
        to = _put_number(out, to + 1, length + overhead)
        out[to] = 0xA0
        to += 1
        out_ends[delivery] = to
        delivery += 1
    return delivery, to
