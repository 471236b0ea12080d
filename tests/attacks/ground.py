"""Broker processes on loopback, pinned to one core, with what they take of memory and disk read from outside."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tests.network.overlay import BrokerProcess

ROOT: Final = Path(__file__).parents[2]
BROKERS_CORE: Final = 0
"""Where brokers and the bystander run."""
ATTACKERS_CORE: Final = 1
"""Where attackers run, so that what they take of a core isn't taken for what they do to a broker."""


def pin(pid: int, core: int) -> None:
    """Keep a process on one core, where there are several."""
    if hasattr(os, "sched_setaffinity") and core in os.sched_getaffinity(0):
        os.sched_setaffinity(pid, {core})


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@dataclass(slots=True)
class Ground:
    """Brokers `a`, `b`, … in a line."""

    brokers: list[BrokerProcess]
    urls: list[str]
    folders: list[Path]
    """The brokers' data."""
    peak: list[int] = field(default_factory=list)
    """The most memory that each broker was seen with, in bytes."""

    def memory(self, at: int) -> int:
        """What a broker holds of memory now, in bytes."""
        for line in Path(f"/proc/{self.brokers[at].pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def look(self) -> None:
        """Note how much memory brokers have, and that they are there."""
        self.peak = self.peak or [0] * len(self.brokers)
        for at, broker in enumerate(self.brokers):
            broker.check()
            self.peak[at] = max(self.peak[at], self.memory(at))

    def journal_bytes(self) -> int:
        """The size of all journals with what SQLite keeps beside them."""
        return sum(path.stat().st_size for folder in self.folders for path in folder.rglob("*") if path.is_file())


@asynccontextmanager
async def ground(
    folder: Path, count: int, settings: Mapping[str, Any], absent: Sequence[str] = ()
) -> AsyncIterator[Ground]:
    """So many brokers in a line; `absent` are neighbours of the first that never come."""
    names = [chr(ord("a") + at) for at in range(count)]
    ports = [free_port() for _ in names]
    peers: dict[str, dict[str, str]] = {name: {} for name in names}
    for (near, port), (far, _) in pairwise(zip(names, ports, strict=True)):
        peers[near][far] = ""
        peers[far][near] = f"ws://127.0.0.1:{port}"
    peers[names[0]] |= dict.fromkeys(absent, "")
    brokers = [
        BrokerProcess(name, folder, None, {"host": "127.0.0.1", "port": port, **settings, "peers": peers[name]})
        for name, port in zip(names, ports, strict=True)
    ]
    try:
        for broker in brokers:
            await broker.start()
            pin(broker.pid, BROKERS_CORE)
        urls = [f"ws://127.0.0.1:{port}" for port in ports]
        yield Ground(brokers, urls, [folder / f"{name}.data" for name in names])
    finally:
        for broker in brokers:
            await broker.end()


@asynccontextmanager
async def role(module: str, core: int, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of these tests, on a core, with pipes."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, cwd=ROOT,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24,
    )  # fmt: skip
    pin(process.pid, core)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
