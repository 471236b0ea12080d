"""Subscriptions and their deliveries, for programs without asyncio; and the loop in whose thread the work is done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from covey.network.asyncio import subscription as asynchronous
from covey.network.errors import ClosedError

if TYPE_CHECKING:
    import pyarrow as pa

Result = TypeVar("Result")


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="covey client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], timeout: float | None = None) -> Result:
        """Wait for some work; raises TimeoutError, and gives the work up, after `timeout` seconds."""
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def soon(self, callback: Any) -> None:
        """Call something in the loop."""
        self._loop.call_soon_threadsafe(callback)

    def stop(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Delivery:
    """An event that matched; has what `covey.network.asyncio.Delivery` has."""

    def __init__(self, inner: asynchronous.Delivery, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop
        self.attributes = inner.attributes
        self.subscriptions = inner.subscriptions
        self.publisher = inner.publisher
        self.event = inner.event
        self.durable = inner.durable
        self.late = inner.late
        self.number = inner.number
        self.trace = inner.trace

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def __repr__(self) -> str:
        return repr(self._inner)

    def ack(self) -> None:
        """Say that it needn't be delivered again."""
        self._loop.soon(self._inner.ack)


class DeliveryBatch(Sequence[Delivery]):
    """Deliveries that came together, in order; each is made when it is asked for."""

    def __init__(self, inner: asynchronous.DeliveryBatch, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop

    def __len__(self) -> int:
        return len(self._inner)

    @overload
    def __getitem__(self, at: int) -> Delivery: ...
    @overload
    def __getitem__(self, at: slice) -> DeliveryBatch: ...
    def __getitem__(self, at: int | slice) -> Delivery | DeliveryBatch:
        if isinstance(at, slice):
            return DeliveryBatch(asynchronous.DeliveryBatch(self._inner[at]), self._loop)
        return Delivery(self._inner[at], self._loop)

    def dicts(self) -> list[dict[str, Any]]:
        """What the events say."""
        return self._inner.dicts()

    def arrow(self, schema: pa.Schema | None = None) -> pa.Table:
        """The events as a table, with a column for each attribute that any of them has, or as a schema says."""
        return self._inner.arrow(schema)

    def ack(self) -> None:
        """Say of all of them that they needn't be delivered again."""
        self._loop.soon(self._inner.ack)


class Inbox:
    """Deliveries that wait to be taken: iterate over it, or `get` one, or all that are there, at a time."""

    def __init__(self, inner: asynchronous.Inbox, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop

    def get(self, timeout: float | None = None) -> Delivery:
        """The next delivery; raises TimeoutError after `timeout` seconds without one."""
        return Delivery(self._loop.run(self._inner.get(timeout)), self._loop)

    def get_many(self, timeout: float | None = None, most: int | None = None) -> DeliveryBatch:
        """All deliveries that are there, or so many of them at most, in order; waits as `get` does until there is
        one."""
        return DeliveryBatch(self._loop.run(self._inner.get_many(timeout, most)), self._loop)

    def __iter__(self) -> Iterator[Delivery]:
        while True:
            try:
                delivery = self.get()
            except ClosedError:
                return
            yield delivery

    def close(self) -> None:
        """Unsubscribe."""
        self._loop.run(self._inner.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Subscription(Inbox):
    """The events that one filter asks for: iterate over it, or `get` one at a time."""

    def __init__(self, inner: asynchronous.Subscription, loop: Loop) -> None:
        super().__init__(inner, loop)
        self.id = inner.id
        self.filter = inner.filter


class SubscriptionGroup(Inbox):
    """The events that any of many filters asks for, each once."""

    def __init__(self, inner: asynchronous.SubscriptionGroup, loop: Loop) -> None:
        super().__init__(inner, loop)
        self.filters = inner.filters


class LoadedSubscriptions(Inbox):
    """The events for subscriptions that were loaded for a client; closing it ends none of them."""
