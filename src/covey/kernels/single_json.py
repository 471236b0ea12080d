"""One event as JSON against a segment, in one call: attributes are found as `json_lines` finds them and coded at once,
strings by a hash of their bytes; the ids of what it matches are added to a list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.encoding import split
from covey.kernels.event_texts import write_text
from covey.kernels.jit import forced, inlined
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
from covey.kernels.opcodes import BOOLEAN as BOOLEAN_KIND
from covey.kernels.opcodes import NUMBER as NUMBER_KIND
from covey.kernels.python_objects import bytes_of, bytes_size, locked, unlocked, with_python
from covey.kernels.segments import addresses_at, bytes_at, event_at, row_at, segment_at, table_at
from covey.kernels.single import (
    EVENT_FIELDS,
    LEFT,
    SEGMENT_FIELDS,
    double_code,
    give_ids,
    is_long,
    match_event,
    number_code,
    put_back,
    scan,
    take_text,
    text_code,
)
from covey.kernels.strides import copy_bytes
from covey.kernels.types import Bytes, ByteTable, Int32s, Int32Table, Int64, Int64s, Int64Table


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


READER_FIELDS = len(Reader._fields)
NO_ROOM = np.iinfo(np.int64).min
"""The event's texts need room for twice as many bytes as the JSON has."""


@inlined
def reader_at(at):
    """Views on a reader's arrays, in the order of its fields."""
    return Reader(
        row_at(at, 0, np.int32), row_at(at, 1, np.int32), row_at(at, 2, np.int32), row_at(at, 3, np.uint8),
        row_at(at, 4, np.int64), row_at(at, 5, np.uint8), row_at(at, 6, np.int64), row_at(at, 7, np.int32),
        row_at(at, 8, np.int64), row_at(at, 9, np.uint8), row_at(at, 10, np.uint8), row_at(at, 11, np.uint8),
        table_at(at, 12, np.uint8), table_at(at, 13, np.int64), table_at(at, 14, np.int32), row_at(at, 15, np.int64),
        row_at(at, 16, np.int64), row_at(at, 17, np.int32), row_at(at, 18, np.uint8), row_at(at, 19, np.uint8),
        row_at(at, 20, np.int64), row_at(at, 21, np.int64), row_at(at, 22, np.int64), row_at(at, 23, np.uint8),
        row_at(at, 24, np.uint8),
    )  # fmt: skip


@forced
def _code_text(content, first, length, attribute, slot, to, event, segment, reader):
    """Code a string of an event, which stands in its JSON or, where the length is below 0, has escapes there; if it has
    a slot, it is written to the event's texts. Gives where these end, or LEFT."""
    data, last = content, first + length
    if length < 0:
        last = unescape(content, first, first - length, event.text_data, to)
        data, first, to = event.text_data, to, last
    event.codes[attribute, 0] = text_code(data, first, last, attribute, segment, reader)
    if slot < 0:
        return to
    if length >= 0:
        copy_bytes(data, first, length, event.text_data, to)
        first, last, to = to, to + length, to + length
    return to if take_text(first, last, slot, event, segment, reader) else np.int64(LEFT)


@forced
def begin(reader):
    """The names that are looked for, and room for what is found of them, of which nothing is noted."""
    for attribute in range(len(reader.kinds)):
        reader.kinds[attribute, 0] = MISSING
    for node in range(len(reader.seen)):
        reader.seen[node] = 0
    names = Names(reader.table, reader.parents, reader.attributes, reader.inner, reader.key_starts, reader.keys)
    return names, Found(reader.lines, reader.kinds, reader.bits, reader.lengths)


@forced
def code_found(content, event, segment, reader):
    """Code what was found of an event; gives where its texts end, or LEFT."""
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
            event.codes[attribute, 0] = double_code(np.int64(bits).view(np.float64), attribute, NUMBER_KIND, segment)
        else:
            value, remainder = split(np.int64(bits))
            where = NUMBER_KIND if kind == INTEGER else BOOLEAN_KIND
            event.codes[attribute, 0] = number_code(value, remainder, attribute, where, segment)
    return to


@forced
def _code_json(content, event, segment, reader):
    """Read an event's JSON and code it; gives 0, or LEFT."""
    names, found = begin(reader)
    if read_object(content, 0, len(content), 0, names, found, reader.seen, reader.stack) != EVENT:
        return np.int64(LEFT)
    to = code_found(content, event, segment, reader)
    if to < 0:
        return np.int64(LEFT)
    for place in range(len(reader.event_text)):
        attribute = reader.event_text[place]
        end = write_text(
            content, 0, len(content), event.text_data, to, reader.text_keys, reader.text_key_first,
            reader.text_is_object,
        )  # fmt: skip
        if end < 0:
            return np.int64(LEFT)
        event.codes[attribute, 0] = text_code(event.text_data, to, end, attribute, segment, reader)
        slot = np.int64(reader.slot_of[attribute])
        if slot >= 0 and not take_text(to, end, slot, event, segment, reader):
            return np.int64(LEFT)
    return np.int64(0)


@with_python
def match_json(data: Int64, ids: Int64, found: Int64, at: Int64):
    """Add the ids of all that an event's JSON, a `bytes`, matches to a list: LEFT where Python must read it, VERIFY and
    less than that as `match_one`, whose turn it is then. At `at` lies where a segment's, an event's and a reader's
    addresses lie."""
    parts = addresses_at(at, 1)
    segment = segment_at(addresses_at(parts[0], SEGMENT_FIELDS))
    event = event_at(addresses_at(parts[1], EVENT_FIELDS))
    reader = reader_at(addresses_at(parts[2], READER_FIELDS))
    length = bytes_size(data)
    if 2 * length > len(event.text_data):
        return np.int64(NO_ROOM)
    content = bytes_at(bytes_of(data), length)
    has_patterns = len(segment.first_literal) > 1
    token = unlocked() if is_long(length, segment) else np.int64(0)
    count = np.int64(LEFT)
    if _code_json(content, event, segment, reader) < 0:
        put_back(event, has_patterns)
    else:
        if has_patterns:
            scan(event, segment)
        count = match_event(event, segment, has_patterns)
    if token:
        locked(token)
    return give_ids(count, event, ids, found)
