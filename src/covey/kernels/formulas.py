"""Terms computed where a diagram comes to them: arithmetic over an event's numbers, on a stack.

A column of a term costs every event its arithmetic, a search among the term's constants and a place in memory. Of a
hundred terms an event's candidates ask for a few; so what no key, pivot or sweep needs is a formula, computed for those
events alone (`matching.formulas`). A diagram asks for a range of codes; its ends are constants, and a value is held
against these two without a search for its own code. Only what can't overflow in a batch is a formula:
`events.term_formulas` decides.

Memory layout: the row of a term has its steps from steps[start[row]] on, each an operation and its operand, up to an
END; start[row] is -1 where the row's codes are in the table of codes. The stack, constants and columns hold int64, or
the bits of float64. A value that is missing, or a division by zero, gives the term's `missing` code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.encoding import split
from covey.kernels.jit import forced, inlined, inner
from covey.kernels.segments import row_at, table_at
from covey.kernels.types import ByteTable, Float64s, Int32s, Int32Table, Int64s, Int64Table
from covey.kernels.vectors import lowest_bit

(
    COLUMN, CONSTANT, TO_DOUBLE, ADD, SUBTRACT, MULTIPLY, NEGATE, COMPARE, ADD_DOUBLES, SUBTRACT_DOUBLES,
    MULTIPLY_DOUBLES, DIVIDE, NEGATE_DOUBLE, COMPARE_DOUBLES, END, END_DOUBLE,
) = range(16)  # fmt: skip
"""Operations; those that take two values leave one in their place."""
LANES = 64
"""Events for which a term is computed at once."""
_BEYOND = np.int64(1 << 62)
"""More than any remainder."""


class Formulas(NamedTuple):
    """The formulas of a segment for a chunk of a batch."""

    start: Int32s
    missing: Int32s
    """[row]: the code where the term has no value."""
    steps: Int32Table
    constants: Int64s
    columns: Int64Table
    """[column, event of the batch]"""
    present: ByteTable
    """[column or nothing, event of the batch]: 1 where the column has a value."""
    present_row: Int32s
    """[column]: its row in `present`; -1 where it has all values."""
    slot: Int32s
    """[row]: where its constants are said to lie, below."""
    base: Int32s
    numbers: Float64s
    remainders: Int64s
    firsts: Int64s
    lasts: Int64s
    """As a segment has them (`segments`); base by row."""
    first: Int64s
    """[0]: the batch's number of the chunk's first event."""
    stack: Int64s
    """LANES for each value."""
    places: Int64s
    """The batch's numbers of those events that a term is computed for, up to LANES."""
    asked: Int64s
    """[row]: how often it was computed."""


@inlined
def formulas_at(at):
    """Views on formulas, in the order of their fields."""
    return Formulas(
        row_at(at, 0, np.int32), row_at(at, 1, np.int32), table_at(at, 2, np.int32), row_at(at, 3, np.int64),
        table_at(at, 4, np.int64), table_at(at, 5, np.uint8), row_at(at, 6, np.int32), row_at(at, 7, np.int32),
        row_at(at, 8, np.int32), row_at(at, 9, np.float64), row_at(at, 10, np.int64), row_at(at, 11, np.int64),
        row_at(at, 12, np.int64), row_at(at, 13, np.int64), row_at(at, 14, np.int64), row_at(at, 15, np.int64),
        row_at(at, 16, np.int64),
    )  # fmt: skip


@inlined
def formula_starts(at):
    """Where the formula of each row starts, given where formulas lie."""
    return row_at(at, 0, np.int32)


@inlined
def _double(bits):
    return np.int64(bits).view(np.float64)


@inlined
def _bits(value):
    return np.float64(value).view(np.int64)


@inlined
def _order(a, b):
    """-1, 0 or 1; NaN is above all and equal to itself."""
    if a != a or b != b:
        return np.int64(a != a) - np.int64(b != b)
    return np.int64(a > b) - np.int64(a < b)


