"""Kernels that read filters: the UTF-8 bytes of many texts to the postfix tokens of `covey.matching.lowering.Flat`.

They read the part of the language in which nearly all subscriptions are written, and give up on a row as soon as
anything else turns up: a row that is given up leaves no trace and is parsed by `covey.language`. So there are no
error messages here, and no rule needs to be known twice where it is rare. Three layers, each a row at a time:

    _lex       bytes to lexemes (records of _LEXEME, in a scratch array); numbers are converted here
    _parse     lexemes to postfix tokens and leaves (records of LEAF), appended to the output
    read_rows  all rows; the output and the hash table grow between rows, so that nothing below checks for room

An expression needs two explicit stacks, since Numba can't cache recursive functions. `pending` holds what is open: a
parenthesis, NOT, AND, OR. `operands` describes each finished operand by (root, start, end of its first member), where
the last two are positions in the tokens. Filters keep And and Or flat, so `a AND (b AND c)` must come out as
`a b AND c AND`: where the right operand of an AND is itself an And, one AND goes in after that And's first member
instead of at the end. That moves tokens; the limit on depth bounds how often a token is moved.

Names, strings and patterns are numbered in the order in which they appear, by one hash table over spans of the texts:

    slots    [2^k]        an entry's number, or -1; linear probing, at most half full
    entries  [number, 5]  hash, first byte, end, tag, and the number among the names, strings or patterns

Spans are equal if their bytes and tags are. The tag is NAME_TAG, STRING_TAG, or (pattern + 1) << 32 | attribute.
Entries are taken back in the reverse order when a row is given up, which open addressing allows without tombstones.
"""

from __future__ import annotations

import numpy as np
from llvmlite.ir import Constant
from numba import njit
from numba.extending import intrinsic
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
"""The language's keywords, all of up to seven letters; a row with one that is left out is given up."""

_NOT_EQ = 8
"""`!=`, which is EQ and NOT in postfix form. The other operators are those of leaves."""

# Pattern leaves before Python has made predicates of them; NULL_TEST is a comparison with NULL.
LIKE, STARTS_WITH, ENDS_WITH, CONTAINS, SUBSTRING_OF, NULL_TEST = range(6)

# Columns of `counts`: how much of each output is in use.
_TOKENS, _LEAVES, _ENTRIES, _NAMES, _STRINGS, _PATTERNS = range(6)

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

_LEXEME = np.dtype(
    [("kind", np.int64), ("first", np.int64), ("last", np.int64), ("number", np.float64), ("remainder", np.int64)]
)
"""`first` and `last` bound a name, a string (without quotes) or a long number; `first` of a comparison is its operator.
`number` and `remainder` are as in `Flat`; `remainder` of a long number is its sign. Three lexemes of kind END stand
after the last, for looking ahead."""

LEAF = np.dtype(
    [
        ("number", np.float64),
        ("remainder", np.int64),
        ("attribute", np.int32),
        ("text", np.int32),
        ("operator", np.uint8),
        ("kind", np.uint8),
    ],
    align=True,
)
"""A leaf as in `Flat`, but for two: `text` of a pattern is its number among the patterns, and a leaf of LONG_NUMBER is
a number that Python has to convert, with its first byte in `remainder` and its length, times its sign, in `text`."""

LONG_NUMBER = 5
"""A kind of constants besides those of `Flat`."""

NAME_TAG, STRING_TAG = 0, 1

# Columns of `bounds`, the limits that a row is read under; a row above one of them is given up.
MOST_BYTES, MOST_LEXEMES, MOST_DEPTH, MOST_VALUES, LONGEST_PATTERN, MOST_TOKENS = range(6)


@intrinsic
def _borrowed(_, array):
    """The array without its count of references; whoever lends it must keep it.

    Numba counts references at each call that passes an array on, and atomically: that took three quarters of the time.
    """

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = Constant(view.meminfo.type, None)
        view.parent = Constant(view.parent.type, None)
        return view._getvalue()

    return array(array), generate


@njit(cache=True, nogil=True)
def _keep(data, lexemes, bounds, pending, operands, slots):
    """Called after the last use of what was borrowed, so that it isn't freed before."""


# Hash tables.


