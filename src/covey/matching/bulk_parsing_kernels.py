"""Kernels that read filters: the UTF-8 bytes of many texts to the postfix tokens of `covey.matching.lowering.Flat`.

They read the part of the language in which nearly all subscriptions are written, and give up on a row as soon as
anything else turns up: a row that is given up leaves no trace and is parsed by `covey.language`. So there are no
error messages here, and no rule needs to be known twice where it is rare. Three layers, each a row at a time:

    _lex       bytes to lexemes, in scratch arrays (`Lexemes`); numbers are converted here
    _parse     lexemes to postfix tokens and leaves, appended to the output (`Output`)
    read_rows  all rows; output and tables are grown between rows, so that nothing below has to check for room

An expression needs two explicit stacks, since Numba can't cache recursive functions. `pending` holds what is open: a
parenthesis, NOT, AND, OR. `operands` describes each finished operand by (root, start, end of its first member), where
the last two are positions in the tokens. Filters keep And and Or flat, so `a AND (b AND c)` must come out as
`a b AND c AND`: where the right operand of an AND is itself an And, one AND goes in after that And's first member
instead of at the end. That moves tokens; the limit on depth bounds how often a token is moved.

Names, strings and patterns are numbered in the order in which they appear, by a hash table over spans of the texts:

    slots    [2^k]        an entry's number, or -1; linear probing, at most half full
    entries  [number, 4]  hash, first byte, end, tag (what must be equal besides the bytes)

Entries are taken back in the reverse order when a row is given up, which open addressing allows without tombstones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from covey.matching.compile_kernels import _grown
from covey.matching.lowering import (
    AND,
    BOOLEAN,
    EQ,
    FALSE,
    GE,
    GT,
    IS_FALSE,
    IS_NULL,
    IS_TRUE,
    IS_UNKNOWN,
    LE,
    LIST,
    LT,
    NOT,
    NULL_SAFE_EQ,
    NUMBER,
    OR,
    PATTERN,
    STRING,
    TRUE,
    UNKNOWN,
)

# Kinds of lexemes.
(
    _END, _NAME, _NUMBER, _LONG_NUMBER, _STRING, _COMPARISON, _OPEN, _CLOSE, _COMMA,
    _AND, _OR, _NOT, _IN, _BETWEEN, _LIKE, _IS, _NULL, _TRUE, _FALSE, _LEFT_OUT,
) = range(20)  # fmt: skip

WORDS = {
    "AND": _AND, "OR": _OR, "NOT": _NOT, "IN": _IN, "BETWEEN": _BETWEEN, "LIKE": _LIKE, "IS": _IS, "NULL": _NULL,
    "TRUE": _TRUE, "FALSE": _FALSE, "RLIKE": _LEFT_OUT, "REGEXP": _LEFT_OUT,
}  # fmt: skip
"""The language's keywords, all of up to eight letters; a row with one that is left out is given up."""

_NOT_EQ = 8
"""`!=`, which is EQ and NOT in postfix form. The other operators are those of leaves."""

# Pattern leaves before Python has made predicates of them; NULL_TEST is a comparison with NULL.
LIKE, STARTS_WITH, ENDS_WITH, CONTAINS, SUBSTRING_OF, NULL_TEST = range(6)

# Columns of `counts`: how much of each output is in use.
_TOKENS, _LEAVES, _NAMES, _STRINGS, _PATTERNS, _LONG = range(6)

# What `_operand` has read: nothing it knows, a name or constant alone, a condition that IS may follow, or one that
# nothing but AND, OR and ) may follow.
_UNREAD, _PLAIN, _TESTABLE, _TESTED = range(4)

# Classes of bytes; whatever is in none of them ends a row's reading, bytes of other alphabets outside strings too.
_NO_CLASS, _SPACE, _LETTER, _DIGIT, _DOT, _QUOTE, _SIGN, _LESS, _GREATER, _EQUAL, _BANG, _MARK = range(12)


