"""Kernels that find which of many literals occur in texts: Aho and Corasick's automaton over UTF-8 bytes, in arrays.

A literal is looked for anywhere, at the start, at the end, or as the whole text. Each attribute has a tree of states
for each of these, as the text is and in lower case (`ROOTS` of them); literals at the end stand reversed. A literal's
states go only as far as it takes to tell it from all others of its tree (four bytes at least); the rest of its bytes is
compared in place. So a literal takes a handful of states, no two uncompared rests start at the same byte of a text, and
one scan takes time in the text's length, in its hits, and in a rest's length for each byte at worst.

Memory layout. States are numbered breadth first, so the children of a state follow each other:

    first_child[s] : first_child[s + 1]    the children of s, ascending by label[child], the byte that leads there
    fail[s]                                the state of the longest proper suffix; -1 in trees that aren't "anywhere"
    emit[s]                                where its hits are listed, or -1 where neither it nor its suffixes have any

    hit_literal[r], hit_depth[r]           the literal of that state itself (-1: only suffixes have one), and how many
                                           of its bytes the way there has compared
    up_whole[r], up_rest[r]                the next shorter suffix with a literal that is decided there, and with one
                                           whose rest is still to be compared

Most bytes of most texts begin no literal. So as long as the automaton of "anywhere" is at its root, it is asked of the
next bytes together whether some literal begins with them, by a hash into a row of bits:

    window[row]                            how many bytes these are, four or three; 0 where many literals are too short
    bit_start[row], bit_shift[row]         where the row's bits begin; how far a hash is shifted to be a bit's number

Where it may, more bytes are asked for, since many literals begin alike: each has a bit for the longest of `_PREFIXES`
that it has, if it has one.

    prefix_start[row], prefix_shift[row]   the same for these bits
    prefixes[row]                          a bit for each of `_PREFIXES` that there are

A text is put into lower case on the way where that changes its ASCII letters alone; others come with their lower case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from covey.kernels.growing import grown
from covey.kernels.jit import forced, inlined, inner, kernel
from covey.kernels.segments import row_at
from covey.kernels.sorting import sort_integers
from covey.kernels.types import (
    Bytes,
    FrozenBytes,
    FrozenInt32s,
    FrozenInt64s,
    FrozenUInt16s,
    Int32s,
    Int64,
    Int64s,
    UInt16s,
)
from covey.kernels.vectors import eight_at, lowest_bit

ANYWHERE, START, END, WHOLE = range(4)
"""Where a literal is looked for."""
IN_LOWER_CASE = 4
"""Added to these for literals that are looked for in a text's lower case."""
ROOTS = 8
_LEAST_DEPTH = 4
_DENSE = 256
_MOST_ONES = 4
"""Literals of one byte that a row of bits takes: each has 65,536 bits."""
_MOST_BITS = 24
"""A row has two to the power of this many bits at most."""
_ONE, _THREE, _SEVEN = np.uint64(1), np.uint64(3), np.uint64(7)
_PREFIXES = (4, 6, 8, 12, 16, 24)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_OTHER_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)
_SALT = np.uint64(0x51_7CC1B727220A95)


class Automaton(NamedTuple):
    """The states of all attributes of a segment, and their literals."""

    roots: Int32s
    """[slot * ROOTS + tree]: the root's state, or -1 for a tree without literals."""
    root_row: Int32s
    """[slot * ROOTS + tree]: its place in `dense`, or -1."""
    dense: Int32s
    """[row * 256 + byte]: the children of roots of "anywhere" by their byte, or -1."""
    label: Bytes
    first_child: Int32s
    fail: Int32s
    emit: Int32s
    hit_literal: Int32s
    hit_depth: UInt16s
    up_whole: Int32s
    up_rest: Int32s
    literal_start: Int64s
    literal_bytes: Bytes
    """Literal i is bytes[start[i] : start[i + 1]], those at the end reversed."""
    window: Int64s
    bit_start: Int64s
    bit_shift: Int64s
    prefix_start: Int64s
    prefix_shift: Int64s
    prefixes: Int64s
    bits: Bytes


