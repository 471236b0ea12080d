"""What all parts of one broker share: how it is configured, the turn that it is in, and the filters that it knows.

A broker is a number of parts, each an object with state of its own. What a part owns and what else it may touch stands
at its head; what isn't named there it must not know. Parts are made in this order and call only parts made before them:

    Context    configuration, turn, known filters                       everyone reads it
    Settlings  what is to be settled with this turn                     `settling.py`
    KeptEvents events that outboxes, queues and the window refer to     `kept_events.py`
    Clients    sessions, claims, leases, queues, quotas                 `clients.py`, `queues.py`, `principals.py`
    Router     events, from a hop to all others                         `router.py`
    Exporter   entries, from a hop to the routing table and to exports  `exporter.py`
    Recalls    late events for those whose entries came late            `recalls.py`
    Tree       links that join and leave the spanning tree              `tree.py`
    Peers      neighbours' sessions, deltas and streams                 `peers.py`
    Requests   what clients ask for                                     `requests.py`
    Loads      what operators bring in bulk                             `loads.py`
    Broker     one input after the other                                `broker.py`
"""

from __future__ import annotations

from collections.abc import Iterable

from covey.errors import CoveyError
from covey.filters.algebra import Filter
from covey.routing.config import BrokerConfig
from covey.routing.journal import Flaw, Turn
from covey.routing.known_filters import KnownFilters
from covey.routing.undo import Remembered


class Context(Remembered):
    """Owned by the broker, read by all parts. The configuration is changed by `Profiles`, where a profile takes the
    place of the one before, and by `Exporter`, where the broker is to route in another way."""

    __slots__ = ("config", "known", "life", "pressure", "turn")

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.turn = Turn()
        self.known = KnownFilters.under(config)
        self.life = 0
        """Another number whenever the broker is started: when that was, in microseconds."""
        self.pressure = ""
        """Why publishers are held back; empty where they aren't."""

    def report(self, flaw: Flaw) -> None:
        """Something raised and was got round."""
        self.turn.out.defects.append(flaw)

    def parse(self, text: str) -> Filter | None:
        """The filter of a text that a neighbour sent; None where this broker can't read it."""
        try:
            return self.known.parse(text)
        except CoveyError:
            return None

    def parse_entry(self, key: str, text: str) -> Filter | None:
        """The filter of an entry that a neighbour sent; None where this broker can't read it."""
        try:
            return self.known.parse_entry(key, text)
        except CoveyError:
            return None

    def parse_all(self, texts: Iterable[str]) -> list[Filter]:
        """The filters of those texts that this broker can read."""
        return [condition for condition in map(self.parse, texts) if condition is not None]
