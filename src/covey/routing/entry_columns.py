"""What an index's segments have under their ordinals, in columns: which hop, and under which key.

A match is an event's place and an ordinal of a segment. Looking each up by Python touches five objects, which with a
hundred thousand entries are in nobody's cache: that takes longer than matching. Here an ordinal is a row of four
numbers: its hop, where its key begins in `names` and how long it is there, and how often it was matched since that was
last asked. A row is made when it is first asked for, and what a number stands for never changes; all rows are thrown
away when a segment is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias
from weakref import ref

import msgspec
import numpy as np
from numpy.typing import NDArray

from covey.matching.matches import Named
from covey.routing.batches import Wanted
from covey.routing.packed_events import NamedPairs

Target: TypeAlias = tuple[str, str]
"""A hop, and the key of one of its entries."""
Found: TypeAlias = tuple[Named, NDArray[np.int64], NDArray[np.int32]]
"""A segment, places of events, and of each an ordinal that it meets."""

HOP, START, LENGTH, HITS = range(4)
"""The numbers of a row."""
PAIRS_OF_A_HOP: Final = 4
"""Matches that hops must have on average to be told apart by columns: below, doing it one by one is quicker."""

_encode = msgspec.msgpack.Encoder().encode


class _Rows:
    """Of one segment."""

    __slots__ = ("columns", "numbers", "segment")

    def __init__(self, segment: Named) -> None:
        self.segment = ref(segment)
        self.numbers = segment.id_list
        self.columns = np.full((len(self.numbers), 4), -1, np.int64)


class EntryColumns:
    """Of all segments of one index. `places` says which entry a number stands for, as long as it is there."""

    def __init__(self, places: Mapping[str, Target]) -> None:
        self._places = places
        self._rows: dict[int, _Rows] = {}
        self._hops: list[str] = []
        self._hop_numbers: dict[str, int] = {}
        self._names = np.empty(1 << 12, np.uint8)
        self._named = 0
        self._hits: dict[Target, int] = {}

    def wanted(self, found: Sequence[Found]) -> dict[str, WantedColumns] | None:
        """What each hop asks for, of what segments have found; None where hops are too many for columns."""
        if any(rows.segment() is None for rows in self._rows.values()):
            self._start_anew()
        parts = [(self._of(segment, ordinals), ordinals) for segment, _, ordinals in found]
        places = np.concatenate([np.empty(0, np.int64), *(some for _, some, _ in found)])
        columns = np.concatenate([np.empty((0, 4), np.int64), *(rows.columns[some] for rows, some in parts)])
        if not len(places):
            return {}
        hops = columns[:, HOP]
        counts = np.bincount(hops, minlength=len(self._hops))
        present = np.flatnonzero(counts)
        if len(places) < PAIRS_OF_A_HOP * len(present):
            return None
        which = np.repeat(np.arange(len(parts)), [len(some) for _, some in parts])
        ordinals = np.concatenate([some for _, some in parts])
        if len(parts) > 1 or len(present) > 1:
            # Each hop's by themselves, event by event, and of an event as entries came.
            order = np.lexsort((places, hops)) if len(present) > 1 else np.argsort(places, kind="stable")
            places, columns, which, ordinals = places[order], columns[order], which[order], ordinals[order]
        rows = [one for one, _ in parts]
        wanted: dict[str, WantedColumns] = {}
        first = 0
        for hop in present.tolist():
            some = slice(first, first + int(counts[hop]))
            first = some.stop
            wanted[self._hops[hop]] = WantedColumns(
                self, rows, places[some], columns[some], which[some], ordinals[some]
            )
        return wanted

    def take_hits(self) -> dict[Target, int]:
        """How often entries were matched, as far as it was counted here and since this was last asked."""
        for rows in self._rows.values():
            column = rows.columns[:, HITS]
            for ordinal in np.flatnonzero(column > 0).tolist():
                target = self._places.get(rows.numbers[ordinal])
                if target is not None:
                    self._hits[target] = self._hits.get(target, 0) + int(column[ordinal])
            column[:] = np.minimum(column, 0)
        taken, self._hits = self._hits, {}
        return taken

    @property
    def names(self) -> NDArray[np.uint8]:
        """Keys in MessagePack, one after the other."""
        return self._names[: self._named]

    def target(self, rows: _Rows, ordinal: int) -> Target:
        """The entry under an ordinal."""
        return self._places[rows.numbers[ordinal]]

    def _start_anew(self) -> None:
        self._hits = self.take_hits()
        self._rows = {}
        self._hops, self._hop_numbers = [], {}
        self._named = 0

    def _of(self, segment: Named, ordinals: NDArray[np.int32]) -> _Rows:
        """A segment's rows, with those of some ordinals made."""
        rows = self._rows.get(id(segment))
        if rows is None:
            rows = self._rows[id(segment)] = _Rows(segment)
        fresh = ordinals[rows.columns[ordinals, HOP] < 0]
        if len(fresh):
            made = [self._row(*self._places[rows.numbers[ordinal]]) for ordinal in np.unique(fresh).tolist()]
            rows.columns[np.unique(fresh)] = made
        return rows

    def _row(self, hop: str, key: str) -> tuple[int, int, int, int]:
        number = self._hop_numbers.get(hop)
        if number is None:
            number = self._hop_numbers[hop] = len(self._hops)
            self._hops.append(hop)
        name = _encode(key)
        start, end = self._named, self._named + len(name)
        if end > len(self._names):
            larger = np.empty(2 * end, np.uint8)
            larger[:start] = self._names[:start]
            self._names = larger
        self._names[start:end] = np.frombuffer(name, np.uint8)
        self._named = end
        return number, start, len(name), 0


