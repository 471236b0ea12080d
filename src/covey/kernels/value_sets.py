"""Kernels that compare variables: value sets of one attribute, as labels of cuts.

Memory layout. Variable v has `cuts[v]` labels, an even number, ascending, at `labels[start[v]:]` (int64); `low[v]` and
`high[v]` are the first and the last. Variable v is number `local[v]` of its attribute. The relation of an attribute is
a square of bytes in `relation` (uint8): the byte for a variable n against a variable e of the same attribute is at
`rows[n] + local[e]` and has bit COVERED set where n implies e (e's set has n's in it), bit COVERS where e implies n.
These are the two bits of Li, Hou and Jacobsen's Γ (section 4.2): right-hand and left-hand side. `rows[n]` is -1 where
the attribute has no such square and the labels are compared instead. `points[v]` is 1 where v's set has one value only:
two such variables have nothing to do with each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.types import Bytes, Int32s, Int64, Int64s

COVERED = 1
COVERS = 2


class Sets(NamedTuple):
    """The arrays of all variables."""

    local: Int32s
    rows: Int64s
    relation: Bytes
    start: Int64s
    cuts: Int32s
    low: Int64s
    high: Int64s
    labels: Int64s
    points: Bytes


@inlined
def holds(outer, inner, start, cuts, low, high, labels):
    """Whether the first variable's set has the second one's in it."""
    if low[outer] > low[inner] or high[outer] < high[inner]:
        return False
    if cuts[outer] == 2:
        return True
    # Each piece of the inner set must lie in one piece of the outer: pieces of one kind are as long as can be.
    at, end = start[outer], start[outer] + cuts[outer]
    for piece in range(start[inner], start[inner] + cuts[inner], 2):
        while at < end and labels[at + 1] <= labels[piece]:
            at += 2
        if at >= end or labels[at] > labels[piece] or labels[at + 1] < labels[piece + 1]:
            return False
    return True


@kernel
def relate(new: Int64, known: Int64, start: Int64s, cuts: Int32s, low: Int64s, high: Int64s, labels: Int64s):
    """The two bits of one variable against another one of its attribute."""
    bits = 0
    if holds(known, new, start, cuts, low, high, labels):
        bits |= COVERED
    if holds(new, known, start, cuts, low, high, labels):
        bits |= COVERS
    return bits


@kernel
def relate_to_all(
    new: Int64,
    members: Int64s,
    local: Int32s,
    rows: Int64s,
    relation: Bytes,
    start: Int64s,
    cuts: Int32s,
    low: Int64s,
    high: Int64s,
    labels: Int64s,
):
    """Fill a new variable's row and column of its attribute's square."""
    for known in members:
        bits = relate(new, known, start, cuts, low, high, labels)
        relation[rows[new] + local[known]] = bits
        relation[rows[known] + local[new]] = (bits >> 1) | ((bits & 1) << 1)


@kernel
def direct_consequences(
    given: Int64,
    members: Int64s,
    local: Int32s,
    rows: Int64s,
    relation: Bytes,
    start: Int64s,
    cuts: Int32s,
    low: Int64s,
    high: Int64s,
    labels: Int64s,
):
    """The members that follow from a variable and from no other member that follows from it: a row of the least
    table. Different variables of an attribute have different sets, so there are no rings and the least table is one."""
    following = np.empty(len(members), np.int64)
    found = 0
    for member in members:
        if member != given and _bits(given, member, local, rows, relation, start, cuts, low, high, labels) & COVERED:
            following[found] = member
            found += 1
    kept = 0
    result = np.empty(found, np.int64)
    for i in range(found):
        direct = True
        for j in range(found):
            if i != j and _bits(following[j], following[i], local, rows, relation, start, cuts, low, high,
                                labels) & COVERED:  # fmt: skip
                direct = False
                break
        if direct:
            result[kept] = following[i]
            kept += 1
    return result[:kept]


@inner
def _bits(new, known, local, rows, relation, start, cuts, low, high, labels):
    if rows[new] >= 0:
        return np.int64(relation[rows[new] + local[known]])
    return np.int64(relate(new, known, start, cuts, low, high, labels))
