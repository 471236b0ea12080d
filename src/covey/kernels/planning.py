"""Kernels that decide how each unit is reached and lay out its decision diagram.

A unit is a conjunction; it can only be true where each of its members is. So it is enough to look at it for events
that meet one member, its access: an equality (POINT), a set of equalities (IN), a range, several equalities at once
(COMPOSITE), a literal that must occur in a text (OCCURS), or the members of a disjunction, one of which must hold
(HIT). The access is the member that the fewest events meet, by the weights of the codes and literals (how often
subscriptions name them, or how often sampled events have them).
A unit without a member worth the name is swept over all events.

What is left of a unit is laid out as a decision diagram in the order of its members' chances, children before
parents: node k tests an atom and goes on to `high[k]` or `low[k]`; 0 is false and 1 is true, and the last node is
the root. Every atom stands once, so the diagram is as long as the filter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.compiling import _MERGED_KIDS, ALL, ANY, NOT_RANGE, RANGE, Units, _grown, _grown_rows
from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.opcodes import (
    COMPOSITE,
    DECIDED,
    HIT,
    IN,
    OCCURS,
    PATTERN_FALSE,
    PATTERN_NOT_TRUE,
    PATTERN_TRUE,
    POINT,
    SPAN,
    SWEEP,
)
from covey.kernels.sorting import sort_integers
from covey.kernels.types import (
    Bytes,
    ByteTable,
    Flag,
    Float32s,
    Float64,
    Float64s,
    Int8s,
    Int32s,
    Int32Table,
    Int64,
    Int64s,
)


class Weights(NamedTuple):
    """How likely each code of each attribute is, as cumulative sums with a leading zero for each attribute."""

    cumulative: Float64s
    offsets: Int64s
    pattern: Float64s
    """[pattern]: how likely it is to be true."""
    mode: Bytes
    needed_start: Int32s
    needed: Int32s
    """[pattern]: how its truth is known, and the literals of which one must occur (`matching.text_index`)."""
    dear: Float64s
    """[attribute]: what filing a unit under it costs besides: of a term its share of the term's column."""


class Estimates(NamedTuple):
    """For each group: its chance, the cost of reaching it, and 1 where it is equalities on one attribute alone."""

    chance: Float64s
    cost: Float64s
    is_set: Bytes


class Accesses(NamedTuple):
    """How units are reached, one row each."""

    unit: Int32s
    sort: Int8s
    atom: Int32s
    """The atom that it uses; -1 for sweep and composite."""
    member: Int64s
    """The member to leave out of the diagram, as a position in `kids`; -1 for none."""
    literal: Int32s
    """The literal that it is filed under; -1 where it isn't by text."""


class Entries(NamedTuple):
    """For each access its pivot interval and where its diagram lies in `nodes`."""

    low: Int32s
    high: Int32s
    start: Int64s
    end: Int64s
    nodes: Int32Table
    """[node, (attribute, kind, low, high, high target, low target)]"""


_NOT_INDEXABLE = 4.0
_SWEEP_COST = 0.6
"""A unit that more than this share of the events would reach anyway is swept."""
_PIVOT_COST = 0.05
"""What an entry costs that its pivot interval rules out, as a share of one that is evaluated."""
_MOST_KEYS = 64
"""Ranges and equalities that one unit may be filed under."""
_MOST_LITERALS = 16_384
"""The same for literals, which few events have."""
_COMPOSITE_ATTRIBUTES = 4
_MISSING_CHANCE = 0.25
"""Of a text, of which tests on it are unknown."""


@inlined
def atom_chance(atoms, a, weights):
    """The share of events that meet an atom, by the weights of codes (cumulative, a stretch for each attribute)."""
    attribute, kind = atoms[a, 0], atoms[a, 1]
    if kind > NOT_RANGE:
        holds = weights.pattern[atoms[a, 2]]
        if kind == PATTERN_TRUE or kind == PATTERN_NOT_TRUE:
            return holds if kind == PATTERN_TRUE else 1.0 - holds
        fails = max(0.0, 1.0 - _MISSING_CHANCE - holds)
        return fails if kind == PATTERN_FALSE else 1.0 - fails
    first, last = weights.offsets[attribute], weights.offsets[attribute + 1] - 1
    running = weights.cumulative
    share = (running[first + atoms[a, 3] + 1] - running[first + atoms[a, 2]]) / running[last]
    return share if kind == RANGE else 1.0 - share


