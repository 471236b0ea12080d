"""Kernels on the roots of a covering table: the one-pass search, and what an insertion changes.

Memory layout. `sets` are the variables (`set_kernels.py`), `store` is this:

- A *form* is a distinct filter. `parent[form]` is the form that it was found covered by, -1 for roots (and unused
  forms); `child`, `after`, `before` link the forms under one parent.
- A *signature* is a set of attributes: a row of `signatures`, with the columns named below. Its attributes are at
  `attributes[ATTRIBUTES:][:WIDTH]`, ascending. BELOW and ABOVE begin lists of the signatures that are proper subsets
  and supersets: rows of `links`, the next row of the list and then `_IN_LINK` signatures, -1 for none. Where
  marks[LINKED] is 0 there are no such lists and all signatures are gone through.
- A root is a *row* in a bucket of its signature: int32 in `cells`, a handle and then one variable for each attribute.
  A bucket is a row of `buckets`, with the columns named below: LENGTH rows from START on, and room for ROOM. Where the
  signature has a PIVOT, each bucket has the roots with one VARIABLE in that column. The buckets of a signature are two
  lists by NEXT and PREVIOUS: the one from column POINTS of the signature on has those whose variable is a single value,
  that from `first_bucket[signature]` on all others. Buckets with the same variable, each of another signature, are a
  list by SAME from `variable_bucket[variable]` on. So a row finds its bucket without going through others, and a single
  value has to do with its own bucket and those that aren't single values.
- A handle is 2 * form, or 2 * form + 1 for the second row that a Boolean form (`boolean[form]` = 1) has. The even row
  of a Boolean form is its hull and answers "covers the new one" only, the odd one is an inner box and answers "is
  covered by the new one" only; what they answer is a candidate and no more. `place_bucket`, `place_row` say where a
  row lies.
- `marks` are the counters below.

The search follows figure 7 of Li, Hou and Jacobsen: both bits for a root together, no further once a root covers the
new form, no right-hand bits any more once the new form covers a root. What a signature can't answer isn't asked: only
roots with the same attributes can give both bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.jit import inlined, inner, kernel
from covey.kernels.sorting import sort_integers
from covey.kernels.types import Bytes, Flag, Int32s, Int32Table, Int64, Int64s, UInt64Table
from covey.kernels.value_sets import COVERED, COVERS, Sets, relate

CELLS_USED, CELLS_WASTED, BUCKETS_USED, FREE_BUCKET, SIGNATURES, LINKS_USED, LINKED, ROOTS, ROWS = range(9)
MARKS = 9

WIDTH, ATTRIBUTES, PIVOT, ROWS_HERE, PIVOT_AT, BELOW, ABOVE, POINTS = range(8)
SIGNATURE_COLUMNS = 8

_START, _LENGTH, _ROOM, _NEXT, _VARIABLE, _SIGNATURE, _SAME, _PREVIOUS = range(8)
BUCKET_COLUMNS = 8

_IN_LINK = 7
LINK_COLUMNS = 8

DONE, CROWDED, UNSURE = 0, 1, 2

_LEAST_ROWS = 2
PIVOT_FROM = 128
"""Rows from which a signature is tried for a pivot; tried again whenever it is four times as large."""
PIVOT_SAMPLE = 256
PIVOT_SHARE = 0.4
"""A pivot must leave less than this to look at, buckets and rows, as a share of a signature's rows."""


class Store(NamedTuple):
    """The arrays of a covering table, as above."""

    marks: Int64s
    parent: Int32s
    child: Int32s
    after: Int32s
    before: Int32s
    boolean: Bytes
    place_bucket: Int32s
    place_row: Int32s
    signatures: Int32Table
    first_bucket: Int32s
    attributes: Int32s
    links: Int32Table
    buckets: Int32Table
    cells: Int32s
    variable_bucket: Int32s