class WantedColumns(Wanted):
    """What a hop asks for of events in a row, as it was found; lists are made where somebody asks for them."""

    __slots__ = ("_columns", "_entries", "_ordinals", "_rows", "_which", "entries", "pairs")

    def __init__(
        self, entries: EntryColumns, rows: list[_Rows], pairs: NDArray[np.int64], columns: NDArray[np.int64],
        which: NDArray[np.int64], ordinals: NDArray[np.int32],
    ) -> None:  # fmt: skip
        self._entries, self._rows, self._which, self._ordinals = entries, rows, which, ordinals
        self.pairs = pairs
        """The place of each match, ascending."""
        self._columns = columns
        """The entry's row of each."""
        self.entries = 0
        """How many the hop has in the table."""

    @property
    def distinct(self) -> NDArray[np.int64]:
        """The events' places."""
        pairs = self.pairs
        return pairs[np.concatenate(([True], pairs[1:] != pairs[:-1]))]

    @property
    def places(self) -> list[int]:  # type: ignore[override]
        """Of the events, ascending."""
        found: list[int] = self.distinct.tolist()
        return found

    @property
    def keys(self) -> list[list[str]]:  # type: ignore[override]
        """Of each, the hop's entries that match it."""
        found: list[list[str]] = []
        last = -1
        rows, target = self._rows, self._entries.target
        for place, which, ordinal in zip(
            self.pairs.tolist(), self._which.tolist(), self._ordinals.tolist(), strict=True
        ):
            key = target(rows[which], ordinal)[1]
            if place == last:
                found[-1].append(key)
            else:
                found.append([key])
                last = place
        return found

    @property
    def named(self) -> NamedPairs:
        """The entries' keys, in MessagePack."""
        starts, lengths = self._columns[:, START].copy(), self._columns[:, LENGTH].copy()
        return NamedPairs(self.pairs, self._entries.names, starts, lengths)

    def count(self) -> None:
        """All of these went to their hop."""
        for number, rows in enumerate(self._rows):
            some = self._ordinals if len(self._rows) == 1 else self._ordinals[self._which == number]
            np.add.at(rows.columns[:, HITS], some, 1)
