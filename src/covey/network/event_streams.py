"""Server-sent events, for `curl` and browsers: `GET /v1/events?filter=price<10`.

A stream is a client's session with one subscription, which ends with it. A durable one, for which what matches while
nobody listens is kept, is made by `PUT /v1/clients/NAME/subscriptions/ID` and read by `client=NAME&id=ID`: anything can
make a browser send a GET, so a GET neither makes nor replaces what lasts. `Last-Event-ID` (which browsers send by
themselves) says what needn't come again. A stream can't acknowledge, so what was handed to the connection counts as
received; who needs more uses the WebSocket. Deliveries are granted one by one as the connection takes them, so a slow
reader is the broker's slow consumer, with gaps and all. A stream ends with its token.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec
from aiohttp import web

from covey.network.client_sockets import Connections
from covey.network.cloudevents import to_cloudevent
from covey.network.dialects import claimed_sql
from covey.network.engine import Engine
from covey.network.errors import ConflictError, FrameError, MissingError
from covey.network.frames import TRY_LATER
from covey.network.http_api import truth
from covey.network.identity import Identity, client_name
from covey.network.send_buffers import SendBuffers
from covey.network.sessions import Session
from covey.network.standing import Standing
from covey.routing.messages import (
    COUNTS_BYTES,
    KNOWS_LOSSES,
    Acknowledge,
    ClientMessage,
    Credit,
    Deliver,
    Expired,
    Gap,
    Lost,
    Subscribe,
)
from covey.routing.packed_events import one_by_one

SUBSCRIPTION: Final = "events"
"""The name of a stream's subscription, unless it says another."""
KEEP_ALIVE_SECONDS: Final = 15.0
"""A silent stream says so, for the sake of proxies."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stream: its text, and the number to acknowledge once it was taken; None for what is no delivery."""

    text: bytes
    number: int | None = None
    bytes: int = 0
    """What it took of the credit."""


class Inbox:
    """What the broker has sent to a stream, as text; bounded in number by the credit that the stream grants, and in
    bytes like any connection's."""

    def __init__(self, most_bytes: int, seen: int, *, as_cloudevents: bool, buffers: SendBuffers | None = None) -> None:
        self.parts: deque[Part] = deque()
        self.closed: str | None = None
        self.ready = asyncio.Event()
        self._most_bytes = most_bytes
        self._buffers = buffers
        self._waiting = 0
        self._seen = seen
        self._as_cloudevents = as_cloudevents

    def send(self, messages: list[Any]) -> None:
        """Keep messages until the stream takes them."""
        for message in one_by_one(messages):
            part = self._part(message)
            if part is not None and self.closed is None:
                self.parts.append(part)
                self._count(len(part.text))
        if self._waiting > self._most_bytes and len(self.parts) > 1:
            self.overflow()
        self.ready.set()

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the stream hasn't taken."""
        return self._waiting

    def _count(self, bytes: int) -> None:
        self._waiting += bytes
        if self._buffers is not None:
            self._buffers.changed(self, bytes)

    def overflow(self) -> None:
        """Too much waits, here or for all connections together."""
        self.parts.clear()
        self._count(-self._waiting)
        self.close("too slow: more is waiting than send_buffer_bytes, or than send_buffers_bytes for all", TRY_LATER)

    def take(self) -> list[Part]:
        """All that waits."""
        taken = list(self.parts)
        self.parts.clear()
        self._count(-self._waiting)
        return taken

    def _part(self, message: Any) -> Part | None:
        match message:
            case Deliver():
                known = 0 < message.number <= self._seen
                return Part(b"" if known else _delivery(message, self._as_cloudevents), message.number, message.bytes)
            case Gap():
                return Part(_event("gap", {"deliveries": message.deliveries}))
            case Lost():
                return Part(_event("lost", {"events": message.events}))
            case Expired():
                return Part(_event("expired", {"id": message.id}))
        return None

    def close(self, reason: str, code: int) -> None:  # noqa: ARG002
        """End the stream."""
        self.closed = reason
        self.ready.set()


