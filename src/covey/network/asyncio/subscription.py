"""Subscriptions and their deliveries, for asyncio; made by `covey.network.asyncio.client`."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from covey.network.errors import ClosedError, NetworkError

if TYPE_CHECKING:
    from covey.network.asyncio.client import Client


@dataclass(slots=True, eq=False)
class Arrival:
    """What the deliveries of one event to several subscriptions have in common."""

    epoch: int
    number: int
    untaken: int
    unfinished: int


@dataclass(slots=True, eq=False)
class Delivery:
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
    _arrival: Arrival = field(repr=False)
    _client: Client = field(repr=False)
    _acked: bool = field(default=False, repr=False)

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def ack(self) -> None:
        """Say that it needn't be delivered again."""
        if not self._acked:
            self._acked = True
            self._client._finished(self._arrival)


class Subscription:
    """The events that one filter asks for: iterate over it, or `get` one at a time.

    A delivery counts as done when the next one is asked for, unless `manual_ack` is set: then `delivery.ack()` says so.
    """

    def __init__(self, client: Client, id: str, filter: str, *, manual_ack: bool) -> None:
        self.id = id
        self.filter = filter
        self._client = client
        self._manual_ack = manual_ack
        self._queue: deque[Delivery] = deque()
        self._ready = asyncio.Event()
        self._last: Delivery | None = None
        self._end: NetworkError | None = None
        self._closed = False

    async def get(self) -> Delivery:
        """The next delivery. Raises SubscriptionEndedError once the lease has ended."""
        self._done_with_last()
        while not self._queue:
            if self._end is not None:
                raise self._end
            if self._closed:
                raise ClosedError(f"the subscription {self.id!r} is closed")
            self._ready.clear()
            await self._ready.wait()
        delivery = self._queue.popleft()
        self._client._taken(delivery._arrival)
        if not self._manual_ack:
            self._last = delivery
        return delivery

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while True:
            try:
                delivery = await self.get()
            except ClosedError:
                return
            yield delivery

    async def close(self) -> None:
        """Unsubscribe."""
        self._done_with_last()
        await self._client.unsubscribe(self.id)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ClosedError):
            await self.close()

    def _done_with_last(self) -> None:
        if self._last is not None:
            self._last.ack()
            self._last = None

    def _put(self, delivery: Delivery) -> None:
        self._queue.append(delivery)
        self._ready.set()

    def _finish(self, error: NetworkError | None) -> None:
        self._end = error
        self._closed = True
        self._ready.set()
