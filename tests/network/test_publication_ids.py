"""An event that is sent again under its id is published once, whatever broke in between."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from covey.network import NetworkError, connect, connect_sync
from covey.network.client_protocol import ClientProtocol
from covey.routing import BrokerLimits
from covey.routing.messages import Welcome
from tests.network.running import broker, in_loop, until


async def had(subscription: Any, count: int) -> list[int]:
    """What comes, and then nothing more."""
    found = [(await subscription.get(timeout=30))["n"] for _ in range(count)]
    with pytest.raises(TimeoutError):
        await subscription.get(timeout=0.1)
    return found


@in_loop
async def test_an_id_counts_once() -> None:
    async with broker() as server, connect(server.url, name="web") as web, connect(server.url) as ann:
        wishes = await ann.subscribe("n >= 0")
        await web.publish({"n": 1}, id="order-1")
        await web.publish({"n": 1}, id="order-1")
        await web.publish([{"n": 2}, {"n": 1}, {"n": 3}, {"n": 3}], id=["order-2", "order-1", "order-3", "order-3"])
        await web.publish({"n": 4}, id="order-1", durable=True)
        async with connect(server.url, name="shop") as shop:  # whose ids are its own
            await shop.publish({"n": 5}, id="order-1")
        assert await had(wishes, 4) == [1, 2, 3, 5]


@pytest.mark.parametrize("durable", [True, False])
@in_loop
async def test_ids_are_known_after_a_restart_of_both(tmp_path: Path, durable: bool) -> None:
    async with broker(data=tmp_path) as server:
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe("n >= 0", id="all", durable=True)
        async with connect(server.url, name="web") as web:
            await web.publish([{"n": 1}, {"n": 2}], id=[1, 2], durable=durable)  # type: ignore[list-item]
    async with broker(data=tmp_path) as server, connect(server.url, name="ann") as ann:
        wishes = await ann.subscribe("n >= 0", id="all", durable=True)
        async with connect(server.url, name="web") as web:
            await web.publish([{"n": 2}, {"n": 3}], id=["2", "3"], durable=durable)
        assert await had(wishes, 3) == [1, 2, 3]


@in_loop
async def test_what_was_under_way_is_sent_again_by_itself(tmp_path: Path) -> None:
    first = broker(data=tmp_path)
    await first.start()
    port = int(first.url.rpartition(":")[2])
    async with connect(first.url) as web, connect(first.url, name="ann") as ann:
        wishes = await ann.subscribe("n >= 0", id="all", durable=True)
        await first.stop()
        await until(lambda: web.state == "lost")
        waiting = asyncio.create_task(web.publish({"n": 1}, id="a"))
        async with broker(data=tmp_path, port=port):
            await waiting
            assert await had(wishes, 1) == [1]


@in_loop
async def test_the_oldest_ids_make_way() -> None:
    async with (
        broker(broker_limits=BrokerLimits(publication_ids=2)) as server,
        connect(server.url, name="web") as web,
        connect(server.url) as ann,
    ):
        wishes = await ann.subscribe("n >= 0")
        for n in (1, 2, 3, 3, 2, 1):
            await web.publish({"n": n}, id=str(n))
        assert await had(wishes, 4) == [1, 2, 3, 1]


@in_loop
async def test_ids_that_cannot_be_are_refused_in_words() -> None:
    async with broker() as server, connect(server.url) as web:
        for ids, said in ((["a"], "1 id for 2 events; each needs one of its own"), (["a", ""], "an id has 1 to 200")):
            with pytest.raises(NetworkError, match=said):
                await web.publish([{"n": 1}, {"n": 2}], id=ids)


def test_a_broker_that_knows_no_ids_is_not_trusted_with_them() -> None:
    client = ClientProtocol(named=True)
    client.welcome(Welcome("old", [], [], 0, 10))
    with pytest.raises(NetworkError, match="older than publish"):
        client.publish([{"n": 1}], durable=False, ids=["a"])


def test_without_asyncio_it_is_the_same() -> None:
    loop = asyncio.new_event_loop()
    server = broker()
    loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        with connect_sync(server.url, name="web") as web:
            wishes = web.subscribe("n >= 0")
            web.publish({"n": 1}, id="a")
            web.publish({"n": 1}, id="a")
            web.publish({"n": 2}, id="b")
            assert [wishes.get(timeout=30)["n"] for _ in range(2)] == [1, 2]
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


@in_loop
async def test_what_is_posted_again_under_its_id_counts_once(tmp_path: Path) -> None:
    context = {"specversion": "1.0", "id": "7", "source": "/s", "type": "quote"}
    async with broker(data=tmp_path) as server, connect(server.url) as ann, aiohttp.ClientSession() as session:
        wishes = await ann.subscribe("n >= 0")

        async def post(body: Any, query: str, kind: str = "application/json") -> tuple[int, str]:
            address = f"http://127.0.0.1:{server.port}/v1/events{query}"
            async with session.post(address, data=json.dumps(body), headers={"Content-Type": kind}) as response:
                return response.status, await response.text()

        for _ in range(2):
            assert (await post({"n": 1}, "?id=order-1"))[0] == 202
        assert (await post([{"n": 1}, {"n": 2}], "?id=order-1&id=order-2"))[0] == 202
        assert (await post({"n": 3}, "?id=order-1&client=shop"))[0] == 202  # whose ids are its own
        for _ in range(2):
            assert (await post({**context, "data": {"n": 4}}, "?id=7", "application/cloudevents+json"))[0] == 202
        status, problem = await post([{"n": 5}, {"n": 6}], "?id=order-5")
        assert status == 400
        assert "1 id for 2 events; each needs one of its own: id=A&id=B" in problem
        assert (await post({"n": 7}, "?id="))[0] == 400
        assert await had(wishes, 4) == [1, 2, 3, 4]
