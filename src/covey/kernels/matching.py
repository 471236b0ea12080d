"""Matching kernels: events as codes against the tables of a segment.

Memory layout. `codes[row, event]` is int32; a row is an attribute's codes or, for attributes with patterns, the
numbers of their distinct strings. Rows are padded by 64 events so that a word can be read past the end.
`pattern_truth[pattern_start[p] + number]` has bit 0 set where pattern p is true of that distinct string, and bit 1
where it is false. Matches are written as (event, subscription) and then put in the events' order.

A node is four int32: row << 8 | kind, low, high, yes << 16 | no.

Batches go by tables. The events that reach a table are sorted by partition and pivot code; then for each partition
each entry meets only the run of events inside its pivot interval, 64 at a time. A diagram is evaluated for a word of
events from the root down: each node passes the events that reach it on to its two successors, so a node is looked at
once, and not at all when no event reaches it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.segments import BLOCK, BLOCK_BITS, segment_at
from covey.kernels.sorting import radix_order
from covey.kernels.types import Bytes, FrozenBytes, FrozenInt32s, Int32s, Int32Table, Int64, Int64s
from covey.kernels.vectors import lowest_bit, range_word

MOST_NODES = 65_540
"""Where a node goes is said in 16 bits; false, true and room to read past."""


class Patterns(NamedTuple):
    """Which patterns hold: truth[start[pattern] + number of the distinct text], bit 0 for true, bit 1 for false."""

    start: Int64s
    truth: Bytes


_GROUPED = 4
"""From this many events a partition on average, partitions are worked through; below, events one by one."""


@inlined
def _hash(key):
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(29))


@kernel
def fill_slots(keys: Int64s, first: Int64, slots: Int64s, partitions: Int32s):
    """Put keys into an empty open-addressing table; their partitions are numbered from `first`."""
    mask = np.uint64(len(slots) - 1)
    for i in range(len(keys)):
        slot = _hash(keys[i]) & mask
        while slots[np.intp(slot)] != -1:
            slot = (slot + np.uint64(1)) & mask
        slots[np.intp(slot)] = keys[i]
        partitions[np.intp(slot)] = first + i


@inner
def find_partition(table, event, codes, segment):
    """The partition that an event reaches in a table, or -1."""
    keys = segment.keys
    attribute = keys[table, 0]
    if attribute < 0:
        return segment.table_partition[table]
    if keys[table, 1] < 0:
        return np.int64(segment.lookup[segment.lookup_start[table] + codes[attribute, event]])
    key = np.int64(0)
    for i in range(4):
        attribute = keys[table, i]
        if attribute < 0:
            break
        key = key * segment.sizes[attribute] + codes[attribute, event]
    first = segment.slot_start[table]
    mask = np.uint64(segment.slot_start[table + 1] - first - 1)
    slot = _hash(key) & mask
    while True:
        found = segment.slot_key[first + np.intp(slot)]
        if found == key:
            return np.int64(segment.slot_partition[first + np.intp(slot)])
        if found == -1:
            return np.int64(-1)
        slot = (slot + np.uint64(1)) & mask


@inlined
def atom(kind, low, high, code, patterns):
    """One atom for one event."""
    if kind <= 1:
        return (low <= code <= high) == (kind == 0)
    truth = patterns.truth[patterns.start[low] + code]
    bit = (truth >> ((kind - 2) & 1)) & 1
    return (bit == 1) == (kind < 4)


@inner
def decide(start, count, event, codes, nodes, patterns):
    """A diagram for one event: walk from the root."""
    at = count + 1
    while at > 1:
        node = start + at - 2
        packed = nodes[node, 0]
        yes = atom(packed & 0xFF, nodes[node, 1], nodes[node, 2], codes[packed >> 8, event], patterns)
        at = np.int64((nodes[node, 3] >> 16 if yes else nodes[node, 3]) & 0xFFFF)
    return at == 1


@inner
def _room(pairs, used, needed):
    if used + needed <= len(pairs):
        return pairs
    larger = np.empty(max(2 * len(pairs), used + needed), np.int64)
    larger[:used] = pairs[:used]
    return larger


@inner
def _pattern_word(kind, pattern, numbers, position, patterns):
    """A pattern's atom for 64 events."""
    bit = np.uint8((kind - 2) & 1)
    word = np.uint64(0)
    first = patterns.start[pattern]
    for i in range(64):
        truth = (patterns.truth[first + numbers[position + i]] >> bit) & np.uint8(1)
        word |= np.uint64(truth) << np.uint64(i)
    return word if kind < 4 else ~word


@kernel
def block_maxima(entry_high: FrozenInt32s, out: Int32s):
    """The largest upper end of each block of entries."""
    for block in range(len(out)):
        largest = np.int32(0)
        for entry in range(block << BLOCK_BITS, min((block + 1) << BLOCK_BITS, len(entry_high))):
            largest = max(largest, entry_high[entry])
        out[block] = largest