class EventStreams:
    """Serves streams."""

    def __init__(self, engine: Engine, identity: Identity, standing: Standing, connections: Connections) -> None:
        self._engine = engine
        self._identity = identity
        self._standing = standing
        self._connections = connections

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        return [web.get("/v1/events", self.serve, allow_head=False)]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One stream, from its opening to its end."""
        caller = self._identity.caller(request)
        name = client_name(caller.principal, request.query.get("client"), self._engine.limits.name_length)
        wanted = self._wanted(request, name)
        with self._connections.one(caller.principal, request):
            last = request.headers.get("Last-Event-ID", "")
            inbox = Inbox(
                self._engine.limits.send_buffer_bytes,
                int(last) if last.isascii() and last.isdigit() and len(last) < 19 else 0,
                as_cloudevents=request.query.get("format") == "cloudevents",
                buffers=self._engine.buffers,
            )
            session = self._standing.open(caller, name, inbox, (COUNTS_BYTES, KNOWS_LOSSES))
            try:
                if wanted is not None:
                    await self._engine.ask(session, wanted)
                return await self._stream(request, session, inbox)
            finally:
                inbox.take()
                self._standing.end(session)

    def _wanted(self, request: web.Request, name: str) -> Callable[[int], ClientMessage] | None:
        """The subscription that a stream makes; None where it reads one that is there."""
        id = request.query.get("id", SUBSCRIPTION)[: self._engine.limits.name_length]
        text, durable = request.query.get("filter"), truth(request, "durable")
        if text is not None:
            text = claimed_sql(text, request.query.get("dialect", "sql"))
        client = self._engine.broker.clients.get(name)
        there = None if client is None else client.claims.subscriptions.get(id)
        if there is not None and there.durable:
            if text is not None and text != there.text:
                raise ConflictError(
                    f"there is a durable subscription {id!r} already, with another filter; read it without filter=, "
                    f"or replace it first: PUT {_path(request, id)}?replace=true"
                )
            return None
        if client is not None and any(claim.durable for claim in client.claims.subscriptions.values()):
            raise ConflictError(
                f"this client has durable subscriptions, and {id!r} is none of them; "
                "read one of those by id=, or stream under another name"
            )
        if durable:
            if "client" not in request.query:
                raise FrameError("a durable stream needs a name to come back to: client=NAME")
            raise MissingError(
                f"there is no durable subscription {id!r} to read, and a GET makes none; "
                f'make it first: PUT {_path(request, id)} with {{"filter": ..., "durable": true}}'
            )
        if text is None:
            raise FrameError("a stream needs a filter: /v1/events?filter=price<10")
        try:
            lease = float(request.query["lease"]) if "lease" in request.query else None
        except ValueError:
            raise FrameError(f"lease={request.query['lease']} is not a number of seconds") from None
        return lambda number: Subscribe(number, id, text, False, lease)

    async def _stream(self, request: web.Request, session: Session, inbox: Inbox) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        await response.prepare(request)
        await response.write(b": subscribed\n\n")
        while True:
            while inbox.parts:
                await self._pass_on(response, session, inbox.take())
            if inbox.closed is not None:
                await response.write(_event("closed", {"reason": inbox.closed}))
                return response
            inbox.ready.clear()
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    await inbox.ready.wait()
            except TimeoutError:
                await response.write(b": nothing new\n\n")

    async def _pass_on(self, response: web.StreamResponse, session: Session, parts: list[Part]) -> None:
        """Write what is there, then say to the broker that it was taken."""
        text = b"".join(part.text for part in parts)
        if text:
            await response.write(text)
        numbers = [part.number for part in parts if part.number is not None]
        if any(numbers):
            self._engine.say(session, Acknowledge(max(numbers)))
        if numbers:
            self._engine.say(session, Credit(len(numbers), sum(part.bytes for part in parts)))


def _path(request: web.Request, id: str) -> str:
    return f"/v1/clients/{quote(request.query.get('client', 'NAME'), safe='')}/subscriptions/{quote(id, safe='')}"


def _delivery(message: Deliver, as_cloudevents: bool) -> bytes:
    if as_cloudevents:
        body: Any = to_cloudevent(message.attributes, message.event, message.publisher)
        if message.trace:
            body.setdefault("traceparent", message.trace)
    else:
        body = {
            "event": message.event,
            "publisher": message.publisher,
            "subscriptions": message.subscriptions,
            "attributes": message.attributes,
        }
        if message.trace:
            body["trace"] = message.trace
    named = b"id: %d\n" % message.number if message.number else b""
    return b"%sdata: %s\n\n" % (named, _encode(body))


def _event(name: str, body: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), _encode(body))
