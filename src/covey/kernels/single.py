"""One event against a segment: its numbers are searched for, and every table is asked where the event belongs.

Python hands over two numbers, where the segment's and the event's addresses lie (`segments`); the event's codes, its
texts, and room for what it matches, are arrays that a thread keeps. Afterwards they are as of an event without
attributes again, so that Python needs to write only what an event has. The JSON of an event is read here too:
attributes are found as `json_lines` finds them and coded at once, strings by a hash of their bytes.

Where a segment has patterns, the event's texts are scanned for literals first. What these leave open must be verified:
it is written to the event's `requests`, and the event is matched again once Python knows it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.encoding import code_of, split, text_place
from covey.kernels.event_texts import write_text
from covey.kernels.jit import forced, inlined, inner, kernel
from covey.kernels.json_lines import (
    DOUBLE,
    EVENT,
    INTEGER,
    MISSING,
    NULL,
    RECORD,
    STRING,
    Found,
    Names,
    read_object,
    unescape,
)
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
from covey.kernels.opcodes import BOOLEAN as BOOLEAN_KIND
from covey.kernels.opcodes import NUMBER as NUMBER_KIND
from covey.kernels.opcodes import STRING as STRING_KIND
from covey.kernels.opcodes import TEXT_KEY
from covey.kernels.segments import (
    BLOCK,
    BLOCK_BITS,
    REQUESTS,
    SCANNED,
    Event,
    Segment,
    addresses_at,
    bytes_at,
    event_at,
    row_at,
    segment_at,
    table_at,
)
from covey.kernels.sorting import sort_integers
from covey.kernels.strides import copy_bytes
from covey.kernels.types import (
    Bytes,
    ByteTable,
    Flag,
    Int32s,
    Int32Table,
    Int64,
    Int64s,
    Int64Table,
)

LEFT = -1
"""The event is one that Python must read."""
VERIFY = -2
"""Its requests must be verified first. There is always room for more matches than two, so what is less than this says
how many there are."""
_SEGMENT_FIELDS = len(Segment._fields)
_EVENT_FIELDS = len(Event._fields)
_FEW = 64
"""So many swept entries are decided one by one, since a test that fails ends it."""
_MOST_TESTS = 8
"""And so are those that have more distinct tests each, some of them on text."""
_MOST_SCANNED = 1 << 30


class Reader(NamedTuple):
    """How the JSON of an event becomes codes of a segment: its names' tree (`json_lines.Names`), its texts, and room to
    note what one event holds (`json_lines.Found`)."""

    table: Int32s
    parents: Int32s
    attributes: Int32s
    inner: Bytes
    key_starts: Int64s
    keys: Bytes
    slot_first: Int64s
    slots: Int32s
    text_starts: Int64s
    text_bytes: Bytes
    ordered: Bytes
    """[attribute]: 1 where strings are compared with < or >."""
    lines: Bytes
    kinds: ByteTable
    bits: Int64Table
    lengths: Int32Table
    seen: Int64s
    stack: Int64s
    slot_of: Int32s
    """[attribute]: its slot of texts, or -1."""
    folds: Bytes
    """[slot]: 1 where literals are looked for in lower case."""
    left_if_there: Bytes
    """[attribute]: 1 where a term takes its value from it, which Python computes."""
    event_text: Int64s
    """The attribute that is all that an event says, if there is one."""
    text_keys: Int64s
    text_key_first: Int64s
    text_is_object: Bytes
    """Room for writing that text (`event_texts`)."""
    changed: Bytes
    """Which characters the lower case changes (`literals.changes`)."""


_READER_FIELDS = len(Reader._fields)


@inlined
def _reader_at(at):
    return Reader(
        row_at(at, 0, np.int32), row_at(at, 1, np.int32), row_at(at, 2, np.int32), row_at(at, 3, np.uint8),
        row_at(at, 4, np.int64), row_at(at, 5, np.uint8), row_at(at, 6, np.int64), row_at(at, 7, np.int32),
        row_at(at, 8, np.int64), row_at(at, 9, np.uint8), row_at(at, 10, np.uint8), row_at(at, 11, np.uint8),
        table_at(at, 12, np.uint8), table_at(at, 13, np.int64), table_at(at, 14, np.int32), row_at(at, 15, np.int64),
        row_at(at, 16, np.int64), row_at(at, 17, np.int32), row_at(at, 18, np.uint8), row_at(at, 19, np.uint8),
        row_at(at, 20, np.int64), row_at(at, 21, np.int64), row_at(at, 22, np.int64), row_at(at, 23, np.uint8),
        row_at(at, 24, np.uint8),
    )  # fmt: skip


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
def _number_code(value, remainder, attribute, kind, segment):
    slot = attribute * segment.base.shape[1] + kind
    return segment.base[attribute, kind] + code_of(
        value, remainder, segment.constants, segment.remainders, segment.firsts[slot], segment.lasts[slot],
        segment.grids[segment.grid_starts[slot] : segment.grid_starts[slot + 1]], segment.grid_lowest[slot],
        segment.grid_scale[slot],
    )  # fmt: skip


@forced
def _double_code(value, attribute, kind, segment):
    if value != value:
        return _number_code(np.inf, 1, attribute, kind, segment)
    return _number_code(value, 0, attribute, kind, segment)


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
def _match(event, segment, has_patterns):
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
    _put_back(event, has_patterns)
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
def _put_back(event, has_patterns):
    """What an event without attributes has."""
    for row in range(len(event.blank)):
        event.codes[row, 0] = event.blank[row]
    if has_patterns:
        for number in range(len(event.is_text)):
            event.is_text[number] = 0


@inner
def _scan(event, segment):
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


@kernel
def match_one(segment_address: Int64, event_address: Int64, is_again: Flag):
    """All subscriptions that one event matches, ascending and distinct, into its `out`: gives how many. It gives VERIFY
    where its requests must be verified, and where there is no room for what it matches how much is needed, less than 0;
    it is to be called again then."""
    segment = segment_at(addresses_at(segment_address, _SEGMENT_FIELDS))
    event = event_at(addresses_at(event_address, _EVENT_FIELDS))
    has_patterns = len(segment.first_literal) > 1
    if is_again:
        if has_patterns:
            event.counts[REQUESTS] = 0
    else:
        for attribute in range(len(event.kinds)):
            kind = event.kinds[attribute]
            if kind:
                event.codes[attribute, 0] = _double_code(event.numbers[attribute], attribute, kind - 1, segment)
                event.kinds[attribute] = 0
        if has_patterns:
            _scan(event, segment)
    return _match(event, segment, has_patterns)


@forced
def _text_code(data, first, last, attribute, segment, reader):
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
def _take_text(first, last, slot, event, segment, reader):
    """Make what stands in the event's texts that of a slot; False where its lower case must be made first."""
    if reader.folds[slot] and changes(event.text_data, first, last, reader.changed):
        return False
    event.text_first[slot], event.text_last[slot], event.lowered_first[slot] = first, last, -1
    event.is_text[2 * slot + 1] = 1
    event.codes[len(segment.sizes) + slot, 0] = 2 * slot + 1
    return True


