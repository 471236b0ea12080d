"""What waits for all connections together, bounded in bytes: where it is too much, who waits with most is cut.

One connection's buffer has a limit of its own; a thousand connections that read nothing would still fill any memory.
"""

from __future__ import annotations

from typing import Protocol


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
