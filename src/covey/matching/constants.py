"""What an index's subscriptions compare attributes with, read from what they were compiled to, and which texts name
some attributes: enough to find the few of a million rules that must be looked at one by one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from covey.filters.terms import term_of
from covey.kernels.opcodes import STRING
from covey.matching.index import Index


def constants_of(index: Index) -> dict[str, frozenset[int]]:
    """By attribute of an index, the kinds of constants that it is compared with; texts, where it is tested as one."""
    found: dict[str, set[int]] = {}
    for part in index.parts():
        segment = part.segment
        # A kind without constants has one code, the gap that all its values are in.
        ends = np.column_stack([segment.spaces.base[:, 1:], segment.spaces.size])
        for name, codes in zip(segment.names, ends - segment.spaces.base, strict=True):
            found.setdefault(name, set()).update(np.flatnonzero(codes > 1).tolist())
        for name in segment.tested_as_text():
            found.setdefault(name, set()).add(STRING)
    return {name: frozenset(kinds) for name, kinds in found.items()}


def naming(texts: Iterable[str], attributes: Iterable[str]) -> NDArray[np.bool_]:
    """For each text whether one of these attributes may be in it."""
    column = pc.utf8_lower(pa.array(texts, pa.large_string()))
    found = np.zeros(len(column), dtype=np.bool_)
    for path in {path for name in attributes for path in term_of(name).attributes()}:
        part = path.rpartition(".")[2].lower()
        found |= pc.match_substring(column, part).to_numpy(zero_copy_only=False)
    return found
