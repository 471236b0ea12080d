"""What one connection may cost a broker. Each limit has a name, a default and a reason.

Limits on what a broker keeps (subscriptions, queues, outboxes, the size of one filter) are the broker's own and stand
in `covey.routing.config`; a configuration file sets both kinds in its table `limits`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetworkLimits:
    """Limits on connections, and on what comes over them."""

    message_bytes: int = 1 << 20
    """One frame, or the body of one request, of a client."""

    peer_message_bytes: int = 64 << 20
    """One frame of a neighbour: a table of a hundred thousand filters travels as a whole."""

    decompressed_bytes: int = 4 << 20
    """The body of a request after decompression: a few bytes can stand for gigabytes."""

    load_bytes: int = 512 << 20
    """The body of a request that loads subscriptions."""

    nesting: int = 16
    """Levels of records and lists in an event: whoever walks it does so by recursion."""

    elements: int = 4_096
    """Elements of all lists in an event: each test of a list's elements may look at each of them."""

    messages: int = 4_096
    """Messages in one frame."""

    event_rate: float = 200_000.0
    """Events a second that one principal may publish, over all of its connections; above, the broker reads more slowly,
    or answers 429."""

    message_rate: float = 20_000.0
    """Messages a second of one principal, of whatever kind."""

    byte_rate: float = 256.0 * (1 << 20)
    """Bytes a second that one principal may send."""

    processor_share: float = 0.8
    """Seconds of the broker's time in a second that one principal's messages may take while there are others; above, it
    is read more slowly."""

    connections: int = 1_000
    """Sessions of clients and streams of events at a time."""

    client_connections: int = 100
    """The same for one principal; without authentication all are one, and `connections` alone counts."""

    waiting_connections: int = 200
    """Connections that are nobody's session: opening, or making requests. Beyond, the longest silent one is closed."""

    address_connections: int = 100
    """The same from one address."""

    send_buffer_bytes: int = 32 << 20
    """What waits for one connection to take it; above, the connection is cut."""

    send_buffers_bytes: int = 256 << 20
    """What waits for all clients' connections together; above, the one with most is cut."""

    memory_mark_bytes: int = 2 << 30
    """Memory of the process above which publishers are held back, if events take a tenth of it."""

    disk_mark_bytes: int = 64 << 20
    """What must be free where the journal is; below, publishers are held back."""

    waiting_inputs: int = 2_000
    """Messages that wait for the broker; above, nothing more is read from those who have some waiting."""

    waiting_records: int = 50_000
    """Rows that wait for the disk; above, nothing more is read from anyone."""

    name_length: int = 200
    """Characters in a client's or a subscription's name."""

    handshake_seconds: float = 10.0
    """Until a connection that was opened, TLS included, has to make a request."""

    heartbeat_seconds: float = 20.0
    """A connection that is silent for so long is pinged, and is cut if it stays silent."""


DEFAULT_NETWORK_LIMITS = NetworkLimits()


class Rate:
    """A bucket that fills with so many units a second, up to one second's worth."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._level = per_second
        self._at = 0.0

    def take(self, units: float, now: float) -> float:
        """Take units out, and give the seconds to wait until the bucket is even again; 0 for none."""
        self._level = min(self._per_second, self._level + (now - self._at) * self._per_second)
        self._at = now
        self._level -= units
        return 0.0 if self._level >= 0 else -self._level / self._per_second
