"""Many texts to `Flat` at once, for building an index of a million subscriptions in seconds.

The kernels read the common part of the language straight from Arrow's buffers, some fifty times as fast as the parser
builds filters. The rows that they give up, every erroneous one among them, go through `covey.language.parse` and
`Lowering`, so the result is what those two give for all rows, but for the order in which names, strings, patterns and
leaves are numbered. A row that is an error gets the constant FALSE for its tokens, so that row numbers stay aligned.

Rows are split among threads (the kernels hold no lock); each part numbers its names and strings for itself, and
joining the parts costs time only for distinct ones.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import CoveyError
from covey.filters import (
    FALSE,
    Compare,
    Contains,
    EndsWith,
    Filter,
    Like,
    StartsWith,
    SubstringOf,
)
from covey.filters.predicates import decimal_constant
from covey.filters.terms import comparison, fixed, known_term, term_of
from covey.kernels.bulk_interning import NAME_TAG, STRING_TAG
from covey.kernels.bulk_parsing import (
    CONTAINS,
    ENDS_WITH,
    LEAF,
    LIKE,
    LONG_NUMBER,
    LONGEST_PATTERN,
    MOST_BYTES,
    MOST_DEPTH,
    MOST_LEXEMES,
    MOST_TOKENS,
    MOST_VALUES,
    NULL_TEST,
    STARTS_WITH,
    SUBSTRING_OF,
    read_rows,
)
from covey.kernels.opcodes import NUMBER, PATTERN, STRING
from covey.language import parse
from covey.language.operands import is_only_in_terms
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching.lowering import FEW_VALUES, Flat, Lowering, is_told_apart, number_pair

_PART_ROWS: Final = 16_384
"""Fewer rows than this aren't worth a thread."""

_DEPTH: Final = 100
"""The kernels read nothing deeper: beyond it, Python's own stack may end before `limits.depth` does."""

_LONGEST_TEXT: Final = 1 << 18
"""Bytes of a text that kernels read, for which they keep room; longer ones are few and go one by one."""

_MOST: Final = 2**31 - 1

_PREDICATES: Final[dict[int, Any]] = {
    LIKE: Like,
    STARTS_WITH: StartsWith,
    ENDS_WITH: EndsWith,
    CONTAINS: Contains,
    SUBSTRING_OF: SubstringOf,
    NULL_TEST: lambda name, _: Compare(name, "=", None),
}

Ids = NDArray[np.int32]
Errors = list[tuple[int, CoveyError]]


def parse_bulk(texts: pa.Array, limits: Limits = DEFAULT_LIMITS, *, threads: int | None = None) -> tuple[Flat, Errors]:
    """The filters of all texts in postfix form, and the rows that are errors.

    `threads` is how many may be used at most; without it, one for each processor.
    """
    if texts.type != pa.large_string():
        texts = texts.cast(pa.large_string())
    texts.validate(full=True)  # the kernels trust offsets and UTF-8
    data, parts = _read(texts, limits, threads or os.cpu_count() or 1)
    rest, errors = _parse_rest(texts, np.concatenate([part.given_up for part in parts]).nonzero()[0].tolist(), limits)
    return _join(data, parts, rest), errors


