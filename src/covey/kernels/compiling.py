"""Kernels that compile subscriptions: postfix tokens to simplified And/Or groups of atoms.

An atom is a two-valued test on the code of one attribute, or on the truth of one pattern:

    RANGE      low <= code <= high                    NOT_RANGE   its complement, missing included
    PATTERN_TRUE / PATTERN_FALSE                      the pattern is true / false
    PATTERN_NOT_TRUE / PATTERN_NOT_FALSE              their complements, unknown included

Three-valued logic goes away here. What is asked of a filter is "is it true?"; going down, a NOT asks "is it false?"
of its part, and IS TRUE may ask "is it not true?". Four questions (modes) are closed under all operators, each
answers a conjunction or a disjunction by one of the same question, and at a leaf each is an atom or two. In the
two-valued semantics "false" and "not true" are one question.

References in these arrays: an atom's number if >= 0, a group's as -(number + 1); ALWAYS and NEVER stand for constants.
The work is linear in the number of tokens, but for IS UNKNOWN, which asks its part two questions; `node_limit`
bounds what that can come to.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.opcodes import (
    AND,
    FALSE,
    IS_FALSE,
    IS_TRUE,
    IS_UNKNOWN,
    NOT,
    NOT_RANGE,
    OR,
    PATTERN,
    PATTERN_TRUE,
    RANGE,
    TRUE,
)
from covey.kernels.types import Bytes, Flag, Int8s, Int32s, Int32Table, Int64, Int64s

ALWAYS = 2**31 - 1
NEVER = 2**31 - 2
ALL, ANY = 0, 1
"""Types of groups."""


class Units(NamedTuple):
    """Subscriptions as conditions on codes. A unit is a top-level alternative, an And of members."""

    subscription: Int32s
    start: Int64s
    end: Int64s
    """[unit]: whose it is, and where its members lie in `kids`."""
    kids: Int32s
    """Members: atoms, or groups as -(number + 1)."""
    group_type: Int8s
    group_start: Int64s
    group_end: Int64s
    """Groups below the units, with their members in `kids`."""
    atoms: Int32Table
    """[number, (attribute, kind, low, high)]"""


_TRUE, _FALSE, _NOT_TRUE, _NOT_FALSE = range(4)
_MERGED_KIDS = 64
"""Groups with more members than this aren't searched for ranges to unite: that takes quadratic time."""


@inlined
def _negated(mode):
    return mode ^ 1


@inner
def _links(tokens, first, last, left, right, stack):
    """Children of each operator, from postfix order; gives the root's position."""
    depth = 0
    for position in range(first, last):
        token = tokens[position]
        if token == AND or token == OR:
            right[position - first] = stack[depth - 1]
            left[position - first] = stack[depth - 2]
            depth -= 1
            stack[depth - 1] = position
        elif IS_UNKNOWN <= token <= NOT:
            left[position - first] = stack[depth - 1]
            stack[depth - 1] = position
        else:
            stack[depth] = position
            depth += 1
    return stack[0]


@inner
def _add_atom(atoms, count, attribute, kind, low, high):
    atoms[count, 0] = attribute
    atoms[count, 1] = kind
    atoms[count, 2] = low
    atoms[count, 3] = high
    return count + 1


