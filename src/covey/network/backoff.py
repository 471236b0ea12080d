"""Pauses between attempts to connect."""

from __future__ import annotations

import random
from typing import Final

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
"""Seconds."""


class Backoff:
    """Pauses between attempts: twice as long each time, with some chance in it, so that many don't come at once."""

    def __init__(self, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> None:
        self._first = self._next = first
        self._longest = longest

    def pause(self) -> float:
        """Seconds until the next attempt."""
        pause, self._next = self._next, min(self._longest, self._next * 2)
        return pause * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """An attempt went well."""
        self._next = self._first