@njit(cache=True, nogil=True, forceinline=True)
def _hash(data, first, last, tag, seed):
    state = (seed ^ tag) * _MULTIPLIER
    for at in range(first, last):
        state = (state ^ data[at]) * _MULTIPLIER
        state ^= (state >> 29) & 0x7FFFFFFFF
    return state ^ (last - first)


@njit(cache=True, nogil=True, forceinline=True)
def _slot(slots, entries, data, first, last, tag, hashed):
    """Where the span stands, or the free slot where it would."""
    mask = len(slots) - 1
    slot = hashed & mask
    while True:
        entry = slots[slot]
        if entry < 0:
            return slot
        if entries[entry, 0] == hashed and entries[entry, 3] == tag:
            known = entries[entry, 1]
            if entries[entry, 2] - known == last - first:
                same = True
                for offset in range(last - first):
                    if data[known + offset] != data[first + offset]:
                        same = False
                        break
                if same:
                    return slot
        slot = (slot + 1) & mask


@njit(cache=True, nogil=True, forceinline=True)
def _intern(slots, entries, counts, which, data, first, last, tag, seed):
    """The number of a span among those of its sort; a new one if it's new."""
    hashed = _hash(data, first, last, tag, seed)
    slot = _slot(slots, entries, data, first, last, tag, hashed)
    entry = slots[slot]
    if entry < 0:
        entry = counts[_ENTRIES]
        slots[slot] = entry
        entries[entry, 0] = hashed
        entries[entry, 1] = first
        entries[entry, 2] = last
        entries[entry, 3] = tag
        entries[entry, 4] = counts[which]
        counts[_ENTRIES] += 1
        counts[which] += 1
    return entries[entry, 4]


@njit(cache=True, nogil=True)
def _take_back(slots, entries, data, before, after):
    """Remove the entries from `before` on, the last first."""
    for entry in range(after - 1, before - 1, -1):
        first, last = entries[entry, 1], entries[entry, 2]
        slots[_slot(slots, entries, data, first, last, entries[entry, 3], entries[entry, 0])] = -1


@njit(cache=True, nogil=True)
def _roomy(slots, entries, count):
    """Twice as many slots as there's room for entries, at least."""
    size = len(slots)
    while size < 2 * len(entries):
        size *= 2
    larger = np.full(size, -1, np.int32)
    for entry in range(count):
        slot = entries[entry, 0] & (size - 1)
        while larger[slot] >= 0:
            slot = (slot + 1) & (size - 1)
        larger[slot] = entry
    return larger


# Bytes to lexemes.


@njit(cache=True, nogil=True, forceinline=True)
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
    same = True
    for offset in range(len(word)):
        same &= data[first + offset] & 0xDF == word[offset]
    return same


@njit(cache=True, nogil=True, forceinline=True)
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
    lexemes[count].kind = kind
    lexemes[count].first = first
    lexemes[count].last = at
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
    lexemes[count].kind = _NUMBER
    lexemes[count].remainder = 0
    power = exponent - scale
    if whole:
        if digits > _DIGITS:
            return -1
        if negative:
            mantissa = -mantissa
        nearest = np.float64(mantissa)
        lexemes[count].number = nearest
        lexemes[count].remainder = mantissa - np.int64(nearest)
    elif digits <= _DIGITS and mantissa <= _EXACT and -22 <= power <= 22:
        value = np.float64(mantissa)
        value = value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
        lexemes[count].number = 0.0 - value if negative else value  # 0.0 - 0.0 is 0.0, where -0.0 has a sign
    else:
        lexemes[count].kind = _LONG_NUMBER
        lexemes[count].first = first
        lexemes[count].last = at
        lexemes[count].remainder = -1 if negative else 1
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
    lexemes[count].kind = _STRING
    lexemes[count].first = first
    lexemes[count].last = at
    return at + 1