class Texts(NamedTuple):
    """Texts in Arrow's layout, and the lower case of those in which more than ASCII letters changes."""

    starts: Int64s
    data: Bytes
    lowered: Int32s
    """Which of those below a text's lower case is, or -1."""
    lowered_starts: Int64s
    lowered_data: Bytes


@inlined
def automaton_at(at):
    """Views on an automaton's arrays, in the order of its fields (`segments`)."""
    return Automaton(
        row_at(at, 0, np.int32), row_at(at, 1, np.int32), row_at(at, 2, np.int32), row_at(at, 3, np.uint8),
        row_at(at, 4, np.int32), row_at(at, 5, np.int32), row_at(at, 6, np.int32), row_at(at, 7, np.int32),
        row_at(at, 8, np.uint16), row_at(at, 9, np.int32), row_at(at, 10, np.int32), row_at(at, 11, np.int64),
        row_at(at, 12, np.uint8), row_at(at, 13, np.int64), row_at(at, 14, np.int64), row_at(at, 15, np.int64),
        row_at(at, 16, np.int64), row_at(at, 17, np.int64), row_at(at, 18, np.int64),
        row_at(at, 19, np.uint8),
    )  # fmt: skip


@inlined
def texts_at(at):
    """Views on texts, in the order of their fields."""
    return Texts(
        row_at(at, 0, np.int64), row_at(at, 1, np.uint8), row_at(at, 2, np.int32), row_at(at, 3, np.int64),
        row_at(at, 4, np.uint8),
    )  # fmt: skip


@inner
def _common(starts, data, one, other):
    """How many bytes two literals begin with alike."""
    length = min(starts[one + 1] - starts[one], starts[other + 1] - starts[other])
    for k in range(length):
        if data[starts[one] + k] != data[starts[other] + k]:
            return k
    return length


@inner
def _child(state, byte, label, first_child):
    low, high = np.int64(first_child[state]), np.int64(first_child[state + 1])
    while low < high:
        middle = (low + high) >> 1
        if label[middle] < byte:
            low = middle + 1
        else:
            high = middle
    if low < first_child[state + 1] and label[low] == byte:
        return low
    return np.int64(-1)


@kernel
def build_states(starts: Int64s, data: FrozenBytes, tree: Int32s, trees: Int64):
    """The states of literals that are distinct and ascending by (tree, bytes): roots, label, first_child, the literal
    that ends or becomes certain at each state (-1 for none), and each state's depth."""
    count = len(starts) - 1
    kept = np.empty(count, np.int64)
    for i in range(count):
        shared = np.int64(0)
        if i > 0 and tree[i - 1] == tree[i]:
            shared = np.int64(_common(starts, data, i - 1, i))
        if i + 1 < count and tree[i + 1] == tree[i]:
            shared = max(shared, np.int64(_common(starts, data, i, i + 1)))
        kept[i] = min(max(shared + 1, _LEAST_DEPTH), starts[i + 1] - starts[i])
    roots = np.full(trees, -1, np.int32)
    room = count + 1024
    first, last = np.empty(room, np.int32), np.empty(room, np.int32)
    depth, own = np.empty(room, np.int32), np.empty(room, np.int32)
    label, first_child = np.empty(room, np.uint8), np.empty(room, np.int32)
    states = 0
    i = 0
    while i < count:
        j = i
        while j < count and tree[j] == tree[i]:
            j += 1
        first, last, depth = grown(first, states + 1), grown(last, states + 1), grown(depth, states + 1)
        own, label, first_child = grown(own, states + 1), grown(label, states + 1), grown(first_child, states + 1)
        first[states], last[states], depth[states], label[states] = i, j, 0, 0
        roots[tree[i]] = states
        states += 1
        i = j
    state = 0
    while state < states:
        own[state] = -1
        first_child[state] = states
        i, end, level = np.int64(first[state]), np.int64(last[state]), np.int64(depth[state])
        if kept[i] == level:
            own[state] = i
            i += 1
        while i < end:
            byte = data[starts[i] + level]
            j = i + 1
            while j < end and data[starts[j] + level] == byte:
                j += 1
            first, last, depth = grown(first, states + 1), grown(last, states + 1), grown(depth, states + 1)
            own, label = grown(own, states + 1), grown(label, states + 1)
            first_child = grown(first_child, states + 1)
            first[states], last[states], depth[states], label[states] = i, j, level + 1, byte
            states += 1
            i = j
        state += 1
    first_child = grown(first_child, states + 1)
    first_child[states] = states
    return roots, label[:states].copy(), first_child[: states + 1].copy(), own[:states].copy(), depth[:states].copy()


