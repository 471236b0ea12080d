"""Recalls: late events for those whose entries came late (the section "Recalls" of `broker.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from covey.filters.algebra import Filter
from covey.routing.by_table import Table
from covey.routing.context import Context
from covey.routing.exporter import Exporter
from covey.routing.links import Link
from covey.routing.router import Router
from covey.routing.undo import Remembered


class Recalls(Remembered):
    """Sends again what a neighbour should have had.

    Owns nothing: what is to be recalled from a neighbour stands in its link. May touch the recalls of all tree links,
    and asks the router to send.
    """

    def __init__(self, context: Context, links: Mapping[str, Link], router: Router, exporter: Exporter) -> None:
        self._context = context
        self._links = links
        self._router = router
        self._exporter = exporter

    def recall(self, source: Link, table: Table, filters: list[Filter]) -> None:
        """Entries of a tree neighbour came late: answer for this broker's window, and let the others answer.

        Where it is advertisements that came late, it is the subscriptions behind this broker that were told too late to
        where those came from.
        """
        if table is Table.ADVERTISEMENTS and not self._context.config.advertisements:
            return
        if table is Table.SUBSCRIPTIONS:
            self._router.replay(source, filters)
        else:
            source.recall(Table.SUBSCRIPTIONS, map(str, self._overlapping(source, filters)))
        for link in self._links.values():
            if link.in_tree and link is not source:
                link.recall(table, map(str, filters))

    def recall_held(self, link: Link) -> None:
        """What a neighbour told counts from now on, though it may have been told long ago."""
        for table in Table:
            self.recall(link, table, list(link.inward[table].holding.entries.values()))

    def _overlapping(self, link: Link, advertised: list[Filter]) -> Iterable[Filter]:
        """The entries of all hops but a neighbour that overlap some advertisement."""
        overlaps = self._context.known.overlaps
        behind = self._exporter.entries_for(Table.SUBSCRIPTIONS, link).values()
        return (condition for condition in behind if any(overlaps(condition, other) for other in advertised))
