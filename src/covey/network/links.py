"""Links to neighbours: one WebSocket each, opened by whichever end knows the other's address, again and again.

Both ends may open one at the same time. The one that the broker with the smaller name opened stays: that broker refuses
the other's while its own is there, and the other end gives its own up. So both ends come to the same connection
without talking about it. A neighbour that opens another while the broker still has one from it has lost that one.

What a broker says over a link, and what happens when it breaks, is `covey.routing`'s business; here it is only opened,
with a growing pause after each failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from aiohttp import WSMsgType, web

from covey.network.backoff import Backoff
from covey.network.configuration import ServerConfig
from covey.network.doorway import Doorway
from covey.network.engine import Engine
from covey.network.errors import FrameError, IdentityError
from covey.network.frames import BAD_DATA, GOING_AWAY, PEER_FRAMES, TAKEN, PeerFrame, decode_peer
from covey.network.identity import Identity
from covey.network.sockets import CLOSING_SECONDS, FrameSender, Socket
from covey.network.survey_messages import Ask, Told
from covey.network.surveys import Counted, Surveys
from covey.network.tls import link_context, names_in
from covey.routing.messages import Events, Stream

TELL_AFTER: Final = 3
"""Failures in a row before the log hears of them."""
BROKER_HEADER: Final = "Covey-Broker"

log = logging.getLogger("covey.network")


@dataclass(slots=True)
class Live:
    """The connection that a link has."""

    sender: FrameSender[PeerFrame]
    dialled: bool
    """Whether this end opened it."""
    over: asyncio.Event


@dataclass(frozen=True, slots=True)
class CountingOutlet:
    """Where the broker's messages for a neighbour go; counts the events in them."""

    sender: FrameSender[PeerFrame]
    counted: Counted

    def send(self, messages: list[Any]) -> None:
        """Send messages, in order."""
        self.counted.sent += sum(map(_events_in, messages))
        before = self.sender.sent_bytes
        self.sender.send(messages)
        self.counted.sent_bytes += self.sender.sent_bytes - before

    def close(self, reason: str, code: int) -> None:
        """Send what waits, then close with a reason."""
        self.sender.close(reason, code)