@njit(cache=True, nogil=True)
def _lex_comparison(data, at, end, lexemes, count):
    """A comparison operator; gives the byte after it, or -1."""
    here = _CLASS[data[at]]
    following = _CLASS[data[at + 1]] if at + 1 < end else _NO_CLASS
    third = _CLASS[data[at + 2]] if at + 2 < end else _NO_CLASS
    lexemes[count].kind = _COMPARISON
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
    elif following in (_LESS, _GREATER):
        return -1
    else:
        operator, length = EQ, 1
    lexemes[count].first = operator
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
        elif kind in (_DIGIT, _DOT):
            at = _lex_number(data, at, end, False, lexemes, count)
        elif kind == _QUOTE:
            at = _lex_string(data, at, end, lexemes, count)
        elif kind == _MARK:
            lexemes[count].kind = _OPEN if data[at] == 40 else _CLOSE if data[at] == 41 else _COMMA
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
    for padding in range(count, count + 3):
        lexemes[padding].kind = _END
    return count + signs <= limit


# Lexemes to tokens.


@njit(cache=True, nogil=True, forceinline=True)
def _push(tokens, counts, token):
    tokens[counts[_TOKENS]] = token
    counts[_TOKENS] += 1


@njit(cache=True, nogil=True, forceinline=True)
def _leaf(tokens, leaves, counts, attribute, operator, kind, number, remainder, text):
    leaf = counts[_LEAVES]
    counts[_LEAVES] += 1
    leaves[leaf].attribute = attribute
    leaves[leaf].operator = operator
    leaves[leaf].kind = kind
    leaves[leaf].number = number
    leaves[leaf].remainder = remainder
    leaves[leaf].text = text
    _push(tokens, counts, leaf)


@njit(cache=True, nogil=True, forceinline=True)
def _pattern_leaf(data, tokens, leaves, counts, slots, entries, seed, pattern, attribute, first, last):
    kind = LIST if pattern == NULL_TEST else STRING
    tag = ((pattern + 1) << 32) | attribute
    text = _intern(slots, entries, counts, _PATTERNS, data, first, last, tag, seed)
    _leaf(tokens, leaves, counts, attribute, PATTERN, kind, 0.0, 0, text)


@njit(cache=True, nogil=True, forceinline=True)
def _comparison(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute, operator):
    """The attribute compared with the constant at `at`."""
    kind = lexemes[at].kind
    negated = operator == _NOT_EQ
    if negated:
        operator = EQ
    if kind == _NUMBER:
        _leaf(tokens, leaves, counts, attribute, operator, NUMBER, lexemes[at].number, lexemes[at].remainder, -1)
    elif kind == _STRING:
        text = _intern(slots, entries, counts, _STRINGS, data, lexemes[at].first, lexemes[at].last, STRING_TAG, seed)
        _leaf(tokens, leaves, counts, attribute, operator, STRING, 0.0, 0, text)
    elif kind == _LONG_NUMBER:
        first, last, sign = lexemes[at].first, lexemes[at].last, lexemes[at].remainder
        _leaf(tokens, leaves, counts, attribute, operator, LONG_NUMBER, 0.0, first, sign * (last - first))
    elif kind != _NULL:
        _leaf(tokens, leaves, counts, attribute, operator, BOOLEAN, 1.0 if kind == _TRUE else 0.0, 0, -1)
    elif operator == NULL_SAFE_EQ:
        _leaf(tokens, leaves, counts, attribute, IS_NULL, NUMBER, 0.0, 0, -1)
    else:
        _pattern_leaf(data, tokens, leaves, counts, slots, entries, seed, NULL_TEST, attribute, 0, 0)
    if negated:
        _push(tokens, counts, NOT)


@njit(cache=True, nogil=True, forceinline=True)
def _kind_of(lexeme):
    """The kind of constant a lexeme is; LIST for NULL, which goes with every kind, and -1 for what is no constant."""
    if lexeme in (_NUMBER, _LONG_NUMBER):
        return NUMBER
    if lexeme == _STRING:
        return STRING
    if lexeme in (_TRUE, _FALSE):
        return BOOLEAN
    return LIST if lexeme == _NULL else -1


@njit(cache=True, nogil=True, forceinline=True)
def _between(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute):
    """`low AND high`; gives the lexeme after it, or -1."""
    low, high = _kind_of(lexemes[at].kind), _kind_of(lexemes[at + 2].kind) if lexemes[at + 1].kind == _AND else -1
    if low < 0 or high < 0 or (low != high and low != LIST and high != LIST):
        return -1
    _comparison(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute, GE)
    _comparison(data, lexemes, at + 2, tokens, leaves, counts, slots, entries, seed, attribute, LE)
    _push(tokens, counts, AND)
    return at + 3


