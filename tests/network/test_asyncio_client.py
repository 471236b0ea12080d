"""The client against a broker whose every frame the test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from covey.network import RefusedError, connect
from covey.network.frames import PACKED, decode_client
from covey.network.limits import NetworkLimits
from covey.routing.config import BrokerLimits
from covey.routing.messages import ClientAnswer, Confirmed, Deliver, Refused, Subscribe, Welcome
from tests.network.running import broker, in_loop, until

Script = Callable[[web.WebSocketResponse], Awaitable[None]]


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[str]:
    """A server that does what a script says with each connection; gives its address."""

    async def talk(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=(PACKED,))
        await socket.prepare(request)
        await script(socket)
        await socket.receive()
        return socket

    app = web.Application()
    app.router.add_get("/v1/client", talk)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def say(socket: web.WebSocketResponse, *messages: ClientAnswer) -> None:
    await socket.send_bytes(msgspec.msgpack.encode(list(messages)))


async def subscription_asked_for(socket: web.WebSocketResponse) -> Subscribe:
    while True:
        for message in decode_client((await socket.receive()).data, NetworkLimits()):
            if isinstance(message, Subscribe):
                return message


def delivery(number: int) -> Deliver:
    return Deliver(number, ["all"], {"n": number}, "eve", number, True, f"a/{number}")


@in_loop
async def test_what_came_before_subscribe_was_called_stays_before_what_came_before_its_answer() -> None:
    async def script(socket: web.WebSocketResponse) -> None:
        await say(socket, Welcome("a", ["all"], [], 0, 512), delivery(1), delivery(2))
        asked = await subscription_asked_for(socket)
        await say(socket, delivery(3), Confirmed(asked.request), delivery(4))

    async with scripted(script) as url, connect(url, name="ann", reconnect=False) as ann:
        await asyncio.sleep(0.05)
        everything = await ann.subscribe("TRUE", id="all", durable=True)
        assert [(await everything.get()).number for _ in range(4)] == [1, 2, 3, 4]


@in_loop
async def test_what_came_for_a_kept_subscription_waits_for_the_next_attempt_where_the_first_is_refused() -> None:
    async def script(socket: web.WebSocketResponse) -> None:
        await say(socket, Welcome("a", ["all"], [], 0, 512), delivery(1))
        asked = await subscription_asked_for(socket)
        await say(socket, delivery(2), Refused(asked.request, "no"))
        asked = await subscription_asked_for(socket)
        await say(socket, delivery(3), Confirmed(asked.request))

    async with scripted(script) as url, connect(url, name="ann", reconnect=False) as ann:
        with pytest.raises(RefusedError):
            await ann.subscribe("TRUE", id="all", durable=True)
        everything = await ann.subscribe("TRUE", id="all", durable=True)
        assert [(await everything.get()).number for _ in range(3)] == [1, 2, 3]


@in_loop
async def test_the_last_acknowledgement_leaves_before_the_client_does(tmp_path: Path) -> None:
    async with broker(data=tmp_path, broker_limits=BrokerLimits(credit=1_000)) as server:
        async with connect(server.url, name="ann") as ann:
            everything = await ann.subscribe("n > 0", id="all", durable=True, manual_ack=True)
            await ann.publish([{"n": n} for n in range(1, 501)], durable=True)
            for _ in range(500):
                (await everything.get()).ack()
        client = server.engine.broker.clients.get("ann")
        assert client is not None
        await until(lambda: not client.up)
        assert not client.queue
