"""A client of a broker, for programs without asyncio.

    with covey.connect_sync("ws://127.0.0.1:7400") as client:
        client.publish({"company": "IBM", "price": 120})
        for delivery in client.subscribe("price < 100"):
            print(delivery.attributes)

The asynchronous client runs in a thread of its own, and the methods here wait for it: there is one protocol and one
behaviour. A client may be used by several threads.
"""

from __future__ import annotations

import ssl
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from covey.filters.algebra import Filter
from covey.network.asyncio import client as asynchronous
from covey.network.asyncio import subscription as asynchronous_subscription
from covey.network.asyncio.publishing import BATCH, WINDOW
from covey.network.errors import ClosedError
from covey.network.event_sources import Source, in_batches
from covey.network.sync.publishing import Publishing
from covey.network.sync.subscription import LoadedSubscriptions, Loop, Result, Subscription, SubscriptionGroup


class Client:
    """A client with an open session; made by `connect`."""

    def __init__(self, inner: asynchronous.Client, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop
        self._closed = False

    @property
    def broker(self) -> str:
        """The broker's id; empty while there is no connection."""
        return self._inner.broker

    @property
    def state(self) -> asynchronous.ConnectionState:
        """ "connected"; "lost" while a broken connection is opened again; "closed" for good."""
        return self._inner.state

    @property
    def missed(self) -> int:
        """Deliveries that the broker dropped because this client was too slow, or away for too long."""
        return self._inner.missed

    @property
    def maybe_missed(self) -> int:
        """Events without durability that were lost between brokers: at most so many of them were for this client."""
        return self._inner.maybe_missed

    @property
    def held(self) -> str:
        """Why the broker holds publications back, such as a full disk; empty where it doesn't."""
        return self._inner.held

    @property
    def kept(self) -> frozenset[str]:
        """Durable subscriptions that the broker had for this client when it connected."""
        return self._inner.kept

    def subscribe(
        self,
        filter: str | Filter,
        *,
        id: str | None = None,
        durable: bool = False,
        lease: float | None = None,
        manual_ack: bool = False,
        dialect: str = "sql",
    ) -> Subscription:
        """Ask for events; returns when the subscription is known wherever it matters."""
        work = self._inner.subscribe(
            filter, id=id, durable=durable, lease=lease, manual_ack=manual_ack, dialect=dialect
        )
        return Subscription(self._run(work), self._loop)

    def subscribe_many(
        self,
        filters: Mapping[str, str | Filter],
        *,
        durable: bool = False,
        lease: float | None = None,
        manual_ack: bool = False,
        dialect: str = "sql",
    ) -> SubscriptionGroup:
        """Ask for the events of many filters, given by their ids, in one inbox; returns when all are known."""
        work = self._inner.subscribe_many(filters, durable=durable, lease=lease, manual_ack=manual_ack, dialect=dialect)
        return SubscriptionGroup(self._run(work), self._loop)

    def loaded(self, *, manual_ack: bool = False) -> LoadedSubscriptions:
        """The events for subscriptions that an operator has loaded for this client, and for all others that it has and
        hasn't asked for in this process, in one inbox."""

        async def open() -> asynchronous_subscription.LoadedSubscriptions:
            return self._inner.loaded(manual_ack=manual_ack)

        return LoadedSubscriptions(self._run(open()), self._loop)

    def unsubscribe(self, *ids: str) -> None:
        """End subscriptions."""
        self._run(self._inner.unsubscribe(*ids))

    def advertise(
        self,
        filter: str | Filter,
        *,
        id: str | None = None,
        durable: bool = False,
        lease: float | None = None,
        dialect: str = "sql",
    ) -> str:
        """Say what will be published; returns the advertisement's id."""
        return self._run(self._inner.advertise(filter, id=id, durable=durable, lease=lease, dialect=dialect))

    def unadvertise(self, id: str) -> None:
        """End an advertisement."""
        self._run(self._inner.unadvertise(id))

    def publish(
        self,
        events: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        durable: bool = False,
        first: int | None = None,
        id: str | Sequence[str] | None = None,
        trace: str = "",
    ) -> None:
        """Publish an event, or several in order; returns when the broker has confirmed them. One that has an `id` may
        be sent again: it counts once. `trace` is a W3C `traceparent` that goes with them."""
        self._run(self._inner.publish(events, durable=durable, first=first, id=id, trace=trace))

    def publishing(self, *, durable: bool = False, window: int = WINDOW, trace: str = "") -> Publishing:
        """Publish batch after batch without waiting for each to be confirmed: `with client.publishing() as out`, and
        `out.publish(events)`. At most `window` of them are unconfirmed; all are when the block is over."""
        self._check_open()
        return Publishing(self._inner.publishing(durable=durable, window=window, trace=trace), self._loop)

    def publish_many(
        self, events: Source, *, durable: bool = False, batch: int = BATCH, window: int = WINDOW, trace: str = ""
    ) -> int:
        """Publish the events of an iterable (mappings, or lines of JSON), of a buffer of JSON lines or of an Arrow
        table, `batch` at a time with at most `window` batches unconfirmed; gives how many there were, once all are
        confirmed."""
        # In the caller's thread: what the iterable does must not hold up the client.
        with self.publishing(durable=durable, window=window, trace=trace) as out:
            for some in in_batches(events, batch):
                out.publish(some)
        return out.confirmed

    def renew(self, *ids: str) -> None:
        """Start leases anew; all of them where none is named."""
        self._run(self._inner.renew(*ids))

    def close(self) -> None:
        """End the session. Durable subscriptions stay."""
        if not self._closed:
            self._closed = True
            self._loop.run(self._inner.close())
            self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this client is closed")

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        if self._closed:
            work.close()
        self._check_open()
        return self._loop.run(work)


def connect(
    url: str,
    *,
    name: str | None = None,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    reconnect: bool = True,
    message_bytes: int = 1 << 20,
    on_connection: asynchronous.OnConnection | None = None,
) -> Client:
    """Open a client's session: `with connect_sync(url) as client`.

    `url` is the broker's address, such as `ws://127.0.0.1:7400`, or `wss://…` with TLS; without a scheme it is `ws://`.
    `name` is what the client is known by when it comes back; durable subscriptions need one.
    `token` says who it is, where the broker asks (`covey token`).
    `tls` is a context from `covey.network.client_context`, for an authority or certificate of one's own.
    `reconnect` opens a broken connection again; with False it ends the client.
    `message_bytes` is the broker's limit of that name: what is larger is refused here already.
    `on_connection` is called with "lost" when the connection breaks, and with "connected" when it is back, in the
    client's thread: it must not wait for the client. Both are logged too, by the logger `covey.network.client`.
    """
    loop = Loop()

    async def open() -> asynchronous.Client:
        return await asynchronous.connect(
            url, name=name, token=token, tls=tls, reconnect=reconnect, message_bytes=message_bytes,
            on_connection=on_connection,
        )  # fmt: skip

    try:
        return Client(loop.run(open()), loop)
    except BaseException:
        loop.stop()
        raise


__all__ = ["Client", "Loop", "connect"]
