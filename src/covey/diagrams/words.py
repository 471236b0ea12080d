"""Rows of truths as rows of 64-bit words, one bit an event."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

WORD: Final = 64


def pack(truths: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of `truths`, a column an event, as rows of 64-bit words, the first event in the lowest bit."""
    rows, events = truths.shape
    padded = np.zeros((rows, max(1, -(-events // WORD)) * WORD), dtype=np.bool_)
    padded[:, :events] = truths
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: NDArray[np.uint64], events: int) -> NDArray[np.bool_]:
    """The inverse of `pack`: rows of truths out of `words`, for that many `events`."""
    octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=events, bitorder="little").astype(np.bool_)
