"""Entries: from the hop that asked for them to the routing table and the exports of other tree neighbours (rule 2)."""

from __future__ import annotations

from collections.abc import Iterable

from covey.filters.algebra import Filter
from covey.routing.clients import Claim, Client
from covey.routing.forwarding import Forwarding
from covey.routing.links import Link
from covey.routing.messages import (
    ADVERTISEMENTS,
    SUBSCRIPTIONS,
    Entry,
)
from covey.routing.strategies import entry_key
from covey.routing.tables import PrunedTable, RoutingTable

META = "covey.meta"
"""The attribute that marks an event about a subscription or an advertisement (R11)."""
META_FILTER = f"`{META}` IS NOT NULL"
"""What a broker with such events advertises for itself."""


class Exporting(Forwarding):
    """Keeps tables and exports at what hops ask for."""

    def _hold(self, link: Link, table: int, added: list[tuple[Entry, Filter]], removed: list[str]) -> None:
        """A neighbour's entries change: the holding, the journal, and if the link is in the tree, all that follows."""
        holding = link.inward[table].holding
        removed = [key for key in removed if key in holding.entries]
        news = {entry.key: condition for entry, condition in added if holding.entries.get(entry.key) != condition}
        for key in removed:
            holding.remove(key)
            self._turn.out.drop("entry", f"{link.peer}/{table}/{key}")
        for entry, condition in added:
            if entry.key in news:
                holding.add(entry, condition)
                self._turn.out.put("entry", f"{link.peer}/{table}/{entry.key}", entry)
        if link.in_tree:
            self._use(link, table, news, removed)

    def _use(self, link: Link, table: int, added: dict[str, Filter], removed: Iterable[str]) -> None:
        """Entries of a tree neighbour count from now on, or no longer."""
        if table == SUBSCRIPTIONS:
            self._matcher.change_many(link.hop, added, removed)
        else:
            held = link.inward[ADVERTISEMENTS].holding.entries if link.in_tree else {}
            link.outward[SUBSCRIPTIONS].export.advertise(held, self._turn.now)
        self._export(table, link.hop, added, removed)

    @property
    def _matcher(self) -> RoutingTable | PrunedTable:
        return self.table if self._pruned is None else self._pruned

    def _export(self, table: int, hop: str, added: dict[str, Filter], removed: Iterable[str]) -> None:
        """A hop's entries changed: the exports for all tree neighbours but itself follow."""
        if self.config.strategy == "flooding" or (table == ADVERTISEMENTS and not self.config.advertisements):
            return
        named = {f"{hop}\n{key}": condition for key, condition in added.items()}
        gone = [f"{hop}\n{key}" for key in removed]
        for link in self.links.values():
            if link.in_tree and link.hop != hop:
                link.outward[table].export.change(named, gone, self._turn.now)

    def _entries_for(self, table: int, link: Link) -> dict[str, Filter]:
        """The entries of all hops but a neighbour."""
        if self.config.strategy == "flooding" or (table == ADVERTISEMENTS and not self.config.advertisements):
            return {}
        entries: dict[str, Filter] = {}
        if table == ADVERTISEMENTS and self.config.meta_events:
            entries[META] = self._known.parse(META_FILTER)
        for client in self.clients:
            for claim in client.claims[table].values():
                key, condition = self._told(client, claim)
                entries[f"{client.hop}\n{key}"] = condition
        for other in self.links.values():
            if other.in_tree and other is not link:
                for key, condition in other.inward[table].holding.entries.items():
                    entries[f"{other.hop}\n{key}"] = condition
        return entries

    def _told(self, client: Client, claim: Claim) -> tuple[str, Filter]:
        """What neighbours hear of a claim: itself, or the loaded entry that stands for it."""
        entry = self.standing.get(client.id, claim)
        if entry is not None:
            return entry.key, entry.condition
        return entry_key(self.config.broker, client.id, claim.id, claim.text), claim.condition

    def _untold(self, client: Client, claim: Claim) -> list[str]:
        """The keys that go with a claim; none while the entry that stands for it stands for others."""
        key, _ = self._told(client, claim)
        return [key] if self.standing.leave(client.id, claim) else []