@inlined
def _bits(new, known, sets):
    row = sets.rows[new]
    if row >= 0:
        return np.int64(sets.relation[row + sets.local[known]])
    # Most pairs have nothing to do with each other, which their ends tell without a call.
    below, above = sets.low[known] - sets.low[new], sets.high[known] - sets.high[new]
    if (below > 0 and above > 0) or (below < 0 and above < 0):
        return np.int64(0)
    return relate(new, known, sets.start, sets.cuts, sets.low, sets.high, sets.labels)


@inner
def _bucket_of(signature, variable, store):
    """The bucket of a signature for a variable of its pivot, -1 where there is none."""
    bucket = np.int64(store.variable_bucket[variable])
    while bucket >= 0 and store.buckets[bucket, _SIGNATURE] != signature:
        bucket = np.int64(store.buckets[bucket, _SAME])
    return bucket


@inner
def _visit(signature, width, wanted, everything, sets, store, slots, columns, asked, hits, found, maybe, doubtful):
    """The roots of one signature against the new form, whose variable for an attribute is in `slots`. Gives a form
    that covers it or -1, the bits still wanted, and how many forms are in `hits` and `maybe`."""
    matched = 0
    start, columns_here = store.signatures[signature, ATTRIBUTES], store.signatures[signature, WIDTH]
    for column in range(columns_here):
        variable = slots[store.attributes[start + column]]
        if variable >= 0:
            columns[matched] = column + 1
            asked[matched] = variable
            matched += 1
    possible = 0
    if matched == columns_here:
        possible |= COVERED
    if matched == width:
        possible |= COVERS
    if not possible & wanted:
        return np.int64(-1), wanted, found, doubtful
    pivot, pivot_asked = store.signatures[signature, PIVOT], np.int64(-1)
    for at in range(matched):
        if columns[at] == pivot + 1:
            pivot_asked = asked[at]
    stride = columns_here + 1
    is_point = pivot_asked >= 0 and sets.points[pivot_asked] == 1
    bucket = np.int64(store.first_bucket[signature])
    among_points = False
    while bucket >= 0 or not among_points:
        if bucket < 0:
            among_points = True
            if is_point:
                bucket = _bucket_of(signature, pivot_asked, store)
            else:
                bucket = np.int64(store.signatures[signature, POINTS])
            continue
        if pivot_asked >= 0 and not _bits(pivot_asked, store.buckets[bucket, _VARIABLE], sets) & possible & wanted:
            bucket = np.int64(-1 if is_point and among_points else store.buckets[bucket, _NEXT])
            continue
        row = store.buckets[bucket, _START]
        for _ in range(store.buckets[bucket, _LENGTH]):
            bits = possible & wanted
            for at in range(matched):
                bits &= _bits(asked[at], store.cells[row + columns[at]], sets)
                if bits == 0:
                    break
            if bits:
                handle = np.int64(store.cells[row])
                form = handle >> 1
                if store.boolean[form]:
                    bits &= COVERS if handle & 1 else COVERED
                    if bits & COVERED:
                        maybe[doubtful] = form
                        doubtful += 1
                    elif bits:
                        hits[found] = form
                        found += 1
                else:
                    if bits & COVERED:
                        if not everything:
                            return form, wanted, found, doubtful
                        maybe[doubtful] = form
                        doubtful += 1
                    if bits & COVERS:
                        hits[found] = form
                        found += 1
                        if not everything:
                            wanted &= ~COVERED
            row += stride
        bucket = np.int64(-1 if is_point and among_points else store.buckets[bucket, _NEXT])
    return np.int64(-1), wanted, found, doubtful