@inner
def _leaf(leaf, mode, group_type, leaf_attribute, leaf_operator, coded, atoms, atom_count, kids, kid_count):
    """Append the atoms by which a leaf answers a question to a group; gives the new counts."""
    attribute = leaf_attribute[leaf]
    low, high, class_low, class_high = coded[leaf, 0], coded[leaf, 1], coded[leaf, 2], coded[leaf, 3]
    if leaf_operator[leaf] == PATTERN:
        kids[kid_count] = atom_count
        return _add_atom(atoms, atom_count, attribute, PATTERN_TRUE + mode, low, low), kid_count + 1
    if mode == _TRUE or mode == _NOT_TRUE:
        if low > high:
            kids[kid_count] = NEVER if mode == _TRUE else ALWAYS
            return atom_count, kid_count + 1
        kids[kid_count] = atom_count
        kind = RANGE if mode == _TRUE else NOT_RANGE
        return _add_atom(atoms, atom_count, attribute, kind, low, high), kid_count + 1
    # False: the class without [low, high], which is none, one or two ranges.
    kind = RANGE if mode == _FALSE else NOT_RANGE
    if low > high:
        kids[kid_count] = atom_count
        return _add_atom(atoms, atom_count, attribute, kind, class_low, class_high), kid_count + 1
    has_below, has_above = class_low < low, high < class_high
    if not has_below and not has_above:
        kids[kid_count] = NEVER if mode == _FALSE else ALWAYS
        return atom_count, kid_count + 1
    if has_below and has_above:
        # Two ranges are an "or"; inside an "and" the same is said by the class and the complement, and so for "not".
        kids[kid_count] = atom_count
        kids[kid_count + 1] = atom_count + 1
        if (mode == _FALSE) == (group_type == ANY):
            atom_count = _add_atom(atoms, atom_count, attribute, kind, class_low, low - 1)
            return _add_atom(atoms, atom_count, attribute, kind, high + 1, class_high), kid_count + 2
        opposite = NOT_RANGE if mode == _FALSE else RANGE
        atom_count = _add_atom(atoms, atom_count, attribute, kind, class_low, class_high)
        return _add_atom(atoms, atom_count, attribute, opposite, low, high), kid_count + 2
    kids[kid_count] = atom_count
    if has_below:
        return _add_atom(atoms, atom_count, attribute, kind, class_low, low - 1), kid_count + 1
    return _add_atom(atoms, atom_count, attribute, kind, high + 1, class_high), kid_count + 1


@inner
def _constant(token, mode, two_valued):
    """What TRUE, FALSE or UNKNOWN answers."""
    if token == TRUE:
        yes = mode == _TRUE or mode == _NOT_FALSE
    elif token == FALSE or two_valued:
        yes = mode == _FALSE or mode == _NOT_TRUE
    else:
        yes = mode == _NOT_TRUE or mode == _NOT_FALSE
    return ALWAYS if yes else NEVER


@inner
def _groups(
    tokens, first, root, left, right, leaf_attribute, leaf_operator, coded, two_valued, limit,
    atoms, kids, group_type, group_start, group_end, group_token, group_mode, stack, modes,
):  # fmt: skip
    """And/Or groups of one subscription, parents before children; group 0 is an And around everything. Gives the
    numbers of groups and atoms, or -1 groups where there would be more than `limit` atoms or members."""
    group_type[0], group_token[0], group_mode[0] = ALL, root, _TRUE
    groups, atom_count, kid_count, current = 1, 0, 0, 0
    while current < groups:
        group_start[current] = kid_count
        kind = group_type[current]
        stack[0], modes[0] = group_token[current], group_mode[current]
        depth = 1
        while depth:
            depth -= 1
            position, mode = stack[depth], modes[depth]
            if atom_count + 4 > limit or kid_count + 4 > limit or groups + 2 > limit or depth + 4 > limit:
                return -1, atom_count
            token = tokens[position]
            here = position - first
            if token >= 0:
                if two_valued:
                    mode = _TRUE if mode == _TRUE or mode == _NOT_FALSE else _NOT_TRUE
                atom_count, kid_count = _leaf(
                    token, mode, kind, leaf_attribute, leaf_operator, coded, atoms, atom_count, kids, kid_count
                )
            elif token <= TRUE:  # a constant
                kids[kid_count] = _constant(token, mode, two_valued)
                kid_count += 1
            elif token == NOT:
                stack[depth], modes[depth] = left[here], _negated(mode)
                depth += 1
            elif token == IS_TRUE or token == IS_FALSE:
                wanted = mode == _TRUE or mode == _NOT_FALSE
                asked = _TRUE if token == IS_TRUE else _FALSE
                stack[depth], modes[depth] = left[here], asked if wanted else asked + 2
                depth += 1
            else:
                if token == IS_UNKNOWN:
                    # Unknown: neither true nor false. Known: true or false.
                    joined = ALL if mode == _TRUE or mode == _NOT_FALSE else ANY
                    first_mode = _NOT_TRUE if joined == ALL else _TRUE
                    second_mode = _NOT_FALSE if joined == ALL else _FALSE
                    second = left[here]
                else:
                    flipped = mode == _FALSE or mode == _NOT_TRUE
                    joined = ALL if (token == AND) != flipped else ANY
                    first_mode = mode
                    second_mode = mode
                    second = right[here]
                if joined == kind:
                    stack[depth], modes[depth] = second, second_mode
                    stack[depth + 1], modes[depth + 1] = left[here], first_mode
                    depth += 2
                else:
                    group_type[groups], group_token[groups], group_mode[groups] = joined, position, mode
                    kids[kid_count] = -(groups + 1)
                    kid_count += 1
                    groups += 1
        group_end[current] = kid_count
        current += 1
    return groups, atom_count


