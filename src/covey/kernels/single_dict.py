"""One event as a dict against a segment, in one call: the kernel asks the dict for what the segment names, or walks
through it where that is less, codes what it finds, and adds the ids of what the event matches to a list.

It takes what is usual, values that are exactly a float, an int of 64 bits, a str, a bool or None, and leaves an event
with any other to Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.encoding import split
from covey.kernels.jit import forced, inlined
from covey.kernels.opcodes import BOOLEAN as BOOLEAN_KIND
from covey.kernels.opcodes import NUMBER as NUMBER_KIND
from covey.kernels.python_objects import (
    dict_next,
    dict_size,
    dict_value,
    double_of,
    integer_of,
    locked,
    type_of,
    unlocked,
    utf8_of,
    with_python,
)
from covey.kernels.segments import addresses_at, bytes_at, event_at, row_at, segment_at
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
from covey.kernels.types import Bytes, Int32s, Int64, Int64s

NUMBERS, FLOAT, INT, STR, BOOL, NONE = range(6)
"""Objects that a reader has: the numbers of attributes by name, and types."""


class DictReader(NamedTuple):
    """How a dict becomes codes of a segment."""

    names: Int64s
    """[attribute]: its name, an object."""
    objects: Int64s
    slot_first: Int64s
    slots: Int32s
    text_starts: Int64s
    text_bytes: Bytes
    ordered: Bytes
    slot_of: Int32s
    folds: Bytes
    changed: Bytes
    """As `single_json.Reader` has them."""


_READER_FIELDS = len(DictReader._fields)


@inlined
def _reader_at(at):
    return DictReader(
        row_at(at, 0, np.int64), row_at(at, 1, np.int64), row_at(at, 2, np.int64), row_at(at, 3, np.int32),
        row_at(at, 4, np.int64), row_at(at, 5, np.uint8), row_at(at, 6, np.uint8), row_at(at, 7, np.int32),
        row_at(at, 8, np.uint8), row_at(at, 9, np.uint8),
    )  # fmt: skip


@forced
def _code_value(value, attribute, to, event, segment, reader):
    """Code one value; gives where the event's texts end, or LEFT."""
    kind = type_of(value)
    if kind == reader.objects[FLOAT]:
        event.codes[attribute, 0] = double_code(double_of(value), attribute, NUMBER_KIND, segment)
    elif kind == reader.objects[STR]:
        address, length = utf8_of(value)
        if address == 0:
            return np.int64(LEFT)
        data = bytes_at(address, length)
        event.codes[attribute, 0] = text_code(data, 0, length, attribute, segment, reader)
        slot = np.int64(reader.slot_of[attribute])
        if slot >= 0:
            if to + length > len(event.text_data):
                return np.int64(LEFT)  # Python makes room
            copy_bytes(data, 0, length, event.text_data, to)
            if not take_text(to, to + length, slot, event, segment, reader):
                return np.int64(LEFT)
            return to + length
    elif kind == reader.objects[INT] or kind == reader.objects[BOOL]:
        fits, whole = integer_of(value)
        if not fits:
            return np.int64(LEFT)
        nearest, remainder = split(whole)
        where = NUMBER_KIND if kind == reader.objects[INT] else BOOLEAN_KIND
        event.codes[attribute, 0] = number_code(nearest, remainder, attribute, where, segment)
    elif kind != reader.objects[NONE]:
        return np.int64(LEFT)
    return to


@forced
def _code_dict(given, event, segment, reader):
    """Read a dict; gives 0, or LEFT."""
    to = np.int64(0)
    if len(reader.names) <= 2 * dict_size(given):
        for attribute in range(len(reader.names)):
            value = dict_value(given, reader.names[attribute])
            if value:
                to = _code_value(value, attribute, to, event, segment, reader)
                if to < 0:
                    return np.int64(LEFT)
        return np.int64(0)
    place, key, value = dict_next(given, 0)
    while key:
        if type_of(key) != reader.objects[STR]:
            return np.int64(LEFT)
        number = dict_value(reader.objects[NUMBERS], key)
        if number:
            to = _code_value(value, integer_of(number)[1], to, event, segment, reader)
            if to < 0:
                return np.int64(LEFT)
        place, key, value = dict_next(given, place)
    return np.int64(0)


@with_python
def match_dict(given: Int64, ids: Int64, found: Int64, at: Int64):
    """Add the ids of all that an event, a dict, matches to a list: LEFT where Python must read it, VERIFY and less than
    that as `match_one`, whose turn it is then. At `at` lies where a segment's, an event's and a reader's addresses
    lie."""
    parts = addresses_at(at, 1)
    segment = segment_at(addresses_at(parts[0], SEGMENT_FIELDS))
    event = event_at(addresses_at(parts[1], EVENT_FIELDS))
    reader = _reader_at(addresses_at(parts[2], _READER_FIELDS))
    has_patterns = len(segment.first_literal) > 1
    if _code_dict(given, event, segment, reader) < 0:
        put_back(event, has_patterns)
        return np.int64(LEFT)
    token = unlocked() if is_long(0, segment) else np.int64(0)
    if has_patterns:
        scan(event, segment)
    count = match_event(event, segment, has_patterns)
    if token:
        locked(token)
    return give_ids(count, event, ids, found)
