"""Figures of one broker process with a publisher and a subscriber in this process; they share the machine's cores.

Every event matches one of the subscriptions, so each is published, matched, delivered and taken once. Throughput is
events through all of that a second, published in batches with several under way; the subscriber's credit is what holds
the publisher back, as it would be outside of a benchmark. Latency is measured apart, one event at a time on an idle
broker, and again under half the throughput that was found.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from covey.network import connect
from covey.network.asyncio import Client

SYMBOLS = 10_000
IN_FLIGHT = 4
"""Batches that the publisher doesn't wait for."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One measurement."""

    subscriptions: int
    events: int
    batch: int
    durable: bool = False

    @property
    def symbols(self) -> int:
        """Companies; several subscriptions each divide its prices between them."""
        return min(SYMBOLS, self.subscriptions)


@dataclass(frozen=True, slots=True)
class Figures:
    """What came out."""

    subscribed_per_second: float
    events_per_second: float
    idle: tuple[float, float]
    """Milliseconds of the median and of the 99th percentile, one event at a time."""
    loaded: tuple[float, float]
    """The same under half the throughput."""
    missed: int
    broker_cpu: float
    """Microseconds of processor time an event, of the broker; these stay what they are on a busy machine."""
    clients_cpu: float
    """The same of both clients."""


async def measure(setting: Setting, seed: int = 1) -> Figures:
    """Run one setting on a new broker."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        async with (
            _broker(Path(directory), durable=setting.durable) as (url, pid),
            connect(url, name="subscriber") as reader,
            connect(url, name="publisher") as writer,
        ):
            subscribed = await _subscribe(reader, setting)
            deliveries = _Deliveries(reader)
            events = [_event(chance, setting.symbols) for _ in range(setting.events)]
            warm = events[: setting.events // 10]
            await _publish(writer, warm, setting)
            await deliveries.wait(len(warm))
            start, own, its = time.perf_counter(), time.process_time(), _cpu(pid)
            await _publish(writer, events, setting)
            await deliveries.wait(len(warm) + setting.events)
            rate = setting.events / (time.perf_counter() - start)
            own, its = (
                (now - then) * 1e6 / setting.events for now, then in ((time.process_time(), own), (_cpu(pid), its))
            )
            idle = await _idle(writer, deliveries, setting)
            loaded = await _loaded(writer, deliveries, rate / 2, setting)
            missed = reader.missed
    return Figures(subscribed, rate, idle, loaded, missed, its, own)


class _Deliveries:
    """Counts what comes, and when, without a task for each of a hundred thousand subscriptions."""

    def __init__(self, client: Client) -> None:
        self.count = 0
        self.latencies: list[float] = []
        self._client = client
        self._waiting: tuple[int, asyncio.Event] | None = None
        for subscription in client._subscriptions.values():
            subscription._put = self._take  # type: ignore[method-assign]

    def _take(self, delivery: Any) -> None:
        self._client._taken(delivery._arrival)
        delivery.ack()
        self.count += 1
        sent = delivery.attributes.get("sent")
        if sent is not None:
            self.latencies.append(time.perf_counter() - sent)
        if self._waiting is not None and self.total >= self._waiting[0]:
            self._waiting[1].set()

    @property
    def total(self) -> int:
        """What came or was missed."""
        return self.count + self._client.missed

    async def wait(self, count: int) -> None:
        """Until so many came, or were missed."""
        self._waiting = (count, asyncio.Event())
        if self.total < count:
            await self._waiting[1].wait()


@asynccontextmanager
async def _broker(directory: Path, *, durable: bool) -> AsyncIterator[tuple[str, int]]:
    options = ["--data", str(directory)] if durable else []
    config = directory / "broker.toml"
    config.write_text(
        "[limits]\nmessage_rate = 1e9\nevent_rate = 1e9\nsubscriptions = 2000000\n"
        "credit = 20000\nbuffer = 20000\nmessages = 100000\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "covey.cli", "broker", "--config", str(config), "--id", "a", "--port", "0", *options,
        "--log-level", "error", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().split()[-1], process.pid
    finally:
        process.kill()
        await process.wait()


async def _subscribe(client: Client, setting: Setting) -> float:
    """Subscriptions that share symbols and divide the prices between them, so that one matches each event."""
    start = time.perf_counter()
    symbols = setting.symbols
    each = setting.subscriptions // symbols
    filters = [
        f"symbol = 'S{at % symbols}' AND price >= {at // symbols * 1000 / each} "
        f"AND price < {(at // symbols + 1) * 1000 / each}"
        for at in range(setting.subscriptions)
    ]
    for first in range(0, len(filters), 2_000):
        some = filters[first : first + 2_000]
        made = (client.subscribe(text, id=f"{first + at}", durable=setting.durable) for at, text in enumerate(some))
        await asyncio.gather(*made)
    return setting.subscriptions / (time.perf_counter() - start)


def _event(chance: random.Random, symbols: int) -> dict[str, Any]:
    symbol, volume = f"S{chance.randrange(symbols)}", chance.randrange(10_000)
    return {"symbol": symbol, "price": chance.uniform(0, 999.9), "volume": volume}


async def _publish(client: Client, events: list[dict[str, Any]], setting: Setting) -> None:
    room = asyncio.Semaphore(IN_FLIGHT)

    async def one(batch: list[dict[str, Any]]) -> None:
        async with room:
            await client.publish(batch, durable=setting.durable)

    size = setting.batch
    await asyncio.gather(*(one(events[first : first + size]) for first in range(0, len(events), size)))


async def _idle(client: Client, deliveries: _Deliveries, setting: Setting) -> tuple[float, float]:
    chance = random.Random(2)
    deliveries.latencies.clear()
    for _ in range(300):
        goal = deliveries.total + 1
        await client.publish({**_event(chance, setting.symbols), "sent": time.perf_counter()}, durable=setting.durable)
        await deliveries.wait(goal)
    return _percentiles(deliveries.latencies)


async def _loaded(client: Client, deliveries: _Deliveries, rate: float, setting: Setting) -> tuple[float, float]:
    """Events at an even pace, in batches of a hundredth of a second, each with the time when it was due."""
    chance = random.Random(3)
    deliveries.latencies.clear()
    size = max(1, int(rate / 100))
    batches = [[_event(chance, setting.symbols) for _ in range(size)] for _ in range(200)]
    goal = deliveries.total + size * len(batches)
    start = time.perf_counter()
    under_way: list[asyncio.Task[None]] = []
    for at, batch in enumerate(batches):
        due = start + at / 100
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        stamped = [{**event, "sent": due} for event in batch]
        under_way.append(asyncio.create_task(client.publish(stamped, durable=setting.durable)))
    await asyncio.gather(*under_way)
    await deliveries.wait(goal)
    return _percentiles(deliveries.latencies)


def _cpu(pid: int) -> float:
    """Seconds of processor time that a process has had; 0 where the system doesn't say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    ordered = sorted(seconds)
    return 1e3 * ordered[len(ordered) // 2], 1e3 * ordered[int(len(ordered) * 0.99)]
