"""Ids that publishers gave their events, so that an event that is sent again is known and isn't published again.

A publisher whose connection broke can't tell whether its event was published. With an id of its own it needn't: it
sends the event again under that id, in another session or after a restart. An id counts from the turn on in which its
event is published, and is journalled with that turn, whether the event is durable or not: a broker that was killed
knows an id if and only if it kept what it had to keep of the event.

Ids are a client's own. All clients of a principal share one room, in which the oldest make way, so that nobody's ids
are forgotten for what others do.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from covey.routing.client import Client, row_key
from covey.routing.context import Context
from covey.routing.undo import Remembered, RememberedDict

SPACE = "published"


class PublishedRow(msgspec.Struct, frozen=True, array_like=True):
    """An id that is known: whose room it takes, and which number it has among all."""

    principal: str
    number: int


class PublishedIds(Remembered):
    """The ids that are known."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rooms: dict[str, dict[str, int]] = {}
        self._last = 0

    def is_first(self, client: Client, id: str) -> bool:
        """Whether a client publishes something under this id for the first time; from now on it has."""
        room = self._rooms.get(client.principal)
        if room is None:
            room = self._rooms[client.principal] = RememberedDict()
        key = row_key(client.id, id)
        if key in room:
            return False
        self._last += 1
        room[key] = self._last
        out = self._context.turn.out
        out.put(SPACE, key, PublishedRow(client.principal, self._last))
        while len(room) > self._context.config.limits.publication_ids:
            oldest = next(iter(room))
            del room[oldest]
            out.drop(SPACE, oldest)
        return True

    def restore(self, rows: Iterable[tuple[str, PublishedRow]]) -> None:
        """Take ids back from their rows."""
        for key, row in sorted(rows, key=lambda one: one[1].number):
            self._rooms.setdefault(row.principal, RememberedDict())[key] = row.number
            self._last = row.number
