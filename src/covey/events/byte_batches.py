"""Events as bytes: columns are read from them by a kernel, without a Python object for an event.

The answers are those of reading each event by Python and looking attributes up as `attribute_value` does: what a kernel
leaves (see `kernels/json_lines.py`) is read in just that way, an event or a value at a time.

Cost: a nanosecond or two for each byte of the lines, and for each distinct string of an attribute what Arrow takes to
find it. A line that is left costs some microseconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.errors import EventError
from covey.events.json_lines import BadLine, shown
from covey.events.limits import DEFAULT_EVENT_LIMITS, EventLimits
from covey.events.pieces import Piece, PieceType, Rows, fall_back, pieces_of_values
from covey.filters.event_texts import text_of
from covey.filters.semantics import attribute_value, is_present
from covey.filters.terms import EVENT_TEXT
from covey.kernels import on_demand

_kernels = on_demand("json_lines")

MOST_TREES: Final = 64
"""Sets of names whose trees are kept."""
_SHARE: Final = 4_096
"""Lines that a thread takes at a time."""

Share: TypeAlias = "tuple[int, int]"
Spread: TypeAlias = "Callable[[Callable[[Share], None], Sequence[Share]], object]"
"""Calls a function with each of some shares, maybe on threads."""


@dataclass(frozen=True, slots=True)
class NameTree:
    """Names as the kernel looks them up, and their numbers."""

    names: tuple[str, ...]
    arrays: Any
    nodes: int


@lru_cache(maxsize=MOST_TREES)
def name_tree(names: tuple[str, ...]) -> NameTree:
    """The tree of some attributes' names."""
    children: dict[tuple[int, bytes], int] = {}
    parents, keys, attributes = [0], [b""], [-1]

    def node(parent: int, key: str) -> int:
        found = children.setdefault((parent, key.encode()), len(parents))
        if found == len(parents):
            parents.append(parent)
            keys.append(key.encode())
            attributes.append(-1)
        return found

    for number, name in enumerate(names):
        attributes[node(0, name)] = number
        if "." in name:
            at = 0
            for part in name.split("."):
                at = node(at, part)
            attributes[at] = number
    size = 4
    while size < 2 * len(parents):
        size *= 2
    table = np.zeros(size, np.int32)
    inner = np.zeros(len(parents), np.uint8)
    for (parent, key), number in children.items():
        inner[parent] = 1
        at = int(_kernels.hash_key(parent, np.frombuffer(key, np.uint8), size - 1))
        while table[at]:
            at = (at + 1) & (size - 1)
        table[at] = number
    arrays = _kernels.Names(
        table, np.array(parents, np.int32), np.array(attributes, np.int32), inner,
        np.cumsum([0, *map(len, keys)], dtype=np.int64), np.frombuffer(b"".join(keys) or b"\0", np.uint8),
    )  # fmt: skip
    for array in arrays:
        array.setflags(write=False)  # as they are declared
    return NameTree(names, arrays, len(parents))


def one_by_one(read: Callable[[Share], None], shares: Sequence[Share]) -> None:
    """On this thread."""
    for share in shares:
        read(share)


@dataclass(frozen=True, slots=True)
class _Scanned:
    """What the lines hold of some attributes, and which of them are events."""

    names: tuple[str, ...]
    found: Any
    left: dict[int, dict[str, Any]]
    lines: NDArray[np.int64]


