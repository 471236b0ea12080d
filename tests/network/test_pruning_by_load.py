"""`dimension = "auto"` in processes of their own: what a broker prunes by follows the load that it is under; status,
metrics and console show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from covey.cli import main
from covey.history import Profile
from covey.network import connect
from tests.network.running import in_loop
from tests.network.test_crashes import Process, running

MEMORY = 1 << 40
USED = 0.8
"""Of its memory that the broker uses without any load."""
WANTED = [f"price > {n} AND volume > {n}" for n in range(40)]


def configured(folder: Path, memory: int) -> str:
    Profile.of([{"price": n, "volume": n} for n in range(100)], WANTED).save(folder / "market.profile")
    path = folder / "a.toml"
    path.write_text(f"""
        id = "a"
        port = 0
        strategy = "simple"
        profile = "market.profile"
        [peers]
        b = ""
        [pruning]
        dimension = "auto"
        memory_bytes = {memory}
        link_bytes = 1_000
        cores = 0.1
        measure_every = 0.2
    """)
    return str(path)


async def told(url: str, path: str) -> Any:
    async with aiohttp.ClientSession() as session, session.get(url.replace("ws://", "http://") + path) as response:
        return await response.json() if response.content_type == "application/json" else await response.text()


@asynccontextmanager
async def going_on(work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    async def forever() -> None:
        while True:
            await work()

    task = asyncio.create_task(forever())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def idle_bytes(folder: Path) -> int:
    async with running("a", folder / "idle", "--config", configured(folder, MEMORY)) as broker:
        while True:
            used = (await told(broker.url, "/v1/status"))["pruning"]["memory"] * MEMORY
            if used > 0:
                return int(used)
            await asyncio.sleep(0.05)


@pytest.mark.long
@in_loop
async def test_what_is_pruned_by_follows_the_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = configured(tmp_path, int(await idle_bytes(tmp_path) / USED))
    async with (
        running("a", tmp_path, "--config", config) as a,
        running("b", tmp_path, "--port", "0", "--peer", f"a={a.url}") as b,
        connect(b.url) as ann,
        connect(a.url) as bob,
    ):
        await ann.subscribe_many({f"s{n}": text for n, text in enumerate(WANTED)})
        await shown(a, "memory", "memory", capsys)

        async def cross() -> None:
            await bob.publish({"price": 500, "volume": 500, "note": "x" * 4_000})
            await asyncio.sleep(0.05)

        async with going_on(cross):
            await shown(a, "network", "bandwidth", capsys)

        async def match() -> None:
            # However the entries are pruned, nothing of this is wanted beyond.
            await bob.publish([{"price": -1, "volume": -n} for n in range(500)])

        async with going_on(match):
            await shown(a, "throughput", "processing", capsys)


async def shown(broker: Process, dimension: str, resource: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wait until a dimension is chosen because its resource is the scarcest, and everybody who looks sees it."""
    while True:
        found = (await told(broker.url, "/v1/status"))["pruning"]
        scarcest = max(("memory", "bandwidth", "processing"), key=found.__getitem__)
        metrics = await told(broker.url, "/metrics")
        console = (await told(broker.url, "/v1/console/routes"))["pruned_by"]
        capsys.readouterr()
        assert await asyncio.to_thread(main, ["status", "--broker", broker.url]) == 0
        seen = (
            (found["dimension"], scarcest) == (dimension, resource),
            f'covey_pruning{{dimension="{dimension}"}} 1.0' in metrics,
            console["dimension"] == dimension,
            f"pruned by {dimension}, " in capsys.readouterr().out,
        )
        if all(seen):  # one look after another, between which the broker may have measured again
            return
        await asyncio.sleep(0.05)
