"""A segment: some subscriptions compiled once and never changed.

Everything in it is a plain array, so it can be written to a file and mapped back. Building is one pass over all its
subscriptions; merging segments is building a new one, of small ones from their flat forms, else from their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import LimitError
from covey.events import Columns
from covey.filters import Filter, Predicate
from covey.filters.values import Scalar
from covey.kernels import on_demand
from covey.matching.coding import CodeSpaces, code_spaces
from covey.matching.encoding import PADDING, Encoded, Encoder, pattern_rows
from covey.matching.joining import KEPT_FLAT
from covey.matching.json_events import JsonReader
from covey.matching.lowering import Flat, Lowering
from covey.matching.options import BuildOptions
from covey.matching.strict_terms import with_inner_attributes
from covey.matching.tables import MOST_NODES, Tables, build_tables, weights_of_constants

if TYPE_CHECKING:
    from covey.kernels.matching import Patterns
    from covey.kernels.segments import Segment as Arrays

_matching = on_demand("matching")
_results = on_demand("results")
_segments = on_demand("segments")
_single = on_demand("single")
_sweeping = on_demand("sweeping")

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
    def arrays(self) -> Arrays:
        """What kernels read, by its names; it lives as long as the segment, since `addresses` point into it."""
        tables, spaces, encoder = self.tables, self.spaces, self.encoder
        arrays: Arrays = _segments.Segment(
            **{field.name: getattr(tables, field.name) for field in fields(tables)},
            sizes=spaces.size, base=spaces.base, constants=spaces.numbers, remainders=spaces.remainders,
            firsts=encoder.firsts, lasts=encoder.lasts, grid_starts=encoder.grids.starts, grids=encoder.grids.cells,
            grid_lowest=encoder.grids.lowest, grid_scale=encoder.grids.scale, block_high=self._block_high(),
        )  # fmt: skip
        return arrays

    def _block_high(self) -> NDArray[np.int32]:
        entry_high = self.tables.entry_high
        found = np.empty(-(-len(entry_high) // _segments.BLOCK), dtype=np.int32)
        _matching.block_maxima(entry_high, found)
        return found

    @cached_property
    def addresses(self) -> NDArray[np.int64]:
        """Where these arrays lie."""
        found: NDArray[np.int64] = _segments.addresses(self.arrays)
        return found

    @cached_property
    def address(self) -> int:
        """Where these addresses lie."""
        return int(self.addresses.ctypes.data)

    def match_event(self, event: Mapping[str, Any], deleted: NDArray[np.uint8] | None = None) -> list[int]:
        """Ordinals of the subscriptions that one event (flat, dotted names) matches, ascending."""
        encoded = self.encoder.encode_event(event)
        dead = self.none_deleted if deleted is None else deleted
        if encoded.deleted is not dead:
            encoded.take_deleted(dead)
        found = _single.match_one(self.address, encoded.address)
        while found < 0:
            encoded.make_room(-found)
            found = _single.match_one(self.address, encoded.address)
        return encoded.out[:found].tolist()

    @cached_property
    def json_reader(self) -> JsonReader | None:
        """Events as JSON; None where tests on text are left to Python."""
        return None if self.patterns else JsonReader(self.names, self.spaces, self.encoder)

    def match_json(self, data: bytes, deleted: NDArray[np.uint8]) -> list[int] | None:
        """As `match_event` for an event's JSON; None where Python must read it."""
        reader = self.json_reader
        if reader is None:
            return None
        event, found = reader.match(data, self.address, deleted)
        return event.out[:found].tolist() if found >= 0 else None

    def match_chunk(
        self, columns: Columns, encoded: Encoded, first: int, last: int, deleted: NDArray[np.uint8] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(offsets, ordinals) for events first to last: each event's subscriptions, ascending."""
        codes = self.encoder.encode(columns, encoded, first, last)
        dead = self.none_deleted if deleted is None else deleted
        patterns = _matching.Patterns(encoded.pattern_start, encoded.pattern_truth)
        first_keyed = 1 if self.tables.swept else 0
        pairs, used = np.empty(_FIRST_PAIRS, dtype=np.int64), 0
        for table in range(first_keyed, self.tables.count):
            pairs, used = _matching.match_table(table, last - first, codes, patterns, self.addresses, dead, pairs, used)
        keyed: tuple[NDArray[np.int64], NDArray[np.int32]] = _results.by_event(pairs, used, last - first, len(self))
        if not first_keyed:
            return keyed
        swept = self._sweep(codes, patterns, dead, last - first)
        if not used:
            return swept
        merged: tuple[NDArray[np.int64], NDArray[np.int32]] = _sweeping.merge_sorted(*keyed, *swept)
        return merged

    def _sweep(
        self, codes: NDArray[np.int32], patterns: Patterns, deleted: NDArray[np.uint8], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        swept = self.tables.swept
        by_event = np.empty((count, (swept + 63) // 64), dtype=np.uint64)
        offsets = np.zeros(count + 1, dtype=np.int64)
        _sweeping.sweep(count, codes, patterns, self.addresses, deleted, swept, by_event, offsets)
        ordinals = np.empty(int(offsets[-1]), dtype=np.int32)
        _sweeping.write_swept(by_event, self.tables.entry_subscription, ordinals)
        return offsets, ordinals


def build_segment(
    ids: Sequence[str], filters: Sequence[Filter], texts: Sequence[str] | None, options: BuildOptions
) -> Segment:
    """Compile filters; `texts` are what they were read from. Raises LimitError where one is over a limit."""
    lowering = Lowering(options.limits)
    for condition in filters:
        lowering.add(condition)
    kept = [str(condition) for condition in filters] if texts is None else texts
    return segment_of(lowering.finish(), pa.array(ids, pa.large_string()), pa.array(kept, pa.large_string()), options)


def segment_of(flat: Flat, ids: pa.Array, texts: pa.Array, options: BuildOptions) -> Segment:
    """Compile flat subscriptions."""
    given = flat
    if options.is_strict:
        flat = with_inner_attributes(flat)
    spaces, coded = code_spaces(flat)
    rows, _ = pattern_rows(flat.names, flat.patterns)
    statistics = options.statistics
    weights = (
        weights_of_constants(flat, spaces, coded)
        if statistics is None
        else statistics.weights(flat.names, spaces, flat.patterns)
    )
    tables, failed = build_tables(flat, spaces, coded, rows, weights, options)
    if len(failed):
        raise DiagramLimitError([int(row) for row in failed], min(options.limits.diagram_nodes, MOST_NODES))
    kept = given if flat.count < KEPT_FLAT else None
    return Segment(ids, texts, flat.names, spaces, flat.patterns, tables, options.defaults_in_force, kept)


class DiagramLimitError(LimitError):
    """Subscriptions whose decision diagrams are over the limit; `rows` has their numbers."""

    def __init__(self, rows: list[int], limit: int) -> None:
        self.rows = rows
        super().__init__(
            f"the filter needs a larger decision diagram than the limit (diagram_nodes) of {limit:,} nodes"
        )


__all__ = ["PADDING", "DiagramLimitError", "Segment", "build_segment", "segment_of"]
