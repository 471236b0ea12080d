"""Python's garbage collector, for a process whose tables live long and that nobody may wait for.

A collection looks at all objects of a generation while everything else stands still: some tenth of a microsecond each,
and a table of a hundred thousand subscriptions is millions of them. So generations are small, and what has outlived the
last of them is put aside (`gc.freeze`) and isn't looked at again: each object is looked at three times, in pauses of
some milliseconds, however many there are.

What was put aside and becomes garbage is still freed by its count of references, as nearly everything is. Only cycles
stay, and it is sessions that have some, so after many sessions everything is looked at once more.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any, Final

YOUNG: Final = 1_000
"""Allocations between two looks at young objects."""
MIDDLE: Final = 2
OLD: Final = 3
"""Looks at one generation before the next is looked at."""
LOOK_SECONDS: Final = 10.0
SESSIONS: Final = 500
OBJECTS: Final = 30
"""Everything is looked at after so many sessions, and after one for each so many objects: what that costs a session is
bounded, and so is what sessions leave behind, to a part of all that there is."""


class Garbage:
    """Collects garbage as above from `start` to `stop`."""

    def __init__(self) -> None:
        self._sessions: Callable[[], int] = lambda: 0
        self._at = 0
        self._before = gc.get_threshold()
        self._timer: asyncio.TimerHandle | None = None

    def start(self, sessions: Callable[[], int]) -> None:
        """Begin, with what is there now put aside; `sessions` says how many were ever opened."""
        self._sessions = sessions
        gc.callbacks.append(self._collected)
        gc.set_threshold(YOUNG, MIDDLE, OLD)
        gc.collect()
        # Once more: how many were there counts for how soon they are looked at again, and now there are few.
        gc.collect()
        self._look_later()

    def stop(self) -> None:
        """Let the collector be as it was."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            gc.callbacks.remove(self._collected)
            gc.set_threshold(*self._before)
            gc.unfreeze()

    def look(self) -> None:
        """Look at everything, if there were many sessions since."""
        opened = self._sessions()
        # Counting what was put aside goes through all of it, so first things first.
        if opened - self._at >= SESSIONS and opened - self._at >= gc.get_freeze_count() // OBJECTS:
            self._at = opened
            gc.unfreeze()
            gc.collect()
            gc.collect()
        self._look_later()

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self.look)

    def _collected(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] == 2:
            gc.freeze()
