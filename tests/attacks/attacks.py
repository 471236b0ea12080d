"""What attackers do. Each gives how many of its requests the broker has answered: a broker that answers nobody would be
unharmed too.

`size` is 1 for what the table of `make attack` shows, and a small part of that in the tests.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

import covey
from covey.network import ConnectionLostError, RefusedError, connect
from covey.network.asyncio import Client
from covey.network.errors import NetworkError
from covey.network.load_client import load_subscriptions

JSON: Final = "covey.v1.json"
ANSWER_SECONDS: Final = 30.0
"""A broker that takes longer to answer stands still."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to attack, and how much."""

    url: str
    size: float

    def of(self, count: int) -> int:
        """A part of a count."""
        return max(1, round(count * self.size))


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to do harm, and the brokers that it is done to."""

    run: Callable[[Target], Awaitable[int]]
    brokers: int = 1
    at: int = 0
    """Which broker of the line is attacked."""
    absent: tuple[str, ...] = ()
    """Neighbours that never come."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As the table has it."""
        return self.run.__name__.replace("_", " ")


ATTACKS: Final[dict[str, Attack]] = {}


def attack(**facts: Any) -> Callable[[Callable[[Target], Awaitable[int]]], Callable[[Target], Awaitable[int]]]:
    """List an attack."""

    def listed(run: Callable[[Target], Awaitable[int]]) -> Callable[[Target], Awaitable[int]]:
        found = Attack(run, **facts)
        ATTACKS[found.name] = found
        return run

    return listed


# What a frame can say


@attack()
async def numbers_beyond_64_bits(target: Target) -> int:
    """Requests whose answers can't be packed, one connection after the other."""
    frames = [
        '[["Unsubscribe",18446744073709551616,"x"]]',
        '[["Publish",18446744073709551616,[[{"x":1}]]]]',
        '[["Subscribe",18446744073709551616,"s","x = 1",true]]',
        '[["Credit",18446744073709551616]]',
        '[["Acknowledge",-1]]',
    ]
    answered = 0
    async with aiohttp.ClientSession() as session:
        for at in range(target.of(2_000)):
            async with session.ws_connect(f"{target.url}/v1/client?client=n{at % 50}", protocols=(JSON,)) as socket:
                await socket.send_str(frames[at % len(frames)])
                for _ in range(2):  # a greeting, then an answer or the end
                    await asyncio.wait_for(socket.receive(), ANSWER_SECONDS)
                answered += 1
    return answered


@attack()
async def hostile_documents(target: Target) -> int:
    """XML that would open files, grow without end, or nest without end: refused by name, each of them."""
    entities = "".join(f'<!ENTITY e{at} "{f"&e{at - 1};" * 10}">' for at in range(1, 12))
    documents = [
        '<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>',
        f'<!DOCTYPE a [<!ENTITY e0 "ha">{entities}]><a>&e11;</a>',
        "<a>" * 200_000,
        "<a>" + "<b>" * 5_000 + "</b>" * 5_000 + "</a>",
        '<a b="' + "x" * 900_000 + '">1</a>',
        "<a>" + "&#x10FFFF;" * 90_000 + "</b>",
    ]
    url, refused = target.url.replace("ws://", "http://", 1), 0
    async with aiohttp.ClientSession() as session:
        for at in range(target.of(600)):
            body, kind = documents[at % len(documents)], {"Content-Type": "application/xml"}
            async with session.post(f"{url}/v1/events", data=body, headers=kind) as response:
                said = await response.text()
                assert 400 <= response.status < 500, f"{response.status}: {said[:200]}"
                assert "root:" not in said
                refused += 1
    return refused


# What a filter can cost


def hard_expressions(attributes: int) -> str:
    """Pairs of expressions whose automata have many states, on so many attributes."""
    return " AND ".join(
        f"a{at} RLIKE '^(a|b)*a(a|b){{20}}$' AND a{at} RLIKE '^(a|b)*b(a|b){{19}}$'" for at in range(attributes)
    )


