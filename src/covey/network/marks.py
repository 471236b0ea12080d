"""Marks of memory and disk: above one, publishers are held back while consumers drain.

The process's memory counts as the system sees it. Holding publishers back helps only where it is events that fill it,
and Python gives memory back late or never, so the mark is passed where memory is above it and events take a good part
of it. The disk's mark is what must be free where the journal is; a commit for which there is no room counts too.

What is measured is told to the broker as an input (`Pressure`): it knows neither memory nor disks.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
from pathlib import Path
from typing import Final

from covey.network.engine import Engine
from covey.network.send_buffers import SendBuffers
from covey.network.storage import Journal, SqliteJournal

EVERY: Final = 0.2
"""Seconds between two looks."""
EVENTS_PART: Final = 0.1
"""The part of the memory mark that events must take for publishers to be held back."""
RELIEF: Final = 0.95
"""Publishers go on below this part of the mark, so that they don't stop and go with every event."""
TRIM_EVERY: Final = 25
"""Looks above the mark after which the allocator is asked to give memory back."""

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Marks:
    """Looks at one broker's memory and disk."""

    def __init__(self, engine: Engine, journal: Journal, buffers: SendBuffers) -> None:
        self._engine = engine
        self._journal = journal
        self._buffers = buffers
        self._above = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look again and again."""
        self._task = asyncio.create_task(self._look_on(), name="marks")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _look_on(self) -> None:
        while True:
            self._engine.press(self.reason())
            await asyncio.sleep(EVERY)

    def reason(self) -> str:
        """Why publishers must be held back now; empty where they needn't."""
        return self._disk() or self._memory()

    def _disk(self) -> str:
        journal = self._journal
        if not isinstance(journal, SqliteJournal):
            return ""
        if journal.full:
            return f"the disk of {journal.path.parent} is full; make room there"
        mark, free = self._engine.limits.disk_mark_bytes, free_disk(journal.path.parent)
        if free < mark:
            return f"{free:,} bytes are free in {journal.path.parent}, less than disk_mark_bytes; make room there"
        return ""

    def _memory(self) -> str:
        mark, used = self._engine.limits.memory_mark_bytes, memory_in_use()
        events = self._engine.broker.event_bytes + self._buffers.bytes
        was_above = self._above > 0
        if used <= mark * (RELIEF if was_above else 1) or events <= mark * EVENTS_PART:
            self._above = 0
            return ""
        self._above += 1
        if self._above % TRIM_EVERY == 0:
            _give_back()
        return f"the broker uses {mark:,} bytes of memory and more (memory_mark_bytes); consumers must take what waits"


def memory_in_use() -> int:
    """Bytes of memory that the process has; 0 where the system doesn't say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def free_disk(directory: Path) -> int:
    """Bytes that are free where a directory is."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return 1 << 62


def _give_back() -> None:
    """Let the allocator give free memory back to the system, where it can."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
