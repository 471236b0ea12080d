"""What sampled events tell about how likely values are: it chooses accesses, pivots and the order of tests.

Without statistics, a segment guesses from its own constants. With them, each attribute's codes are weighed by how
many sampled events have them, missing included; a code that no sampled event has keeps a small weight. The literals of
tests on text are weighed by how many sampled texts they occur in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.events import Batch, columns
from covey.matching.coding import CodeSpaces
from covey.matching.encoding import Encoder
from covey.matching.tables import Knowledge
from covey.matching.text_index import TextIndex, no_texts

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

    def weights(self, names: list[str], spaces: CodeSpaces) -> Knowledge:
        """How likely each code is among the sampled events."""
        encoder = Encoder(names, spaces, [], no_texts(), {})
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
        return Knowledge(running - starts, offsets)

    def literals(self, names: list[str], index: TextIndex) -> NDArray[np.float64]:
        """How likely each literal is to occur in its attribute's text, among the sampled events."""
        seen = np.full(index.literals, _UNSEEN)
        tested = [names[attribute] for attribute in index.attribute.tolist()]
        pieces = columns(self._events, tested).pieces
        for slot, name in enumerate(tested):
            for piece in pieces.get(name, ()):
                if piece.type == "string":
                    assert piece.dictionary is not None
                    often = np.bincount(piece.values, minlength=len(piece.dictionary))
                    offsets, found = index.find(slot, piece.dictionary)
                    seen += np.bincount(found, np.repeat(often, np.diff(offsets)), minlength=index.literals)
        return np.minimum(1.0, seen / max(1, self.count))


def _taken(events: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(events, (pa.Table, pa.RecordBatch)):
        return events.take(pa.array(rows))
    assert isinstance(events, Sequence)
    return [events[row] for row in rows]