@kernel
def match_table(
    table: Int64,
    count: Int64,
    codes: Int32Table,
    patterns: Patterns,
    segment_addresses: Int64s,
    deleted: FrozenBytes,
    pairs: Int64s,
    used: Int64,
):
    """All matches of `count` events in one table, appended to `pairs` as event << 32 | subscription. Gives the pairs
    (perhaps moved) and their number."""
    segment = segment_at(segment_addresses)
    nodes, entry_low, entry_high = segment.nodes, segment.entry_low, segment.entry_high
    entry_nodes, entry_start, entry_subscription = segment.entry_nodes, segment.entry_start, segment.entry_subscription
    partition_entry, table_partition = segment.partition_entry, segment.table_partition
    use_start, uses, block_high = segment.use_start, segment.uses, segment.block_high
    pivot_row = segment.pivot[table]
    # Which events reach the table, and where.
    order_key = np.empty(count, np.int64)
    reached = 0
    event_of = np.empty(count, np.int32)
    for event in range(count):
        partition = find_partition(table, event, codes, segment)
        if partition >= 0:
            code = codes[pivot_row, event] if pivot_row >= 0 else 0
            order_key[reached] = (partition << 32) | code
            event_of[reached] = event
            reached += 1
    if reached == 0:
        return pairs, used
    partitions = table_partition[table + 1] - table_partition[table]
    if partitions * _GROUPED > reached:
        for i in range(reached):
            event = np.int64(event_of[i])
            partition, code = order_key[i] >> 32, np.int32(order_key[i] & 0xFFFFFFFF)
            first, last = partition_entry[partition], partition_entry[partition + 1]
            pairs = _room(pairs, used, last - first)
            entry = first - 1
            while entry + 1 < last:
                entry += 1
                if entry_low[entry] > code:
                    break
                if entry_high[entry] < code:
                    while entry + 1 < last and block_high[(entry + 1) >> BLOCK_BITS] < code:
                        entry = (entry + 1) | (BLOCK - 1)
                    continue
                length = np.int64(entry_nodes[entry])
                if length and not decide(np.int64(entry_start[entry]), length, event, codes, nodes, patterns):
                    continue
                subscription = entry_subscription[entry]
                if not deleted[subscription >> 3] >> (subscription & 7) & 1:
                    pairs[used] = (event << 32) | np.int64(subscription)
                    used += 1
        return pairs, used

    order = radix_order(order_key[:reached])
    sorted_key = np.empty(reached, np.int64)
    sorted_event = np.empty(reached + 64, np.int64)
    pivots = np.zeros(reached + 64, np.int32)
    for i in range(reached):
        sorted_key[i] = order_key[order[i]]
        sorted_event[i] = np.int64(event_of[order[i]]) << 32
        pivots[i] = np.int32(sorted_key[i] & 0xFFFFFFFF)
    # The rows that diagrams test, in the sorted order, one after the other.
    width = use_start[table + 1] - use_start[table]
    stride = reached + 64
    rows = np.zeros(width * stride, np.int32)
    row_start = np.zeros(len(codes), np.int64)
    for use in range(width):
        row = uses[use_start[table] + use]
        row_start[row] = use * stride
        for i in range(reached):
            rows[use * stride + i] = codes[row, sorted_event[i] >> 32]
    reach = np.zeros(MOST_NODES, np.uint64)
    everything = ~np.uint64(0)

    begin = 0
    while begin < reached:
        partition = sorted_key[begin] >> 32
        end = begin + 1
        while end < reached and sorted_key[end] >> 32 == partition:
            end += 1
        first, last = partition_entry[partition], partition_entry[partition + 1]
        top = pivots[end - 1]
        at = begin
        for entry in range(first, last):
            low, high = entry_low[entry], entry_high[entry]
            if low > top:
                break
            # Entries come by rising lower ends, so no later one needs the events below this one's.
            while pivots[at] < low:
                at += 1
            if pivots[at] > high:
                continue
            length, start = np.int64(entry_nodes[entry]), np.int64(entry_start[entry]) - 2
            position = at
            while position < end and pivots[position] <= high:
                left = end - position
                active = everything if left >= 64 else (np.uint64(1) << np.uint64(left)) - np.uint64(1)
                if pivots[position + min(left, 64) - 1] > high:
                    active &= range_word(pivots, position, low, np.uint32(high - low))
                if length == 1:
                    packed = nodes[start + 2, 0]
                    kind = packed & 0xFF
                    a, b = nodes[start + 2, 1], nodes[start + 2, 2]
                    where = row_start[packed >> 8] + position
                    if kind <= 1:
                        word = range_word(rows, where, a, np.uint32(b - a))
                    else:
                        word = _pattern_word(kind, a, rows, where, patterns)
                    if (kind == 1) != (nodes[start + 2, 3] >> 16 != 1):
                        word = ~word
                    active &= word
                elif length:
                    for k in range(length + 1):
                        reach[k] = np.uint64(0)
                    reach[length + 1] = active
                    node = length + 1
                    while node > 1:
                        here = reach[node]
                        if here:
                            packed = nodes[start + node, 0]
                            kind = packed & 0xFF
                            a, b = nodes[start + node, 1], nodes[start + node, 2]
                            where = row_start[packed >> 8] + position
                            if kind <= 1:
                                word = range_word(rows, where, a, np.uint32(b - a))
                                if kind:
                                    word = ~word
                            else:
                                word = _pattern_word(kind, a, rows, where, patterns)
                            targets = nodes[start + node, 3]
                            reach[(targets >> 16) & 0xFFFF] |= here & word
                            reach[targets & 0xFFFF] |= here & ~word
                        node -= 1
                    active = reach[1]
                if active:
                    subscription = np.int64(entry_subscription[entry])
                    if deleted[subscription >> 3] >> (subscription & 7) & 1:
                        break
                    pairs = _room(pairs, used, 64)
                    while active:
                        bit = lowest_bit(active)
                        active &= active - np.uint64(1)
                        pairs[used] = sorted_event[position + bit] | subscription
                        used += 1
                position += 64
        begin = end
    return pairs, used
