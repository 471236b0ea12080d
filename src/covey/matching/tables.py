"""Tables: the compiled subscriptions of a segment, filed under what an event must have to reach them.

A table has key attributes (none, one or several) and perhaps a pivot attribute. Its partitions are the distinct codes
of the key; a partition's entries stand in the order of the lower end of their pivot interval. An entry is one way to
reach one subscription: the pivot interval, and the diagram that decides the rest. An event reaches an entry if it has
the partition's key and its pivot code lies in the entry's interval. Where subscriptions are filed under what must occur
in a text, the key is a literal, and an event reaches the partitions of all that occur in its text.

All tables of a segment share flat arrays, so that a segment is a handful of plain arrays in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covey.filters.terms import is_path
from covey.kernels import on_demand
from covey.kernels.opcodes import (
    COMPOSITE,
    GT,
    LE,
    LT,
    NOT_RANGE,
    NULL_SAFE_EQ,
    OCCURS,
    POINT,
    SPAN,
    STRING,
    SWEEP,
    TEXT_KEY,
    VERIFIED,
)
from covey.matching.coding import CodedLeaves, CodeSpaces
from covey.matching.lowering import Flat
from covey.matching.options import BuildOptions

if TYPE_CHECKING:
    from covey.kernels.compiling import Units
    from covey.kernels.planning import Accesses, Entries, Weights

NO_ATTRIBUTE = -1
_compiling = on_demand("compiling")
_matching = on_demand("matching")
_planning = on_demand("planning")

_COMPOSITE_UNITS = 1024
"""A composite table is worth its look-up for each event only if at least this many units share it …"""
_COMPOSITE_CANDIDATES = 24.0
"""… and a single equality would leave more than this many candidates."""
_KEY_SPACE = 2**62
_SWEPT_CHANCE = 0.01
_SWEEP_ALL = 0.5
"""Where this share of the subscriptions is swept, the rest is as well: one way is quicker than two."""
_ALL_SWEPT = -1.0
"""A chance that every subscription is above."""
MOST_NODES = 65_000
"""Nodes of one diagram, whatever the limit: they are numbered with 16 bits."""
MOST_IN_SIGNATURE = 65_535
"""With more attributes than this, their numbers don't fit into a composite key's signature."""
FEW_SWEPT = 64
"""So many swept subscriptions, or fewer, are gone through as those of any other table, where a test that fails ends it;
what they ask for isn't worth finding out for all events."""
MOST_TEXT_TESTS = 8
"""And so are those that have more distinct tests on text each, whose truth is dear and hardly shared."""
_SHARED_ATOMS = 8
"""Sweeping evaluates each distinct atom for all events: worth it where an atom stands in this many places or more."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything the matching kernels read, as arrays."""

    keys: NDArray[np.int32]
    """[table, 4]: key attributes, NO_ATTRIBUTE where there are fewer; or a row of texts and TEXT_KEY."""
    pivot: NDArray[np.int32]
    """[table]: pivot attribute or NO_ATTRIBUTE."""
    lookup_start: NDArray[np.int64]
    """[table + 1]: one key: codes (or literals of the text's slot) in `lookup`; several: slots in `slot_key`,
    `slot_partition`."""
    slot_start: NDArray[np.int64]
    lookup: NDArray[np.int32]
    """[code or literal]: the partition's number, -1 for none."""
    slot_key: NDArray[np.int64]
    """Open addressing; -1 is free. A table's slots are a power of two."""
    slot_partition: NDArray[np.int32]
    table_partition: NDArray[np.int64]
    """[table + 1]: where a table's partitions start."""
    partition_entry: NDArray[np.int64]
    """[partition + 1]: where a partition's entries start."""
    entry_subscription: NDArray[np.int32]
    entry_low: NDArray[np.int32]
    entry_high: NDArray[np.int32]
    """Pivot interval, both ends included."""
    entry_start: NDArray[np.int32]
    entry_nodes: NDArray[np.uint16]
    """An entry's diagram is nodes[start : start + nodes]; without nodes it is true."""
    nodes: NDArray[np.int32]
    """[node, 4]: row << 8 | kind, low, high, yes << 16 | no. The row is an attribute's codes or, for patterns, the
    numbers of its distinct strings. Where to go: 0 is false, 1 is true, k the diagram's node k - 2."""
    sweep_atoms: NDArray[np.int32]
    """[atom, 3]: the distinct atoms of swept diagrams, as nodes have them."""
    sweep_node_atom: NDArray[np.int32]
    """Which of these each swept node tests; swept nodes are the first."""
    use_start: NDArray[np.int32]
    uses: NDArray[np.int32]
    """[table + 1] and the rows that a table's diagrams test."""

    @property
    def count(self) -> int:
        """How many tables."""
        return len(self.pivot)

    @property
    def swept(self) -> int:
        """How many entries every event is tried on: those of table 0, if it has neither key nor pivot."""
        if not self.count or self.keys[0, 0] >= 0 or self.pivot[0] >= 0:
            return 0
        return int(self.partition_entry[self.table_partition[1]])

    @property
    def is_swept(self) -> bool:
        """Whether table 0 is swept, 512 events at a time, rather than gone through."""
        if self.swept <= FEW_SWEPT:
            return False
        on_text = np.count_nonzero((self.sweep_atoms[:, 0] & 0xFF) > NOT_RANGE)
        return bool(on_text <= MOST_TEXT_TESTS * self.swept)

    @property
    def nbytes(self) -> int:
        """Bytes in all arrays."""
        return sum(int(getattr(self, field.name).nbytes) for field in fields(self))


