"""Code spaces: every attribute's values mapped to small integers that keep their order.

The constants that a segment's subscriptions name cut each attribute's domain into points and gaps. With constants
c1 < c2 < … < cm of one kind there are 2m + 1 codes: the gap below c1, c1, the gap between c1 and c2, and so on. The
kinds (number, timestamp, boolean, string, list) follow each other in one line, and code 0 is "missing". Every
comparison is then an interval of codes, and two values with the same code are alike to every comparison.

    code = 0                            missing
    code = base[kind] + 2 i             in the gap below constant i of that kind (i = m: above all of them)
    code = base[kind] + 2 i + 1         equal to constant i
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.kernels.opcodes import EQ, GE, GT, IS_NULL, KINDS, LE, LIST, LT, NULL_SAFE_EQ, PATTERN, STRING
from covey.matching.lowering import Flat

MISSING = 0


@dataclass(frozen=True, slots=True)
class CodeSpaces:
    """The code spaces of all attributes of a segment."""

    base: NDArray[np.int32]
    """[attribute, kind]: the first code of that kind."""
    size: NDArray[np.int32]
    """[attribute]: how many codes there are."""
    starts: NDArray[np.int64]
    """[attribute * KINDS + kind]: where that kind's constants start in the arrays below (strings: in `texts`)."""
    numbers: NDArray[np.float64]
    remainders: NDArray[np.int64]
    """Empty where all are zero, as nearly always."""
    texts: pa.Array
    ordered_texts: NDArray[np.uint8]
    """[attribute]: 1 where strings are compared with < or >, so that gaps between them matter."""


@dataclass(frozen=True, slots=True)
class CodedLeaves:
    """Each leaf as the codes for which it is true, and those for which it is true or false (its class)."""

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    class_low: NDArray[np.int32]
    class_high: NDArray[np.int32]


def code_spaces(flat: Flat) -> tuple[CodeSpaces, CodedLeaves]:
    """The code spaces that some subscriptions need, and their leaves in these codes."""
    attributes = len(flat.names)
    comparison = (flat.leaf_operator != IS_NULL) & (flat.leaf_operator != PATTERN)
    key = flat.leaf_attribute.astype(np.int64) * KINDS + flat.leaf_kind
    order = np.flatnonzero(comparison)
    order = order[np.argsort(key[order], kind="stable")]
    bounds = np.searchsorted(key[order], np.arange(attributes * KINDS + 1))

    counts = np.zeros(attributes * KINDS, dtype=np.int64)
    rank = np.zeros(len(key), dtype=np.int64)
    numbers: list[NDArray[np.float64]] = []
    remainders: list[NDArray[np.int64]] = []
    texts: list[str] = []
    for slot in range(attributes * KINDS):
        leaves = order[bounds[slot] : bounds[slot + 1]]
        if not len(leaves):
            continue
        if slot % KINDS == STRING:
            found, inverse = _distinct_texts(flat, leaves)
            texts.extend(found)
            counts[slot] = len(found)
        else:
            values, rest, inverse = _distinct_numbers(flat.leaf_number[leaves], flat.leaf_remainder[leaves])
            numbers.append(values)
            remainders.append(rest)
            counts[slot] = len(values)
        rank[leaves] = inverse

    sizes = (2 * counts + 1).reshape(attributes, KINDS)
    base = np.ones((attributes, KINDS), dtype=np.int64)
    base[:, 1:] += np.cumsum(sizes, axis=1)[:, :-1]
    total = 1 + sizes.sum(axis=1)
    spaces = CodeSpaces(
        base=base.astype(np.int32),
        size=total.astype(np.int32),
        starts=_starts(counts),
        numbers=np.concatenate(numbers) if numbers else np.empty(0),
        remainders=_only_if_any(remainders),
        texts=pa.array(texts, pa.large_string()),
        ordered_texts=_ordered_texts(flat, attributes),
    )
    return spaces, _coded(flat, spaces, rank, sizes)


def _distinct_texts(flat: Flat, leaves: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    ids, inverse = np.unique(flat.leaf_text[leaves], return_inverse=True)
    values = [flat.strings[i] for i in ids]
    ranked = sorted(range(len(values)), key=values.__getitem__)
    position = np.empty(len(values), dtype=np.int64)
    position[ranked] = np.arange(len(values))
    return [values[i] for i in ranked], position[inverse]


def _distinct_numbers(
    values: NDArray[np.float64], remainders: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    if not remainders.any():
        distinct, inverse = np.unique(values, return_inverse=True)
        return distinct, np.zeros(len(distinct), dtype=np.int64), inverse
    pairs = np.empty(len(values), dtype=[("value", np.float64), ("remainder", np.int64)])
    pairs["value"], pairs["remainder"] = values, remainders
    order = np.lexsort((remainders, values))
    ordered = pairs[order]
    fresh = np.ones(len(ordered), dtype=bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    inverse = np.empty(len(values), dtype=np.int64)
    inverse[order] = np.cumsum(fresh) - 1
    kept = ordered[fresh]
    return kept["value"].copy(), kept["remainder"].copy(), inverse


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers and strings are kept in arrays of their own, so each kind's start counts only its own sort."""
    is_text = np.arange(len(counts)) % KINDS == STRING
    starts = np.zeros(len(counts) + 2, dtype=np.int64)
    numbers = np.concatenate(([0], np.cumsum(np.where(is_text, 0, counts))))
    texts = np.concatenate(([0], np.cumsum(np.where(is_text, counts, 0))))
    starts[:-2] = np.where(is_text, texts[:-1], numbers[:-1])
    starts[-2], starts[-1] = numbers[-1], texts[-1]
    return starts


def _only_if_any(remainders: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    if any(rest.any() for rest in remainders):
        return np.concatenate(remainders)
    return np.empty(0, dtype=np.int64)


def _ordered_texts(flat: Flat, attributes: int) -> NDArray[np.uint8]:
    ordered = np.zeros(attributes, dtype=np.uint8)
    compared = (flat.leaf_kind == STRING) & np.isin(flat.leaf_operator, (LT, LE, GT, GE))
    ordered[flat.leaf_attribute[compared]] = 1
    return ordered


def _coded(flat: Flat, spaces: CodeSpaces, rank: NDArray[np.int64], sizes: NDArray[np.int64]) -> CodedLeaves:
    attribute, kind, operator = flat.leaf_attribute, flat.leaf_kind.astype(np.int64), flat.leaf_operator
    first = spaces.base[attribute, kind].astype(np.int64)
    last = first + sizes[attribute, kind] - 1
    point = first + 2 * rank + 1
    whole = spaces.size[attribute].astype(np.int64) - 1
    low = np.where(np.isin(operator, (LT, LE)), first, np.where(operator == GT, point + 1, point))
    high = np.where(np.isin(operator, (GT, GE)), last, np.where(operator == LT, point - 1, point))
    # IS NULL and <=> are never unknown: their class is everything.
    null = operator == IS_NULL
    low, high = np.where(null, MISSING, low), np.where(null, MISSING, high)
    decided = null | (operator == NULL_SAFE_EQ)
    pattern = operator == PATTERN
    low = np.where(pattern, flat.leaf_text, low)
    high = np.where(pattern, flat.leaf_text, high)
    return CodedLeaves(
        low=low.astype(np.int32),
        high=high.astype(np.int32),
        class_low=np.where(decided, 0, first).astype(np.int32),
        class_high=np.where(decided, whole, last).astype(np.int32),
    )


__all__ = ["EQ", "LIST", "MISSING", "CodeSpaces", "CodedLeaves", "code_spaces"]