@inlined
def is_filed(atoms, a, weights):
    """Whether events that meet an atom are found by its key: a range of codes, or a literal that occurs."""
    if atoms[a, 1] == PATTERN_TRUE:
        return weights.needed_start[atoms[a, 2] + 1] > weights.needed_start[atoms[a, 2]]
    return atoms[a, 1] == RANGE


@inlined
def is_decided(atoms, a, weights):
    """Whether an atom is true of all events that have one of its literals."""
    return atoms[a, 1] == PATTERN_TRUE and weights.mode[atoms[a, 2]] == DECIDED


@kernel
def atom_chances(atoms: Int32Table, weights: Weights):
    """The share of events that meet each atom."""
    out = np.empty(len(atoms))
    for a in range(len(atoms)):
        out[a] = atom_chance(atoms, a, weights)
    return out


@kernel
def group_costs(units: Units, weights: Weights):
    """For each group: its chance, the cost of reaching it, and 1 where it is equalities on one attribute alone, or
    tests that literals decide alone."""
    kids, group_type, group_start, group_end, atoms = units[3:]
    count = len(group_type)
    chance, cost, is_set = np.empty(count), np.empty(count), np.zeros(count, np.uint8)
    for group in range(count - 1, -1, -1):  # children have higher numbers
        product, total, least, costs, absent = 1.0, 0.0, _NOT_INDEXABLE, 0.0, 1.0
        equalities = group_type[group] == ANY and group_end[group] - group_start[group] <= _MOST_KEYS
        texts = group_type[group] == ANY
        attribute = -1
        for k in range(group_start[group], group_end[group]):
            kid = kids[k]
            if kid >= 0:
                p = atom_chance(atoms, kid, weights)
                c = p if is_filed(atoms, kid, weights) else _NOT_INDEXABLE
                texts = texts and is_decided(atoms, kid, weights)
                if (
                    atoms[kid, 1] != RANGE
                    or atoms[kid, 2] != atoms[kid, 3]
                    or (attribute >= 0 and attribute != atoms[kid, 0])
                ):
                    equalities = False
                attribute = atoms[kid, 0]
            else:
                p, c = chance[-kid - 1], cost[-kid - 1]
                equalities, texts = False, False
            product *= p
            absent *= 1.0 - min(1.0, p)
            total += p
            least = min(least, c)
            costs += c
        chance[group] = product if group_type[group] == ALL else min(1.0, total)
        cost[group] = least if group_type[group] == ALL else min(_NOT_INDEXABLE, costs)
        if texts:
            cost[group] = 1.0 - absent
        is_set[group] = equalities or texts
    return Estimates(chance, cost, is_set)


@kernel
def signatures(units: Units, weights: Weights, wide: Flag):
    """Which attributes a unit demands by equality, as one number: up to four attribute numbers + 1, 16 bits each,
    ascending; the rarest four where there are more. 0 for fewer than two, or where attributes are too many."""
    unit_start, unit_end, kids, atoms = units.start, units.end, units.kids, units.atoms
    out = np.zeros(len(unit_start), np.int64)
    if wide:
        return out
    chosen, chances = np.empty(_COMPOSITE_ATTRIBUTES, np.int64), np.empty(_COMPOSITE_ATTRIBUTES)
    for unit in range(len(unit_start)):
        count = 0
        if unit_end[unit] - unit_start[unit] > _MERGED_KIDS:
            continue  # ranges on one attribute may stand there unmerged
        for k in range(unit_start[unit], unit_end[unit]):
            kid = kids[k]
            if kid < 0 or atoms[kid, 1] != RANGE or atoms[kid, 2] != atoms[kid, 3]:
                continue
            p = atom_chance(atoms, kid, weights)
            if count < _COMPOSITE_ATTRIBUTES:
                chosen[count], chances[count] = atoms[kid, 0], p
                count += 1
            else:
                worst = np.argmax(chances)
                if p < chances[worst]:
                    chosen[worst], chances[worst] = atoms[kid, 0], p
        if count >= 2:
            ordered = chosen[:count].copy()
            sort_integers(ordered)
            for i in range(count):
                out[unit] |= (ordered[i] + 1) << (16 * i)
    return out


