"""How many events each subscription matched.

    GET /v1/hits[?client=NAME][&limit=20][&order=fewest]

Counted by subscription since the broker was started; one that gets another filter starts anew. All subscriptions are
looked at, some thousands at a time, so that nobody's events wait for the answer. Where there is authentication this
needs a principal with `monitor`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from heapq import nlargest, nsmallest
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
from aiohttp import web

from covey.network.engine import Engine
from covey.network.errors import FrameError, MissingError
from covey.network.identity import Identity
from covey.routing.client import Claim

MOST_SHOWN: Final = 1_000
"""Subscriptions in one answer."""
SHOWN: Final = 20
"""The same, where nothing is asked for."""
AT_A_TIME: Final = 5_000
"""Subscriptions that are looked at before others have their turn."""
ORDERS: Final = {"most": nlargest, "fewest": nsmallest}

Row: TypeAlias = tuple[str, Claim]
"""A client, and one of its subscriptions."""


class Hits:
    """Serves operators who ask what subscriptions match."""

    def __init__(self, engine: Engine, identity: Identity) -> None:
        self._engine = engine
        self._identity = identity

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        return [web.get("/v1/hits", self.hits, allow_head=False)]

    async def hits(self, request: web.Request) -> web.Response:
        """The subscriptions with the most hits, or the fewest; of all, how many there are and how many have none."""
        self._identity.check_right(request, "monitor")
        order, limit = request.query.get("order", "most"), request.query.get("limit", str(SHOWN))
        if order not in ORDERS:
            raise FrameError(f"order={order[:40]} is not known; ask for {' or '.join(ORDERS)}")
        if not (limit.isascii() and limit.isdecimal() and 0 < int(limit[:9]) <= MOST_SHOWN):
            raise FrameError(f"limit={limit[:40]} is not a number of subscriptions from 1 to {MOST_SHOWN:,}")
        best: list[Row] = []
        looked_at = total = without = 0
        all_rows = self._rows(request.query.get("client"))
        while rows := list(islice(all_rows, AT_A_TIME)):
            counts = [claim.hits for _, claim in rows]
            looked_at, total, without = looked_at + len(rows), total + sum(counts), without + counts.count(0)
            best = ORDERS[order](int(limit), [*best, *rows], key=_hits)
            await asyncio.sleep(0)
        found = {
            "broker": self._engine.broker.config.broker,
            "subscriptions": looked_at,
            "hits": total,
            "without": without,
            "rows": [_shown(*row) for row in best],
        }
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    def _rows(self, name: str | None) -> Iterator[Row]:
        """All subscriptions, or those of one client. Whoever comes and goes meanwhile may be left out."""
        self._engine.broker.count_hits()
        known = self._engine.broker.clients
        clients = list(known) if name is None else [known.get(name)]
        for client in clients:
            if client is None:
                raise MissingError(f"there is no client {name!r:.80}; it may have left")
            for claim in list(client.claims.subscriptions.values()):
                yield client.id, claim


def _hits(row: Row) -> int:
    return row[1].hits


def _shown(client: str, claim: Claim) -> dict[str, Any]:
    return {"client": client, "id": claim.id, "hits": claim.hits, "filter": claim.text}