def _read(texts: pa.Array, limits: Limits, threads: int) -> tuple[NDArray[np.uint8], list[_Rows]]:
    """The texts' bytes, and what the kernels read of them."""
    count = len(texts)
    _, offset_buffer, bytes_buffer = texts.buffers()
    data = np.frombuffer(bytes_buffer, np.uint8) if bytes_buffer else np.empty(0, np.uint8)
    if count:
        offsets = np.frombuffer(offset_buffer, np.int64)[texts.offset : texts.offset + count + 1]
    else:
        offsets = np.zeros(1, np.int64)
    valid = texts.is_valid().to_numpy(zero_copy_only=False).view()
    for array in (data, offsets, valid):
        array.flags.writeable = False  # always, since Numba compiles anew for arrays that it may write to
    bounds = np.empty(6, np.int64)
    bounds[MOST_BYTES] = min(limits.text_length, _LONGEST_TEXT)
    bounds[MOST_LEXEMES] = min(limits.tokens, _LONGEST_TEXT)
    bounds[MOST_DEPTH] = min(limits.depth, _DEPTH)
    bounds[MOST_VALUES] = min(limits.set_values, FEW_VALUES)
    bounds[LONGEST_PATTERN] = min(limits.pattern_length, _MOST)
    bounds[MOST_TOKENS] = min(limits.diagram_nodes, _MOST)
    seed = secrets.randbits(62)  # so that nobody can choose strings that fall into one place of the hash table
    pieces = max(1, min(threads, count // _PART_ROWS))
    ends = [count * piece // pieces for piece in range(pieces + 1)]
    if pieces == 1:
        return data, [_Rows(*read_rows(data, offsets, valid, bounds, seed))]
    with ThreadPoolExecutor(pieces) as pool:
        runs = [
            pool.submit(read_rows, data, offsets[first : last + 1], valid[first:last], bounds, seed)
            for first, last in pairwise(ends)
        ]
        return data, [_Rows(*run.result()) for run in runs]


class _Rows(NamedTuple):
    """What `read_rows` gives."""

    starts: NDArray[np.int64]
    given_up: NDArray[np.uint8]
    tokens: NDArray[np.int32]
    leaves: NDArray[np.void]
    entries: NDArray[np.int64]


class _Rest(NamedTuple):
    """The rows that the kernels gave up, lowered one at a time."""

    rows: list[int]
    lowering: Lowering


def _parse_rest(texts: pa.Array, rows: list[int], limits: Limits) -> tuple[_Rest, Errors]:
    lowering = Lowering(limits)
    errors: Errors = []
    for row in rows:
        try:
            lowering.add(parse(texts[row].as_py(), limits=limits))
        except CoveyError as error:
            errors.append((row, error))
            lowering.add(FALSE)
    return _Rest(rows, lowering), errors


def _join(data: NDArray[np.uint8], parts: list[_Rows], rest: _Rest) -> Flat:
    view = data.data
    names: dict[str, int] = {}
    strings: dict[str, int] = {}
    name_ids = [_ids(names, _decoded(view, _tagged(part, NAME_TAG))) for part in parts]
    string_ids = [_ids(strings, _decoded(view, _tagged(part, STRING_TAG))) for part in parts]

    # The predicates become rows of their own after the rest's, one token and one leaf each: `Lowering` knows how.
    listed = list(names)
    pattern_rows = [len(rest.rows)]
    for part, ids in zip(parts, name_ids, strict=True):
        predicates = list(_predicates(view, part.entries[part.entries[:, 3] > STRING_TAG], listed, ids))
        for predicate in predicates:
            rest.lowering.add(predicate)
        pattern_rows.append(pattern_rows[-1] + len(predicates))
    lowered = rest.lowering.finish()
    settled = _leaves_of(lowered, _ids(names, lowered.names), _ids(strings, lowered.strings))

    leaves: list[NDArray[np.void]] = []
    tokens: list[NDArray[np.int32]] = []
    count = 0
    for position, part in enumerate(parts):
        rows = slice(pattern_rows[position], pattern_rows[position + 1])
        _settle(part.leaves, name_ids[position], string_ids[position], settled[lowered.tokens[lowered.starts[rows]]])
        _settle_long_numbers(view, part.leaves, names)
        leaves.append(part.leaves)
        tokens.append(_shifted(part.tokens, count))
        count += len(part.leaves)
    rest_tokens = lowered.tokens[: lowered.starts[len(rest.rows)]]
    leaves.append(settled[: (rest_tokens >= 0).sum()])

    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    lengths[rest.rows] = np.diff(lowered.starts[: len(rest.rows) + 1])
    return Flat(
        names=list(names),
        tokens=_spliced(np.concatenate(tokens), _shifted(rest_tokens, count), rest.rows, lengths),
        starts=np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
        leaf_attribute=_column(leaves, "attribute"),
        leaf_operator=_column(leaves, "operator"),
        leaf_kind=_column(leaves, "kind"),
        leaf_number=_column(leaves, "number"),
        leaf_remainder=_column(leaves, "remainder"),
        leaf_text=_column(leaves, "text"),
        strings=list(strings),
        patterns=lowered.patterns,
    )


def _tagged(part: _Rows, tag: int) -> NDArray[np.int64]:
    found: NDArray[np.int64] = part.entries[part.entries[:, 3] == tag]
    return found


def _decoded(view: memoryview, entries: NDArray[np.int64]) -> list[str]:
    return [str(view[first:last], "utf-8") for first, last in entries[:, 1:3].tolist()]


def _ids(known: dict[str, int], texts: Iterable[str]) -> Ids:
    """The numbers of texts; those that aren't known yet are numbered on."""
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int32)


def _predicates(view: memoryview, entries: NDArray[np.int64], names: list[str], ids: Ids) -> Iterable[Filter]:
    for tag, text in zip(entries[:, 3].tolist(), _decoded(view, entries), strict=True):
        yield _PREDICATES[(tag >> 32) - 1](names[ids[tag & _MOST]], text)


def _leaves_of(flat: Flat, name_ids: Ids, string_ids: Ids) -> NDArray[np.void]:
    """The leaves of a `Flat` as records, with other numbers for names and strings."""
    leaves = np.empty(len(flat.leaf_attribute), LEAF)
    leaves["attribute"] = name_ids[flat.leaf_attribute]
    leaves["operator"] = flat.leaf_operator
    leaves["kind"] = flat.leaf_kind
    leaves["number"] = flat.leaf_number
    leaves["remainder"] = flat.leaf_remainder
    leaves["text"] = flat.leaf_text
    _renumber_strings(leaves, string_ids)
    return leaves


def _renumber_strings(leaves: NDArray[np.void], string_ids: Ids) -> None:
    strings = (leaves["kind"] == STRING) & (leaves["operator"] != PATTERN)
    leaves["text"][strings] = string_ids[leaves["text"][strings]]


def _settle(leaves: NDArray[np.void], name_ids: Ids, string_ids: Ids, patterns: NDArray[np.void]) -> None:
    """Turn the kernels' leaves into those of `Flat`, in place."""
    if not _is_identity(name_ids):
        leaves["attribute"] = name_ids[leaves["attribute"]]
    if not _is_identity(string_ids):
        _renumber_strings(leaves, string_ids)
    of_pattern = leaves["operator"] == PATTERN
    if len(patterns):
        leaves[of_pattern] = patterns[leaves["text"][of_pattern]]


def _settle_long_numbers(view: memoryview, leaves: NDArray[np.void], names: dict[str, int]) -> None:
    """Numbers that one rounding can't give. A decimal that is no double's digits is compared by a term, as the general
    parser has it."""
    long = (leaves["kind"] == LONG_NUMBER).nonzero()[0]
    if not len(long):
        return
    listed: list[str] = []
    for leaf in long.tolist():
        first, size = int(leaves["remainder"][leaf]), int(leaves["text"][leaf])
        text = bytes(view[first : first + abs(size)]).decode()
        constant = long_number(text if size > 0 else f"-{text}")
        if isinstance(constant, Decimal) or (isinstance(constant, int) and not is_told_apart(constant)):
            listed = listed if len(listed) == len(names) else list(names)
            subject = term_of(listed[leaves["attribute"][leaf]])
            term = known_term(comparison(subject, fixed(constant))[0])
            leaves["attribute"][leaf] = names.setdefault(term.name, len(names))
            constant = 0
        leaves["number"][leaf], leaves["remainder"][leaf] = number_pair(constant)
    leaves["text"][long] = -1
    leaves["kind"][long] = NUMBER


def long_number(text: str) -> int | float | Decimal:
    """The constant of a number with a point or an exponent: a decimal if it isn't what a predicate can hold."""
    value = float(text)
    if "e" in text.lower() or repr(value) == text:
        return value
    exact = Decimal(text)
    return exact if is_only_in_terms(exact) else decimal_constant(exact)


def _is_identity(ids: Ids) -> bool:
    return bool((ids == np.arange(len(ids))).all())


def _column(leaves: list[NDArray[np.void]], field: str) -> NDArray[Any]:
    return np.concatenate([part[field] for part in leaves])


def _shifted(tokens: NDArray[np.int32], leaves: int) -> NDArray[np.int32]:
    """Tokens whose leaves are numbered from `leaves` on."""
    return np.where(tokens >= 0, tokens + np.int32(leaves), tokens) if leaves else tokens


def _spliced(
    tokens: NDArray[np.int32], rest: NDArray[np.int32], rows: list[int], lengths: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The rest's tokens put in at its rows."""
    if not rows:
        return tokens
    of_rest = np.zeros(len(lengths), np.bool_)
    of_rest[rows] = True
    places = np.repeat(of_rest, lengths)
    spliced = np.empty(len(places), np.int32)
    spliced[~places] = tokens
    spliced[places] = rest
    return spliced
