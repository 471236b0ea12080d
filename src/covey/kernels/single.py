"""One event against a segment: its numbers are searched for, and every table is asked where the event belongs.

Python hands over two numbers, where the segment's and the event's addresses lie (`segments`); the event's codes, its
texts, and room for what it matches, are arrays that a thread keeps. Afterwards they are as of an event without
attributes again, so that only what an event has is ever written. `single_dict` and `single_json` read an event
themselves and give ids; what they share with `match_one` is here.

Where a segment has patterns, the event's texts are scanned for literals first. What these leave open must be verified:
it is written to the event's `requests`, and the event is matched again once Python knows it.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.encoding import code_of, text_place
from covey.kernels.jit import forced, inlined, inner, kernel
from covey.kernels.literals import automaton_at, changes, literals_in
from covey.kernels.matching import (
    MOST_NODES,
    Truths,
    asked,
    atom,
    decide,
    find_partition,
    text_atom,
    text_decide,
)
from covey.kernels.opcodes import STRING as STRING_KIND
from covey.kernels.opcodes import TEXT_KEY
from covey.kernels.python_objects import append_item
from covey.kernels.segments import (
    BLOCK,
    BLOCK_BITS,
    REQUESTS,
    SCANNED,
    Event,
    Segment,
    addresses_at,
    event_at,
    segment_at,
)
from covey.kernels.sorting import sort_integers
from covey.kernels.types import Flag, Int64

LEFT = -1
"""The event is one that Python must read."""
VERIFY = -2
"""Its requests must be verified first. There is always room for more matches than two, so what is less than this says
how many there are."""
SEGMENT_FIELDS = len(Segment._fields)
EVENT_FIELDS = len(Event._fields)
_FEW = 64
"""So many swept entries are decided one by one, since a test that fails ends it."""
_MOST_TESTS = 8
"""And so are those that have more distinct tests each, some of them on text."""
_MOST_SCANNED = 1 << 30
_MOST_LOCKED = 1 << 12
"""Swept entries, or bytes of an event, that are no reason to give Python's lock away."""


@inlined
def _truths_of(event, segment):
    """What tells the truth of a segment's patterns for an event."""
    return Truths(
        event.pattern_start, event.pattern_truth, event.is_text, event.hit_start, event.hits, event.known,
        segment.pattern_mode, segment.needed_start, segment.needed,
    )  # fmt: skip


@inner
def _sweep_one(event, segment, truths, has_patterns, last):
    """The swept entries for one event: EvalBDD, every atom once and every node bottom up, without a branch."""
    sweep_atoms, codes, out, deleted = segment.sweep_atoms, event.codes, event.out, event.deleted
    atoms = np.empty(len(sweep_atoms), np.uint8)
    for number in range(len(sweep_atoms)):
        packed, code = sweep_atoms[number, 0], codes[sweep_atoms[number, 0] >> 8, 0]
        if has_patterns:
            atoms[number] = text_atom(packed & 0xFF, sweep_atoms[number, 1], sweep_atoms[number, 2], code, truths)
        else:
            atoms[number] = atom(packed & 0xFF, sweep_atoms[number, 1], sweep_atoms[number, 2], code)
    values = np.empty(MOST_NODES, np.uint8)
    values[0], values[1] = 0, 1
    found = 0
    for entry in range(last):
        start, length = np.int64(segment.entry_start[entry]), np.int64(segment.entry_nodes[entry])
        for k in range(length):
            targets = segment.nodes[start + k, 3]
            shift = np.int32(atoms[segment.sweep_node_atom[start + k]]) << np.int32(4)
            values[k + 2] = values[(targets >> shift) & 0xFFFF]
        subscription = segment.entry_subscription[entry]
        if values[length + 1] and not deleted[subscription >> 3] >> (subscription & 7) & 1:
            if found < len(out):
                out[found] = subscription
            found += 1
    return found


@forced
def number_code(value, remainder, attribute, kind, segment):
    """The code of a number, and of what a double misses of it (`encoding.split`)."""
    slot = attribute * segment.base.shape[1] + kind
    return segment.base[attribute, kind] + code_of(
        value, remainder, segment.constants, segment.remainders, segment.firsts[slot], segment.lasts[slot],
        segment.grids[segment.grid_starts[slot] : segment.grid_starts[slot + 1]], segment.grid_lowest[slot],
        segment.grid_scale[slot],
    )  # fmt: skip


