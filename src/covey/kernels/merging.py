"""Merging's kernels: covering among many rows, events in sets, and the events of mergers and of their parts.

Memory layout. Set `s` has the code intervals `[piece[i], piece[i + 1])` for i = set_first[s], set_first[s] + 2, ...
before set_first[s + 1], ascending. Row `r` has the sets `row_sets[row_first[r] : row_first[r + 1]]`, in the order of
their attributes. Rows with the same attributes are a group: `member[group_first[g] : group_first[g + 1]]` are its rows,
sorted by the low end of the sets at position `pivot[g]`; `low` and `high` are those sets' first and last ends, in the
order of `member`. `tallest` has the greatest high end of each 64 members in turn, group after group from
`tallest_first[g]`.

Bits of events: bit e % 64 of word e // 64. A candidate `c` is a merger of rows: `merger_sets[merger_first[c] :
merger_first[c + 1]]` are its sets, `part[part_first[c] : part_first[c + 1]]` the rows of its parts.
"""

from __future__ import annotations

import numpy as np

from covey.kernels.jit import inner, kernel
from covey.kernels.sorting import first_above
from covey.kernels.types import Flags, Int32s, Int32Table, Int64, Int64s, UInt64s, UInt64Table
from covey.kernels.vectors import count_bits

BLOCK = 64


@inner
def set_covers(outer, inner, set_first, piece):
    """Whether one set has all code intervals of another in its own."""
    if outer == inner:
        return True
    at, stop = set_first[outer], set_first[outer + 1]
    for i in range(set_first[inner], set_first[inner + 1], 2):
        low, high = piece[i], piece[i + 1]
        while at < stop and piece[at + 1] < high:
            at += 2
        if at >= stop or piece[at] > low:
            return False
    return True


@kernel
def tallest_of(member_first: Int64s, high: Int32s, tallest_first: Int64s):
    """The greatest high end of each block of a group's members."""
    tallest = np.full(tallest_first[-1], -1, np.int32)
    for group in range(len(member_first) - 1):
        for at in range(member_first[group], member_first[group + 1]):
            block = tallest_first[group] + (at - member_first[group]) // BLOCK
            tallest[block] = max(tallest[block], high[at])
    return tallest


