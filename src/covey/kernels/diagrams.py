"""Evaluation of flat diagrams: EvalBDD, MVEvalBDD, and a sweep over 64 events a word.

Memory layout. `low`, `high` and `variable` are uint32 as in `flat.py`; `run_start` and `run_variable` are its runs.
`truths` has one byte for each variable (`attribute_tests.py`: 0 false, 1 true, 2 undefined); `value` one byte for
each node. In the sweep, `bits[v]` and `value[n]` are rows of 64-bit words, one bit an event.

EvalBDD (Campailla et al., figure 3) gives each node its value from one child, as the truth of its variable chooses.
A node's variable is the same throughout a run, so the choice is made once a run, and the inner loop is one gather.
An undefined test counts as not met.

MVEvalBDD (figure 5) gives star to every node whose variable is undefined, and to every node with a star below.
Undefined runs are filled without looking at a successor: the less of its attributes an event defines, the less
memory is touched. Defined nodes look at both successors, which is why total events cost more here than in EvalBDD.

The sweep evaluates `value = (bit & high) | (~bit & low)` on whole words. Groups of roots (`cache_groups`) keep the
rows of one group within the second-level cache; a node that two groups need is evaluated in each. Indices are
unsigned, so that no wrap-around is checked.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import kernel
from covey.kernels.sorting import sort_integers
from covey.kernels.types import Bytes, Flags, Int64, Int64s, UInt32s, UInt64Table


@kernel
def eval_bdd(run_start: UInt32s, run_variable: UInt32s, low: UInt32s, high: UInt32s, truths: Bytes, value: Bytes):
    """Each node's value, 0 or 1, into `value`."""
    value[0] = 0
    value[1] = 1
    for run in range(np.uintp(len(run_variable))):
        child = high if truths[np.uintp(run_variable[run])] == 1 else low
        for node in range(np.uintp(run_start[run]), np.uintp(run_start[run + np.uintp(1)])):
            value[node] = value[np.uintp(child[node])]


@kernel
def mv_eval_bdd(run_start: UInt32s, run_variable: UInt32s, low: UInt32s, high: UInt32s, truths: Bytes, value: Bytes):
    """Each node's value, 0, 1 or 2 for star, into `value`."""
    value[0] = 0
    value[1] = 1
    for run in range(np.uintp(len(run_variable))):
        truth = truths[np.uintp(run_variable[run])]
        start, end = np.uintp(run_start[run]), np.uintp(run_start[run + np.uintp(1)])
        if truth == 2:
            value[start:end] = 2
        else:
            for node in range(start, end):
                below_low, below_high = value[np.uintp(low[node])], value[np.uintp(high[node])]
                chosen = below_high if truth == 1 else below_low
                # Star is 2, so its bit in either child reaches the result; a chosen 1 beside a star must not stay 3.
                star = (below_low | below_high) & np.uint8(2)
                value[node] = star if star else chosen


@kernel
def sweep(variable: UInt32s, low: UInt32s, high: UInt32s, bits: UInt64Table, value: UInt64Table):
    """The nodes' values for 64 events a word, into the rows of `value`; row 0 is all false, row 1 all true."""
    words = np.uintp(bits.shape[1])
    for word in range(words):
        value[np.uintp(0), word] = np.uint64(0)
        value[np.uintp(1), word] = ~np.uint64(0)
    for node in range(np.uintp(2), np.uintp(len(variable))):
        bit, on_low, on_high = bits[np.uintp(variable[node])], value[np.uintp(low[node])], value[np.uintp(high[node])]
        row = value[node]
        for word in range(words):
            row[word] = on_low[word] ^ (bit[word] & (on_low[word] ^ on_high[word]))