@njit(cache=True, nogil=True, forceinline=True)
def _list(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute, limit):
    """`(constant, …)`; gives the lexeme after it, or -1."""
    if lexemes[at].kind != _OPEN:
        return -1
    common = LIST
    size = 0
    while True:
        at += 1
        kind = _kind_of(lexemes[at].kind)
        if kind < 0 or (kind != LIST and common != LIST and kind != common) or size >= limit:
            return -1
        if kind != LIST:
            common = kind
        _comparison(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute, EQ)
        if size > 0:
            _push(tokens, counts, OR)
        size += 1
        at += 1
        if lexemes[at].kind == _CLOSE:
            return at + 1
        if lexemes[at].kind != _COMMA:
            return -1


@njit(cache=True, nogil=True)
def _call(data, lexemes, at, tokens, leaves, counts, slots, entries, seed):
    """`function(attribute, 'text')`; gives the lexeme after it, or -1."""
    pattern = -1
    first, last = lexemes[at].first, lexemes[at].last
    if _spells(data, first, last, _FUNCTIONS[0]):
        pattern = STARTS_WITH
    elif _spells(data, first, last, _FUNCTIONS[1]):
        pattern = ENDS_WITH
    elif _spells(data, first, last, _FUNCTIONS[2]):
        pattern = CONTAINS
    elif _spells(data, first, last, _FUNCTIONS[3]):
        pattern = SUBSTRING_OF
    # An END stays an END, so each test guards the next one's look ahead.
    if pattern < 0 or lexemes[at + 2].kind != _NAME or lexemes[at + 3].kind != _COMMA:
        return -1
    if lexemes[at + 4].kind != _STRING or lexemes[at + 5].kind != _CLOSE:
        return -1
    first, last = lexemes[at + 2].first, lexemes[at + 2].last
    for word in _QUERY_WORDS:
        if _spells(data, first, last, word):
            return -1
    attribute = _intern(slots, entries, counts, _NAMES, data, first, last, NAME_TAG, seed)
    _pattern_leaf(
        data,
        tokens,
        leaves,
        counts,
        slots,
        entries,
        seed,
        pattern,
        attribute,
        lexemes[at + 4].first,
        lexemes[at + 4].last,
    )
    return at + 6


@njit(cache=True, nogil=True)
def _truth_test(data, lexemes, at, tokens, counts):
    """What follows IS, as a test of the condition before it; gives the lexeme after it, or -1."""
    negated = lexemes[at].kind == _NOT
    if negated:
        at += 1
    kind = lexemes[at].kind
    if kind == _TRUE:
        _push(tokens, counts, IS_TRUE)
    elif kind == _FALSE:
        _push(tokens, counts, IS_FALSE)
    elif kind == _NULL or (kind == _NAME and _spells(data, lexemes[at].first, lexemes[at].last, _UNKNOWN_WORD)):
        _push(tokens, counts, IS_UNKNOWN)
    else:
        return -1
    if negated:
        _push(tokens, counts, NOT)
    return at + 1


@njit(cache=True, nogil=True, forceinline=True)
def _attribute_test(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, bounds, attribute):
    """What stands after an attribute; gives the lexeme after it and what has been read."""
    kind = lexemes[at].kind
    if kind == _COMPARISON:
        if _kind_of(lexemes[at + 1].kind) < 0:
            return at, _UNREAD
        operator = lexemes[at].first
        _comparison(data, lexemes, at + 1, tokens, leaves, counts, slots, entries, seed, attribute, operator)
        return at + 2, _TESTABLE
    if kind in (_AND, _OR, _CLOSE, _END):
        _leaf(tokens, leaves, counts, attribute, EQ, BOOLEAN, 1.0, 0, -1)
        return at, _PLAIN
    negated = kind == _NOT
    if kind == _IS:
        negated = lexemes[at + 1].kind == _NOT
        if lexemes[at + 1 + negated].kind != _NULL:
            _leaf(tokens, leaves, counts, attribute, EQ, BOOLEAN, 1.0, 0, -1)
            at = _truth_test(data, lexemes, at + 1, tokens, counts)
            return at, _UNREAD if at < 0 else _TESTED
        _leaf(tokens, leaves, counts, attribute, IS_NULL, NUMBER, 0.0, 0, -1)
        at += 2 + negated
    else:
        at += negated
        kind = lexemes[at].kind
        at += 1
        if kind == _IN:
            at = _list(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute, bounds[MOST_VALUES])
        elif kind == _BETWEEN:
            at = _between(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute)
        elif kind == _LIKE and lexemes[at].kind == _STRING:
            first, last = lexemes[at].first, lexemes[at].last
            if last - first > bounds[LONGEST_PATTERN]:
                return at, _UNREAD
            _pattern_leaf(data, tokens, leaves, counts, slots, entries, seed, LIKE, attribute, first, last)
            at += 1
        else:
            return at, _UNREAD
        if at < 0:
            return at, _UNREAD
    if negated:
        _push(tokens, counts, NOT)
    return at, _TESTED