@forced
def _computed(row, count, formulas):
    """Compute a term for the first `count` of `places`, step by step for all of them: what a step is gets found out
    once. The values are left at the bottom of the stack. Gives whether they are doubles, and which have none."""
    steps, columns, places = formulas.steps, formulas.columns, formulas.places
    at, top, absent = np.int64(formulas.start[row]), -LANES, np.uint64(0)
    upper = formulas.stack[:LANES]
    while True:
        operation, operand = steps[at, 0], steps[at, 1]
        at += 1
        if operation <= CONSTANT:
            top += LANES
            upper = formulas.stack[top : top + LANES]
            if operation == CONSTANT:
                upper[:count] = formulas.constants[operand]
                continue
            present = formulas.present_row[operand]
            for k in range(count):
                upper[k] = columns[operand, places[k]]
            if present >= 0:
                for k in range(count):
                    absent |= np.uint64(formulas.present[present, places[k]] == 0) << np.uint64(k)
            continue
        if operation >= END:
            return operation == END_DOUBLE, absent
        if operation == TO_DOUBLE:
            for k in range(count):
                upper[k] = _bits(np.float64(upper[k]))
            continue
        if operation == NEGATE:
            for k in range(count):
                upper[k] = -upper[k]
            continue
        if operation == NEGATE_DOUBLE:
            for k in range(count):
                upper[k] = _bits(-_double(upper[k]))
            continue
        top -= LANES
        right, upper = upper, formulas.stack[top : top + LANES]
        if operation == ADD_DOUBLES:
            for k in range(count):
                upper[k] = _bits(_double(upper[k]) + _double(right[k]))
        elif operation == MULTIPLY_DOUBLES:
            for k in range(count):
                upper[k] = _bits(_double(upper[k]) * _double(right[k]))
        elif operation == SUBTRACT_DOUBLES:
            for k in range(count):
                upper[k] = _bits(_double(upper[k]) - _double(right[k]))
        elif operation == DIVIDE:
            for k in range(count):
                divisor = _double(right[k])
                if divisor == 0.0:
                    absent |= np.uint64(1) << np.uint64(k)
                    divisor = 1.0
                upper[k] = _bits(_double(upper[k]) / divisor)
        elif operation == COMPARE_DOUBLES:
            for k in range(count):
                upper[k] = _order(_double(upper[k]), _double(right[k]))
        elif operation == ADD:
            for k in range(count):
                upper[k] += right[k]
        elif operation == SUBTRACT:
            for k in range(count):
                upper[k] -= right[k]
        elif operation == MULTIPLY:
            for k in range(count):
                upper[k] *= right[k]
        else:
            for k in range(count):
                upper[k] = np.int64(upper[k] > right[k]) - np.int64(upper[k] < right[k])


@forced
def _bounds(row, low, high, formulas):
    """The values whose codes are from low to high: from (value, remainder) to another, in this order. Remainders are
    whole, so what is above a constant is at least the constant with one more."""
    slot = formulas.slot[row]
    first, base = formulas.firsts[slot], np.int64(formulas.base[row])
    most = 2 * (formulas.lasts[slot] - first)
    exact = len(formulas.remainders) == 0
    least, least_rest, top, top_rest = -np.inf, -_BEYOND, np.inf, _BEYOND
    below, above = np.int64(low) - base, np.int64(high) - base
    if below > most or above < 0:
        return np.inf, _BEYOND, -np.inf, -_BEYOND
    if below > 0:
        at = first + ((below - 1) >> 1)  # of a gap, the constant below it
        least, least_rest = formulas.numbers[at], np.int64(0) if exact else formulas.remainders[at]
        least_rest += np.int64(1) - (below & 1)
    if above < most:
        at = first + (above >> 1)
        top, top_rest = formulas.numbers[at], np.int64(0) if exact else formulas.remainders[at]
        top_rest -= np.int64(1) - (above & 1)
    return least, least_rest, top, top_rest


@forced
def _ranged(row, low, high, count, formulas):
    """Which of the first `count` of `places` have a code from low to high of a term: a bit each, with others above."""
    is_double, absent = _computed(row, count, formulas)
    least, least_rest, top, top_rest = _bounds(row, low, high, formulas)
    formulas.asked[row] += count
    found = np.uint64(0)
    for k in range(count):
        if is_double:
            value, remainder = _double(formulas.stack[k]), np.int64(0)
            if value != value:
                value, remainder = np.inf, np.int64(1)
        else:
            value, remainder = split(formulas.stack[k])
        holds = (value > least or (value == least and remainder >= least_rest)) and (
            value < top or (value == top and remainder <= top_rest)
        )
        found |= np.uint64(holds) << np.uint64(k)
    return found | absent if low <= formulas.missing[row] <= high else found & ~absent


@inner
def formula_word(row, low, high, events, active, at_formulas):
    """Which of 64 events, `active` ones of those in the upper halves of `events`, have a code from low to high of a
    term. (Given where formulas lie, as one array: a call would copy all of their views.)"""
    formulas = formulas_at(at_formulas)
    first, places, count, left = formulas.first[0], formulas.places, 0, active
    while left:
        places[count] = first + (events[lowest_bit(left)] >> 32)
        count += 1
        left &= left - np.uint64(1)
    found, word = _ranged(row, low, high, count, formulas), np.uint64(0)
    while active:
        word |= (found & np.uint64(1)) << np.uint64(lowest_bit(active))
        found >>= np.uint64(1)
        active &= active - np.uint64(1)
    return word


@inner
def formula_holds(row, low, high, event, at_formulas):
    """Whether a term has a code from low to high for an event of the chunk."""
    formulas = formulas_at(at_formulas)
    formulas.places[0] = formulas.first[0] + event
    return _ranged(row, low, high, 1, formulas) & np.uint64(1) != 0
