"""The evening: a small service behind a broker, which restarts while the service is there."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import covey
from covey.network import Server, ServerConfig
from covey.routing import BrokerConfig


def broker(data: Path, port: int = 0) -> Server:
    """A broker that keeps what it must in a directory."""
    return Server(ServerConfig(BrokerConfig("a"), port=port, data=data))


async def main(data: Path) -> None:
    """An alert before the restart, and one after it."""
    first = broker(data)
    await first.start()
    port = int(first.url.rpartition(":")[2])
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with covey.connect(first.url, name="alerts", on_connection=heard.put_nowait) as service:
        alerts = await service.subscribe("latency_ms > 1000", id="slow", durable=True)
        async with covey.connect(first.url, name="web") as web:
            await web.publish({"latency_ms": 1500, "path": "/"}, durable=True)
        print("before:", (await alerts.get(timeout=30)).attributes)

        await first.stop()
        print("the connection is", await heard.get())
        second = broker(data, port)
        await second.start()
        print("the connection is", await heard.get())

        async with covey.connect(second.url, name="web") as web:
            await web.publish([{"latency_ms": 5}, {"latency_ms": 9000}], durable=True)
        delivery = await alerts.get(timeout=30)
        print("after:", delivery.attributes)
        assert delivery["latency_ms"] == 9000
    await second.stop()


with tempfile.TemporaryDirectory() as directory:
    asyncio.run(main(Path(directory)))