@njit(cache=True, nogil=True, forceinline=True)
def _operand(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, bounds, depth):
    """A term without NOT and parentheses; gives the lexeme after it and what has been read."""
    kind = lexemes[at].kind
    following = lexemes[at + 1].kind
    if kind == _NAME:
        if following == _OPEN:
            if depth >= bounds[MOST_DEPTH]:
                return at, _UNREAD
            at = _call(data, lexemes, at, tokens, leaves, counts, slots, entries, seed)
            return at, _UNREAD if at < 0 else _TESTABLE
        attribute = _intern(slots, entries, counts, _NAMES, data, lexemes[at].first, lexemes[at].last, NAME_TAG, seed)
        return _attribute_test(data, lexemes, at + 1, tokens, leaves, counts, slots, entries, seed, bounds, attribute)
    if _kind_of(kind) < 0:
        return at, _UNREAD
    if following == _COMPARISON and lexemes[at + 2].kind == _NAME:
        first, last = lexemes[at + 2].first, lexemes[at + 2].last
        attribute = _intern(slots, entries, counts, _NAMES, data, first, last, NAME_TAG, seed)
        operator = _FLIPPED[lexemes[at + 1].first]
        _comparison(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute, operator)
        return at + 3, _TESTABLE
    if kind == _TRUE:
        _push(tokens, counts, TRUE)
    elif kind == _FALSE:
        _push(tokens, counts, FALSE)
    elif kind == _NULL:
        _push(tokens, counts, UNKNOWN)
    else:
        return at, _UNREAD
    return at + 1, _PLAIN


@njit(cache=True, nogil=True)
def _join(tokens, counts, operands, height, operator):
    """Replace the two uppermost operands by one, joined by AND or OR; gives the new height."""
    left, right = height - 2, height - 1
    _push(tokens, counts, operator)
    if operands[right, 0] == operator:
        member = operands[right, 2]
        for position in range(counts[_TOKENS] - 1, member, -1):
            tokens[position] = tokens[position - 1]
        tokens[member] = operator
    if operands[left, 0] != operator:
        operands[left, 0] = operator
        operands[left, 2] = operands[right, 1]
    return height - 1


