"""Deliveries of one durable subscription, taken as they come.

A session runs in a thread with an event loop. It isn't opened again by itself when it breaks: whoever reads must know
first whether the broker still has the subscription, since delivery numbers start anew where it has not.

"All that is queued now" is found by asking: a broker answers in order, and sends whatever it has as long as it has
credit, which is granted back as deliveries are taken. So when nothing is left here, a request is answered, and still
nothing has come, then nothing was queued when the request was handled.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from covey.errors import CoveyError
from covey.spark.source.options import Address, ReadOptions

if TYPE_CHECKING:
    from covey.network.asyncio import Client, Delivery, Subscription
    from covey.network.sync.client import Loop

ATTEMPT_SECONDS: Final = 0.5
"""Between attempts to reach a broker."""
FAREWELL_SECONDS: Final = 2.0
"""For the last acknowledgements when a query ends; what is lost of them comes again and is known."""


class Inbox:
    """One subscription's deliveries."""

    def __init__(self, options: ReadOptions, most: int, renumbered: Callable[[], None]) -> None:
        self._options = options
        self._most = most
        self._renumbered = renumbered
        self._loop: Loop | None = None
        self._client: Client | None = None
        self._buffer: deque[Delivery] = deque()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._end: Exception | None = None
        self._missing_since: float | None = None
        self._next_attempt = 0.0

    @property
    def missed(self) -> int:
        """Deliveries that the broker dropped in this session."""
        return 0 if self._client is None else self._client.missed

    def ready(self) -> bool | None:
        """Whether there is a session; None where this call opened it. Raises what can't be mended by waiting."""
        from covey.network.errors import ConnectionLostError, SessionTakenError

        if self._client is not None and (self._end is None or self._buffer):
            return True
        if isinstance(self._end, SessionTakenError):
            raise CoveyError(f"{self._end}; give each query a subscription, or a client, of its own")
        if self._end is not None and not isinstance(self._end, ConnectionLostError):
            raise self._end
        now = time.monotonic()
        if now < self._next_attempt:
            return False
        self._next_attempt = now + ATTEMPT_SECONDS
        try:
            self._open()
        except ConnectionLostError as error:
            self._missing_since = now if self._missing_since is None else self._missing_since
            if now - self._missing_since > self._options.address.patience:
                raise unreachable(self._options.address, error) from None
            return False
        self._missing_since = None
        return None

    def take(self, most: int) -> list[Delivery]:
        """What has come."""
        taken: list[Delivery] = []
        while self._buffer and len(taken) < most:
            taken.append(self._buffer.popleft())
        if taken and self._loop is not None:
            self._loop.soon(self._room.set)
        return taken

    def is_empty(self) -> bool:
        """Whether the broker had nothing more for us when it was asked, and nothing is left here."""
        assert self._loop is not None
        try:
            self._loop.run(self._ask(), self._options.address.patience)
        except TimeoutError:
            raise unreachable(self._options.address, CoveyError("it doesn't answer")) from None
        return not self._buffer

    def acknowledge(self, deliveries: Iterable[Delivery]) -> None:
        """These needn't come again."""
        done = list(deliveries)

        def ack() -> None:
            for one in done:
                one.ack()

        if done and self._loop is not None:
            self._loop.soon(ack)

    def close(self) -> None:
        """End the session, after a last word."""
        if self._loop is None:
            return
        with contextlib.suppress(CoveyError, TimeoutError):
            if self._client is not None and self._end is None:
                self._loop.run(self._ask(), FAREWELL_SECONDS)
        self._loop.run(self._close())
        self._loop.stop()
        self._loop = None

    def _open(self) -> None:
        from covey.network.sync.client import Loop

        if self._loop is None:
            self._loop = Loop()
        self._loop.run(self._close())
        self._loop.run(self._begin())

    async def _begin(self) -> None:
        options = self._options
        self._end = None
        client = await options.address.connect(options.client, reconnect=False)
        try:
            if options.subscription not in client.kept:
                self._renumbered()
            subscription = await client.subscribe(
                options.filter, id=options.subscription, durable=True, manual_ack=True
            )
        except BaseException:
            await client.close()
            raise
        self._client = client
        self._room = asyncio.Event()
        self._task = asyncio.create_task(self._consume(subscription))

    async def _consume(self, subscription: Subscription) -> None:
        try:
            while True:
                self._buffer.append(await subscription.get())
                while len(self._buffer) >= self._most:
                    self._room.clear()
                    await self._room.wait()
        except CoveyError as error:
            self._end = error

    async def _ask(self) -> None:
        assert self._client is not None
        await self._client.renew()
        # Deliveries that came before the answer woke the consumer before it woke us; one more turn for good measure.
        await asyncio.sleep(0)

    async def _close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
        self._task = self._client = None
        self._buffer.clear()


def unreachable(address: Address, error: Exception) -> CoveyError:
    """A broker that didn't answer for too long."""
    return CoveyError(
        f"no broker for {address.patience:.0f} seconds ({error}); start it, and then the query again, which goes on "
        "where it was"
    )
