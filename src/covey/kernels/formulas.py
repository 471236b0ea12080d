"""Terms computed where a diagram comes to them: arithmetic over an event's numbers, on a stack, and then its code.

A column of a term costs every event its arithmetic, a search among the term's constants and a place in memory. Of a
hundred terms an event's candidates ask for a few; so what no key, pivot or sweep needs is a formula, computed for those
events alone (`matching.formulas`). Only what can't overflow in a batch is one: `events.term_formulas` decides.

Memory layout: the row of a term has its steps from steps[start[row]] on, each an operation and its operand, up to an
END; start[row] is -1 where the row's codes are in the table of codes. The stack, constants and columns hold int64, or
the bits of float64. A value that is missing, or a division by zero, gives the term's `missing` code at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.encoding import code_of, split
from covey.kernels.jit import inlined, inner
from covey.kernels.segments import row_at, table_at
from covey.kernels.types import ByteTable, Float64s, Int32s, Int32Table, Int64s, Int64Table

(
    COLUMN, CONSTANT, TO_DOUBLE, ADD, SUBTRACT, MULTIPLY, NEGATE, COMPARE, ADD_DOUBLES, SUBTRACT_DOUBLES,
    MULTIPLY_DOUBLES, DIVIDE, NEGATE_DOUBLE, COMPARE_DOUBLES, END, END_DOUBLE,
) = range(16)  # fmt: skip
"""Operations; those that take two values leave one in their place."""


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
    grid_starts: Int64s
    grids: Int32s
    grid_lowest: Float64s
    grid_scale: Float64s
    """As a segment has them (`segments`); base by row."""
    first: Int64s
    """[0]: the batch's number of the chunk's first event."""
    stack: Int64s
    asked: Int64s
    """[row]: how often it was computed."""


@inlined
def formulas_at(at):
    """Views on formulas, in the order of their fields."""
    return Formulas(
        row_at(at, 0, np.int32), row_at(at, 1, np.int32), table_at(at, 2, np.int32), row_at(at, 3, np.int64),
        table_at(at, 4, np.int64), table_at(at, 5, np.uint8), row_at(at, 6, np.int32), row_at(at, 7, np.int32),
        row_at(at, 8, np.int32), row_at(at, 9, np.float64), row_at(at, 10, np.int64), row_at(at, 11, np.int64),
        row_at(at, 12, np.int64), row_at(at, 13, np.int64), row_at(at, 14, np.int32), row_at(at, 15, np.float64),
        row_at(at, 16, np.float64), row_at(at, 17, np.int64), row_at(at, 18, np.int64), row_at(at, 19, np.int64),
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


@inner
def formula_code(row, event, at_formulas):
    """The code of a term for an event of the chunk. (Given where formulas lie, as one array: a call would copy all of
    their views.)"""
    formulas = formulas_at(at_formulas)
    stack, steps = formulas.stack, formulas.steps
    formulas.asked[row] += 1
    where = formulas.first[0] + event
    at, top = np.int64(formulas.start[row]) - 1, -1
    value, remainder = 0.0, np.int64(0)
    while True:
        at += 1
        operation, operand = steps[at, 0], steps[at, 1]
        if operation == COLUMN:
            present = formulas.present_row[operand]
            if present >= 0 and not formulas.present[present, where]:
                return formulas.missing[row]
            top += 1
            stack[top] = formulas.columns[operand, where]
        elif operation == CONSTANT:
            top += 1
            stack[top] = formulas.constants[operand]
        elif operation == TO_DOUBLE:
            stack[top] = _bits(np.float64(stack[top]))
        elif operation == END:
            value, remainder = split(stack[top])
            break
        elif operation == END_DOUBLE:
            value = _double(stack[top])
            if value != value:
                value, remainder = np.inf, np.int64(1)
            break
        elif operation == NEGATE:
            stack[top] = -stack[top]
        elif operation == NEGATE_DOUBLE:
            stack[top] = _bits(-_double(stack[top]))
        else:
            top -= 1
            a, b = stack[top], stack[top + 1]
            x, y = _double(a), _double(b)
            if operation == ADD_DOUBLES:
                stack[top] = _bits(x + y)
            elif operation == MULTIPLY_DOUBLES:
                stack[top] = _bits(x * y)
            elif operation == SUBTRACT_DOUBLES:
                stack[top] = _bits(x - y)
            elif operation == DIVIDE:
                if y == 0.0:
                    return formulas.missing[row]
                stack[top] = _bits(x / y)
            elif operation == COMPARE_DOUBLES:
                stack[top] = _order(x, y)
            elif operation == ADD:
                stack[top] = a + b
            elif operation == SUBTRACT:
                stack[top] = a - b
            elif operation == MULTIPLY:
                stack[top] = a * b
            else:
                stack[top] = np.int64(a > b) - np.int64(a < b)
    slot = formulas.slot[row]
    return np.int32(
        formulas.base[row]
        + code_of(
            value, remainder, formulas.numbers, formulas.remainders, formulas.firsts[slot], formulas.lasts[slot],
            formulas.grids[formulas.grid_starts[slot] : formulas.grid_starts[slot + 1]], formulas.grid_lowest[slot],
            formulas.grid_scale[slot],
        )
    )  # fmt: skip