@forced
def double_code(value, attribute, kind, segment):
    """The code of a double, be it none at all."""
    if value != value:
        return number_code(np.inf, 1, attribute, kind, segment)
    return number_code(value, 0, attribute, kind, segment)


@forced
def _entries(table, partition, event, segment, truths, has_patterns, found):
    """The entries of a partition for one event, behind what is `found` already; gives how many there are then."""
    first, last = segment.partition_entry[partition], segment.partition_entry[partition + 1]
    codes, out = event.codes, event.out
    code = np.int32(0)
    if segment.pivot[table] >= 0:
        code = codes[segment.pivot[table], 0]
        # Entries are ordered by their lower ends: those that begin above the code are out.
        low, high = first, last
        while low < high:
            middle = (low + high) >> 1
            if segment.entry_low[middle] <= code:
                low = middle + 1
            else:
                high = middle
        last = low
    entry = first - 1
    while entry + 1 < last:
        entry += 1
        if segment.entry_high[entry] < code:
            while entry + 1 < last and segment.block_high[(entry + 1) >> BLOCK_BITS] < code:
                entry = (entry + 1) | (BLOCK - 1)
            continue
        start, count = np.int64(segment.entry_start[entry]), np.int64(segment.entry_nodes[entry])
        told = np.int64(1)
        if count:
            if has_patterns:
                told = text_decide(start, count, 0, codes, segment.nodes, truths)
            elif count == 1:
                # Most entries that are left have one test besides their table's and its pivot's.
                packed, targets = segment.nodes[start, 0], segment.nodes[start, 3]
                yes = atom(packed & 0xFF, segment.nodes[start, 1], segment.nodes[start, 2], codes[packed >> 8, 0])
                told = np.int64(((targets >> 16 if yes else targets) & 0xFFFF) == 1)
            else:
                told = np.int64(decide(start, count, 0, codes, segment.nodes))
        if told == 0:
            continue
        subscription = segment.entry_subscription[entry]
        if event.deleted[subscription >> 3] >> (subscription & 7) & 1:
            continue
        if has_patterns and told < 0:
            pending = event.counts[REQUESTS]
            if pending < len(event.requests):
                event.requests[pending] = asked(-told - 1, 0, codes, segment.nodes)
                event.counts[REQUESTS] = pending + 1
            continue
        if found < len(out):
            out[found] = subscription
        found += 1
    return found


@forced
def match_event(event, segment, has_patterns):
    """All subscriptions that an event's codes match, ascending and distinct, into its `out`; gives how many, VERIFY, or
    what is needed, less than 0, where there is no room for all with their repetitions. The event is left as it is
    then."""
    codes, out = event.codes, event.out
    truths = _truths_of(event, segment)
    found = np.int64(0)
    for table in range(len(segment.pivot)):
        if has_patterns and segment.keys[table, 1] == TEXT_KEY:
            row = segment.keys[table, 0]
            first = segment.lookup_start[table] - segment.first_literal[row - len(segment.sizes)]
            for k in range(event.hit_start[codes[row, 0]], event.hit_start[codes[row, 0] + 1]):
                partition = np.int64(segment.lookup[first + event.hits[k]])
                if partition >= 0:
                    found = _entries(table, partition, event, segment, truths, True, found)
            continue
        partition = find_partition(table, 0, codes, segment)
        if partition < 0:
            continue
        is_swept = table == 0 and segment.keys[0, 0] < 0 and segment.pivot[0] < 0
        last = segment.partition_entry[partition + 1]
        if is_swept and last > _FEW and (not has_patterns or len(segment.sweep_atoms) <= _MOST_TESTS * last):
            found = np.int64(_sweep_one(event, segment, truths, has_patterns, last))
        else:
            found = _entries(table, partition, event, segment, truths, has_patterns, found)
    if has_patterns and event.counts[REQUESTS]:
        return np.int64(VERIFY)
    if found > len(out):
        return -found
    put_back(event, has_patterns)
    for i in range(1, found):
        if out[i] < out[i - 1]:
            sort_integers(out[:found])
            break
    distinct = np.int64(0)
    for i in range(found):
        if i == 0 or out[i] != out[i - 1]:
            out[distinct] = out[i]
            distinct += 1
    return distinct