class Rows(NamedTuple):
    """The rows of codes behind those of attributes: the distinct values of attributes that patterns test."""

    of_pattern: NDArray[np.int32]
    """[pattern]: the row of what it tests."""
    of_attribute: Mapping[int, int]
    first_literal: NDArray[np.int32]
    """[row behind attributes + 1]: the first literal of its texts."""


class Knowledge(NamedTuple):
    """How likely codes are, as cumulative sums with a stretch for each attribute."""

    cumulative: NDArray[np.float64]
    offsets: NDArray[np.int64]


def weights_of_constants(flat: Flat, spaces: CodeSpaces, coded: CodedLeaves) -> Knowledge:
    """Weights without any knowledge of events: a code is as likely as subscriptions name it. Subscriptions ask for
    what there is, so this is a fair guess; half of the weight of every attribute lies on its being missing."""
    offsets = np.concatenate(([0], np.cumsum(spaces.size.astype(np.int64) + 1)))
    density = np.ones(int(offsets[-1]))
    comparison = flat.leaf_text < 0
    comparison |= flat.leaf_kind == STRING
    points = np.where(flat.leaf_operator == LE, coded.high, coded.low)  # its constant is its upper end
    points = np.where(flat.leaf_operator == LT, coded.high + 1, points)  # lies just above
    points = np.where(flat.leaf_operator == GT, coded.low - 1, points)  # just below
    named = comparison & (flat.leaf_operator <= NULL_SAFE_EQ)
    np.add.at(density, offsets[flat.leaf_attribute[named]] + 1 + points[named], 1.0)
    return cumulated(density, offsets)


def cumulated(density: NDArray[np.float64], offsets: NDArray[np.int64]) -> Knowledge:
    """Weights from a density whose stretch for an attribute has a leading slot, then one for each code."""
    density = density.copy()
    density[offsets[:-1]] = 0.0
    missing = offsets[:-1] + 1
    if len(missing):
        totals = np.add.reduceat(density, offsets[:-1]) - density[missing]
        density[missing] = np.maximum(totals, 1.0)
    running = np.cumsum(density)
    starts = np.repeat(running[offsets[:-1]], np.diff(offsets)) if len(missing) else running
    return Knowledge(running - starts, offsets)


