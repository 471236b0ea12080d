"""An overlay of real broker processes that can be killed, started again and cut off, with clients beside them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from http.client import HTTPException
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from tests.network.overlay_client import Crew, Fact, Spec
from tests.network.overlay_grounds import Ground, Link

ROOT = Path(__file__).parents[2]
STARTING_SECONDS = 120.0
"""A broker that doesn't listen after so long hangs."""
FACT_BYTES = 1 << 20
"""One line of a crew."""
Settings = Mapping[str, Any]


def line(count: int) -> tuple[list[str], list[Link]]:
    names = [f"b{at}" for at in range(1, count + 1)]
    return names, list(pairwise(names))


def ring(count: int) -> tuple[list[str], list[Link]]:
    names, links = line(count)
    return names, [*links, (names[-1], names[0])]


class BrokerProcess:
    """One `covey broker`, over all its lives."""

    def __init__(self, name: str, directory: Path, namespace: str | None, settings: Settings) -> None:
        self.name = name
        self.lives = 0
        self._log = directory / f"{name}.log"
        prefix = [] if namespace is None else ["ip", "netns", "exec", namespace]
        self._command = [*prefix, sys.executable, "-m", "covey.cli", "broker", "--config", str(directory / name)]
        (directory / name).write_text(toml({"id": name, "data": directory / f"{name}.data", **settings}))
        self._process: asyncio.subprocess.Process | None = None
        self.busy = asyncio.Lock()
        """Held while it is dead."""

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = process = await asyncio.create_subprocess_exec(
                *self._command, stdout=asyncio.subprocess.PIPE, stderr=log, cwd=ROOT
            )
        assert process.stdout is not None
        async with asyncio.timeout(STARTING_SECONDS):
            said = (await process.stdout.readline()).decode()
        assert said.startswith(f"broker {self.name} listens on "), f"{said}{self.log}"
        self.lives += 1

    async def kill(self) -> None:
        """As a power cut would: no chance to write anything more."""
        self.check()
        await self.end()

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def check(self) -> None:
        """Nobody but `kill` may have ended it."""
        assert self._process is not None
        assert self._process.returncode is None, f"{self.name} ended by itself: {self.log}"
        assert "Traceback" not in self.log, self.log

    @property
    def pid(self) -> int:
        """Its process at present."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text()


class ClientProcess:
    """Clients in a process; `take` is called with each fact."""

    def __init__(self, process: asyncio.subprocess.Process, take: Callable[[Fact], None]) -> None:
        self._process = process
        self._take = take
        self._seen: dict[str, asyncio.Event] = {"ready": asyncio.Event(), "stopped": asyncio.Event()}
        self._reading = asyncio.create_task(self._read())

    def tell(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n".encode())

    async def until(self, kind: str) -> None:
        """Wait until it is `ready` or `stopped`."""
        seen = asyncio.create_task(self._seen[kind].wait())
        await asyncio.wait([seen, self._reading], return_when=asyncio.FIRST_COMPLETED)
        seen.cancel()
        assert self._seen[kind].is_set(), f"clients ended before they were {kind}"

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while text := await self._process.stdout.readline():
            fact = msgspec.json.decode(text, type=Fact)
            if fact.kind in self._seen:
                self._seen[fact.kind].set()
            else:
                self._take(fact)


class Overlay:
    """Brokers on a ground."""

    def __init__(self, ground: Ground, directory: Path) -> None:
        self.ground = ground
        self.brokers: dict[str, BrokerProcess] = {}
        self._directory = directory
        self._cuts: Counter[Link] = Counter()

    def configure(self, settings: Settings, *, both_open: bool) -> None:
        """Write configurations. Links are opened by both ends, or by the second of the two."""
        for name in self.ground.names:
            peers = {}
            for one, other in self.ground.links:
                if name == other:
                    peers[one] = self.ground.peer_url(other, one)
                elif name == one:
                    peers[other] = self.ground.peer_url(one, other) if both_open else ""
            given = {**self.ground.settings(name), **settings, "peers": peers}
            self.brokers[name] = BrokerProcess(name, self._directory, self.ground.namespace(name), given)

    # Faults

    async def kill(self, name: str, seconds: float) -> None:
        """Kill a broker, and start it again at the same address."""
        broker = self.brokers[name]
        async with broker.busy:
            await broker.kill()
            await asyncio.sleep(seconds)
            await broker.start()

    async def cut(self, link: Link, seconds: float, *, silent: bool) -> None:
        """Cut a link for a while; cuts of one link may overlap."""
        self._cuts[link] += 1
        await self.ground.cut(link, silent=silent)
        await asyncio.sleep(seconds)
        self._cuts[link] -= 1
        if not self._cuts[link]:
            await self.ground.mend(link)

    async def isolate(self, name: str, seconds: float, *, silent: bool) -> None:
        """Cut a broker off from all others; its clients stay with it."""
        await asyncio.gather(*(self.cut(link, seconds, silent=silent) for link in self.links_of(name)))

    def links_of(self, name: str) -> list[Link]:
        return [link for link in self.ground.links if name in link]

    # Settling

    async def settle(self, *, idle: bool) -> None:
        """Wait until all brokers agree on a tree and on what was told over it; idle also has nothing on the way."""
        while True:
            with contextlib.suppress(OSError, HTTPException):
                found = [await self.ground.get(name, "/v1/status") for name in self.brokers]
                if self._is_settled(found, idle=idle):
                    return
            for broker in self.brokers.values():
                if not broker.busy.locked():
                    broker.check()
            await asyncio.sleep(0.2)

    def _is_settled(self, found: list[dict[str, Any]], *, idle: bool) -> bool:
        tree = found[0]["tree"]
        if len(tree) != len(found) - 1 or any(one["tree"] != tree for one in found):
            return False
        ends = {(one["broker"], link["peer"]): link for one in found for link in one["links"]}
        for (one, other), link in ends.items():
            if not link["open"] or link["failed"] or link["unacknowledged"]:
                return False
            if link["in_tree"] != (sorted((one, other)) in tree) or link["told"] != ends[other, one]["heard"]:
                return False
            if idle and link["outbox"]:
                return False
        return True

    # Clients

    @asynccontextmanager
    async def clients(self, seed: int, specs: list[Spec], take: Callable[[Fact], None]) -> AsyncIterator[ClientProcess]:
        """A process for clients, all of which are ready."""
        crews = [
            Crew(
                seed,
                self.ground.door(name),
                [one for one in specs if one.broker == name],
                self.ground.namespace(name),
            )
            for name in self.brokers
        ]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.network.overlay_client", cwd=ROOT, limit=FACT_BYTES,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(crews) + b"\n")
        clients = ClientProcess(process, take)
        try:
            await clients.until("ready")
            yield clients
        finally:
            await clients.end()


@asynccontextmanager
async def overlay(ground: Ground, directory: Path, settings: Settings, *, both_open: bool) -> AsyncIterator[Overlay]:
    """Running brokers; all is gone afterwards, whatever happened."""
    async with AsyncExitStack() as stack:
        stack.push_async_callback(ground.close)
        await ground.open()
        made = Overlay(ground, directory)
        made.configure(settings, both_open=both_open)
        for broker in made.brokers.values():
            stack.push_async_callback(broker.end)
        await asyncio.gather(*(broker.start() for broker in made.brokers.values()))
        yield made


def toml(settings: Settings) -> str:
    """Values as the lines of a file: plain ones first, since tables go to the end."""
    lines = [f"{name} = {_value(one)}" for name, one in settings.items() if not isinstance(one, Mapping)]
    for name, table in settings.items():
        if isinstance(table, Mapping):
            lines += [f"[{name}]", *(f"{key} = {_value(one)}" for key, one in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Path):
        return _value(str(value))
    return msgspec.json.encode(value).decode()