@kernel
def build_links(roots: Int32s, label: Bytes, first_child: Int32s, own: Int32s, depth: Int32s, starts: Int64s):
    """What is left of an automaton: fail, emit, hit_literal, hit_depth, up_whole, up_rest, and roots' dense rows."""
    states = len(label)
    fail, emit = np.full(states, -1, np.int32), np.full(states, -1, np.int32)
    anywhere = np.zeros(states, np.uint8)
    root_row = np.full(len(roots), -1, np.int32)
    rows = 0
    for tree in range(len(roots)):
        if roots[tree] >= 0 and (tree & 3) == ANYWHERE:
            anywhere[roots[tree]] = 1
            root_row[tree] = rows
            rows += 1
    dense = np.full(rows * _DENSE, -1, np.int32)
    for tree in range(len(roots)):
        if root_row[tree] >= 0:
            for child in range(first_child[roots[tree]], first_child[roots[tree] + 1]):
                dense[root_row[tree] * _DENSE + label[child]] = child
    room = 1024
    hit_literal, hit_depth = np.empty(room, np.int32), np.empty(room, np.uint16)
    up_whole, up_rest = np.empty(room, np.int32), np.empty(room, np.int32)
    hits = 0
    for state in range(states):
        # Breadth first: whatever a state fails to is linked already.
        for child in range(first_child[state], first_child[state + 1]):
            if anywhere[state]:
                anywhere[child] = 1
                back = np.int64(fail[state])
                target = np.int64(state) if depth[state] == 0 else np.int64(-1)
                while back >= 0:
                    target = _child(back, label[child], label, first_child)
                    if target >= 0:
                        break
                    if depth[back] == 0:
                        target = back
                        break
                    back = np.int64(fail[back])
                fail[child] = target
        suffix = emit[fail[state]] if fail[state] >= 0 else np.int32(-1)
        if own[state] < 0:
            emit[state] = suffix
            continue
        hit_literal, hit_depth = grown(hit_literal, hits + 1), grown(hit_depth, hits + 1)
        up_whole, up_rest = grown(up_whole, hits + 1), grown(up_rest, hits + 1)
        hit_literal[hits], hit_depth[hits] = own[state], depth[state]
        up_whole[hits], up_rest[hits] = -1, -1
        if suffix >= 0:
            literal = np.int64(hit_literal[suffix])
            is_whole = starts[literal + 1] - starts[literal] == hit_depth[suffix]
            up_whole[hits] = suffix if is_whole else up_whole[suffix]
            up_rest[hits] = up_rest[suffix] if is_whole else suffix
        emit[state] = hits
        hits += 1
    return (
        fail, emit, hit_literal[:hits].copy(), hit_depth[:hits].copy(), up_whole[:hits].copy(), up_rest[:hits].copy(),
        root_row, dense,
    )  # fmt: skip


@forced
def _lower(byte):
    return np.uint8(byte + 32) if 65 <= byte <= 90 else np.uint8(byte)


@inlined
def _bit(word, shift):
    """Which bit stands for some bytes. (Without a sign, so that no index is looked at for being negative.)"""
    return (word * _MULTIPLIER) >> np.uint64(shift)


@inner
def _literals_below(root, first_child, emit, hit_literal, hit_depth):
    """The literals of a tree."""
    states, depths = np.empty(1024, np.int64), np.empty(1024, np.int64)
    found, count = np.empty(1024, np.int64), 0
    states[0], depths[0] = root, 0
    waiting = 1
    while waiting:
        waiting -= 1
        state, depth = states[waiting], depths[waiting]
        hit = emit[state]
        if hit >= 0 and hit_depth[hit] == depth:
            found = grown(found, count + 1)
            found[count] = hit_literal[hit]
            count += 1
        for child in range(first_child[state], first_child[state + 1]):
            states, depths = grown(states, waiting + 1), grown(depths, waiting + 1)
            states[waiting], depths[waiting] = child, depth + 1
            waiting += 1
    return found[:count]


