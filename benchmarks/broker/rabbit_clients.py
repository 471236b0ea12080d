"""Clients of RabbitMQ's headers exchange, by pika."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pika
from pika.adapters.asyncio_connection import AsyncioConnection

from benchmarks.broker.workload import Event, Quotes

EXCHANGE, QUEUE = "quotes", "subscriber"
AT_ONCE = 1_000

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


class _Channel:
    missed = 0

    async def _connect(self, address: str) -> None:
        host, port = address.split(":")
        parameters = pika.ConnectionParameters(host, int(port), heartbeat=0)
        connection = await _called(
            lambda done: AsyncioConnection(
                parameters, on_open_callback=done, on_open_error_callback=lambda _, error: done(error)
            )
        )
        if isinstance(connection, BaseException):
            raise connection
        self._channel = await _called(lambda done: connection.channel(on_open_callback=done))
        await _called(lambda done: self._channel.exchange_declare(EXCHANGE, "headers", callback=done))


class RabbitSubscriber(_Channel):
    async def open(self, address: str) -> None:
        await self._connect(address)
        await _called(lambda done: self._channel.queue_declare(QUEUE, callback=done))

    async def subscribe(self, quotes: Quotes, seconds: float) -> int:
        """As many bindings as can be made in the time."""
        end = time.monotonic() + seconds
        for number in range(quotes.subscriptions):
            symbol, band = quotes.words(number)
            headers = {"x-match": "all", "symbol": symbol, "band": band}
            if number % AT_ONCE and number + 1 < quotes.subscriptions:
                self._channel.queue_bind(QUEUE, EXCHANGE, "", headers)
                continue
            await _called(lambda done: self._channel.queue_bind(QUEUE, EXCHANGE, "", headers, done))  # noqa: B023
            if time.monotonic() > end:
                return number + 1
        return quotes.subscriptions

    async def receive(self, take: Callable[[list[tuple[int, Event]]], None]) -> None:
        def one(channel: Any, method: Any, properties: Any, body: bytes) -> None:  # noqa: ARG001
            take([(-1, _unpack(body))])

        self._channel.basic_consume(QUEUE, one, auto_ack=True)
        await asyncio.Event().wait()


class RabbitPublisher(_Channel):
    async def open(self, address: str, quotes: Quotes) -> None:
        self._quotes = quotes
        await self._connect(address)

    async def publish(self, batches: list[list[Event]]) -> None:
        for batch in batches:
            for one in batch:
                symbol, band = self._quotes.words(one["for"])
                self._channel.basic_publish(
                    EXCHANGE, "", _pack(one), pika.BasicProperties(headers={"symbol": symbol, "band": band})
                )
            await asyncio.sleep(0)


async def _called(start: Callable[[Callable[[Any], None]], Any]) -> Any:
    """What a callback is called with."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    start(lambda answer: future.done() or future.set_result(answer))
    return await future
