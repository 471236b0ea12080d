"""The result of matching a batch: for each event its subscriptions, as integers until ids are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_SHOWN = 10
"""Events that a notebook shows."""
_LARGEST_LIST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Part:
    """Matches of a run of events in one segment: event `first + i` has ordinals[offsets[i]:offsets[i + 1]]."""

    segment: int
    first: int
    offsets: NDArray[np.int64]
    ordinals: NDArray[np.int32]


class Named(Protocol):
    """A segment as results see it: its ids, in Arrow and in Python."""

    @property
    def ids(self) -> pa.Array:
        """By ordinal."""

    @property
    def id_list(self) -> list[str]:
        """The same; a segment makes it once."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Ids:
    """The ids of subscriptions that no segment holds."""

    id_list: list[str]

    @property
    def ids(self) -> pa.Array:
        """By ordinal."""
        return pa.array(self.id_list, pa.large_string())


class Tally:
    """How many events each subscription of an index met, over many batches: counted by ordinal, since there are far
    more matches than subscriptions. The index must stay as it is meanwhile."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[Named, NDArray[np.int64]]] = {}
        self._others: Counter[Any] = Counter()
        self._integers = False

    def add(self, matches: Matches) -> None:
        """Count the matches of a batch, too."""
        self._integers = matches._integers
        for part in matches._parts:
            self._add_part(matches._segments[part.segment], part.ordinals)

    def _add_part(self, segment: Named, ordinals: NDArray[np.int32]) -> None:
        if isinstance(segment, Ids):  # made for one batch
            self._others.update(segment.id_list[ordinal] for ordinal in ordinals.tolist())
            return
        known = self._counts.get(id(segment))
        if known is None:
            known = self._counts[id(segment)] = segment, np.zeros(len(segment.ids), dtype=np.int64)
        known[1][:] += np.bincount(ordinals, minlength=len(known[1]))

    def fired(self) -> Counter[Any]:
        """The count of each subscription that met some event."""
        found = Counter(self._others)
        for segment, counts in self._counts.values():
            some = np.flatnonzero(counts)
            ids: list[str] = segment.ids.take(pa.array(some)).to_pylist()
            found.update(dict(zip(ids, counts[some].tolist(), strict=True)))
        return Counter({int(one): count for one, count in found.items()}) if self._integers else found


class Matches:
    """Which subscriptions each event of a batch meets. `len()` is the number of (event, subscription) pairs.

    Subscriptions of an event come in the order in which they were added. Ids are kept as a dictionary beside integer
    codes, so asking for `pairs()` or `lists()` copies no strings.
    """

    def __init__(
        self, events: int, segments: Sequence[Named], parts: Sequence[Part], *, integers: bool = False
    ) -> None:
        self.events = events
        self._segments = segments
        self._ids = [segment.ids for segment in segments]
        self._parts = parts
        self._integers = integers

    def __len__(self) -> int:
        return sum(len(part.ordinals) for part in self._parts)

    def __repr__(self) -> str:
        return f"<Matches: {len(self):,} of {self.events:,} events>"

    def _repr_html_(self) -> str:
        """For notebooks: the first matches."""
        events = self.counts().nonzero()[0][:_SHOWN].tolist()
        lists = self.to_pylist() if events else []
        rows = "".join(f"<tr><td>{at}</td><td>{escape(', '.join(map(str, lists[at])))}</td></tr>" for at in events)
        head = "<tr><th>event</th><th>subscriptions</th></tr>"
        return f"<div>{escape(repr(self))}<table>{head}{rows}</table></div>"

    @cached_property
    def _joined(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        return _joined(self.events, self._ids, self._parts)

    def counts(self) -> NDArray[np.int64]:
        """How many subscriptions each event meets."""
        counts = np.zeros(self.events, dtype=np.int64)
        for part in self._parts:
            counts[part.first : part.first + len(part.offsets) - 1] += np.diff(part.offsets)
        return counts

    def pairs(self) -> pa.Table:
        """One row a match: event (its row number in the batch) and subscription (its id)."""
        events = np.repeat(np.arange(self.events, dtype=np.int64), self.counts())
        return pa.table({"event": events, "subscription": self._subscriptions()})

    def lists(self) -> pa.Array:
        """One list of ids for each event, empty where nothing matches."""
        values, (offsets, _) = self._subscriptions(), self._joined
        if len(values) <= _LARGEST_LIST:
            return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
        return pa.LargeListArray.from_arrays(pa.array(offsets), values)

    def to_pylist(self) -> list[list[Any]]:
        """As `lists()`, in Python: without Arrow, which makes an object for every value first."""
        result: list[list[Any]] = [[] for _ in range(self.events)]
        for part in sorted(self._parts, key=lambda part: part.segment):
            ids: list[Any] = self._segments[part.segment].id_list
            if self._integers:
                ids = list(map(int, ids))
            found = [ids[ordinal] for ordinal in part.ordinals.tolist()]
            for event, (first, last) in enumerate(pairwise(part.offsets.tolist()), part.first):
                if first != last:
                    result[event] += found[first:last]
        return result

    def by_segment(self) -> list[tuple[Named, NDArray[np.int64], NDArray[np.int32]]]:
        """The pairs as they were found: a segment, events in their order, and of each pair the segment's ordinal. For
        whoever knows subscriptions by these; segments come in the order in which subscriptions were added."""
        return [
            (
                self._segments[part.segment],
                np.repeat(np.arange(part.first, part.first + len(part.offsets) - 1), np.diff(part.offsets)),
                part.ordinals,
            )
            for part in sorted(self._parts, key=lambda part: (part.segment, part.first))
        ]

    def _subscriptions(self) -> pa.DictionaryArray:
        if len(self._ids) == 1:
            dictionary = self._ids[0]
        else:
            dictionary = pa.concat_arrays(
                [pa.array([], pa.large_string()), *(ids.cast(pa.large_string()) for ids in self._ids)]
            )
        if self._integers:
            dictionary = dictionary.cast(pa.int64())
        return pa.DictionaryArray.from_arrays(pa.array(self._joined[1]), dictionary)

    def fired(self) -> dict[Any, int]:
        """How many events each subscription that is met by some was met by, most first."""
        found = self._subscriptions()
        counts = np.bincount(found.indices.to_numpy(zero_copy_only=False), minlength=len(found.dictionary))
        ids = found.dictionary.to_pylist()
        return {ids[place]: int(counts[place]) for place in np.argsort(-counts, kind="stable") if counts[place]}

    def to_pandas(self) -> Any:
        """`pairs()` as a DataFrame of pandas."""
        return self.pairs().to_pandas()

    def to_polars(self) -> Any:
        """`pairs()` as a DataFrame of polars."""
        import polars

        return polars.from_arrow(self.pairs())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """`pairs()` for whatever reads Arrow's C stream: polars, DuckDB, pandas."""
        return self.pairs().__arrow_c_stream__(requested_schema)


