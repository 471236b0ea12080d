"""Bare clients for MQTT 3.1.1 (Mosquitto) and for NATS: no more than the benchmark needs.

Their usual libraries take several times as long for an event as these brokers do; the brokers should not be measured by
that. A batch is written in one go, payloads are msgpack, and the subscriber unpacks every one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from benchmarks.broker.workload import Event, Quotes

READ_BYTES = 1 << 18
TOPICS_AT_ONCE = 1_000

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
Take = Callable[[list[tuple[int, Event]]], None]


class _Connection:
    async def _connect(self, address: str) -> None:
        host, port = address.split(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port), limit=1 << 24)

    missed = 0


class MqttSubscriber(_Connection):
    async def open(self, address: str) -> None:
        await self._connect(address)
        await _mqtt_connect(self._reader, self._writer, "subscriber")

    async def subscribe(self, quotes: Quotes, seconds: float) -> int:
        async with asyncio.timeout(seconds):
            for first in range(0, quotes.subscriptions, TOPICS_AT_ONCE):
                last = min(first + TOPICS_AT_ONCE, quotes.subscriptions)
                body = b"".join(
                    _text("/".join(("q", *quotes.words(number)))) + b"\0" for number in range(first, last)
                )  # fmt: skip
                self._writer.write(_packet(0x82, (1).to_bytes(2, "big") + body))
                await self._reader.readexactly(1)
                await self._reader.readexactly(await _length(self._reader))
        return quotes.subscriptions

    async def receive(self, take: Take) -> None:
        data = b""
        while chunk := await self._reader.read(READ_BYTES):
            data += chunk
            events, used = _mqtt_events(data)
            data = data[used:]
            take([(-1, event) for event in events])


class MqttPublisher(_Connection):
    async def open(self, address: str, quotes: Quotes) -> None:
        self._quotes = quotes
        await self._connect(address)
        await _mqtt_connect(self._reader, self._writer, "publisher")

    async def publish(self, batches: list[list[Event]]) -> None:
        words = self._quotes.words
        for batch in batches:
            self._writer.write(
                b"".join(_packet(0x30, _text("/".join(("q", *words(one["for"])))) + _pack(one)) for one in batch)
            )
            await self._writer.drain()


class NatsSubscriber(_Connection):
    async def open(self, address: str) -> None:
        await self._connect(address)
        await _nats_connect(self._reader, self._writer)

    async def subscribe(self, quotes: Quotes, seconds: float) -> int:
        async with asyncio.timeout(seconds):
            for number in range(quotes.subscriptions):
                self._writer.write(f"SUB {'.'.join(('q', *quotes.words(number)))} {number}\r\n".encode())
                if number % TOPICS_AT_ONCE == 0:
                    await self._writer.drain()
            await _nats_answer(self._reader, self._writer)
        return quotes.subscriptions

    async def receive(self, take: Take) -> None:
        data = b""
        while chunk := await self._reader.read(READ_BYTES):
            data += chunk
            deliveries: list[tuple[int, Event]] = []
            at = 0
            while (end := data.find(b"\r\n", at)) >= 0:
                if data.startswith(b"PING", at):
                    self._writer.write(b"PONG\r\n")
                    at = end + 2
                    continue
                _, _, number, size = data[at:end].split(b" ")
                first = end + 2
                if len(data) < first + int(size) + 2:
                    break
                deliveries.append((int(number), _unpack(data[first : first + int(size)])))
                at = first + int(size) + 2
            data = data[at:]
            take(deliveries)


class NatsPublisher(_Connection):
    async def open(self, address: str, quotes: Quotes) -> None:
        self._quotes = quotes
        await self._connect(address)
        await _nats_connect(self._reader, self._writer)

    async def publish(self, batches: list[list[Event]]) -> None:
        words = self._quotes.words
        for batch in batches:
            parts = []
            for one in batch:
                payload = _pack(one)
                parts.append(
                    b"PUB %s %d\r\n%s\r\n" % (".".join(("q", *words(one["for"]))).encode(), len(payload), payload)
                )
            self._writer.write(b"".join(parts))
            await self._writer.drain()
        if len(batches) > 1:
            await _nats_answer(self._reader, self._writer)


async def _mqtt_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
    writer.write(_packet(0x10, _text("MQTT") + b"\x04\x02" + (0).to_bytes(2, "big") + _text(name)))
    answer = await reader.readexactly(4)
    if answer[3]:
        raise ConnectionError(f"MQTT: refused with {answer[3]}")


def _mqtt_events(data: bytes) -> tuple[list[Event], int]:
    """The events of all packets that are there as a whole, and the bytes that they take."""
    events, at, size = [], 0, len(data)
    while at + 2 <= size:
        length, shift, body = 0, 0, at + 1
        while body < size:
            byte = data[body]
            body += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        else:
            break
        if body + length > size:
            break
        if data[at] >> 4 == 3:
            topic = int.from_bytes(data[body : body + 2], "big")
            events.append(_unpack(data[body + 2 + topic : body + length]))
        at = body + length
    return events, at


def _text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()


def _packet(kind: int, body: bytes) -> bytes:
    length, digits = len(body), bytearray()
    while True:
        length, digit = divmod(length, 128)
        digits.append(digit | 128 if length else digit)
        if not length:
            return bytes((kind, *digits)) + body


async def _length(reader: asyncio.StreamReader) -> int:
    length = shift = 0
    while True:
        byte = (await reader.readexactly(1))[0]
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return length


async def _nats_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"pedantic":false}\r\n')
    await _nats_answer(reader, writer)


async def _nats_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Wait until everything that was written has been read."""
    writer.write(b"PING\r\n")
    while (line := await reader.readline()) != b"PONG\r\n":
        if line == b"PING\r\n":
            writer.write(b"PONG\r\n")
        elif not line or line.startswith(b"-ERR"):
            raise ConnectionError(f"NATS: {line.decode().strip() or 'the connection was closed'}")
