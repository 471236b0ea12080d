"""What a segment and an event are to the kernels: arrays with names, behind one array of addresses.

Unboxing thirty arrays costs a call from Python 1.6 µs, a tuple of thirty 2.5 µs, one array 0.2 µs, a number nearly
nothing; matching an event takes about as long. So Python writes down once where a segment's arrays lie and how long
they are (`addresses`), and a kernel puts views on them (`segment_at`, `event_at`), which costs a few nanoseconds and no
count of references.

Addresses keep nothing alive: whoever holds them must hold the arrays too, as a segment does. Arrays are C-contiguous
and of the types below; `addresses` checks that. A view may be written to as far as the compiler knows; kernels don't
write to a segment's, which may lie in a mapped file.

    addresses[3 * i : 3 * i + 3]    address, rows and columns (1 for one dimension) of field i
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic

from covey.kernels.jit import inlined
from covey.kernels.types import (
    Bytes,
    Float64s,
    Int8s,
    Int32s,
    Int32Table,
    Int64s,
    UInt16s,
    field_types,
)


class Segment(NamedTuple):
    """Everything that matching reads of a segment: its tables (`matching.tables`), and where constants lie."""

    keys: Int32Table
    pivot: Int32s
    lookup_start: Int64s
    slot_start: Int64s
    lookup: Int32s
    slot_key: Int64s
    slot_partition: Int32s
    table_partition: Int64s
    partition_entry: Int64s
    entry_subscription: Int32s
    entry_low: Int32s
    entry_high: Int32s
    entry_start: Int32s
    entry_nodes: UInt16s
    nodes: Int32Table
    sweep_atoms: Int32Table
    sweep_node_atom: Int32s
    use_start: Int32s
    uses: Int32s
    sizes: Int32s
    """Codes of each attribute."""
    base: Int32Table
    """[attribute, kind]: the first code of the kind."""
    constants: Float64s
    remainders: Int64s
    firsts: Int64s
    lasts: Int64s
    """[attribute * kinds + kind]: where the kind's constants lie."""
    grid_starts: Int64s
    grids: Int32s
    grid_lowest: Float64s
    grid_scale: Float64s
    """[attribute * kinds + kind]: the grid over these constants (`encoding`), if there is one."""
    block_high: Int32s
    """The largest entry_high of each `BLOCK` entries: those that end below an event's code are passed by together."""
    pattern_mode: Bytes
    needed_start: Int32s
    needed: Int32s
    first_literal: Int32s
    """How patterns' truth is known, and the literals that they need (`matching.text_index`)."""


BLOCK_BITS = 4
BLOCK = 1 << BLOCK_BITS
"""Entries of a block."""


class Event(NamedTuple):
    """One event, and room for what it matches. Where kinds[a] is 0, codes[a] is the code; else it is to be found by
    searching numbers[a] among the constants of kind kinds[a] - 1. Who matches it puts `blank` codes, no kinds and no
    texts back, which is what an event without attributes has.

    Of a segment with patterns the rows behind the attributes' are those of slots (`matching.text_index`): the value of
    slot s is number 2 s + 1, and 2 s stands for none. Its text is text_data[text_first[s]:text_last[s]], and in lower
    case, where that changes more than ASCII letters, text_data[lowered_first[s]:lowered_last[s]]; else lowered_first is
    -1."""

    codes: Int32Table
    kinds: Int8s
    numbers: Float64s
    pattern_start: Int64s
    pattern_truth: Bytes
    out: Int32s
    blank: Int32s
    deleted: Bytes
    """A bitmap of the segment's subscriptions that are gone."""
    known: Int64s
    """What was verified of this event (`matching.Patterns`)."""
    requests: Int64s
    """What must be verified."""
    counts: Int64s
    """How many requests there are, and how many events were scanned."""
    is_text: Bytes
    """By number."""
    text_first: Int64s
    text_last: Int64s
    lowered_first: Int64s
    lowered_last: Int64s
    text_data: Bytes
    seen: Int32s
    """Of each hit of the automaton the event that it was last found in."""
    hit_start: Int64s
    hits: Int32s
    """The literals that occur, by number, with room for all that there are."""
    automaton: Int64s
    """Where the automaton's arrays lie (`literals`)."""


REQUESTS, SCANNED = range(2)
"""Places in an event's `counts`."""


