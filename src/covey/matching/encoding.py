"""Events to codes: the first of matching's two steps, done once for each attribute and distinct value.

An `Encoder` belongs to a segment (code spaces do); it is made when a segment is first matched, and is read-only after.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import EventError
from covey.events import Columns, Piece
from covey.filters import Predicate
from covey.filters.values import Scalar, Value, normalise
from covey.kernels import on_demand
from covey.kernels.opcodes import BOOLEAN, KINDS, LIST, NUMBER, STRING, TIMESTAMP
from covey.matching.coding import MISSING, CodeSpaces
from covey.matching.formulas import BatchFormulas
from covey.matching.lowering import number_pair
from covey.matching.one_event import EncodedEvent
from covey.matching.pattern_values import PatternBatch, PatternValues
from covey.matching.text_index import TextIndex, utf8

_kernels = on_demand("encoding")

PADDING = 64
"""Codes that kernels may read past the last event."""
_GRID_FROM = 64
_EXACT = 2**53
_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)
_NO_GRID: NDArray[np.int32] = np.empty(0, dtype=np.int32)
_NUMBER = 1 + NUMBER
_KIND_OF_PIECE = {"int": NUMBER, "double": NUMBER, "bigint": NUMBER, "boolean": BOOLEAN, "timestamp": TIMESTAMP}


@dataclass(frozen=True, slots=True)
class NumberSpace:
    """The sorted constants of one attribute and kind, with a grid over them."""

    base: int
    first: int
    last: int
    grid: NDArray[np.int32]
    lowest: float
    scale: float


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch for one segment: string pieces by distinct value, and what patterns are asked of."""

    text_codes: Mapping[tuple[int, int], NDArray[np.int32]]
    """(attribute, piece) -> code of each distinct string."""
    patterns: PatternBatch
    formulas: BatchFormulas


class _Run(NamedTuple):
    """Values of one type of an attribute, of the events from `first` on; without rows, one for each event."""

    kind: str
    values: NDArray[Any]
    rows: NDArray[np.int64] | None
    first: int
    words: NDArray[np.int32] | None
    """For strings the codes of the distinct ones, whose numbers `values` has."""


