"""Recalls: late events for those whose entries came late (the section "Recalls" of `broker.py`)."""

from __future__ import annotations

from collections.abc import Iterable

from covey.filters.algebra import Filter
from covey.routing.exporting import Exporting
from covey.routing.links import Link
from covey.routing.messages import ADVERTISEMENTS, SUBSCRIPTIONS
from covey.routing.tables import RoutingTable


class Recalls(Exporting):
    """Sends again what a neighbour should have had."""

    def _replay(self, link: Link, filters: list[Filter]) -> None:
        """Send a neighbour what it should have had."""
        everything = self.config.strategy == "flooding" or (link.up and not link.filtered)
        wanted = RoutingTable(self._known)
        for at, condition in enumerate(filters):
            wanted.add(link.hop, str(at), condition)
        for envelope in self.events.unreached(link.peer):
            if everything or wanted.match(envelope.attributes):
                self._forward(link, envelope, recalled=True)

    def _recall(self, source: Link, table: int, filters: list[Filter]) -> None:
        """Entries of a tree neighbour came late: answer for this broker's window, and let the others answer.

        Where it is advertisements that came late, it is the subscriptions behind this broker that were told too late to
        where those came from.
        """
        if table == ADVERTISEMENTS and not self.config.advertisements:
            return
        if table == SUBSCRIPTIONS:
            self._replay(source, filters)
        else:
            source.recall(SUBSCRIPTIONS, map(str, self._overlapping(source, filters)))
        for link in self.links.values():
            if link.in_tree and link is not source:
                link.recall(table, map(str, filters))

    def _overlapping(self, link: Link, advertised: list[Filter]) -> Iterable[Filter]:
        """The entries of all hops but a neighbour that overlap some advertisement."""
        behind = self._entries_for(SUBSCRIPTIONS, link).values()
        return (one for one in behind if any(self._known.overlaps(one, other) for other in advertised))

    def _recall_held(self, link: Link) -> None:
        """What a neighbour told counts from now on, though it may have been told long ago."""
        for table in (SUBSCRIPTIONS, ADVERTISEMENTS):
            self._recall(link, table, list(link.inward[table].holding.entries.values()))