def build_tables(
    flat: Flat,
    spaces: CodeSpaces,
    coded: CodedLeaves,
    rows: Rows,
    weights: Weights,
    options: BuildOptions,
) -> tuple[Tables, NDArray[np.int64]]:
    """The tables of some subscriptions, and the rows of those whose diagram would be over the limit."""
    sizes = spaces.size
    packed = np.stack([coded.low, coded.high, coded.class_low, coded.class_high], axis=1)
    node_limit = min(options.limits.diagram_nodes, MOST_NODES)
    units, failed = _compiling.compile_units(
        flat.tokens, flat.starts, flat.leaf_attribute, flat.leaf_operator, packed, sizes, options.is_two_valued,
        _demanded(flat, options), node_limit,
    )  # fmt: skip
    estimates = _planning.group_costs(units, weights)
    signature = _planning.signatures(units, weights, len(flat.names) >= MOST_IN_SIGNATURE)
    composite = _worthwhile_composites(signature, units.subscription, sizes)
    chance = _sweep_chance(units.atoms, len(spaces.numbers) + len(spaces.texts) + len(flat.patterns))
    accesses = _planning.choose_accesses(units, weights, estimates, signature, composite, chance)
    if chance <= 1.0 and np.count_nonzero(accesses.sort == SWEEP) > _SWEEP_ALL * flat.count:
        accesses = _planning.choose_accesses(units, weights, estimates, signature, composite, _ALL_SWEPT)

    filed = _filed(accesses, units, signature, sizes, rows)
    pivot = _choose_pivots(filed, accesses, units, weights, signature)
    ranks, group_rank = _ranks(options, flat, units.atoms, estimates.chance, weights)
    pivots = pivot[filed.table] if len(filed.table) else filed.table.astype(np.int32)
    entries, over = _planning.lay_out(accesses, pivots, units, ranks, group_rank, signature, node_limit)
    failed[units.subscription[accesses.unit[over == 1]]] = 1
    tables = _assemble(filed, pivot, entries, units.subscription[accesses.unit], sizes, rows)
    return tables, np.flatnonzero(failed)


def _demanded(flat: Flat, options: BuildOptions) -> NDArray[np.uint8]:
    """Which attributes strict semantics asks for: terms aren't, but what is inside them (`strict_terms`)."""
    return np.array([is_path(name) for name in flat.names] if options.is_strict else [], dtype=np.uint8)


class _Filed(NamedTuple):
    """Which table each access goes to, and under which key there."""

    distinct: NDArray[np.int64]
    """[table, (sort of access, key attribute or signature)]: what a table is known by."""
    table: NDArray[np.int64]
    key: NDArray[np.int64]


def _filed(
    accesses: Accesses, units: Units, signature: NDArray[np.int64], sizes: NDArray[np.int32], rows: Rows
) -> _Filed:
    atoms = units.atoms
    is_composite, is_point = accesses.sort == COMPOSITE, accesses.sort == POINT
    attribute = np.where(accesses.atom >= 0, atoms[accesses.atom, 0] if len(atoms) else 0, NO_ATTRIBUTE)
    is_text = accesses.sort == OCCURS
    if is_text.any():
        row_of = np.full(len(sizes), NO_ATTRIBUTE, dtype=np.int32)
        row_of[list(rows.of_attribute)] = list(rows.of_attribute.values())
        attribute = np.where(is_text, row_of[attribute], attribute)
    identity = np.where(is_composite, signature[accesses.unit] if len(signature) else 0, attribute.astype(np.int64))
    table_key = np.stack([accesses.sort.astype(np.int64), identity], axis=1)
    distinct, table = np.unique(table_key, axis=0, return_inverse=True)
    key = np.zeros(len(accesses.unit), dtype=np.int64)
    if len(atoms):
        key[is_point] = atoms[accesses.atom[is_point], 2]
    key[is_text] = accesses.literal[is_text] - rows.first_literal[attribute[is_text] - len(sizes)]
    key[is_composite] = _planning.composite_keys(accesses.unit[is_composite], units, signature, sizes)
    return _Filed(distinct, table.reshape(-1).astype(np.int64), key)


def _sweep_chance(atoms: NDArray[np.int32], constants: int) -> float:
    """How likely a subscription must be to match to be swept. Sweeping pays where many diagrams share few atoms; how
    many distinct ones there are is guessed from the constants and patterns."""
    return _SWEPT_CHANCE if len(atoms) >= _SHARED_ATOMS * (constants + 1) else 2.0


