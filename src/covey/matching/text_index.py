"""The literals of a segment's tests on text as one automaton, in arrays like all of a segment.

Each attribute that patterns test has a *slot*, and a tree of states for each place in which its literals are looked for
(`kernels.literals`). Literals are numbered slot by slot. A pattern has the literals of which one must occur, and a mode
that says what their occurrence tells (`kernels.opcodes`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters.cases import lower
from covey.kernels import on_demand
from covey.kernels.opcodes import DECIDED, EVERY, VERIFIED
from covey.matching.literals import IN_LOWER_CASE, Literal, Need, Needs, chance_by_length, guessed_chance, rarest

if TYPE_CHECKING:
    from covey.kernels.literals import Automaton, Texts

_literals = on_demand("literals")
_segments = on_demand("segments")

ROOTS: Final = 8
"""Trees of a slot, as in `kernels.literals`."""
MOST_BYTES: Final = 1 << 28
"""Bytes of all literals of a segment, and so the most states that they can have. What needs further literals is
verified without them."""

_CASED: Final = 0x20000
"""Characters from here on have no lower case."""
_UNKNOWN_CHANCE: Final = 0.25
_EVERY_CHANCE: Final = 0.75

Chances = dict[tuple[int, Literal], float]


@dataclass(frozen=True)
class TextIndex:
    """Which literals decide or announce the patterns of a segment."""

    slot: NDArray[np.int32]
    """[pattern]: the slot of the attribute that it tests."""
    attribute: NDArray[np.int32]
    """[slot]: the attribute."""
    mode: NDArray[np.uint8]
    """[pattern]: DENSE, DECIDED, VERIFIED or EVERY."""
    needed_start: NDArray[np.int32]
    needed: NDArray[np.int32]
    """[pattern + 1] and the literals of which one must occur."""
    slot_literal: NDArray[np.int32]
    """[slot + 1]: a slot's first literal."""
    roots: NDArray[np.int32]
    root_row: NDArray[np.int32]
    dense: NDArray[np.int32]
    label: NDArray[np.uint8]
    first_child: NDArray[np.int32]
    fail: NDArray[np.int32]
    emit: NDArray[np.int32]
    hit_literal: NDArray[np.int32]
    hit_depth: NDArray[np.uint16]
    up_whole: NDArray[np.int32]
    up_rest: NDArray[np.int32]
    literal_start: NDArray[np.int64]
    literal_bytes: NDArray[np.uint8]

    @property
    def slots(self) -> int:
        """How many attributes have patterns."""
        return len(self.attribute)

    @property
    def literals(self) -> int:
        """How many literals there are."""
        return len(self.literal_start) - 1

    @property
    def nbytes(self) -> int:
        """Bytes in all arrays."""
        return sum(int(getattr(self, field.name).nbytes) for field in fields(self))

    @cached_property
    def automaton(self) -> NDArray[np.int64]:
        """Where the arrays lie that kernels scan with; it mustn't outlive this."""
        found: NDArray[np.int64] = _segments.addresses(self._automaton)
        return found

    @cached_property
    def _automaton(self) -> Automaton:
        """Its arrays: those that are kept, and the bits of what literals begin with."""
        bits = _literals.build_bits(
            self.roots, self.root_row, self.first_child, self.emit, self.hit_literal, self.hit_depth,
            self.literal_start, self.literal_bytes, len(self.dense) // 256,
        )  # fmt: skip
        kept = _literals.Automaton._fields[: -len(bits)]
        made: Automaton = _literals.Automaton(*(getattr(self, name) for name in kept), *bits)
        return made

    def has_literals(self, slot: int) -> bool:
        """Whether texts of this slot are to be scanned."""
        return bool(self.slot_literal[slot + 1] > self.slot_literal[slot])

    def ignores_case(self, slot: int) -> bool:
        """Whether some literal of this slot is looked for in lower case."""
        first = slot * ROOTS + IN_LOWER_CASE
        return bool((self.roots[first : first + IN_LOWER_CASE] >= 0).any())

    def find(self, slot: int, texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(offsets, literals): which literals of a slot occur in each of some texts, ascending."""
        if not self.has_literals(slot) or not len(texts):
            return np.zeros(len(texts) + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        arrays = arrow_texts(texts, self.ignores_case(slot))
        most = int(self.slot_literal[slot + 1] - self.slot_literal[slot])
        offsets, found = _literals.find_literals(self.automaton, slot, most, _segments.addresses(arrays))
        return offsets, found


def arrow_texts(texts: pa.Array, in_lower_case: bool) -> Texts:
    """Texts as a kernel reads them; with the lower case of those for which adding 32 to ASCII's letters doesn't make
    it."""
    starts, data = utf8(texts)
    lowered = np.full(len(starts) - 1, -1, dtype=np.int32)
    others: pa.Array = pa.array([], pa.large_string())
    if in_lower_case:
        marks = np.empty(len(starts) - 1, np.uint8)
        _literals.mark_changing(starts, data, changed_by_lower_case(), marks)
        foreign = np.flatnonzero(marks)
        if len(foreign):
            others = pa.array([lower(texts[place].as_py()) for place in foreign.tolist()], pa.large_string())
            lowered[foreign] = np.arange(len(foreign), dtype=np.int32)
    found: Texts = _literals.Texts(starts, data, lowered, *utf8(others))
    return found


@cache
def changed_by_lower_case() -> NDArray[np.uint8]:
    """A bit for each character: whether it is another in lower case, ASCII's left out. No character above has one."""
    changed = [code > 127 and lower(chr(code)) != chr(code) for code in range(_CASED)]
    return np.packbits(changed, bitorder="little")


def utf8(texts: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Offsets and bytes of texts, those without any too."""
    if not pa.types.is_string(texts.type) and not pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    if offsets is None or not len(texts):
        return np.zeros(1, np.int64), np.empty(0, np.uint8)
    wide = pa.types.is_large_string(texts.type)
    starts = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return starts.astype(np.int64, copy=False), np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, np.uint8)


def text_index(needs: Needs, chances: Chances) -> TextIndex:
    """The index of some patterns. `chances` are known of some literals."""

    def chosen(need: Need, slot: int) -> tuple[Literal, ...]:
        return rarest(need, lambda one: chances.get((slot, one)) or guessed_chance(one))

    return _indexed(needs, [chosen(need, slot) for need, slot in zip(needs.needs, needs.slot.tolist(), strict=True)])


def every_literal(needs: Needs) -> tuple[TextIndex, list[tuple[int, Literal]]]:
    """An index of all literals that patterns might be filed under, to be counted in sampled events, and what they
    are, by number."""
    chosen = [tuple(literal for one in need.sets for literal in one) for need in needs.needs]
    return _indexed(needs, chosen), _numbered(chosen, needs.slot)


def _numbered(chosen: Iterable[tuple[Literal, ...]], slots: NDArray[np.int32]) -> list[tuple[int, Literal]]:
    """All distinct literals by slot, place and bytes, which is how states are built."""
    distinct = {(slot, literal) for literals, slot in zip(chosen, slots.tolist(), strict=True) for literal in literals}
    return sorted(distinct)


def _indexed(needs: Needs, chosen: list[tuple[Literal, ...]]) -> TextIndex:
    modes = [need.mode for need in needs.needs]
    slots, slot_count = needs.slot, len(needs.attribute)
    ordered = _numbered(chosen, slots)
    if sum(len(literal.text) for _, literal in ordered) > MOST_BYTES:
        modes, chosen = _within_bytes(modes, chosen, slots)
        ordered = _numbered(chosen, slots)
    number = {key: place for place, key in enumerate(ordered)}
    needed = [
        number[slot, literal] for literals, slot in zip(chosen, slots.tolist(), strict=True) for literal in literals
    ]
    tree = np.array([slot * ROOTS + literal.tree for slot, literal in ordered], dtype=np.int32)
    starts = _offsets([len(literal.text) for _, literal in ordered]).astype(np.int64)
    data = np.frombuffer(b"".join(literal.text for _, literal in ordered), dtype=np.uint8)
    roots, label, first_child, own, depth = _literals.build_states(starts, data, tree, slot_count * ROOTS)
    fail, emit, hit_literal, hit_depth, up_whole, up_rest, root_row, dense = _literals.build_links(
        roots, label, first_child, own, depth, starts
    )
    return TextIndex(
        slot=slots,
        attribute=needs.attribute,
        mode=np.array(modes, dtype=np.uint8),
        needed_start=_offsets([len(literals) for literals in chosen]),
        needed=np.array(needed, dtype=np.int32),
        slot_literal=np.searchsorted(tree, np.arange(slot_count + 1) * ROOTS).astype(np.int32),
        roots=roots, root_row=root_row, dense=dense, label=label, first_child=first_child, fail=fail, emit=emit,
        hit_literal=hit_literal, hit_depth=hit_depth, up_whole=up_whole, up_rest=up_rest,
        literal_start=starts, literal_bytes=data,
    )  # fmt: skip


def no_texts() -> TextIndex:
    """The index of no patterns, made without a kernel."""
    made = {field.name: np.empty(0, dtype=np.int32) for field in fields(TextIndex)}
    one = np.zeros(1, dtype=np.int32)
    return TextIndex(**made | {  # type: ignore[arg-type]
        "needed_start": one, "slot_literal": one, "first_child": one, "mode": np.empty(0, np.uint8),
        "label": np.empty(0, np.uint8), "hit_depth": np.empty(0, np.uint16), "literal_start": np.zeros(1, np.int64),
        "literal_bytes": np.empty(0, np.uint8),
    })  # fmt: skip


def literal_chances(index: TextIndex, named: NDArray[np.int64]) -> NDArray[np.float64]:
    """How likely each literal is to occur without knowledge of events: by its length, and the likelier the more
    leaves of subscriptions (`named`, by pattern) need it."""
    size = np.diff(index.literal_start)
    chance = np.array([chance_by_length(n) for n in range(int(size.max(initial=0)) + 1)])[size]
    often = np.bincount(index.needed, weights=np.repeat(named, np.diff(index.needed_start)), minlength=index.literals)
    slot = np.repeat(np.arange(index.slots), np.diff(index.slot_literal))
    of_slot = np.bincount(slot, weights=often, minlength=index.slots)
    found: NDArray[np.float64] = np.maximum(chance, 0.5 * often / np.maximum(of_slot[slot], 1.0))
    return found


def pattern_chances(index: TextIndex, literal: NDArray[np.float64]) -> NDArray[np.float64]:
    """How likely each pattern is to be true, at most."""
    owner = np.repeat(np.arange(len(index.mode)), np.diff(index.needed_start))
    found = np.minimum(1.0, np.bincount(owner, weights=literal[index.needed], minlength=len(index.mode)))
    found[np.diff(index.needed_start) == 0] = _UNKNOWN_CHANCE
    found[index.mode == EVERY] = _EVERY_CHANCE
    return found


def _within_bytes(
    modes: list[int], chosen: list[tuple[Literal, ...]], slots: NDArray[np.int32]
) -> tuple[list[int], list[tuple[Literal, ...]]]:
    """Without the literals that are too many: what needs them is verified."""
    known: set[tuple[int, Literal]] = set()
    left = MOST_BYTES
    kept_modes, kept = list(modes), list(chosen)
    for place, (literals, slot) in enumerate(zip(chosen, slots.tolist(), strict=True)):
        fresh = {(slot, literal) for literal in literals} - known
        size = sum(len(literal.text) for _, literal in fresh)
        if size > left:
            kept[place] = ()
            kept_modes[place] = VERIFIED if modes[place] == DECIDED else modes[place]
        else:
            known |= fresh
            left -= size
    return kept_modes, kept


def _offsets(sizes: list[int]) -> NDArray[np.int32]:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets
