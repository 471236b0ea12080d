"""HTTP: publishing (CloudEvents or plain JSON), subscriptions and advertisements.

    POST   /v1/events[?durable=true]                            publish; answered when the broker confirmed it
    PUT    /v1/clients/NAME/subscriptions/ID                    {"filter": ..., "durable": true, "lease": 60}
    DELETE /v1/clients/NAME/subscriptions/ID
    GET    /v1/clients/NAME/subscriptions                       the same for advertisements

A request has no session, and the broker knows clients by sessions. So a request uses the session that its client has
open, or opens one for its own duration; deliveries that such a session is sent aren't acknowledged, so they come again
to the client's next one. Without an open session only durable subscriptions make sense, and others are refused.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from aiohttp import web

from covey.network.cloudevents import decompressed, read_events
from covey.network.engine import Engine
from covey.network.errors import FrameError, RefusedError
from covey.network.identity import Identity, client_name
from covey.network.limits import Rate
from covey.network.sessions import Session
from covey.network.tokens import Principal
from covey.routing.messages import (
    Advertise,
    ClientMessage,
    Publication,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

KINDS: Final = ("subscriptions", "advertisements")
RATES_KEPT: Final = 1_000
"""Principals whose publishing rate is remembered."""


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a subscription or an advertisement."""

    filter: str
    durable: bool = False
    lease: float | None = None


class Nowhere:
    """Takes what a session without a connection is sent."""

    def send(self, messages: list[Any]) -> None:
        """Not acknowledged, so it comes again."""

    def close(self, reason: str, code: int) -> None:
        """Nothing is open."""


class HttpApi:
    """Serves requests."""

    def __init__(self, engine: Engine, identity: Identity) -> None:
        self._engine = engine
        self._identity = identity
        self._users: Counter[str] = Counter()
        self._rates: dict[str, Rate] = {}

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        one, all = "/v1/clients/{client}/{kind:subscriptions|advertisements}", "/{id}"
        return [
            web.post("/v1/events", self.publish),
            web.put(one + all, self.put_claim),
            web.delete(one + all, self.delete_claim),
            web.get(one, self.list_claims, allow_head=False),
        ]

    async def publish(self, request: web.Request) -> web.Response:
        """Publish the events in a request's body."""
        principal = self._identity.client(request)
        durable = truth(request, "durable")
        limits = self._engine.limits
        body = decompressed(await request.read(), request.headers.get("Content-Encoding"), limits)
        events = read_events(request.headers, body, limits)
        wait = self._rate(principal).take(len(events), time.monotonic())
        if wait > 1.0:
            raise web.HTTPTooManyRequests(
                text="too many events a second (event_rate); send them later", headers={"Retry-After": f"{wait:.0f}"}
            )
        await self._engine.room()
        publications = [Publication(event, durable) for event in events]
        async with self._publisher(principal) as session:
            await self._engine.ask(session, lambda request: Publish(request, publications))
        return web.json_response({"published": len(events)}, status=202)

    async def put_claim(self, request: web.Request) -> web.Response:
        """Make a subscription or an advertisement."""
        client = self._client(request)
        id = self._id(request)
        try:
            body = msgspec.json.decode(await request.read(), type=ClaimBody)
        except (msgspec.DecodeError, ValueError) as error:
            raise FrameError(f'{error}; send {{"filter": "price < 10", "durable": true}}') from None
        make = Subscribe if request.match_info["kind"] == KINDS[0] else Advertise

        def message(number: int) -> ClientMessage:
            return make(number, id, body.filter, body.durable, body.lease)

        await self._ask(client, message, lasting=body.durable)
        return web.json_response({"id": id, "filter": body.filter, "durable": body.durable, "lease": body.lease})

    async def delete_claim(self, request: web.Request) -> web.Response:
        """End a subscription or an advertisement."""
        client = self._client(request)
        id = self._id(request)
        end = Unsubscribe if request.match_info["kind"] == KINDS[0] else Unadvertise
        await self._ask(client, lambda number: end(number, id), lasting=True)
        return web.Response(status=204)

    async def list_claims(self, request: web.Request) -> web.Response:
        """A client's subscriptions or advertisements."""
        _, name = self._client(request)
        client = self._engine.broker.clients.get(name)
        claims = {} if client is None else client.claims[KINDS.index(request.match_info["kind"])]
        listed = [
            {"id": claim.id, "filter": claim.text, "durable": claim.durable, "lease": claim.lease}
            for claim in claims.values()
        ]
        return web.json_response(listed)

    async def _ask(
        self, client: tuple[Principal, str], message: Callable[[int], ClientMessage], *, lasting: bool
    ) -> None:
        principal, name = client
        session = self._engine.client(name)
        if session is not None:
            if session.permissions != principal.permissions:
                raise RefusedError(f"{name} is connected with other permissions; use the same token")
            await self._engine.ask(session, message)
            return
        if not lasting:
            raise RefusedError(f'{name} is not connected, so only a durable one would stay; add "durable": true')
        async with self._temporary(name, principal) as own:
            await self._engine.ask(own, message)

    @asynccontextmanager
    async def _publisher(self, principal: Principal) -> AsyncIterator[Session]:
        """The session that requests of one principal publish in, opened by the first and ended by the last."""
        name = "~http"
        if principal.publish is not None:
            # Two tokens of one name may allow different things, and a session has one set of permissions.
            name += "-" + hashlib.sha256(principal.publish.encode()).hexdigest()[:8]
        if principal.name:
            name = f"{principal.name}/{name}"
        session = self._engine.client(name) or self._engine.open_client(name, principal.permissions, Nowhere())
        self._users[name] += 1
        try:
            yield session
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                self._engine.end(session)

    @asynccontextmanager
    async def _temporary(self, name: str, principal: Principal) -> AsyncIterator[Session]:
        session = self._engine.open_client(name, principal.permissions, Nowhere())
        try:
            yield session
        finally:
            self._engine.end(session)

    def _client(self, request: web.Request) -> tuple[Principal, str]:
        principal = self._identity.client(request)
        return principal, client_name(principal, request.match_info["client"], self._engine.limits.name_length)

    def _id(self, request: web.Request) -> str:
        id = request.match_info["id"]
        longest = self._engine.limits.name_length
        if len(id) > longest:
            raise FrameError(f"a name of {len(id):,} characters; name_length is {longest}")
        return id

    def _rate(self, principal: Principal) -> Rate:
        if principal.name not in self._rates and len(self._rates) >= RATES_KEPT:
            self._rates.clear()
        return self._rates.setdefault(principal.name, Rate(self._engine.limits.event_rate))


def truth(request: web.Request, name: str) -> bool:
    """A yes or no in a request's query."""
    given = request.query.get(name, "false").lower()
    if given not in ("true", "false", "1", "0", ""):
        raise FrameError(f"{name}={given} is neither true nor false")
    return given in ("true", "1", "")