class Links:
    """All links of one broker."""

    def __init__(self, config: ServerConfig, engine: Engine, identity: Identity) -> None:
        self._config = config
        self._own = config.broker.broker
        self._engine = engine
        self._identity = identity
        self._live: dict[str, Live] = {}
        self.surveys = Surveys(engine, lambda: tuple(self._live), self._send)
        self._dialling: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """The links that are opened here, each with its address."""
        identity.neighbours = lambda: engine.broker.links
        self._tls: ssl.SSLContext | None = None
        self.doorway: Doorway | None = None

    def start(self) -> None:
        """Open links from now on."""
        self.use(self.read_tls())
        self.follow()

    @property
    def urls(self) -> dict[str, str]:
        """The neighbours' addresses; empty for those that open the link themselves."""
        broker = self._engine.broker
        return {peer: broker.urls.get(peer, self._config.peers.get(peer, "")) for peer in broker.links}

    def follow(self) -> None:
        """Open links to the neighbours that the broker has now, and no others."""
        urls = self.urls
        for peer, (url, task) in list(self._dialling.items()):
            if urls.get(peer) != url or task.done():
                task.cancel()
                del self._dialling[peer]
        for peer, url in urls.items():
            if url and peer not in self._dialling:
                task = asyncio.create_task(self._keep(peer, url), name=f"link to {peer}")
                self._dialling[peer] = (url, task)

    def read_tls(self) -> ssl.SSLContext | None:
        """How links are opened, as the files are now; None where none needs TLS."""
        if any(url.startswith("wss:") for url in self.urls.values()):
            return link_context(self._config.tls)
        return None

    def use(self, tls: ssl.SSLContext | None) -> None:
        """Open links so from now on."""
        self._tls = tls

    async def stop(self) -> None:
        """Open no more links."""
        tasks = [task for _, task in self._dialling.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def open(self) -> frozenset[str]:
        """Neighbours that are connected."""
        return frozenset(self._live)

    def greet_again(self) -> None:
        """End all links, so that both ends show once more who they are; they are opened again at once."""
        for live in self._live.values():
            live.sender.close("the secret has changed", GOING_AWAY)

    @property
    def sent_bytes(self) -> int:
        """What went to neighbours since the start."""
        return sum(counted.sent_bytes for counted in self.surveys.traffic.values())

    def _send(self, peer: str, message: Ask | Told) -> None:
        live = self._live.get(peer)
        if live is not None:
            live.sender.send([message])

    # Links that come in

    async def accept(self, request: web.Request) -> web.StreamResponse:
        """A neighbour opens a link."""
        peer = request.headers.get(BROKER_HEADER, "")
        self._identity.check_peer(request, peer)
        live = self._live.get(peer)
        if live is not None and live.dialled and self._own < peer:
            raise web.HTTPConflict(text=f"{self._own} has a link to {peer} of its own")
        limits = self._engine.limits
        socket = web.WebSocketResponse(
            max_msg_size=limits.peer_message_bytes + 1,
            heartbeat=limits.heartbeat_seconds,
            timeout=CLOSING_SECONDS,
            compress=False,
        )
        if self.doorway is not None:
            self.doorway.known(request)
        async with asyncio.timeout(limits.handshake_seconds):
            await socket.prepare(request)
        transport = request.transport
        sender = self._sender(socket, transport.abort if transport is not None else lambda: None, transport)
        await self._talk(socket, sender, peer, dialled=False)
        return socket

    # Links that are opened here

    async def _keep(self, peer: str, url: str) -> None:
        backoff = Backoff()
        said, failures = "", 0
        while True:
            live = self._live.get(peer)
            if live is not None:
                await live.over.wait()
            try:
                await self._dial(peer, url, backoff)
                said, failures = "", 0
            except (aiohttp.ClientError, OSError, TimeoutError, IdentityError, ssl.SSLError, ValueError) as error:
                failures += 1
                # That a neighbour starts a moment later is no news.
                if failures >= TELL_AFTER and str(error) != said:
                    log.warning("link to %s at %s: %s", peer, url, error or type(error).__name__)
                    said = str(error)
            await asyncio.sleep(backoff.pause())

    async def _dial(self, peer: str, url: str, backoff: Backoff) -> None:
        limits = self._engine.limits
        headers = {BROKER_HEADER: self._own}
        token = self._identity.link_token()
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        # One HTTP session for each attempt: closing it ends the connection, whatever state it is in.
        async with aiohttp.ClientSession() as http:
            # Not wait_for: in Python 3.11 it can swallow the cancellation of `stop`.
            async with asyncio.timeout(limits.handshake_seconds):
                socket = await http.ws_connect(
                    f"{url.rstrip('/')}/v1/link",
                    headers=headers,
                    ssl=self._tls if self._tls is not None else True,
                    max_msg_size=limits.peer_message_bytes + 1,
                    heartbeat=limits.heartbeat_seconds,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSING_SECONDS),
                )
            self._check_certificate(socket, peer)
            backoff.reset()
            cut = asyncio.Event()
            sender = self._sender(socket, cut.set)
            talking = asyncio.create_task(self._talk(socket, sender, peer, dialled=True))
            cutting = asyncio.create_task(cut.wait())
            try:
                await asyncio.wait([talking, cutting], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (talking, cutting):
                    task.cancel()
                await asyncio.gather(talking, cutting, return_exceptions=True)

    def _check_certificate(self, socket: aiohttp.ClientWebSocketResponse, peer: str) -> None:
        tls = self._config.tls
        if self._tls is None or tls is None or tls.authority is None:
            return
        certificate = socket.get_extra_info("peercert")
        if certificate is not None and peer not in names_in(certificate):
            raise IdentityError(f"its certificate is for {', '.join(names_in(certificate))}, not for {peer}")

    # Both

    def _sender(
        self, socket: Socket, cut: Callable[[], None], transport: asyncio.BaseTransport | None = None
    ) -> FrameSender[PeerFrame]:
        limits = self._engine.limits
        return FrameSender(
            socket,
            PEER_FRAMES,
            buffer_bytes=max(limits.send_buffer_bytes, 2 * limits.peer_message_bytes),
            cut=cut,
            most_bytes=limits.peer_message_bytes,
            transport=transport,
        )

    async def _talk(self, socket: Socket, sender: FrameSender[PeerFrame], peer: str, *, dialled: bool) -> None:
        before = self._live.get(peer)
        if before is not None:
            if dialled and not before.dialled and peer < self._own:
                # The neighbour's own is the one that stays.
                return
            before.sender.close("another link was opened", TAKEN)
        live = self._live[peer] = Live(sender, dialled, asyncio.Event())
        sending = asyncio.create_task(sender.run())
        counted = self.surveys.traffic.setdefault(peer, Counted())
        session = self._engine.open_peer(peer, CountingOutlet(sender, counted))
        log.info("link with %s is open", peer)
        try:
            async for frame in socket:
                if frame.type is WSMsgType.ERROR:
                    break
                if frame.type is not WSMsgType.BINARY:
                    raise FrameError("links have binary frames only", BAD_DATA)
                messages, unknown = decode_peer(frame.data, self._engine.limits)
                self._engine.counts.unknown_messages += unknown
                for message in messages:
                    if isinstance(message, Ask | Told):
                        self.surveys.hear(peer, message)
                    else:
                        counted.received += _events_in(message)
                        self._engine.hear(session, message)
                await self._engine.room(session)
        except FrameError as error:
            self._engine.counts.bad_frames += 1
            log.warning("link with %s: %s", peer, error)
            sender.close(str(error), error.code)
        finally:
            self._engine.end(session)
            self._engine.counts.sessions_cut += sender.overflowed
            if self._live.get(peer) is live:
                del self._live[peer]
            live.over.set()
            if sender.reason and not sending.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([sending], timeout=CLOSING_SECONDS)
            sending.cancel()
            log.info("link with %s is closed%s", peer, f": {sender.reason}" if sender.reason else "")


def _events_in(message: Any) -> int:
    if isinstance(message, Events):
        return len(message.envelopes)
    return len(message.items) if isinstance(message, Stream) else 0