@njit(cache=True, nogil=True)
def _parse(data, lexemes, tokens, leaves, counts, slots, entries, seed, bounds, pending, operands):
    """Append one row's tokens and leaves; False where the row is given up."""
    at = 0
    depth = 0
    opened = 0
    height = 0
    while True:
        kind = lexemes[at].kind
        if kind in (_OPEN, _NOT):
            depth += 1
            if depth > bounds[MOST_DEPTH]:
                return False
            pending[opened] = kind
            opened += 1
            at += 1
            continue
        start = counts[_TOKENS]
        at, read = _operand(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, bounds, depth)
        if read == _UNREAD:
            return False
        operands[height, 0] = 0
        operands[height, 1] = start
        operands[height, 2] = start
        height += 1
        # All that the operand ends: IS binds closest, then NOT, AND, OR, and then the parenthesis.
        while True:
            if lexemes[at].kind == _IS:
                if read != _TESTABLE:
                    return False
                at = _truth_test(data, lexemes, at + 1, tokens, counts)
                if at < 0:
                    return False
                operands[height - 1, 0] = 0
            kind = lexemes[at].kind
            while opened > 0 and pending[opened - 1] == _NOT:
                _push(tokens, counts, NOT)
                operands[height - 1, 0] = 0
                opened -= 1
                depth -= 1
                read = _TESTABLE
            if opened > 0 and pending[opened - 1] == _AND:
                height = _join(tokens, counts, operands, height, AND)
                opened -= 1
                read = _TESTABLE
            if kind != _AND and opened > 0 and pending[opened - 1] == _OR:
                height = _join(tokens, counts, operands, height, OR)
                opened -= 1
                read = _TESTABLE
            if kind in (_AND, _OR):
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
    """Read the texts `data[offsets[i]:offsets[i + 1]]`, but for those that aren't valid, and give

    starts     row i's tokens are `tokens[starts[i]:starts[i + 1]]`; none where it is given up
    given_up   1 for each row that is given up
    tokens     as in `Flat`
    leaves     of the dtype LEAF
    entries    all names, strings and patterns, each in order
    """
    rows = len(offsets) - 1
    longest = 0
    for row in range(rows):
        if offsets[row + 1] - offsets[row] <= bounds[MOST_BYTES]:
            longest = max(longest, offsets[row + 1] - offsets[row])
    most = min(longest, bounds[MOST_LEXEMES]) + 4
    lexemes = np.zeros(most, _LEXEME)
    # Each level of depth is one entry in `pending`, and within a parenthesis an AND and an OR can wait besides.
    pending = np.empty(3 * bounds[MOST_DEPTH] + 4, np.uint8)
    operands = np.empty((3 * bounds[MOST_DEPTH] + 4, 3), np.int64)
    size = (offsets[rows] - offsets[0]) // 16 + 1024
    tokens = np.empty(2 * size, np.int32)
    leaves = np.empty(size, LEAF)
    slots = np.full(1024, -1, np.int32)
    entries = np.empty((512, 5), np.int64)
    counts = np.zeros(6, np.int64)
    before = np.zeros(6, np.int64)
    starts = np.zeros(rows + 1, np.int64)
    given_up = np.zeros(rows, np.uint8)

    lent_data, lent_lexemes, lent_bounds = _borrowed(data), _borrowed(lexemes), _borrowed(bounds)
    lent_tokens, lent_leaves, lent_slots, lent_entries = (
        _borrowed(tokens), _borrowed(leaves), _borrowed(slots), _borrowed(entries),
    )  # fmt: skip
    lent_pending, lent_operands, lent_counts = _borrowed(pending), _borrowed(operands), _borrowed(counts)
    for row in range(rows):
        first, last = offsets[row], offsets[row + 1]
        readable = valid[row] and last - first <= bounds[MOST_BYTES]
        if not readable or not _lex(lent_data, first, last, bounds[MOST_LEXEMES], lent_lexemes):
            given_up[row] = 1
            starts[row + 1] = counts[_TOKENS]
            continue
        # A token, a leaf or a new entry takes a byte of text at least.
        more = last - first + 8
        if counts[_TOKENS] + more > len(tokens):
            tokens = _grown(tokens, counts[_TOKENS] + more)
            lent_tokens = _borrowed(tokens)
        if counts[_LEAVES] + more > len(leaves):
            leaves = _grown(leaves, counts[_LEAVES] + more)
            lent_leaves = _borrowed(leaves)
        if counts[_ENTRIES] + more > len(entries):
            entries = _grown(entries, counts[_ENTRIES] + more)
            slots = _roomy(slots, entries, counts[_ENTRIES])
            lent_slots, lent_entries = _borrowed(slots), _borrowed(entries)
        for column in range(len(counts)):
            before[column] = counts[column]
        read = _parse(
            lent_data, lent_lexemes, lent_tokens, lent_leaves, lent_counts, lent_slots, lent_entries, seed,
            lent_bounds, lent_pending, lent_operands,
        )  # fmt: skip
        if not read or counts[_TOKENS] - before[_TOKENS] > bounds[MOST_TOKENS]:
            given_up[row] = 1
            _take_back(lent_slots, lent_entries, lent_data, before[_ENTRIES], counts[_ENTRIES])
            for column in range(len(counts)):
                counts[column] = before[column]
        starts[row + 1] = counts[_TOKENS]
    _keep(data, lexemes, bounds, pending, operands, slots)
    return (starts, given_up, tokens[: counts[_TOKENS]], leaves[: counts[_LEAVES]], entries[: counts[_ENTRIES]])
