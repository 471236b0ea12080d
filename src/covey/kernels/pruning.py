"""Kernels of pruning: what each pruning would change, cutting a part out of a tree, and the queue over all trees.

Memory layout. All trees lie in three node arrays, each tree in preorder: `kind` (LEAF, ALL or ANY), `size` (nodes of
the subtree that starts here) and `leaf` (number of the leaf, -1 above leaves). Tree `t` starts at `start[t]` and has
`length[t]` nodes; the node after `i`'s subtree is `i + size[i]`, and positions below are relative to the tree's start.
A cut moves what follows it to the left, so a tree stays contiguous and keeps its place.

`step[t]` is the best next pruning of tree t as three integers of which less is better: degradation on the grid of
GRID, minus the throughput improvement, minus the bytes saved. `order` says in which order a dimension compares them.
The queue is a binary heap of tree numbers, `place[t]` being where tree t stands in it (-1: nowhere), so a tree is in
it once and can be taken out of the middle. Equal steps go by tree number, equal prunings of one tree by position.

Cost. Looking at a tree costs its nodes plus, for each possible pruning, the nodes above it: for every child of a node
what its siblings amount to is kept (running from the left, then from the right), so that leaving one out or changing
one is a single merge at each level.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.types import Flag, Float64s, Float64Table, Int8s, Int32s, Int64, Int64s, Int64Table

LEAF, ALL, ANY = range(3)
NETWORK, THROUGHPUT, MEMORY = range(3)
ASSOCIATIONS, BYTES, PREDICATES, DEGRADATION = range(4)

GRID = 1 << 40
"""Degradations are compared in steps of 2^-40: what differs by less is a tie, not a rounding error that decides."""
NEVER = 1 << 24
"""Fulfilled predicates that a constant FALSE takes: more than any tree has, and far from an overflow when added up."""

_AND_TEXT, _OR_TEXT, _PARENTHESES = 5, 4, 2


class Trees(NamedTuple):
    """The node arrays, and where each tree lies."""

    kind: Int8s
    size: Int32s
    leaf: Int32s
    start: Int64s
    length: Int64s


class Leaves(NamedTuple):
    """What each distinct leaf counts for: `uses` is how many nodes of living trees it stands in."""

    chance: Float64s
    bytes: Int64s
    fulfilled: Int64s
    predicates: Int64s
    uses: Int64s


class States(NamedTuple):
    """For each tree: estimates of the original (`base`) and of the present tree, and its best next pruning."""

    base: Float64Table
    base_fulfilled: Int64s
    now: Float64Table
    degradation: Int64s
    done: Int64s
    possible: Int64s
    node: Int64s
    step: Int64Table


class Queue(NamedTuple):
    """The heap, where each tree stands in it, and its size as an array of one."""

    heap: Int64s
    place: Int64s
    size: Int64s


class Scratch(NamedTuple):
    """Working space for one tree, as long as the longest."""

    value: Float64Table
    others: Float64Table
    fulfilled: Int64s
    other_fulfilled: Int64s
    parent: Int64s
    children: Int64s
    conjunctions: Int64s
    bytes: Int64s
    list: Int64s


class Log(NamedTuple):
    """Prunings done: a row (tree, degradation, throughput, bytes) each, and the nodes that each took out."""

    rows: Int64Table
    starts: Int64s
    kind: Int8s
    size: Int32s
    leaf: Int32s


@inlined
def _lift(kind, strict, low, mean, high):
    """A child's estimate in the form in which it is merged with its siblings'."""
    if kind == ALL:
        return 1.0 - low, mean, high
    return (1.0 - low if strict else low), 1.0 - mean, high


@inlined
def _merge(kind, strict, a, b, c, x, y, z):
    if kind == ALL:
        return a + x, b * y, min(c, z)
    return (a + x if strict else max(a, x)), b * y, c + z


@inlined
def _lower(kind, strict, a, b, c):
    """The estimate of a node from its merged children."""
    if kind == ALL:
        return max(0.0, 1.0 - a), b, c
    return (max(0.0, 1.0 - a) if strict else a), 1.0 - b, min(1.0, c)


@inner
def _estimate(t, trees, leaves, scratch, strict):
    """Fill the scratch for a tree, bottom up. Gives how many prunings its conjunctions have in them."""
    first, length = trees.start[t], trees.length[t]
    kind, size = trees.kind[first : first + length], trees.size[first : first + length]
    value, others, kids = scratch.value, scratch.others, scratch.list
    fulfilled, other_fulfilled = scratch.fulfilled, scratch.other_fulfilled
    scratch.parent[0] = -1
    possible = 0
    for i in range(length - 1, -1, -1):
        scratch.conjunctions[i] = 0
        if kind[i] == LEAF:
            leaf = trees.leaf[first + i]
            value[i, :] = leaves.chance[leaf]
            fulfilled[i] = leaves.fulfilled[leaf]
            scratch.bytes[i] = leaves.bytes[leaf]
            scratch.children[i] = 0
            continue
        every = kind[i] == ALL
        count, kid = 0, i + 1
        while kid < i + size[i]:
            kids[count] = kid
            count += 1
            kid += size[kid]
        text = (count - 1) * (_AND_TEXT if every else _OR_TEXT)
        a, b, c, f = 0.0, 1.0, (1.0 if every else 0.0), (0 if every else NEVER)
        for j in range(count):
            kid = kids[j]
            scratch.parent[kid] = i
            scratch.conjunctions[i] += scratch.conjunctions[kid]
            text += scratch.bytes[kid] + (_PARENTHESES if every and kind[kid] == ANY else 0)
            others[kid, 0], others[kid, 1], others[kid, 2] = a, b, c
            other_fulfilled[kid] = f
            x, y, z = _lift(kind[i], strict, value[kid, 0], value[kid, 1], value[kid, 2])
            a, b, c = _merge(kind[i], strict, a, b, c, x, y, z)
            f = f + fulfilled[kid] if every else min(f, fulfilled[kid])
        value[i, 0], value[i, 1], value[i, 2] = _lower(kind[i], strict, a, b, c)
        fulfilled[i] = f
        a, b, c, f = 0.0, 1.0, (1.0 if every else 0.0), (0 if every else NEVER)
        for j in range(count - 1, -1, -1):
            kid = kids[j]
            others[kid, 0], others[kid, 1], others[kid, 2] = _merge(
                kind[i], strict, others[kid, 0], others[kid, 1], others[kid, 2], a, b, c
            )
            other_fulfilled[kid] = other_fulfilled[kid] + f if every else min(other_fulfilled[kid], f)
            x, y, z = _lift(kind[i], strict, value[kid, 0], value[kid, 1], value[kid, 2])
            a, b, c = _merge(kind[i], strict, a, b, c, x, y, z)
            f = f + fulfilled[kid] if every else min(f, fulfilled[kid])
        scratch.bytes[i] = text
        scratch.children[i] = count
        if every:
            scratch.conjunctions[i] += 1
            possible += count - 1
    return possible


@inner
def _saved(c, kind, size, scratch):
    """Bytes that go with a child of a conjunction: itself, an AND, and parentheses that aren't needed any more."""
    p = scratch.parent[c]
    saved = scratch.bytes[c] + _AND_TEXT + (_PARENTHESES if kind[c] == ANY else 0)
    if scratch.children[p] == 2:
        left = p + 1
        sibling = left + size[left] if c == left else left
        if kind[sibling] == ANY:
            saved += _PARENTHESES
    return saved