def _classes() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for members, number in (
        (b" \t\n\v\f\r", _SPACE),
        (b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", _LETTER),
        (b"0123456789", _DIGIT),
        *zip((b".", b"'", b"+-", b"<", b">", b"=", b"!", b"(),"), range(_DOT, _MARK + 1), strict=True),
    ):
        table[list(members)] = number
    return table


def _packed(word: str) -> int:
    return int.from_bytes(word.encode(), "big")


_CLASS = _classes()
_WORD_CODE = np.array([_packed(word) for word in WORDS], np.int64)
_WORD_LENGTH = np.array([len(word) for word in WORDS], np.int64)
_WORD_KIND = np.array(list(WORDS.values()), np.int64)
_LONGEST_WORD = 7
_POWERS = np.array([float(10**power) for power in range(23)])
_EXACT = 2**53
_DIGITS = 18
"""Significant digits that fit 64 bits."""
_LONG_DIGITS = 100
_LONG_POWER = 200
"""What has no more digits and no larger power of ten is finite, and Python can convert it; more is given up."""
_FLIPPED = np.array([EQ, GT, GE, LT, LE, NULL_SAFE_EQ, -1, -1, _NOT_EQ], np.int64)
_MULTIPLIER = -7046029254386353131  # 2^64 / golden ratio, odd

_UNKNOWN_WORD = np.frombuffer(b"UNKNOWN", np.uint8)
_FUNCTIONS = (
    np.frombuffer(b"STARTSWITH", np.uint8),
    np.frombuffer(b"ENDSWITH", np.uint8),
    np.frombuffer(b"CONTAINS", np.uint8),
    np.frombuffer(b"SUBSTRING_OF", np.uint8),
)
"""In the order of STARTS_WITH, ENDS_WITH, CONTAINS, SUBSTRING_OF."""
_QUERY_WORDS = tuple(
    np.frombuffer(word, np.uint8) for word in (b"WHERE", b"CASE", b"SELECT", b"FROM", b"WITH", b"TABLE")
)
"""Names that the parser refuses before a comma."""


class Lexemes(NamedTuple):
    """One row's lexemes, as parallel arrays. Two more of kind END follow the last, for looking ahead."""

    kind: NDArray[np.uint8]
    first: NDArray[np.int64]
    """Of names and strings (without quotes) the first byte; of comparisons the operator."""
    last: NDArray[np.int64]
    """The byte after the last."""
    number: NDArray[np.float64]
    remainder: NDArray[np.int64]
    """Of numbers as in `Flat`; of long numbers the sign."""


class Output(NamedTuple):
    """Tokens and leaves as in `Flat`; `leaf_text` of a pattern is an entry of the table of patterns."""

    tokens: NDArray[np.int32]
    leaf_attribute: NDArray[np.int32]
    leaf_operator: NDArray[np.uint8]
    leaf_kind: NDArray[np.uint8]
    leaf_number: NDArray[np.float64]
    leaf_remainder: NDArray[np.int64]
    leaf_text: NDArray[np.int32]
    long_numbers: NDArray[np.int64]
    """[number, (leaf, first byte, end, sign)] of numbers that one rounding can't give."""


class Table(NamedTuple):
    """A hash table over spans of the texts."""

    slots: NDArray[np.int32]
    entries: NDArray[np.int64]


class Bounds(NamedTuple):
    """The limits that a row is read under; a row above one of them is given up."""

    bytes: int
    lexemes: int
    depth: int
    values: int
    pattern: int
    tokens: int


# Hash tables.


@njit(cache=True, nogil=True)
def _hash(data, first, last, tag, seed):
    state = (seed ^ tag) * _MULTIPLIER
    for at in range(first, last):
        state = (state ^ data[at]) * _MULTIPLIER
        state ^= (state >> 29) & 0x7FFFFFFFF
    return state ^ (last - first)


@njit(cache=True, nogil=True)
def _slot(table, data, first, last, tag, hashed):
    """Where the span stands, or the free slot where it would."""
    mask = len(table.slots) - 1
    slot = hashed & mask
    while True:
        entry = table.slots[slot]
        if entry < 0:
            return slot
        if table.entries[entry, 0] == hashed and table.entries[entry, 3] == tag:
            known = table.entries[entry, 1]
            if table.entries[entry, 2] - known == last - first:
                same = True
                for offset in range(last - first):
                    if data[known + offset] != data[first + offset]:
                        same = False
                        break
                if same:
                    return slot
        slot = (slot + 1) & mask


@njit(cache=True, nogil=True)
def _intern(table, counts, which, data, first, last, tag, seed):
    """The number of a span; a new one if it's new."""
    hashed = _hash(data, first, last, tag, seed)
    slot = _slot(table, data, first, last, tag, hashed)
    entry = table.slots[slot]
    if entry < 0:
        entry = counts[which]
        counts[which] += 1
        table.slots[slot] = entry
        table.entries[entry, 0] = hashed
        table.entries[entry, 1] = first
        table.entries[entry, 2] = last
        table.entries[entry, 3] = tag
    return entry


@njit(cache=True, nogil=True)
def _take_back(table, data, before, after):
    """Remove the entries from `before` on, the last first."""
    for entry in range(after - 1, before - 1, -1):
        hashed, first, last, tag = table.entries[entry]
        table.slots[_slot(table, data, first, last, tag, hashed)] = -1


@njit(cache=True, nogil=True)
def _roomy(table, count, more):
    """The table with room for so many more entries."""
    entries = _grown(table.entries, count + more)
    size = len(table.slots)
    if 2 * (count + more) <= size:
        return Table(table.slots, entries)
    while 2 * (count + more) > size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    for entry in range(count):
        slot = entries[entry, 0] & (size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        slots[slot] = entry
    return Table(slots, entries)


# Bytes to lexemes.


@njit(cache=True, nogil=True)
def _word(code, length):
    """The kind of a word, given as its capitals in one integer."""
    if length <= _LONGEST_WORD:
        for word in range(len(_WORD_CODE)):
            if _WORD_CODE[word] == code and _WORD_LENGTH[word] == length:
                return _WORD_KIND[word]
    return _NAME


@njit(cache=True, nogil=True)
def _spells(data, first, last, word):
    """Whether a name is the given word of capitals, in any case."""
    if last - first != len(word):
        return False
    for offset in range(len(word)):
        if data[first + offset] & 0xDF != word[offset]:
            return False
    return True


@njit(cache=True, nogil=True)
def _past_spaces(data, at, end):
    while at < end and _CLASS[data[at]] == _SPACE:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _lex_name(data, at, end, lexemes, count):
    """A dotted name or a word, as lexeme `count`; gives the byte after it, or -1."""
    first = at
    code = 0
    while at < end:
        kind = _CLASS[data[at]]
        if kind == _DOT:
            if at + 1 >= end or (_CLASS[data[at + 1]] != _LETTER and _CLASS[data[at + 1]] != _DIGIT):
                return -1
        elif kind != _LETTER and kind != _DIGIT:
            break
        code = (code << 8) | (data[at] & 0xDF)
        at += 1
    kind = _word(code, at - first)
    if kind == _LEFT_OUT:
        return -1
    lexemes.kind[count] = kind
    lexemes.first[count] = first
    lexemes.last[count] = at
    return at


@njit(cache=True, nogil=True)
def _lex_number(data, at, end, negative, lexemes, count):
    """An integer of up to 18 digits, or a decimal; gives the byte after it, or -1.

    A mantissa below 2^53 and a power of ten up to 22 are doubles exactly, so one operation on them rounds once.
    """
    first = at
    mantissa = 0
    digits = 0
    scale = 0
    point = -1
    while at < end:
        byte = data[at]
        if _CLASS[byte] == _DIGIT:
            if digits > 0 or byte != 48:
                digits += 1
                if digits <= _DIGITS:
                    mantissa = mantissa * 10 + (byte - 48)
            if point >= 0:
                scale += 1
        elif byte == 46 and point < 0:
            point = at
        else:
            break
        at += 1
    if at - first > _LONG_DIGITS or (point >= 0 and at - first == 1):
        return -1
    exponent = 0
    whole = point < 0
    if at < end and (data[at] == 101 or data[at] == 69):
        whole = False
        at += 1
        down = False
        if at < end and _CLASS[data[at]] == _SIGN:
            down = data[at] == 45
            at += 1
        if at >= end or _CLASS[data[at]] != _DIGIT:
            return -1
        while at < end and _CLASS[data[at]] == _DIGIT:
            exponent = exponent * 10 + (data[at] - 48)
            if exponent > _LONG_POWER:
                return -1
            at += 1
        if down:
            exponent = -exponent
    if at < end and (_CLASS[data[at]] == _LETTER or _CLASS[data[at]] == _DIGIT or _CLASS[data[at]] == _DOT):
        return -1
    lexemes.kind[count] = _NUMBER
    lexemes.remainder[count] = 0
    power = exponent - scale
    if whole:
        if digits > _DIGITS:
            return -1
        if negative:
            mantissa = -mantissa
        nearest = np.float64(mantissa)
        lexemes.number[count] = nearest
        lexemes.remainder[count] = mantissa - np.int64(nearest)
    elif digits <= _DIGITS and mantissa <= _EXACT and -22 <= power <= 22:
        value = np.float64(mantissa)
        value = value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
        lexemes.number[count] = 0.0 - value if negative else value  # 0.0 - 0.0 is 0.0, where -0.0 has a sign
    else:
        lexemes.kind[count] = _LONG_NUMBER
        lexemes.first[count] = first
        lexemes.last[count] = at
        lexemes.remainder[count] = -1 if negative else 1
    return at


@njit(cache=True, nogil=True)
def _lex_string(data, at, end, lexemes, count):
    """A string in single quotes without escapes; gives the byte after it, or -1."""
    first = at + 1
    at = first
    while at < end and data[at] != 39:
        if data[at] == 92:
            return -1
        at += 1
    if at >= end or (at + 1 < end and data[at + 1] == 39):
        return -1
    lexemes.kind[count] = _STRING
    lexemes.first[count] = first
    lexemes.last[count] = at
    return at + 1


@njit(cache=True, nogil=True)
def _lex_comparison(data, at, end, lexemes, count):
    """A comparison operator; gives the byte after it, or -1."""
    here = _CLASS[data[at]]
    following = _CLASS[data[at + 1]] if at + 1 < end else _NO_CLASS
    third = _CLASS[data[at + 2]] if at + 2 < end else _NO_CLASS
    lexemes.kind[count] = _COMPARISON
    operator = -1
    length = 2
    if here == _LESS:
        if following == _EQUAL:
            operator = LE
            if third == _GREATER:
                operator, length = NULL_SAFE_EQ, 3
        elif following == _GREATER:
            operator = _NOT_EQ
        else:
            operator, length = LT, 1
    elif here == _GREATER:
        if following == _EQUAL:
            operator = GE
        else:
            operator, length = GT, 1
    elif third == _EQUAL and following == _EQUAL:
        return -1
    elif here == _BANG:
        if following != _EQUAL:
            return -1
        operator = _NOT_EQ
    elif following == _EQUAL:
        operator = EQ
    elif following == _LESS or following == _GREATER:
        return -1
    else:
        operator, length = EQ, 1
    lexemes.first[count] = operator
    return at + length


@njit(cache=True, nogil=True)
def _lex(data, at, end, limit, lexemes):
    """One row's lexemes; False where the row is given up. A sign belongs to the number that it stands before."""
    count = 0
    signs = 0
    while True:
        at = _past_spaces(data, at, end)
        if at >= end:
            break
        if count + signs >= limit:
            return False
        kind = _CLASS[data[at]]
        if kind == _LETTER:
            at = _lex_name(data, at, end, lexemes, count)
        elif kind == _DIGIT or kind == _DOT:
            at = _lex_number(data, at, end, False, lexemes, count)
        elif kind == _QUOTE:
            at = _lex_string(data, at, end, lexemes, count)
        elif kind == _MARK:
            lexemes.kind[count] = _OPEN if data[at] == 40 else _CLOSE if data[at] == 41 else _COMMA
            at += 1
        elif kind == _SIGN:
            negative = data[at] == 45
            signs += 1
            at = _past_spaces(data, at + 1, end)
            if at >= end or (_CLASS[data[at]] != _DIGIT and _CLASS[data[at]] != _DOT):
                return False
            at = _lex_number(data, at, end, negative, lexemes, count)
        elif kind == _NO_CLASS:
            return False
        else:
            at = _lex_comparison(data, at, end, lexemes, count)
        if at < 0:
            return False
        count += 1
    lexemes.kind[count : count + 3] = _END
    return count + signs <= limit


# Lexemes to tokens.


@njit(cache=True, nogil=True)
def _push(out, counts, token):
    out.tokens[counts[_TOKENS]] = token
    counts[_TOKENS] += 1


@njit(cache=True, nogil=True)
def _leaf(out, counts, attribute, operator, kind, number, remainder, text):
    leaf = counts[_LEAVES]
    counts[_LEAVES] += 1
    out.leaf_attribute[leaf] = attribute
    out.leaf_operator[leaf] = operator
    out.leaf_kind[leaf] = kind
    out.leaf_number[leaf] = number
    out.leaf_remainder[leaf] = remainder
    out.leaf_text[leaf] = text
    _push(out, counts, leaf)


@njit(cache=True, nogil=True)
def _pattern_leaf(data, out, counts, patterns, seed, pattern, attribute, first, last):
    kind = LIST if pattern == NULL_TEST else STRING
    text = _intern(patterns, counts, _PATTERNS, data, first, last, (pattern << 32) | attribute, seed)
    _leaf(out, counts, attribute, PATTERN, kind, 0.0, 0, text)


@njit(cache=True, nogil=True)
def _comparison(data, lexemes, at, out, counts, strings, patterns, seed, attribute, operator):
    """The attribute compared with the constant at `at`."""
    kind = lexemes.kind[at]
    negated = operator == _NOT_EQ
    if negated:
        operator = EQ
    if kind == _NUMBER:
        _leaf(out, counts, attribute, operator, NUMBER, lexemes.number[at], lexemes.remainder[at], -1)
    elif kind == _STRING:
        text = _intern(strings, counts, _STRINGS, data, lexemes.first[at], lexemes.last[at], 0, seed)
        _leaf(out, counts, attribute, operator, STRING, 0.0, 0, text)
    elif kind == _LONG_NUMBER:
        long = counts[_LONG]
        counts[_LONG] += 1
        out.long_numbers[long, 0] = counts[_LEAVES]
        out.long_numbers[long, 1] = lexemes.first[at]
        out.long_numbers[long, 2] = lexemes.last[at]
        out.long_numbers[long, 3] = lexemes.remainder[at]
        _leaf(out, counts, attribute, operator, NUMBER, 0.0, 0, -1)
    elif kind != _NULL:
        _leaf(out, counts, attribute, operator, BOOLEAN, 1.0 if kind == _TRUE else 0.0, 0, -1)
    elif operator == NULL_SAFE_EQ:
        _leaf(out, counts, attribute, IS_NULL, NUMBER, 0.0, 0, -1)
    else:
        _pattern_leaf(data, out, counts, patterns, seed, NULL_TEST, attribute, 0, 0)
    if negated:
        _push(out, counts, NOT)


@njit(cache=True, nogil=True)
def _kind_of(lexeme):
    """The kind of constant a lexeme is; LIST for NULL, which goes with every kind, and -1 for what is no constant."""
    if lexeme == _NUMBER or lexeme == _LONG_NUMBER:
        return NUMBER
    if lexeme == _STRING:
        return STRING
    if lexeme == _TRUE or lexeme == _FALSE:
        return BOOLEAN
    return LIST if lexeme == _NULL else -1


@njit(cache=True, nogil=True)
def _between(data, lexemes, at, out, counts, strings, patterns, seed, attribute):
    """`low AND high`; gives the lexeme after it, or -1."""
    low, high = _kind_of(lexemes.kind[at]), _kind_of(lexemes.kind[at + 2]) if lexemes.kind[at + 1] == _AND else -1
    if low < 0 or high < 0 or (low != high and low != LIST and high != LIST):
        return -1
    _comparison(data, lexemes, at, out, counts, strings, patterns, seed, attribute, GE)
    _comparison(data, lexemes, at + 2, out, counts, strings, patterns, seed, attribute, LE)
    _push(out, counts, AND)
    return at + 3


@njit(cache=True, nogil=True)
def _list(data, lexemes, at, out, counts, strings, patterns, seed, attribute, limit):
    """`(constant, …)`; gives the lexeme after it, or -1."""
    if lexemes.kind[at] != _OPEN:
        return -1
    common = LIST
    size = 0
    while True:
        at += 1
        kind = _kind_of(lexemes.kind[at])
        if kind < 0 or (kind != LIST and common != LIST and kind != common) or size >= limit:
            return -1
        if kind != LIST:
            common = kind
        _comparison(data, lexemes, at, out, counts, strings, patterns, seed, attribute, EQ)
        if size > 0:
            _push(out, counts, OR)
        size += 1
        at += 1
        if lexemes.kind[at] == _CLOSE:
            return at + 1
        if lexemes.kind[at] != _COMMA:
            return -1


@njit(cache=True, nogil=True)
def _call(data, lexemes, at, out, counts, names, patterns, seed):
    """`function(attribute, 'text')`; gives the lexeme after it, or -1."""
    pattern = -1
    first, last = lexemes.first[at], lexemes.last[at]
    if _spells(data, first, last, _FUNCTIONS[0]):
        pattern = STARTS_WITH
    elif _spells(data, first, last, _FUNCTIONS[1]):
        pattern = ENDS_WITH
    elif _spells(data, first, last, _FUNCTIONS[2]):
        pattern = CONTAINS
    elif _spells(data, first, last, _FUNCTIONS[3]):
        pattern = SUBSTRING_OF
    kinds = lexemes.kind
    # An END stays an END, so each test guards the next one's look ahead.
    if pattern < 0 or kinds[at + 2] != _NAME or kinds[at + 3] != _COMMA:
        return -1
    if kinds[at + 4] != _STRING or kinds[at + 5] != _CLOSE:
        return -1
    first, last = lexemes.first[at + 2], lexemes.last[at + 2]
    for word in _QUERY_WORDS:
        if _spells(data, first, last, word):
            return -1
    attribute = _intern(names, counts, _NAMES, data, first, last, 0, seed)
    _pattern_leaf(
        data, out, counts, patterns, seed, pattern, attribute, lexemes.first[at + 4], lexemes.last[at + 4]
    )
    return at + 6


@njit(cache=True, nogil=True)
def _truth_test(data, lexemes, at, out, counts):
    """What follows IS, as a test of the condition before it; gives the lexeme after it, or -1."""
    negated = lexemes.kind[at] == _NOT
    if negated:
        at += 1
    kind = lexemes.kind[at]
    if kind == _TRUE:
        _push(out, counts, IS_TRUE)
    elif kind == _FALSE:
        _push(out, counts, IS_FALSE)
    elif kind == _NULL or (
        kind == _NAME and _spells(data, lexemes.first[at], lexemes.last[at], _UNKNOWN_WORD)
    ):
        _push(out, counts, IS_UNKNOWN)
    else:
        return -1
    if negated:
        _push(out, counts, NOT)
    return at + 1


@njit(cache=True, nogil=True)
def _attribute_test(data, lexemes, at, out, counts, strings, patterns, seed, bounds, attribute):
    """What stands after an attribute; gives the lexeme after it and what has been read."""
    kind = lexemes.kind[at]
    if kind == _COMPARISON:
        if _kind_of(lexemes.kind[at + 1]) < 0:
            return at, _UNREAD
        operator = lexemes.first[at]
        _comparison(data, lexemes, at + 1, out, counts, strings, patterns, seed, attribute, operator)
        return at + 2, _TESTABLE
    if kind == _AND or kind == _OR or kind == _CLOSE or kind == _END:
        _leaf(out, counts, attribute, EQ, BOOLEAN, 1.0, 0, -1)
        return at, _PLAIN
    negated = kind == _NOT
    if kind == _IS:
        negated = lexemes.kind[at + 1] == _NOT
        if lexemes.kind[at + 1 + negated] != _NULL:
            _leaf(out, counts, attribute, EQ, BOOLEAN, 1.0, 0, -1)
            at = _truth_test(data, lexemes, at + 1, out, counts)
            return at, _UNREAD if at < 0 else _TESTED
        _leaf(out, counts, attribute, IS_NULL, NUMBER, 0.0, 0, -1)
        at += 2 + negated
    else:
        at += negated
        kind = lexemes.kind[at]
        at += 1
        if kind == _IN:
            at = _list(data, lexemes, at, out, counts, strings, patterns, seed, attribute, bounds.values)
        elif kind == _BETWEEN:
            at = _between(data, lexemes, at, out, counts, strings, patterns, seed, attribute)
        elif kind == _LIKE and lexemes.kind[at] == _STRING:
            first, last = lexemes.first[at], lexemes.last[at]
            if last - first > bounds.pattern:
                return at, _UNREAD
            _pattern_leaf(data, out, counts, patterns, seed, LIKE, attribute, first, last)
            at += 1
        else:
            return at, _UNREAD
        if at < 0:
            return at, _UNREAD
    if negated:
        _push(out, counts, NOT)
    return at, _TESTED


@njit(cache=True, nogil=True)
def _operand(data, lexemes, at, out, counts, names, strings, patterns, seed, bounds, depth):
    """A term without NOT and parentheses; gives the lexeme after it and what has been read."""
    kind = lexemes.kind[at]
    following = lexemes.kind[at + 1]
    if kind == _NAME:
        if following == _OPEN:
            if depth >= bounds.depth:
                return at, _UNREAD
            at = _call(data, lexemes, at, out, counts, names, patterns, seed)
            return at, _UNREAD if at < 0 else _TESTABLE
        attribute = _intern(names, counts, _NAMES, data, lexemes.first[at], lexemes.last[at], 0, seed)
        return _attribute_test(
            data, lexemes, at + 1, out, counts, strings, patterns, seed, bounds, attribute
        )
    if _kind_of(kind) < 0:
        return at, _UNREAD
    if following == _COMPARISON and lexemes.kind[at + 2] == _NAME:
        first, last = lexemes.first[at + 2], lexemes.last[at + 2]
        attribute = _intern(names, counts, _NAMES, data, first, last, 0, seed)
        operator = _FLIPPED[lexemes.first[at + 1]]
        _comparison(data, lexemes, at, out, counts, strings, patterns, seed, attribute, operator)
        return at + 3, _TESTABLE
    if kind == _TRUE:
        _push(out, counts, TRUE)
    elif kind == _FALSE:
        _push(out, counts, FALSE)
    elif kind == _NULL:
        _push(out, counts, UNKNOWN)
    else:
        return at, _UNREAD
    return at + 1, _PLAIN


@njit(cache=True, nogil=True)
def _join(out, counts, operands, height, operator):
    """Replace the two uppermost operands by one, joined by AND or OR; gives the new height."""
    left, right = operands[height - 2], operands[height - 1]
    _push(out, counts, operator)
    if right[0] == operator:
        for position in range(counts[_TOKENS] - 1, right[2], -1):
            out.tokens[position] = out.tokens[position - 1]
        out.tokens[right[2]] = operator
    if left[0] != operator:
        left[0] = operator
        left[2] = right[1]
    return height - 1


@njit(cache=True, nogil=True)
def _parse(data, lexemes, out, counts, names, strings, patterns, seed, bounds, pending, operands):
    """Append one row's tokens and leaves; False where the row is given up."""
    at = 0
    depth = 0
    opened = 0
    height = 0
    while True:
        kind = lexemes.kind[at]
        if kind == _OPEN or kind == _NOT:
            depth += 1
            if depth > bounds.depth:
                return False
            pending[opened] = kind
            opened += 1
            at += 1
            continue
        start = counts[_TOKENS]
        at, read = _operand(data, lexemes, at, out, counts, names, strings, patterns, seed, bounds, depth)
        if read == _UNREAD:
            return False
        operands[height, 0] = 0
        operands[height, 1] = start
        operands[height, 2] = start
        height += 1
        # All that the operand ends: IS binds closest, then NOT, AND, OR, and then the parenthesis.
        while True:
            if lexemes.kind[at] == _IS:
                if read != _TESTABLE:
                    return False
                at = _truth_test(data, lexemes, at + 1, out, counts)
                if at < 0:
                    return False
                operands[height - 1, 0] = 0
            kind = lexemes.kind[at]
            while opened > 0 and pending[opened - 1] == _NOT:
                _push(out, counts, NOT)
                operands[height - 1, 0] = 0
                opened -= 1
                depth -= 1
                read = _TESTABLE
            if opened > 0 and pending[opened - 1] == _AND:
                height = _join(out, counts, operands, height, AND)
                opened -= 1
                read = _TESTABLE
            if kind != _AND and opened > 0 and pending[opened - 1] == _OR:
                height = _join(out, counts, operands, height, OR)
                opened -= 1
                read = _TESTABLE
            if kind == _AND or kind == _OR:
                pending[opened] = kind
                opened += 1
                at += 1
                break
            if kind != _CLOSE or opened == 0:
                return kind == _END and opened == 0
            opened -= 1
            depth -= 1
            at += 1
            if read != _PLAIN:
                read = _TESTABLE


@njit(cache=True, nogil=True)
def read_rows(data, offsets, valid, bounds, seed):
    """Read the texts `data[offsets[i]:offsets[i + 1]]`. Gives

    starts                           row i's tokens are `tokens[starts[i]:starts[i + 1]]`; none where it is given up
    given_up                         1 for each row that is given up
    tokens, leaf_*, long_numbers     as `Output` says
    names, strings, patterns         the entries of the three tables; a pattern's tag is pattern << 32 | attribute
    """
    rows = len(offsets) - 1
    longest = 0
    for row in range(rows):
        if offsets[row + 1] - offsets[row] <= bounds.bytes:
            longest = max(longest, offsets[row + 1] - offsets[row])
    most = min(longest, bounds.lexemes) + 4
    lexemes = Lexemes(
        np.empty(most, np.uint8), np.zeros(most, np.int64), np.zeros(most, np.int64),
        np.empty(most, np.float64), np.empty(most, np.int64),
    )  # fmt: skip
    # Each level of depth is one entry in `pending`, and within a parenthesis an AND and an OR can wait besides.
    pending = np.empty(3 * bounds.depth + 4, np.uint8)
    operands = np.empty((3 * bounds.depth + 4, 3), np.int64)
    size = (offsets[rows] - offsets[0]) // 16 + 1024
    out = Output(
        np.empty(2 * size, np.int32), np.empty(size, np.int32), np.empty(size, np.uint8), np.empty(size, np.uint8),
        np.empty(size, np.float64), np.empty(size, np.int64), np.empty(size, np.int32), np.empty((64, 4), np.int64),
    )  # fmt: skip
    names = Table(np.full(1024, -1, np.int32), np.empty((512, 4), np.int64))
    strings = Table(np.full(1024, -1, np.int32), np.empty((512, 4), np.int64))
    patterns = Table(np.full(1024, -1, np.int32), np.empty((512, 4), np.int64))
    counts = np.zeros(6, np.int64)
    before = np.zeros(6, np.int64)
    starts = np.zeros(rows + 1, np.int64)
    given_up = np.zeros(rows, np.uint8)

    for row in range(rows):
        first, last = offsets[row], offsets[row + 1]
        if not valid[row] or last - first > bounds.bytes or not _lex(data, first, last, bounds.lexemes, lexemes):
            given_up[row] = 1
            starts[row + 1] = counts[_TOKENS]
            continue
        # A token, a leaf or a new entry takes a byte of text at least.
        more = last - first + 8
        leaves = counts[_LEAVES] + more
        if counts[_TOKENS] + more > len(out.tokens) or leaves > len(out.leaf_attribute):
            out = Output(
                _grown(out.tokens, counts[_TOKENS] + more), _grown(out.leaf_attribute, leaves),
                _grown(out.leaf_operator, leaves), _grown(out.leaf_kind, leaves), _grown(out.leaf_number, leaves),
                _grown(out.leaf_remainder, leaves), _grown(out.leaf_text, leaves), out.long_numbers,
            )  # fmt: skip
        if counts[_LONG] + more > len(out.long_numbers):
            out = Output(
                out.tokens, out.leaf_attribute, out.leaf_operator, out.leaf_kind, out.leaf_number,
                out.leaf_remainder, out.leaf_text, _grown(out.long_numbers, counts[_LONG] + more),
            )  # fmt: skip
        names = _roomy(names, counts[_NAMES], more)
        strings = _roomy(strings, counts[_STRINGS], more)
        patterns = _roomy(patterns, counts[_PATTERNS], more)
        before[:] = counts
        read = _parse(data, lexemes, out, counts, names, strings, patterns, seed, bounds, pending, operands)
        if not read or counts[_TOKENS] - before[_TOKENS] > bounds.tokens:
            given_up[row] = 1
            _take_back(names, data, before[_NAMES], counts[_NAMES])
            _take_back(strings, data, before[_STRINGS], counts[_STRINGS])
            _take_back(patterns, data, before[_PATTERNS], counts[_PATTERNS])
            counts[:] = before
        starts[row + 1] = counts[_TOKENS]
    leaves = counts[_LEAVES]
    return (
        starts, given_up, out.tokens[: counts[_TOKENS]], out.leaf_attribute[:leaves], out.leaf_operator[:leaves],
        out.leaf_kind[:leaves], out.leaf_number[:leaves], out.leaf_remainder[:leaves], out.leaf_text[:leaves],
        out.long_numbers[: counts[_LONG]], names.entries[: counts[_NAMES]], strings.entries[: counts[_STRINGS]],
        patterns.entries[: counts[_PATTERNS]],
    )  # fmt: skip