@inner
def _hits(ref, units, cost, weights, stack, found, literals):
    """The atoms of which at least one holds wherever a group does, each with a literal that it needs, or -1. Gives how
    many (or too many)."""
    kids, group_type, group_start, group_end, atoms = units[3:]
    count, ranges, depth = 0, 0, 1
    stack[0] = ref
    while depth:
        depth -= 1
        ref = stack[depth]
        if ref >= 0:
            if atoms[ref, 1] == PATTERN_TRUE:
                first, last = weights.needed_start[atoms[ref, 2]], weights.needed_start[atoms[ref, 2] + 1]
                if first == last or count + last - first > _MOST_LITERALS:
                    return _MOST_LITERALS + 1
                for k in range(first, last):
                    found[count], literals[count] = ref, weights.needed[k]
                    count += 1
                continue
            if ranges == _MOST_KEYS or count == _MOST_LITERALS or atoms[ref, 1] != RANGE:
                return _MOST_LITERALS + 1
            found[count], literals[count] = ref, -1
            ranges += 1
            count += 1
            continue
        group = -ref - 1
        if group_type[group] == ANY:
            for k in range(group_start[group], group_end[group]):
                if depth >= len(stack):
                    return _MOST_LITERALS + 1
                stack[depth] = kids[k]
                depth += 1
        else:
            best, least = kids[group_start[group]], 2.0 * _NOT_INDEXABLE
            for k in range(group_start[group], group_end[group]):
                kid = kids[k]
                if kid >= 0:
                    c = atom_chance(atoms, kid, weights) if is_filed(atoms, kid, weights) else _NOT_INDEXABLE
                else:
                    c = cost[-kid - 1]
                if c < least:
                    best, least = kid, c
            stack[depth] = best
            depth += 1
    return count