@forced
def put_back(event, has_patterns):
    """What an event without attributes has."""
    for row in range(len(event.blank)):
        event.codes[row, 0] = event.blank[row]
    if has_patterns:
        for number in range(len(event.is_text)):
            event.is_text[number] = 0


@inner
def scan(event, segment):
    """Find the literals that occur in the event's texts."""
    automaton = automaton_at(event.automaton)
    stamp = event.counts[SCANNED] + 1
    if stamp > _MOST_SCANNED:
        stamp = np.int64(1)
        for hit in range(len(event.seen)):
            event.seen[hit] = 0
    event.counts[SCANNED], event.counts[REQUESTS] = stamp, 0
    slots = len(segment.first_literal) - 1
    count = np.int64(0)
    for slot in range(slots):
        event.hit_start[2 * slot] = event.hit_start[2 * slot + 1] = count
        if event.is_text[2 * slot + 1] and segment.first_literal[slot + 1] > segment.first_literal[slot]:
            count = literals_in(
                automaton, slot, (event.text_data, event.text_first[slot], event.text_last[slot]),
                (event.text_data, event.lowered_first[slot], event.lowered_last[slot]), event.seen, np.int32(stamp),
                event.hits, count,
            )  # fmt: skip
    event.hit_start[2 * slots] = count


@forced
def is_long(size, segment):
    """Whether matching an event may take so long that other threads should go on meanwhile, given the bytes that are
    to be read. Giving Python's lock away and waiting for it costs less than a tenth of that then."""
    if size > _MOST_LOCKED or len(segment.first_literal) > 1:
        return True
    is_swept = len(segment.pivot) > 0 and segment.keys[0, 0] < 0
    return is_swept and segment.partition_entry[segment.table_partition[0] + 1] > _MOST_LOCKED


@forced
def give_ids(count, event, ids, found):
    """Add the ids of what an event matches to a list, and give what was told."""
    for place in range(count):
        append_item(found, ids, np.int64(event.out[place]))
    return count


@kernel
def match_one(segment_address: Int64, event_address: Int64, is_again: Flag):
    """All subscriptions that one event matches, ascending and distinct, into its `out`: gives how many. It gives VERIFY
    where its requests must be verified, and where there is no room for what it matches how much is needed, less than 0;
    it is to be called again then."""
    segment = segment_at(addresses_at(segment_address, SEGMENT_FIELDS))
    event = event_at(addresses_at(event_address, EVENT_FIELDS))
    has_patterns = len(segment.first_literal) > 1
    if is_again:
        if has_patterns:
            event.counts[REQUESTS] = 0
    else:
        for attribute in range(len(event.kinds)):
            kind = event.kinds[attribute]
            if kind:
                event.codes[attribute, 0] = double_code(event.numbers[attribute], attribute, kind - 1, segment)
                event.kinds[attribute] = 0
        if has_patterns:
            scan(event, segment)
    return match_event(event, segment, has_patterns)


@forced
def text_code(data, first, last, attribute, segment, reader):
    """The code of a string of an event."""
    place = attribute * segment.base.shape[1] + STRING_KIND
    return np.int32(
        segment.base[attribute, STRING_KIND]
        + text_place(
            data, first, last, reader.slots, reader.slot_first[attribute], reader.slot_first[attribute + 1],
            reader.text_starts, reader.text_bytes, segment.firsts[place], segment.lasts[place],
            reader.ordered[attribute],
        )
    )  # fmt: skip


@forced
def take_text(first, last, slot, event, segment, reader):
    """Make what stands in the event's texts that of a slot; False where its lower case must be made first."""
    if reader.folds[slot] and changes(event.text_data, first, last, reader.changed):
        return False
    event.text_first[slot], event.text_last[slot], event.lowered_first[slot] = first, last, -1
    event.is_text[2 * slot + 1] = 1
    event.codes[len(segment.sizes) + slot, 0] = 2 * slot + 1
    return True
