"""The WebSocket that clients use: `GET /v1/client?client=NAME`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import WSMsgType, web

from covey.network.doorway import Doorway
from covey.network.engine import Engine
from covey.network.errors import FrameError, IdentityError, NetworkError
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
from covey.network.identity import Caller, Identity, client_name
from covey.network.sessions import Session
from covey.network.sockets import CLOSING_SECONDS, FrameSender
from covey.network.standing import Standing
from covey.network.tokens import Principal
from covey.routing.messages import CAPABILITIES, ClientAnswer, Publish

LAST_ROUNDS: Final = 3
"""Of the loop, in which a connection that was closed is gone, where nothing was left to be sent."""

log = logging.getLogger("covey.network")


class TooManyError(NetworkError):
    """No more connections."""


class Connections:
    """Counts connections, of all and of each principal."""

    def __init__(self, engine: Engine) -> None:
        self._limits = engine.limits
        self._counts = engine.counts
        self._by_name: Counter[str] = Counter()
        self.doorway: Doorway | None = None
        """Where connections come from, which counts those that are nobody's session."""

    @property
    def open(self) -> int:
        """Connections at present."""
        return self._by_name.total()

    @property
    def are_full(self) -> bool:
        """Whether nobody else can connect."""
        most = self._limits.connections
        return self.open >= (most if self.doorway is None else min(most, self.doorway.most_sessions))

    @contextmanager
    def one(self, principal: Principal, request: web.Request) -> Iterator[None]:
        """Count one connection while it is there; raises TooManyError."""
        name, limits = principal.name, self._limits
        if self.are_full or (name and self._by_name[name] >= limits.client_connections):
            self._counts.refused_connections += 1
            raise TooManyError(
                "there are too many connections (limits connections, client_connections, or the process's open files); "
                "try again later"
            )
        self._by_name[name] += 1
        if self.doorway is not None:
            self.doorway.known(request)
        try:
            yield
        finally:
            self._by_name[name] -= 1
            if not self._by_name[name]:
                del self._by_name[name]


def capabilities_of(request: web.Request) -> list[str]:
    """What a client says that it knows of beyond protocol 1, as far as this broker knows it too."""
    said = request.query.get("capabilities", "").split(",")
    return [name for name in CAPABILITIES if name in said]


class ClientSockets:
    """Serves clients over WebSockets."""

    def __init__(self, engine: Engine, identity: Identity, standing: Standing, connections: Connections) -> None:
        self._engine = engine
        self._accounts = engine.accounts
        self._identity = identity
        self._standing = standing
        self._connections = connections

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One connection, from its opening to its end."""
        limits = self._engine.limits
        caller = self._identity.caller(request)
        name = client_name(caller.principal, request.query.get("client"), limits.name_length)
        with self._connections.one(caller.principal, request):
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
            try:
                await self._talk(request, socket, caller, name)
            finally:
                await _let_go(request, socket)
        return socket

    async def _talk(self, request: web.Request, socket: web.WebSocketResponse, caller: Caller, name: str) -> None:
        engine = self._engine

        def cut() -> None:
            if request.transport is not None:
                request.transport.abort()

        codec = ANSWERS_WRITTEN if socket.ws_protocol == WRITTEN else ANSWERS_PACKED
        sender: FrameSender[ClientAnswer] = FrameSender(
            socket, codec, buffer_bytes=engine.limits.send_buffer_bytes, cut=cut, buffers=engine.buffers,
            transport=request.transport,
        )  # fmt: skip
        sending = asyncio.create_task(sender.run())
        try:
            session = self._standing.open(caller, name, sender, capabilities_of(request))
        except IdentityError as error:
            sender.close(str(error), POLICY)
            await asyncio.wait([sending], timeout=CLOSING_SECONDS)
            sending.cancel()
            return
        try:
            await self._read(socket, session)
        except FrameError as error:
            engine.counts.bad_frames += 1
            log.info("client %s: %s", name, error)
            sender.close(str(error), error.code)
            await asyncio.wait([sending], timeout=CLOSING_SECONDS)
        finally:
            self._standing.end(session)
            engine.counts.sessions_cut += sender.overflowed
            if sender.reason and not sending.done():
                await asyncio.wait([sending], timeout=CLOSING_SECONDS)
            sending.cancel()

    async def _read(self, socket: web.WebSocketResponse, session: Session) -> None:
        limits = self._engine.limits
        held = 0
        async for frame in socket:
            if frame.type is WSMsgType.ERROR:
                break
            if frame.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                raise FrameError("only binary and text frames are understood", BAD_DATA)
            if len(frame.data) > limits.message_bytes:
                raise FrameError(f"a frame of {len(frame.data):,} bytes; message_bytes is the limit", TOO_LARGE)
            messages = decode_client(frame.data, limits)
            events = sum(len(message.events) for message in messages if isinstance(message, Publish))
            delay = self._accounts.take(session.owner, len(messages), events, len(frame.data), time.monotonic())
            for message in messages:
                self._engine.say(session, message)
            if delay:
                await asyncio.sleep(delay)
            held = held + len(frame.data) if events and self._engine.is_pressed else 0
            if held > limits.message_bytes:
                # A client that was told waits by itself. One that goes on is read no further, what it takes included.
                await self._engine.unpressed()
            await self._engine.room(session)


async def _let_go(request: web.Request, socket: web.WebSocketResponse) -> None:
    """Close a connection that its client has left, and break what would keep all that a session had until the garbage
    collector looks at everything: a heartbeat that goes on and fails some day, the traceback of why the connection
    couldn't be closed, and the protocol's way back to the socket."""
    try:
        await socket.close(drain=False)
        rounds = LAST_ROUNDS
        while request.transport is not None and rounds:
            rounds -= 1
            await asyncio.sleep(0)
    finally:
        error = socket.exception()
        if error is not None:
            error.__traceback__ = error.__context__ = None
        if request.transport is None:
            request.protocol.set_parser(_Nobody())  # type: ignore[arg-type]


class _Nobody:
    """Reads what comes after the end."""

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        return True, data
