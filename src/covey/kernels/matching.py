"""Matching kernels: events as codes against the tables of a segment.

Memory layout. `codes[row, event]` is int32; a row is an attribute's codes or, for attributes with patterns, the
numbers of their distinct values. Rows are padded by 64 events so that a word can be read past the end. A pattern's
truth for a value has bit 0 set where it is true, bit 1 where it is false, and bit 2 alone where it must be verified
first (`Patterns`). Matches are written as (event, subscription) and then put in the events' order.

A node is four int32: row << 8 | kind, low, high, yes << 16 | no.

Batches go by tables. The events that reach a table are sorted by partition and pivot code; then for each partition
each entry meets only the run of events inside its pivot interval, 64 at a time. A diagram is evaluated for a word of
events from the root down: each node passes the events that reach it on to its two successors, so a node is looked at
once, and not at all when no event reaches it.

Where a diagram comes to a pattern whose truth isn't known yet, the entry and the event are put aside with what is to be
verified, and looked at again once it is (`match_pending`). So a pattern is verified for candidates alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.formulas import formula_holds, formula_starts, formula_word
from covey.kernels.growing import grown
from covey.kernels.jit import forced, inlined, inner, kernel
from covey.kernels.opcodes import DECIDED, DENSE, EVERY, TEXT_KEY
from covey.kernels.segments import BLOCK, BLOCK_BITS, segment_at
from covey.kernels.sorting import radix_order
from covey.kernels.types import Bytes, FrozenBytes, FrozenInt32s, Int32s, Int32Table, Int64, Int64s
from covey.kernels.vectors import lowest_bit, range_word

MOST_NODES = 65_540
"""Where a node goes is said in 16 bits; false, true and room to read past."""


class Patterns(NamedTuple):
    """What is known of the patterns' truth for the distinct values of a batch, which are numbered over all rows.

    Of patterns that are DENSE it is truth[start[pattern] + number]. Others are unknown of what is no text, and else
    told by the literals that occur in it: hits[hit_start[number] : hit_start[number + 1]], ascending. What was
    verified is in `known`: open addressing, -1 is free, (pattern << 32 | number) << 1 | truth."""

    start: Int64s
    truth: Bytes
    is_text: Bytes
    hit_start: Int64s
    hits: Int32s
    known: Int64s


class Truths(NamedTuple):
    """The same with what a segment knows of its patterns: handed on as one, and no more than is needed, since arrays
    are copied into every function that LLVM doesn't inline."""

    start: Int64s
    truth: Bytes
    is_text: Bytes
    hit_start: Int64s
    hits: Int32s
    known: Int64s
    mode: Bytes
    needed_start: Int32s
    needed: Int32s


@inlined
def truths_of(patterns, segment):
    """What tells the truth of a segment's patterns."""
    return Truths(
        patterns.start, patterns.truth, patterns.is_text, patterns.hit_start, patterns.hits, patterns.known,
        segment.pattern_mode, segment.needed_start, segment.needed,
    )  # fmt: skip


_TRUE, _FALSE, _UNVERIFIED = 1, 2, 4


class Pending(NamedTuple):
    """What is put aside: entry << 32 | event, and pattern << 32 | number, which is to be verified for it."""

    where: Int64s
    what: Int64s


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


@forced
def find_partition(table, event, codes, segment):
    """The partition that an event reaches in a table, or -1. (Inlined: a call for each event would copy all views.)"""
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
def atom(kind, low, high, code):
    """One atom for one event, of a segment without patterns."""
    return (low <= code <= high) == (kind == 0)


@inner
def decide(start, count, event, codes, nodes):
    """A diagram without patterns for one event: walk from the root."""
    at = count + 1
    while at > 1:
        node = start + at - 2
        packed = nodes[node, 0]
        yes = atom(packed & 0xFF, nodes[node, 1], nodes[node, 2], codes[packed >> 8, event])
        at = np.int64((nodes[node, 3] >> 16 if yes else nodes[node, 3]) & 0xFFFF)
    return at == 1