class Encoder:
    """Codes for one segment."""

    def __init__(
        self,
        names: list[str],
        spaces: CodeSpaces,
        patterns: Sequence[Predicate],
        texts: TextIndex,
        defaults: Mapping[str, Scalar],
    ) -> None:
        self.names = names
        self._spaces = spaces
        self._numbers = [[self._number_space(a, kind) for kind in range(KINDS)] for a in range(len(names))]
        self.number_of_name = {name: number for number, name in enumerate(names)}
        self._local = threading.local()
        self.firsts = np.array([space.first for row in self._numbers for space in row], dtype=np.int64)
        self.lasts = np.array([space.last for row in self._numbers for space in row], dtype=np.int64)
        self.grids = _joined_grids([space for row in self._numbers for space in row])
        self._texts: list[dict[str, int] | None] = [None] * len(names)
        self._sorted: list[list[str] | None] = [None] * len(names)
        self._words = [self._look_up(attribute) for attribute in range(len(names))]
        self._most_named = 2 * len(names)
        self._defaults = {a: defaults[name] for a, name in enumerate(names) if name in defaults}
        self.missing = np.zeros(len(names), dtype=np.int32)
        for a, value in self._defaults.items():
            self.missing[a] = self.code(a, value)
        self.pattern_attributes = {a: len(names) + slot for slot, a in enumerate(texts.attribute.tolist())}
        self.patterns = PatternValues(names, patterns, texts, self._defaults)
        self.slot_of = [-1] * len(names)
        """[attribute]: its slot of texts, or -1."""
        for slot, a in enumerate(texts.attribute.tolist()):
            self.slot_of[a] = slot
        self._index = texts
        self._default_texts = [
            (slot, names[a], default)
            for slot, a in enumerate(texts.attribute.tolist())
            if isinstance(default := self._defaults.get(a), str)
        ]

    @property
    def has_default_texts(self) -> bool:
        """Whether patterns are asked of a text that an event lacks."""
        return bool(self._default_texts)

    @property
    def rows(self) -> int:
        """Rows of the code matrix: attributes, then those of them that have patterns again."""
        return len(self.names) + len(self.pattern_attributes)

    def _number_space(self, attribute: int, kind: int) -> NumberSpace:
        spaces = self._spaces
        slot = attribute * KINDS + kind
        base, first = int(spaces.base[attribute, kind]), int(spaces.starts[slot])
        # The next kind's base tells how many constants this one has.
        after = int(spaces.base[attribute, kind + 1]) if kind + 1 < KINDS else int(spaces.size[attribute])
        last = first + (after - base - 1) // 2
        if kind == STRING or last - first < _GRID_FROM:
            return NumberSpace(base, first, last, _NO_GRID, 0.0, 0.0)
        constants = spaces.numbers[first:last]
        finite = constants[np.isfinite(constants)]
        spread = float(finite[-1]) - float(finite[0]) if len(finite) else 0.0
        cells = 1 << (len(constants) - 1).bit_length()
        if spread <= 0.0 or not math.isfinite(spread) or not math.isfinite(cells / spread):
            return NumberSpace(base, first, last, _NO_GRID, 0.0, 0.0)
        grid = np.empty(cells + 1, dtype=np.int32)
        lowest, scale = float(finite[0]), cells / spread
        _kernels.build_grid(constants, grid, lowest, scale)
        return NumberSpace(base, first, last, grid, lowest, scale)

    def _text_table(self, attribute: int) -> dict[str, int]:
        table = self._texts[attribute]
        if table is None:
            texts = self._sorted_texts(attribute)
            base = int(self._spaces.base[attribute, STRING])
            table = dict(zip(texts, range(base + 1, base + 2 * len(texts) + 1, 2), strict=True))
            self._texts[attribute] = table
        return table

    def _sorted_texts(self, attribute: int) -> list[str]:
        texts = self._sorted[attribute]
        if texts is None:
            space = self._numbers[attribute][STRING]
            found: list[str] = self._spaces.texts[space.first : space.last].to_pylist()
            texts = found
            self._sorted[attribute] = texts
        return texts

    def text_code(self, attribute: int, text: str) -> int:
        """The code of a string."""
        code = self._text_table(attribute).get(text)
        return self._gap_code(attribute, text) if code is None else code

    def code(self, attribute: int, value: Value) -> int:
        """The code of one value; slow, for single values."""
        if isinstance(value, tuple):
            return int(self._spaces.base[attribute, LIST])
        if isinstance(value, str):
            return self.text_code(attribute, value)
        kind = BOOLEAN if isinstance(value, bool) else NUMBER if isinstance(value, (int, float)) else TIMESTAMP
        space = self._numbers[attribute][kind]
        pairs = _Pairs(self._spaces, space)
        pair = number_pair(value)
        position = bisect_left(pairs, pair)
        equal = position < len(pairs) and pairs[position] == pair
        return space.base + 2 * position + int(equal)

    def encode_event(self, event: Mapping[str, Any]) -> EncodedEvent:
        """One event for the kernel that matches single events. Numbers are left to the kernel to search for."""
        one = self.buffers()
        try:
            if self.pattern_attributes:
                self._encode_texts(event, one)
            else:
                self._encode_values(event, one)
        except BaseException:
            one.clear()
            raise
        return one

    def _encode_values(self, event: Mapping[str, Any], one: EncodedEvent) -> None:
        codes, kinds, numbers = one.codes, one.kinds, one.numbers
        find, words = self.number_of_name.get, self._words
        for name, value in event.items() if len(event) <= self._most_named else self._named(event):
            attribute = find(name)
            if attribute is None or value is None:
                continue
            kind = type(value)
            if kind is float:
                numbers[attribute] = value
                kinds[attribute] = _NUMBER
            elif kind is str:
                code = words[attribute](value)
                codes[attribute] = self._gap_code(attribute, value) if code is None else code
            elif kind is int and -_EXACT <= value <= _EXACT:
                numbers[attribute] = value
                kinds[attribute] = _NUMBER
            elif not isinstance(value, Mapping):
                known = event_value(value, name)
                if known is not None:
                    codes[attribute] = self.code(attribute, known)

    def _encode_texts(self, event: Mapping[str, Any], one: EncodedEvent) -> None:
        """The same for a segment with patterns, which texts and lists are asked for besides."""
        codes, kinds, numbers = one.codes, one.kinds, one.numbers
        find, words, slot_of, ignores_case = (
            self.number_of_name.get, self._words, self.slot_of, self.patterns.ignores_case
        )  # fmt: skip
        one.no_texts()
        if has_dense := self.patterns.has_dense:
            one.values = {}
        for name, value in event.items() if len(event) <= self._most_named else self._named(event):
            attribute = find(name)
            if attribute is None or value is None:
                continue
            kind = type(value)
            if kind is str:
                code = words[attribute](value)
                codes[attribute] = self._gap_code(attribute, value) if code is None else code
            elif kind is float or (kind is int and -_EXACT <= value <= _EXACT):
                numbers[attribute] = value
                kinds[attribute] = _NUMBER
                continue
            elif isinstance(value, Mapping) or (value := event_value(value, name)) is None:
                continue
            else:
                codes[attribute] = self.code(attribute, value)
            slot = slot_of[attribute]
            if slot < 0:
                continue
            if isinstance(value, str):
                one.add_text(slot, value, ignores_case[slot])
            elif isinstance(value, tuple):
                one.add_list(slot)
            else:
                continue
            if has_dense:
                one.values[slot] = value
        for slot, name, default in self._default_texts:
            value = event.get(name)
            if value is None or (not isinstance(value, Mapping) and event_value(value, name) is None):
                one.add_text(slot, default, ignores_case[slot])
                if has_dense:
                    one.values[slot] = default
        if has_dense:
            self.patterns.encode_event(one)

    def _named(self, event: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Of an event with many attributes those that there are names for."""
        get = event.get
        return [(name, get(name)) for name in self.names]

    def buffers(self) -> EncodedEvent:
        """This thread's room for one event."""
        one: EncodedEvent | None = getattr(self._local, "event", None)
        if one is None:
            one = EncodedEvent(self.missing, self._index)
            self._local.event = one
        return one

    def _look_up(self, attribute: int) -> Callable[[str], int | None]:
        """How an attribute's strings are looked up: the first time in a table that is made then."""

        def first(text: str) -> int | None:
            find = self._words[attribute] = self._text_table(attribute).get
            return find(text)

        return first

    def _gap_code(self, attribute: int, text: str) -> int:
        """The code of a string that is no constant."""
        base = self._numbers[attribute][STRING].base
        if not self._spaces.ordered_texts[attribute]:
            return base  # all gaps are alike
        return base + 2 * bisect_left(self._sorted_texts(attribute), text)

    def prepare(self, columns: Columns) -> Encoded:
        """What is shared by all chunks of a batch: codes of distinct strings, and what patterns are asked of."""
        text_codes: dict[tuple[int, int], NDArray[np.int32]] = {}
        for attribute, name in enumerate(self.names):
            for place, piece in enumerate(columns.pieces.get(name, ())):
                if piece.type == "string":
                    assert piece.dictionary is not None
                    text_codes[attribute, place] = self._word_codes(attribute, piece.dictionary)
        given = columns.formulas
        formulas = self._no_formulas if given is None else BatchFormulas(self, self._spaces, given, columns.pieces)
        return Encoded(text_codes, self.patterns.prepare(columns), formulas)

    @cached_property
    def _no_formulas(self) -> BatchFormulas:
        """Of batches without any, which all have in common: noting where their arrays lie takes as long as coding some
        hundred events."""
        return BatchFormulas(self, self._spaces, None, {})

    def _word_codes(self, attribute: int, dictionary: pa.Array) -> NDArray[np.int32]:
        space = self._numbers[attribute][STRING]
        if space.first == space.last:
            return np.full(len(dictionary), space.base, dtype=np.int32)
        found = np.empty(len(dictionary), dtype=np.int32)
        first_slot, slots, starts, data = self.text_tables
        _kernels.code_texts(
            *utf8(dictionary), slots[first_slot[attribute] : first_slot[attribute + 1]], starts, data, space.first,
            space.last, self._spaces.ordered_texts[attribute], space.base, found,
        )  # fmt: skip
        return found

    @cached_property
    def text_tables(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]:
        """For the strings of each attribute where its slots begin; the slots; where texts start, and their bytes."""
        starts, data = utf8(self._spaces.texts)
        if not len(data):
            data = np.zeros(1, np.uint8)
        firsts = np.zeros(len(self.names) + 1, np.int64)
        slots: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
        for attribute in range(len(self.names)):
            space = self._numbers[attribute][STRING]
            size = 0 if space.first == space.last else 1 << (2 * (space.last - space.first)).bit_length()
            table = np.full(size, -1, np.int32)
            if size:
                _kernels.fill_texts(starts, data, space.first, space.last, table)
            slots.append(table)
            firsts[attribute + 1] = firsts[attribute] + size
        return firsts, np.concatenate(slots), starts, data

    def encode(self, columns: Columns, encoded: Encoded, first: int, last: int) -> NDArray[np.int32]:
        """The codes of events first to last, a row an attribute and one more for each that has patterns."""
        count = last - first
        codes = np.empty((self.rows, count + PADDING), dtype=np.int32)
        codes[len(self.names) :] = 0
        for attribute, name in enumerate(self.names):
            if encoded.formulas.has(attribute):
                continue  # nobody looks there
            out = codes[attribute]
            out[:] = MISSING
            if self.missing[attribute] != MISSING:
                out[:count] = self.missing[attribute]
            row = self.pattern_attributes.get(attribute)
            if row is not None:
                codes[row, :count] = encoded.patterns.missing[row - len(self.names)]
            for place, piece in enumerate(columns.pieces.get(name, ())):
                values, rows = _slice(piece, first, last)
                words = encoded.text_codes.get((attribute, place))
                self._encode_piece(attribute, _Run(piece.type, values, rows, first, words), out)
                if row is not None:
                    target = slice(0, count) if rows is None else rows - first
                    numbers = encoded.patterns.numbers.get((attribute, place))
                    if numbers is None:
                        codes[row, target] = encoded.patterns.neither[row - len(self.names)]
                    elif piece.rows is None:
                        codes[row, target] = numbers[first:last]
                    else:
                        low, high = np.searchsorted(piece.rows, (first, last))
                        codes[row, target] = numbers[low:high]
        return codes

    def _encode_piece(self, attribute: int, run: _Run, out: NDArray[np.int32]) -> None:
        kind, values, rows, first, words = run
        if kind == "string":
            assert words is not None
            target = slice(0, len(values)) if rows is None else rows - first
            out[target] = words[values]
            return
        if kind == "list":
            out[slice(0, len(values)) if rows is None else rows - first] = self._spaces.base[attribute, LIST]
            return
        if kind == "bigint":
            targets = range(len(values)) if rows is None else (rows - first).tolist()
            for target, value in zip(targets, values.tolist(), strict=True):
                out[target] = self.code(attribute, value)
            return
        space = self._numbers[attribute][_KIND_OF_PIECE[kind]]
        kernel = _kernels.encode_doubles if kind == "double" else _kernels.encode_integers
        if kind == "boolean":
            values = values.astype(np.int64)
        kernel(
            values, _NO_ROWS if rows is None else rows, first, out, space.base, self._spaces.numbers,
            self._spaces.remainders, space.first, space.last, space.grid, space.lowest, space.scale,
        )  # fmt: skip


class Grids(NamedTuple):
    """The grids of all attributes and kinds, one after the other."""

    starts: NDArray[np.int64]
    cells: NDArray[np.int32]
    lowest: NDArray[np.float64]
    scale: NDArray[np.float64]


def _joined_grids(spaces: list[NumberSpace]) -> Grids:
    return Grids(
        np.cumsum([0, *(len(space.grid) for space in spaces)], dtype=np.int64),
        np.concatenate([_NO_GRID, *(space.grid for space in spaces)]),
        np.array([space.lowest for space in spaces], dtype=np.float64),
        np.array([space.scale for space in spaces], dtype=np.float64),
    )


def event_value(given: Any, name: str) -> Value | None:
    """A value as the algebra knows it, None of pandas' missing ones, or an error that names the attribute."""
    try:
        return normalise(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise EventError(f"attribute {name!r}: {error}") from None


class _Pairs:
    """Constants as (number, remainder) pairs, for bisect."""

    def __init__(self, spaces: CodeSpaces, space: NumberSpace) -> None:
        self._spaces, self._space = spaces, space

    def __len__(self) -> int:
        return self._space.last - self._space.first

    def __getitem__(self, position: int) -> tuple[float, int]:
        at = self._space.first + position
        return (
            float(self._spaces.numbers[at]),
            int(self._spaces.remainders[at]) if len(self._spaces.remainders) else 0,
        )


def _slice(piece: Piece, first: int, last: int) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
    if piece.rows is None:
        return piece.values[first:last], None
    low, high = np.searchsorted(piece.rows, (first, last))
    return piece.values[low:high], piece.rows[low:high]