@forced
def _first_bytes(literal_bytes, first, count):
    """So many bytes as one number, as `eight_at` has them."""
    word = np.uint64(0)
    for k in range(count):
        word |= np.uint64(literal_bytes[first + k]) << np.uint64(8 * k)
    return word


@forced
def _bits_for(count):
    """Of how many bits, as a power of two, a row for so many numbers is."""
    size = 10
    while size < _MOST_BITS and (1 << size) < 16 * count:
        size += 1
    return size


@forced
def _set(bits, start, bit):
    bits[np.uint64(start) + (bit >> _THREE)] |= np.uint8(1 << np.int64(bit & _SEVEN))


@kernel
def build_bits(
    roots: FrozenInt32s,
    root_row: FrozenInt32s,
    first_child: FrozenInt32s,
    emit: FrozenInt32s,
    hit_literal: FrozenInt32s,
    hit_depth: FrozenUInt16s,
    literal_start: FrozenInt64s,
    literal_bytes: FrozenBytes,
    rows: Int64,
):
    """window, bit_start, bit_shift, prefix_start, prefix_shift, prefixes and bits of an automaton."""
    window, bit_start, bit_shift = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    prefix_start, prefix_shift = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    prefixes = np.zeros(rows, np.int64)
    bits, used = np.zeros(1, np.uint8), 0
    for tree in range(len(roots)):
        row = np.int64(root_row[tree])
        if row < 0:
            continue
        literals = _literals_below(roots[tree], first_child, emit, hit_literal, hit_depth)
        shortest, ones, words = np.int64(4), 0, 0
        for literal in literals:
            length = literal_start[literal + 1] - literal_start[literal]
            shortest = min(shortest, length)
            ones += length == 1
            words += 1 << 8 * max(3 - length, 0)
        if shortest == 0 or ones > _MOST_ONES:
            continue
        window[row] = wide = 4 if shortest == 4 else 3
        size = _bits_for(words)
        bit_start[row], bit_shift[row] = used, 64 - size
        prefix_start[row], prefix_shift[row] = used + (1 << size >> 3), 64 - size
        larger = np.zeros(used + 2 * (1 << size >> 3), np.uint8)
        larger[:used] = bits[:used]
        bits = larger
        for literal in literals:
            first = literal_start[literal]
            length = literal_start[literal + 1] - first
            known = min(length, wide)
            word = _first_bytes(literal_bytes, first, known)
            for last in range(1 << 8 * (wide - known)):
                bit = _bit(word | np.uint64(last) << np.uint64(8 * known), 64 - size)
                _set(bits, used, bit)
                if length < 4:
                    _set(bits, prefix_start[row], bit)
            if length < 4:
                continue
            kind = _prefix_kind(length)
            prefixes[row] |= 1 << kind
            mixed = _bits_of_prefix(
                kind, _first_bytes(literal_bytes, first, min(length, 8)),
                _first_bytes(literal_bytes, first + 4, min(length - 4, 8)),
                _first_bytes(literal_bytes, first + 8, max(min(length - 8, 8), 0)),
                _first_bytes(literal_bytes, first + 16, max(min(length - 16, 8), 0)),
            )  # fmt: skip
            _set(bits, prefix_start[row], _bit(mixed, 64 - size))
        used = len(bits)
    return window, bit_start, bit_shift, prefix_start, prefix_shift, prefixes, bits


@forced
def _is_set(bits, start, bit):
    return _looked_up(bits, start, bit) & _ONE != 0


@forced
def _looked_up(bits, start, bit):
    """A number whose lowest bit is that one."""
    return np.uint64(bits[np.uint64(start) + (bit >> _THREE)]) >> (bit & _SEVEN)


