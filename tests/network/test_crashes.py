"""A broker's process that is killed, and started again on its journal."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from covey.network import connect
from tests.network.running import in_loop


class Process:
    """A broker in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self._process = process
        self.url = url

    @property
    def port(self) -> str:
        return self.url.rpartition(":")[2]

    async def kill(self) -> None:
        """As a power cut would: no chance to write anything more."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()

    def reload(self) -> None:
        """Let it read its files again."""
        self._process.send_signal(signal.SIGHUP)

    async def end(self) -> int:
        """As an operator would."""
        self._process.terminate()
        return await self._process.wait()


@asynccontextmanager
async def running(name: str, data: Path, *options: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "covey.cli", "broker", "--id", name, "--data", str(data / name), "--log-level", "error",
        *options, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        assert line.startswith(f"broker {name} listens on ws://"), line
        broker = Process(process, line.split()[-1])
        yield broker
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@in_loop
async def test_durable_events_survive_the_death_of_their_broker(tmp_path: Path) -> None:
    async with running("a", tmp_path, "--port", "0") as first:
        async with connect(first.url, name="ann") as ann:
            await ann.subscribe("x >= 0", id="all", durable=True)
        async with connect(first.url, name="bob") as bob:
            for number in range(50):
                await bob.publish({"x": number}, durable=True)
        await first.kill()
    async with running("a", tmp_path, "--port", "0") as second, connect(second.url, name="ann") as ann:
        assert ann.kept == {"all"}
        subscription = await ann.subscribe("x >= 0", id="all", durable=True)
        assert [(await subscription.get())["x"] for _ in range(50)] == list(range(50))
        assert await second.end() == 0


@in_loop
async def test_a_publisher_whose_broker_dies_in_the_midst_publishes_everything_once(tmp_path: Path) -> None:
    async with running("a", tmp_path, "--port", "0") as first:
        async with connect(first.url, name="ann") as ann:
            await ann.subscribe("x >= 0", id="all", durable=True)
        async with connect(first.url, name="bob") as bob:

            async def publish() -> None:
                for number in range(300):
                    await bob.publish({"x": number}, durable=True)

            publishing = asyncio.create_task(publish())
            await asyncio.sleep(0.1)
            await first.kill()
            async with running("a", tmp_path, "--port", first.port) as second, connect(second.url, name="ann") as ann:
                subscription = await ann.subscribe("x >= 0", id="all", durable=True)
                got = [(await subscription.get())["x"] for _ in range(300)]
                await publishing
                assert got == list(range(300))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(subscription.get(), 0.2)


@in_loop
async def test_events_wait_at_a_neighbour_for_a_broker_that_died(tmp_path: Path) -> None:
    async with (
        running("a", tmp_path, "--port", "0", "--peer", "b") as a,
        running("b", tmp_path, "--port", "0", "--peer", f"a={a.url}") as b,
    ):
        async with connect(a.url, name="ann") as ann:
            await ann.subscribe("x >= 0", id="all", durable=True)
        async with connect(b.url, name="bob") as bob:
            await bob.publish({"x": 0}, durable=True)
            await a.kill()
            await bob.publish([{"x": 1}, {"x": 2}], durable=True)
            async with (
                running("a", tmp_path, "--port", a.port, "--peer", "b") as again,
                connect(again.url, name="ann") as ann,
            ):
                subscription = await ann.subscribe("x >= 0", id="all", durable=True)
                # Where the first was published before the link was there, it is recalled, and may be late.
                assert sorted([(await subscription.get())["x"] for _ in range(3)]) == [0, 1, 2]