@inner
def _plan(t, trees, leaves, states, scratch, order, inner_first, strict):
    """Find the best next pruning of a tree, and note its present estimates."""
    states.possible[t] = _estimate(t, trees, leaves, scratch, strict)
    first, length = trees.start[t], trees.length[t]
    kind, size = trees.kind[first : first + length], trees.size[first : first + length]
    states.now[t, :] = scratch.value[0]
    states.node[t] = -1
    base, best = states.base[t], states.step[t]
    step = np.empty(3, np.int64)
    for c in range(1, length):
        node = scratch.parent[c]
        if kind[node] != ALL or (inner_first and scratch.conjunctions[c]):
            continue
        low, mean, high = _lower(ALL, strict, scratch.others[c, 0], scratch.others[c, 1], scratch.others[c, 2])
        fulfilled = scratch.other_fulfilled[c]
        while node:
            up = scratch.parent[node]
            x, y, z = _lift(kind[up], strict, low, mean, high)
            x, y, z = _merge(
                kind[up], strict, scratch.others[node, 0], scratch.others[node, 1], scratch.others[node, 2], x, y, z
            )
            low, mean, high = _lower(kind[up], strict, x, y, z)
            rest = scratch.other_fulfilled[node]
            fulfilled = fulfilled + rest if kind[up] == ALL else min(fulfilled, rest)
            node = up
        worst = max(0.0, max(low - base[0], max(mean - base[1], high - base[2])))
        step[NETWORK] = np.int64(np.floor(worst * GRID + 0.5))
        step[THROUGHPUT] = states.base_fulfilled[t] - fulfilled
        step[MEMORY] = -_saved(c, kind, size, scratch)
        if states.node[t] < 0 or _better(step, best, order):
            states.node[t] = c
            best[:] = step


