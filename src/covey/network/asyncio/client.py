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
import secrets
import ssl
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

import aiohttp
from aiohttp import WSMsgType

from covey.filters.algebra import Filter
from covey.network.asyncio.subscription import (
    Arrival,
    Delivery,
    Inbox,
    LoadedSubscriptions,
    Subscription,
    SubscriptionGroup,
)
from covey.network.backoff import Backoff
from covey.network.client_protocol import ClientProtocol, pack
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
from covey.network.frames import BAD_DATA, PACKED, POLICY, TAKEN, TOO_LARGE, decode_answers
from covey.routing.messages import (
    ClientAnswer,
    Confirmed,
    Deliver,
    Expired,
    Gap,
    Refused,
    Renew,
    Welcome,
)

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


class Client:
    """A client with an open session; made by `connect`."""

    def __init__(
        self, url: str, name: str | None, token: str | None, tls: ssl.SSLContext | None, reconnect: bool,
        message_bytes: int,
    ) -> None:  # fmt: skip
        self.url = url
        self.name = name
        """What the client called itself; None for a name of the broker's making."""
        self.missed = 0
        """Deliveries that the broker dropped because this client was too slow, or away for too long."""
        # A client without a name of its own must have the same one after a reconnection.
        self._session_name = name or f"anonymous-{secrets.token_hex(8)}"
        self._token = token
        self._tls = tls
        self._reconnect = reconnect
        self._protocol = ClientProtocol(named=name is not None, most_bytes=message_bytes)
        self._subscriptions: dict[str, Subscription | SubscriptionGroup] = {}
        self._kept: frozenset[str] = frozenset()
        self._early: dict[str, list[Delivery]] = {}
        self._rest: LoadedSubscriptions | None = None
        self._requests: dict[int, asyncio.Future[None]] = {}
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        """All that was to be said is said."""
        self._welcomed = asyncio.Event()
        self._end: NetworkError | None = None
        self._running: asyncio.Task[None] | None = None
        self._renewing: asyncio.Task[None] | None = None

    # What a client does

    @property
    def broker(self) -> str:
        """The broker's id; empty while there is no connection."""
        return self._protocol.broker

    @property
    def kept(self) -> frozenset[str]:
        """Durable subscriptions that the broker had for this client when it connected. What came for them waits until
        `subscribe` is called with their id, and holds up other deliveries once it fills the client's credit."""
        return self._kept

    async def subscribe(
        self,
        filter: str | Filter,
        *,
        id: str | None = None,
        durable: bool = False,
        lease: float | None = None,
        manual_ack: bool = False,
    ) -> Subscription:
        """Ask for events; returns when the subscription is known wherever it matters.

        A durable subscription goes on while the client is away: give it an id, and the client a name, to come back to.
        A lease, in seconds, is renewed as long as the client is there. The same id again changes the filter.
        """
        if durable and (self.name is None or id is None):
            raise NetworkError("a durable subscription needs an id, and a client with a name: connect(url, name=...)")
        self._check_open()
        id = id if id is not None else f"s-{secrets.token_hex(4)}"
        subscription = Subscription(self, id, str(filter), manual_ack=manual_ack)
        before = self._subscriptions.get(id)
        if isinstance(before, SubscriptionGroup):
            raise NetworkError(f"{id!r} is one of a group of subscriptions; unsubscribe it first")
        # What came early is before all that comes from now on, the answer or not.
        for delivery in self._early.pop(id, ()):
            subscription._put(delivery)
        self._subscriptions[id] = subscription
        try:
            await self._answer(self._protocol.subscribe(id, str(filter), durable=durable, lease=lease))
        except BaseException:
            if before is None:
                self._subscriptions.pop(id, None)
                if subscription._queue:
                    self._early[id] = list(subscription._queue)
            else:
                self._subscriptions[id] = before
                for delivery in subscription._queue:
                    before._put(delivery)
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
    ) -> SubscriptionGroup:
        """Ask for the events of many filters, given by their ids, in one inbox; returns when all are known.

        All of them are asked for at once, which is much quicker than one after the other. Where the broker refuses one,
        those that it took are ended again, but for those that it had kept from before.
        """
        if durable and self.name is None:
            raise NetworkError("durable subscriptions need a client with a name: connect(url, name=...)")
        self._check_open()
        known = next((id for id in filters if id in self._subscriptions), None)
        if known is not None:
            raise NetworkError(f"there is a subscription {known!r} already; unsubscribe it first")
        texts = {id: str(filter) for id, filter in filters.items()}
        group = SubscriptionGroup(self, texts, manual_ack=manual_ack)
        early = sorted((one for id in texts for one in self._early.pop(id, ())), key=lambda one: one.number)
        for before, delivery in zip([None, *early], early, strict=False):
            if before is not None and before.number == delivery.number:
                self._let_go((delivery,))  # it came early for two of these
            else:
                group._put(delivery)
        self._subscriptions.update(dict.fromkeys(texts, group))
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
            self._subscriptions.pop(id, None)
            if id not in self._kept and (False, id) in self._protocol.claims:
                self._protocol.end(id, advertisement=False)
        for delivery in group._queue:
            kept = next((id for id in delivery.subscriptions if id in self._kept and id in group.filters), None)
            if delivery.number and kept is not None:
                self._early.setdefault(kept, []).append(delivery)
            else:
                self._let_go((delivery,))
        self._wake.set()

    def loaded(self, *, manual_ack: bool = False) -> LoadedSubscriptions:
        """The events for subscriptions that an operator has loaded for this client, and for all others that it has and
        hasn't asked for in this process, in one inbox."""
        self._check_open()
        if self._rest is not None:
            self._rest._finish(None)
        self._rest = inbox = LoadedSubscriptions(self, manual_ack=manual_ack)
        early, self._early = self._early, {}
        seen: set[str] = set()
        for delivery in sorted((one for listed in early.values() for one in listed), key=lambda one: one.number):
            if delivery.event in seen:
                self._let_go((delivery,))
            else:
                seen.add(delivery.event)
                inbox._put(delivery)
        return inbox

    async def unsubscribe(self, *ids: str) -> None:
        """End subscriptions; returns when nothing that they alone asked for can come any more."""
        self._check_open()
        try:
            await self._all_answered([self._protocol.end(id, advertisement=False) for id in ids])
        finally:
            for id in ids:
                inbox = self._subscriptions.pop(id, None)
                if inbox is not None:
                    self._let_go(inbox._leave(id))
                self._let_go(self._early.pop(id, ()))

    async def advertise(
        self, filter: str | Filter, *, id: str | None = None, durable: bool = False, lease: float | None = None
    ) -> str:
        """Say what will be published; returns the advertisement's id when it is known wherever it matters."""
        self._check_open()
        id = id if id is not None else f"a-{secrets.token_hex(4)}"
        await self._answer(self._protocol.advertise(id, str(filter), durable=durable, lease=lease))
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
    ) -> None:
        """Publish an event, or several in order; returns when the broker has confirmed them.

        Durable events are committed before that, wherever they have to go. A connection that breaks meanwhile raises
        ConnectionLostError, unless the events are durable and the client has a name: those are sent again, and once.
        Such events are numbered, and the broker ignores numbers that it has committed; `first` is the first one's
        number, for callers who may publish the same events again after a restart.
        """
        self._check_open()
        given = [events] if isinstance(events, Mapping) else events
        # They are packed before anyone can change them.
        listed = [event if type(event) is dict else dict(event) for event in given]
        await self._all_answered(self._protocol.publish(listed, durable=durable, first=first))

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

    # Deliveries

    def _take(self, deliveries: Iterable[Delivery]) -> None:
        """Deliveries leave their inboxes; the last inbox to let go of one grants it back."""
        epoch = self._protocol.epoch
        taken = 0
        for delivery in deliveries:
            arrival = delivery._arrival
            arrival.untaken -= 1
            # A delivery of a former session grants nothing in this one.
            if not arrival.untaken and arrival.epoch == epoch:
                taken += 1
        if taken:
            self._protocol.taken(epoch, taken)
            self._wake_if_due()

    def _finish(self, deliveries: Iterable[Delivery]) -> None:
        """Deliveries needn't come again."""
        numbers: list[int] = []
        for delivery in deliveries:
            if delivery._acked:
                continue
            delivery._acked = True
            arrival = delivery._arrival
            arrival.unfinished -= 1
            if arrival.number and not arrival.unfinished:
                numbers.append(arrival.number)
        if numbers:
            self._protocol.finish(*numbers)
            self._wake_if_due()

    def _let_go(self, deliveries: Sequence[Delivery]) -> None:
        """Nobody will ask for these."""
        self._take(deliveries)
        self._finish(deliveries)

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
            await asyncio.sleep(backoff.pause())

    async def _session(self, backoff: Backoff) -> None:
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        async with aiohttp.ClientSession() as http:
            try:
                async with asyncio.timeout(OPEN_SECONDS):
                    socket = await http.ws_connect(
                        f"{self.url.rstrip('/')}/v1/client",
                        params={"client": self._session_name},
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
                for message in decode_answers(frame.data):
                    if isinstance(message, Deliver):
                        self._deliver(message)
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
                self.missed += message.deliveries
            case Expired():
                self._protocol.expired(message.id)
                self._end_subscription(message.id, f"the lease of {message.id!r} ended")
            case Welcome():
                backoff.reset()
                for answer in self._protocol.welcome(message):
                    self._settle(answer.request, None)
                self._kept = frozenset(message.subscriptions)
                self._welcomed.set()
                self._wake.set()

    def _end_subscription(self, id: str, why: str) -> None:
        subscription = self._subscriptions.pop(id, None)
        if subscription is not None:
            subscription._finish(SubscriptionEndedError(why))

    def _answered(self, request: int, refusal: str | None) -> None:
        answer = self._protocol.answered(request, refusal)
        if answer is not None:
            self._settle(request, None if answer.refusal is None else RefusedError(answer.refusal))
        while self._protocol.ended:
            id, reason = self._protocol.ended.pop()
            self._end_subscription(id, f"the broker doesn't take {id!r} again: {reason}")

    def _deliver(self, message: Deliver) -> None:
        if not self._protocol.delivered(message):
            return
        inboxes: dict[Inbox | None, None] = dict.fromkeys(
            self._subscriptions.get(id, self._rest) for id in message.subscriptions
        )
        stray = [id for id in message.subscriptions if id not in self._subscriptions] if None in inboxes else []
        receivers = len(inboxes) if not stray else len(inboxes) - 1 + len(stray)
        arrival = Arrival(self._protocol.epoch, message.number, receivers, receivers)
        for inbox in inboxes:
            if inbox is not None:
                inbox._put(self._delivery(message, arrival))
        for id in stray:
            if message.number and id in self._kept:
                self._early.setdefault(id, []).append(self._delivery(message, arrival))
            else:
                self._let_go((self._delivery(message, arrival),))

    def _delivery(self, message: Deliver, arrival: Arrival) -> Delivery:
        return Delivery(
            message.attributes, message.subscriptions, message.publisher, message.event, message.durable, message.late,
            message.number, arrival, self,
        )  # fmt: skip

    def _fail(self, error: Exception) -> None:
        self._end = error if isinstance(error, NetworkError) else NetworkError(str(error))
        self._finish_all(self._end)

    def _finish_all(self, error: NetworkError) -> None:
        for request in list(self._requests):
            self._settle(request, error)
        for inbox in {*self._subscriptions.values(), *([self._rest] if self._rest is not None else [])}:
            inbox._finish(None if isinstance(error, ClosedError) else error)


class connect:  # noqa: N801
    """Open a client's session: `async with connect(url) as client`, or `client = await connect(url)`.

    `name` is what the client is known by when it comes back; `token` says who it is, and `tls` is a context from
    `covey.network.tls.client_context`. With `reconnect=False` a broken connection ends the client. `message_bytes` is
    the broker's limit of that name.
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
    ) -> None:
        self._make: Callable[[], Client] = lambda: Client(url, name, token, tls, reconnect, message_bytes)
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
