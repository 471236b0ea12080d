"""Server-sent events, for `curl` and browsers: `GET /v1/events?filter=price<10`.

A stream is a client's session with one subscription. With `client=NAME&durable=true` what matches while nobody listens
is kept, and `Last-Event-ID` (which browsers send by themselves) says what needn't come again. A stream can't
acknowledge, so what was handed to the connection counts as received; who needs more uses the WebSocket. Deliveries are
granted one by one as the connection takes them, so a slow reader is the broker's slow consumer, with gaps and all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from covey.network.client_sockets import Connections
from covey.network.cloudevents import to_cloudevent
from covey.network.engine import Engine
from covey.network.errors import FrameError
from covey.network.frames import TRY_LATER
from covey.network.http_api import truth
from covey.network.identity import Identity, client_name
from covey.network.sessions import Session
from covey.network.tokens import Principal
from covey.routing.messages import Acknowledge, Credit, Deliver, Expired, Gap, Subscribe

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


class Inbox:
    """What the broker has sent to a stream, as text; bounded in number by the credit that the stream grants, and in
    bytes like any connection's."""

    def __init__(self, most_bytes: int, seen: int, *, as_cloudevents: bool) -> None:
        self.parts: deque[Part] = deque()
        self.closed: str | None = None
        self.ready = asyncio.Event()
        self._most_bytes = most_bytes
        self._waiting = 0
        self._seen = seen
        self._as_cloudevents = as_cloudevents

    def send(self, messages: list[Any]) -> None:
        """Keep messages until the stream takes them."""
        for message in messages:
            part = self._part(message)
            if part is not None and self.closed is None:
                self.parts.append(part)
                self._waiting += len(part.text)
        if self._waiting > self._most_bytes:
            self.parts.clear()
            self.close("too slow: more is waiting than send_buffer_bytes", TRY_LATER)
        self.ready.set()

    def take(self) -> list[Part]:
        """All that waits."""
        taken = list(self.parts)
        self.parts.clear()
        self._waiting = 0
        return taken

    def _part(self, message: Any) -> Part | None:
        match message:
            case Deliver():
                known = 0 < message.number <= self._seen
                return Part(b"" if known else _delivery(message, self._as_cloudevents), message.number)
            case Gap():
                return Part(_event("gap", {"deliveries": message.deliveries}))
            case Expired():
                return Part(_event("expired", {"id": message.id}))
        return None

    def close(self, reason: str, code: int) -> None:  # noqa: ARG002
        """End the stream."""
        self.closed = reason
        self.ready.set()


class EventStreams:
    """Serves streams."""

    def __init__(self, engine: Engine, identity: Identity, connections: Connections) -> None:
        self._engine = engine
        self._identity = identity
        self._connections = connections

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        return [web.get("/v1/events", self.serve, allow_head=False)]

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One stream, from its opening to its end."""
        principal = self._identity.client(request)
        text = request.query.get("filter")
        if text is None:
            raise FrameError("a stream needs a filter: /v1/events?filter=price<10")
        name = client_name(principal, request.query.get("client"), self._engine.limits.name_length)
        with self._connections.one(principal):
            last = request.headers.get("Last-Event-ID", "")
            inbox = Inbox(
                self._engine.limits.send_buffer_bytes,
                int(last) if last.isascii() and last.isdigit() and len(last) < 19 else 0,
                as_cloudevents=request.query.get("format") == "cloudevents",
            )
            session = self._engine.open_client(name, principal.permissions, inbox)
            try:
                await self._engine.ask(session, self._subscribe(request, text))
                return await self._stream(request, principal, session, inbox)
            finally:
                self._engine.end(session)

    def _subscribe(self, request: web.Request, text: str) -> Any:
        durable = truth(request, "durable")
        if durable and "client" not in request.query:
            raise FrameError("a durable stream needs a name to come back to: client=NAME")
        try:
            lease = float(request.query["lease"]) if "lease" in request.query else None
        except ValueError:
            raise FrameError(f"lease={request.query['lease']} is not a number of seconds") from None
        id = request.query.get("id", SUBSCRIPTION)[: self._engine.limits.name_length]
        return lambda number: Subscribe(number, id, text, durable, lease)

    async def _stream(
        self, request: web.Request, principal: Principal, session: Session, inbox: Inbox
    ) -> web.StreamResponse:
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
            if principal.expires is not None and principal.expires <= self._engine.clock():
                await response.write(_event("closed", {"reason": "the token has expired"}))
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
            self._engine.say(session, Credit(len(numbers)))


def _delivery(message: Deliver, as_cloudevents: bool) -> bytes:
    if as_cloudevents:
        body: Any = to_cloudevent(message.attributes, message.event, message.publisher)
    else:
        body = {
            "event": message.event,
            "publisher": message.publisher,
            "subscriptions": message.subscriptions,
            "attributes": message.attributes,
        }
    named = b"id: %d\n" % message.number if message.number else b""
    return b"%sdata: %s\n\n" % (named, _encode(body))


def _event(name: str, body: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), _encode(body))
