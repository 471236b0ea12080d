"""What sampled events tell about how likely values are: it chooses accesses, pivots and the order of tests.

Without statistics, a segment guesses from its own constants. With them, each attribute's codes are weighed by how
many sampled events have them, missing included; a code that no sampled event has keeps a small weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.events import Batch, columns
from covey.filters import Predicate
from covey.kernels import on_demand
from covey.matching.coding import CodeSpaces
from covey.matching.encoding import Encoder

if TYPE_CHECKING:
    from covey.kernels.planning import Weights

_planning = on_demand("planning")

_SAMPLE = 20_000
_UNSEEN = 0.1
"""Weight, in events, shared by the codes of an attribute that no sampled event has."""


class Statistics:
    """A sample of events, kept to weigh the codes of whatever segment is built.

    `events` is an Arrow table or record batch, or a list of mappings, like those that will be matched.
    `sample` is how many of them are kept at most, drawn at random; `seed` makes another draw.
    """

    def __init__(self, events: Batch, *, sample: int = _SAMPLE, seed: int = 0) -> None:
        count = events.num_rows if isinstance(events, (pa.Table, pa.RecordBatch)) else len(events)
        if count > sample:
            chosen = np.sort(np.random.default_rng(seed).choice(count, size=sample, replace=False))
            events = _taken(events, chosen)
            count = sample
        self._events, self.count = events, count

    def weights(self, names: list[str], spaces: CodeSpaces, patterns: list[Predicate]) -> Weights:
        """How likely each code is among the sampled events."""
        encoder = Encoder(names, spaces, patterns, {})
        batch = columns(self._events, names)
        codes = encoder.encode(batch, encoder.prepare(batch), 0, self.count)
        offsets = np.concatenate(([0], np.cumsum(spaces.size.astype(np.int64) + 1)))
        density = np.zeros(int(offsets[-1]))
        for attribute in range(len(names)):
            size = int(spaces.size[attribute])
            seen = np.bincount(codes[attribute, : self.count], minlength=size).astype(np.float64)
            first = int(offsets[attribute]) + 1
            density[first : first + size] = seen + _UNSEEN / size
        running = np.cumsum(density)
        starts = np.repeat(running[offsets[:-1]], np.diff(offsets)) if len(names) else running
        found: Weights = _planning.Weights(running - starts, offsets)
        return found


def _taken(events: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(events, (pa.Table, pa.RecordBatch)):
        return events.take(pa.array(rows))
    assert isinstance(events, Sequence)
    return [events[row] for row in rows]
