"""The clients: who is there, what waits for them, whose leases end, and who is too slow.

GET /v1/console/clients             slow ones first, then by what waits
GET /v1/console/claims?client=ann   one client's subscriptions, or with table=advertisements those
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from aiohttp import web

from covey.console.answers import MOST_SEARCHED, answer, page, wanted
from covey.console.route_tables import TABLES
from covey.network.errors import FrameError
from covey.network.extensions import ServerParts
from covey.routing.client import Claim, Client

State: TypeAlias = Literal["slow", "connected", "away"]
_ORDER: Final[dict[State, int]] = {"slow": 0, "away": 1, "connected": 2}


class ClientTables:
    """Shows clients."""

    def __init__(self, server: ServerParts) -> None:
        self._identity = server.identity
        self._engine = server.engine

    async def clients(self, request: web.Request) -> web.Response:
        """All clients."""
        self._identity.check_right(request, "monitor")
        asked, state = wanted(request), request.query.get("state", "")
        known = self._engine.broker.clients
        looked_at = [
            (state_of(client), client)
            for client in islice(known, MOST_SEARCHED)
            if asked.has(client.id) and (not state or state_of(client) == state)
        ]
        looked_at.sort(key=lambda row: (_ORDER[row[0]], -_waiting(row[1]), row[1].id))
        found = page(looked_at, asked, lambda row: self._shown(*row))
        limits = self._engine.broker.config.limits
        return answer({**found, "more": max(0, len(known) - MOST_SEARCHED), "queue": limits.queue})

    async def claims(self, request: web.Request) -> web.Response:
        """One client's subscriptions or advertisements."""
        self._identity.check_right(request, "monitor")
        asked, table = wanted(request), request.query.get("table", "subscriptions")
        name = request.query.get("client", "")
        client = self._engine.broker.clients.get(name)
        if client is None:
            raise FrameError(f"there is no client {name[:80]!r}; it may have left")
        if table not in TABLES:
            raise FrameError(f"table={table[:40]} is not known; ask for {' or '.join(TABLES)}")
        self._engine.broker.count_hits()
        claims = client.claims[TABLES[table]]
        rows = (claim for claim in islice(claims.values(), MOST_SEARCHED) if asked.has(claim.id, claim.text))
        found = page(rows, asked, self._claim)
        return answer({**found, "more": max(0, len(claims) - MOST_SEARCHED)})

    def _shown(self, state: State, client: Client) -> dict[str, Any]:
        ends = [
            claim.expires_at
            for claims in client.claims
            for claim in islice(claims.values(), MOST_SEARCHED)
            if claim.expires_at is not None
        ]
        return {
            "client": client.id,
            "state": state,
            "subscriptions": len(client.claims.subscriptions),
            "advertisements": len(client.claims.advertisements),
            "queued": len(client.queue),
            "buffered": len(client.buffer),
            "credit": client.credit if client.up else None,
            "delivered": client.delivered,
            "dropped": client.dropped,
            "lease": None if not ends else self._left(min(ends)),
        }

    def _claim(self, claim: Claim) -> dict[str, Any]:
        return {
            "id": claim.id,
            "filter": claim.text,
            "hits": claim.hits,
            "durable": claim.durable,
            "lease": claim.lease,
            "left": None if claim.expires_at is None else self._left(claim.expires_at),
        }

    def _left(self, end: float) -> float:
        return max(0.0, end - self._engine.clock())


def state_of(client: Client) -> State:
    """Slow is who has used up its credit while something waits, or has lost deliveries in this session."""
    if not client.up:
        return "away"
    is_behind = client.credit <= 0 and bool(client.buffer or client.unsent)
    return "slow" if is_behind or client.dropped else "connected"


def _waiting(client: Client) -> int:
    return len(client.queue) + len(client.buffer)
