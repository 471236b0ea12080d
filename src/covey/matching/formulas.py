"""A batch's formulas for one segment: what kernels need to compute terms of events that come to them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covey.events import Piece
from covey.events.term_formulas import MOST_STEPS, Formulas
from covey.kernels import on_demand
from covey.kernels.opcodes import KINDS, NUMBER
from covey.matching.coding import CodeSpaces

if TYPE_CHECKING:
    from covey.matching.encoding import Encoder

_kernels = on_demand("formulas")
_segments = on_demand("segments")


@dataclass(frozen=True, slots=True)
class ChunkFormulas:
    """Formulas for a chunk of a batch, with room for one thread to compute them."""

    arrays: Any
    """They live as long as this, since `addresses` point into them."""
    addresses: NDArray[np.int64]


class BatchFormulas:
    """Those terms of a segment that a batch has as formulas. What has pieces too is taken from these."""

    def __init__(
        self, encoder: Encoder, spaces: CodeSpaces, formulas: Formulas | None, pieces: Mapping[str, tuple[Piece, ...]]
    ) -> None:
        rows = encoder.rows
        self._names = encoder.names
        self._start = np.full(rows, -1, dtype=np.int32)
        self._asked = np.zeros(rows, dtype=np.int64)
        self._lock = threading.Lock()
        steps: list[Sequence[int]] = []
        table: tuple[NDArray[Any], ...] = (
            np.zeros((0, 1), np.int64), np.zeros((0, 1), np.uint8), np.zeros(0, np.int32),
        )  # fmt: skip
        constants: list[int] = []
        if formulas is not None:
            for attribute, name in enumerate(encoder.names):
                if name in formulas.steps and name not in pieces:
                    self._start[attribute] = len(steps)
                    steps += formulas.steps[name]
            table, constants = formulas.table, formulas.constants
        self._any = bool(steps)
        slots = np.arange(rows, dtype=np.int32) * KINDS + NUMBER
        base, missing = np.zeros(rows, np.int32), np.zeros(rows, np.int32)
        base[: len(encoder.names)] = spaces.base[:, NUMBER]
        missing[: len(encoder.names)] = encoder.missing
        self._shared = (
            self._start, missing, np.array(steps, dtype=np.int32).reshape(-1, 2), np.array(constants, dtype=np.int64),
            *table, slots, base, spaces.numbers, spaces.remainders, encoder.firsts, encoder.lasts,
        )  # fmt: skip
        self._none = None if self._any else self._chunk(0)

    def has(self, attribute: int) -> bool:
        """Whether an attribute is a formula here."""
        return self._any and bool(self._start[attribute] >= 0)

    def chunk(self, first: int) -> ChunkFormulas:
        """The formulas for events from `first` on."""
        return self._chunk(first) if self._none is None else self._none

    def _chunk(self, first: int) -> ChunkFormulas:
        arrays = _kernels.Formulas(
            *self._shared, np.array([first], dtype=np.int64), np.empty(MOST_STEPS * _kernels.LANES, dtype=np.int64),
            np.empty(_kernels.LANES, dtype=np.int64), np.zeros(len(self._start), dtype=np.int64),
        )  # fmt: skip
        return ChunkFormulas(arrays, _segments.addresses(arrays))

    def count(self, chunk: ChunkFormulas) -> None:
        """Note how often a chunk's events asked for each."""
        if self._any:
            with self._lock:
                self._asked += chunk.arrays.asked

    def asked_more_than(self, times: int) -> list[str]:
        """The terms that were computed more often than this."""
        return [self._names[row] for row in np.flatnonzero(self._asked > times).tolist()]