@kernel
def search(
    signature: Int64,
    variables: Int32s,
    first: Int64,
    wanted: Int64,
    everything: Flag,
    sets: Sets,
    store: Store,
    slots: Int64s,
    columns: Int64s,
    asked: Int64s,
    hits: Int64s,
    found: Int64,
    maybe: Int64s,
):
    """One pass over the roots that can matter to a form with the given signature and variables[first:].

    Gives a form that certainly covers it or -1; where `hits` ends (forms that it covers; candidates among the Boolean
    ones), and the number of candidates in `maybe` that could cover it. With `everything`, all are told, and none is
    certain: for forms that only stand for a Boolean one.
    """
    # One width for all integers, so that `_visit` is compiled once.
    start, width = np.int64(store.signatures[signature, ATTRIBUTES]), np.int64(store.signatures[signature, WIDTH])
    for column in range(width):
        slots[store.attributes[start + column]] = variables[first + column]
    doubtful = np.int64(0)
    witness, wanted, found, doubtful = _visit(signature, width, wanted, everything, sets, store, slots, columns, asked,
                                              hits, found, maybe, doubtful)  # fmt: skip
    linked = store.marks[LINKED] == 1
    for side in range(2):
        bit = np.int64(COVERED if side == 0 else COVERS)
        if witness >= 0 or not wanted & bit:
            continue
        if linked:
            link = store.signatures[signature, BELOW] if side == 0 else store.signatures[signature, ABOVE]
            while link >= 0 and witness < 0:
                for at in range(1, _IN_LINK + 1):
                    other = np.int64(store.links[link, at])
                    if other < 0 or witness >= 0:
                        break
                    if store.signatures[other, ROWS_HERE] > 0:
                        witness, _, found, doubtful = _visit(other, width, bit, everything, sets, store, slots,
                                                             columns, asked, hits, found, maybe, doubtful)  # fmt: skip
                link = store.links[link, 0]
        else:
            for other in range(store.marks[SIGNATURES]):
                if other != signature and store.signatures[other, ROWS_HERE] > 0 and witness < 0:
                    witness, _, found, doubtful = _visit(other, width, bit, everything, sets, store, slots, columns,
                                                         asked, hits, found, maybe, doubtful)  # fmt: skip
    for column in range(width):
        slots[store.attributes[start + column]] = -1
    return witness, found, doubtful


@kernel
def put_under(form: Int64, parent: Int64, store: Store):
    """A form is covered by another from now on."""
    store.parent[form] = parent
    head = store.child[parent]
    store.after[form] = head
    store.before[form] = -1
    if head >= 0:
        store.before[head] = form
    store.child[parent] = form


@kernel
def take_out(form: Int64, store: Store):
    """A covered form leaves its parent."""
    after, before = store.after[form], store.before[form]
    if before >= 0:
        store.after[before] = after
    else:
        store.child[store.parent[form]] = after
    if after >= 0:
        store.before[after] = before
    store.parent[form] = -1


@kernel
def orphan(form: Int64, store: Store):
    """All forms directly under a form leave it; gives them."""
    count = 0
    at = store.child[form]
    while at >= 0:
        count += 1
        at = store.after[at]
    orphans = np.empty(count, np.int64)
    at = store.child[form]
    for i in range(count):
        orphans[i] = at
        store.parent[at] = -1
        at = store.after[at]
    store.child[form] = -1
    return orphans


@kernel
def crowded(signature: Int64, store: Store):
    """Whether one more row of a signature could need more cells or buckets than there are."""
    rows = np.int64(store.signatures[signature, ROWS_HERE]) + 8
    cells = 6 * rows * (store.signatures[signature, WIDTH] + 1)
    if store.marks[CELLS_USED] + cells > len(store.cells):
        return True
    return store.marks[BUCKETS_USED] + rows > len(store.buckets)