@forced
def _lower_eight(word):
    """Eight bytes with ASCII's letters in lower case."""
    low = word & np.uint64(0x7F7F7F7F7F7F7F7F)
    from_a, above_z = low + np.uint64(0x3F3F3F3F3F3F3F3F), low + np.uint64(0x2525252525252525)
    return word | ((from_a ^ above_z) & ~word & np.uint64(0x8080808080808080)) >> np.uint64(2)


@forced
def _prefix_kind(length):
    """Which of `_PREFIXES` is the longest that a literal has."""
    kind = 0
    while kind + 1 < len(_PREFIXES) and _PREFIXES[kind + 1] <= length:
        kind += 1
    return kind


@forced
def _bits_of_prefix(kind, first, fifth, ninth, seventeenth):
    """A prefix of that kind as a number to be hashed, given the eight bytes from its first on, and so forth."""
    if kind == 0:
        return (first & np.uint64(0xFFFFFFFF)) + _SALT
    if kind == 1:
        return (first & np.uint64(0xFFFFFFFFFFFF)) + _SALT
    if kind == 2:
        return first + _SALT
    mixed = first * _OTHER_MULTIPLIER
    mixed ^= mixed >> np.uint64(32)
    if kind == 3:
        return mixed ^ (fifth >> np.uint64(32))
    mixed = (mixed ^ ninth) * _OTHER_MULTIPLIER
    if kind == 4:
        return mixed
    return (mixed ^ mixed >> np.uint64(32)) ^ seventeenth


@forced
def _eight(data, at, lower):
    word = eight_at(data, at)
    return _lower_eight(word) if lower else word


@inner
def _begins(data, at, end, lower, bits, start, shift, prefixes):
    """Whether some literal of four bytes and more may begin at a place, by its prefix."""
    fifth, ninth, last = np.uint64(0), np.uint64(0), np.uint64(0)
    if at + 8 <= end:
        first = _eight(data, at, lower)
    else:
        first = np.uint64(0)
        for k in range(end - at):
            first |= np.uint64(data[at + k]) << np.uint64(8 * k)
        if lower:
            first = _lower_eight(first)
    for kind in range(len(_PREFIXES)):
        if at + _PREFIXES[kind] > end:
            return False
        if not prefixes >> kind & 1:
            continue
        if kind == 3:
            fifth = _eight(data, at + 4, lower)
        elif kind >= 4:
            ninth = _eight(data, at + 8, lower)
            if kind == 5:
                last = _eight(data, at + 16, lower)
        if _is_set(bits, start, _bit(_bits_of_prefix(kind, first, fifth, ninth, last), shift)):
            return True
    return False


@inner
def _skip(data, at, end, lower, window, bits, start, shift, prefix_start, prefix_shift, prefixes):
    """The first place from `at` on where a literal may begin, or `end`."""
    mask = np.uint64(0xFFFFFF) if window == 3 else np.uint64(0xFFFFFFFF)
    while at + window <= end:
        if at + 8 <= end:
            # Four places at once: that none of them begins a literal is the usual answer.
            word = _eight(data, at, lower)
            first, second = _bit(word & mask, shift), _bit(word >> np.uint64(8) & mask, shift)
            third, fourth = _bit(word >> np.uint64(16) & mask, shift), _bit(word >> np.uint64(24) & mask, shift)
            one, two = _looked_up(bits, start, first), _looked_up(bits, start, second)
            three, four = _looked_up(bits, start, third), _looked_up(bits, start, fourth)
            if not (one | two | three | four) & _ONE:
                at += 4
                continue
            hit = one & _ONE | (two & _ONE) << _ONE | (three & _ONE) << np.uint64(2) | (four & _ONE) << _THREE
            places = 4
        else:
            word = np.uint64(data[at]) | np.uint64(data[at + 1]) << np.uint64(8)
            word |= np.uint64(data[at + 2]) << np.uint64(16)
            if window == 4:
                word |= np.uint64(data[at + 3]) << np.uint64(24)
            if lower:
                word = _lower_eight(word)
            hit, places = _looked_up(bits, start, _bit(word & mask, shift)) & _ONE, 1
        while hit:
            k = lowest_bit(hit)
            hit &= hit - _ONE
            if window == 3 and _is_set(bits, prefix_start, _bit(word >> np.uint64(8 * k) & mask, shift)):
                return at + k
            if _begins(data, at + k, end, lower, bits, prefix_start, prefix_shift, prefixes):
                return at + k
        at += places
    return end if window == 4 else at


