"""The port: connections from their first byte until it is known whose they are.

A connection that isn't anybody's session yet costs a descriptor and a little memory, and anyone can open one. So these
are counted, in all and for each address, and where there are too many the one that has been silent for longest goes,
which leaves room for those who say at once what they want, such as whoever asks after the broker's health. Until its
first request a connection has `handshake_seconds`, TLS included. Some descriptors are kept free for the journal, for
links and for answers: what comes beyond is closed as soon as it is accepted.

aiohttp serves what is accepted here; asyncio's own accept loop would write a traceback for every connection that it has
no descriptor for.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket as sockets
import ssl
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from covey.network.engine import Counts
from covey.network.errors import NetworkError
from covey.network.limits import NetworkLimits

BACKLOG: Final = 128
AT_ONCE: Final = 64
"""Connections accepted in one go, before those who are connected are heard again."""
RESERVED: Final = 64
"""Descriptors that connections leave free."""
FOR_STRANGERS: Final = 32
"""Connections that sessions leave free, so that somebody can still ask after the broker's health."""
PAUSE: Final = 0.1
"""Seconds without accepting where there was no descriptor."""
SAY_EVERY: Final = 60.0
"""Seconds between two lines in the log that connections are turned away."""

_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_NOTHING: Final = (errno.ECONNABORTED, errno.EINTR, errno.EPROTO)
log = logging.getLogger("covey.network")


@dataclass(slots=True, eq=False)
class Stranger:
    """A connection that is nobody's session yet."""

    address: str
    socket: sockets.socket
    since: float
    """When it was last heard of: accepted, or made a request."""
    protocol: Any = None
    opening: asyncio.Task[None] | None = None
    deadline: asyncio.TimerHandle | None = None
    requests: int = 0
    """That are being answered."""
    asked: web.Request | None = None
    """The last of them."""
    has_asked: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the connection is closed."""
        return self.protocol is not None and self.protocol.transport is None

    @property
    def is_answered(self) -> bool:
        """Whether it has asked for something and waits for the answer. Who hasn't sent all of a request is silent."""
        return self.requests > 0 and (self.asked is None or self.asked.content.is_eof())

    def close(self) -> None:
        """End it without a word."""
        if self.deadline is not None:
            self.deadline.cancel()
        if self.opening is not None:
            self.opening.cancel()
        if self.protocol is not None and self.protocol.transport is not None:
            self.protocol.transport.abort()
        elif self.protocol is None:
            self.socket.close()


