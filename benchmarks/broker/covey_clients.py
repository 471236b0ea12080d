"""covey's own client, as anyone would use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from benchmarks.broker.workload import Event, Quotes
from covey.network.asyncio import Client, SubscriptionGroup, connect

IN_FLIGHT = 4
"""Batches that the publisher doesn't wait for."""
IN_FLIGHT_SINGLE = 256
"""The same for events that are published one by one."""
AT_ONCE = 10_000


class Subscriber:
    """A client with all subscriptions."""

    def __init__(self, *, durable: bool) -> None:
        self._durable = durable
        self._groups: list[SubscriptionGroup] = []

    async def open(self, address: str) -> None:
        self._client: Client = await connect(address, name="subscriber")

    async def subscribe(self, quotes: Quotes, seconds: float) -> int:
        async with asyncio.timeout(seconds):
            for first in range(0, quotes.subscriptions, AT_ONCE):
                filters = {
                    str(number): quotes.filter(number)
                    for number in range(first, min(first + AT_ONCE, quotes.subscriptions))
                }
                self._groups.append(await self._client.subscribe_many(filters, durable=self._durable))
        return quotes.subscriptions

    async def receive(self, take: Callable[[list[tuple[int, Event]]], None]) -> None:
        async def one(group: SubscriptionGroup) -> None:
            while True:
                take([(int(one.subscriptions[0]), one.attributes) for one in await group.get_many()])

        await asyncio.gather(*map(one, self._groups))

    @property
    def missed(self) -> int:
        return self._client.missed


class Publisher:
    """A client that publishes batches, several at a time."""

    def __init__(self, *, durable: bool) -> None:
        self._durable = durable

    async def open(self, address: str, quotes: Quotes) -> None:  # noqa: ARG002
        self._client: Client = await connect(address, name="publisher")

    async def publish(self, batches: list[list[Event]]) -> None:
        waiting = iter(batches)

        async def one() -> None:
            for batch in waiting:
                await self._client.publish(batch, durable=self._durable)

        in_flight = min(len(batches), IN_FLIGHT if len(batches[0]) > 1 else IN_FLIGHT_SINGLE)
        await asyncio.gather(*(one() for _ in range(in_flight)))
