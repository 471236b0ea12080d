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
"""

from __future__ import annotations

import numpy as np

from covey.kernels.bulk_interning import (
    _ENTRIES,
    _LEAVES,
    _NAMES,
    _PATTERNS,
    _STRINGS,
    _TOKENS,
    NAME_TAG,
    STRING_TAG,
    _borrowed,
    _intern,
    _keep,
    _roomy,
    _take_back,
)
from covey.kernels.bulk_lexing import (
    _AND,
    _BETWEEN,
    _CLOSE,
    _COMMA,
    _COMPARISON,
    _END,
    _FALSE,
    _IN,
    _IS,
    _LEXEME,
    _LIKE,
    _LONG_NUMBER,
    _NAME,
    _NOT,
    _NOT_EQ,
    _NULL,
    _NUMBER,
    _OPEN,
    _OR,
    _STRING,
    _TRUE,
    _lex,
    _spells,
)
from covey.kernels.compiling import _grown, _grown_rows
from covey.kernels.jit import forced, inner, kernel
from covey.kernels.opcodes import (
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
from covey.kernels.types import FrozenBytes, FrozenFlags, FrozenInt64s, Int64, Int64s

# Pattern leaves before Python has made predicates of them; NULL_TEST is a comparison with NULL.
LIKE, STARTS_WITH, ENDS_WITH, CONTAINS, SUBSTRING_OF, NULL_TEST = range(6)

# What `_operand` has read: nothing it knows, a name or constant alone, a condition that IS may follow, or one that
# nothing but AND, OR and ) may follow.
_UNREAD, _PLAIN, _TESTABLE, _TESTED = range(4)

_FLIPPED = np.array([EQ, GT, GE, LT, LE, NULL_SAFE_EQ, -1, -1, _NOT_EQ], np.int64)
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

# Columns of `bounds`, the limits that a row is read under; a row above one of them is given up.
MOST_BYTES, MOST_LEXEMES, MOST_DEPTH, MOST_VALUES, LONGEST_PATTERN, MOST_TOKENS = range(6)


@forced
def _push(tokens, counts, token):
    tokens[counts[_TOKENS]] = token
    counts[_TOKENS] += 1


@forced
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


@forced
def _pattern_leaf(data, tokens, leaves, counts, slots, entries, seed, pattern, attribute, first, last):
    kind = LIST if pattern == NULL_TEST else STRING
    tag = ((pattern + 1) << 32) | attribute
    text = _intern(slots, entries, counts, _PATTERNS, data, first, last, tag, seed)
    _leaf(tokens, leaves, counts, attribute, PATTERN, kind, 0.0, 0, text)


@forced
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


@forced
def _kind_of(lexeme):
    """The kind of constant a lexeme is; LIST for NULL, which goes with every kind, and -1 for what is no constant."""
    if lexeme in (_NUMBER, _LONG_NUMBER):
        return NUMBER
    if lexeme == _STRING:
        return STRING
    if lexeme in (_TRUE, _FALSE):
        return BOOLEAN
    return LIST if lexeme == _NULL else -1


@forced
def _between(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute):
    """`low AND high`; gives the lexeme after it, or -1."""
    low, high = _kind_of(lexemes[at].kind), _kind_of(lexemes[at + 2].kind) if lexemes[at + 1].kind == _AND else -1
    if low < 0 or high < 0 or (low != high and low != LIST and high != LIST):
        return -1
    _comparison(data, lexemes, at, tokens, leaves, counts, slots, entries, seed, attribute, GE)
    _comparison(data, lexemes, at + 2, tokens, leaves, counts, slots, entries, seed, attribute, LE)
    _push(tokens, counts, AND)
    return at + 3


@forced
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


@inner
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


@inner
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


@forced
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


@forced
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


@inner
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


@inner
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


@kernel
def read_rows(data: FrozenBytes, offsets: FrozenInt64s, valid: FrozenFlags, bounds: Int64s, seed: Int64):
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
            entries = _grown_rows(entries, counts[_ENTRIES] + more)
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
