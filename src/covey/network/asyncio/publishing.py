"""Publishing without waiting for each confirmation: a window of publications that aren't confirmed yet.

Publications go out in order and are confirmed in order. Where one fails, those behind it may be under way already: of
`confirmed` events it is known that they are published, of those behind them, up to `sent`, it isn't.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from covey.network.errors import NetworkError

if TYPE_CHECKING:
    from covey.network.asyncio.client import Client

WINDOW: Final = 8
"""Publications that may be unconfirmed."""
BATCH: Final = 1_000
"""Events of an iterable that are published together."""


class Publishing:
    """Publications under way; made by `Client.publishing`, and over when its block ends: then all are confirmed."""

    def __init__(self, client: Client, *, durable: bool, window: int, trace: str) -> None:
        if window < 1:
            raise NetworkError(f"window is {window}; give 1 or more")
        self.sent = 0
        """Events that were given."""
        self.confirmed = 0
        """Events that the broker has confirmed, with all before them."""
        self._client = client
        self._durable = durable
        self._window = window
        self._trace = trace
        self._flying: deque[tuple[asyncio.Task[None], int]] = deque()
        self._failed: BaseException | None = None

    async def publish(
        self, events: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, id: str | Sequence[str] | None = None
    ) -> None:
        """Publish events as `Client.publish` does; returns when there is room for more. Raises what became of earlier
        ones, if they failed."""
        while self._flying and (len(self._flying) >= self._window or self._flying[0][0].done()):
            await self._settle()
        if self._failed is not None:
            raise self._failed
        given = [events] if isinstance(events, Mapping) else list(events)
        publish = self._client.publish(given, durable=self._durable, id=id, trace=self._trace)
        self._flying.append((asyncio.create_task(publish), len(given)))
        self.sent += len(given)
        await asyncio.sleep(0)  # it is packed before anyone can change it

    async def _settle(self) -> None:
        """Wait for the first that is under way; raises what became of it."""
        task, count = self._flying[0]
        await asyncio.wait([task])
        self._flying.popleft()
        try:
            task.result()
        except BaseException as error:
            self._failed = self._failed or error
            raise
        if self._failed is None:
            self.confirmed += count

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Exception):
            for task, _ in self._flying:
                task.cancel()
            await asyncio.gather(*(task for task, _ in self._flying), return_exceptions=True)
            return
        first = error
        while self._flying:
            try:
                await self._settle()
            except Exception as failure:
                first = first or failure
        if error is None and first is not None:
            raise first
