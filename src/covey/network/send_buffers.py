"""What waits for all connections together, bounded in bytes: where it is too much, who waits with most is cut.

One connection's buffer has a limit of its own; a thousand connections that read nothing would still fill any memory.
And a thousand large frames, written one after the other, would take the loop half a second: so many bytes go out in one
round of it, and who has little to send doesn't wait for those who have much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

ROUND_BYTES: Final = 1 << 20
"""What is written in one round of the loop, in large frames: a millisecond."""
SMALL_FRAME: Final = 1 << 14
"""Frames up to this go at once."""


class Buffer(Protocol):
    """One connection's sending side."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the connection hasn't taken."""

    def overflow(self) -> None:
        """Too much waits: drop it and cut the connection."""


class SendBuffers:
    """All connections' buffers."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._buffers: set[Buffer] = set()
        self.bytes = 0
        """That wait for all connections."""
        self._left = ROUND_BYTES
        self._large: deque[tuple[asyncio.Future[None], int]] = deque()
        self._is_turning = False

    async def turn(self, size: int) -> None:
        """Wait until a frame of so many bytes may be written."""
        if size <= SMALL_FRAME:
            return
        loop = asyncio.get_running_loop()
        if not self._is_turning:
            self._is_turning = True
            loop.call_soon(self._round, loop)
        if self._left > 0 and not self._large:
            self._left -= size
            return
        may: asyncio.Future[None] = loop.create_future()
        self._large.append((may, size))
        await may

    def _round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_turning = self._left < ROUND_BYTES or bool(self._large)
        self._left = ROUND_BYTES
        while self._large and self._left > 0:
            may, size = self._large.popleft()
            if not may.done():
                self._left -= size
                may.set_result(None)
        if self._is_turning:
            loop.call_soon(self._round, loop)

    def changed(self, buffer: Buffer, by: int) -> None:
        """So many bytes more wait for one, or fewer; cut the fullest while all together are too many."""
        self.bytes += by
        if buffer.waiting_bytes:
            self._buffers.add(buffer)
        else:
            self._buffers.discard(buffer)
        while by > 0 and self.bytes > self._most_bytes and self._buffers:
            fullest = max(self._buffers, key=lambda one: one.waiting_bytes)
            self._buffers.discard(fullest)
            fullest.overflow()