@inner
def _new_bucket(signature, variable, room, store, sets):
    bucket = store.marks[FREE_BUCKET]
    if bucket >= 0:
        store.marks[FREE_BUCKET] = store.buckets[bucket, _NEXT]
    else:
        bucket = store.marks[BUCKETS_USED]
        store.marks[BUCKETS_USED] += 1
    store.buckets[bucket, _SIGNATURE] = signature
    store.buckets[bucket, _VARIABLE] = variable
    store.buckets[bucket, _LENGTH] = 0
    store.buckets[bucket, _ROOM] = room
    store.buckets[bucket, _START] = store.marks[CELLS_USED]
    store.marks[CELLS_USED] += room * (store.signatures[signature, WIDTH] + 1)
    is_point = variable >= 0 and sets.points[variable] == 1
    head = np.int64(store.signatures[signature, POINTS] if is_point else store.first_bucket[signature])
    store.buckets[bucket, _NEXT] = head
    store.buckets[bucket, _PREVIOUS] = -1
    if head >= 0:
        store.buckets[head, _PREVIOUS] = bucket
    if is_point:
        store.signatures[signature, POINTS] = bucket
    else:
        store.first_bucket[signature] = bucket
    if variable >= 0:
        store.buckets[bucket, _SAME] = store.variable_bucket[variable]
        store.variable_bucket[variable] = bucket
    return bucket


@inner
def _free_bucket(bucket, store):
    signature, variable = store.buckets[bucket, _SIGNATURE], store.buckets[bucket, _VARIABLE]
    before, after = store.buckets[bucket, _PREVIOUS], store.buckets[bucket, _NEXT]
    if after >= 0:
        store.buckets[after, _PREVIOUS] = before
    if before >= 0:
        store.buckets[before, _NEXT] = after
    elif store.first_bucket[signature] == bucket:
        store.first_bucket[signature] = after
    else:
        store.signatures[signature, POINTS] = after
    if variable >= 0:
        at, last = np.int64(store.variable_bucket[variable]), np.int64(-1)
        while at != bucket:
            last = at
            at = np.int64(store.buckets[at, _SAME])
        if last >= 0:
            store.buckets[last, _SAME] = store.buckets[bucket, _SAME]
        else:
            store.variable_bucket[variable] = store.buckets[bucket, _SAME]
    store.marks[CELLS_WASTED] += store.buckets[bucket, _ROOM] * (store.signatures[signature, WIDTH] + 1)
    store.buckets[bucket, _NEXT] = store.marks[FREE_BUCKET]
    store.marks[FREE_BUCKET] = bucket


@inner
def _place(handle, signature, variables, first, store, sets):
    """Write a row into the bucket where it belongs."""
    width = np.int64(store.signatures[signature, WIDTH])
    stride = width + 1
    pivot = store.signatures[signature, PIVOT]
    variable = np.int64(-1) if pivot < 0 else np.int64(variables[first + pivot])
    bucket = np.int64(store.first_bucket[signature]) if pivot < 0 else _bucket_of(signature, variable, store)
    if bucket < 0:
        bucket = np.int64(_new_bucket(signature, variable, _LEAST_ROWS, store, sets))
    length, room = np.int64(store.buckets[bucket, _LENGTH]), np.int64(store.buckets[bucket, _ROOM])
    if length == room:
        start, old = store.marks[CELLS_USED], store.buckets[bucket, _START]
        store.cells[start : start + length * stride] = store.cells[old : old + length * stride]
        store.marks[CELLS_USED] += 2 * room * stride
        store.marks[CELLS_WASTED] += room * stride
        store.buckets[bucket, _START] = start
        store.buckets[bucket, _ROOM] = 2 * room
    at = store.buckets[bucket, _START] + length * stride
    store.cells[at] = handle
    for column in range(width):
        store.cells[at + 1 + column] = variables[first + column]
    store.buckets[bucket, _LENGTH] = length + 1
    store.place_bucket[handle] = bucket
    store.place_row[handle] = length