@kernel
def remember(known: Int64s, what: Int64s, truths: Bytes):
    """Put what was verified into a table that has room for it."""
    mask = np.uint64(len(known) - 1)
    for i in range(len(what)):
        slot = _hash(what[i]) & mask
        while known[np.intp(slot)] != -1:
            slot = (slot + np.uint64(1)) & mask
        known[np.intp(slot)] = what[i] << 1 | truths[i]


@forced
def _occurs(pattern, number, truths):
    """Whether one of the literals that a pattern needs occurs in a text."""
    hits = truths.hits
    first, last = truths.hit_start[number], truths.hit_start[number + 1]
    if first == last:
        return False
    for k in range(truths.needed_start[pattern], truths.needed_start[pattern + 1]):
        literal = truths.needed[k]
        low, high = first, last
        while low < high:
            middle = (low + high) >> 1
            if hits[middle] < literal:
                low = middle + 1
            else:
                high = middle
        if low < last and hits[low] == literal:
            return True
    return False


@inner
def _verified(pattern, number, known):
    """What was verified of a pattern and a text, or that nothing was."""
    key = np.int64(pattern) << 32 | np.int64(number)
    mask = np.uint64(len(known) - 1)
    slot = _hash(key) & mask
    while True:
        found = known[np.intp(slot)]
        if found == -1:
            return np.uint8(_UNVERIFIED)
        if found >> 1 == key:
            return np.uint8(_TRUE if found & 1 else _FALSE)
        slot = (slot + np.uint64(1)) & mask


@forced
def pattern_truth(pattern, number, truths):
    """The truth of a pattern for a value."""
    mode = truths.mode[pattern]
    if mode == DENSE:
        return truths.truth[truths.start[pattern] + number]
    if not truths.is_text[number]:
        return np.uint8(0)
    if mode == EVERY:
        return np.uint8(_TRUE)
    needs = truths.needed_start[pattern + 1] > truths.needed_start[pattern]
    if needs and not _occurs(pattern, number, truths):
        return np.uint8(_FALSE)
    return np.uint8(_TRUE) if mode == DECIDED else _verified(pattern, number, truths.known)


@inlined
def text_atom(kind, low, high, code, truths):
    """One atom for one event: 0 or 1, or 2 where a pattern must be verified."""
    if kind <= 1:
        return np.int64((low <= code <= high) == (kind == 0))
    truth = pattern_truth(low, code, truths)
    if truth == _UNVERIFIED:
        return np.int64(2)
    bit = (truth >> ((kind - 2) & 1)) & 1
    return np.int64((bit == 1) == (kind < 4))


@inner
def text_decide(start, count, event, codes, nodes, truths):
    """A diagram for one event: walk from the root. Gives 0 or 1, or -(node + 1) where a pattern must be verified."""
    at = count + 1
    while at > 1:
        node = start + at - 2
        packed = nodes[node, 0]
        yes = text_atom(packed & 0xFF, nodes[node, 1], nodes[node, 2], codes[packed >> 8, event], truths)
        if yes == 2:
            return -(node + 1)
        at = np.int64((nodes[node, 3] >> 16 if yes else nodes[node, 3]) & 0xFFFF)
    return at


@inner
def _candidate(start, count, event, codes, nodes, truths, formulas):
    """As `text_decide` where some rows are formulas."""
    at = count + 1
    while at > 1:
        node = start + at - 2
        packed = nodes[node, 0]
        row, kind = packed >> 8, packed & 0xFF
        low, high = nodes[node, 1], nodes[node, 2]
        if formula_starts(formulas)[row] < 0:
            yes = text_atom(kind, low, high, codes[row, event], truths)
        else:
            yes = np.int64(formula_holds(row, low, high, event, formulas) == (kind == 0))
        if yes == 2:
            return -(node + 1)
        at = np.int64((nodes[node, 3] >> 16 if yes else nodes[node, 3]) & 0xFFFF)
    return at


@inlined
def asked(node, event, codes, nodes):
    """What is to be verified for an event to get past a node."""
    return np.int64(nodes[node, 1]) << 32 | np.int64(codes[nodes[node, 0] >> 8, event])