@inlined
def _better(a, b, order):
    for column in order:
        if a[column] != b[column]:
            return a[column] < b[column]
    return False


@inner
def _drop(t, at, count, trees, path, above):
    """Take `count` nodes at `at` out of a tree; the first `above` nodes of `path` lie over them."""
    first, length = trees.start[t], trees.length[t]
    for j in range(above):
        trees.size[first + path[j]] -= count
    for i in range(first + at, first + length - count):
        trees.kind[i] = trees.kind[i + count]
        trees.size[i] = trees.size[i + count]
        trees.leaf[i] = trees.leaf[i + count]
    trees.length[t] = length - count


@inner
def _cut(t, c, trees, path):
    """Remove the subtree at c, a child of a conjunction. A conjunction of one is that one, and a disjunction that
    thereby comes to stand in a disjunction melts into it."""
    first = trees.start[t]
    node, above = 0, 0
    while node != c:
        path[above] = node
        above += 1
        node += 1
        while node + trees.size[first + node] <= c:
            node += trees.size[first + node]
    _drop(t, c, trees.size[first + c], trees, path, above)
    p = path[above - 1]
    if trees.size[first + p] == 1 + trees.size[first + p + 1]:
        _drop(t, p, 1, trees, path, above - 1)
        if above > 1 and trees.kind[first + p] == ANY:
            _drop(t, p, 1, trees, path, above - 1)


@inner
def _count(first, last, kinds, leaf, leaves, totals, sign):
    """Enter nodes in the totals of associations and predicates, or with sign -1 take them out."""
    for i in range(first, last):
        if kinds[i] == LEAF:
            one = leaf[i]
            totals[ASSOCIATIONS] += sign * leaves.predicates[one]
            if sign > 0 and leaves.uses[one] == 0:
                totals[PREDICATES] += leaves.predicates[one] > 0
            leaves.uses[one] += sign
            if sign < 0 and leaves.uses[one] == 0:
                totals[PREDICATES] -= leaves.predicates[one] > 0


# The queue.


@inlined
def _before(step, order, a, b):
    for column in order:
        if step[a, column] != step[b, column]:
            return step[a, column] < step[b, column]
    return a < b


@inner
def _rise(at, queue, step, order):
    heap, place = queue.heap, queue.place
    t = heap[at]
    while at:
        up = (at - 1) >> 1
        if not _before(step, order, t, heap[up]):
            break
        heap[at] = heap[up]
        place[heap[at]] = at
        at = up
    heap[at] = t
    place[t] = at


@inner
def _sink(at, queue, step, order):
    heap, place, size = queue.heap, queue.place, queue.size[0]
    t = heap[at]
    while 2 * at + 1 < size:
        down = 2 * at + 1
        if down + 1 < size and _before(step, order, heap[down + 1], heap[down]):
            down += 1
        if not _before(step, order, heap[down], t):
            break
        heap[at] = heap[down]
        place[heap[at]] = at
        at = down
    heap[at] = t
    place[t] = at


@inner
def _leave(t, queue, step, order):
    """Take a tree out of the queue, wherever it stands."""
    at = queue.place[t]
    if at < 0:
        return
    queue.place[t] = -1
    queue.size[0] -= 1
    last = queue.heap[queue.size[0]]
    if last != t:
        queue.heap[at] = last
        queue.place[last] = at
        _rise(at, queue, step, order)
        _sink(queue.place[last], queue, step, order)