@inner
def _rest_holds(literal_start, literal_bytes, literal, depth, data, at, end, lower):
    """Whether the text has the literal at a place, of which `depth` bytes are known to be alike."""
    first = literal_start[literal]
    length = literal_start[literal + 1] - first
    if at + length > end:
        return False
    for k in range(depth, length):
        byte = data[at + k]
        if literal_bytes[first + k] != (_lower(byte) if lower else byte):
            return False
    return True


@forced
def _anywhere(automaton, tree, data, begin, end, lower, seen, stamp, hits, count):
    """Literals that occur anywhere."""
    root = np.int64(automaton.roots[tree])
    number = np.int64(automaton.root_row[tree])
    row = number * _DENSE
    label, first_child, fail, emit, dense = (
        automaton.label, automaton.first_child, automaton.fail, automaton.emit, automaton.dense
    )  # fmt: skip
    state, at = root, begin - 1
    window = automaton.window[number]
    while at + 1 < end:
        at += 1
        if state == root:
            if window:
                at = _skip(
                    data, at, end, lower, window, automaton.bits, automaton.bit_start[number],
                    automaton.bit_shift[number], automaton.prefix_start[number], automaton.prefix_shift[number],
                    automaton.prefixes[number],
                )  # fmt: skip
                if at >= end:
                    break
            found = np.int64(dense[row + (_lower(data[at]) if lower else data[at])])
            if found < 0:
                continue
            state = found
        else:
            byte = _lower(data[at]) if lower else data[at]
            while True:
                low, high = np.int64(first_child[state]), np.int64(first_child[state + 1])
                if high - low > 8:
                    found = _child(state, byte, label, first_child)
                else:
                    found = np.int64(-1)
                    while low < high:
                        if label[low] == byte:
                            found = low
                            break
                        low += 1
                if found >= 0:
                    state = found
                    break
                state = np.int64(fail[state])
                if state == root:
                    break
            if state == root:
                at -= 1  # which the root looks at
                continue
        hit = np.int64(emit[state])
        if hit < 0:
            continue
        literal = np.int64(automaton.hit_literal[hit])
        depth = np.int64(automaton.hit_depth[hit])
        is_whole = automaton.literal_start[literal + 1] - automaton.literal_start[literal] == depth
        whole = hit if is_whole else np.int64(automaton.up_whole[hit])
        # Once a state's literals are told, so are those of all its suffixes.
        while whole >= 0 and seen[whole] != stamp:
            seen[whole] = stamp
            hits[count] = automaton.hit_literal[whole]
            count += 1
            whole = np.int64(automaton.up_whole[whole])
        rest = np.int64(automaton.up_rest[hit]) if is_whole else hit
        while rest >= 0:
            if seen[rest] != stamp:
                literal, depth = np.int64(automaton.hit_literal[rest]), np.int64(automaton.hit_depth[rest])
                start_at = at + 1 - depth
                if _rest_holds(
                    automaton.literal_start, automaton.literal_bytes, literal, depth, data, start_at, end, lower
                ):
                    seen[rest] = stamp
                    hits[count] = literal
                    count += 1
            rest = np.int64(automaton.up_rest[rest])
    return count


@forced
def _at_edge(automaton, tree, data, begin, end, lower, hits, count):
    """Literals at the start, at the end, or that are the whole text: one way down a tree."""
    backwards, whole = (tree & 3) == END, (tree & 3) == WHOLE
    state, depth, size = np.int64(automaton.roots[tree]), np.int64(0), end - begin
    while True:
        hit = np.int64(automaton.emit[state])
        if hit >= 0:
            literal = np.int64(automaton.hit_literal[hit])
            first = automaton.literal_start[literal]
            length = automaton.literal_start[literal + 1] - first
            holds = length == size if whole else length <= size
            k = depth
            while holds and k < length:
                byte = data[end - 1 - k] if backwards else data[begin + k]
                holds = automaton.literal_bytes[first + k] == (_lower(byte) if lower else byte)
                k += 1
            if holds:
                hits[count] = literal
                count += 1
        if depth == size:
            return count
        byte = data[end - 1 - depth] if backwards else data[begin + depth]
        state = _child(state, _lower(byte) if lower else byte, automaton.label, automaton.first_child)
        if state < 0:
            return count
        depth += 1


