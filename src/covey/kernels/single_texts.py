"""One event against a segment with patterns: as `single`, with the literals that occur in its texts.

What must be verified is written to the event's `requests`; the event is matched again once that is known.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.encoding import code_of
from covey.kernels.jit import inner, kernel
from covey.kernels.literals import Texts, automaton_at, literals_in
from covey.kernels.matching import MOST_NODES, Patterns, asked, find_partition, text_atom, text_decide, truths_of
from covey.kernels.opcodes import TEXT_KEY
from covey.kernels.segments import segment_at, text_event_at
from covey.kernels.sorting import sort_integers
from covey.kernels.types import FrozenBytes, Int32s, Int64s

_NO_GRID = np.empty(0, np.int32)
_FEW = 64
"""So many swept entries are decided one by one, since a test that fails ends it."""


@inner
def _sweep_one(event, deleted, segment, truths, last):
    """The swept entries for one event: EvalBDD, every atom once and every node bottom up, without a branch."""
    sweep_atoms, codes, out = segment.sweep_atoms, event.codes, event.out
    atoms = np.empty(len(sweep_atoms), np.uint8)
    for atom in range(len(sweep_atoms)):
        packed = sweep_atoms[atom, 0]
        low, high = sweep_atoms[atom, 1], sweep_atoms[atom, 2]
        atoms[atom] = text_atom(packed & 0xFF, low, high, codes[packed >> 8, 0], truths)
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


@inner
def _search_numbers(event, segment):
    """Turn the event's numbers into codes."""
    base = segment.base
    for attribute in range(len(event.kinds)):
        kind = event.kinds[attribute]
        if kind:
            value, remainder = event.numbers[attribute], 0
            if value != value:
                value, remainder = np.inf, 1
            slot = attribute * base.shape[1] + kind - 1
            event.codes[attribute, 0] = base[attribute, kind - 1] + code_of(
                value, remainder, segment.constants, segment.remainders, segment.firsts[slot], segment.lasts[slot],
                _NO_GRID, 0.0, 0.0,
            )  # fmt: skip


@kernel
def occurring(segment_addresses: Int64s, event_addresses: Int64s, automaton_addresses: Int64s):
    """(offsets, literals): which literals occur in the texts of one event. The value of slot s is number 2 s + 1, and
    2 s stands for none. Apart from `match_texts`, which may be called again."""
    segment, event = segment_at(segment_addresses), text_event_at(event_addresses)
    automaton = automaton_at(automaton_addresses)
    slots = len(segment.first_literal) - 1
    texts = Texts(event.text_start, event.text_data, event.lowered, event.lowered_start, event.lowered_data)
    hit_start, hits = np.zeros(2 * slots + 1, np.int64), np.empty(64, np.int32)
    event.stamp[0] += 1
    count, number = 0, 0
    for text in range(len(event.text_slot)):
        slot = np.int64(event.text_slot[text])
        if slot < 0:
            break
        while number <= 2 * slot + 1:
            hit_start[number] = count
            number += 1
        hits, count = literals_in(automaton, slot, texts, text, event.seen, event.stamp[0], hits, count)
    while number <= 2 * slots:
        hit_start[number] = count
        number += 1
    return hit_start, hits


@inner
def _entries_of_one(table, partition, event, deleted, segment, truths, found, pending):
    """The entries of a partition for one event; gives how many matches and requests there are now."""
    codes, out = event.codes, event.out
    first, last = segment.partition_entry[partition], segment.partition_entry[partition + 1]
    code = 0
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
    for entry in range(first, last):
        if segment.entry_high[entry] < code:
            continue
        told = np.int64(1)
        count = np.int64(segment.entry_nodes[entry])
        if count:
            told = text_decide(np.int64(segment.entry_start[entry]), count, 0, codes, segment.nodes, truths)
        subscription = segment.entry_subscription[entry]
        if told == 0 or deleted[subscription >> 3] >> (subscription & 7) & 1:
            continue
        if told < 0:
            if pending < len(event.requests):
                event.requests[pending] = asked(-told - 1, 0, codes, segment.nodes)
                pending += 1
            continue
        if found < len(out):
            out[found] = subscription
        found += 1
    return found, pending


@kernel
def match_texts(
    segment_addresses: Int64s, event_addresses: Int64s, hit_start: Int64s, hits: Int32s, deleted: FrozenBytes
):
    """All subscriptions that one event matches, ascending and distinct, into its `out`, given the literals that occur
    in it. Numbers are searched for first. Gives how many there are before repetitions are taken out, and after, and how
    many `requests` must be verified first; `out` is filled as far as it goes."""
    segment, event = segment_at(segment_addresses), text_event_at(event_addresses)
    patterns = Patterns(event.pattern_start, event.pattern_truth, event.is_text, hit_start, hits, event.known)
    truths = truths_of(patterns, segment)
    _search_numbers(event, segment)
    codes, out = event.codes, event.out
    found, pending = 0, 0
    for table in range(len(segment.pivot)):
        if (
            table == 0
            and segment.keys[0, 0] < 0
            and segment.pivot[0] < 0
            and segment.partition_entry[segment.table_partition[1]] > _FEW
        ):
            found = _sweep_one(event, deleted, segment, truths, segment.partition_entry[segment.table_partition[1]])
        elif segment.keys[table, 1] == TEXT_KEY:
            row = segment.keys[table, 0]
            first = segment.lookup_start[table] - segment.first_literal[row - len(segment.sizes)]
            for k in range(truths.hit_start[codes[row, 0]], truths.hit_start[codes[row, 0] + 1]):
                partition = np.int64(segment.lookup[first + truths.hits[k]])
                if partition >= 0:
                    found, pending = _entries_of_one(table, partition, event, deleted, segment, truths, found, pending)
        else:
            partition = find_partition(table, 0, codes, segment)
            if partition >= 0:
                found, pending = _entries_of_one(table, partition, event, deleted, segment, truths, found, pending)
    if found > len(out):
        return found, 0, pending
    for i in range(1, found):
        if out[i] < out[i - 1]:
            sort_integers(out[:found])
            break
    distinct = 0
    for i in range(found):
        if i == 0 or out[i] != out[i - 1]:
            out[distinct] = out[i]
            distinct += 1
    return found, distinct, pending
