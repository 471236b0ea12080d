"""Events to codes: the first of matching's two steps, done once for each attribute and distinct value.

An `Encoder` belongs to a segment (code spaces do); it is made when a segment is first matched, and is read-only after.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
from covey.matching.pattern_values import PatternBatch, PatternValues
from covey.matching.text_events import EncodedTextEvent
from covey.matching.text_index import TextIndex

_kernels = on_demand("encoding")
_segments = on_demand("segments")

PADDING = 64
"""Codes that kernels may read past the last event."""
_GRID_FROM = 64
_FIRST_ROOM = 1024
"""Matches of one event that there is room for at first."""
_EXACT = 2**53
_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)
_NO_GRID: NDArray[np.int32] = np.empty(0, dtype=np.int32)
_NO_STARTS: NDArray[np.int64] = np.empty(0, dtype=np.int64)
_NO_TRUTH: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
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


class EncodedEvent:
    """Buffers for one event, reused by a thread. Where kinds[a] is 0, codes[a] holds the code; else it is to be found
    by searching numbers[a] among the constants of kind kinds[a] - 1. The kernel puts them back to what an event without
    attributes has. Writing to `array` is faster than to NumPy, and so is reading."""

    def __init__(self, missing: NDArray[np.int32]) -> None:
        attributes = rows = len(missing)
        self.codes = array("i", missing.tobytes())
        self.kinds = array("b", bytes(attributes))
        self.numbers = array("d", bytes(8 * attributes))
        self.code_view = (
            np.frombuffer(self.codes, dtype=np.int32).reshape(rows, 1) if rows else np.zeros((0, 1), np.int32)
        )
        self.kind_view = np.frombuffer(self.kinds, dtype=np.int8) if attributes else np.zeros(0, np.int8)
        self.number_view = np.frombuffer(self.numbers, dtype=np.float64) if attributes else np.zeros(0)
        self.missing = missing
        self.out = array("i", bytes(4 * _FIRST_ROOM))
        self.deleted: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)
        self._addresses: NDArray[np.int64] = _segments.addresses(
            _segments.Event(
                self.code_view, self.kind_view, self.number_view, _NO_STARTS, _NO_TRUTH,
                np.frombuffer(self.out, dtype=np.int32), missing, self.deleted,
            )
        )  # fmt: skip
        self.address: int = self._addresses.ctypes.data
        """Where kernels find all that."""

    def take_deleted(self, deleted: NDArray[np.uint8]) -> None:
        """Which subscriptions are gone."""
        self.deleted = deleted
        _segments.relocate(self._addresses, _segments.DELETED, deleted)

    def make_room(self, count: int) -> None:
        """Room for so many matches."""
        self.out = array("i", bytes(4 * count))
        _segments.relocate(self._addresses, _segments.OUT, np.frombuffer(self.out, dtype=np.int32))


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
        self._number_of_name = {name: number for number, name in enumerate(names)}
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
        self._slot_of_name = {names[a]: slot for slot, a in enumerate(texts.attribute.tolist())}
        self._default_values: dict[int, Value] = {
            slot: self._defaults[a]
            for slot, a in enumerate(texts.attribute.tolist())
            if isinstance(self._defaults.get(a), str)
        }

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
            self._encode_values(event, one)
        except BaseException:
            self._local.event = None  # it holds half an event
            raise
        return one

    def _encode_values(self, event: Mapping[str, Any], one: EncodedEvent | EncodedTextEvent) -> None:
        codes, kinds, numbers = one.codes, one.kinds, one.numbers
        find, words = self._number_of_name.get, self._words
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

    def encode_text_event(self, event: Mapping[str, Any]) -> EncodedTextEvent:
        """The same for a segment with patterns."""
        one: EncodedTextEvent | None = getattr(self._local, "text_event", None)
        if one is None:
            one = self._local.text_event = EncodedTextEvent(len(self.names), self.patterns, self.missing)
        one.begin()
        self._encode_values(event, one)
        self._encode_patterns(event, one)
        return one

    def _named(self, event: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Of an event with many attributes those that there are names for."""
        get = event.get
        return [(name, get(name)) for name in self.names]

    def buffers(self) -> EncodedEvent:
        """This thread's room for one event."""
        one: EncodedEvent | None = getattr(self._local, "event", None)
        if one is None:
            one = EncodedEvent(self.missing)
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

    def _encode_patterns(self, event: Mapping[str, Any], one: EncodedTextEvent) -> None:
        first = len(self.names)
        values = one.values = dict(self._default_values)
        find = self._slot_of_name.get
        for name, value in event.items() if len(event) <= self._most_named else self._named(event):
            slot = find(name)
            if slot is None or value is None:
                continue
            if type(value) is not str and not isinstance(value, str):
                plain = isinstance(value, (bool, int, float, Mapping))
                value = value if plain else event_value(value, name)
                if value is None:
                    continue
                values.pop(slot, None)
                if not isinstance(value, tuple):
                    continue
            values[slot] = value
        for slot in values:
            one.codes[first + slot] = 2 * slot + 1
        truth = self.patterns.encode_event(values, one.texts)
        if truth is not None:
            one.take_truth(truth)

    def prepare(self, columns: Columns) -> Encoded:
        """What is shared by all chunks of a batch: codes of distinct strings, and what patterns are asked of."""
        text_codes: dict[tuple[int, int], NDArray[np.int32]] = {}
        for attribute, name in enumerate(self.names):
            for place, piece in enumerate(columns.pieces.get(name, ())):
                if piece.type == "string":
                    assert piece.dictionary is not None
                    text_codes[attribute, place] = self._word_codes(attribute, piece.dictionary)
        return Encoded(text_codes, self.patterns.prepare(columns), BatchFormulas(self, self._spaces, columns))

    def _word_codes(self, attribute: int, dictionary: pa.Array) -> NDArray[np.int32]:
        space = self._numbers[attribute][STRING]
        if space.first == space.last:
            return np.full(len(dictionary), space.base, dtype=np.int32)
        words: list[str] = dictionary.to_pylist()
        if self._spaces.ordered_texts[attribute]:
            return np.array([self.text_code(attribute, word) for word in words], dtype=np.int32)
        find, gap = self._text_table(attribute).get, self._numbers[attribute][STRING].base
        return np.array([find(word, gap) for word in words], dtype=np.int32)

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
