"""Loads that are larger than a turn should be, in the journal: whole or not at all, though they are made in pieces.

A load's subscriptions are first written down as they came, in parts, and then a row says that the load has begun. From
that row on it counts. What a crash leaves undone is done at the next start, on the rows themselves and before anything
is made of them (`finish_loads`); parts of a load that hadn't begun are dropped.
"""

from __future__ import annotations

from typing import Final

import msgspec

from covey.routing.client import SPACES, ClaimRow, row_key
from covey.routing.journal import Outputs, read

LOADING: Final = "loading"
PARTS: Final = "loading_part"
"""Spaces of the journal."""
PART: Final = 256
"""Subscriptions in a part."""

Spaces = dict[str, dict[str, bytes]]


class LoadRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a load beside its subscriptions and entries."""

    client: str
    version: int
    loaded_at: float
    made: int
    ended: int


class LoadingRow(msgspec.Struct, frozen=True, array_like=True):
    """A load that has begun, by its name."""

    row: LoadRow
    """What is kept of it in the end."""
    allowed: str | None
    parts: int


class PartRow(msgspec.Struct, frozen=True, array_like=True):
    """Some of its subscriptions: ids and filters."""

    load: str
    subscriptions: list[tuple[str, str]]


def part_key(load: str, number: int) -> str:
    """The key of a part."""
    return row_key(load, f"{number:08d}")


def finish_loads(spaces: Spaces, out: Outputs) -> None:
    """Bring rows to what they are behind all loads that had begun."""
    begun = {name: read(value, LoadingRow) for name, value in spaces.pop(LOADING, {}).items()}
    parts: dict[str, list[PartRow]] = {}
    for key, value in spaces.pop(PARTS, {}).items():
        part = read(value, PartRow)
        parts.setdefault(part.load, []).append(part)
        out.drop(PARTS, key)
    for name, loading in begun.items():
        out.drop(LOADING, name)
        _finish(name, loading, parts.get(name, []), spaces, out)


def _finish(name: str, loading: LoadingRow, parts: list[PartRow], spaces: Spaces, out: Outputs) -> None:
    space, client = SPACES.subscriptions, loading.row.client
    rows = spaces.setdefault(space, {})
    there = [row for row in (read(value, ClaimRow) for value in rows.values()) if row.client == client]
    own = {row.id for row in there if row.load != name}
    principal = next((row.principal for row in there if row.principal), "")
    asked = {id: text for part in parts for id, text in part.subscriptions}
    if len(parts) == loading.parts:
        # Where one of them is damaged nobody knows what has ended.
        for id in [row.id for row in there if row.load == name and row.id not in asked]:
            del rows[row_key(client, id)]
            out.drop(space, row_key(client, id))
    for id, text in asked.items():
        # What the client asked for by itself meanwhile stays.
        if id not in own:
            row = ClaimRow(client, id, text, None, None, name, "", loading.allowed, principal)
            rows[row_key(client, id)] = msgspec.msgpack.encode(row)
            out.put(space, row_key(client, id), row)
    spaces.setdefault("load", {})[name] = msgspec.msgpack.encode(loading.row)
    out.put("load", name, loading.row)
