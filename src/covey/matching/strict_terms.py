"""Strict semantics asks for every attribute inside a term, whether or not the term itself has a value.

A subscription that tests terms gets `AND a IS NOT NULL` for each attribute inside them, before it is compiled. That is
what strict semantics asks for anyway, and it names the attributes, so that they get codes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from covey.filters.terms import is_path, term_of
from covey.kernels.opcodes import AND, IS_NULL, NOT, NUMBER
from covey.matching.lowering import Flat


def with_inner_attributes(flat: Flat) -> Flat:
    """The subscriptions with tests for the attributes inside their terms; the same where there are no terms."""
    inner = {number: term_of(name).attributes() for number, name in enumerate(flat.names) if not is_path(name)}
    if not inner:
        return flat
    numbers = {name: number for number, name in enumerate(flat.names)}
    leaves: dict[str, int] = {}
    first = len(flat.leaf_attribute)
    tokens: list[int] = []
    starts = [0]
    listed = flat.tokens.tolist()
    attribute = flat.leaf_attribute.tolist()
    for row in range(flat.count):
        own = listed[flat.starts[row] : flat.starts[row + 1]]
        tokens += own
        terms = dict.fromkeys(attribute[token] for token in own if token >= 0 and attribute[token] in inner)
        for name in dict.fromkeys(name for term in terms for name in inner[term]):
            numbers.setdefault(name, len(numbers))
            tokens += [leaves.setdefault(name, first + len(leaves)), NOT, AND]
        starts.append(len(tokens))
    count = len(leaves)
    return replace(
        flat,
        names=list(numbers),
        tokens=np.array(tokens, dtype=np.int32),
        starts=np.array(starts, dtype=np.int64),
        leaf_attribute=np.append(flat.leaf_attribute, np.array([numbers[name] for name in leaves], dtype=np.int32)),
        leaf_operator=np.append(flat.leaf_operator, np.full(count, IS_NULL, dtype=np.uint8)),
        leaf_kind=np.append(flat.leaf_kind, np.full(count, NUMBER, dtype=np.uint8)),
        leaf_number=np.append(flat.leaf_number, np.zeros(count)),
        leaf_remainder=np.append(flat.leaf_remainder, np.zeros(count, dtype=np.int64)),
        leaf_text=np.append(flat.leaf_text, np.full(count, -1, dtype=np.int32)),
    )
