"""Events about subscriptions, advertisements and loads, for those who subscribe to them (R11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from covey.routing.by_table import ByTable
from covey.routing.messages import Envelope

if TYPE_CHECKING:  # clients of brokers import this, and shall not wait for indexes
    from covey.routing.client import Claim

RESERVED = "covey"
"""Attributes of this name, and those that start with it and a dot, are in brokers' own events and in no others."""
META = f"{RESERVED}.meta"
"""The attribute that marks such an event, and says what happened."""
META_FILTER = f"`{META}` IS NOT NULL"
"""What a broker that publishes them advertises for itself."""
META_ATTRIBUTES = frozenset((META, "broker", "client", "id", "filter"))
"""All attributes that they may have."""
PUBLISHER = RESERVED
"""Who publishes them. No client is called so."""

CAME = ByTable("subscribed", "advertised")
WENT = ByTable("unsubscribed", "unadvertised")


def about_claim(broker: str, client: str, what: str, claim: Claim) -> dict[str, Any]:
    """The event for a subscription or an advertisement."""
    return {META: what, "broker": broker, "client": client, "id": claim.id, "filter": claim.text}


def about_load(broker: str, client: str, what: str, load: str) -> dict[str, Any]:
    """The event for a load."""
    return {META: what, "broker": broker, "client": client, "id": load}


def reserved_name(events: Iterable[Mapping[str, Any]]) -> str | None:
    """The name of an attribute that only a broker may publish; None where there is none."""
    for name in set[str]().union(*events):
        if name.startswith(RESERVED) and (name == RESERVED or name[len(RESERVED)] == "."):
            return name
    return None


def first_forged(envelopes: Sequence[Envelope]) -> tuple[Envelope, str] | None:
    """The first event that can't be what it says to be, and why; None where all may. Only a broker itself tells of its
    clients, under its own name: whoever passes it on can't make it another's."""
    if reserved_name(envelope.attributes for envelope in envelopes) is None:
        envelopes = [envelope for envelope in envelopes if envelope.publisher == PUBLISHER]
    for envelope in envelopes:
        attributes = envelope.attributes
        if envelope.publisher != PUBLISHER:
            if reserved_name([attributes]) is not None:
                return envelope, f"{RESERVED!r} is for brokers' own events"
        elif META not in attributes or attributes.get("broker") != envelope.origin:
            return envelope, f"{PUBLISHER!r} publishes what {envelope.origin!r} tells of its own clients, and no more"
    return None