@inner
def _room(pairs, used, needed):
    if used + needed <= len(pairs):
        return pairs
    larger = np.empty(max(2 * len(pairs), used + needed), np.int64)
    larger[:used] = pairs[:used]
    return larger


@inner
def _pattern_word(kind, pattern, numbers, position, active, truths):
    """A pattern's atom for those of 64 events that are active, and for which of them it must be verified."""
    bit = np.uint8((kind - 2) & 1)
    word, unverified = np.uint64(0), np.uint64(0)
    if truths.mode[pattern] == DENSE:
        first = truths.start[pattern]
        for i in range(64):
            truth = (truths.truth[first + numbers[position + i]] >> bit) & np.uint8(1)
            word |= np.uint64(truth) << np.uint64(i)
    else:
        while active:
            i = lowest_bit(active)
            active &= active - np.uint64(1)
            truth = pattern_truth(pattern, numbers[position + i], truths)
            word |= np.uint64((truth >> bit) & np.uint8(1)) << np.uint64(i)
            if truth == _UNVERIFIED:
                unverified |= np.uint64(1) << np.uint64(i)
    return word if kind < 4 else ~word, unverified


@inner
def _put_aside(pending, aside, entry, event, what):
    where = _room(pending.where, aside, 1)
    asked = _room(pending.what, aside, 1)
    where[aside], asked[aside] = np.int64(entry) << 32 | event, what
    return Pending(where, asked)


@kernel
def match_pending(
    pending: Pending,
    codes: Int32Table,
    patterns: Patterns,
    formula_addresses: Int64s,
    segment_addresses: Int64s,
    deleted: FrozenBytes,
    pairs: Int64s,
    used: Int64,
):
    """Look again at what was put aside; gives the pairs and their number as `match_table` does, and what must be
    verified still."""
    segment = segment_at(segment_addresses)
    truths = truths_of(patterns, segment)
    left = 0
    for i in range(len(pending.where)):
        entry, event = pending.where[i] >> 32, pending.where[i] & 0xFFFFFFFF
        subscription = np.int64(segment.entry_subscription[entry])
        if deleted[subscription >> 3] >> (subscription & 7) & 1:
            continue
        start, count = np.int64(segment.entry_start[entry]), np.int64(segment.entry_nodes[entry])
        told = _candidate(start, count, event, codes, segment.nodes, truths, formula_addresses)
        if told < 0:
            pending.where[left] = pending.where[i]
            pending.what[left] = asked(-told - 1, event, codes, segment.nodes)
            left += 1
        elif told == 1:
            pairs = _room(pairs, used, 1)
            pairs[used] = event << 32 | subscription
            used += 1
    return pairs, used, left