@kernel
def find_covering(
    pair_outer: Int64s,
    pair_inner: Int64s,
    position_first: Int64s,
    position: Int64s,
    group_first: Int64s,
    member: Int64s,
    pivot: Int64s,
    low: Int32s,
    high: Int32s,
    tallest_first: Int64s,
    tallest: Int32s,
    row_first: Int64s,
    row_sets: Int64s,
    set_first: Int64s,
    piece: Int32s,
    may_cover: Flags,
    covering: Int64s,
):
    """For each row without one yet, a row that covers it, among pairs of groups; into `covering`, -1 for none.

    `position[position_first[p] + k]`: where the inner group's rows have the k-th attribute of the outer group's.
    """
    for pair in range(len(pair_outer)):
        outer, inner = pair_outer[pair], pair_inner[pair]
        shift = position_first[pair]
        width = position_first[pair + 1] - shift
        begin, end = group_first[outer], group_first[outer + 1]
        for i in range(group_first[inner], group_first[inner + 1]):
            row = member[i]
            if covering[row] >= 0:
                continue
            start = row_first[row]
            if width == 0:
                if member[begin] != row and may_cover[member[begin]]:
                    covering[row] = member[begin]
                continue
            pivot_set = row_sets[start + position[shift + pivot[outer]]]
            lowest, highest = piece[set_first[pivot_set]], piece[set_first[pivot_set + 1] - 1]
            stop = first_above(low, lowest, begin, end)
            at = begin
            while at < stop and covering[row] < 0:
                if (at - begin) % BLOCK == 0 and tallest[tallest_first[outer] + (at - begin) // BLOCK] < highest:
                    at += BLOCK
                    continue
                other = member[at]
                if high[at] >= highest and other != row and may_cover[other]:
                    covers = True
                    first = row_first[other]
                    for k in range(width):
                        if not set_covers(row_sets[first + k], row_sets[start + position[shift + k]], set_first, piece):
                            covers = False
                            break
                    if covers:
                        covering[row] = other
                at += 1


@kernel
def events_in_sets(
    codes: Int32Table, attribute_of: Int64s, first_set: Int64, set_first: Int64s, piece: Int32s, bits: UInt64Table
):
    """Set the bits of the events in each set from `first_set` on; `codes[attribute, event]` is an event's code."""
    for one in range(first_set, len(set_first) - 1):
        attribute = attribute_of[one]
        for event in range(codes.shape[1]):
            code = codes[attribute, event]
            for i in range(set_first[one], set_first[one + 1], 2):
                if piece[i] <= code and code < piece[i + 1]:
                    bits[one, event >> 6] |= np.uint64(1) << np.uint64(event & 63)
                    break


@inner
def _is_among(one, first, stop, sets):
    found = False
    for i in range(first, stop):
        found |= sets[i] == one
    return found


@inner
def _count(asked, begin, end, merger_sets, own_first, own_sets, parts, bits, allowed):
    """Events of the merger's sets that are asked for, and those of them in all own sets of some part."""
    of_merger = of_parts = 0
    for word in range(len(allowed)):
        matched = allowed[word]
        for i in range(begin, end):
            if asked[i - begin]:
                matched &= bits[merger_sets[i], word]
        if matched == 0:
            continue
        of_merger += count_bits(matched)
        wanted = np.uint64(0)
        for p in range(parts):
            own = matched
            for i in range(own_first[p], own_first[p + 1]):
                own &= bits[own_sets[i], word]
            wanted |= own
        of_parts += count_bits(wanted)
    return of_merger, of_parts


@kernel
def count_candidates(
    merger_first: Int64s,
    merger_sets: Int64s,
    part_first: Int64s,
    part: Int64s,
    row_first: Int64s,
    row_sets: Int64s,
    bits: UInt64Table,
    allowed: UInt64s,
    enough: Int64,
):
    """For each candidate the sample events that match it, and those of them that match one of its parts.

    Where fewer than `enough` events match it, only constraints are asked for in which the parts differ: those that all
    of them have are left out on both sides, and how many events meet those is the third number (otherwise, all events).
    A part's *own* sets are those that aren't the merger's too.
    """
    candidates = len(merger_first) - 1
    found = np.zeros((candidates, 3), np.int64)
    events = 0
    for word in range(len(allowed)):
        events += count_bits(allowed[word])
    for c in range(candidates):
        begin, end = merger_first[c], merger_first[c + 1]
        parts = part_first[c + 1] - part_first[c]
        size = 0
        for p in range(part_first[c], part_first[c + 1]):
            size += row_first[part[p] + 1] - row_first[part[p]]
        own_sets = np.empty(size, np.int64)
        own_first = np.zeros(parts + 1, np.int64)
        size = 0
        for p in range(parts):
            row = part[part_first[c] + p]
            for i in range(row_first[row], row_first[row + 1]):
                if not _is_among(row_sets[i], begin, end, merger_sets):
                    own_sets[size] = row_sets[i]
                    size += 1
            own_first[p + 1] = size
        asked = np.ones(end - begin, np.bool_)
        of_merger, of_parts = _count(asked, begin, end, merger_sets, own_first, own_sets, parts, bits, allowed)
        of_common = events
        if of_merger < enough:
            for i in range(begin, end):
                common = True
                for p in range(part_first[c], part_first[c + 1]):
                    if not _is_among(merger_sets[i], row_first[part[p]], row_first[part[p] + 1], row_sets):
                        common = False
                        break
                asked[i - begin] = common
            of_common = _count(asked, begin, end, merger_sets, own_first, own_sets, 0, bits, allowed)[0]
            asked = ~asked
            of_merger, of_parts = _count(asked, begin, end, merger_sets, own_first, own_sets, parts, bits, allowed)
        found[c, 0] = of_merger
        found[c, 1] = of_parts
        found[c, 2] = of_common
    return found
