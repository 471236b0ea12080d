"""What brokers ask each other for operators' sake: how they are, and where an event would go.

These travel over links like the broker's own messages, and never reach it: nothing of the routing depends on them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from covey.routing.messages import Struct
from covey.routing.ranges import BrokerName, Hops, Number


class LinkFigures(msgspec.Struct, frozen=True):
    """One end of a link."""

    peer: str
    open: bool
    in_tree: bool
    failed: bool
    filtering: bool
    outbox: Number
    told: Number
    heard: Number
    received: Number
    """Events that came over it since the broker was started."""
    sent: Number


class Figures(msgspec.Struct, frozen=True, tag=True):
    """One broker."""

    strategy: str
    uptime: Annotated[float, msgspec.Meta(ge=0)]
    clients: Number
    connected: Number
    subscriptions: Number
    advertisements: Number
    queued: Number
    entries: Number
    events_kept: Number
    published: Number
    delivered: Number
    waiting_inputs: Number
    waiting_records: Number
    links: list[LinkFigures]


class ClientHop(msgspec.Struct, frozen=True):
    """A client that gets an event."""

    client: str
    subscriptions: dict[str, str]
    """Those that match, by id; perhaps not all."""
    matched: Number
    """How many match."""


class LinkHop(msgspec.Struct, frozen=True):
    """Whether an event goes over a link, and why."""

    peer: str
    goes: bool
    why: str
    entries: dict[str, str]
    """The neighbour's entries that match, by key; perhaps not all."""
    matched: Number


class Passage(msgspec.Struct, frozen=True, tag=True):
    """An event at one broker: to whom it goes from there."""

    source: str | None
    """The neighbour that it came from; None where it was published."""
    clients: list[ClientHop]
    links: list[LinkHop]


class Ask(Struct, frozen=True):
    """A question to all brokers: their figures, or, with an event, those on its way what they would do with it."""

    asker: BrokerName
    number: Number
    """With `asker`, the question's id."""
    hops: Hops
    """Links that it may still cross."""
    event: dict[str, Any] | None = None


class Told(Struct, frozen=True):
    """One broker's answer; it goes back the way that the question came."""

    asker: BrokerName
    number: Number
    origin: BrokerName
    body: Figures | Passage