@inner
def _enter(t, queue, states, order):
    if states.node[t] >= 0:
        queue.heap[queue.size[0]] = t
        queue.size[0] += 1
        _rise(queue.size[0] - 1, queue, states.step, order)


@kernel
def admit(
    chosen: Int64s,
    trees: Trees,
    leaves: Leaves,
    states: States,
    queue: Queue,
    totals: Int64s,
    scratch: Scratch,
    order: Int64s,
    inner_first: Flag,
    strict: Flag,
    entry_bytes: Int64,
):
    """Trees that are whole: estimate them, count them, and queue their first prunings."""
    for t in chosen:
        first, length = trees.start[t], trees.length[t]
        _estimate(t, trees, leaves, scratch, strict)
        states.base[t, :] = scratch.value[0]
        states.base_fulfilled[t] = scratch.fulfilled[0]
        states.degradation[t] = 0
        states.done[t] = 0
        totals[BYTES] += scratch.bytes[0] + entry_bytes
        _count(first, first + length, trees.kind, trees.leaf, leaves, totals, 1)
        _plan(t, trees, leaves, states, scratch, order, inner_first, strict)
        queue.place[t] = -1
        _enter(t, queue, states, order)


@kernel
def withdraw(
    t: Int64,
    trees: Trees,
    leaves: Leaves,
    states: States,
    queue: Queue,
    totals: Int64s,
    scratch: Scratch,
    order: Int64s,
    strict: Flag,
    entry_bytes: Int64,
):
    """Take a tree's share out of the totals, and the tree out of the queue."""
    first, length = trees.start[t], trees.length[t]
    _estimate(t, trees, leaves, scratch, strict)
    totals[BYTES] -= scratch.bytes[0] + entry_bytes
    totals[DEGRADATION] -= states.degradation[t]
    _count(first, first + length, trees.kind, trees.leaf, leaves, totals, -1)
    _leave(t, queue, states.step, order)


@kernel
def replan(
    chosen: Int64s,
    trees: Trees,
    leaves: Leaves,
    states: States,
    queue: Queue,
    scratch: Scratch,
    order: Int64s,
    inner_first: Flag,
    strict: Flag,
):
    """Queue the present trees anew, by another order."""
    queue.size[0] = 0
    for t in chosen:
        _plan(t, trees, leaves, states, scratch, order, inner_first, strict)
        queue.place[t] = -1
        _enter(t, queue, states, order)


@kernel
def prune(
    limit: Int64,
    most: Int64s,
    goals: Int64s,
    trees: Trees,
    leaves: Leaves,
    states: States,
    queue: Queue,
    totals: Int64s,
    scratch: Scratch,
    log: Log,
    order: Int64s,
    inner_first: Flag,
    strict: Flag,
):
    """Do the best pruning of all until `limit` are done, the queue is empty, the next would exceed `most` (degradation
    of one tree, sum over all trees), or totals are down to one of the `goals`. Gives how many were done."""
    done, logged = 0, 0
    while done < limit and queue.size[0]:
        if totals[ASSOCIATIONS] <= goals[0] or totals[BYTES] <= goals[1] or totals[PREDICATES] <= goals[2]:
            break
        t = queue.heap[0]
        worse, c = states.step[t, NETWORK], states.node[t]
        total = totals[DEGRADATION] - states.degradation[t] + worse
        if worse > most[0] or total > most[1]:
            break
        first = trees.start[t]
        log.rows[done, 0] = t
        log.rows[done, 1:] = states.step[t]
        log.starts[done] = logged
        count = trees.size[first + c]
        for i in range(count):
            log.kind[logged + i] = trees.kind[first + c + i]
            log.size[logged + i] = trees.size[first + c + i]
            log.leaf[logged + i] = trees.leaf[first + c + i]
        _count(logged, logged + count, log.kind, log.leaf, leaves, totals, -1)
        logged += count
        totals[BYTES] += states.step[t, MEMORY]
        totals[DEGRADATION] = total
        states.degradation[t] = worse
        states.done[t] += 1
        _cut(t, c, trees, scratch.list)
        _plan(t, trees, leaves, states, scratch, order, inner_first, strict)
        done += 1
        if states.node[t] < 0:
            _leave(t, queue, states.step, order)
        else:
            _sink(0, queue, states.step, order)
    log.starts[done] = logged
    return done