@inner
def _trim(atoms, a, b):
    """Take NOT_RANGE b away from RANGE a of the same attribute, where that leaves one range. True if b is used up."""
    if atoms[b, 3] < atoms[a, 2] or atoms[b, 2] > atoms[a, 3]:
        return True
    if atoms[b, 2] <= atoms[a, 2]:
        atoms[a, 2] = atoms[b, 3] + 1
        return True
    if atoms[b, 3] >= atoms[a, 3]:
        atoms[a, 3] = atoms[b, 2] - 1
        return True
    return False


@inner
def _unite(kind, atoms, kids, start, end):
    """Join ranges on one attribute: intersections in an And, connected unions in an Or. Gives the new end."""
    changed = True
    while changed and end - start <= _MERGED_KIDS:
        changed = False
        i = start
        while i < end:
            a = kids[i]
            if a < 0 or a >= NEVER or atoms[a, 1] != RANGE:
                i += 1
                continue
            j = start
            while j < end:
                b = kids[j]
                gone = False
                if j != i and 0 <= b < NEVER and atoms[b, 0] == atoms[a, 0]:
                    if atoms[b, 1] == RANGE:
                        if kind == ALL:
                            atoms[a, 2] = max(atoms[a, 2], atoms[b, 2])
                            atoms[a, 3] = min(atoms[a, 3], atoms[b, 3])
                            gone = True
                        elif atoms[b, 2] <= atoms[a, 3] + 1 and atoms[a, 2] <= atoms[b, 3] + 1:
                            atoms[a, 2] = min(atoms[a, 2], atoms[b, 2])
                            atoms[a, 3] = max(atoms[a, 3], atoms[b, 3])
                            gone = True
                    elif atoms[b, 1] == NOT_RANGE and kind == ALL:
                        gone = _trim(atoms, a, b)
                if gone:
                    changed = True
                    for k in range(j, end - 1):
                        kids[k] = kids[k + 1]
                    end -= 1
                    if j < i:
                        i -= 1
                else:
                    j += 1
            i += 1
    return end


@inner
def _settle(kind, atoms, sizes, kids, start, end):
    """Drop constants from a group's members. Gives (the new end, ALWAYS or NEVER where that is all that is left)."""
    absorbing = NEVER if kind == ALL else ALWAYS
    write = start
    for i in range(start, end):
        kid = kids[i]
        if 0 <= kid < NEVER:
            if atoms[kid, 2] > atoms[kid, 3]:
                kid = NEVER if atoms[kid, 1] == RANGE else ALWAYS
            elif atoms[kid, 1] <= NOT_RANGE and atoms[kid, 2] == 0 and atoms[kid, 3] == sizes[atoms[kid, 0]] - 1:
                kid = ALWAYS if atoms[kid, 1] == RANGE else NEVER
        if kid == absorbing:
            return start, absorbing
        if kid != ALWAYS and kid != NEVER:
            kids[write] = kid
            write += 1
    if write == start:
        return write, ALWAYS if kind == ALL else NEVER
    return write, 0


