"""Where an event would go from a broker, and why, by the broker's rule 1; nothing is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from covey.network.survey_messages import ClientHop, LinkHop, Passage
from covey.routing.broker import Broker
from covey.routing.links import Link


def passage(broker: Broker, event: Mapping[str, Any], source: str | None, most: int) -> Passage:
    """An event's next hops, each with at most so many of the entries that match."""
    matched = broker.table.match(event)

    def shown(hop: str, keys: Sequence[str]) -> dict[str, str]:
        entries = broker.table.entries(hop)
        return {key: str(entries[key]) for key in islice(keys, most)}

    clients = sorted(hop for hop in matched if hop[0] == "c")
    hops = []
    for link in broker.links.values():
        keys = matched.get(link.hop, [])
        goes, why = _decision(broker, link, source, bool(keys))
        hops.append(LinkHop(link.peer, goes, why, shown(link.hop, keys), len(keys)))
    found = [ClientHop(hop[2:], shown(hop, matched[hop]), len(matched[hop])) for hop in islice(clients, most)]
    return Passage(source, found, hops)


def _decision(broker: Broker, link: Link, source: str | None, matched: bool) -> tuple[bool, str]:
    if link.peer == source:
        goes, why = False, "the event came from there"
    elif not link.in_tree:
        goes, why = False, "the link isn't in the spanning tree"
    elif broker.config.strategy == "flooding":
        goes, why = True, "flooding sends everything everywhere"
    elif not link.filtered:
        goes, why = link.up, "its tables aren't known yet, so it gets everything" if link.up else "it isn't there"
    elif matched:
        goes, why = True, "entries match"
    elif not link.traffic.filtering:
        goes, why = True, "filtering is off, since most events match there"
    else:
        goes, why = False, "none of its entries matches"
    if goes and not link.up:
        why += "; it isn't there, so durable events wait for it"
    return goes, why
