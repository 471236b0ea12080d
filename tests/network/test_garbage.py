from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import web

from covey.network import garbage
from covey.network.frames import WRITTEN
from covey.network.garbage import Garbage
from covey.network.limits import NetworkLimits
from tests.network.running import broker, in_loop, until


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    assert gc.get_threshold() == before
    assert gc.callbacks == callbacks


@in_loop
async def test_what_lives_long_is_put_aside_and_looked_at_after_many_sessions() -> None:
    sessions = 0
    collector = Garbage()
    collector.start(lambda: sessions)
    try:
        made = Cycle()
        gone = weakref.ref(made)
        gc.collect()
        assert gc.get_freeze_count() > 0
        del made
        gc.collect()
        collector.look()
        assert gone() is not None
        sessions = garbage.SESSIONS + gc.get_freeze_count() // garbage.OBJECTS
        collector.look()
        assert gone() is None
        assert gc.get_freeze_count() > 0
    finally:
        collector.stop()
    assert gc.get_freeze_count() == 0


@in_loop
async def test_young_garbage_is_collected_as_ever() -> None:
    collector = Garbage()
    collector.start(lambda: 0)
    try:
        gone = weakref.ref(Cycle())
        made = [[number] for number in range(3 * garbage.YOUNG)]
        assert gone() is None
        assert made
    finally:
        collector.stop()


@in_loop
async def test_a_session_that_is_cut_leaves_nothing_for_the_collector() -> None:
    gc.collect()
    before = _sockets()
    gc.disable()
    limits = NetworkLimits(heartbeat_seconds=0.2)
    try:
        async with asyncio.timeout(60), broker(limits=limits) as server, aiohttp.ClientSession() as http:
            for _ in range(3):
                socket = await http.ws_connect(f"{server.url}/v1/client", protocols=(WRITTEN,))
                await socket.receive()
                await socket.send_str('[["Subscribe",1,"s","x > 0"]]')
                await socket.receive()
                await socket.send_str('[["Publish",2,[[{"x":1}]]]]')
                transport = socket._response.connection.transport  # type: ignore[union-attr]
                transport.write(b"\x88\x80\x00\x00\x00\x00")  # a close frame, and nobody waits for the answer
                transport.close()
            await until(lambda: not server.engine.sessions)
            await asyncio.sleep(0.5)  # a heartbeat would be sent
            # The last one is known until somebody else says something.
            while len(_sockets()) > len(before) + 1:
                await asyncio.sleep(0.5)
    finally:
        gc.enable()


def _sockets() -> list[web.WebSocketResponse]:
    return [one for one in gc.get_objects() if isinstance(one, web.WebSocketResponse)]
