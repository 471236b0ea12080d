"""Subscriptions and their deliveries, for asyncio; made by `covey.network.asyncio.client`."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from covey.network.errors import ClosedError, NetworkError

if TYPE_CHECKING:
    import pyarrow as pa

    from covey.network.asyncio.client import Client
    from covey.network.asyncio.deliveries import Deliveries


class Arrival(msgspec.Struct, eq=False, gc=False):
    """What the deliveries of one event to several subscriptions have in common."""

    epoch: int
    number: int
    untaken: int
    unfinished: int
    bytes: int = 0
    """What it takes of the credit."""


class Delivery(msgspec.Struct, eq=False):
    """An event that matched."""

    attributes: dict[str, Any]
    subscriptions: list[str]
    """This client's subscriptions that matched."""
    publisher: str
    event: str
    """The event's id, the same wherever and however often it is delivered."""
    durable: bool
    late: bool
    """It may come after events of the same publisher that were published later."""
    number: int
    """Above 0 for what must be acknowledged."""
    trace: str
    """The W3C `traceparent` that it came with; empty for none."""
    _arrival: Arrival | None
    """None where it is alone, and needn't be acknowledged: `_epoch` and `_bytes` are all that there is to it then."""
    _deliveries: Deliveries
    _epoch: int = 0
    _bytes: int = 0
    _acked: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def __repr__(self) -> str:
        public = (name for name in self.__struct_fields__ if not name.startswith("_"))
        return f"Delivery({', '.join(f'{name}={getattr(self, name)!r}' for name in public)})"

    def ack(self) -> None:
        """Say that it needn't be delivered again."""
        self._deliveries.finish((self,))


class DeliveryBatch(list[Delivery]):
    """Deliveries that came together, in order."""

    __slots__ = ()

    def dicts(self) -> list[dict[str, Any]]:
        """What the events say."""
        return [delivery.attributes for delivery in self]

    def arrow(self, schema: pa.Schema | None = None) -> pa.Table:
        """The events as a table, with a column for each attribute that any of them has, or as a schema says; raises
        what Arrow raises where an attribute's values have no common type."""
        return arrow_table(self.dicts(), schema)

    def ack(self) -> None:
        """Say of all of them that they needn't be delivered again."""
        if self:
            self[0]._deliveries.finish(self)


def arrow_table(events: list[dict[str, Any]], schema: pa.Schema | None) -> pa.Table:
    """Events as a table; without a schema, with the attributes of all of them in the order in which they come."""
    import pyarrow as pa

    if schema is not None:
        return pa.Table.from_pylist(events, schema)
    names = dict.fromkeys(name for event in events for name in event)
    return pa.table({name: [event.get(name) for event in events] for name in names})


class Inbox(ABC):
    """Deliveries that wait to be taken: iterate over it, or `get` one, or all that are there, at a time."""

    def __init__(self, client: Client, deliveries: Deliveries, *, manual_ack: bool) -> None:
        self._client = client
        self._deliveries = deliveries
        self._manual_ack = manual_ack
        self._queue: deque[Delivery] = deque()
        self._ready = asyncio.Event()
        self._last: list[Delivery] = []
        self._end: NetworkError | None = None
        self._closed = False

    async def get(self, timeout: float | None = None) -> Delivery:
        """The next delivery; raises TimeoutError after `timeout` seconds without one, and SubscriptionEndedError once
        the lease has ended."""
        await self._wait(timeout)
        return self._handed_out([self._queue.popleft()])[0]

    async def get_many(self, timeout: float | None = None, most: int | None = None) -> DeliveryBatch:
        """All deliveries that are there, or so many of them at most, in order; waits as `get` does until there is one.
        No more can be than the credit allows."""
        await self._wait(timeout)
        if most is None or most >= len(self._queue):
            deliveries = DeliveryBatch(self._queue)
            self._queue.clear()
        else:
            deliveries = DeliveryBatch(self._queue.popleft() for _ in range(max(1, most)))
        self._handed_out(deliveries)
        return deliveries

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while True:
            try:
                delivery = await self.get()
            except ClosedError:
                return
            yield delivery

    @abstractmethod
    async def close(self) -> None:
        """Unsubscribe."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ClosedError):
            await self.close()

    async def _wait(self, timeout: float | None) -> None:
        self._done_with_last()
        # Only the waiting has a deadline: a delivery is either taken or left, never taken by nobody.
        async with asyncio.timeout(timeout):
            while not self._queue:
                if self._end is not None:
                    raise self._end
                if self._closed:
                    raise ClosedError(f"{self} is closed")
                self._ready.clear()
                await self._ready.wait()

    def _handed_out(self, deliveries: list[Delivery]) -> list[Delivery]:
        self._deliveries.take(deliveries)
        if not self._manual_ack:
            self._last = deliveries
        return deliveries

    def _done_with_last(self) -> None:
        if self._last:
            self._deliveries.finish(self._last)
            self._last = []

    def _put(self, delivery: Delivery) -> None:
        self._queue.append(delivery)
        if len(self._queue) == 1:
            self._ready.set()

    def _finish(self, error: NetworkError | None) -> None:
        self._end = error
        self._closed = True
        self._ready.set()


class Subscription(Inbox):
    """The events that one filter asks for: iterate over it, or `get` one at a time.

    A delivery counts as done when the next one is asked for, unless `manual_ack` is set: then `delivery.ack()` says so.
    """

    def __init__(self, client: Client, deliveries: Deliveries, id: str, filter: str, *, manual_ack: bool) -> None:
        super().__init__(client, deliveries, manual_ack=manual_ack)
        self.id = id
        self.filter = filter

    def __str__(self) -> str:
        return f"the subscription {self.id!r}"

    async def close(self) -> None:
        """Unsubscribe."""
        self._done_with_last()
        await self._client.unsubscribe(self.id)

    def _leave(self, id: str) -> list[Delivery]:  # noqa: ARG002
        """The subscription is over; gives what waits for it."""
        left = list(self._queue)
        self._queue.clear()
        self._finish(None)
        return left


class SubscriptionGroup(Inbox):
    """The events that any of many filters asks for, each once; `delivery.subscriptions` tells which of them did."""

    def __init__(self, client: Client, deliveries: Deliveries, filters: Mapping[str, str], *, manual_ack: bool) -> None:
        super().__init__(client, deliveries, manual_ack=manual_ack)
        self.filters = dict(filters)
        """By the subscriptions' ids."""

    def __str__(self) -> str:
        return "the group of subscriptions"

    async def close(self) -> None:
        """Unsubscribe all of them."""
        self._done_with_last()
        await self._client.unsubscribe(*self.filters)
        self._finish(None)

    def _leave(self, id: str) -> list[Delivery]:
        """One of them is over; gives what waits for it alone."""
        self.filters.pop(id, None)
        left = [
            delivery
            for delivery in self._queue
            if id in delivery.subscriptions and self.filters.keys().isdisjoint(delivery.subscriptions)
        ]
        if left:
            gone = {delivery.event for delivery in left}
            self._queue = deque(delivery for delivery in self._queue if delivery.event not in gone)
        if not self.filters:
            self._finish(None)
        return left


class LoadedSubscriptions(Inbox):
    """The events for subscriptions that were loaded for a client; closing it ends none of them."""

    def __str__(self) -> str:
        return "the inbox of loaded subscriptions"

    async def close(self) -> None:
        """Take no more; what waits here waits for another one."""
        self._done_with_last()
        self._deliveries.close_rest(self)
        self._finish(None)
