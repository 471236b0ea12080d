"""One event in arrays, for the kernel that matches single events (`kernels.single`).

A thread keeps these arrays for all its events. The kernel puts them back to what an event without attributes has, so
Python writes only what an event brings. Writing to `array` is faster than to NumPy, and so is reading.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.filters.cases import lower
from covey.filters.values import Element
from covey.kernels import on_demand
from covey.matching.text_index import TextIndex

_segments = on_demand("segments")

_FIRST_ROOM = 1024
"""Matches that there is room for at first."""
_FIRST_BYTES = 4096
_REQUESTS = 256
"""What one look at an event may ask to be verified; it is looked at again for the rest."""
_NOTHING_KNOWN: NDArray[np.int64] = np.full(16, -1, dtype=np.int64)
_NOTHING_KNOWN.setflags(write=False)


class EncodedEvent:
    """Where kinds[a] is 0, codes[a] holds the code; else it is to be found by searching numbers[a] among the constants
    of kind kinds[a] - 1. Behind the attributes' codes are those of slots, the attributes that patterns test."""

    def __init__(self, missing: NDArray[np.int32], texts: TextIndex) -> None:
        attributes, slots = len(missing), texts.slots
        self._attributes = attributes
        blank = np.concatenate((missing, np.arange(0, 2 * slots, 2, dtype=np.int32)))
        self._blank = blank.tobytes()
        self.codes = array("i", self._blank)
        self.kinds = array("b", bytes(attributes))
        self.numbers = array("d", bytes(8 * attributes))
        self.out = array("i", bytes(4 * _FIRST_ROOM))
        self.deleted: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)
        self.pattern_start = np.zeros(len(texts.mode) if slots else 0, dtype=np.int64)
        self.pattern_truth = np.zeros(1, dtype=np.uint8)
        self.known = _NOTHING_KNOWN
        self._requests = np.zeros(_REQUESTS if slots else 0, dtype=np.int64)
        self._counts = np.zeros(2, dtype=np.int64)
        self._is_text = bytearray(2 * slots)
        self._first, self._last, self._lowered, self._lowered_last = (array("q", bytes(8 * slots)) for _ in range(4))
        self._data = memoryview(bytearray(_FIRST_BYTES))
        self._used = 0
        self.values: dict[int, str | tuple[Element, ...]] = {}
        """Texts and lists by slot, of segments with patterns that are evaluated beforehand."""
        # Of the arrays below only what events find is ever touched.
        hits = np.empty(texts.literals if slots else 0, dtype=np.int32)
        seen = np.zeros(len(texts.hit_literal), dtype=np.int32)
        self._arrays = _segments.Event(
            _ints(self.codes).reshape(len(blank), 1), _view(self.kinds, np.int8), _view(self.numbers, np.float64),
            self.pattern_start, self.pattern_truth, _ints(self.out), blank, self.deleted, self.known, self._requests,
            self._counts, _view(self._is_text, np.uint8), _longs(self._first), _longs(self._last),
            _longs(self._lowered), _longs(self._lowered_last), np.frombuffer(self._data, np.uint8), seen,
            np.zeros(2 * slots + 1, dtype=np.int64), hits,
            texts.automaton if slots else np.zeros(0, dtype=np.int64),
        )  # fmt: skip
        self._addresses: NDArray[np.int64] = _segments.addresses(self._arrays)
        self.address: int = self._addresses.ctypes.data
        """Where kernels find all that."""

    def clear(self) -> None:
        """What was written of an event is undone."""
        self.codes[:] = array("i", self._blank)
        self.kinds[:] = array("b", bytes(self._attributes))
        self._is_text[:] = bytes(len(self._is_text))

    def take_deleted(self, deleted: NDArray[np.uint8]) -> None:
        """Which subscriptions are gone."""
        self.deleted = deleted
        _segments.relocate(self._addresses, _segments.DELETED, deleted)

    def make_room(self, count: int) -> None:
        """Room for so many matches."""
        self.out = array("i", bytes(4 * count))
        _segments.relocate(self._addresses, _segments.OUT, _ints(self.out))

    # Texts

    def add_text(self, slot: int, text: str, ignores_case: bool) -> None:
        """The text of a slot."""
        begin = self._used
        self._first[slot], self._last[slot] = begin, self._write(text)
        self._lowered[slot] = -1
        if ignores_case and not text.isascii():  # which is quick to tell, if more than is needed
            self._lowered[slot], self._lowered_last[slot] = self._used, self._write(lower(text))
        self._is_text[2 * slot + 1] = 1
        self.codes[self._attributes + slot] = 2 * slot + 1

    def add_list(self, slot: int) -> None:
        """The value of a slot is a list."""
        self.codes[self._attributes + slot] = 2 * slot + 1

    def _write(self, text: str) -> int:
        data = text.encode(errors="surrogatepass")
        begin, end = self._used, self._used + len(data)
        if end > len(self._data):
            self.make_text_room(2 * end)
        self._data[begin:end] = data
        self._used = end
        return end

    def no_texts(self) -> None:
        """The next text is the first of an event."""
        self._used = 0

    @property
    def text_room(self) -> int:
        """Bytes of texts that there is room for."""
        return len(self._data)

    def make_text_room(self, size: int) -> None:
        """Room for so many bytes of texts; those that are there stay."""
        larger = memoryview(bytearray(size))
        larger[: len(self._data)] = self._data
        self._data = larger
        _segments.relocate(self._addresses, _segments.TEXT_DATA, np.frombuffer(larger, np.uint8))

    # Patterns

    def take_truth(self, truth: NDArray[np.uint8]) -> None:
        """Which of the patterns that are evaluated beforehand hold of this event."""
        self.pattern_truth = truth
        _segments.relocate(self._addresses, _segments.PATTERN_TRUTH, truth)

    def requested(self) -> list[tuple[int, int, str]]:
        """What must be verified: a key, the pattern and the text."""
        keys = set(self._requests[: int(self._counts[_segments.REQUESTS])].tolist())
        return [(key, key >> 32, self._text((key & 0xFFFFFFFF) >> 1)) for key in keys]

    def _text(self, slot: int) -> str:
        return str(self._data[self._first[slot] : self._last[slot]], "utf-8", "surrogatepass")

    def know(self, known: NDArray[np.int64]) -> None:
        """What was verified of this event."""
        self.known = known
        _segments.relocate(self._addresses, _segments.KNOWN, known)

    def forget(self) -> None:
        """The next event is another."""
        self.know(_NOTHING_KNOWN)


class Call:
    """A kernel that reads an event and gives ids itself, and what it is called with in one thread: where the addresses
    of a segment, an event and a reader lie. What lies there must outlive this, the event aside."""

    __slots__ = ("_parts", "at", "event", "kernel")

    def __init__(self, kernel: Any, event: EncodedEvent, segment: int, reader: int) -> None:
        self.kernel: Callable[..., int] = kernel.load()  # a call of its own costs a kernel as much as 100 ns of work
        self.event = event
        self._parts = np.array([segment, event.address, reader], dtype=np.int64)
        self.at = int(self._parts.ctypes.data)


def _view(given: array[int] | array[float] | bytearray, kind: type) -> NDArray[np.generic]:
    return np.frombuffer(given, dtype=kind) if len(given) else np.zeros(0, dtype=kind)


def _ints(given: array[int]) -> NDArray[np.generic]:
    return _view(given, np.int32)


def _longs(given: array[int]) -> NDArray[np.generic]:
    return _view(given, np.int64)