def addresses(arrays: NamedTuple) -> Any:
    """Where the arrays lie. They must live as long as this is used."""
    found = np.empty(3 * len(arrays), np.int64)
    for number, (name, wanted, array) in enumerate(
        zip(type(arrays)._fields, field_types(type(arrays)), arrays, strict=True)
    ):
        fits = array.dtype == np.dtype(str(wanted.dtype)) and array.ndim == wanted.ndim and array.flags.c_contiguous
        if not fits:
            raise TypeError(f"{name} is {array.dtype} with {array.ndim} dimensions, and {wanted} is declared")
        found[3 * number] = array.ctypes.data
        found[3 * number + 1] = array.shape[0]
        found[3 * number + 2] = array.shape[1] if array.ndim == 2 else 1
    return found


PATTERN_TRUTH = Event._fields.index("pattern_truth")
OUT = Event._fields.index("out")
DELETED = Event._fields.index("deleted")
KNOWN = Event._fields.index("known")
TEXT_DATA = Event._fields.index("text_data")


def relocate(at: Any, field: int, array: Any) -> None:
    """Another array of one dimension takes a field's place."""
    at[3 * field] = array.__array_interface__["data"][0]
    at[3 * field + 1] = len(array)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _pointer(typingctx: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@inlined
def row_at(at, field, dtype):
    """A view on the array of a field, of one dimension."""
    return carray(_pointer(at[3 * field]), (at[3 * field + 1],), dtype)


@inlined
def table_at(at, field, dtype):
    """A view on the array of a field, of two dimensions."""
    return carray(_pointer(at[3 * field]), (at[3 * field + 1], at[3 * field + 2]), dtype)


@inlined
def segment_at(at):
    """Views on a segment's arrays, in the order of its fields."""
    return Segment(
        table_at(at, 0, np.int32), row_at(at, 1, np.int32), row_at(at, 2, np.int64), row_at(at, 3, np.int64),
        row_at(at, 4, np.int32), row_at(at, 5, np.int64), row_at(at, 6, np.int32), row_at(at, 7, np.int64),
        row_at(at, 8, np.int64), row_at(at, 9, np.int32), row_at(at, 10, np.int32), row_at(at, 11, np.int32),
        row_at(at, 12, np.int32), row_at(at, 13, np.uint16), table_at(at, 14, np.int32), table_at(at, 15, np.int32),
        row_at(at, 16, np.int32), row_at(at, 17, np.int32), row_at(at, 18, np.int32), row_at(at, 19, np.int32),
        table_at(at, 20, np.int32), row_at(at, 21, np.float64), row_at(at, 22, np.int64), row_at(at, 23, np.int64),
        row_at(at, 24, np.int64), row_at(at, 25, np.int64), row_at(at, 26, np.int32), row_at(at, 27, np.float64),
        row_at(at, 28, np.float64), row_at(at, 29, np.int32), row_at(at, 30, np.uint8), row_at(at, 31, np.int32),
        row_at(at, 32, np.int32), row_at(at, 33, np.int32),
    )  # fmt: skip


@inlined
def event_at(at):
    """Views on an event's arrays, in the order of its fields."""
    return Event(
        table_at(at, 0, np.int32), row_at(at, 1, np.int8), row_at(at, 2, np.float64), row_at(at, 3, np.int64),
        row_at(at, 4, np.uint8), row_at(at, 5, np.int32), row_at(at, 6, np.int32), row_at(at, 7, np.uint8),
        row_at(at, 8, np.int64), row_at(at, 9, np.int64), row_at(at, 10, np.int64), row_at(at, 11, np.uint8),
        row_at(at, 12, np.int64), row_at(at, 13, np.int64), row_at(at, 14, np.int64), row_at(at, 15, np.int64),
        row_at(at, 16, np.uint8), row_at(at, 17, np.int32), row_at(at, 18, np.int64), row_at(at, 19, np.int32),
        row_at(at, 20, np.int64),
    )  # fmt: skip


@inlined
def bytes_at(address, length):
    """A view on bytes, given where they lie."""
    return carray(_pointer(address), (length,), np.uint8)


@inlined
def addresses_at(address, fields):
    """An array of addresses, given where it lies itself: a number is all that a call from Python hands over then."""
    return carray(_pointer(address), (3 * fields,), np.int64)
