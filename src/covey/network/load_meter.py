"""What a broker uses of its resources, for `[pruning] dimension = "auto"`: measured here, told to it as an input.

Memory is the process's, as the system sees it. Bandwidth is what went to neighbours since the last time, in bytes a
second. Processing is the processor time that the process had. Each is told as a share of what the configuration
counts as all there is. The policy `at_bandwidth` of merging hears of the bytes a second too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from covey.network.engine import Engine
from covey.network.marks import memory_in_use
from covey.routing.config import BrokerConfig, PruningOptions
from covey.routing.messages import Measured

EVERY: Final = 10.0
"""Seconds between two measurements where only merging asks for them."""


class LoadMeter:
    """Measures one broker, again and again."""

    def __init__(self, engine: Engine, config: BrokerConfig, sent_bytes: Callable[[], int]) -> None:
        """`sent_bytes` gives what went to neighbours since the start."""
        self._engine = engine
        self._configure(config)
        self._sent_bytes = sent_bytes
        self._before = (time.monotonic(), time.process_time(), 0)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Measure from now on, if anything asks for it."""
        if self._wanted:
            self.measured()
            self._task = asyncio.create_task(self._go_on(), name="load meter")

    def _configure(self, config: BrokerConfig) -> None:
        self._options = config.pruning or PruningOptions(measure_every=EVERY)
        self._wanted = self._options.dimension == "auto" or config.merging.policy.at_bandwidth is not None

    async def follow(self, config: BrokerConfig) -> None:
        """Measure what another configuration asks for, from now on."""
        await self.stop()
        self._configure(config)
        self.start()

    async def stop(self) -> None:
        """Measure no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _go_on(self) -> None:
        while True:
            await asyncio.sleep(self._options.measure_every)
            self._engine.measure(self.measured())

    def measured(self) -> Measured:
        """What was used since the last time."""
        then, spent, sent = self._before
        self._before = now, spending, sending = time.monotonic(), time.process_time(), self._sent_bytes()
        elapsed = max(now - then, 1e-6)
        rate = (sending - sent) / elapsed
        return Measured(
            memory_in_use() / self._options.memory_bytes,
            rate / self._options.link_bytes,
            (spending - spent) / elapsed / self._options.cores,
            rate,
        )
