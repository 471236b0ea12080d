"""Publishers and subscribers in a process of their own: a thread for each broker, in its network namespace.

    python -m tests.network.overlay_client

The first line on standard input lists the clients. `publish` lets publishers begin, `stop` lets them end, and the end
of the input ends the process. What happens goes to standard output, one `Fact` a line. Times are of the monotonic
clock, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from covey.network import ConnectionLostError, client_context, connect
from covey.network.asyncio import Client

KINDS = "abcd"
PAUSE = 0.08
"""Seconds between publications, on average."""
CLONE_NEWNET = 0x4000_0000


class Publisher(msgspec.Struct, tag=True):
    """Advertises and publishes durable events, numbered, one message after the other is confirmed."""

    name: str
    broker: str


class Subscriber(msgspec.Struct, tag=True):
    """Asks for events."""

    name: str
    broker: str
    filter: str
    durable: bool = True
    joins_after: float = 0.0
    """Seconds after the publishers' start; 0 for before it."""
    away_after: float = 0.0
    """Seconds after which it leaves for a while, again and again; 0 for never."""


Spec = Publisher | Subscriber


class Door(msgspec.Struct):
    """How clients get to a broker."""

    url: str
    token: str | None = None
    authority: str | None = None


class Crew(msgspec.Struct):
    """The clients of one broker, and the network namespace that both are in."""

    seed: int
    door: Door
    clients: list[Spec]
    namespace: str | None = None


class Fact(msgspec.Struct, omit_defaults=True):
    """Something that happened: `ready`, `subscribed`, `confirmed`, `got` or `stopped`."""

    kind: str
    client: str = ""
    at: float = 0.0
    """When events were handed to the client to be published, or when a subscription was confirmed."""
    events: list[dict[str, Any]] = []
    number: int = 0
    late: bool = False


def say(fact: Fact) -> None:
    # One write of less than a pipe takes at once, so that threads don't mix their lines.
    os.write(1, msgspec.json.encode(fact) + b"\n")


def random_events(rng: random.Random, name: str, first: int) -> list[dict[str, Any]]:
    """A few events; `p` is missing now and then."""
    events = []
    for number in range(first, first + rng.choice([1, 1, 2, 5])):
        event = {"by": name, "n": number, "k": rng.choice(KINDS)}
        if rng.random() < 0.95:
            event["p"] = rng.randrange(100)
        events.append(event)
    return events


class Clients(threading.Thread):
    """Runs one crew."""

    def __init__(self, crew: Crew) -> None:
        super().__init__(daemon=True)
        self._crew = crew
        self._loop = asyncio.new_event_loop()
        self._signals = {"publish": asyncio.Event(), "stop": asyncio.Event()}
        self.ready = threading.Event()
        self.stopped = threading.Event()

    def tell(self, word: str) -> None:
        """Let publishers begin, or end."""
        self._loop.call_soon_threadsafe(self._signals[word].set)

    def run(self) -> None:
        if self._crew.namespace is not None:
            enter(self._crew.namespace)
        self._loop.run_until_complete(self._work())

    async def _work(self) -> None:
        subscribers = {one.name: one for one in self._crew.clients if isinstance(one, Subscriber)}
        early = {name: asyncio.Event() for name, one in subscribers.items() if not one.joins_after}
        subscribing = [self._subscribe(one, early.get(name)) for name, one in subscribers.items()]
        publishing = [self._publish(one) for one in self._crew.clients if isinstance(one, Publisher)]
        async with asyncio.TaskGroup() as group:
            for wish in subscribing:
                group.create_task(wish)
            for one in early.values():
                await one.wait()
            self.ready.set()
            await asyncio.gather(*publishing, self._signals["stop"].wait())
            self.stopped.set()

    @asynccontextmanager
    async def _connected(self, one: Spec) -> AsyncIterator[Client]:
        """A session; the first attempts may find the broker dead."""
        door = self._crew.door
        tls = None if door.authority is None else client_context(door.authority)
        while True:
            try:
                client = await connect(door.url, name=one.name, token=door.token, tls=tls)
                break
            except ConnectionLostError:
                await asyncio.sleep(0.2)
        try:
            yield client
        finally:
            await client.close()

    async def _publish(self, one: Publisher) -> None:
        rng = random.Random(f"{self._crew.seed} {one.name}")
        async with self._connected(one) as client:
            await client.advertise(f"by = '{one.name}'", id="own", durable=True)
            await self._signals["publish"].wait()
            number = 1
            while not self._signals["stop"].is_set():
                events = random_events(rng, one.name, number)
                at = time.monotonic()
                await client.publish(events, durable=True)
                say(Fact("confirmed", one.name, at, events))
                number += len(events)
                await asyncio.sleep(rng.uniform(0, 2 * PAUSE))

    async def _subscribe(self, one: Subscriber, early: asyncio.Event | None) -> None:
        if early is None:
            await self._signals["publish"].wait()
            await asyncio.sleep(one.joins_after)
        while True:
            async with self._connected(one) as client:
                subscription = await client.subscribe(one.filter, id="wish", durable=one.durable)
                say(Fact("subscribed", one.name, time.monotonic()))
                if early is not None:
                    early.set()
                stays = not one.away_after or self._signals["stop"].is_set()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if stays else one.away_after):
                        async for delivery in subscription:
                            say(Fact("got", one.name, 0.0, [delivery.attributes], delivery.number, delivery.late))
            await asyncio.sleep(one.away_after)


def enter(namespace: str) -> None:
    """Let the sockets of this thread be of a network namespace."""
    with open(f"/run/netns/{namespace}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"can't enter the network namespace {namespace}")


def end_all(problem: threading.ExceptHookArgs) -> None:
    """No client may end but with the process: the tests wait for all of them."""
    traceback.print_exception(problem.exc_value)
    os._exit(1)


def main() -> None:
    threading.excepthook = end_all
    crews = [Clients(crew) for crew in msgspec.json.decode(sys.stdin.readline(), type=list[Crew])]
    for crew in crews:
        crew.start()
    for crew in crews:
        crew.ready.wait()
    say(Fact("ready"))
    for line in sys.stdin:
        for crew in crews:
            crew.tell(line.strip())
        if line.strip() == "stop":
            for crew in crews:
                crew.stopped.wait()
            say(Fact("stopped"))


if __name__ == "__main__":
    main()
