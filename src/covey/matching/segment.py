"""A segment: some subscriptions compiled once and never changed.

Everything in it is a plain array, so it can be written to a file and mapped back. Building is one pass over all its
subscriptions; merging segments is building a new one, of small ones from their flat forms, else from their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import LimitError
from covey.events import Columns
from covey.filters import Filter, Predicate, Semantics
from covey.filters.values import Scalar
from covey.limits import DEFAULT_LIMITS, Limits
from covey.matching.coding import CodeSpaces, code_spaces
from covey.matching.encoding import PADDING, Encoded, Encoder, pattern_rows
from covey.matching.joining import KEPT_FLAT
from covey.matching.kernels import match_one, match_table
from covey.matching.lowering import Flat, Lowering
from covey.matching.result_kernels import by_event
from covey.matching.statistics import Statistics
from covey.matching.sweep_kernels import merge_sorted, sweep, write_swept
from covey.matching.tables import Tables, build_tables, weights_of_constants

_FIRST_PAIRS = 4096


@dataclass(frozen=True)
class Segment:
    """Compiled subscriptions, by ordinal."""

    ids: pa.Array
    texts: pa.Array
    names: list[str]
    spaces: CodeSpaces
    patterns: list[Predicate]
    tables: Tables
    defaults: Mapping[str, Scalar]
    flat: Flat | None = None
    """What it was compiled from, if it is small: merging it then reads no text."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def encoder(self) -> Encoder:
        """Events to codes."""
        return Encoder(self.names, self.spaces, self.patterns, self.defaults)

    @cached_property
    def id_list(self) -> list[str]:
        """The ids as Python strings, made when first needed."""
        result: list[str] = self.ids.to_pylist()
        return result

    @cached_property
    def ordinals(self) -> dict[str, int]:
        """Each id's ordinal, made when first needed."""
        return {id: ordinal for ordinal, id in enumerate(self.id_list)}

    @property
    def predicates(self) -> int:
        """Distinct constants and patterns."""
        return len(self.spaces.numbers) + len(self.spaces.texts) + len(self.patterns)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, ids and texts included."""
        spaces = self.spaces
        arrays = (spaces.base, spaces.size, spaces.starts, spaces.numbers, spaces.remainders)
        texts = (self.ids, self.texts, spaces.texts)
        return self.tables.nbytes + sum(a.nbytes for a in arrays) + sum(int(t.nbytes) for t in texts)

    @cached_property
    def none_deleted(self) -> NDArray[np.uint8]:
        """A bitmap of deletions without any."""
        return np.zeros(len(self) // 8 + 1, dtype=np.uint8)

    @cached_property
    def _kernel_arrays(self) -> tuple[NDArray[Any], ...]:
        t = self.tables
        return (
            t.keys, t.pivot, t.lookup_start, t.slot_start, t.lookup, t.slot_key, t.slot_partition, t.table_partition,
            t.partition_entry, t.entry_subscription, t.entry_low, t.entry_high, t.entry_start, t.entry_nodes,
            t.nodes,
        )  # fmt: skip

    def match_event(self, event: Mapping[str, Any], deleted: NDArray[np.uint8] | None = None) -> list[int]:
        """Ordinals of the subscriptions that one event (flat, dotted names) matches, ascending."""
        encoder = self.encoder
        one = encoder.encode_event(event)
        spaces = self.spaces
        while True:
            found, distinct = match_one(
                one.code_view, one.kind_view, one.number_view, encoder.firsts, encoder.lasts, spaces.base,
                spaces.numbers, spaces.remainders, spaces.size, self.none_deleted if deleted is None else deleted,
                one.out, *self._kernel_arrays, self.tables.sweep_atoms, self.tables.sweep_node_atom,
                one.pattern_start, one.pattern_truth,
            )  # fmt: skip
            if found <= len(one.out):
                ordinals: list[int] = one.out[:distinct].tolist()
                return ordinals
            one.out = np.empty(found, dtype=np.int32)

    def match_chunk(
        self, columns: Columns, encoded: Encoded, first: int, last: int, deleted: NDArray[np.uint8] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(offsets, ordinals) for events first to last: each event's subscriptions, ascending."""
        codes = self.encoder.encode(columns, encoded, first, last)
        dead = self.none_deleted if deleted is None else deleted
        t = self.tables
        first_keyed = 1 if t.swept else 0
        pairs, used = np.empty(_FIRST_PAIRS, dtype=np.int64), 0
        for table in range(first_keyed, t.count):
            pairs, used = match_table(
                table, last - first, codes, self.spaces.size, dead, pairs, used, *self._kernel_arrays, t.use_start,
                t.uses, encoded.pattern_start, encoded.pattern_truth,
            )  # fmt: skip
        keyed: tuple[NDArray[np.int64], NDArray[np.int32]] = by_event(pairs, used, last - first, len(self))
        if not first_keyed:
            return keyed
        swept = self._sweep(codes, dead, encoded, last - first)
        if not used:
            return swept
        merged: tuple[NDArray[np.int64], NDArray[np.int32]] = merge_sorted(*keyed, *swept)
        return merged

    def _sweep(
        self, codes: NDArray[np.int32], deleted: NDArray[np.uint8], encoded: Encoded, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        t = self.tables
        by_event = np.empty((count, (t.swept + 63) // 64), dtype=np.uint64)
        offsets = np.zeros(count + 1, dtype=np.int64)
        sweep(
            count, codes, deleted, t.sweep_atoms, t.sweep_node_atom, t.nodes, t.swept, t.entry_subscription,
            t.entry_start, t.entry_nodes, encoded.pattern_start, encoded.pattern_truth, by_event, offsets,
        )  # fmt: skip
        ordinals = np.empty(int(offsets[-1]), dtype=np.int32)
        write_swept(by_event, t.entry_subscription, ordinals)
        return offsets, ordinals


def build_segment(
    ids: Sequence[str],
    filters: Sequence[Filter],
    texts: Sequence[str] | None = None,
    *,
    semantics: Semantics,
    defaults: Mapping[str, Scalar] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    order: str = "selectivity",
    statistics: Statistics | None = None,
) -> Segment:
    """Compile filters. Raises LimitError where one is over a limit."""
    lowering = Lowering(limits)
    for condition in filters:
        lowering.add(condition)
    kept = [str(condition) for condition in filters] if texts is None else texts
    return segment_of(
        lowering.finish(), pa.array(ids, pa.large_string()), pa.array(kept, pa.large_string()),
        semantics=semantics, defaults=defaults, limits=limits, order=order, statistics=statistics,
    )  # fmt: skip


def segment_of(
    flat: Flat,
    ids: pa.Array,
    texts: pa.Array,
    *,
    semantics: Semantics,
    defaults: Mapping[str, Scalar] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    order: str = "selectivity",
    statistics: Statistics | None = None,
) -> Segment:
    """Compile flat subscriptions."""
    spaces, coded = code_spaces(flat)
    rows, _ = pattern_rows(flat.names, flat.patterns)
    weights = (
        weights_of_constants(flat, spaces, coded)
        if statistics is None
        else statistics.weights(flat.names, spaces, flat.patterns)
    )
    tables, failed = build_tables(
        flat, spaces, coded, rows, weights,
        two_valued=semantics != "sql", strict=semantics == "strict", node_limit=limits.diagram_nodes, order=order,
    )  # fmt: skip
    if len(failed):
        raise DiagramLimitError([int(row) for row in failed], limits.diagram_nodes)
    return Segment(
        ids, texts, flat.names, spaces, flat.patterns, tables,
        dict(defaults or {}) if semantics == "default" else {}, flat if flat.count < KEPT_FLAT else None,
    )  # fmt: skip


class DiagramLimitError(LimitError):
    """Subscriptions whose decision diagrams are over the limit; `rows` has their numbers."""

    def __init__(self, rows: list[int], limit: int) -> None:
        self.rows = rows
        super().__init__(
            f"the filter needs a larger decision diagram than the limit (diagram_nodes) of {limit:,} nodes"
        )


__all__ = ["PADDING", "DiagramLimitError", "Segment", "build_segment", "segment_of"]