@kernel
def choose_accesses(
    units: Units, weights: Weights, estimates: Estimates, signature: Int64s, composite: Bytes, sweep_chance: Float64
):
    """How each unit is reached."""
    unit_subscription, unit_start, unit_end, kids = units[:4]
    atoms, cost, chance, is_set = units.atoms, estimates.cost, estimates.chance, estimates.is_set
    count_units = len(unit_start)
    access_unit, access_sort = np.empty(count_units + 16, np.int32), np.empty(count_units + 16, np.int8)
    access_atom, access_member = np.empty(count_units + 16, np.int32), np.empty(count_units + 16, np.int64)
    access_literal = np.empty(count_units + 16, np.int32)
    stack, found = np.empty(_MOST_LITERALS + 4096, np.int32), np.empty(_MOST_LITERALS + 1, np.int32)
    literals = np.empty(_MOST_LITERALS + 1, np.int32)
    count = 0
    first = 0
    while first < count_units:
        last = first
        while last < count_units and unit_subscription[last] == unit_subscription[first]:
            last += 1
        mark = count
        likely = 0.0
        for unit in range(first, last):
            product = 1.0
            for k in range(unit_start[unit], unit_end[unit]):
                kid = kids[k]
                product *= atom_chance(atoms, kid, weights) if kid >= 0 else chance[-kid - 1]
            likely += product
        # What matches often enough costs more to write out one by one than to sweep.
        swept = likely > sweep_chance
        for unit in range(first, last):
            if swept:
                break
            best, member, sort = _NOT_INDEXABLE, -1, SWEEP
            # A key can be narrowed by a range as pivot; a range that is the access itself has no second one.
            narrow, narrowest, second = -1, 1.0, 1.0
            for k in range(unit_start[unit], unit_end[unit]):
                kid = kids[k]
                if kid >= 0 and atoms[kid, 1] == RANGE:
                    c = atom_chance(atoms, kid, weights)
                    if c < narrowest:
                        narrow, narrowest, second = k, c, narrowest
                    else:
                        second = min(second, c)
            for k in range(unit_start[unit], unit_end[unit]):
                kid = kids[k]
                if kid >= 0:
                    if not is_filed(atoms, kid, weights):
                        continue
                    c = atom_chance(atoms, kid, weights)
                    kind = OCCURS if atoms[kid, 1] != RANGE else POINT if atoms[kid, 2] == atoms[kid, 3] else SPAN
                else:
                    c = cost[-kid - 1]
                    kind = IN if is_set[-kid - 1] else HIT
                if kind == POINT or kind == IN or kind == OCCURS:
                    c *= _PIVOT_COST + (1.0 - _PIVOT_COST) * (second if k == narrow else narrowest)
                if kid >= 0:
                    c += weights.dear[atoms[kid, 0]]
                if c < best:
                    best, member, sort = c, k, kind
            if signature[unit] != 0 and composite[unit]:
                sort = COMPOSITE
            elif best > _SWEEP_COST:
                sort = SWEEP
            keys = 1
            if sort == IN or sort == HIT or sort == OCCURS:
                keys = _hits(kids[member], units, cost, weights, stack, found, literals)
                if keys > _MOST_LITERALS:
                    sort = SWEEP
            if sort == SWEEP:
                swept = True
                break
            access_unit, access_sort = _grown(access_unit, count + keys), _grown(access_sort, count + keys)
            access_atom, access_member = _grown(access_atom, count + keys), _grown(access_member, count + keys)
            access_literal = _grown(access_literal, count + keys)
            left_out = sort != HIT and not (sort == OCCURS and not is_decided(atoms, kids[member], weights))
            for key in range(keys):
                access_unit[count] = unit
                if sort == IN or sort == HIT or sort == OCCURS:
                    a = found[key]
                    access_atom[count], access_literal[count] = a, literals[key]
                    if literals[key] >= 0:
                        access_sort[count] = OCCURS
                    else:
                        access_sort[count] = POINT if atoms[a, 2] == atoms[a, 3] else SPAN
                    access_member[count] = member if left_out else -1
                else:
                    access_literal[count] = -1
                    access_atom[count] = kids[member] if sort != COMPOSITE else -1
                    access_sort[count] = sort
                    access_member[count] = member if sort != COMPOSITE else -1
                count += 1
        if swept:
            # One alternative is swept anyway, so the others ride along: no event is told twice.
            count = mark
            access_unit, access_sort = _grown(access_unit, count + 1), _grown(access_sort, count + 1)
            access_atom, access_member = _grown(access_atom, count + 1), _grown(access_member, count + 1)
            access_literal = _grown(access_literal, count + 1)
            access_unit[count], access_sort[count], access_atom[count], access_member[count] = first, SWEEP, -1, -1
            access_literal[count] = -1
            count += 1
        first = last
    return Accesses(
        access_unit[:count], access_sort[:count], access_atom[:count], access_member[:count], access_literal[:count]
    )


@kernel
def pivot_votes(accesses: Accesses, access_table: Int64s, units: Units, weights: Weights, signature: Int64s):
    """(table, attribute, gain) for each range that could narrow what an access leaves."""
    access_unit, access_sort, access_atom = accesses.unit, accesses.sort, accesses.atom
    unit_start, unit_end, kids, atoms = units.start, units.end, units.kids, units.atoms
    table, attribute, gain = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024)
    count = 0
    for access in range(len(access_unit)):
        if access_sort[access] != POINT and access_sort[access] != COMPOSITE and access_sort[access] != OCCURS:
            continue
        unit = access_unit[access]
        for k in range(unit_start[unit], unit_end[unit]):
            kid = kids[k]
            if kid < 0 or atoms[kid, 1] != RANGE or kid == access_atom[access]:
                continue
            if access_sort[access] == COMPOSITE and in_signature(signature[unit], atoms[kid, 0]):
                continue
            table, attribute, gain = _grown(table, count + 1), _grown(attribute, count + 1), _grown(gain, count + 1)
            table[count], attribute[count] = access_table[access], atoms[kid, 0]
            gain[count] = 1.0 - atom_chance(atoms, kid, weights)
            count += 1
    return table[:count], attribute[:count], gain[:count]


