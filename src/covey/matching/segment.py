"""A segment: some subscriptions compiled once and never changed.

Everything in it is a plain array, so it can be written to a file and mapped back. Building is one pass over all its
subscriptions; merging segments is building a new one, of small ones from their flat forms, else from their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import LimitError
from covey.events import Columns
from covey.events.messagepack_batches import MessagePackMaps
from covey.filters import Filter, Predicate
from covey.filters.predicates import TextTest
from covey.filters.terms import is_path
from covey.filters.values import Scalar
from covey.kernels import on_demand
from covey.kernels.opcodes import DENSE, NOT_RANGE, PATTERN, VERIFIED
from covey.matching.coding import CodeSpaces, code_spaces
from covey.matching.dict_events import DictReader, dict_reader
from covey.matching.encoding import PADDING, Encoded, Encoder
from covey.matching.joining import KEPT_FLAT
from covey.matching.json_events import JsonReader, json_reader
from covey.matching.literals import needs_of
from covey.matching.lowering import Flat, Lowering
from covey.matching.options import BuildOptions
from covey.matching.pattern_values import knowledge
from covey.matching.strict_terms import with_inner_attributes
from covey.matching.tables import MOST_NODES, Rows, Tables, build_tables, weights_of_constants
from covey.matching.text_index import (
    TextIndex,
    every_literal,
    literal_chances,
    no_texts,
    pattern_chances,
    text_index,
)

if TYPE_CHECKING:
    from covey.kernels.matching import Patterns
    from covey.kernels.segments import Segment as Arrays
    from covey.matching.statistics import Statistics

_matching = on_demand("matching")
_planning = on_demand("planning")
_results = on_demand("results")
_segments = on_demand("segments")
_single = on_demand("single")
_sweeping = on_demand("sweeping")

_FIRST_PAIRS = 4096
_COLUMN_COST = 16.0
"""What a column of a term costs an event, in candidates."""
_FIRST_PENDING = 1024


@dataclass(frozen=True)
class Segment:
    """Compiled subscriptions, by ordinal."""

    ids: pa.Array
    texts: pa.Array
    names: list[str]
    spaces: CodeSpaces
    patterns: Sequence[Predicate]
    """What literals don't decide; in the place of others may stand anything."""
    literals: TextIndex
    tables: Tables
    defaults: Mapping[str, Scalar]
    flat: Flat | None = None
    """What it was compiled from, if it is small: merging it then reads no text."""

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def encoder(self) -> Encoder:
        """Events to codes."""
        return Encoder(self.names, self.spaces, self.patterns, self.literals, self.defaults)

    @cached_property
    def id_list(self) -> list[str]:
        """The ids as Python strings, made when first needed."""
        result: list[str] = self.ids.to_pylist()
        return result

    @cached_property
    def integer_list(self) -> list[int]:
        """The ids of an index whose ids are integers, as such."""
        result: list[int] = self.ids.cast(pa.int64()).to_pylist()
        return result

    @cached_property
    def ordinals(self) -> dict[str, int]:
        """Each id's ordinal, made when first needed."""
        return {id: ordinal for ordinal, id in enumerate(self.id_list)}

    @property
    def predicates(self) -> int:
        """Distinct constants and patterns."""
        return len(self.spaces.numbers) + len(self.spaces.texts) + len(self.patterns)

    def tested_as_text(self) -> set[str]:
        """What tests on text are made on, by name."""
        literals = self.literals
        dense = literals.mode == DENSE
        slots = set(literals.slot[~dense].tolist())
        for number in np.flatnonzero(dense).tolist():
            if isinstance(self.patterns[number], TextTest):
                slots.add(int(literals.slot[number]))
        return {self.names[literals.attribute[slot]] for slot in slots}

    @cached_property
    def asked_of_all(self) -> frozenset[str]:
        """What every event is asked for: keys, pivots, and what is swept. The rest is for those that come to it."""
        tables = self.tables
        swept = tables.sweep_atoms[:, 0] >> 8 if tables.is_swept else np.empty(0, np.int32)
        rows = np.concatenate((tables.keys.reshape(-1), tables.pivot, swept))
        return frozenset(self.names[row] for row in np.unique(rows).tolist() if 0 <= row < len(self.names))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, ids and texts included."""
        spaces = self.spaces
        arrays = (spaces.base, spaces.size, spaces.starts, spaces.numbers, spaces.remainders)
        texts = (self.ids, self.texts, spaces.texts)
        own = self.tables.nbytes + self.literals.nbytes
        return own + sum(a.nbytes for a in arrays) + sum(int(t.nbytes) for t in texts)

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
            pattern_mode=self.literals.mode,
            needed_start=self.literals.needed_start, needed=self.literals.needed,
            first_literal=self.literals.slot_literal,
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

    def make_ready(self) -> None:
        """Make what is otherwise made when it is first needed: for threads that nobody waits for."""
        _ = self.ordinals, self.asked_of_all, self.dict_reader

    @cached_property
    def dict_reader(self) -> DictReader | None:
        """Events as dicts; None where what is tested needs Python."""
        return dict_reader(self.names, self.spaces, self.encoder, self.address)

    @cached_property
    def json_reader(self) -> JsonReader | None:
        """Events as JSON; None where what is tested needs Python."""
        return json_reader(self.names, self.spaces, self.encoder, self.address)

    def match_event(
        self, event: Mapping[str, Any], deleted: NDArray[np.uint8], integers: bool, found: list[Any]
    ) -> None:
        """Add the ids of the subscriptions that one event (flat, dotted names) matches, in their order, as they went
        in."""
        ids: list[Any] = self.integer_list if integers else self.id_list
        if type(event) is dict and (reader := self.dict_reader) is not None:
            told = reader.match(event, deleted, ids, found)
            if told >= 0:
                return
            if told != _single.LEFT:
                self._match_again(told, ids, found)
                return
        encoded = self.encoder.encode_event(event)
        if encoded.deleted is not deleted:
            encoded.take_deleted(deleted)
        told = _single.match_one(self.address, encoded.address, False)
        if told >= 0:
            found += [ids[ordinal] for ordinal in encoded.out[:told]]
        else:
            self._match_again(told, ids, found)

    def match_json(self, data: bytes, deleted: NDArray[np.uint8], integers: bool, found: list[Any]) -> bool:
        """As `match_event` for an event's JSON; False where Python must read it."""
        reader = self.json_reader
        if reader is None:
            return False
        ids: list[Any] = self.integer_list if integers else self.id_list
        told = reader.match(data, deleted, ids, found)
        if told < 0:
            if told == _single.LEFT:
                return False
            self._match_again(told, ids, found)
        return True

    def _match_again(self, told: int, ids: list[Any], found: list[Any]) -> None:
        """The same for the event of this thread, once there is room for what it matches and what it asks for is
        verified."""
        encoded = self.encoder.buffers()
        while told < 0:
            if told == _single.VERIFY:
                self.encoder.patterns.verify_event(encoded)
            else:
                encoded.make_room(-told)
            told = _single.match_one(self.address, encoded.address, True)
        encoded.forget()
        found += [ids[ordinal] for ordinal in encoded.out[:told]]

    @cached_property
    def _takes_maps(self) -> bool:
        """Whether events are matched one after the other without Python. A name in MessagePack may be any text, so what
        terms are called could be one, too."""
        return not self.encoder.pattern_attributes and not self.tables.is_swept and all(map(is_path, self.names))

    def match_maps(self, maps: MessagePackMaps, deleted: NDArray[np.uint8]) -> tuple[Any, Any] | None:
        """As `match_chunk` for a few events in MessagePack, one after the other: that spares what a batch costs before
        its first event. None where Python must read one, and where they are tried on so much that together is quicker.
        """
        reader = self.json_reader
        if reader is None or not self._takes_maps:
            return None
        return reader.match_maps(maps, deleted)

    def match_chunk(
        self, columns: Columns, encoded: Encoded, first: int, last: int, deleted: NDArray[np.uint8] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(offsets, ordinals) for events first to last: each event's subscriptions, ascending."""
        codes = self.encoder.encode(columns, encoded, first, last)
        formulas = encoded.formulas.chunk(first)
        dead = self.none_deleted if deleted is None else deleted
        patterns = encoded.patterns.arrays
        first_keyed = 1 if self.tables.is_swept else 0
        pairs, used = np.empty(_FIRST_PAIRS, dtype=np.int64), 0
        pending, aside = _matching.Pending(*np.empty((2, _FIRST_PENDING), dtype=np.int64)), 0
        for table in range(first_keyed, self.tables.count):
            pairs, used, pending, aside = _matching.match_table(
                table, last - first, codes, patterns, formulas.addresses, self.addresses, dead, pairs, used, pending,
                aside,
            )  # fmt: skip
        while aside:
            pending = _matching.Pending(pending.where[:aside], pending.what[:aside])
            what = np.unique(pending.what)
            truths = self.encoder.patterns.verify(encoded.patterns, what)
            patterns = patterns._replace(known=knowledge(patterns.known, what, truths))
            pairs, used, aside = _matching.match_pending(
                pending, codes, patterns, formulas.addresses, self.addresses, dead, pairs, used
            )
        encoded.formulas.count(formulas)
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
    statistics = options.statistics
    known = weights_of_constants(flat, spaces, coded) if statistics is None else statistics.weights(flat.names, spaces)
    literals, chances = _literals_of(flat, statistics)
    rows = Rows(
        (literals.slot + len(flat.names)).astype(np.int32),
        {attribute: len(flat.names) + slot for slot, attribute in enumerate(literals.attribute.tolist())},
        literals.slot_literal,
    )
    weights = _planning.Weights(
        *known, chances, literals.mode, literals.needed_start, literals.needed, _cost_of_terms(flat)
    )
    tables, failed = build_tables(flat, spaces, coded, rows, weights, options)
    if len(failed):
        raise DiagramLimitError([int(row) for row in failed], min(options.limits.diagram_nodes, MOST_NODES))
    kept = given if flat.count < KEPT_FLAT else None
    literals = replace(literals, mode=_modes(literals.mode, tables))
    return Segment(ids, texts, flat.names, spaces, flat.patterns, literals, tables, options.defaults_in_force, kept)


def _literals_of(flat: Flat, statistics: Statistics | None) -> tuple[TextIndex, NDArray[np.float64]]:
    """The literals of the patterns, and how likely each pattern is to be true."""
    if not flat.patterns:
        return no_texts(), np.empty(0)
    needs = needs_of(flat.names, flat.patterns)
    if statistics is None:
        literals = text_index(needs, {})
        named = np.bincount(flat.leaf_text[flat.leaf_operator == PATTERN], minlength=len(flat.patterns))
        return literals, pattern_chances(literals, literal_chances(literals, named))
    every, numbered = every_literal(needs)
    chances = statistics.literals(flat.names, every)
    literals = text_index(needs, dict(zip(numbered, chances.tolist(), strict=True)))
    return literals, pattern_chances(literals, statistics.literals(flat.names, literals))


def _cost_of_terms(flat: Flat) -> NDArray[np.float64]:
    """What filing a subscription under a term costs besides: its share of the column, which is computed, coded and
    looked at for all events then, instead of for those that come to it."""
    terms = [not is_path(name) for name in flat.names]
    named = np.bincount(flat.leaf_attribute, minlength=len(flat.names))[: len(flat.names)]
    return np.where(terms, _COLUMN_COST / np.maximum(named, 1), 0.0)


def _modes(mode: NDArray[np.uint8], tables: Tables) -> NDArray[np.uint8]:
    """What swept subscriptions ask for is asked of all events: it is found out beforehand, all of it at once."""
    if not tables.is_swept:
        return mode
    atoms = tables.sweep_atoms
    asked = np.unique(atoms[(atoms[:, 0] & 0xFF) > NOT_RANGE, 1])
    found = mode.copy()
    found[asked[mode[asked] == VERIFIED]] = DENSE
    return found


class DiagramLimitError(LimitError):
    """Subscriptions whose decision diagrams are over the limit; `rows` has their numbers."""

    def __init__(self, rows: list[int], limit: int) -> None:
        self.rows = rows
        super().__init__(
            f"the filter needs a larger decision diagram than the limit (diagram_nodes) of {limit:,} nodes"
        )


__all__ = ["PADDING", "DiagramLimitError", "Segment", "build_segment", "segment_of"]
