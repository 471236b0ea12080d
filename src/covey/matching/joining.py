"""Flat subscriptions of several segments as one `Flat`, so that merging small segments reads no text again.

Names, strings and patterns are numbered anew, and what belongs to removed subscriptions alone stays behind. Large
segments aren't joined this way: they don't keep their flat form, and the bulk parser reads their texts as quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from covey.filters import Predicate
from covey.kernels.opcodes import PATTERN, STRING
from covey.matching.lowering import Flat

KEPT_FLAT: Final = 4096
"""Segments below this size keep their flat form."""

Rows = NDArray[np.int64]
Meaning = TypeVar("Meaning", str, Predicate)


def joined(parts: Sequence[tuple[Flat, Rows]]) -> Flat:
    """The given rows of each part, one part after the other."""
    names: dict[str, int] = {}
    strings: dict[str, int] = {}
    patterns: dict[Predicate, int] = {}
    tokens: list[NDArray[np.int32]] = []
    lengths: list[NDArray[np.int64]] = []
    columns: list[tuple[NDArray[Any], ...]] = []
    count = 0
    for flat, rows in parts:
        taken, widths, leaves = _taken(flat, rows)
        operator, kind, text = flat.leaf_operator[leaves], flat.leaf_kind[leaves], flat.leaf_text[leaves]
        of_pattern = operator == PATTERN
        of_string = (kind == STRING) & ~of_pattern & (text >= 0)
        text[of_pattern] = _renumbered(text[of_pattern], flat.patterns, patterns)
        text[of_string] = _renumbered(text[of_string], flat.strings, strings)
        attribute = _renumbered(flat.leaf_attribute[leaves], flat.names, names)
        columns.append((attribute, operator, kind, flat.leaf_number[leaves], flat.leaf_remainder[leaves], text))
        tokens.append(np.where(taken >= 0, taken + np.int32(count), taken))
        lengths.append(widths)
        count += len(leaves)
    attributes, operators, kinds, numbers, remainders, texts = map(np.concatenate, zip(*columns, strict=True))
    return Flat(
        list(names), np.concatenate(tokens), np.concatenate(([0], np.cumsum(np.concatenate(lengths)))),
        attributes, operators, kinds, numbers, remainders, texts, list(strings), list(patterns),
    )  # fmt: skip


def _taken(flat: Flat, rows: Rows) -> tuple[NDArray[np.int32], NDArray[np.int64], Rows]:
    """The tokens of some rows with their leaves numbered from 0 on, the rows' lengths, and the leaves' old numbers."""
    widths = np.diff(flat.starts)[rows]
    starts = np.cumsum(widths) - widths
    taken = flat.tokens[np.repeat(flat.starts[rows] - starts, widths) + np.arange(widths.sum())]
    pushed = taken >= 0
    used = np.zeros(len(flat.leaf_attribute), dtype=np.bool_)
    used[taken[pushed]] = True
    numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
    taken[pushed] = numbers[taken[pushed]]
    return taken, widths, used.nonzero()[0]


def _renumbered(numbers: NDArray[np.int32], meanings: list[Meaning], known: dict[Meaning, int]) -> NDArray[np.int32]:
    """Numbers of what is known over all parts; what isn't yet is numbered on."""
    distinct, places = np.unique(numbers, return_inverse=True)
    found = [known.setdefault(meanings[number], len(known)) for number in distinct.tolist()]
    return np.array(found, dtype=np.int32)[places]