@inner
def _best_pivot(signature, rows, store, sets):
    """The column by which a search has the least to look at, -1 where none is worth it: a bucket for each distinct
    variable that isn't a single value, and the rows in related buckets, whose share is taken from a sample of pairs."""
    stride = np.int64(store.signatures[signature, WIDTH]) + 1
    count = len(rows) // stride
    best, least = np.int64(-1), PIVOT_SHARE * count
    for column in range(store.signatures[signature, WIDTH]):
        related = 0
        state = np.uint64(88172645463325252)
        for _ in range(PIVOT_SAMPLE):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            left = np.int64(state >> np.uint64(33)) % count
            right = np.int64(state & np.uint64(0x7FFFFFFF)) % count
            if _bits(np.int64(rows[left * stride + 1 + column]), np.int64(rows[right * stride + 1 + column]), sets):
                related += 1
        ordered = rows[column + 1 :: stride].copy()
        sort_integers(ordered)
        distinct = 1
        for row in range(1, count):
            distinct += ordered[row] != ordered[row - 1] and sets.points[ordered[row]] == 0
        cost = distinct + count * related / PIVOT_SAMPLE
        if cost < least:
            best, least = np.int64(column), cost
    return best


@inner
def _divide(signature, store, sets):
    """Put a signature's rows into buckets by the variable in one column, where that helps."""
    stride = np.int64(store.signatures[signature, WIDTH]) + 1
    rows = np.empty(store.signatures[signature, ROWS_HERE] * stride, np.int32)
    used = 0
    for head in (store.first_bucket[signature], store.signatures[signature, POINTS]):
        bucket = np.int64(head)
        while bucket >= 0:
            start, length = store.buckets[bucket, _START], store.buckets[bucket, _LENGTH] * stride
            rows[used : used + length] = store.cells[start : start + length]
            used += length
            bucket = np.int64(store.buckets[bucket, _NEXT])
    pivot = _best_pivot(signature, rows, store, sets)
    if pivot == store.signatures[signature, PIVOT]:
        return
    while store.first_bucket[signature] >= 0:
        _free_bucket(store.first_bucket[signature], store)
    while store.signatures[signature, POINTS] >= 0:
        _free_bucket(store.signatures[signature, POINTS], store)
    store.signatures[signature, PIVOT] = pivot
    for row in range(0, used, stride):
        _place(np.int64(rows[row]), signature, rows, row + 1, store, sets)


@kernel
def add_row(handle: Int64, signature: Int64, variables: Int32s, first: Int64, store: Store, sets: Sets):
    """A root's row. `crowded` must have said no."""
    _place(handle, signature, variables, first, store, sets)
    store.marks[ROWS] += 1
    store.signatures[signature, ROWS_HERE] += 1
    if (
        store.signatures[signature, ROWS_HERE] >= store.signatures[signature, PIVOT_AT]
        and store.signatures[signature, WIDTH] > 0
    ):
        store.signatures[signature, PIVOT_AT] = 4 * store.signatures[signature, ROWS_HERE]
        _divide(signature, store, sets)


@kernel
def drop_row(handle: Int64, store: Store):
    """Take a row out; the last row of its bucket takes its place."""
    bucket, row = np.int64(store.place_bucket[handle]), np.int64(store.place_row[handle])
    signature = np.int64(store.buckets[bucket, _SIGNATURE])
    stride = np.int64(store.signatures[signature, WIDTH]) + 1
    last = np.int64(store.buckets[bucket, _LENGTH]) - 1
    start = store.buckets[bucket, _START]
    if row != last:
        for column in range(stride):
            store.cells[start + row * stride + column] = store.cells[start + last * stride + column]
        store.place_row[store.cells[start + row * stride]] = row
    store.buckets[bucket, _LENGTH] = last
    store.signatures[signature, ROWS_HERE] -= 1
    store.marks[ROWS] -= 1
    if last == 0:
        _free_bucket(bucket, store)


