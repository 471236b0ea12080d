"""The server: one broker, its journal, and one port for clients, neighbours and operators."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web

from covey.network.admin import Admin
from covey.network.client_sockets import ClientSockets, Connections, TooManyError
from covey.network.configuration import ServerConfig
from covey.network.doorway import Doorway
from covey.network.engine import Clock, Engine
from covey.network.errors import (
    ConflictError,
    ConnectionLostError,
    FrameError,
    HeldBackError,
    IdentityError,
    MissingError,
    NetworkError,
    OriginError,
    RefusedError,
)
from covey.network.event_streams import EventStreams
from covey.network.extensions import Extension, ServerParts
from covey.network.frames import TOO_LARGE
from covey.network.hits import Hits
from covey.network.http_api import HttpApi
from covey.network.http_log import HttpLog
from covey.network.identity import Identity
from covey.network.links import Links
from covey.network.load_meter import LoadMeter
from covey.network.loading import Loads
from covey.network.marks import Marks
from covey.network.neighbours import Neighbours
from covey.network.rehearsal import rehearse
from covey.network.reloads import Reloads
from covey.network.rerouting import Rerouting
from covey.network.standing import Standing
from covey.network.storage import Journal, MemoryJournal, SqliteJournal
from covey.network.tls import ServerTls

KEEP_ALIVE_SECONDS: Final = 30.0
"""An HTTP connection without a request is closed after this."""
STOPPING_SECONDS: Final = 3.0
"""Requests under way may take so long when the server stops."""

log = logging.getLogger("covey.network")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """One broker on a port. Use it as an asynchronous context manager, or `start` and `stop` it."""

    def __init__(self, config: ServerConfig, doors: Iterable[Extension] = ()) -> None:
        self.config = config
        self._doors = tuple(doors)
        self._runner: web.AppRunner | None = None
        self._engine: Engine | None = None
        self._links: Links | None = None
        self._neighbours: Neighbours | None = None
        self.standing: Standing | None = None
        """Who is connected, while the server runs."""
        self._reloads: Reloads | None = None
        self._doorway: Doorway | None = None
        self._marks: Marks | None = None
        self._meter: LoadMeter | None = None
        self._rerouting: Rerouting | None = None
        self._port = config.port

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def url(self) -> str:
        """What clients on this machine connect to."""
        scheme = "ws" if self.config.tls is None else "wss"
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"{scheme}://{host}:{self._port}"

    @property
    def engine(self) -> Engine:
        """The broker, driven; while the server runs."""
        assert self._engine is not None, "the server isn't started"
        return self._engine

    async def start(self) -> None:
        """Restore the broker, listen, and open links."""
        await asyncio.to_thread(rehearse)
        config = self.config
        tls = None if config.tls is None else ServerTls(config.tls)
        journal: Journal = (
            MemoryJournal() if config.data is None else SqliteJournal(config.data, config.broker.broker)
        )  # fmt: skip
        try:
            clock = Clock()
            self._engine = Engine(config.broker, journal, config.limits, clock)
            self._marks = Marks(self._engine, journal, self._engine.buffers)
        except BaseException:
            journal.close()
            raise
        identity = Identity(config)
        self.standing = Standing(self._engine, identity)
        links = self._links = Links(config, self._engine, identity)
        self._neighbours = Neighbours(self._engine, identity, links)
        self._meter = LoadMeter(self._engine, config.broker, lambda: links.sent_bytes)
        self._rerouting = Rerouting(config, self._engine, self._meter)
        self._reloads = Reloads(
            config, identity, self.standing, links, self._neighbours, self._rerouting, self._engine.counts, tls
        )  # fmt: skip
        connections = Connections(self._engine)
        self._doorway = connections.doorway = links.doorway = Doorway(
            config.limits, self._engine.counts, lambda: connections.open + len(links.open)
        )
        try:
            self._runner = web.AppRunner(
                self._application(self._engine, identity, self.standing, connections),
                access_log=None,
                logger=HttpLog(self._engine.counts),
                auto_decompress=False,
                handler_cancellation=True,
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                shutdown_timeout=STOPPING_SECONDS,
            )
            await self._runner.setup()
            assert self._runner.server is not None
            await self._doorway.open(
                config.host, config.port, self._runner.server, None if tls is None else tls.context
            )
        except BaseException:
            await self.stop()
            raise
        self._port = self._doorway.port
        self._links.start()
        self._reloads.start()
        for remark in config.remarks:
            log.warning("%s", remark)
        self._marks.start()
        self._meter.start()
        log.debug("broker %s listens on %s", config.broker.broker, self.url)

    async def reload(self) -> bool:
        """Read again who may connect and do what, and apply it to all who are connected; False where the files are
        wrong, which changes nothing and is logged."""
        assert self._reloads is not None, "the server isn't started"
        return await self._reloads.reload()

    async def reroute(self, **options: Any) -> None:
        """Route by another strategy, or other options, from now on: `strategy`, `merging`, `subsumption`, `pruning` and
        `adaptive`, as `BrokerConfig` has them. Tables follow when there is time. Raises ConfigError for what can't."""
        assert self._rerouting is not None, "the server isn't started"
        await self._rerouting.change(**options)

    async def stop(self) -> None:
        """Close everything; what was confirmed is on the disk."""
        # Whoever is sent away comes again at once, and must find the door closed.
        if self._doorway is not None:
            self._doorway.close()
        if self._reloads is not None:
            await self._reloads.stop()
        if self.standing is not None:
            self.standing.stop()
        if self._meter is not None:
            await self._meter.stop()
        if self._marks is not None:
            await self._marks.stop()
        if self._links is not None:
            await self._links.stop()
        if self._engine is not None:
            await self._engine.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def serve(self) -> None:
        """Go on until the broker fails; raises why."""
        await asyncio.shield(self.engine.stopped)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _application(
        self, engine: Engine, identity: Identity, standing: Standing, connections: Connections
    ) -> web.Application:
        doorway, links, neighbours = self._doorway, self._links, self._neighbours
        assert doorway is not None
        assert links is not None
        assert neighbours is not None

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                with doorway.request(request):
                    identity.check_origin(request)
                    return await handler(request)
            except NetworkError as error:
                return _refusal(error)
            except ConnectionError:
                # Whoever asked is gone, so nobody reads the answer; that is no defect to log.
                return web.Response(status=503)

        parts = ServerParts(self.config, engine, identity, links.surveys)
        application = web.Application(middlewares=[guard], client_max_size=engine.limits.message_bytes)
        application.add_routes(
            [
                web.get("/v1/client", ClientSockets(engine, identity, standing, connections).serve, allow_head=False),
                web.get("/v1/link", links.accept, allow_head=False),
                *EventStreams(engine, identity, standing, connections).routes(),
                *HttpApi(engine, identity).routes(),
                *Admin(self.config, engine, identity, links, connections).routes(),
                *Hits(engine, identity).routes(),
                *Loads(engine, identity).routes(),
                *neighbours.routes(),
                *(route for door in self._doors for route in door(parts)),
            ]
        )
        return application


def _refusal(error: NetworkError) -> web.Response:
    """An error as an answer."""
    headers = {}
    if isinstance(error, FrameError):
        status = 413 if error.code == TOO_LARGE else 400
    elif isinstance(error, OriginError):
        status = 403
    elif isinstance(error, IdentityError):
        status, headers = 401, {"WWW-Authenticate": "Bearer"}
    elif isinstance(error, ConflictError):
        status = 409
    elif isinstance(error, MissingError):
        status = 404
    elif isinstance(error, RefusedError):
        status = 422
    elif isinstance(error, TooManyError | ConnectionLostError | HeldBackError):
        status, headers = 503, {"Retry-After": "1"}
    else:
        status = 500
    return web.json_response({"error": str(error)}, status=status, headers=headers)


async def run(
    config: ServerConfig, ready: Callable[[Server], None], stop: asyncio.Event, doors: Iterable[Extension] = ()
) -> None:
    """Run a broker until `stop` is set or it fails; `ready` is called when it listens."""
    async with Server(config, doors) as server:
        ready(server)
        stopping = asyncio.create_task(stop.wait())
        serving = asyncio.create_task(server.serve())
        done, pending = await asyncio.wait([stopping, serving], return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for task in done:
            task.result()
