"""What a broker knows: the parts that its layers share.

The broker is built in layers, each a class that adds its rules to the layer below: `state` < `forwarding` < `exporting`
< `recalls` < `tree` < `peers` < `requests` < `broker`. A layer calls what is below it and never what is above.
"""

from __future__ import annotations

from collections.abc import Iterable

from covey.errors import CoveyError
from covey.filters.algebra import Filter
from covey.routing.clients import Clients
from covey.routing.config import BrokerConfig
from covey.routing.journal import Turn
from covey.routing.kept_events import KeptEvents
from covey.routing.known_filters import KnownFilters
from covey.routing.links import Link
from covey.routing.settling import Settling
from covey.routing.standing import Standing
from covey.routing.tables import PrunedTable, RoutingTable
from covey.routing.topology import Topology

NUMBERS_RESERVED = 1_000
"""Event numbers that one journal row reserves; a restart skips what is left of them."""


class State:
    """The parts of one broker."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._turn = Turn()
        self._known = KnownFilters(config.semantics, config.defaults, config.schema, config.limits.filters)
        self.events = KeptEvents(config, self._turn)
        self.clients = Clients(config, self._known, self.events, self._turn)
        self.table = RoutingTable(self._known)
        self._pruned: PrunedTable | None = None
        if config.pruning is not None and config.chances is not None:
            self._pruned = PrunedTable(self.table, self._known, config.pruning, config.chances)
        self.standing = Standing(config.broker, self._turn)
        self.links: dict[str, Link] = {}
        self.topology = Topology(config.broker)
        self._next_number = 1
        self._reserved = 0
        self._settlings: list[tuple[Settling, int, str | None]] = []
        """What is to be settled with this turn: for which table, and for which neighbour it needn't wait."""

    def _number(self) -> int:
        number = self._next_number
        self._next_number += 1
        if self._next_number > self._reserved:
            self._reserved = self._next_number + NUMBERS_RESERVED
            self._turn.out.put("broker", "numbers", self._reserved)
        return number

    def _parsed(self, texts: Iterable[str]) -> list[Filter]:
        return [one for one in map(self._parse, texts) if one is not None]

    def _parse(self, text: str) -> Filter | None:
        try:
            return self._known.parse(text)
        except CoveyError:
            return None
