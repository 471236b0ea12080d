"""Where an event would go from a broker, and why, by the broker's rule 1; nothing is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from covey.network.survey_messages import ClientHop, LinkHop, Passage
from covey.routing.broker import Broker
from covey.routing.decisions import decide


def trace_event(broker: Broker, event: Mapping[str, Any], source: str | None, most: int) -> Passage:
    """An event's next hops, each with at most so many of the entries that match."""
    matched = broker.table.match(event)

    def shown(hop: str, keys: Sequence[str]) -> dict[str, str]:
        entries = broker.table.entries(hop)
        return {key: str(entries[key]) for key in islice(keys, most)}

    clients = sorted(hop for hop in matched if hop[0] == "c")
    hops = []
    for link in broker.links.values():
        keys = matched.get(link.hop, [])
        decision = decide(link, source, bool(keys))
        hops.append(LinkHop(link.peer, decision.goes, decision.explained(link), shown(link.hop, keys), len(keys)))
    found = [ClientHop(hop[2:], shown(hop, matched[hop]), len(matched[hop])) for hop in islice(clients, most)]
    return Passage(source, found, hops)
