"""`GET /v1/console/overview`: the overlay with its figures, asked for about once a second while somebody looks."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec
from aiohttp import web

from covey.console.answers import answer
from covey.console.overlay import BrokerView, LinkView, overlay
from covey.network.extensions import ServerParts
from covey.network.survey_messages import LinkFigures

MOST_BROKERS: Final = 500
"""Brokers shown, the nearest first."""
MOST_LINKS: Final = 1_000


class Overview:
    """Shows the overlay."""

    def __init__(self, server: ServerParts) -> None:
        self._server = server

    async def overview(self, request: web.Request) -> web.Response:
        """All brokers and links, and this broker in more figures."""
        self._server.identity.check_right(request, "monitor")
        config, engine = self._server.config, self._server.engine
        broker = engine.broker
        heard = self._server.surveys.figures()
        topology = broker.topology
        found = overlay(config.broker.broker, topology.links(), topology.tree(), heard, time.monotonic())
        shown = {view.name for view in found.brokers[:MOST_BROKERS]}
        links = [link for link in found.links if link.a in shown and link.b in shown]
        return answer(
            {
                "broker": config.broker.broker,
                "strategy": broker.config.strategy,
                "semantics": config.broker.semantics,
                "advertisements": config.broker.advertisements,
                "durable": config.data is not None,
                "authenticates": config.authenticates,
                "time": engine.clock(),
                "counts": {name: getattr(engine.counts, name) for name in engine.counts.__slots__},
                "limits": {
                    "waiting_inputs": engine.limits.waiting_inputs,
                    "waiting_records": engine.limits.waiting_records,
                    "outbox": config.broker.limits.outbox,
                    "queue": config.broker.limits.queue,
                },
                "brokers": [_broker(view) for view in found.brokers[:MOST_BROKERS]],
                "links": [_link(view) for view in links[:MOST_LINKS]],
                "more_brokers": max(0, len(found.brokers) - MOST_BROKERS),
                "more_links": len(found.links) - min(len(links), MOST_LINKS),
            }
        )


def _broker(view: BrokerView) -> dict[str, Any]:
    figures = None
    if view.figures is not None:
        figures = {name: getattr(view.figures, name) for name in view.figures.__struct_fields__ if name != "links"}
    return {"name": view.name, "state": view.state, "hops": view.hops, "age": view.age, "figures": figures}


def _link(view: LinkView) -> dict[str, Any]:
    return {
        "a": view.a,
        "b": view.b,
        "up": view.up,
        "in_tree": view.in_tree,
        "at_a": _end(view.at_a),
        "at_b": _end(view.at_b),
    }


def _end(figures: LinkFigures | None) -> dict[str, Any] | None:
    return None if figures is None else msgspec.structs.asdict(figures)