def pigeonholes(seed: int, holes: int = 11) -> str:
    """A contradiction that search can't see: so many pigeons and one more in so many holes."""
    chance = random.Random(seed)
    names = [[f"p{pigeon}h{hole}s{seed}" for hole in range(holes)] for pigeon in range(holes + 1)]
    placed = [" OR ".join(f"{name} = 1" for name in row) for row in names]
    apart = [
        f"({names[one][hole]} <> 1 OR {names[other][hole]} <> 1)"
        for hole in range(holes)
        for one in range(holes + 1)
        for other in range(one)
    ]
    chance.shuffle(apart)
    return " AND ".join([f"({row})" for row in placed] + apart)[:60_000].rsplit(" AND ", 1)[0]


async def each(client: Client, filters: Iterator[str]) -> int:
    """Subscribe one after the other; refusals are answers too."""
    answered = 0
    for text in filters:
        with suppress(RefusedError):
            await asyncio.wait_for(client.subscribe(text), ANSWER_SECONDS)
        answered += 1
    return answered


@attack(brokers=2)
async def hard_regular_expressions(target: Target) -> int:
    """Filters whose relations are hard for automata."""
    async with connect(target.url) as client:
        count = target.of(20)
        return await each(client, (f"{hard_expressions(1 + at % 10)} AND n = {at}" for at in range(count)))


@attack(brokers=2)
async def pigeonhole_filters(target: Target) -> int:
    """Filters whose relations are hard for search."""
    async with connect(target.url) as client:
        return await each(client, (pigeonholes(at, 7) for at in range(target.of(10))))


def boolean_filters(count: int, seed: int = 7) -> Iterator[str]:
    """As an ordinary user would write them."""
    chance = random.Random(seed)
    for _ in range(count):
        symbols = ", ".join(f"'S{chance.randrange(500)}'" for _ in range(3))
        low = chance.randrange(900)
        yield (
            f"(symbol IN ({symbols}) AND price BETWEEN {low} AND {low + chance.randrange(1, 100)}) OR "
            f"(sector = 'c{chance.randrange(20)}' AND region = 'r{chance.randrange(30)}' "
            f"AND NOT volume < {chance.randrange(10_000)})"
        )


# Ordinary use, much of it


async def all_at_once(url: str, filters: list[str]) -> int:
    """Subscribe by the hundred, as `subscribe_many` sends them."""
    async with connect(url) as client:
        for first in range(0, len(filters), 1_000):
            part = filters[first : first + 1_000]
            await client.subscribe_many({f"s{first + at}": text for at, text in enumerate(part)})
    return len(filters)


@attack(brokers=2)
async def many_boolean_filters(target: Target) -> int:
    """Five thousand with OR and NOT, which the neighbour hears of."""
    return await all_at_once(target.url, list(boolean_filters(target.of(5_000))))


@attack(brokers=2)
async def ascending_constants(target: Target) -> int:
    """Constants that come in order."""
    return await all_at_once(target.url, [f"x = {at} AND y < {at % 7}" for at in range(target.of(20_000))])


@attack(brokers=3)
async def twenty_thousand_conjunctions(target: Target) -> int:
    """Through three brokers."""
    chance = random.Random(3)
    return await all_at_once(
        target.url,
        [
            f"symbol = 'S{chance.randrange(2_000)}' AND price < {chance.randrange(10_000)} AND volume > {at}"
            for at in range(target.of(20_000))
        ],
    )


@attack()
async def small_subscribes(target: Target) -> int:
    """One FIFO for all would make everyone wait for these."""
    return await all_at_once(target.url, [f"x = {at}" for at in range(target.of(32_000))])


@attack(absent=("z",))
async def a_load_with_an_absent_neighbour(target: Target) -> int:
    """Fifty thousand at once, and nobody to tell them to."""
    count = target.of(50_000)
    index = covey.Index()
    index.add_many((f"l{at}", f"symbol = 'S{at % 5_000}' AND price < {at % 977}") for at in range(count))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.covey"
        index.save(path)
        await asyncio.to_thread(load_subscriptions, target.url, "bulk", "loader", str(path))
    return count


# Memory


