"""Bad input closes the connection that it came over, with a reason, and nobody else notices."""

from __future__ import annotations

import asyncio
import gzip
import random
import socket as sockets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import WSMsgType, web

from covey.network import NetworkLimits, RefusedError, Server, connect
from covey.network.errors import FrameError, NetworkError
from covey.routing.config import BrokerLimits
from covey.routing.messages import Publication, Publish, Subscribe
from tests.network.running import broker, http, in_loop, until

pack = msgspec.msgpack.encode


@asynccontextmanager
async def unaffected(server: Server) -> AsyncIterator[None]:
    """Another client, whose session must go on as if nothing had happened."""
    async with connect(server.url, reconnect=False) as ann:
        subscription = await ann.subscribe("mine = 1")
        yield
        await ann.publish({"mine": 1})
        assert (await subscription.get())["mine"] == 1


async def closed_with(socket: aiohttp.ClientWebSocketResponse) -> tuple[int | None, str]:
    """How a connection ends, whatever comes before."""
    while True:
        frame = await socket.receive()
        if frame.type is WSMsgType.CLOSE:
            return frame.data, frame.extra or ""
        if frame.type in (WSMsgType.CLOSED, WSMsgType.ERROR, WSMsgType.CLOSING):
            return socket.close_code, ""


@pytest.mark.parametrize(
    ("frame", "code", "reason"),
    [
        (b"", 1007, "not a frame"),
        (b"\xc1", 1007, "not a frame"),
        (b"\x91" * 60_000, 1007, "not a frame"),
        (pack(["Subscribe", 1]), 1007, "not a frame"),
        (pack([["Subscribe", 1, "s"]]), 1007, "not a frame"),
        (pack([["Welcome", "a", [], [], 0, 0]]), 1007, "not a frame"),
        (pack([["PeerUp", "b", 1]]), 1007, "not a frame"),
        (pack([Publish(1, [Publication({"x": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]})])]), 1008, "nested more deeply"),
        (pack([Publish(1, [Publication({"x": {1: 1}})])]), 1008, "isn't text"),
        (pack([Subscribe(1, "s" * 500, "x = 1")]), 1008, "name_length"),
        (pack([Subscribe(1, "s", "x = 1")] * 5_000), 1008, "5,000 messages"),
        (b"x" * 2_000_000, 1009, ""),
        ("[" * 60_000, 1007, "not a frame"),
        ("{}", 1007, "not a frame"),
    ],
)
def test_a_bad_frame_closes_its_connection_with_a_reason(frame: bytes | str, code: int, reason: str) -> None:
    @in_loop
    async def check() -> None:
        async with (
            broker() as server,
            unaffected(server),
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/v1/client") as socket,
        ):
            await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))
            found, said = await closed_with(socket)
            assert found == code
            assert reason in said

    check()


@in_loop
async def test_random_frames_hurt_nobody_else() -> None:
    chance = random.Random(7)
    good = pack([Subscribe(1, "s", "x = 1"), Publish(2, [Publication({"x": 1, "y": [1, "a", {"z": None}]}, True, 3)])])
    async with broker() as server, unaffected(server), aiohttp.ClientSession() as session:
        for round in range(60):
            async with session.ws_connect(f"{server.url}/v1/client?client=fuzz{round}") as socket:
                for _ in range(3):
                    frame = bytearray(good)
                    for _ in range(chance.randint(1, 4)):
                        frame[chance.randrange(len(frame))] = chance.randrange(256)
                    if chance.random() < 0.2:
                        frame = bytearray(chance.randbytes(chance.randrange(200)))
                    try:
                        await socket.send_bytes(bytes(frame))
                    except ConnectionError:
                        break
    # The broker's own check is `unaffected`; a defect would have stopped it.
    assert server.engine.stopped.result() is None


@in_loop
async def test_random_frames_of_a_neighbour_close_the_link_and_hurt_no_client() -> None:
    chance = random.Random(11)
    good = pack([["Hello", "b", [[], []], 0, 0, False], ["LinkStates", [["LinkState", "b", 1, [["a", True]]]]],
                 ["Events", [["Envelope", "b", 1, "p", 0, False, 9, {"x": 1}]]],
                 ["Delta", 0, 1, True, False, [], [["Entry", "k", "x = 1"]], []]])  # fmt: skip
    async with broker("a", {"b": ""}) as server, unaffected(server), aiohttp.ClientSession() as session:
        for _ in range(60):
            async with session.ws_connect(f"{server.url}/v1/link", headers={"Covey-Broker": "b"}) as socket:
                frame = bytearray(good)
                for _ in range(chance.randint(0, 4)):
                    frame[chance.randrange(len(frame))] = chance.randrange(256)
                await socket.send_bytes(bytes(frame))
                await asyncio.sleep(0.005)
    assert server.engine.stopped.result() is None


