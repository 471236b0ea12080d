"""Bytes to lexemes: the first layer of bulk parsing, a row at a time.

A row with anything but names, plain strings, numbers, operators and the keywords below is given up. Numbers are
converted here, exactly: a mantissa below 2^53 and a power of ten up to 22 take one correctly rounded operation, and
longer ones are left to Python.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covey.kernels.jit import forced, inner
from covey.kernels.opcodes import EQ, GE, GT, LE, LT, NULL_SAFE_EQ

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
_DOUBLE_DIGITS = 15
"""Significant digits of a decimal that its nearest double always keeps; with more it may be no double's."""
_LONG_DIGITS = 100
_LONG_POWER = 200
"""What has no more digits and no larger power of ten is finite, and Python can convert it; more is given up."""

_LEXEME = np.dtype(
    [("kind", np.int64), ("first", np.int64), ("last", np.int64), ("number", np.float64), ("remainder", np.int64)]
)
"""`first` and `last` bound a name, a string (without quotes) or a long number; `first` of a comparison is its operator.
`number` and `remainder` are as in `Flat`; `remainder` of a long number is its sign. Three lexemes of kind END stand
after the last, for looking ahead."""


@forced
def _word(code, length):
    """The kind of a word, given as its capitals in one integer."""
    if length <= _LONGEST_WORD:
        for word in range(len(_WORD_CODE)):
            if _WORD_CODE[word] == code and _WORD_LENGTH[word] == length:
                return _WORD_KIND[word]
    return _NAME


@inner
def _spells(data, first, last, word):
    """Whether a name is the given word of capitals, in any case."""
    if last - first != len(word):
        return False
    same = True
    for offset in range(len(word)):
        same &= data[first + offset] & 0xDF == word[offset]
    return same


@forced
def _past_spaces(data, at, end):
    while at < end and _CLASS[data[at]] == _SPACE:
        at += 1
    return at


@inner
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


@inner
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
    long = not whole and digits > _DOUBLE_DIGITS
    if at < end and (data[at] == 101 or data[at] == 69):
        whole = False
        long = False
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
    elif not long and digits <= _DIGITS and mantissa <= _EXACT and -22 <= power <= 22:
        value = np.float64(mantissa)
        value = value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
        lexemes[count].number = 0.0 - value if negative else value  # 0.0 - 0.0 is 0.0, where -0.0 has a sign
    else:
        lexemes[count].kind = _LONG_NUMBER
        lexemes[count].first = first
        lexemes[count].last = at
        lexemes[count].remainder = -1 if negative else 1
    return at


@inner
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


@inner
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


@inner
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