class ByteBatch(ABC):
    """Events in one buffer, a line each, in one format or another; blank lines are skipped.

    A line that isn't an event raises an EventError with its number when the lines are read, or is added to `bad` where
    that is given. `first_line` is the number of the first one, for a buffer that is a part of a file. `bounds` say
    where each begins and ends, if not at line ends.
    """

    @abstractmethod
    def _read(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64], share: Share, tree: NameTree, found: Any
    ) -> None:
        """Have the kernel read a share of the lines."""

    @abstractmethod
    def _parse(self, text: bytes, *, first: bool) -> dict[str, Any] | None:
        """One event as Python reads it, None where there is none; an EventError says what is wrong. The first line of
        a buffer may begin as others may not."""

    @abstractmethod
    def _value(self, text: bytes) -> Any:
        """One value that the kernel left, as Python reads it."""

    def __init__(
        self,
        buffer: bytes | bytearray | memoryview | pa.Buffer,
        *,
        bad: list[BadLine] | None = None,
        limits: EventLimits = DEFAULT_EVENT_LIMITS,
        spread: Spread = one_by_one,
        first_line: int = 1,
        bounds: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    ) -> None:
        self._view = memoryview(buffer).cast("B")
        self._data = np.frombuffer(self._view if len(self._view) else b"\n", np.uint8)
        self._bad = bad
        self._limits = limits
        self._spread = spread
        self._first = first_line
        self._apart = bounds is not None
        self._starts, self._ends = self._line_bounds() if bounds is None else bounds
        self._scanned: _Scanned | None = None
        self._left: dict[int, dict[str, Any] | None] = {}
        """Lines that Python has read: their events, or None for those that are none."""

    @property
    def line_count(self) -> int:
        """How many lines there are, events or not."""
        return len(self._starts)

    @property
    def spans(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """The bytes, and where each line begins and ends."""
        return self._data, self._starts, self._ends

    def events(self) -> dict[int, dict[str, Any]]:
        """All events by the numbers of their lines, each read by Python: for a handful, which needs no kernel."""
        texts = (bytes(self._view[start:end]) for start, end in zip(self._starts, self._ends, strict=True))
        found = {self._first + line: self._event(line, text) for line, text in enumerate(texts)}
        return {number: event for number, event in found.items() if event is not None}

    def scan(self, names: Iterable[str]) -> NDArray[np.int64]:
        """Read the lines through, noting where the named attributes stand; gives the numbers of those that are events.
        `pieces` of the same names then costs no more reading."""
        return self._scan(tuple(names)).lines + self._first

    def part(self, first: int, last: int) -> Self:
        """The events from `first` to before `last`, after `scan`; lines that are none aren't told of again."""
        assert self._scanned is not None
        lines = self._scanned.lines[first:last]
        return type(self)(
            self._view, bad=[], limits=self._limits, spread=self._spread,
            first_line=self._first + (int(lines[0]) if len(lines) else 0),
            bounds=(self._starts[lines], self._ends[lines]),
        )  # fmt: skip

    def pieces(self, names: Iterable[str]) -> tuple[int, dict[str, tuple[Piece, ...]]]:
        """How many events there are, and the named attributes of all of them."""
        scanned = self._scan(tuple(names))
        length = len(scanned.lines)
        kept: Rows | None = None if length == self.line_count else scanned.lines
        return length, {
            name: self._column(name, number, scanned.found, kept, length, scanned.left)
            for number, name in enumerate(scanned.names)
        }

    def _scan(self, names: tuple[str, ...]) -> _Scanned:
        if self._scanned is not None and self._scanned.names == names:
            return self._scanned
        tree, starts, ends = name_tree(names), self._starts, self._ends
        found = _kernels.Found(
            np.empty(len(starts), np.uint8),
            np.zeros((len(names), len(starts)), np.uint8),
            np.empty((len(names), len(starts)), np.int64),
            np.zeros((len(names), len(starts)), np.int32),
        )

        def read(share: Share) -> None:
            self._read(starts, ends, share, tree, found)

        self._spread(read, [(at, min(at + _SHARE, len(starts))) for at in range(0, len(starts), _SHARE)])
        found.lines[ends - starts > self._limits.line_length] = _kernels.LEFT
        left = self._read_left(np.flatnonzero(found.lines == _kernels.LEFT), found)
        self._scanned = _Scanned(names, found, left, np.flatnonzero(found.lines == _kernels.EVENT))
        return self._scanned

    def whole_events(self) -> Iterator[dict[str, Any]]:
        """All events, read by Python; after `pieces`."""
        assert self._scanned is not None
        for line in self._scanned.lines.tolist():
            event = self._parse(bytes(self._view[int(self._starts[line]) : int(self._ends[line])]), first=True)
            assert event is not None, "what is no event was left out"
            yield event

    def event_texts(self) -> tuple[Piece, ...]:
        """All that each event says, as one text; after `pieces`."""
        return pieces_of_values([text_of(event) for event in self.whole_events()], EVENT_TEXT)

    def present(self, name: str, defined: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which events have an attribute, be it null, given those that define it; after `pieces`. Lines that may have
        it are read by Python."""
        assert self._scanned is not None
        there = defined.copy()
        for row in np.flatnonzero(~defined).tolist():
            at = self._scanned.lines[row]
            line = bytes(self._view[int(self._starts[at]) : int(self._ends[at])])
            if self._may_have(line, name):
                event = self._parse(line, first=True)
                there[row] = event is not None and is_present(event, name)
        return there

    def _may_have(self, line: bytes, name: str) -> bool:
        """Whether a line may name an attribute, as a quick look tells."""
        return name.rpartition(".")[2].encode() in line

    def _line_bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        breaks = np.flatnonzero(self._data == ord("\n")).astype(np.int64)
        ends = breaks if len(breaks) and breaks[-1] == len(self._data) - 1 else np.append(breaks, len(self._data))
        starts = np.empty_like(ends)
        if len(ends):
            starts[0] = 0
            starts[1:] = ends[:-1] + 1
        return starts, ends

    def _read_left(self, lines: Rows, found: Any) -> dict[int, dict[str, Any]]:
        """The events of lines that the kernel left, by line; whether each is one is noted in `found.lines`."""
        left: dict[int, dict[str, Any]] = {}
        for line in lines.tolist():
            if line not in self._left:
                self._left[line] = self._event(line, bytes(self._view[int(self._starts[line]) : int(self._ends[line])]))
            event = self._left[line]
            found.lines[line] = _kernels.BLANK if event is None else _kernels.EVENT
            found.kinds[:, line] = _kernels.MISSING
            if event is not None:
                left[line] = event
        return left

    def _event(self, line: int, text: bytes) -> dict[str, Any] | None:
        number = self._first + line
        try:
            if len(text.rstrip(b"\r")) > self._limits.line_length:
                raise EventError(f"longer than {self._limits.line_length:,} characters; raise EventLimits.line_length")
            return self._parse(text, first=self._apart or number == 1)
        except EventError as error:
            message = f"line {number}: {error}"
            if self._bad is None:
                raise EventError(message) from None
            self._bad.append(BadLine(number, message, shown(text)))
            return None

    def _column(
        self, name: str, number: int, found: Any, kept: Rows | None, length: int, left: dict[int, dict[str, Any]]
    ) -> tuple[Piece, ...]:
        kinds, bits, lengths = found.kinds[number], found.bits[number], found.lengths[number]
        if kept is not None:
            kinds, bits, lengths = kinds[kept], bits[kept], lengths[kept]
        present = np.flatnonzero(np.bincount(kinds, minlength=8)) if length else np.empty(0, np.int64)
        pieces = []
        for kind in present.tolist():
            rows = None if len(present) == 1 else np.flatnonzero(kinds == kind).astype(np.int64)
            values = bits if rows is None else bits[rows]
            if kind in _PLAIN:
                pieces.append(_PLAIN[kind](rows, values))
            elif kind == _kernels.STRING:
                pieces.append(self._strings(rows, values, lengths if rows is None else lengths[rows]))
        others = self._others(name, kinds, bits, lengths, kept, left) if left or _SLICE in present else None
        if others is None:
            return tuple(pieces)
        return fall_back(tuple(pieces), pieces_of_values(others, name), length)

    def _strings(self, rows: Rows | None, starts: NDArray[np.int64], lengths: NDArray[np.int32]) -> Piece:
        offsets = np.empty(len(starts) + 1, np.int64)
        data = np.empty(int(np.abs(lengths).sum(dtype=np.int64)), np.uint8)  # escapes are longer than what they say
        _kernels.gather(self._data, starts, lengths, data, offsets)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        encoded = pa.Array.from_buffers(pa.large_string(), len(starts), buffers).dictionary_encode()
        return Piece("string", rows, encoded.indices.to_numpy(), encoded.dictionary)

    def _others(
        self, name: str, kinds: NDArray[np.uint8], bits: NDArray[np.int64], lengths: NDArray[np.int32],
        kept: Rows | None, left: dict[int, dict[str, Any]],
    ) -> list[Any]:  # fmt: skip
        """The values that Python reads; None in all other rows."""
        values: list[Any] = [None] * len(kinds)
        for row in np.flatnonzero(kinds == _kernels.SLICE).tolist():
            start = int(bits[row])
            values[row] = self._value(bytes(self._view[start : start + int(lengths[row])]))
        for line, event in left.items():
            row = line if kept is None else int(np.searchsorted(kept, line))
            try:
                values[row] = attribute_value(event, name)
            except (TypeError, ValueError, OverflowError) as error:
                raise EventError(f"line {self._first + line}: attribute {name!r}: {error}") from None
        return values


def _plain(kind: PieceType, change: Callable[[NDArray[np.int64]], NDArray[Any]]) -> Callable[..., Piece]:
    return lambda rows, values: Piece(kind, rows, change(values))


_INTEGER, _DOUBLE, _BOOLEAN, _SLICE = 2, 3, 5, 7
"""As the kernel numbers them; it is imported when it is first used."""
_PLAIN: Final = {
    _INTEGER: _plain("int", lambda values: values),
    _DOUBLE: _plain("double", lambda values: values.view(np.float64)),
    _BOOLEAN: _plain("boolean", lambda values: values.astype(np.uint8)),
}