@forced
def _trees(automaton, first_tree, data, begin, end, lower, seen, stamp, hits, count):
    if automaton.roots[first_tree + ANYWHERE] >= 0:
        count = _anywhere(automaton, first_tree + ANYWHERE, data, begin, end, lower, seen, stamp, hits, count)
    for tree in range(first_tree + START, first_tree + WHOLE + 1):
        if automaton.roots[tree] >= 0:
            count = _at_edge(automaton, tree, data, begin, end, lower, hits, count)
    return count


@forced
def literals_in(automaton, slot, text, lowered, seen, stamp, hits, count):
    """Append the literals of an attribute that occur in a text, ascending and distinct, to the hits, which have room
    for all that there are; gives their number. A text is its buffer, and where it begins and ends there; `lowered` is
    its lower case where that isn't ASCII, else it begins below 0. `seen` has a place for each hit of the automaton,
    with no `stamp` in it yet."""
    start = count
    data, begin, end = text
    lower = False
    for first_tree in range(slot * ROOTS, (slot + 1) * ROOTS, IN_LOWER_CASE):
        count = _trees(automaton, first_tree, data, begin, end, lower, seen, stamp, hits, count)
        lower = lowered[1] < 0
        if not lower:
            data, begin, end = lowered
    if count > start + 1:
        sort_integers(hits[start:count])
    return count


@inner
def changes(data, at, end, changed):
    """Whether the lower case of a text changes more than ASCII letters; bit c of `changed` says so of a character."""
    while at < end:
        while at + 8 <= end and not eight_at(data, at) & np.uint64(0x8080808080808080):
            at += 8
        if at >= end:
            break
        byte = np.int64(data[at])
        if byte < 0xC0:
            at += 1
            continue
        if byte < 0xE0:
            code, size = (byte & 31) << 6 | np.int64(data[at + 1] & 63), 2
        elif byte < 0xF0:
            code, size = (byte & 15) << 12 | np.int64(data[at + 1] & 63) << 6 | np.int64(data[at + 2] & 63), 3
        else:
            code = (byte & 7) << 18 | np.int64(data[at + 1] & 63) << 12 | np.int64(data[at + 2] & 63) << 6
            code, size = code | np.int64(data[at + 3] & 63), 4
        if code < 8 * len(changed) and changed[code >> 3] >> (code & 7) & 1:
            return True
        at += size
    return False


@kernel
def mark_changing(starts: FrozenInt64s, data: FrozenBytes, changed: FrozenBytes, marks: Bytes):
    """Mark the texts whose lower case changes more than ASCII letters."""
    for text in range(len(starts) - 1):
        marks[text] = changes(data, starts[text], starts[text + 1], changed)


@kernel
def find_literals(automaton_addresses: Int64s, slot: Int64, most: Int64, text_addresses: Int64s):
    """(offsets, literals): which of an attribute's literals, of which there are `most`, occur in each text."""
    automaton, texts = automaton_at(automaton_addresses), texts_at(text_addresses)
    number = len(texts.starts) - 1
    offsets = np.zeros(number + 1, np.int64)
    hits = np.empty(4 * number + 64, np.int32)
    seen = np.full(len(automaton.hit_literal), -1, np.int32)
    count = 0
    for text in range(number):
        begin, end, other = np.int64(-1), np.int64(-1), texts.lowered[text]
        if other >= 0:
            begin, end = texts.lowered_starts[other], texts.lowered_starts[other + 1]
        hits = grown(hits, count + most)
        count = literals_in(
            automaton, slot, (texts.data, texts.starts[text], texts.starts[text + 1]),
            (texts.lowered_data, begin, end), seen, np.int32(text), hits, count,
        )  # fmt: skip
        offsets[text + 1] = count
    return offsets, hits[:count].copy()