@forced
def _reached(table, count, codes, patterns, segment):
    """Which events reach a table, and where: partition << 32 | pivot code, and the event."""
    pivot_row = segment.pivot[table]
    order_key, event_of = np.empty(count, np.int64), np.empty(count, np.int32)
    reached = 0
    if segment.keys[table, 1] == TEXT_KEY:
        row = segment.keys[table, 0]
        first = segment.lookup_start[table] - segment.first_literal[row - len(segment.sizes)]
        for event in range(count):
            number = codes[row, event]
            code = codes[pivot_row, event] if pivot_row >= 0 else 0
            for k in range(patterns.hit_start[number], patterns.hit_start[number + 1]):
                partition = np.int64(segment.lookup[first + patterns.hits[k]])
                if partition >= 0:
                    if reached == len(order_key):
                        order_key, event_of = grown(order_key, reached + 1), grown(event_of, reached + 1)
                    order_key[reached] = (partition << 32) | code
                    event_of[reached] = event
                    reached += 1
        return order_key[:reached], event_of
    for event in range(count):
        partition = find_partition(table, event, codes, segment)
        if partition >= 0:
            code = codes[pivot_row, event] if pivot_row >= 0 else 0
            order_key[reached] = (partition << 32) | code
            event_of[reached] = event
            reached += 1
    return order_key[:reached], event_of


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
    formula_addresses: Int64s,
    segment_addresses: Int64s,
    deleted: FrozenBytes,
    pairs: Int64s,
    used: Int64,
    pending: Pending,
    aside: Int64,
):
    """All matches of `count` events in one table, appended to `pairs` as event << 32 | subscription. Gives the pairs
    (perhaps moved) and their number, and the same of what is put aside."""
    segment = segment_at(segment_addresses)
    nodes, entry_low, entry_high = segment.nodes, segment.entry_low, segment.entry_high
    entry_nodes, entry_start, entry_subscription = segment.entry_nodes, segment.entry_start, segment.entry_subscription
    partition_entry, table_partition = segment.partition_entry, segment.table_partition
    use_start, uses, block_high = segment.use_start, segment.uses, segment.block_high
    truths = truths_of(patterns, segment)
    order_key, event_of = _reached(table, count, codes, patterns, segment)
    reached = len(order_key)
    if reached == 0:
        return pairs, used, pending, aside
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
                length, told = np.int64(entry_nodes[entry]), np.int64(1)
                if length:
                    told = _candidate(
                        np.int64(entry_start[entry]), length, event, codes, nodes, truths, formula_addresses
                    )
                if told == 0:
                    continue
                subscription = entry_subscription[entry]
                if deleted[subscription >> 3] >> (subscription & 7) & 1:
                    continue
                if told < 0:
                    pending = _put_aside(pending, aside, entry, event, asked(-told - 1, event, codes, nodes))
                    aside += 1
                    continue
                pairs[used] = (event << 32) | np.int64(subscription)
                used += 1
        return pairs, used, pending, aside

    order = radix_order(order_key)
    sorted_key = np.empty(reached, np.int64)
    sorted_event = np.empty(reached + 64, np.int64)
    pivots = np.zeros(reached + 64, np.int32)
    for i in range(reached):
        sorted_key[i] = order_key[order[i]]
        sorted_event[i] = np.int64(event_of[order[i]]) << 32
        pivots[i] = np.int32(sorted_key[i] & 0xFFFFFFFF)
    # The rows that diagrams test, in the sorted order, one after the other; -1 is the start of a formula's.
    stride, width = reached + 64, 0
    formula_start = formula_starts(formula_addresses)
    row_start = np.full(len(codes), -1, np.int64)
    for use in range(use_start[table], use_start[table + 1]):
        if formula_start[uses[use]] < 0:
            row_start[uses[use]] = width * stride
            width += 1
    rows = np.zeros(width * stride, np.int32)
    for use in range(use_start[table], use_start[table + 1]):
        row = uses[use]
        start = row_start[row]
        if start >= 0:
            for i in range(reached):
                rows[start + i] = codes[row, sorted_event[i] >> 32]
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
            is_plain = length == 1 and (nodes[start + 2, 0] & 0xFF) <= 1 and row_start[nodes[start + 2, 0] >> 8] >= 0
            position = at
            while position < end and pivots[position] <= high:
                left = end - position
                active = everything if left >= 64 else (np.uint64(1) << np.uint64(left)) - np.uint64(1)
                if pivots[position + min(left, 64) - 1] > high:
                    active &= range_word(pivots, position, low, np.uint32(high - low))
                if is_plain:
                    packed = nodes[start + 2, 0]
                    kind = packed & 0xFF
                    a, b = nodes[start + 2, 1], nodes[start + 2, 2]
                    where = row_start[packed >> 8] + position
                    word = range_word(rows, where, a, np.uint32(b - a))
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
                                if row_start[packed >> 8] < 0:
                                    word = formula_word(
                                        packed >> 8, a, b, sorted_event[position:], here, formula_addresses
                                    )
                                else:
                                    word = range_word(rows, where, a, np.uint32(b - a))
                                if kind:
                                    word = ~word
                            else:
                                word, unverified = _pattern_word(kind, a, rows, where, here, truths)
                                unverified &= here
                                here &= ~unverified
                                while unverified:
                                    bit = lowest_bit(unverified)
                                    unverified &= unverified - np.uint64(1)
                                    what = np.int64(a) << 32 | np.int64(rows[where + bit])
                                    event = sorted_event[position + bit] >> 32
                                    pending = _put_aside(pending, aside, entry, event, what)
                                    aside += 1
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
    return pairs, used, pending, aside