@inner
def _simplify(groups, atoms, sizes, kids, group_type, group_start, group_end, final, final_start, final_end, result):
    """Each group with its constants gone, its ranges united and what became of one type spliced, children first.
    `result` says what a group has come to: itself, one atom, or a constant."""
    written = 0
    for group in range(groups - 1, -1, -1):
        kind = group_type[group]
        start = written
        for i in range(group_start[group], group_end[group]):
            kid = kids[i]
            if kid < 0:
                kid = result[-kid - 1]
            if kid < 0 and group_type[-kid - 1] == kind:
                inner = -kid - 1
                if written + final_end[inner] - final_start[inner] + 1 > len(final):
                    return -1
                for k in range(final_start[inner], final_end[inner]):
                    final[written] = final[k]
                    written += 1
            else:
                if written + 1 > len(final):
                    return -1
                final[written] = kid
                written += 1
        written, constant = _settle(kind, atoms, sizes, final, start, written)
        if constant == 0:
            written = _unite(kind, atoms, final, start, written)
            written, constant = _settle(kind, atoms, sizes, final, start, written)
        final_start[group], final_end[group] = start, written
        if constant != 0:
            result[group] = constant
        elif written - start == 1:
            result[group] = final[start]
        else:
            result[group] = -(group + 1)
    return written


@inner
def _grown(array, needed):
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), array.dtype)
    for i in range(len(array)):  # a slice's assignment takes Numba seconds to compile
        larger[i] = array[i]
    return larger


@inner
def _grown_rows(table, needed):
    if needed <= len(table):
        return table
    larger = np.empty((max(needed, 2 * len(table)), table.shape[1]), table.dtype)
    for i in range(len(table)):
        for j in range(table.shape[1]):
            larger[i, j] = table[i, j]
    return larger


