"""What operators see: figures, tables, and where an event would go.

    GET  /v1/status      the broker in figures
    GET  /v1/routes      what each neighbour has told, and has been told
    POST /v1/trace       an event's next hops, and why; nothing is published
    GET  /metrics        for Prometheus
    GET  /healthz        the process answers: whoever restarts brokers asks this
    GET  /readyz         the broker takes connections, and keeps up: whoever sends clients to brokers asks this

Where there is authentication, all but the last two need a principal with `monitor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any, Final

import msgspec
from aiohttp import web

from covey.filters.algebra import Filter
from covey.network.client_sockets import Connections
from covey.network.configuration import ServerConfig
from covey.network.engine import Engine
from covey.network.errors import FrameError
from covey.network.frames import wrong_shape
from covey.network.identity import Identity
from covey.network.links import Links
from covey.network.metrics import Metrics
from covey.network.tracing import trace_event
from covey.routing.by_table import ByTable
from covey.routing.inspection import status

MOST_SHOWN: Final = 1_000
"""Filters of one table that are shown."""


class Admin:
    """Serves operators."""

    def __init__(
        self, config: ServerConfig, engine: Engine, identity: Identity, links: Links, connections: Connections
    ) -> None:
        self._config = config
        self._engine = engine
        self._identity = identity
        self._links = links
        self._connections = connections
        self._metrics = Metrics(engine)

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        return [
            web.get("/healthz", self.healthy),
            web.get("/readyz", self.ready),
            web.get("/metrics", self.metrics),
            web.get("/v1/status", self.status),
            web.get("/v1/routes", self.tables),
            web.post("/v1/trace", self.trace),
        ]

    async def healthy(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """The process answers."""
        return web.Response(text="ok\n")

    async def ready(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """The broker takes connections, and its journal keeps up."""
        inputs, records = self._engine.waiting
        limits = self._engine.limits
        if self._engine.stopped.done():
            return web.Response(status=503, text="stopped\n")
        if inputs >= limits.waiting_inputs or records >= limits.waiting_records:
            return web.Response(status=503, text="too much is waiting\n")
        if self._connections.are_full:
            return web.Response(status=503, text="there are too many connections\n")
        return web.Response(text="ok\n")

    async def metrics(self, request: web.Request) -> web.Response:
        """Figures for Prometheus."""
        self._identity.check_right(request, "monitor")
        return web.Response(body=self._metrics.text(), headers={"Content-Type": self._metrics.content_type})

    async def status(self, request: web.Request) -> web.Response:
        """The broker in figures."""
        self._identity.check_right(request, "monitor")
        found = status(self._engine.broker)
        inputs, records = self._engine.waiting
        links = [
            {
                "peer": link.peer,
                "url": self._links.urls.get(link.peer, ""),
                "connected": link.peer in self._links.open,
                "open": link.open,
                "in_tree": link.in_tree,
                "failed": link.failed,
                "filtering": link.filtering,
                "outbox": link.outbox,
                "unacknowledged": link.unacked,
                "told": len(link.exported.subscriptions),
                "heard": len(link.held.subscriptions),
            }
            for link in found.links
        ]
        return _json(
            {
                "broker": found.broker,
                "strategy": self._engine.broker.config.strategy,
                "clients": found.clients,
                "connected": found.connected,
                "subscriptions": found.subscriptions,
                "advertisements": found.advertisements,
                "queued": found.queued,
                "entries": found.entries,
                "events_kept": found.events_kept,
                "waiting_inputs": inputs,
                "waiting_records": records,
                "behind": self._engine.broker.behind,
                "published": self._engine.counts.published,
                "sent": self._engine.counts.sent,
                "pruning": None if found.pruning is None else asdict(found.pruning),
                "links": links,
                "tree": found.tree,
            }
        )

    async def tables(self, request: web.Request) -> web.Response:
        """What each neighbour has told, and has been told."""
        self._identity.check_right(request, "monitor")
        found = status(self._engine.broker)
        return _json(
            {
                "broker": found.broker,
                "clients": [
                    {
                        "client": client.id,
                        "connected": client.up,
                        "queued": len(client.queue),
                        "subscriptions": _claims(client.claims.subscriptions),
                        "advertisements": _claims(client.claims.advertisements),
                    }
                    for client in islice(self._engine.broker.clients, MOST_SHOWN)
                ],
                "links": [
                    {
                        "peer": link.peer,
                        "in_tree": link.in_tree,
                        "heard": {
                            "subscriptions": _shown(link.held.subscriptions),
                            "advertisements": _shown(link.held.advertisements),
                        },
                        "told": {
                            "subscriptions": _shown(link.exported.subscriptions),
                            "advertisements": _shown(link.exported.advertisements),
                        },
                    }
                    for link in found.links
                ],
            }
        )

    async def trace(self, request: web.Request) -> web.Response:
        """Where an event would go from here; `from=PEER` for one that comes from a neighbour."""
        self._identity.check_right(request, "monitor")
        try:
            event = msgspec.json.decode(await request.read(), type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise FrameError(f"an event is a JSON object: {error}") from None
        wrong = wrong_shape(event, self._engine.limits)
        if wrong is not None:
            raise FrameError(wrong)
        found = trace_event(self._engine.broker, event, request.query.get("from"), MOST_SHOWN)
        return _json(
            {
                "broker": self._config.broker.broker,
                "clients": [{"client": hop.client, "subscriptions": hop.subscriptions} for hop in found.clients],
                "links": [
                    {
                        "peer": hop.peer,
                        "url": self._links.urls.get(hop.peer, ""),
                        "goes": hop.goes,
                        "why": hop.why,
                        "entries": hop.entries,
                    }
                    for hop in found.links
                ],
            }
        )


def _claims(claims: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"id": claim.id, "filter": claim.text, "durable": claim.durable, "lease": claim.lease}
        for claim in islice(claims.values(), MOST_SHOWN)
    ]


def _tables(filters: ByTable[dict[str, Filter]]) -> dict[str, list[str]]:
    return {table.name.lower(): _shown(entries) for table, entries in filters.by_table()}


def _shown(filters: Mapping[str, Filter]) -> list[str]:
    return sorted(str(condition) for condition in islice(filters.values(), MOST_SHOWN))


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
