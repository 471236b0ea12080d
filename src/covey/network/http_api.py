"""HTTP: publishing (CloudEvents or plain JSON), subscriptions and advertisements.

    POST   /v1/events[?durable=true][&client=NAME][&id=ID]      publish; answered when the broker confirmed it
    PUT    /v1/clients/NAME/subscriptions/ID[?replace=true]     {"filter": ..., "durable": true, "lease": 60}
    DELETE /v1/clients/NAME/subscriptions/ID
    GET    /v1/clients/NAME/subscriptions                       the same for advertisements

A request has no session, and the broker knows clients by sessions. So a request uses the session that its client has
open, or opens one for its own duration; deliveries that such a session is sent aren't acknowledged, so they come again
to the client's next one. Without an open session only durable subscriptions make sense, and others are refused. What is
there with another filter stays as it is unless the request says `replace=true`.

An event with an `id` may be sent again, and counts once; of several events each has one, `id=a&id=b` in their order.
Ids are the client's that publishes. A `traceparent` among the headers goes with all events to whoever gets them.

Who publishes names a client where what it has advertised counts (`advertisements = true`); otherwise all requests of a
principal publish in one session.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import msgspec
from aiohttp import web

from covey.network.client_values import ids_of
from covey.network.cloudevents import decompressed, read_events
from covey.network.dialects import claimed_sql
from covey.network.engine import Engine
from covey.network.errors import ConflictError, FrameError, HeldBackError, NetworkError, RefusedError
from covey.network.identity import Caller, Identity, client_name
from covey.network.sessions import Session
from covey.network.tokens import Principal
from covey.routing.messages import (
    Advertise,
    ClientMessage,
    Permissions,
    Publication,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from covey.routing.traces import is_trace

KINDS: Final = ("subscriptions", "advertisements")
NamedCaller: TypeAlias = tuple[Caller, str]
"""Who makes a request, and the client that it is made for."""


class ClaimBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a subscription or an advertisement."""

    filter: str
    durable: bool = False
    lease: float | None = None
    dialect: str = "sql"


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
        self._accounts = engine.accounts
        self._users: dict[Session, int] = {}
        """Requests that use a session which some request opened."""

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        claims = "/v1/clients/{client}/{kind:subscriptions|advertisements}"
        claim = claims + "/{id}"
        return [
            web.post("/v1/events", self.publish),
            web.put(claim, self.put_claim),
            web.delete(claim, self.delete_claim),
            web.get(claims, self.list_claims, allow_head=False),
        ]

    async def publish(self, request: web.Request) -> web.Response:
        """Publish the events in a request's body."""
        caller = self._identity.caller(request)
        durable = truth(request, "durable")
        limits = self._engine.limits
        body = decompressed(await request.read(), request.headers.get("Content-Encoding"), limits)
        events = read_events(request.headers, body, limits)
        self._check_rates(caller, len(events), len(body))
        if self._engine.is_pressed:
            raise HeldBackError(f"publishers are held back: {self._engine.broker.pressure}")
        await self._engine.room()
        ids = self._ids(request, len(events))
        # As the W3C has it, one that can't be read is as if there were none.
        trace = request.headers.get("traceparent", "").strip()
        trace = trace if is_trace(trace) else ""
        publications = [Publication(event, durable, id=id) for event, id in zip(events, ids, strict=True)]
        async with self._session(caller, self._publisher(request, caller.principal)) as session:
            await self._engine.ask(session, lambda request: Publish(request, publications, trace))
        return web.json_response({"published": len(events)}, status=202)

    async def put_claim(self, request: web.Request) -> web.Response:
        """Make a subscription or an advertisement."""
        client = self._client(request)
        id = self._id(request)
        self._check_rates(client[0], 0, request.content_length or 0)
        try:
            body = msgspec.json.decode(await request.read(), type=ClaimBody)
        except (msgspec.DecodeError, ValueError) as error:
            raise FrameError(f'{error}; send {{"filter": "price < 10", "durable": true}}') from None
        text = claimed_sql(body.filter, body.dialect)
        make = Subscribe if request.match_info["kind"] == KINDS[0] else Advertise

        def message(number: int) -> ClientMessage:
            return make(number, id, text, body.durable, body.lease)

        self._check_replaces(request, client, id, body)
        await self._ask(client, message, lasting=body.durable or body.lease is not None)
        return web.json_response({"id": id, "filter": text, "durable": body.durable, "lease": body.lease})

    async def delete_claim(self, request: web.Request) -> web.Response:
        """End a subscription or an advertisement."""
        client = self._client(request)
        id = self._id(request)
        self._check_rates(client[0], 0, request.content_length or 0)
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

    def _check_rates(self, caller: Caller, events: int, size: int) -> None:
        """Raises HTTPTooManyRequests for who sends too much."""
        wait = self._accounts.take(caller.account, 1, events, size, time.monotonic())
        if wait > 1.0:
            raise web.HTTPTooManyRequests(
                text="too much in a second (event_rate, message_rate, byte_rate, processor_share); send it later",
                headers={"Retry-After": f"{wait:.0f}"},
            )

    def _check_replaces(self, request: web.Request, client: NamedCaller, id: str, body: ClaimBody) -> None:
        """Raises ConflictError where something else would be replaced, and with it what waits for it."""
        known = self._engine.broker.clients.get(client[1])
        there = None if known is None else known.claims[KINDS.index(request.match_info["kind"])].get(id)
        if there is None or truth(request, "replace"):
            return
        if there.text != body.filter:
            raise ConflictError(f"{id!r} is there already, with another filter; say replace=true to replace it")
        if there.durable and not body.durable:
            raise ConflictError(f"{id!r} is there already, and durable; say replace=true to replace it")

    async def _ask(self, client: NamedCaller, message: Callable[[int], ClientMessage], *, lasting: bool) -> None:
        caller, name = client
        if not lasting and self._engine.client(name) is None:
            raise RefusedError(
                f'{name} is not connected, so only a durable one or a lease would stay; add "durable": true'
            )
        async with self._session(caller, name) as session:
            await self._engine.ask(session, message)

    @staticmethod
    def _ids(request: web.Request, events: int) -> list[str]:
        """The publisher's own names for its events; empty ones where it gave none."""
        given = request.query.getall("id", [])
        if not given:
            return [""] * events
        try:
            return ids_of(given, events)
        except NetworkError as error:
            raise FrameError(str(error).replace("id=[...]", "id=A&id=B")) from None

    def _publisher(self, request: web.Request, principal: Principal) -> str:
        """The client that a request publishes as."""
        if "client" in request.query:
            return client_name(principal, request.query["client"], self._engine.limits.name_length)
        name = "~http"
        if principal.permissions != Permissions():
            # Two tokens of one name may allow different things, and a session has one set of permissions.
            name += "-" + hashlib.sha256(msgspec.json.encode(principal.permissions)).hexdigest()[:8]
        return f"{principal.name}/{name}" if principal.name else name

    @asynccontextmanager
    async def _session(self, caller: Caller, name: str) -> AsyncIterator[Session]:
        """The session that a client has open; or one that requests at the same time share, opened by the first of them
        and ended by the last."""
        session = self._engine.client(name)
        if session is None:
            session = self._engine.open_client(name, caller.principal.permissions, Nowhere(), caller.account)
            self._users[session] = 0
        if session.permissions != caller.principal.permissions:
            raise RefusedError(f"{name} is connected with other permissions; use the same token")
        if session not in self._users:
            yield session
            return
        self._users[session] += 1
        try:
            yield session
        finally:
            self._users[session] -= 1
            if not self._users[session]:
                del self._users[session]
                self._engine.end(session)

    def _client(self, request: web.Request) -> NamedCaller:
        caller = self._identity.caller(request)
        return caller, client_name(caller.principal, request.match_info["client"], self._engine.limits.name_length)

    def _id(self, request: web.Request) -> str:
        id = request.match_info["id"]
        longest = self._engine.limits.name_length
        if len(id) > longest:
            raise FrameError(f"a name of {len(id):,} characters; name_length is {longest}")
        return id


def truth(request: web.Request, name: str) -> bool:
    """A yes or no in a request's query."""
    given = request.query.get(name, "false").lower()
    if given not in ("true", "false", "1", "0", ""):
        raise FrameError(f"{name}={given} is neither true nor false")
    return given in ("true", "1", "")