@forced
def _code_text(content, first, length, attribute, slot, to, event, segment, reader):
    """Code a string of an event, which stands in its JSON or, where the length is below 0, has escapes there; if it has
    a slot, it is written to the event's texts. Gives where these end, or LEFT."""
    data, last = content, first + length
    if length < 0:
        last = unescape(content, first, first - length, event.text_data, to)
        data, first, to = event.text_data, to, last
    event.codes[attribute, 0] = _text_code(data, first, last, attribute, segment, reader)
    if slot < 0:
        return to
    if length >= 0:
        copy_bytes(data, first, length, event.text_data, to)
        first, last, to = to, to + length, to + length
    return to if _take_text(first, last, slot, event, segment, reader) else np.int64(LEFT)


@forced
def _code_json(content, event, segment, reader):
    """Read an event's JSON and code it; gives 0, or LEFT."""
    names = Names(reader.table, reader.parents, reader.attributes, reader.inner, reader.key_starts, reader.keys)
    found = Found(reader.lines, reader.kinds, reader.bits, reader.lengths)
    for attribute in range(len(reader.kinds)):
        reader.kinds[attribute, 0] = MISSING
    for node in range(len(reader.seen)):
        reader.seen[node] = 0
    if read_object(content, 0, len(content), 0, names, found, reader.seen, reader.stack) != EVENT:
        return np.int64(LEFT)
    to = np.int64(0)
    for attribute in range(len(reader.kinds)):
        kind, bits = reader.kinds[attribute, 0], reader.bits[attribute, 0]
        if kind == MISSING or kind == NULL:
            continue
        if kind > RECORD or reader.left_if_there[attribute]:
            return np.int64(LEFT)
        if kind == RECORD:
            continue
        if kind == STRING:
            length, slot = np.int64(reader.lengths[attribute, 0]), np.int64(reader.slot_of[attribute])
            to = _code_text(content, bits, length, attribute, slot, to, event, segment, reader)
            if to < 0:
                return np.int64(LEFT)
        elif kind == DOUBLE:
            event.codes[attribute, 0] = _double_code(np.int64(bits).view(np.float64), attribute, NUMBER_KIND, segment)
        else:
            value, remainder = split(np.int64(bits))
            where = NUMBER_KIND if kind == INTEGER else BOOLEAN_KIND
            event.codes[attribute, 0] = _number_code(value, remainder, attribute, where, segment)
    for place in range(len(reader.event_text)):
        attribute = reader.event_text[place]
        end = write_text(
            content, 0, len(content), event.text_data, to, reader.text_keys, reader.text_key_first,
            reader.text_is_object,
        )  # fmt: skip
        if end < 0:
            return np.int64(LEFT)
        event.codes[attribute, 0] = _text_code(event.text_data, to, end, attribute, segment, reader)
        slot = np.int64(reader.slot_of[attribute])
        if slot >= 0 and not _take_text(to, end, slot, event, segment, reader):
            return np.int64(LEFT)
    return np.int64(0)


@kernel
def match_json(address: Int64, length: Int64, segment_address: Int64, event_address: Int64, reader_address: Int64):
    """As `match_one` for an event's JSON, which lies at an address; LEFT where Python must read it. There is room for
    twice that many bytes in the event's texts."""
    segment = segment_at(addresses_at(segment_address, _SEGMENT_FIELDS))
    event = event_at(addresses_at(event_address, _EVENT_FIELDS))
    reader = _reader_at(addresses_at(reader_address, _READER_FIELDS))
    content = bytes_at(address, length)
    has_patterns = len(segment.first_literal) > 1
    if _code_json(content, event, segment, reader) < 0:
        _put_back(event, has_patterns)
        return np.int64(LEFT)
    if has_patterns:
        _scan(event, segment)
    return _match(event, segment, has_patterns)
