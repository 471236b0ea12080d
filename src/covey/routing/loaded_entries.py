"""Entries that stand for loaded subscriptions where neighbours are concerned (`loads.py`).

A client's loaded subscriptions are matched here one by one. What neighbours hear of them may be fewer and wider entries
of a compacted table: each stands for some of the subscriptions, and goes when the last of those is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from covey.filters.algebra import Filter
from covey.routing.client import Claim, entry_key, row_key
from covey.routing.journal import Turn
from covey.routing.undo import Remembered, RememberedDict

SPACE = "standing"
"""In the journal."""


class LoadedEntryRow(msgspec.Struct, frozen=True, array_like=True):
    """An entry of a load."""

    client: str
    load: str
    id: str
    filter: str


@dataclass(slots=True)
class LoadedEntry(Remembered):
    """An entry and how many subscriptions it stands for."""

    row: LoadedEntryRow
    condition: Filter
    key: str
    """What neighbours know it by."""
    count: int = 0


class LoadedEntries(Remembered):
    """The entries of all loads."""

    def __init__(self, broker: str, turn: Turn) -> None:
        self._broker = broker
        self._turn = turn
        self._loads: dict[tuple[str, str], dict[str, LoadedEntry]] = {}

    def of(self, client: str, load: str) -> Mapping[str, LoadedEntry]:
        """A load's entries by id."""
        return self._loads.get((client, load), {})

    def get(self, client: str, claim: Claim) -> LoadedEntry | None:
        """The entry that stands for a subscription."""
        return self.of(client, claim.load).get(claim.under) if claim.under else None

    def leave(self, client: str, claim: Claim) -> bool:
        """A subscription is gone; whether what neighbours hear of it goes too."""
        entry = self.get(client, claim)
        if entry is None:
            return True
        entry.count -= 1
        if entry.count:
            return False
        self._drop(entry)
        return True

    def replace(self, client: str, load: str, entries: Iterable[tuple[LoadedEntryRow, Filter, int]]) -> None:
        """A load's entries are these now, each with how many subscriptions it stands for."""
        new: dict[str, LoadedEntry] = RememberedDict(
            {row.id: LoadedEntry(row, condition, self._key(row), count) for row, condition, count in entries if count}
        )
        old = self.of(client, load)
        for entry in [gone for id, gone in old.items() if id not in new]:
            self._drop(entry)
        for id, entry in new.items():
            if id not in old or old[id].row != entry.row:
                self._turn.out.put(SPACE, _key(entry.row), entry.row)
        if new:
            self._loads[client, load] = new

    def restore(self, row: LoadedEntryRow, condition: Filter) -> None:
        """Take an entry back from its row; `join` counts what it stands for."""
        entries = self._loads.setdefault((row.client, row.load), RememberedDict())
        entries[row.id] = LoadedEntry(row, condition, self._key(row))

    def join(self, client: str, claim: Claim) -> None:
        """A subscription was restored."""
        entry = self.get(client, claim)
        if entry is not None:
            entry.count += 1

    def _drop(self, entry: LoadedEntry) -> None:
        row = entry.row
        entries = self._loads[row.client, row.load]
        del entries[row.id]
        if not entries:
            del self._loads[row.client, row.load]
        self._turn.out.drop(SPACE, _key(row))

    def _key(self, row: LoadedEntryRow) -> str:
        return entry_key(self._broker, row.client, row_key(row.load, row.id), row.filter) + "/loaded"


def _key(row: LoadedEntryRow) -> str:
    return row_key(row.client, row_key(row.load, row.id))
