"""`GET /v1/console/history`: what the broker's counters were, second by second, over the last minutes.

The broker keeps them, so a page that is opened or loaded again shows the minutes before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from aiohttp import web

from covey.console.answers import answer
from covey.network.extensions import ServerParts

SAMPLES: Final = 300
"""Samples that are kept; as many as the page draws."""
SAMPLE_SECONDS: Final = 1.0

COUNTED: Final = ("published", "delivered", "received", "sent")
"""What a sample has behind its time; received from neighbours, and sent to them."""


class History:
    """Looks at the counters once a second, as long as the broker runs."""

    def __init__(self, server: ServerParts) -> None:
        self._server = server
        self._samples: deque[tuple[float, ...]] = deque(maxlen=SAMPLES)
        self._loop = asyncio.get_running_loop()
        self._look()

    def _look(self) -> None:
        engine, traffic = self._server.engine, self._server.surveys.traffic.values()
        if engine.stopped.done():
            return
        received, sent = sum(link.received for link in traffic), sum(link.sent for link in traffic)
        delivered = engine.broker.clients.delivered
        self._samples.append((engine.clock(), engine.counts.published, delivered, received, sent))
        self._loop.call_later(SAMPLE_SECONDS, self._look)

    async def history(self, request: web.Request) -> web.Response:
        """All samples, the oldest first, with what they count."""
        self._server.identity.check_right(request, "monitor")
        return answer({"counted": COUNTED, "samples": list(self._samples)})
