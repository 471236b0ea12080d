"""What a broker uses is measured and told to it; status, metrics and the command line show what it chose."""

from __future__ import annotations

import asyncio

import aiohttp

from covey.cli.broker.status import _status_lines
from covey.history import EventSample
from covey.network.load_meter import LoadMeter
from covey.relations.merging import MergingPolicy
from covey.routing import BrokerConfig, PruningOptions
from covey.routing.config import MergingOptions
from covey.routing.messages import Measured
from tests.network.running import broker, http, in_loop, until

SAMPLE = EventSample([{"price": price} for price in range(8)])
QUICK = 0.01


class Told:
    """An engine that notes what it is told."""

    def __init__(self) -> None:
        self.measured: list[Measured] = []
        self.enough = asyncio.Event()

    def measure(self, measured: Measured) -> None:
        self.measured.append(measured)
        if len(self.measured) == 3:
            self.enough.set()


def test_bytes_and_memory_are_told_as_shares_of_what_there_is() -> None:
    async def run() -> list[Measured]:
        told, sent = Told(), iter(range(0, 10**9, 1_000))
        options = PruningOptions("auto", memory_bytes=1, link_bytes=1, measure_every=QUICK)
        config = BrokerConfig("a", pruning=options, chances=SAMPLE)
        meter = LoadMeter(told, config, lambda: next(sent))  # type: ignore[arg-type]
        meter.start()
        await told.enough.wait()
        await meter.stop()
        return told.measured

    for measured in asyncio.run(run()):
        assert measured.memory > 1_000_000, "a process has more than a megabyte"
        assert measured.bytes_a_second == measured.bandwidth > 0
        assert measured.processing >= 0


def test_nothing_is_measured_that_nobody_asks_for() -> None:
    async def run(config: BrokerConfig) -> bool:
        meter = LoadMeter(Told(), config, lambda: 0)  # type: ignore[arg-type]
        meter.start()
        started = meter._task is not None
        await meter.stop()
        return started

    assert not asyncio.run(run(BrokerConfig("a")))
    assert not asyncio.run(run(BrokerConfig("a", pruning=PruningOptions("memory"), chances=SAMPLE)))
    rules = MergingOptions(policy=MergingPolicy(at_bandwidth=5.0))
    assert asyncio.run(run(BrokerConfig("a", strategy="merging", merging=rules)))


@in_loop
async def test_a_broker_short_of_memory_prunes_for_memory_and_says_so() -> None:
    options = PruningOptions("auto", memory_bytes=1 << 20, measure_every=QUICK)
    server = broker(pruning=options, chances=SAMPLE)
    await server.start()
    try:

        def short_of_memory() -> bool:
            choice = server.engine.broker.pruning
            return choice is not None and choice.dimension == "memory"

        await until(short_of_memory)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{http(server)}/v1/status") as response:
                found = await response.json()
            async with session.get(f"{http(server)}/metrics") as response:
                metrics = await response.text()
    finally:
        await server.stop()
    assert found["pruning"]["dimension"] == "memory"
    assert found["pruning"]["memory"] > 1
    assert any("pruned by memory" in line and "in use: memory" in line for line in _status_lines(found))
    assert 'covey_pruning{dimension="memory"} 1.0' in metrics
    assert "covey_pruning_share" in metrics
