"""One event of a segment with patterns: its codes as any event's, and the texts that patterns are asked of."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from covey.filters.values import Value
from covey.kernels import on_demand
from covey.matching.pattern_values import PatternValues, no_knowledge

_segments = on_demand("segments")

_FIRST_ROOM = 1024


class EncodedTextEvent:
    """Buffers for one event, reused by a thread, as `encoding.EncodedEvent` is. Writing to `array` is faster than to
    NumPy."""

    def __init__(self, attributes: int, patterns: PatternValues, missing: NDArray[np.int32]) -> None:
        rows = attributes + patterns.slots
        self.codes = array("i", bytes(4 * rows))
        self.kinds = array("b", bytes(attributes))
        self.numbers = array("d", bytes(8 * attributes))
        self._blank, self._none = array("i", missing.tobytes()), array("b", bytes(attributes))
        self._no_values = array("i", range(0, 2 * patterns.slots, 2))
        self.pattern_truth = np.zeros(1, dtype=np.uint8)
        self.out = np.empty(_FIRST_ROOM, dtype=np.int32)
        self.texts = texts = patterns.fresh_event()
        self.values: dict[int, Value] = {}
        """Texts and lists that patterns are asked of, by slot."""
        self._has_verified = False
        self.addresses: NDArray[np.int64] = _segments.addresses(
            _segments.TextEvent(
                np.frombuffer(self.codes, np.int32).reshape(rows, 1), np.frombuffer(self.kinds, np.int8),
                np.frombuffer(self.numbers, np.float64), texts.start, self.pattern_truth, self.out, texts.known,
                texts.requests, np.frombuffer(texts.is_text, np.uint8), np.frombuffer(texts.slot, np.int32),
                np.frombuffer(texts.text_start, np.int64), np.frombuffer(texts.data, np.uint8),
                np.frombuffer(texts.lowered, np.int32), np.frombuffer(texts.lowered_start, np.int64),
                np.frombuffer(texts.lowered_data, np.uint8), texts.seen, texts.stamp,
            )
        )  # fmt: skip
        texts.addresses = self.addresses

    def begin(self) -> None:
        """Forget the event before."""
        attributes = len(self._blank)
        self.codes[:attributes] = self._blank
        self.codes[attributes:] = self._no_values
        self.kinds[:] = self._none
        if self._has_verified:
            self.know(no_knowledge())
            self._has_verified = False

    def take_truth(self, truth: NDArray[np.uint8]) -> None:
        """Which dense patterns hold of this event."""
        self.pattern_truth = truth
        _segments.relocate(self.addresses, _segments.PATTERN_TRUTH, truth)

    def know(self, known: NDArray[np.int64]) -> None:
        """What was verified of this event."""
        self.texts.known, self._has_verified = known, True
        _segments.relocate(self.addresses, _segments.KNOWN, known)

    def make_room(self, count: int) -> None:
        """Room for so many matches."""
        self.out = np.empty(count, dtype=np.int32)
        _segments.relocate(self.addresses, _segments.OUT, self.out)
