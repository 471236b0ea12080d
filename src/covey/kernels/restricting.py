"""Restriction of one root after the other on a growing table of nodes.

Memory layout. `variable`, `low`, `high` are the node store: `state[NODES]` of its rows are in use, children before
parents, each node once (`table` is an open-addressing hash table over them, 0 where empty). `slot[v]` is the
attribute of variable `v`, `mask[v]` the worlds of that attribute in which `v`'s test holds, and `condition[s]` the
worlds of slot `s` that are still possible at the present point of the walk. Overrides (`own_*`, by root) replace
slot and mask for attributes whose worlds are counted for each root alone; `own_slot` counts on from the shared ones.

`bit[v]` is non-zero where the root has something to gain at `v`: another test on the same attribute, or a truth that
is certain from the start. `support[n]` joins these bits over all that node `n` reaches; a node with none is done.

`restriction.py` says why this is right.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from covey.kernels.jit import inner, kernel
from covey.kernels.types import Int64, Int64s, UInt32s, UInt64s

Indices, Words, Integers = UInt32s, UInt64s, Int64s

Node: TypeAlias = Any
"""A node's number: int64 in compiled code."""

NODES: Final = 0
STEPS: Final = 1


@kernel
def restrict_roots(
    variable: Indices,
    low: Indices,
    high: Indices,
    table: Indices,
    state: Integers,
    roots: Indices,
    first: Int64,
    slot: Integers,
    mask: Words,
    full: Words,
    own_start: Integers,
    own_variable: Integers,
    own_slot: Integers,
    own_mask: Words,
    own_full: Words,
    steps: Int64,
    result: Indices,
):
    """Restrict roots from number `first` on; returns the number of the first root that the store has no room for."""
    capacity, slots, variables = len(variable), len(full), len(slot)
    here_slot, here_mask = slot.copy(), mask.copy()
    condition = np.concatenate((full, np.zeros(max(1, len(own_full)), np.uint64)))
    uses = np.zeros(len(condition), np.int64)
    bit_of_slot = np.zeros(len(condition), np.uint64)
    bit = np.zeros(variables, np.uint64)
    variable_stamp = np.full(variables, -1, np.int64)
    found = np.empty(variables, np.int64)
    support = np.zeros(capacity, np.uint64)
    stamp = np.full(capacity, -1, np.int64)
    seen = np.full(capacity, -1, np.int64)
    stack = np.empty(capacity, np.int64)
    for number in range(first, len(roots)):
        if capacity - state[NODES] < steps:
            return number
        for at in range(own_start[number], own_start[number + 1]):
            here_slot[own_variable[at]] = slots + own_slot[at]
            here_mask[own_variable[at]] = own_mask[at]
            condition[slots + own_slot[at]] = own_full[own_slot[at]]
        count = _collect(np.int64(roots[number]), number, variable, low, high, seen, stack, variable_stamp, found)
        related = _relate(found[:count], here_slot, here_mask, condition, uses, bit_of_slot, bit)
        if related:
            state[STEPS] = steps
            root = np.int64(roots[number])
            result[number] = _simplify(
                root, number, variable, low, high, table, state, here_slot, here_mask, condition, bit, support, stamp
            )
        else:
            result[number] = roots[number]
        for at in range(own_start[number], own_start[number + 1]):
            here_slot[own_variable[at]] = slot[own_variable[at]]
            here_mask[own_variable[at]] = mask[own_variable[at]]
    return len(roots)


@inner
def _collect(
    root: Node,
    number: int,
    variable: Indices,
    low: Indices,
    high: Indices,
    seen: Integers,
    stack: Integers,
    variable_stamp: Integers,
    found: Integers,
) -> int:
    """The variables that a root reaches, into `found`; how many."""
    count = 0
    depth = 0
    if root > 1:
        seen[root] = number
        stack[0] = root
        depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        at = np.int64(variable[node])
        if variable_stamp[at] != number:
            variable_stamp[at] = number
            found[count] = at
            count += 1
        for child in (np.int64(low[node]), np.int64(high[node])):
            if child > 1 and seen[child] != number:
                seen[child] = number
                stack[depth] = child
                depth += 1
    return count