@in_loop
async def test_bodies_that_are_too_large_too_deep_or_grow_too_much_are_refused() -> None:
    async with broker() as server, unaffected(server), aiohttp.ClientSession() as session:
        url = f"{http(server)}/v1/events"
        for body, headers, status in (
            (b"x" * 2_000_000, {}, 413),
            (b"[" * 500_000, {}, 400),
            (b'{"x":' * 100 + b"1" + b"}" * 100, {}, 400),
            (gzip.compress(bytes(100_000_000)), {"Content-Encoding": "gzip"}, 413),
            (b'{"x": 1e999999}', {}, 400),
            (b'{"x": ' + b"9" * 5_000 + b"}", {}, 400),
            (gzip.compress(b'{"x": 1}'), {"Content-Encoding": "gzip"}, 202),
        ):
            async with session.post(url, data=body, headers=headers) as response:
                assert response.status in (status, 422), (await response.text())[:200]


@in_loop
async def test_requests_that_are_no_http_hurt_nobody() -> None:
    chance = random.Random(3)
    async with broker() as server, unaffected(server):
        for data in (
            b"\x16\x03\x01\x00\xee\x01",
            b"GET / HTTP/9.9\r\n\r\n",
            b"GET /v1/client HTTP/1.1\r\n" + b"a: b\r\n" * 50_000,
            chance.randbytes(5_000),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data)
            writer.write_eof()
            with suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), 10)
            writer.close()


@in_loop
async def test_a_filter_that_is_too_complex_is_refused_and_the_session_goes_on() -> None:
    async with broker(broker_limits=BrokerLimits(subscriptions=2)) as server, connect(server.url) as ann:
        for text in ("(" * 5_000 + "x = 1" + ")" * 5_000, " OR ".join(f"x = {n}" for n in range(9_000)), "x = '" + "a" * 70_000 + "'"):  # fmt: skip  # noqa: E501
            with pytest.raises(RefusedError):
                await ann.subscribe(text)
        await ann.subscribe("x = 1")
        await ann.subscribe("x = 2")
        with pytest.raises(RefusedError, match="end some of them first"):
            await ann.subscribe("x = 3")


@in_loop
async def test_a_reader_that_takes_nothing_is_cut_and_costs_a_bounded_buffer() -> None:
    limits = NetworkLimits(send_buffer_bytes=200_000, message_bytes=100_000)
    async with broker(limits=limits) as server, unaffected(server):
        slow = sockets.socket()
        slow.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, ("127.0.0.1", server.port))
        await loop.sock_sendall(
            slow,
            b"GET /v1/client?client=slow HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        )
        # A masked frame with a mask of zeroes.
        message = pack([Subscribe(1, "s", "big IS NOT NULL")])
        await loop.sock_sendall(slow, b"\x82" + bytes([0x80 | len(message)]) + bytes(4) + message)
        await until(lambda: len(server.engine.broker.table) == 2)
        async with connect(server.url) as bob:
            for _ in range(200):
                await bob.publish({"big": "x" * 90_000})
                if server.engine.client("slow") is None:
                    break
        await until(lambda: server.engine.client("slow") is None)
        await until(lambda: server.engine.counts.sessions_cut == 1)
        slow.close()


@in_loop
async def test_connections_have_a_limit_and_one_that_ends_makes_room() -> None:
    async with broker(limits=NetworkLimits(connections=2)) as server, connect(server.url) as ann:
        async with connect(server.url):
            with pytest.raises(NetworkError, match="no more connections"):
                await connect(server.url)
        await until(lambda: server.engine.sessions == 1)
        async with connect(server.url):
            await ann.publish({"x": 1})


@in_loop
async def test_who_publishes_too_fast_is_slowed_down_or_told_to_come_later() -> None:
    async with broker(limits=NetworkLimits(event_rate=100.0)) as server, aiohttp.ClientSession() as session:
        start = asyncio.get_running_loop().time()
        async with connect(server.url) as ann:
            for _ in range(4):
                await ann.publish([{"x": 1}] * 50)
        assert asyncio.get_running_loop().time() - start >= 0.4
        async with session.post(f"{http(server)}/v1/events", json=[{"x": 1}] * 500) as response:
            assert response.status == 429
            assert int(response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("name", ["", "~http", "x" * 201, "line\nbreak"])
def test_a_name_that_no_client_can_have_is_refused(name: str) -> None:
    @in_loop
    async def check() -> None:
        async with broker() as server, aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(f"{server.url}/v1/client", params={"client": name})

    check()


@in_loop
async def test_a_client_is_told_why_it_was_closed_and_does_not_come_again() -> None:
    async with broker(limits=NetworkLimits(nesting=3)) as server, connect(server.url) as ann:
        deep: Any = {"x": {"x": {"x": {"x": 1}}}}
        with pytest.raises(FrameError, match="nested more deeply"):
            await ann.publish(deep)
        with pytest.raises(FrameError):
            await ann.publish({"x": 1})


def test_a_neighbour_that_is_gone_before_it_is_answered_is_no_defect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(*_: Any) -> None:
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")

    monkeypatch.setattr(web.WebSocketResponse, "prepare", gone)

    @in_loop
    async def check() -> None:
        async with broker("a", {"b": ""}) as server, aiohttp.ClientSession() as session:
            async with session.get(f"{http(server)}/v1/link", headers={"Covey-Broker": "b"}) as response:
                assert response.status == 503
            assert not server.engine.stopped.done()

    check()
    assert "Traceback" not in caplog.text
    assert "Error" not in caplog.text