@kernel
def compile_units(
    tokens: Int32s,
    starts: Int64s,
    leaf_attribute: Int32s,
    leaf_operator: Bytes,
    coded: Int32Table,
    sizes: Int32s,
    two_valued: Flag,
    demanded: Bytes,
    node_limit: Int64,
):
    """Compile all subscriptions. Gives their units, and 1 for each subscription over the limit.

    `demanded` is empty but under strict semantics, which asks for each named attribute that has a 1 there.

    A subscription that can't match has no unit; one that always matches has a unit without members.
    """
    count = len(starts) - 1
    longest = 1
    for i in range(count):
        longest = max(longest, starts[i + 1] - starts[i])
    left, right = np.empty(longest, np.int64), np.empty(longest, np.int64)
    limit = node_limit * 2 + 64
    scratch = np.empty((limit, 4), np.int32)
    kids, final = np.empty(limit, np.int32), np.empty(4 * limit, np.int32)
    group_type, group_mode = np.empty(limit, np.int8), np.empty(limit, np.int8)
    group_start, group_end = np.empty(limit, np.int32), np.empty(limit, np.int32)
    final_start, final_end = np.empty(limit, np.int32), np.empty(limit, np.int32)
    group_token, result = np.empty(limit, np.int64), np.empty(limit, np.int32)
    stack, modes = np.empty(max(limit, longest), np.int64), np.empty(limit, np.int8)
    named = np.empty(limit, np.int32)
    moved = np.empty(limit, np.int32)

    units = 0
    out_groups = 0
    out_kids = 0
    out_atoms = 0
    unit_subscription = np.empty(count + 16, np.int32)
    unit_start, unit_end = np.empty(count + 16, np.int64), np.empty(count + 16, np.int64)
    out_kid = np.empty(4 * count + 64, np.int32)
    out_type = np.empty(count // 4 + 64, np.int8)
    out_start, out_end = np.empty(count // 4 + 64, np.int64), np.empty(count // 4 + 64, np.int64)
    out_atom = np.empty((4 * count + 64, 4), np.int32)
    failed = np.zeros(count, np.uint8)
    strict = len(demanded) > 0

    for row in range(count):
        first, last = starts[row], starts[row + 1]
        root = _links(tokens, first, last, left, right, stack)
        groups, atom_count = _groups(
            tokens, first, root, left, right, leaf_attribute, leaf_operator, coded, two_valued, limit,
            scratch, kids, group_type, group_start, group_end, group_token, group_mode, stack, modes,
        )  # fmt: skip
        if groups < 0:
            failed[row] = 1
            continue
        written = _simplify(
            groups, scratch, sizes, kids, group_type, group_start, group_end, final, final_start, final_end, result
        )
        if written < 0:
            failed[row] = 1
            continue
        top = result[0]
        if top == NEVER:
            continue
        named_count = 0
        if strict:
            for position in range(first, last):
                if tokens[position] >= 0:
                    attribute = leaf_attribute[tokens[position]]
                    known = demanded[attribute] == 0
                    for k in range(named_count):
                        if named[k] == attribute:
                            known = True
                            break
                    if not known:
                        named[named_count] = attribute
                        named_count += 1
        # The alternatives: members of a top-level Or, else the whole.
        alternatives = 1
        if top < 0 and group_type[-top - 1] == ANY:
            alternatives = final_end[-top - 1] - final_start[-top - 1]
        for alternative in range(alternatives):
            unit = top
            if top < 0 and group_type[-top - 1] == ANY:
                unit = final[final_start[-top - 1] + alternative]
            # Members of the unit, with "is defined" for each named attribute under strict semantics.
            width = 0
            if unit < 0:
                for k in range(final_start[-unit - 1], final_end[-unit - 1]):
                    kids[width] = final[k]
                    width += 1
            elif unit != ALWAYS:
                kids[0] = unit
                width = 1
            if strict:
                # Units must not share atoms that are changed here.
                for k in range(width):
                    if kids[k] >= 0:
                        a = kids[k]
                        kids[k] = atom_count
                        atom_count = _add_atom(
                            scratch, atom_count, scratch[a, 0], scratch[a, 1], scratch[a, 2], scratch[a, 3]
                        )
                for k in range(named_count):
                    kids[width] = atom_count
                    width += 1
                    atom_count = _add_atom(scratch, atom_count, named[k], RANGE, 1, sizes[named[k]] - 1)
                    if atom_count + 2 >= limit or width + 2 >= limit:
                        failed[row] = 1
                        break
                if failed[row]:
                    break
                width = _unite(ALL, scratch, kids, 0, width)
                width, constant = _settle(ALL, scratch, sizes, kids, 0, width)
                if constant == NEVER:
                    continue
            # Copy the unit and the groups below it out, breadth first: the group met as number m gets `base` + m.
            unit_subscription = _grown(unit_subscription, units + 1)
            unit_start, unit_end = _grown(unit_start, units + 1), _grown(unit_end, units + 1)
            unit_subscription[units] = row
            base = out_groups
            met = 0
            current = -1
            while current < met:
                begin, end = 0, width
                if current >= 0:
                    begin, end = final_start[moved[current]], final_end[moved[current]]
                out_kid = _grown(out_kid, out_kids + end - begin)
                out_atom = _grown_rows(out_atom, out_atoms + end - begin)
                run = out_kids
                for k in range(begin, end):
                    kid = kids[k] if current < 0 else final[k]
                    if kid >= 0:
                        out_atom[out_atoms] = scratch[kid]
                        out_kid[out_kids] = out_atoms
                        out_atoms += 1
                    else:
                        out_kid[out_kids] = -(base + met + 1)
                        moved[met] = -kid - 1
                        met += 1
                    out_kids += 1
                if current < 0:
                    unit_start[units], unit_end[units] = run, out_kids
                else:
                    out_type[base + current] = group_type[moved[current]]
                    out_start[base + current], out_end[base + current] = run, out_kids
                if met > 0:
                    out_type = _grown(out_type, base + met)
                    out_start, out_end = _grown(out_start, base + met), _grown(out_end, base + met)
                current += 1
            out_groups = base + met
            units += 1
    made = Units(
        unit_subscription[:units], unit_start[:units], unit_end[:units], out_kid[:out_kids],
        out_type[:out_groups], out_start[:out_groups], out_end[:out_groups], out_atom[:out_atoms],
    )  # fmt: skip
    return made, failed
