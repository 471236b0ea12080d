"""The profile that a broker judges by: how likely filters are to match.

One that operators bring takes the place of the one in the configuration: imperfect mergers are judged anew, prunings
are chosen anew, and the index over the routing table is built anew with orders by the new events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import msgspec

from covey.history import Profile
from covey.history.files import from_bytes
from covey.routing.client import Client
from covey.routing.clients import Clients
from covey.routing.context import Context
from covey.routing.exporter import Exporter
from covey.routing.journal import read
from covey.routing.messages import Confirmed, LoadProfile
from covey.routing.requests import Requests
from covey.routing.undo import Remembered, note

PART: Final = 1 << 19
"""Bytes of a profile in one row of the journal."""


class ProfileRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a profile beside its parts."""

    name: str
    parts: int
    loaded_at: float


class Profiles(Remembered):
    """Takes profiles from operators.

    Owns the row of the one in use. Changes the context's configuration and what is known of events, and lets the
    exporter follow.
    """

    def __init__(self, context: Context, clients: Clients, exporter: Exporter, requests: Requests) -> None:
        self.in_use: ProfileRow | None = None
        """None for the one of the configuration, or for none."""
        self._context = context
        self._clients = clients
        self._exporter = exporter
        requests.handlers[LoadProfile] = self._load

    def _load(self, operator: Client, message: LoadProfile) -> None:
        out = self._context.turn.out
        before = 0 if self.in_use is None else self.in_use.parts
        parts = [message.file[at : at + PART] for at in range(0, len(message.file), PART)]
        for number, part in enumerate(parts):
            out.put("profile_part", _part_key(number), part)
        for number in range(len(parts), before):
            out.drop("profile_part", _part_key(number))
        self.in_use = ProfileRow(message.name, len(parts), self._context.turn.now)
        out.put("profile", "row", self.in_use)
        self._judge_by(message.profile)
        self._clients.send(operator, Confirmed(message.request))

    def _judge_by(self, profile: Profile) -> None:
        self._context.config = replace(self._context.config, chances=profile)
        note(setattr, self._context.known, "statistics", self._context.known.statistics)
        self._context.known.statistics = profile.statistics()
        self._exporter.judge_anew()

    def restore(self, spaces: Mapping[str, Mapping[str, bytes]]) -> None:
        """Take the profile back, before links are made, so that they are judged by it from the start."""
        if "row" in spaces.get("profile", {}):
            self.in_use, file = kept_profile(spaces)
            self._judge_by(from_bytes(file, self.in_use.name))


def kept_profile(spaces: Mapping[str, Mapping[str, bytes]]) -> tuple[ProfileRow, bytes]:
    """The profile that a journal has, as its file; raises KeyError or what `read` raises where rows are missing or
    can't be read."""
    row = read(spaces["profile"]["row"], ProfileRow)
    parts = spaces["profile_part"]
    return row, b"".join(read(parts[_part_key(number)], bytes) for number in range(row.parts))


def _part_key(number: int) -> str:
    return f"{number:06d}"
