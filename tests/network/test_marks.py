"""Above a mark of memory or disk publishers wait and are told so, consumers drain, and then publishers go on."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from covey.network import NetworkLimits, connect, marks
from covey.network.send_buffers import SendBuffers
from tests.network.running import broker, http, in_loop, until

LARGE = "x" * 100_000


def test_publishers_wait_above_the_memory_mark_and_consumers_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    used = 0
    monkeypatch.setattr(marks, "memory_in_use", lambda: used)
    monkeypatch.setattr(marks, "EVERY", 0.01)

    @in_loop
    async def check() -> None:
        nonlocal used
        limits = NetworkLimits(memory_mark_bytes=1_000_000)
        async with broker(limits=limits) as server, connect(server.url) as shop, aiohttp.ClientSession() as session:
            async with connect(server.url, name="ann") as ann:
                await ann.subscribe("at >= 0", id="s", durable=True)
            for at in range(5):
                await shop.publish({"at": at, "text": LARGE}, durable=True)
            used = 1_000_001
            await until(lambda: "memory_mark_bytes" in shop.held)
            waiting = asyncio.create_task(shop.publish({"at": 5, "text": LARGE}, durable=True))
            async with session.post(f"{http(server)}/v1/events", json={"at": 99}) as response:
                assert response.status == 503
                assert "memory_mark_bytes" in await response.text()
            async with session.get(f"{http(server)}/metrics") as response:
                assert "covey_held_back 1.0" in await response.text()
            async with connect(server.url, name="ann") as ann:
                assert "memory_mark_bytes" in ann.held
                inbox = await ann.subscribe("at >= 0", id="s", durable=True)
                assert [(await inbox.get())["at"] for _ in range(5)] == list(range(5))
                assert not waiting.done()
                used = 900_000
                assert (await inbox.get())["at"] == 5
                await waiting
                assert shop.held == ""

    check()


def test_memory_that_no_events_take_holds_nobody_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "memory_in_use", lambda: 1 << 40)
    monkeypatch.setattr(marks, "EVERY", 0.01)

    @in_loop
    async def check() -> None:
        async with broker(limits=NetworkLimits(memory_mark_bytes=1_000_000)) as server, connect(server.url) as shop:
            await asyncio.sleep(0.05)
            await shop.publish({"x": 1})
            assert shop.held == ""

    check()


def test_a_client_of_protocol_1_that_publishes_on_is_read_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks.Marks, "reason", lambda self: "a test")

    @in_loop
    async def check() -> None:
        limits = NetworkLimits(message_bytes=200_000)
        async with (
            broker(limits=limits) as server,
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/v1/client?client=old") as old,
        ):
            await until(lambda: server.engine.broker.pressure == "a test")
            for at in range(20):
                event = f'[["Publish", {at}, [["Publication", {{"text": "{LARGE}"}}]]]]'
                try:
                    await asyncio.wait_for(old.send_str(event), 0.2)
                except TimeoutError:
                    break
            await asyncio.sleep(0.1)
            assert 0 < server.engine.broker.event_bytes < 400_000

    check()


def test_where_all_buffers_are_too_much_together_the_fullest_is_cut() -> None:
    class One:
        def __init__(self, name: str) -> None:
            self.name, self.waiting_bytes = name, 0

        def put(self, by: int) -> None:
            self.waiting_bytes += by
            buffers.changed(self, by)

        def overflow(self) -> None:
            cut.append(self.name)
            self.put(-self.waiting_bytes)

    cut: list[str] = []
    buffers = SendBuffers(100)
    a, b, c = One("a"), One("b"), One("c")
    a.put(60)
    b.put(30)
    a.put(-40)
    c.put(50)
    assert (cut, buffers.bytes) == ([], 100)
    b.put(5)
    assert (cut, buffers.bytes) == (["c"], 55)


def can_mount() -> bool:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        return False
    tried = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return tried.returncode == 0


def test_a_full_disk_holds_publishers_back_and_ends_nothing(tmp_path: Path) -> None:
    if not can_mount():
        pytest.skip("needs a mount namespace")
    disk = tmp_path / "disk"
    disk.mkdir()
    config = tmp_path / "a.toml"
    config.write_text(f'id = "a"\nport = 0\ndata = "{disk}"\n[limits]\ndisk_mark_bytes = 100_000\n')
    script = f"mount -t tmpfs -o size=96m tmpfs {disk} && exec {sys.executable} -m covey.cli broker --config {config}"
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    try:
        found = re.search(r"ws://\S+", process.stdout.readline().decode())
        assert found is not None, (tmp_path / "log").read_text()
        confirmed = fill_and_free(found[0], Path(f"/proc/{process.pid}/root{disk}/filler"))
        assert confirmed >= 3
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(30)
    text = (tmp_path / "log").read_text()
    assert "publishers are held back" in text
    assert "Traceback" not in text


def fill_and_free(url: str, filler: Path) -> int:
    """Fill a broker's disk while events are published, make room again, and receive all; how many there were."""
    confirmed: list[int] = []

    @in_loop
    async def check() -> None:
        async with connect(url, name="ann") as ann, connect(url, name="shop") as shop:
            inbox = await ann.subscribe("at >= 0", id="s", durable=True)

            async def publish() -> None:
                for at in range(60):
                    await shop.publish({"at": at, "text": LARGE}, durable=True)
                    confirmed.append(at)
                    if at == 2:
                        free = shutil.disk_usage(filler.parent).free
                        filler.write_bytes(bytes(max(0, free - 4096)))

            publishing = asyncio.create_task(publish())
            await until(lambda: bool(shop.held) or publishing.done())
            assert not publishing.done()
            at_hold = len(confirmed)
            filler.unlink()
            await publishing
            assert len(confirmed) == 60 > at_hold
            assert [(await inbox.get())["at"] for _ in range(60)] == list(range(60))
            assert ann.missed == 0

    check()
    return len(confirmed)