@inlined
def in_signature(signature, attribute):
    """Whether a composite access demands that attribute."""
    while signature:
        if (signature & 0xFFFF) == attribute + 1:
            return True
        signature >>= 16
    return False


@inner
def _sorted_members(group_kind, members, count, ranks, group_rank):
    """Order members so that the likeliest to decide come first: rarely true first in an And, often true in an Or."""
    for i in range(1, count):
        ref = members[i]
        key = ranks[ref] if ref >= 0 else group_rank[-ref - 1]
        j = i - 1
        while j >= 0:
            other = members[j]
            other_key = ranks[other] if other >= 0 else group_rank[-other - 1]
            if (group_kind == ALL and other_key <= key) or (group_kind == ANY and other_key >= key):
                break
            members[j + 1] = other
            j -= 1
        members[j + 1] = ref


@inner
def _emit(ref, high, low, kids, group_type, group_start, group_end, atoms, ranks, group_rank, nodes, count, frames,
          pool):  # fmt: skip
    """Append the nodes of an atom or a group, last members first; its root is the last node appended.

    A frame is a group under way: group, high, low, members still to go, where they lie in `pool`, and the node that
    the next member goes on to. (Numba can't cache recursive functions.)"""
    depth, used = 0, 0
    while True:
        if ref >= 0:
            nodes[count, 0], nodes[count, 1] = atoms[ref, 0], atoms[ref, 1]
            nodes[count, 2], nodes[count, 3] = atoms[ref, 2], atoms[ref, 3]
            nodes[count, 4], nodes[count, 5] = high, low
            count += 1
        else:
            group = -ref - 1
            width = group_end[group] - group_start[group]
            for k in range(width):
                pool[used + k] = kids[group_start[group] + k]
            _sorted_members(group_type[group], pool[used : used + width], width, ranks, group_rank)
            frames[depth, 0], frames[depth, 1], frames[depth, 2] = group, high, low
            frames[depth, 3], frames[depth, 4] = width, used
            frames[depth, 5] = high if group_type[group] == ALL else low
            used += width
            depth += 1
        # On to the next member of the innermost group that has one; node k has the local number k + 2.
        while depth and frames[depth - 1, 3] == 0:
            depth -= 1
            used = frames[depth, 4]
            if depth:
                frames[depth - 1, 5] = count + 1
        if depth == 0:
            return count
        top = depth - 1
        if ref >= 0:
            frames[top, 5] = count + 1
        frames[top, 3] -= 1
        ref = pool[frames[top, 4] + frames[top, 3]]
        if group_type[frames[top, 0]] == ALL:
            high, low = frames[top, 5], frames[top, 2]
        else:
            high, low = frames[top, 1], frames[top, 5]


