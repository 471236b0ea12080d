"""A WebSocket's sending side: frames wait in a buffer of bounded size, and one task sends them. A small frame that
nothing waits before is written at once, which spares it a round of the loop.

The broker's own credit bounds the deliveries that are under way to a client; the buffer bounds the bytes, whatever
they are. A connection that lets it fill up is cut, without a word, since there is no room for one.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import aiohttp
from aiohttp import web

from covey.network.errors import FrameError
from covey.network.frames import Codec, frames
from covey.network.send_buffers import SMALL_FRAME, SendBuffers

REASON_BYTES: Final = 120
"""A close frame has room for 123."""
CLOSING_SECONDS: Final = 2.0
"""Until the other side must have answered a close frame."""

Socket = web.WebSocketResponse | aiohttp.ClientWebSocketResponse
Message = TypeVar("Message")


class FrameSender(Generic[Message]):
    """Sends messages over one WebSocket; `run` must be running."""

    def __init__(
        self,
        socket: Socket,
        codec: Codec[Message],
        *,
        buffer_bytes: int,
        cut: Callable[[], None],
        most_bytes: int = sys.maxsize,
        buffers: SendBuffers | None = None,
        transport: asyncio.BaseTransport | None = None,
    ) -> None:
        self._socket = socket
        self._codec = codec
        self._transport = transport if isinstance(transport, asyncio.WriteTransport) else None
        """Says whether something waits that was written; None where that can't be known."""
        self._is_sending = False
        """Whether the task is about a frame."""
        self._most_bytes = most_bytes
        self._buffer_bytes = buffer_bytes
        self._cut = cut
        self._buffers = buffers
        self._frames: deque[bytes] = deque()
        self.sent_bytes = 0
        """What was to be sent since the start."""
        self._waiting = 0
        self._wake = asyncio.Event()
        self._closing: tuple[int, bytes] | None = None
        self.reason = ""
        """Why it was closed from this side."""
        self.overflowed = False
        """Whether that was because too much waited."""

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the connection hasn't taken."""
        return self._waiting

    def send(self, messages: list[Any]) -> None:
        """Send messages, in order."""
        if self._closing is not None:
            return
        try:
            for data in frames(self._codec, messages, self._most_bytes):
                self.sent_bytes += len(data)
                if not self._goes_at_once(data):
                    self._frames.append(data)
                    self._count(len(data))
        except FrameError as error:
            self.close(str(error), error.code)
            return
        # One frame may be of any size: what can't be divided must get through.
        if self._waiting > self._buffer_bytes and len(self._frames) > 1:
            self.overflow()
        if self._frames:
            self._wake.set()

    def _goes_at_once(self, data: bytes) -> bool:
        """Write a small frame, where the connection has taken all before it."""
        transport = self._transport
        if (
            transport is None or self._frames or self._is_sending or len(data) > SMALL_FRAME
            or transport.is_closing() or transport.get_write_buffer_size()
        ):  # fmt: skip
            return False
        writing: Any = self._write(data)
        try:
            # With nothing in the transport's buffer it has nothing to wait for.
            writing.send(None)
        except StopIteration:
            return True
        except (ConnectionError, RuntimeError):
            return False
        writing.close()
        return True

    def _count(self, bytes: int) -> None:
        self._waiting += bytes
        if self._buffers is not None:
            self._buffers.changed(self, bytes)

    def overflow(self) -> None:
        """Too much waits, here or for all connections together: drop it and cut the connection."""
        self.overflowed = True
        self.drop()
        self.close("too slow: more is waiting than send_buffer_bytes, or than send_buffers_bytes for all", 1013)
        self._cut()

    def drop(self) -> None:
        """Send nothing more of what waits."""
        self._frames.clear()
        self._count(-self._waiting)

    def close(self, reason: str, code: int) -> None:
        """Send what waits, then close with a reason."""
        if self._closing is None:
            self.reason = reason
            short = " ".join(reason.split()).encode()[:REASON_BYTES]
            self._closing = (code, short.decode(errors="ignore").encode())
            self._wake.set()

    async def run(self) -> None:
        """Send until the connection ends, from either side."""
        try:
            while self._closing is None or self._frames:
                while self._frames:
                    self._is_sending = True
                    data = self._frames.popleft()
                    if self._buffers is not None:
                        await self._buffers.turn(len(data))
                    await self._write(data)
                    # It counts until the connection has taken it; what was dropped meanwhile is counted already.
                    self._count(-min(len(data), self._waiting))
                self._is_sending = False
                if self._closing is None:
                    self._wake.clear()
                    await self._wake.wait()
            code, reason = self._closing
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._socket.close(code=code, message=reason)
        except (ConnectionError, RuntimeError, aiohttp.ClientError, TimeoutError):
            self._cut()
        finally:
            self.drop()

    async def _write(self, data: bytes) -> None:
        if self._codec.binary:
            await self._socket.send_bytes(data)
        else:
            await self._socket.send_str(data.decode())