@attack()
async def sessions_that_do_not_read(target: Target) -> int:
    """Many sessions ask for everything and read nothing, while somebody publishes much."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        sockets = []
        for _ in range(target.of(900)):
            socket = await stack.enter_async_context(
                session.ws_connect(f"{target.url}/v1/client", protocols=(JSON,), receive_timeout=None)
            )
            await socket.send_str('[["Subscribe",1,"s","big > 0"]]')
            sockets.append(socket)
            await asyncio.wait_for(socket.receive(), ANSWER_SECONDS)
            transport = socket._response.connection.transport  # type: ignore[union-attr]
            transport.pause_reading()  # type: ignore[union-attr]
            stack.callback(transport.abort)  # type: ignore[union-attr]
        client = await stack.enter_async_context(connect(target.url))
        answered = len(sockets)
        for at in range(1, target.of(200) + 1):
            await asyncio.wait_for(
                client.publish([{"big": at, "text": "x" * 20_000} for _ in range(10)]), ANSWER_SECONDS
            )
            answered += 1
        return answered


@attack()
async def large_publications(target: Target) -> int:
    """Ten thousand events in one message, for hundreds of sessions that don't read."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        for _ in range(target.of(300)):
            socket = await stack.enter_async_context(
                session.ws_connect(f"{target.url}/v1/client", protocols=(JSON,), receive_timeout=None)
            )
            await socket.send_str('[["Subscribe",1,"s","many > 0"]]')
            said = ""
            while "Confirmed" not in said:  # with the greeting, or after it
                said = await asyncio.wait_for(socket.receive_str(), ANSWER_SECONDS)
            transport = socket._response.connection.transport  # type: ignore[union-attr]
            transport.pause_reading()  # type: ignore[union-attr]
            stack.callback(transport.abort)  # type: ignore[union-attr]
        url = target.url.replace("ws://", "http://", 1)
        async with session.post(f"{url}/v1/events", json=[{"many": 1}] * target.of(10_000)) as response:
            assert response.status == 202, await response.text()
        return target.of(10_000)


@attack()
async def refused_subscribes(target: Target) -> int:
    """What is refused must leave nothing behind."""
    async with connect(target.url) as client:
        count = target.of(10_000)
        return await each(client, (f"x = {at} AND (" + "y = 1 AND " * 400 for at in range(count)))


@attack()
async def large_durable_events(target: Target) -> int:
    """For a subscriber that is away."""
    async with connect(target.url, name="away") as away:
        await away.subscribe("heavy > 0", id="all", durable=True)
    answered = 0
    async with connect(target.url, name="heavy") as client:
        for at in range(1, target.of(600) + 1):
            try:
                await asyncio.wait_for(client.publish({"heavy": at, "text": "x" * 900_000}, durable=True), 10)
            except TimeoutError:
                break  # held back, and told so
            answered += 1
    return answered


@attack()
async def a_burst_of_megabytes(target: Target) -> int:
    """To a subscriber that reads; all that doesn't come is told."""
    async with connect(target.url) as reader, connect(target.url) as writer:
        subscription = await reader.subscribe("burst > 0")
        count = target.of(120)
        for at in range(1, count + 1):
            await writer.publish({"burst": at, "text": "x" * 900_000})
        got = 0
        try:
            async with asyncio.timeout(20):
                while got + reader.missed < count:
                    await subscription.get()
                    got += 1
        except (TimeoutError, ConnectionLostError):
            pass
        assert got + reader.missed >= count, f"{got} came, {reader.missed} were told as missed, of {count}"
    return count


# Connections


@attack()
async def silent_connections(target: Target) -> int:
    """Opened, and nothing is ever said."""
    host, _, port = target.url.removeprefix("ws://").partition(":")
    answered = 0
    writers = []
    for _ in range(target.of(260)):
        reader, writer = await asyncio.open_connection(host, int(port))
        writers.append((reader, writer))
    async with aiohttp.ClientSession() as session:
        for _ in range(5):
            async with session.get(f"http://{host}:{port}/healthz") as response:
                answered += response.status == 200
            await asyncio.sleep(0.2)
    for _, writer in writers:
        writer.close()
    return answered


@attack()
async def many_durable_names(target: Target) -> int:
    """A name each, and a durable subscription under each."""
    answered = 0
    for at in range(target.of(3_000)):
        try:
            async with connect(target.url, name=f"name{at}", reconnect=False) as client:
                await client.subscribe(f"x = {at}", id="s", durable=True)
        except NetworkError:
            pass
        answered += 1
    return answered
