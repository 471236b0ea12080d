"""The routing tables: what each neighbour told, what it is told, and what became of everything else.

    GET /v1/console/routes                    each neighbour's tables in numbers
    GET /v1/console/routes/told?peer=b        the entries of all other hops, and what became of them on the way to b
    GET /v1/console/routes/heard?peer=b       what b told, and what it is matched by

`table=advertisements` asks for those. What became of an entry comes from the stages of the routing strategy as they
stand (`Export.verdicts`), not from a calculation of the console's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any, Final

from aiohttp import web

from covey.console.answers import MOST_SEARCHED, answer, page, wanted
from covey.filters.algebra import Filter
from covey.network.errors import FrameError
from covey.network.extensions import ServerParts
from covey.routing.broker import Broker
from covey.routing.by_table import Table
from covey.routing.exports import Verdict
from covey.routing.inspection import pruning_view
from covey.routing.links import Link

TABLES: Final = {table.name.lower(): table for table in Table}


class Tables:
    """Shows routing tables."""

    def __init__(self, server: ServerParts) -> None:
        self._identity = server.identity
        self._engine = server.engine

    @property
    def _broker(self) -> Broker:
        """As it is now: a restart brings another."""
        return self._engine.broker

    async def summary(self, request: web.Request) -> web.Response:
        """Each neighbour's tables in numbers."""
        self._identity.check_right(request, "monitor")
        config = self._broker.config
        return answer(
            {
                "strategy": config.strategy,
                "advertisements": config.advertisements,
                "pruning": config.pruning is not None,
                "pruned_by": None if (pruning := pruning_view(self._broker)) is None else asdict(pruning),
                "links": [
                    {
                        "peer": link.peer,
                        "open": link.open,
                        "in_tree": link.in_tree,
                        "filtering": link.traffic.filtering,
                        "tables": {name: self._numbers(link, table) for name, table in TABLES.items()},
                    }
                    for link in self._broker.links.values()
                ],
            }
        )

    def _numbers(self, link: Link, table: Table) -> dict[str, Any]:
        export, holding = link.outward[table].export, link.inward[table].holding
        judged = Counter(verdict.reason for verdict in islice(export.verdicts(), MOST_SEARCHED))
        return {
            "heard": len(holding),
            "pruned": sum(pruned is not None for _, pruned in islice(self._heard(link, table), MOST_SEARCHED)),
            "entries": len(export),
            "judged": judged.total(),
            "told": len(export.outcome),
            "unacknowledged": len(link.outward[table].unacked),
            "fates": dict(judged),
        }

    async def told(self, request: web.Request) -> web.Response:
        """The entries of all other hops, and what became of them."""
        self._identity.check_right(request, "monitor")
        link, table = self._asked(request)
        asked, reason = wanted(request), request.query.get("fate", "")
        export = link.outward[table].export

        def fits(verdict: Verdict) -> bool:
            return (not reason or verdict.reason == reason) and asked.has(str(verdict.condition), verdict.hop)

        found = page(filter(fits, islice(export.verdicts(), MOST_SEARCHED)), asked, _verdict)
        return answer({**found, "more": max(0, len(export) - MOST_SEARCHED)})

    async def heard(self, request: web.Request) -> web.Response:
        """What a neighbour told."""
        self._identity.check_right(request, "monitor")
        link, table = self._asked(request)
        asked = wanted(request)
        rows = (row for row in islice(self._heard(link, table), MOST_SEARCHED) if asked.has(str(row[0])))
        found = page(
            rows, asked, lambda row: {"filter": str(row[0]), "pruned": None if row[1] is None else str(row[1])}
        )
        return answer({**found, "more": max(0, len(link.inward[table].holding) - MOST_SEARCHED)})

    def _heard(self, link: Link, table: Table) -> Iterator[tuple[Filter, Filter | None]]:
        """A neighbour's entries, each with the smaller filter that it is matched by, where there is one."""
        matched = self._broker.table.entries(link.hop) if table is Table.SUBSCRIPTIONS else {}
        for key, condition in link.inward[table].holding.entries.items():
            other = matched.get(key, condition)
            yield condition, None if other == condition else other

    def _asked(self, request: web.Request) -> tuple[Link, Table]:
        peer, table = request.query.get("peer", ""), request.query.get("table", "subscriptions")
        link = self._broker.links.get(peer)
        if link is None:
            raise FrameError(f"{peer[:40]!r} is not a neighbour of {self._broker.config.broker}")
        if table not in TABLES:
            raise FrameError(f"table={table[:40]} is not known; ask for {' or '.join(TABLES)}")
        return link, TABLES[table]


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "from": verdict.hop,
        "filter": str(verdict.condition),
        "fate": verdict.reason,
        "by": None if verdict.by is None else str(verdict.by),
        "told": None if verdict.told is None else str(verdict.told),
    }
