"""What aiohttp logs: a line now and then for requests that aren't HTTP, which anyone can send without end, and all of
what is a defect of the broker's own."""

from __future__ import annotations

import logging
import time
from math import inf
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError

from covey.network.engine import Counts

SAY_EVERY: Final = 60.0
"""Seconds between two lines on what isn't HTTP."""
LONGEST: Final = 200
"""Characters of such a line."""


class HttpLog(logging.Logger):
    """Takes what aiohttp logs of one server; counts it."""

    def __init__(self, counts: Counts) -> None:
        super().__init__("covey.network.http")
        self.parent = logging.getLogger("covey.network")
        self._counts = counts
        self._said_at = -inf

    def handle(self, record: logging.LogRecord) -> None:
        """Let a record go on, shortened, or not at all."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            super().handle(record)
        elif not isinstance(error, HttpProcessingError):
            self._counts.defects += 1
            super().handle(record)
        else:
            self._counts.bad_frames += 1
            if time.monotonic() >= self._said_at + SAY_EVERY:
                self._said_at = time.monotonic()
                record.levelno, record.levelname = logging.WARNING, "WARNING"
                what = " ".join(str(error.message).split())[:LONGEST]
                record.msg, record.args = f"not a request that can be read: {what}", ()
                record.exc_info = None
                super().handle(record)