@kernel
def insert_forms(
    begin: Int64,
    forms: Int64s,
    signatures: Int64s,
    firsts: Int64s,
    variables: Int32s,
    sets: Sets,
    store: Store,
    slots: Int64s,
    columns: Int64s,
    asked: Int64s,
    witnesses: Int64s,
    hit_ends: Int64s,
    hits: Int64s,
    maybe: Int64s,
):
    """Conjunctions one after the other, each as if it came alone: which form covers it, or which roots it covers, and
    the change that follows. Stops before one that needs room (CROWDED), or that may have to do with a Boolean form and
    is for the caller to decide (UNSURE). Gives where it stopped and why."""
    found = np.int64(hit_ends[begin - 1]) if begin else np.int64(0)
    for number in range(begin, len(forms)):
        form, signature = np.int64(forms[number]), np.int64(signatures[number])
        first = np.int64(firsts[number])
        if crowded(signature, store):
            return number, CROWDED
        witness, end, doubtful = search(signature, variables, first, np.int64(COVERED | COVERS), False, sets, store,
                                        slots, columns, asked, hits, found, maybe)  # fmt: skip
        witnesses[number] = witness
        if witness >= 0:
            put_under(form, witness, store)
            hit_ends[number] = found
            continue
        if doubtful:
            return number, UNSURE
        for at in range(found, end):
            if store.boolean[hits[at]]:
                return number, UNSURE
        for at in range(found, end):
            drop_row(2 * hits[at], store)
            put_under(hits[at], form, store)
        store.marks[ROOTS] += 1 - (end - found)
        add_row(2 * form, signature, variables, first, store, sets)
        found = end
        hit_ends[number] = found
    return len(forms), DONE


@kernel
def related_signatures(signature: Int64, masks: UInt64Table, related: Int64s):
    """The signatures below this number that are proper subsets or supersets of it, in `related`: subsets as they are,
    supersets as ~number. Gives how many there are."""
    count = 0
    words = masks.shape[1]
    for other in range(signature):
        subset, superset = np.uint64(0), np.uint64(0)
        for word in range(words):
            subset |= masks[other, word] & ~masks[signature, word]
            superset |= masks[signature, word] & ~masks[other, word]
        if subset == 0 or superset == 0:
            related[count] = other if subset == 0 else ~other
            count += 1
    return count


@inner
def _enlist(column, signature, member, store):
    link = store.signatures[signature, column]
    if link >= 0:
        for at in range(1, _IN_LINK + 1):
            if store.links[link, at] < 0:
                store.links[link, at] = member
                return
    new = store.marks[LINKS_USED]
    store.marks[LINKS_USED] += 1
    store.links[new, 0] = link
    store.links[new, 1] = member
    store.links[new, 2:] = -1
    store.signatures[signature, column] = new


@kernel
def link_related(signature: Int64, related: Int64s, store: Store):
    """Enter a new signature into the lists of its subsets and supersets, and them into its own. There must be two
    free links for each of them."""
    for other in related:
        lower, upper = (other, signature) if other >= 0 else (signature, ~other)
        _enlist(BELOW, upper, lower, store)
        _enlist(ABOVE, lower, upper, store)


@kernel
def repack(store: Store, cells: Int32s):
    """Move all rows into fresh cells, without gaps between buckets. `cells` must have room for twice the rows."""
    used = np.int64(0)
    for signature in range(store.marks[SIGNATURES]):
        stride = np.int64(store.signatures[signature, WIDTH]) + 1
        for head in (store.first_bucket[signature], store.signatures[signature, POINTS]):
            bucket = np.int64(head)
            while bucket >= 0:
                length = np.int64(store.buckets[bucket, _LENGTH])
                start = store.buckets[bucket, _START]
                cells[used : used + length * stride] = store.cells[start : start + length * stride]
                store.buckets[bucket, _START] = used
                store.buckets[bucket, _ROOM] = max(length, _LEAST_ROWS)
                used += store.buckets[bucket, _ROOM] * stride
                bucket = np.int64(store.buckets[bucket, _NEXT])
    store.marks[CELLS_USED] = used
    store.marks[CELLS_WASTED] = 0
