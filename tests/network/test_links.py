"""Several brokers, linked over sockets of this machine."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from covey.network import RefusedError, Server, connect
from covey.routing.config import STRATEGIES
from tests.network.running import broker, http, in_loop, linked, until


async def line(stack: AsyncExitStack, data: Path | None = None, **options: Any) -> tuple[Server, Server, Server]:
    """Three brokers in a line, b in the middle."""

    def kept(name: str) -> Path | None:
        return None if data is None else data / name

    a = await stack.enter_async_context(broker("a", {"b": ""}, data=kept("a"), **options))
    b = await stack.enter_async_context(broker("b", {"a": a.url, "c": ""}, data=kept("b"), **options))
    c = await stack.enter_async_context(broker("c", {"b": b.url}, data=kept("c"), **options))
    await until(lambda: linked(a, b, c))
    return a, b, c


@pytest.mark.parametrize("strategy", [one for one in STRATEGIES if one != "subsumption"])
def test_events_cross_three_brokers_to_those_who_asked_under_every_strategy(strategy: str) -> None:
    @in_loop
    async def check() -> None:
        async with AsyncExitStack() as stack:
            a, b, c = await line(stack, strategy=strategy)
            ann = await stack.enter_async_context(connect(a.url))
            bob = await stack.enter_async_context(connect(b.url))
            cyd = await stack.enter_async_context(connect(c.url))
            cheap = await ann.subscribe("price < 10")
            also_cheap = await bob.subscribe("price < 5")
            await cyd.publish([{"price": price} for price in (3, 30, 7)])
            assert [(await cheap.get())["price"] for _ in range(2)] == [3, 7]
            assert (await also_cheap.get())["price"] == 3

    check()


@in_loop
async def test_a_durable_subscriber_that_is_away_gets_what_was_published_at_the_other_end(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        a, _, c = await line(stack, tmp_path)
        async with connect(a.url, name="ann") as ann:
            await ann.subscribe("price < 10", id="cheap", durable=True)
        async with connect(c.url, name="cyd") as cyd:
            await cyd.publish([{"price": price} for price in range(20)], durable=True)
        async with connect(a.url, name="ann") as ann:
            cheap = await ann.subscribe("price < 10", id="cheap", durable=True)
            assert [(await cheap.get())["price"] for _ in range(10)] == list(range(10))


@in_loop
async def test_a_link_that_breaks_comes_back_and_nothing_durable_is_lost(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        a = await stack.enter_async_context(broker("a", {"b": ""}, data=tmp_path / "a"))
        first = broker("b", {"a": a.url}, data=tmp_path / "b")
        await first.start()
        ann = await stack.enter_async_context(connect(a.url, name="ann"))
        cheap = await ann.subscribe("x >= 0", id="d", durable=True)
        await until(lambda: linked(a, first))
        bob = await stack.enter_async_context(connect(first.url, name="bob"))
        await bob.publish({"x": 1}, durable=True)
        assert (await cheap.get())["x"] == 1
        await a.stop()
        await bob.publish({"x": 2}, durable=True)
        again = await stack.enter_async_context(broker("a", {"b": ""}, data=tmp_path / "a", port=a.port))
        assert (await cheap.get())["x"] == 2
        assert "b" in again.engine.broker.links
        await first.stop()


@in_loop
async def test_brokers_that_both_open_the_link_come_to_one_connection(tmp_path: Path) -> None:
    async with broker("a", {"b": ""}) as placeholder:
        port = placeholder.port
    async with broker("b", {"a": f"ws://127.0.0.1:{port}"}) as b, broker("a", {"b": b.url}, port=port) as a:
        await until(lambda: linked(a, b))
        async with connect(a.url) as ann, connect(b.url) as bob:
            subscription = await ann.subscribe("x = 1")
            for _ in range(3):
                # Durable, since the first connection may still be given up for the second.
                await bob.publish({"x": 1}, durable=True)
                assert (await subscription.get())["x"] == 1
        await until(lambda: a.engine.sessions == b.engine.sessions == 1)
        await asyncio.sleep(0.3)
        assert linked(a, b)


@in_loop
async def test_a_broker_that_is_no_neighbour_is_refused() -> None:
    async with broker("a", {"b": ""}) as a, aiohttp.ClientSession() as session:
        for name in ("c", "", "a"):
            async with session.get(f"{http(a)}/v1/link", headers={"Covey-Broker": name}) as response:
                assert response.status == 401
                assert "is not a neighbour" in (await response.json())["error"]


@in_loop
async def test_a_trace_follows_the_entries_and_says_why() -> None:
    async with AsyncExitStack() as stack:
        a, b, c = await line(stack)
        ann = await stack.enter_async_context(connect(a.url))
        await ann.subscribe("price < 10")
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{http(c)}/v1/trace", json={"price": 1}) as response:
                (link,) = (await response.json())["links"]
            assert (link["peer"], link["goes"], link["why"]) == ("b", True, "entries match")
            async with session.post(f"{http(b)}/v1/trace?from=c", json={"price": 1}) as response:
                links = {one["peer"]: one for one in (await response.json())["links"]}
            assert (links["a"]["goes"], links["c"]["why"]) == (True, "the event came from there")
            async with session.post(f"{http(b)}/v1/trace", json={"price": 10}) as response:
                assert not any(one["goes"] for one in (await response.json())["links"])


@in_loop
async def test_where_brokers_route_by_advertisements_events_come_from_those_who_advertised() -> None:
    async with AsyncExitStack() as stack:
        a, _, c = await line(stack, advertisements=True)
        ann = await stack.enter_async_context(connect(a.url))
        cyd = await stack.enter_async_context(connect(c.url))
        cheap = await ann.subscribe("price < 10")
        with pytest.raises(RefusedError, match="advertise it first"):
            await cyd.publish({"price": 5})
        id = await cyd.advertise("price > 0")
        await cyd.publish([{"price": 5}, {"price": 50}, {"price": 6}])
        assert [(await cheap.get())["price"] for _ in range(2)] == [5, 6]
        await cyd.unadvertise(id)
        with pytest.raises(RefusedError, match="advertise it first"):
            await cyd.publish({"price": 5})