class Doorway:
    """Listens, and hands connections to aiohttp."""

    def __init__(self, limits: NetworkLimits, counts: Counts, sessions: Callable[[], int]) -> None:
        self._limits = limits
        self._counts = counts
        self._sessions = sessions
        self._make: Callable[[], asyncio.Protocol] | None = None
        self._context: ssl.SSLContext | None = None
        self._loop = asyncio.get_running_loop()
        self._listening: list[sockets.socket] = []
        self._strangers: OrderedDict[Stranger, None] = OrderedDict()
        """The one that was heard of longest ago first."""
        self._by_protocol: dict[Any, Stranger] = {}
        self._by_address: Counter[str] = Counter()
        self._said_at = -SAY_EVERY
        self._most = _descriptors() - RESERVED

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listening[0].getsockname()[1])

    def __len__(self) -> int:
        return len(self._strangers)

    @property
    def most_sessions(self) -> int:
        """How many of its connections may be sessions."""
        return max(1, self._most - FOR_STRANGERS)

    async def open(
        self, host: str, port: int, make: Callable[[], asyncio.Protocol], context: ssl.SSLContext | None
    ) -> None:
        """Listen from now on, and `make` protocols for connections; raises NetworkError."""
        self._make, self._context = make, context
        found = await self._loop.getaddrinfo(host, port, type=sockets.SOCK_STREAM, flags=sockets.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                listening = sockets.socket(family, kind, protocol)
                self._listening.append(listening)
                listening.setblocking(False)
                listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
                if family == sockets.AF_INET6:
                    listening.setsockopt(sockets.IPPROTO_IPV6, sockets.IPV6_V6ONLY, 1)
                # Several addresses of one name share the port that the first one got.
                listening.bind((address[0], port or (self.port if len(self._listening) > 1 else 0), *address[2:]))
                listening.listen(BACKLOG)
        except OSError as error:
            self.close()
            raise NetworkError(
                f"can't listen on {host}:{port}: {error.strerror}; use another --host or --port"
            ) from None  # fmt: skip
        for listening in self._listening:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Listen no longer; connections that aren't sessions end."""
        for listening in self._listening:
            self._loop.remove_reader(listening)
            listening.close()
        self._listening = []
        for stranger in list(self._strangers):
            if not stranger.requests:
                self._forget(stranger)
                stranger.close()

    # What becomes of a connection

    @contextlib.contextmanager
    def request(self, request: web.Request) -> Iterator[None]:
        """A connection makes a request: it isn't silent while that is answered."""
        stranger = self._by_protocol.get(request.protocol)
        if stranger is None:
            yield
            return
        stranger.has_asked = True
        stranger.requests += 1
        stranger.asked = request
        self._heard(stranger)
        try:
            yield
        finally:
            stranger.requests -= 1
            stranger.asked = None
            self._heard(stranger)

    def known(self, request: web.Request) -> None:
        """It is known whose a connection is; it counts as a session from now on."""
        stranger = self._by_protocol.get(request.protocol)
        if stranger is not None:
            self._forget(stranger)
            if stranger.deadline is not None:
                stranger.deadline.cancel()

    def _heard(self, stranger: Stranger) -> None:
        if stranger in self._strangers:
            stranger.since = time.monotonic()
            self._strangers.move_to_end(stranger)

    # Accepting

    def _accept(self, listening: sockets.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, address = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._no_descriptor(listening)
                    return
                if error.errno in _NOTHING:
                    continue
                raise
            self._admit(accepted, str(address[0]))

    def _no_descriptor(self, listening: sockets.socket) -> None:
        """Let the one go that is silent for longest, and whoever knocks wait for a moment."""
        self._turn_away()
        self._make_room(None)
        self._loop.remove_reader(listening)
        self._loop.call_later(PAUSE, self._accept_again, listening)

    def _accept_again(self, listening: sockets.socket) -> None:
        if listening.fileno() >= 0:
            self._loop.add_reader(listening, self._accept, listening)

    def _admit(self, accepted: sockets.socket, address: str) -> None:
        if not self._has_room(address):
            self._turn_away()
            accepted.close()
            return
        accepted.setblocking(False)
        stranger = Stranger(address, accepted, time.monotonic())
        self._strangers[stranger] = None
        self._counts.strangers += 1
        self._by_address[address] += 1
        stranger.deadline = self._loop.call_later(self._limits.handshake_seconds, self._overdue, stranger)
        stranger.opening = self._loop.create_task(self._open(stranger))

    def _has_room(self, address: str) -> bool:
        limits = self._limits
        if self._by_address[address] >= limits.address_connections:
            self._forget_ended()
            if self._by_address[address] >= limits.address_connections and not self._make_room(address):
                return False
        most = min(limits.waiting_connections, self._most - self._sessions())
        if len(self._strangers) >= most:
            self._forget_ended()
            if len(self._strangers) >= most and not self._make_room(None):
                return False
        return True

    def _make_room(self, address: str | None) -> bool:
        """End the connection (of an address) that has been silent for longest; False where all are being answered."""
        for stranger in self._strangers:
            if address is not None and stranger.address != address:
                continue
            # An answer that takes this long may be one that nobody reads.
            if stranger.is_answered and time.monotonic() < stranger.since + self._limits.handshake_seconds:
                continue
            self._turn_away()
            self._forget(stranger)
            stranger.close()
            return True
        return False

    def _turn_away(self) -> None:
        self._counts.turned_away += 1
        if time.monotonic() >= self._said_at + SAY_EVERY:
            self._said_at = time.monotonic()
            log.warning(
                "too many connections that are nobody's session: %d, of at most %d (limits waiting_connections, "
                "address_connections, or the process's open files); %d turned away so far",
                len(self._strangers), min(self._limits.waiting_connections, self._most), self._counts.turned_away,
            )  # fmt: skip

    async def _open(self, stranger: Stranger) -> None:
        def make() -> asyncio.Protocol:
            assert self._make is not None, "nobody listens"
            stranger.protocol = self._make()
            self._by_protocol[stranger.protocol] = stranger
            made: asyncio.Protocol = stranger.protocol
            return made

        options: dict[str, Any] = {}
        if self._context is not None:
            options = {"ssl": self._context, "ssl_handshake_timeout": self._limits.handshake_seconds}
        try:
            await self._loop.connect_accepted_socket(make, stranger.socket, **options)
        except (OSError, asyncio.CancelledError, ssl.SSLError):
            # It was closed from either side, or didn't speak TLS.
            self._forget(stranger)
            stranger.socket.close()
        finally:
            stranger.opening = None

    def _overdue(self, stranger: Stranger) -> None:
        if stranger in self._strangers and not stranger.has_asked:
            self._forget(stranger)
            stranger.close()

    def _forget_ended(self) -> None:
        for stranger in [stranger for stranger in self._strangers if stranger.is_over]:
            self._forget(stranger)

    def _forget(self, stranger: Stranger) -> None:
        if stranger in self._strangers:
            del self._strangers[stranger]
            self._counts.strangers -= 1
            self._by_address[stranger.address] -= 1
            if not self._by_address[stranger.address]:
                del self._by_address[stranger.address]
        self._by_protocol.pop(stranger.protocol, None)


def _descriptors() -> int:
    """How many descriptors this process may have, after asking for as many as it may ask for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return soft if soft != resource.RLIM_INFINITY else 1 << 30
