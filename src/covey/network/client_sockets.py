"""The WebSocket that clients use: `GET /v1/client?client=NAME`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import WSMsgType, web

from covey.network.engine import Engine
from covey.network.errors import FrameError, NetworkError
from covey.network.frames import (
    ANSWERS_PACKED,
    ANSWERS_WRITTEN,
    BAD_DATA,
    PACKED,
    POLICY,
    TOO_LARGE,
    WRITTEN,
    decode_client,
)
from covey.network.identity import Identity, client_name
from covey.network.limits import Rate
from covey.network.sessions import Session
from covey.network.sockets import CLOSING_SECONDS, FrameSender
from covey.network.tokens import Principal
from covey.routing.messages import ClientAnswer, Publish

log = logging.getLogger("covey.network")


class TooManyError(NetworkError):
    """No more connections."""


class Connections:
    """Counts connections, of all and of each principal."""

    def __init__(self, engine: Engine) -> None:
        self._limits = engine.limits
        self._counts = engine.counts
        self._by_name: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Connections at present."""
        return self._by_name.total()

    @contextmanager
    def one(self, principal: Principal) -> Iterator[None]:
        """Count one connection while it is there; raises TooManyError."""
        name, limits = principal.name, self._limits
        if self.open >= limits.connections or (name and self._by_name[name] >= limits.client_connections):
            self._counts.refused_connections += 1
            raise TooManyError(
                "there are too many connections (limits connections, client_connections); try again later"
            )
        self._by_name[name] += 1
        try:
            yield
        finally:
            self._by_name[name] -= 1
            if not self._by_name[name]:
                del self._by_name[name]


class ClientSockets:
    """Serves clients over WebSockets."""

    def __init__(self, engine: Engine, identity: Identity, connections: Connections) -> None:
        self._engine = engine
        self._identity = identity
        self._connections = connections

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One connection, from its opening to its end."""
        limits = self._engine.limits
        principal = self._identity.client(request)
        name = client_name(principal, request.query.get("client"), limits.name_length)
        with self._connections.one(principal):
            socket = web.WebSocketResponse(
                protocols=(PACKED, WRITTEN),
                # aiohttp refuses what has as many bytes.
                max_msg_size=limits.message_bytes + 1,
                heartbeat=limits.heartbeat_seconds,
                timeout=CLOSING_SECONDS,
                compress=False,
            )
            async with asyncio.timeout(limits.handshake_seconds):
                await socket.prepare(request)
            await self._talk(request, socket, principal, name)
        return socket

    async def _talk(self, request: web.Request, socket: web.WebSocketResponse, principal: Principal, name: str) -> None:
        engine = self._engine

        def cut() -> None:
            if request.transport is not None:
                request.transport.abort()

        codec = ANSWERS_WRITTEN if socket.ws_protocol == WRITTEN else ANSWERS_PACKED
        sender: FrameSender[ClientAnswer] = FrameSender(
            socket, codec, buffer_bytes=engine.limits.send_buffer_bytes, cut=cut
        )
        sending = asyncio.create_task(sender.run())
        session = engine.open_client(name, principal.permissions, sender)
        expiry = None
        if principal.expires is not None:
            left = principal.expires - engine.clock()
            expiry = asyncio.get_running_loop().call_later(left, sender.close, "the token has expired", POLICY)
        try:
            await self._read(socket, session)
        except FrameError as error:
            engine.counts.bad_frames += 1
            log.info("client %s: %s", name, error)
            sender.close(str(error), error.code)
            await asyncio.wait([sending], timeout=CLOSING_SECONDS)
        finally:
            engine.end(session)
            engine.counts.sessions_cut += sender.overflowed
            if expiry is not None:
                expiry.cancel()
            if sender.reason and not sending.done():
                await asyncio.wait([sending], timeout=CLOSING_SECONDS)
            sending.cancel()

    async def _read(self, socket: web.WebSocketResponse, session: Session) -> None:
        limits = self._engine.limits
        messages_rate, events_rate = Rate(limits.message_rate), Rate(limits.event_rate)
        async for frame in socket:
            if frame.type is WSMsgType.ERROR:
                break
            if frame.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                raise FrameError("only binary and text frames are understood", BAD_DATA)
            if len(frame.data) > limits.message_bytes:
                raise FrameError(f"a frame of {len(frame.data):,} bytes; message_bytes is the limit", TOO_LARGE)
            messages = decode_client(frame.data, limits)
            now = time.monotonic()
            events = sum(len(message.events) for message in messages if isinstance(message, Publish))
            delay = max(messages_rate.take(len(messages), now), events_rate.take(events, now) if events else 0.0)
            for message in messages:
                self._engine.say(session, message)
            if delay:
                await asyncio.sleep(delay)
            await self._engine.room()