@kernel
def sweep_groups(
    node_start: UInt32s,
    variable: UInt32s,
    low: UInt32s,
    high: UInt32s,
    root_start: UInt32s,
    root_node: UInt32s,
    root_number: UInt32s,
    bits: UInt64Table,
    value: UInt64Table,
    result: UInt64Table,
):
    """The sweep, group by group on the same rows of `value`, copying each root's row to `result[root's number]`."""
    words = np.uintp(bits.shape[1])
    for group in range(np.uintp(len(node_start) - 1)):
        start, end = np.uintp(node_start[group]), np.uintp(node_start[group + np.uintp(1)])
        sweep(variable[start:end], low[start:end], high[start:end], bits, value)
        for at in range(np.uintp(root_start[group]), np.uintp(root_start[group + np.uintp(1)])):
            source, target = value[np.uintp(root_node[at])], result[np.uintp(root_number[at])]
            for word in range(words):
                target[word] = source[word]


@kernel
def cache_groups(variable: UInt32s, low: UInt32s, high: UInt32s, roots: UInt32s, order: UInt32s, most_nodes: Int64):
    """Roots in the given order, grouped so that a group has at most `most_nodes` nodes (or one root).

    Returns sweep_groups' first seven arguments. Each group's nodes keep their order, with the terminals in front.
    """
    member = np.full(len(variable), -1, np.int64)
    local = np.zeros(len(variable), np.uint32)
    local[1] = 1
    stack = np.empty(len(variable), np.int64)
    held = np.empty(len(variable), np.int64)
    node_start, root_start = [np.uint32(0)], [np.uint32(0)]
    nodes = [np.uint32(0) for _ in range(0)]
    root_node = [np.uint32(0) for _ in range(0)]
    at = 0
    while at < len(order):
        group = len(node_start)
        count = 0
        first = at
        while at < len(order):
            before = count
            depth = 0
            root = np.int64(roots[order[at]])
            if root > 1 and member[root] != group:
                member[root] = group
                held[count] = root
                count += 1
                stack[0] = root
                depth = 1
            while depth > 0:
                depth -= 1
                node = stack[depth]
                for child in (np.int64(low[node]), np.int64(high[node])):
                    if child > 1 and member[child] != group:
                        member[child] = group
                        held[count] = child
                        count += 1
                        stack[depth] = child
                        depth += 1
            if count + 2 > most_nodes and at > first:
                count = before
                break
            at += 1
        kept = held[:count].copy()
        sort_integers(kept)
        nodes.append(np.uint32(0))
        nodes.append(np.uint32(1))
        for place in range(count):
            local[kept[place]] = place + 2
            nodes.append(np.uint32(kept[place]))
        for root_at in range(first, at):
            root_node.append(local[roots[order[root_at]]])
        node_start.append(np.uint32(len(nodes)))
        root_start.append(np.uint32(at))
    chosen = np.array(nodes, dtype=np.uint32)
    low_out, high_out = low[chosen], high[chosen]
    for group in range(len(node_start) - 1):
        start, end = node_start[group], node_start[group + 1]
        for place in range(start, end):
            local[chosen[place]] = place - start
        for place in range(start, end):
            low_out[place] = local[low_out[place]]
            high_out[place] = local[high_out[place]]
    return (
        np.array(node_start, dtype=np.uint32),
        variable[chosen],
        low_out,
        high_out,
        np.array(root_start, dtype=np.uint32),
        np.array(root_node, dtype=np.uint32),
        order,
    )


@kernel
def mark_reached(low: UInt32s, high: UInt32s, reached: Flags):
    """Mark what the marked nodes reach; children come before parents."""
    for node in range(len(low) - 1, 1, -1):
        if reached[node]:
            reached[low[node]] = True
            reached[high[node]] = True


@kernel
def top_of(parent: Int64s, node: Int64):
    """The node that stands for all that hang together with one; ways to it are halved on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def link_children(low: UInt32s, high: UInt32s, parent: Int64s):
    """Join each node with its inner children, as a forest in `parent`."""
    for node in range(2, len(low)):
        for child in (low[node], high[node]):
            if child > 1:
                parent[top_of(parent, np.int64(child))] = top_of(parent, np.int64(node))
