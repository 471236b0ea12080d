"""A client of a broker, for asyncio.

    async with covey.connect("ws://127.0.0.1:7400") as client:
        await client.publish({"company": "IBM", "price": 120})
        async for delivery in await client.subscribe("price < 100"):
            print(delivery.attributes)

A connection that breaks is opened again, and the session goes on where it was (`covey.network.client_protocol` says
how). All methods belong to the event loop that the client was opened in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import ssl
from collections.abc import AsyncIterable, Callable, Generator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias, cast

import aiohttp
from aiohttp import WSMsgType

from covey.filters.algebra import Filter
from covey.language import sql_text
from covey.network import spans
from covey.network.asyncio.deliveries import Deliveries
from covey.network.asyncio.publishing import BATCH, WINDOW, Publishing
from covey.network.asyncio.subscription import LoadedSubscriptions, Subscription, SubscriptionGroup
from covey.network.backoff import Backoff
from covey.network.client_protocol import ClientProtocol, pack
from covey.network.client_values import address_of, ids_of, travelling
from covey.network.errors import (
    ClosedError,
    ConnectionLostError,
    FrameError,
    IdentityError,
    NetworkError,
    RefusedError,
    SessionTakenError,
    SubscriptionEndedError,
)
from covey.network.event_sources import Source, in_batches, in_batches_async
from covey.network.frames import BAD_DATA, PACKED, POLICY, TAKEN, TOO_LARGE, decode_answers
from covey.routing.messages import (
    CAPABILITIES,
    ClientAnswer,
    Confirmed,
    Deliver,
    Expired,
    Gap,
    Held,
    Lost,
    Refused,
    Renew,
    Welcome,
)
from covey.routing.traces import check_trace

ConnectionState: TypeAlias = Literal["connected", "lost", "closed"]
OnConnection: TypeAlias = Callable[[ConnectionState], object]

_log = logging.getLogger("covey.network.client")

OPEN_SECONDS: Final = 10.0
"""Until a connection must be open and the broker must have said Welcome."""
FAREWELL_SECONDS: Final = 2.0
"""For the last acknowledgements when a client is closed; what is lost of them comes again."""
HEARTBEAT_SECONDS: Final = 20.0
ANSWER_BYTES: Final = 64 << 20
"""One frame of a broker."""
RENEWED_AFTER: Final = 1 / 3
"""Leases are renewed when this part of them is over."""
_FOR_GOOD: Final = frozenset({BAD_DATA, POLICY, TOO_LARGE})
"""Close codes after which another attempt would end the same."""
_ONLY_DELIVERIES: Final = {Deliver}


class Client:
    """A client with an open session; made by `connect`."""

    def __init__(
        self, url: str, name: str | None, token: str | None, tls: ssl.SSLContext | None, reconnect: bool,
        message_bytes: int, on_connection: OnConnection | None = None,
    ) -> None:  # fmt: skip
        self.url = address_of(url)
        self._on_connection = on_connection
        self.name = name
        """What the client called itself; None for a name of the broker's making."""
        # A client without a name of its own must have the same one after a reconnection.
        self._session_name = name or f"anonymous-{secrets.token_hex(8)}"
        self._token = token
        self._tls = tls
        self._reconnect = reconnect
        self._protocol = ClientProtocol(named=name is not None, most_bytes=message_bytes)
        self._deliveries = Deliveries(self._protocol, self._wake_if_due)
        self._requests: dict[int, asyncio.Future[None]] = {}
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        """All that was to be said is said."""
        self._welcomed = asyncio.Event()
        self._unheld = asyncio.Event()
        self._unheld.set()
        self._end: NetworkError | None = None
        self._away = False
        self._running: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    # What a client does

    @property
    def broker(self) -> str:
        """The broker's id; empty while there is no connection."""
        return self._protocol.broker

    @property
    def state(self) -> ConnectionState:
        """ "connected"; "lost" while a broken connection is opened again; "closed" for good."""
        if self._end is not None:
            return "closed"
        return "connected" if self.broker else "lost"

    @property
    def missed(self) -> int:
        """Deliveries that the broker dropped because this client was too slow, or away for too long, and those of a
        broken connection that never came, but for durable ones, which come again."""
        return self._protocol.missed

    @property
    def maybe_missed(self) -> int:
        """Events without durability that were lost between brokers, on a way that leads to this one's: at most so many
        of them were for this client. Which they were, nobody can say."""
        return self._protocol.maybe_missed

    @property
    def held(self) -> str:
        """Why the broker holds publications back, such as a full disk; empty where it doesn't."""
        return self._protocol.held

    @property
    def kept(self) -> frozenset[str]:
        """Durable subscriptions that the broker had for this client when it connected. What came for them waits until
        `subscribe` is called with their id, and holds up other deliveries once it fills the client's credit."""
        return self._deliveries.kept

    async def subscribe(
        self,
        filter: str | Filter,
        *,
        id: str | None = None,
        durable: bool = False,
        lease: float | None = None,
        manual_ack: bool = False,
        dialect: str = "sql",
    ) -> Subscription:
        """Ask for events; returns when the subscription is known wherever it matters.

        A durable subscription goes on while the client is away: give it an id, and the client a name, to come back to.
        A lease, in seconds, is renewed as long as the client is there. The same id again changes the filter. A text of
        another `dialect` is read here, and the broker gets it as SQL.
        """
        text = sql_text(filter, dialect)
        if durable and (self.name is None or id is None):
            raise NetworkError("a durable subscription needs an id, and a client with a name: connect(url, name=...)")
        self._check_open()
        id = id if id is not None else f"s-{secrets.token_hex(4)}"
        subscription = Subscription(self, self._deliveries, id, text, manual_ack=manual_ack)
        before = self._deliveries.open(subscription)
        try:
            await self._answer(self._protocol.subscribe(id, text, durable=durable, lease=lease))
        except BaseException:
            self._deliveries.undo(subscription, before)
            raise
        if before is not None:
            before._finish(None)
        self._renew_from_now_on(lease)
        return subscription

    async def subscribe_many(
        self,
        filters: Mapping[str, str | Filter],
        *,
        durable: bool = False,
        lease: float | None = None,
        manual_ack: bool = False,
        dialect: str = "sql",
    ) -> SubscriptionGroup:
        """Ask for the events of many filters, given by their ids, in one inbox; returns when all are known.

        All of them are asked for at once, which is much quicker than one after the other. Where the broker refuses one,
        those that it took are ended again, but for those that it had kept from before.
        """
        if durable and self.name is None:
            raise NetworkError("durable subscriptions need a client with a name: connect(url, name=...)")
        self._check_open()
        self._deliveries.check_new(filters)
        texts = {id: sql_text(filter, dialect) for id, filter in filters.items()}
        group = SubscriptionGroup(self, self._deliveries, texts, manual_ack=manual_ack)
        self._deliveries.open_group(group)
        ask = self._protocol.subscribe
        requests = [ask(id, text, durable=durable, lease=lease) for id, text in texts.items()]
        try:
            await self._all_answered(requests)
        except BaseException:
            self._disband(group)
            raise
        self._renew_from_now_on(lease)
        return group

    def _disband(self, group: SubscriptionGroup) -> None:
        for id in group.filters:
            if id not in self.kept and (False, id) in self._protocol.claims:
                self._protocol.end(id, advertisement=False)
        self._deliveries.disband(group)
        self._wake.set()

    def loaded(self, *, manual_ack: bool = False) -> LoadedSubscriptions:
        """The events for subscriptions that an operator has loaded for this client, and for all others that it has and
        hasn't asked for in this process, in one inbox."""
        self._check_open()
        inbox = LoadedSubscriptions(self, self._deliveries, manual_ack=manual_ack)
        self._deliveries.open_rest(inbox)
        return inbox

    async def unsubscribe(self, *ids: str) -> None:
        """End subscriptions; returns when nothing that they alone asked for can come any more."""
        self._check_open()
        try:
            await self._all_answered([self._protocol.end(id, advertisement=False) for id in ids])
        finally:
            for id in ids:
                self._deliveries.leave(id)

    async def advertise(
        self,
        filter: str | Filter,
        *,
        id: str | None = None,
        durable: bool = False,
        lease: float | None = None,
        dialect: str = "sql",
    ) -> str:
        """Say what will be published; returns the advertisement's id when it is known wherever it matters."""
        text = sql_text(filter, dialect)
        self._check_open()
        id = id if id is not None else f"a-{secrets.token_hex(4)}"
        await self._answer(self._protocol.advertise(id, text, durable=durable, lease=lease))
        self._renew_from_now_on(lease)
        return id

    async def unadvertise(self, id: str) -> None:
        """End an advertisement."""
        self._check_open()
        await self._answer(self._protocol.end(id, advertisement=True))

    async def publish(
        self,
        events: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        durable: bool = False,
        first: int | None = None,
        id: str | Sequence[str] | None = None,
        trace: str = "",
    ) -> None:
        """Publish an event, or several in order; returns when the broker has confirmed them.

        Durable events are committed before that, wherever they have to go. A connection that breaks meanwhile raises
        ConnectionLostError, unless the broker can tell what it has: then the events are sent again, and count once.
        It can by `id`, the caller's own name for an event, or a list of one for each: one that was published before
        under its id, by a client of this name, is confirmed and not published again. And it can where events are
        durable and the client has a name: those are numbered, and the broker ignores numbers that it has committed;
        `first` is the first one's number, for callers who count. `trace` is a W3C `traceparent` that whoever gets the
        events has as `delivery.trace`; a program that uses OpenTelemetry gets a span, and needn't give one.
        """
        self._check_open()
        if trace:
            check_trace(trace)
        given = [events] if isinstance(events, Mapping) else list(events)
        ids = ids_of(id, len(given))
        # They are packed before anyone can change them.
        listed = list(map(travelling, given))
        # A publication that the broker holds back would keep it from reading acknowledgements behind it.
        while self.held and self._end is None:
            await self._unheld.wait()
        self._check_open()
        publish = partial(self._protocol.publish, listed, durable=durable, first=first, ids=ids)
        if not spans.is_used():
            await self._all_answered(publish(trace=trace))
            return
        with spans.publishing(trace, len(listed)) as trace:
            await self._all_answered(publish(trace=trace))

    def publishing(self, *, durable: bool = False, window: int = WINDOW, trace: str = "") -> Publishing:
        """Publish batch after batch without waiting for each to be confirmed: `async with client.publishing() as out`,
        and `await out.publish(events)`. At most `window` of them are unconfirmed; all are when the block is over."""
        self._check_open()
        return Publishing(self, durable=durable, window=window, trace=trace)

    async def publish_many(
        self, events: Source, *, durable: bool = False, batch: int = BATCH, window: int = WINDOW, trace: str = ""
    ) -> int:
        """Publish the events of an iterable (mappings, or lines of JSON), of a buffer of JSON lines or of an Arrow
        table, `batch` at a time with at most `window` batches unconfirmed; gives how many there were, once all are
        confirmed."""
        async with self.publishing(durable=durable, window=window, trace=trace) as out:
            if isinstance(events, AsyncIterable):
                async for some in in_batches_async(events, batch):
                    await out.publish(some)
            else:
                for some in in_batches(events, batch):
                    await out.publish(some)
        return out.confirmed

    async def renew(self, *ids: str) -> None:
        """Start leases anew; all of them where none is named."""
        self._check_open()
        await self._answer(self._protocol.ask(lambda number: Renew(number, list(ids))))

    async def close(self) -> None:
        """End the session. Durable subscriptions stay."""
        if self._end is None:
            self._end = ClosedError("this client is closed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL_SECONDS):
                    await self._said_all()
        for task in (self._renewing, self._running):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (self._renewing, self._running) if task), return_exceptions=True)
        self._finish_all(self._end)

    # Requests

    def _check_open(self) -> None:
        if self._end is not None:
            raise self._end

    def _expect(self, request: int) -> asyncio.Future[None]:
        self._requests[request] = future = asyncio.get_running_loop().create_future()
        return future

    async def _answer(self, request: int) -> None:
        future = self._expect(request)
        self._wake.set()
        await future

    async def _all_answered(self, requests: list[int]) -> None:
        """Wait for all answers; raises the first error among them."""
        futures = [self._expect(request) for request in requests]
        self._wake.set()
        for result in await asyncio.gather(*futures, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result

    def _settle(self, request: int, error: NetworkError | None) -> None:
        future = self._requests.pop(request, None)
        if future is not None and not future.done():
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

    def _renew_from_now_on(self, lease: float | None) -> None:
        if lease is not None and self._renewing is None:
            self._renewing = asyncio.create_task(self._keep_renewing())

    async def _keep_renewing(self) -> None:
        while True:
            leases = [claim.lease for claim in self._protocol.claims.values() if claim.lease is not None]
            if not leases:
                self._renewing = None
                return
            await asyncio.sleep(min(leases) * RENEWED_AFTER)
            if self.broker:
                ids = [claim.id for claim in self._protocol.claims.values() if claim.lease is not None]
                with contextlib.suppress(RefusedError, ConnectionLostError):
                    await self.renew(*ids)

    def _wake_if_due(self) -> None:
        if self._protocol.outgoing:
            self._wake.set()

    # The connection

    async def _open(self) -> None:
        self._running = asyncio.create_task(self._run())
        opened = asyncio.create_task(self._welcomed.wait())
        await asyncio.wait([self._running, opened], timeout=OPEN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not self._welcomed.is_set():
            opened.cancel()
            raise self._end or ConnectionLostError(f"{self.url}: no answer within {OPEN_SECONDS:.0f} seconds")

    async def _run(self) -> None:
        backoff = Backoff()
        while self._end is None:
            try:
                await self._session(backoff)
                problem: Exception = ConnectionLostError(f"the connection to {self.url} broke")
            except (aiohttp.ClientError, OSError, TimeoutError, ssl.SSLError) as error:
                problem = ConnectionLostError(f"{self.url}: {error or type(error).__name__}")
            except (NetworkError, ValueError) as error:
                self._fail(error if isinstance(error, NetworkError) else NetworkError(f"{self.url}: {error}"))
                return
            lost = self._protocol.lost()
            self._quiet.set()
            for request in lost:
                self._settle(request, ConnectionLostError("the connection broke before the broker answered"))
            if not self._welcomed.is_set() or not self._reconnect:
                self._fail(problem)
                return
            if not self._away:
                self._away = True
                _log.info("%s; opening it again", problem)
                self._tell("lost")
            await asyncio.sleep(backoff.pause())

    async def _session(self, backoff: Backoff) -> None:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        async with aiohttp.ClientSession() as http:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    socket = await http.ws_connect(
                        f"{self.url.rstrip('/')}/v1/client",
                        params={"client": self._session_name, "capabilities": ",".join(CAPABILITIES)},
                        headers=headers,
                        protocols=(PACKED,),
                        ssl=self._tls if self._tls is not None else True,
                        heartbeat=HEARTBEAT_SECONDS,
                        max_msg_size=ANSWER_BYTES,
                    )
            except aiohttp.WSServerHandshakeError as error:
                raise _handshake_problem(error, self.url) from None
            await self._talk(socket, backoff)

    async def _talk(self, socket: aiohttp.ClientWebSocketResponse, backoff: Backoff) -> None:
        sending = asyncio.create_task(self._send_on(socket))
        try:
            while (frame := await socket.receive()).type is WSMsgType.BINARY:
                messages = decode_answers(frame.data)
                if {*map(type, messages)} == _ONLY_DELIVERIES:
                    self._deliveries.deliver_many(cast("list[Deliver]", messages))
                    messages = []
                for message in messages:
                    if isinstance(message, Deliver):
                        self._deliveries.deliver(message)
                    else:
                        self._hear(message, backoff)
                self._wake_if_due()
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        reason = frame.extra if frame.type is WSMsgType.CLOSE and frame.extra else f"code {socket.close_code}"
        if socket.close_code == TAKEN:
            raise SessionTakenError(f"another connection uses the name {self._session_name!r} now")
        if socket.close_code in _FOR_GOOD:
            raise FrameError(f"the broker closed the connection: {reason}", socket.close_code or BAD_DATA)

    async def _said_all(self) -> None:
        """Wait until acknowledgements and whatever else was to be said has left, if there is a connection."""
        self._wake.set()
        while self.broker and (self._protocol.outgoing or not self._quiet.is_set()):
            self._quiet.clear()
            self._wake.set()
            await self._quiet.wait()

    async def _send_on(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        with contextlib.suppress(ConnectionError, aiohttp.ClientError):
            while True:
                self._wake.clear()
                messages, self._protocol.outgoing = self._protocol.outgoing, []
                for frame in pack(messages, self._protocol.most_bytes):
                    await socket.send_bytes(frame)
                if not self._protocol.outgoing:
                    self._quiet.set()
                await self._wake.wait()

    def _hear(self, message: ClientAnswer, backoff: Backoff) -> None:
        match message:
            case Confirmed():
                self._answered(message.request, None)
            case Refused():
                self._answered(message.request, message.reason)
            case Gap():
                self._protocol.gap(message)
            case Lost():
                self._protocol.maybe_missed += message.events
            case Expired():
                self._protocol.expired(message.id)
                self._deliveries.end(message.id, SubscriptionEndedError(f"the lease of {message.id!r} ended"))
            case Held():
                self._protocol.held = message.reason
                self._released()
            case Welcome():
                backoff.reset()
                for answer in self._protocol.welcome(message):
                    self._settle(answer.request, None)
                self._deliveries.kept = frozenset(message.subscriptions)
                self._released()
                self._welcomed.set()
                self._wake.set()
                if self._away:
                    self._away = False
                    _log.info("the connection to %s is back", self.url)
                    self._tell("connected")

    def _tell(self, state: ConnectionState) -> None:
        if self._on_connection is not None:
            try:
                self._on_connection(state)
            except Exception:
                _log.exception("on_connection failed")

    def _released(self) -> None:
        """Let publications go on, or wait, as the broker says."""
        if self.held:
            self._unheld.clear()
        else:
            self._unheld.set()

    def _answered(self, request: int, refusal: str | None) -> None:
        answer = self._protocol.answered(request, refusal)
        if answer is not None:
            self._settle(request, None if answer.refusal is None else RefusedError(answer.refusal))
        while self._protocol.ended:
            id, reason = self._protocol.ended.pop()
            error = SubscriptionEndedError(f"the broker doesn't take {id!r} again: {reason}")
            self._deliveries.end(id, error)

    def _fail(self, error: Exception) -> None:
        self._end = error if isinstance(error, NetworkError) else NetworkError(str(error))
        self._finish_all(self._end)

    def _finish_all(self, error: NetworkError) -> None:
        self._unheld.set()
        for request in list(self._requests):
            self._settle(request, error)
        self._deliveries.end_all(None if isinstance(error, ClosedError) else error)


class connect:  # noqa: N801
    """Open a client's session: `async with connect(url) as client`, or `client = await connect(url)`.

    `url` is the broker's address, such as `ws://127.0.0.1:7400`, or `wss://…` with TLS; without a scheme it is `ws://`.
    `name` is what the client is known by when it comes back; durable subscriptions need one.
    `token` says who it is, where the broker asks (`covey token`).
    `tls` is a context from `covey.network.client_context`, for an authority or certificate of one's own.
    `reconnect` opens a broken connection again; with False it ends the client.
    `message_bytes` is the broker's limit of that name: what is larger is refused here already.
    `on_connection` is called with "lost" when the connection breaks, and with "connected" when it is back; both are
    logged too, by the logger `covey.network.client`.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str | None = None,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        reconnect: bool = True,
        message_bytes: int = 1 << 20,
        on_connection: OnConnection | None = None,
    ) -> None:
        self._make: Callable[[], Client] = lambda: Client(
            url, name, token, tls, reconnect, message_bytes, on_connection
        )
        self._client: Client | None = None

    async def _opened(self) -> Client:
        client = self._make()
        try:
            await client._open()
        except BaseException:
            await client.close()
            raise
        return client

    def __await__(self) -> Generator[Any, None, Client]:
        return self._opened().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._opened()
        return self._client

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()


def _handshake_problem(error: aiohttp.WSServerHandshakeError, url: str) -> Exception:
    if error.status == 401:
        return IdentityError(f"{url}: the broker doesn't know this token or certificate, or this name can't be used")
    if error.status == 503:
        return ConnectionLostError(f"{url}: the broker takes no more connections now")
    return NetworkError(f"{url}: no broker answers there (HTTP {error.status})")