def _distinct_rows(rows: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The distinct rows, and for each row which of them it is (np.unique takes ten times as long)."""
    order = np.lexsort(rows.T)
    ordered = rows[order]
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    inverse = np.empty(len(rows), dtype=np.int64)
    inverse[order] = np.cumsum(fresh) - 1
    return ordered[fresh], inverse


def _worthwhile_composites(
    signature: NDArray[np.int64], units: NDArray[np.int32], sizes: NDArray[np.int32]
) -> NDArray[np.uint8]:
    worthwhile = np.zeros(len(signature), dtype=np.uint8)
    found, inverse, counts = np.unique(signature, return_inverse=True, return_counts=True)
    for position, value in enumerate(found):
        if value == 0 or counts[position] < max(_COMPOSITE_UNITS, len(units) // 256):
            continue
        # Codes are points and gaps: half of the codes can be asked for.
        space = [int(sizes[attribute]) for attribute in signature_attributes(int(value))]
        product = 1
        for size in space:
            product *= size
        if product < _KEY_SPACE and 2 * counts[position] / max(space) > _COMPOSITE_CANDIDATES:
            worthwhile[inverse == position] = 1
    return worthwhile


def signature_attributes(signature: int) -> list[int]:
    """The attributes of a composite key."""
    attributes = []
    while signature:
        attributes.append((signature & 0xFFFF) - 1)
        signature >>= 16
    return attributes


def _choose_pivots(
    filed: _Filed, accesses: Accesses, units: Units, weights: Weights, signature: NDArray[np.int64]
) -> NDArray[np.int32]:
    """One pivot for each table: the attribute whose ranges narrow its entries most in all."""
    pivot = np.full(len(filed.distinct), NO_ATTRIBUTE, dtype=np.int32)
    span = filed.distinct[:, 0] == SPAN
    pivot[span] = filed.distinct[span, 1]
    voted, attribute, gain = _planning.pivot_votes(accesses, filed.table, units, weights, signature)
    if not len(voted):
        return pivot
    pairs = voted.astype(np.int64) << 32 | attribute
    ballots, inverse = np.unique(pairs, return_inverse=True)
    gains = np.bincount(inverse, weights=gain)
    for position in np.argsort(gains, kind="stable"):  # the largest gain is written last
        pivot[ballots[position] >> 32] = ballots[position] & 0xFFFFFFFF
    return pivot


def _ranks(
    options: BuildOptions, flat: Flat, atoms: NDArray[np.int32], chance: NDArray[np.float64], weights: Weights
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """By what the members of a group are ordered: a key for each atom and one for each group."""
    count, order = len(atoms), options.order
    if order == "random":
        generator = np.random.default_rng(options.seed)
        return generator.random(count, dtype=np.float32), generator.random(len(chance), dtype=np.float32)
    if order == "attribute":
        return atoms[:, 0].astype(np.float32), np.full(len(chance), len(flat.names), dtype=np.float32)
    if order == "frequency":
        often = np.bincount(flat.leaf_attribute, minlength=len(flat.names)).astype(np.float32)
        return -often[atoms[:, 0]], np.zeros(len(chance), dtype=np.float32)
    first, last = weights.offsets[atoms[:, 0]], weights.offsets[atoms[:, 0] + 1] - 1
    plain = atoms[:, 1] <= NOT_RANGE
    low, high = np.where(plain, atoms[:, 2], 0), np.where(plain, atoms[:, 3], 0)
    share = (weights.cumulative[first + high + 1] - weights.cumulative[first + low]) / weights.cumulative[last]
    share = np.where(atoms[:, 1] == NOT_RANGE, 1.0 - share, share)
    # A term is computed where it is asked for, which costs as much as many ranges.
    share += np.where(weights.dear[atoms[:, 0]] > 0.0, 0.5, 0.0)
    if not plain.all():
        # A pattern costs a search for each event, so it is asked after plain ranges of a like chance; and what must be
        # verified costs far more.
        share[~plain] = _planning.atom_chances(atoms[~plain], weights)
        share[~plain] += np.where(weights.mode[atoms[~plain, 2]] == VERIFIED, 1.0, 0.5)
    return share.astype(np.float32), chance.astype(np.float32)


def _assemble(
    filed: _Filed, pivot: NDArray[np.int32], entries: Entries, subscription: NDArray[np.int32],
    sizes: NDArray[np.int32], rows_of: Rows,
) -> Tables:  # fmt: skip
    distinct, table, key = filed
    low, high, start, end, nodes = entries
    order = np.lexsort((subscription, low, key, table))
    table, key = table[order], key[order]
    length = (end - start)[order]
    start, nodes = _planning.relocate(order, start, end, nodes)
    end = start + length
    swept = int(end[table == 0].max(initial=0)) if len(distinct) and distinct[0, 0] == SWEEP else 0
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (table[1:] != table[:-1]) | (key[1:] != key[:-1])
    heads = np.flatnonzero(fresh)
    table_partition = np.searchsorted(table[heads], np.arange(len(distinct) + 1))

    keys = np.full((len(distinct), 4), NO_ATTRIBUTE, dtype=np.int32)
    lookups: list[NDArray[np.int32]] = []
    slot_keys: list[NDArray[np.int64]] = []
    slot_partitions: list[NDArray[np.int32]] = []
    lookup_start, slot_start = [0], [0]
    for number, (sort, identity) in enumerate(distinct):
        first, last = int(table_partition[number]), int(table_partition[number + 1])
        if sort == POINT:
            keys[number, 0] = identity
            lookup = np.full(int(sizes[identity]), -1, dtype=np.int32)
            lookup[key[heads[first:last]]] = np.arange(first, last)
            lookups.append(lookup)
        elif sort == OCCURS:
            keys[number, :2] = identity, TEXT_KEY
            slot = int(identity) - len(sizes)
            size = rows_of.first_literal[slot + 1] - rows_of.first_literal[slot]
            lookup = np.full(int(size), -1, dtype=np.int32)
            lookup[key[heads[first:last]]] = np.arange(first, last)
            lookups.append(lookup)
        elif sort == COMPOSITE:
            attributes = signature_attributes(int(identity))
            keys[number, : len(attributes)] = attributes
            slots, partitions = _hashed(key[heads[first:last]], first)
            slot_keys.append(slots)
            slot_partitions.append(partitions)
        lookup_start.append(sum(len(part) for part in lookups))
        slot_start.append(sum(len(part) for part in slot_keys))

    rows = nodes[:, 0].copy()
    patterned = nodes[:, 1] > NOT_RANGE
    rows[patterned] = rows_of.of_pattern[nodes[patterned, 2]]
    packed = _packed(nodes, rows)
    sweep_atoms, sweep_node_atom = _distinct_rows(packed[:swept, :3])
    use_start, uses = _uses(table, start, end, rows, len(distinct))
    return Tables(
        keys=keys,
        pivot=pivot,
        lookup_start=np.array(lookup_start, dtype=np.int64),
        slot_start=np.array(slot_start, dtype=np.int64),
        lookup=np.concatenate(lookups) if lookups else np.empty(0, np.int32),
        slot_key=np.concatenate(slot_keys) if slot_keys else np.empty(0, np.int64),
        slot_partition=np.concatenate(slot_partitions) if slot_partitions else np.empty(0, np.int32),
        table_partition=table_partition.astype(np.int64),
        partition_entry=np.append(heads, len(order)).astype(np.int64),
        entry_subscription=subscription[order].astype(np.int32),
        entry_low=low[order],
        entry_high=high[order],
        entry_start=start.astype(np.int32),
        entry_nodes=length.astype(np.uint16),
        nodes=packed,
        sweep_atoms=sweep_atoms,
        sweep_node_atom=sweep_node_atom.astype(np.int32),
        use_start=use_start,
        uses=uses,
    )


def _packed(nodes: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int32]:
    packed = np.empty((len(nodes), 4), dtype=np.int32)
    packed[:, 0] = rows << 8 | nodes[:, 1]
    packed[:, 1:3] = nodes[:, 2:4]
    packed[:, 3] = ((nodes[:, 4].astype(np.uint32) << 16) | nodes[:, 5].astype(np.uint32)).view(np.int32)
    return packed


def _hashed(keys: NDArray[np.int64], first: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots, partitions = np.full(size, -1, dtype=np.int64), np.full(size, -1, dtype=np.int32)
    _matching.fill_slots(keys, first, slots, partitions)
    return slots, partitions


def _uses(
    table: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], rows: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Which rows each table's diagrams test."""
    marks = np.zeros((count, int(rows.max()) + 1 if len(rows) else 0), dtype=np.uint8)
    _planning.mark_uses(table, start, end, rows, marks)
    tables, used = np.nonzero(marks)
    return np.searchsorted(tables, np.arange(count + 1)).astype(np.int32), used.astype(np.int32)


__all__ = ["NO_ATTRIBUTE", "SWEEP", "Tables", "build_tables", "weights_of_constants"]
