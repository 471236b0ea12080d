"""How likely an event is to match a filter: what merging's imperfect degree and pruning's estimates are made of.

A sample of events answers for any filter at once, exactly on the sample: the filters become an index, the sample a
batch. Dependence between attributes is in the answer without anybody having to model it; what a sample of `n` events
can't tell apart is anything rarer than about `1 / n`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.events import Batch
from covey.filters import Filter, Semantics
from covey.matching import Index

_CHUNK = 4_096
"""Events matched at a time: bounds the matches held at once."""


class Chances(Protocol):
    """Whatever can say how likely filters are to match."""

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        """For each filter the fraction of events that match it, between 0 and 1."""
        ...


class EventSample:
    """Chances counted on a sample of events."""

    def __init__(self, events: Batch) -> None:
        self.events = events
        self.count = events.num_rows if isinstance(events, (pa.Table, pa.RecordBatch)) else len(events)

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        """The fraction of the sample that matches each filter; 0 everywhere for an empty sample."""
        counts = np.zeros(len(filters))
        if not self.count or not filters:
            return counts
        distinct: dict[Filter, int] = {}
        places = np.array([distinct.setdefault(condition, len(distinct)) for condition in filters])
        index = Index(semantics=semantics)
        index.add_many((str(at), one) for at, one in enumerate(distinct))
        found = np.zeros(len(distinct))
        for first in range(0, self.count, _CHUNK):
            ids = index.match_batch(self._part(first)).lists().values
            ordinals = np.array([int(id) for id in ids.dictionary.to_pylist()])
            found[ordinals] += np.bincount(ids.indices.to_numpy(), minlength=len(ordinals))
        fractions: NDArray[np.float64] = found[places] / self.count
        return fractions

    def _part(self, first: int) -> Batch:
        if isinstance(self.events, (pa.Table, pa.RecordBatch)):
            return self.events.slice(first, _CHUNK)
        return self.events[first : first + _CHUNK]