@kernel
def lay_out(
    accesses: Accesses,
    access_pivot: Int32s,
    units: Units,
    ranks: Float32s,
    group_rank: Float32s,
    signature: Int64s,
    node_limit: Int64,
):
    """Pivot interval and diagram of each access. Accesses of one unit that leave out the same member follow each
    other and share a diagram. Gives an entry for each access, and 1 for each whose diagram is over the limit."""
    access_unit, access_sort, access_atom, access_member = accesses[:4]
    unit_subscription, unit_start, unit_end, kids, group_type, group_start, group_end, atoms = units
    count = len(access_unit)
    pivot_low, pivot_high = np.empty(count, np.int32), np.empty(count, np.int32)
    start, end = np.empty(count, np.int64), np.empty(count, np.int64)
    nodes = np.empty((1024 + 2 * count, 6), np.int32)
    scratch = np.empty((2 * node_limit + 128, 6), np.int32)
    members, pool = np.empty(2 * node_limit + 128, np.int32), np.empty(2 * node_limit + 128, np.int32)
    frames = np.empty((2 * node_limit + 128, 6), np.int64)
    failed = np.zeros(count, np.uint8)
    used = 0
    for access in range(count):
        unit, pivot = access_unit[access], access_pivot[access]
        sort = access_sort[access]
        low, high = 0, 2**31 - 1
        if sort == SPAN:
            atom = access_atom[access]
            low, high = atoms[atom, 2], atoms[atom, 3]
        width = 0
        last_unit = unit
        if sort == SWEEP:
            while last_unit + 1 < len(unit_start) and unit_subscription[last_unit + 1] == unit_subscription[unit]:
                last_unit += 1
        emitted = 0
        following = 0
        for current in range(last_unit, unit - 1, -1):
            width = 0
            for k in range(unit_start[current], unit_end[current]):
                kid = kids[k]
                if k == access_member[access]:
                    continue
                if kid >= 0 and atoms[kid, 1] == RANGE:
                    if (
                        sort == COMPOSITE
                        and atoms[kid, 2] == atoms[kid, 3]
                        and in_signature(signature[unit], atoms[kid, 0])
                    ):
                        continue
                    if sort != SWEEP and sort != SPAN and atoms[kid, 0] == pivot:
                        low, high = max(low, atoms[kid, 2]), min(high, atoms[kid, 3])
                        continue
                members[width] = kid
                width += 1
            _sorted_members(ALL, members, width, ranks, group_rank)
            target = 1
            for i in range(width - 1, -1, -1):
                emitted = _emit(members[i], target, following, kids, group_type, group_start, group_end, atoms, ranks,
                                group_rank, scratch, emitted, frames, pool)  # fmt: skip
                target = emitted + 1
            following = target
        pivot_low[access], pivot_high[access] = low, high
        same = (
            access > 0 and access_unit[access - 1] == unit and access_member[access - 1] == access_member[access]
            and access_pivot[access - 1] == pivot and access_sort[access - 1] == sort
        )  # fmt: skip
        if same:
            start[access], end[access] = start[access - 1], end[access - 1]
            failed[access] = failed[access - 1]
            continue
        if emitted > node_limit:
            failed[access] = 1
        nodes = _grown_rows(nodes, used + emitted)
        nodes[used : used + emitted] = scratch[:emitted]
        start[access] = used
        end[access] = used + emitted
        used += emitted
    return Entries(pivot_low, pivot_high, start, end, nodes[:used]), failed


@kernel
def composite_keys(access_unit: Int32s, units: Units, signature: Int64s, sizes: Int32s):
    """The demanded codes of composite accesses packed into one number each, in the signature's order."""
    unit_start, unit_end, kids, atoms = units.start, units.end, units.kids, units.atoms
    out = np.zeros(len(access_unit), np.int64)
    for access in range(len(access_unit)):
        unit = access_unit[access]
        rest = signature[unit]
        key = 0
        while rest:
            attribute = (rest & 0xFFFF) - 1
            for k in range(unit_start[unit], unit_end[unit]):
                kid = kids[k]
                if (
                    kid >= 0
                    and atoms[kid, 0] == attribute
                    and atoms[kid, 1] == RANGE
                    and atoms[kid, 2] == atoms[kid, 3]
                ):
                    key = key * sizes[attribute] + atoms[kid, 2]
                    break
            rest >>= 16
        out[access] = key
    return out


@kernel
def mark_uses(table: Int64s, start: Int64s, end: Int64s, rows: Int32s, marks: ByteTable):
    """Set marks[table, row] for each row that a diagram of that table tests."""
    for entry in range(len(table)):
        for node in range(start[entry], end[entry]):
            marks[table[entry], rows[node]] = 1


@kernel
def relocate(order: Int64s, start: Int64s, end: Int64s, nodes: Int32Table):
    """Diagrams in the order of the entries that use them, so that working through entries reads nodes in a row."""
    moved = np.full(len(nodes) + 1, -1, np.int64)
    out = np.empty_like(nodes)
    new_start = np.empty(len(order), np.int64)
    used = 0
    for i in range(len(order)):
        first, last = start[order[i]], end[order[i]]
        if first == last:
            new_start[i] = 0
            continue
        if moved[first] < 0:
            moved[first] = used
            out[used : used + last - first] = nodes[first:last]
            used += last - first
        new_start[i] = moved[first]
    return new_start, out[:used]