@inner
def _relate(
    found: Integers,
    slot: Integers,
    mask: Words,
    condition: Words,
    uses: Integers,
    bit_of_slot: Words,
    bit: Words,
) -> bool:
    """Give each attribute with related tests a bit of its own; whether there is any."""
    for at in found:
        if slot[at] >= 0:
            # A test that is certain from the start is worth a visit even alone.
            certain = mask[at] == 0 or mask[at] == condition[slot[at]]
            uses[slot[at]] += 2 if certain else 1
    given = 0
    for at in found:
        place = slot[at]
        if place >= 0 and uses[place] >= 2 and bit_of_slot[place] == 0 and given < 64:
            bit_of_slot[place] = np.uint64(1) << np.uint64(given)
            given += 1
    for at in found:
        bit[at] = bit_of_slot[slot[at]] if slot[at] >= 0 else np.uint64(0)
    for at in found:
        if slot[at] >= 0:
            uses[slot[at]] = 0
            bit_of_slot[slot[at]] = 0
    return given > 0


@inner
def _reach(
    node: Node,
    number: int,
    variable: Indices,
    low: Indices,
    high: Indices,
    bit: Words,
    support: Words,
    stamp: Integers,
) -> Any:
    if node < 2:
        return np.uint64(0)
    if stamp[node] == number:
        return support[node]
    below = bit[variable[node]]
    below |= _reach(np.int64(low[node]), number, variable, low, high, bit, support, stamp)
    below |= _reach(np.int64(high[node]), number, variable, low, high, bit, support, stamp)
    support[node] = below
    stamp[node] = number
    return below


@inner
def _simplify(
    node: Node,
    number: int,
    variable: Indices,
    low: Indices,
    high: Indices,
    table: Indices,
    state: Integers,
    slot: Integers,
    mask: Words,
    condition: Words,
    bit: Words,
    support: Words,
    stamp: Integers,
) -> Node:
    """A node that agrees with the given one wherever the conditions hold."""
    if node < 2 or state[STEPS] <= 0 or _reach(node, number, variable, low, high, bit, support, stamp) == 0:
        return node
    state[STEPS] -= 1
    at, on_low, on_high = np.int64(variable[node]), np.int64(low[node]), np.int64(high[node])
    here = bit[at]
    if here == 0:
        new_low = _simplify(
            on_low, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp
        )
        new_high = _simplify(
            on_high, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp
        )
        return _make(np.uint32(at), new_low, new_high, variable, low, high, table, state)
    place = slot[at]
    before = condition[place]
    yes, no = before & mask[at], before & ~mask[at]
    if yes == 0:
        return _simplify(on_low, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp)
    if no == 0:
        return _simplify(on_high, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp)
    condition[place] = no
    new_low = _simplify(on_low, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp)
    condition[place] = yes
    new_high = _simplify(on_high, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp)
    answer = np.int64(-1)
    if new_low == new_high:
        answer = new_low
    if answer < 0 and _reach(new_low, number, variable, low, high, bit, support, stamp) & here:
        other = _simplify(
            new_low, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp
        )
        if other == new_high:
            answer = new_low
    if answer < 0 and _reach(new_high, number, variable, low, high, bit, support, stamp) & here:
        condition[place] = no
        other = _simplify(
            new_high, number, variable, low, high, table, state, slot, mask, condition, bit, support, stamp
        )
        if other == new_low:
            answer = new_high
    condition[place] = before
    if answer < 0:
        answer = _make(np.uint32(at), new_low, new_high, variable, low, high, table, state)
    return answer


@inner
def _make(
    at: np.uint32,
    on_low: Node,
    on_high: Node,
    variable: Indices,
    low: Indices,
    high: Indices,
    table: Indices,
    state: Integers,
) -> Node:
    """The one node with this variable and these children, made if there is none."""
    if on_low == on_high:
        return on_low
    place = _place(at, np.uint32(on_low), np.uint32(on_high), variable, low, high, table)
    if table[place] == 0:
        node = state[NODES]
        state[NODES] += 1
        variable[node], low[node], high[node] = at, on_low, on_high
        table[place] = node
    return np.int64(table[place])


@inner
def _place(
    at: np.uint32,
    on_low: np.uint32,
    on_high: np.uint32,
    variable: Indices,
    low: Indices,
    high: Indices,
    table: Indices,
) -> np.uint64:
    mixed = np.uint64(at) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29)) ^ np.uint64(on_low)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(32)) ^ np.uint64(on_high)) * np.uint64(0x94D049BB133111EB)
    last = np.uint64(len(table) - 1)
    place = (mixed ^ (mixed >> np.uint64(31))) & last
    while table[place] != 0:
        node = table[place]
        if variable[node] == at and low[node] == on_low and high[node] == on_high:
            return place
        place = (place + np.uint64(1)) & last
    return place


@kernel
def enter_all(variable: Indices, low: Indices, high: Indices, table: Indices, state: Integers):
    """Enter the first state[NODES] nodes into an empty table."""
    for node in range(2, state[NODES]):
        table[_place(variable[node], low[node], high[node], variable, low, high, table)] = node
