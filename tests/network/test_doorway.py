"""Connections that are nobody's session are counted, and those that stay silent make room for others."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket as sockets
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from covey.network import NetworkLimits, TlsFiles, connect
from covey.network.doorway import FOR_STRANGERS
from covey.network.errors import NetworkError
from tests.network.certificates import Authority, needs_openssl
from tests.network.running import broker, http, in_loop, until


async def silent(port: int, count: int) -> list[sockets.socket]:
    loop = asyncio.get_running_loop()
    opened: list[sockets.socket] = []
    for _ in range(count):
        one = sockets.socket()
        one.setblocking(False)
        await loop.sock_connect(one, ("127.0.0.1", port))
        opened.append(one)
    return opened


async def is_closed(one: sockets.socket) -> bool:
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(one, 1), 20) == b""
    except ConnectionError:
        return True


@in_loop
async def test_silent_connections_beyond_the_limit_make_room_for_who_asks_at_once() -> None:
    limits = NetworkLimits(waiting_connections=20, handshake_seconds=60.0)
    async with broker(limits=limits) as server, aiohttp.ClientSession() as session:
        opened = await silent(server.port, 60)
        async with session.get(f"{http(server)}/healthz") as response:
            assert response.status == 200
        assert len(server._doorway) <= 20  # type: ignore[arg-type]
        assert await is_closed(opened[0])
        async with connect(server.url) as ann:
            await ann.publish({"x": 1})
        for one in opened:
            one.close()


@in_loop
async def test_one_address_has_fewer_of_them_than_all_together() -> None:
    limits = NetworkLimits(waiting_connections=20, address_connections=5, handshake_seconds=60.0)
    async with broker(limits=limits) as server:
        opened = await silent(server.port, 12)
        await until(lambda: server.engine.counts.turned_away == 7)
        assert len(server._doorway) == 5  # type: ignore[arg-type]
        for one in opened:
            one.close()


@in_loop
async def test_sessions_do_not_count_as_strangers_and_are_never_closed_for_them() -> None:
    limits = NetworkLimits(waiting_connections=3, handshake_seconds=60.0)
    async with broker(limits=limits) as server:
        clients = [await connect(server.url, reconnect=False) for _ in range(6)]
        opened = await silent(server.port, 9)
        for client in clients:
            await client.publish({"x": 1})
            await client.close()
        for one in opened:
            one.close()


@in_loop
@pytest.mark.parametrize("body", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\nFF\r\na"])
async def test_requests_that_never_come_whole_make_room_too(body: bytes) -> None:
    limits = NetworkLimits(waiting_connections=10, handshake_seconds=60.0)
    async with broker(limits=limits) as server, aiohttp.ClientSession() as session:
        opened = await silent(server.port, 30)
        for one in opened:
            with contextlib.suppress(ConnectionError):
                one.send(b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n" + body)
        async with session.get(f"{http(server)}/healthz") as response:
            assert response.status == 200
        for one in opened:
            one.close()


@in_loop
async def test_sessions_leave_room_for_who_asks_after_the_brokers_health() -> None:
    async with broker(limits=NetworkLimits(handshake_seconds=60.0)) as server, aiohttp.ClientSession() as session:
        doorway = server._doorway
        assert doorway is not None
        doorway._most = 5 + FOR_STRANGERS
        clients = [await connect(server.url, reconnect=False) for _ in range(5)]
        with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
            await session.ws_connect(f"{http(server)}/v1/client")
        for path, status in (("healthz", 200), ("readyz", 503)):
            async with session.get(f"{http(server)}/{path}") as response:
                assert response.status == status
        for client in clients:
            await client.close()


@in_loop
async def test_what_is_not_http_is_counted_and_said_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with broker() as server:
        opened = await silent(server.port, 5)
        for one in opened:
            one.send(b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000)
        await until(lambda: server.engine.counts.bad_frames == 5)
        assert server.engine.counts.defects == 0
        for one in opened:
            one.close()
    said = [record for record in caplog.records if record.exc_info or "can be read" in record.getMessage()]
    assert len(said) == 1
    assert said[0].exc_info is None


@in_loop
async def test_a_connection_without_a_request_ends_in_time() -> None:
    async with broker(limits=NetworkLimits(handshake_seconds=0.3)) as server:
        (one,) = await silent(server.port, 1)
        assert await is_closed(one)
        (slow,) = await silent(server.port, 1)
        await asyncio.get_running_loop().sock_sendall(slow, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        assert await is_closed(slow)
        one.close()
        slow.close()


@needs_openssl
@in_loop
async def test_a_silent_tls_handshake_ends_in_time_too(tmp_path: Path) -> None:
    files = Authority(tmp_path).sign("a")
    async with broker(
        tls=TlsFiles(files.certificate, files.key), limits=NetworkLimits(handshake_seconds=0.3)
    ) as server:
        (one,) = await silent(server.port, 1)
        started = time.monotonic()
        assert await is_closed(one)
        assert time.monotonic() - started < 10
        assert len(server._doorway) == 0  # type: ignore[arg-type]
        one.close()


def test_without_descriptors_a_broker_stays_healthy_and_quiet(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "covey.cli", "broker", "--id", "a", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128)),
        )
    assert process.stdout is not None
    opened: list[sockets.socket] = []
    try:
        line = process.stdout.readline().decode()
        port = int(line.rstrip().rpartition(":")[2].split()[0].rstrip("/"))
        for _ in range(400):
            opened.append(sockets.create_connection(("127.0.0.1", port), timeout=20))
        for _ in range(3):
            with sockets.create_connection(("127.0.0.1", port), timeout=20) as asking:
                asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                assert asking.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for one in opened:
            one.close()
        process.terminate()
        process.wait(30)
    assert (tmp_path / "log").stat().st_size < 10_000
    assert b"Traceback" not in (tmp_path / "log").read_bytes()


@in_loop
async def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    async with broker() as server:
        with pytest.raises(NetworkError, match=r"can't listen on 127\.0\.0\.1"):
            await broker("b", port=server.port).start()