def _joined(events: int, ids: Sequence[pa.Array], parts: Sequence[Part]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Parts as one array in the events' order; ordinals are shifted by the sizes of the segments before theirs."""
    shifts = np.concatenate(([0], np.cumsum([len(array) for array in ids]))).astype(np.int64)
    if len(ids) <= 1:
        ordered = sorted(parts, key=lambda part: part.first)
        offsets = np.zeros(events + 1, dtype=np.int64)
        total = 0
        for part in ordered:
            offsets[part.first + 1 : part.first + len(part.offsets)] = part.offsets[1:] + total
            total += len(part.ordinals)
        if len(ordered) == 1:
            return offsets, ordered[0].ordinals
        ordinals = np.concatenate([part.ordinals for part in ordered]) if ordered else np.empty(0, np.int32)
        return offsets, ordinals
    counts = np.zeros(events, dtype=np.int64)
    for part in parts:
        counts[part.first : part.first + len(part.offsets) - 1] += np.diff(part.offsets)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    place = offsets[:-1].copy()
    ordinals = np.empty(int(offsets[-1]), dtype=np.int32)
    for part in sorted(parts, key=lambda part: part.segment):
        widths = np.diff(part.offsets)
        run = slice(part.first, part.first + len(widths))
        targets = np.repeat(place[run] - part.offsets[:-1], widths) + np.arange(len(part.ordinals))
        ordinals[targets] = part.ordinals + np.int32(shifts[part.segment])
        place[run] += widths
    return offsets, ordinals
