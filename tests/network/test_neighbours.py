"""Neighbours that come and go while brokers run."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from covey.network import Security, Server, connect
from covey.network.configuration_file import load
from tests.network.running import broker, http, in_loop, linked, until
from tests.network.test_crashes import running


async def tell(at: Server | str, method: str, peer: str, url: str | None = None, status: int = 204) -> str:
    """What the broker says to an operator."""
    body = None if url is None else {"url": url}
    address = at.replace("ws", "http", 1) if isinstance(at, str) else http(at)
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{address}/v1/peers/{peer}", json=body) as response,
    ):
        assert response.status == status, await response.text()
        return await response.text()


@in_loop
async def test_a_link_is_there_once_both_ends_know_of_it_and_survives_a_restart(tmp_path: Path) -> None:
    async with broker("b", data=tmp_path / "b") as b, connect(b.url) as bob:
        async with broker("a", data=tmp_path / "a") as a, connect(a.url, name="ann") as ann:
            cheap = await ann.subscribe("price < 10", id="cheap", durable=True)
            await bob.publish({"price": 1}, durable=True)
            await tell(a, "PUT", "b", b.url)
            await tell(b, "PUT", "a", "")
            await until(lambda: bool(a.engine.broker.links) and linked(a, b))
            await bob.publish({"price": 2}, durable=True)
            assert [(await cheap.get())["price"] for _ in range(2)] == [1, 2]
        async with broker("a", data=tmp_path / "a") as a, connect(a.url, name="ann") as ann:
            cheap = await ann.subscribe("price < 10", id="cheap", durable=True)
            await until(lambda: linked(a, b))
            await bob.publish({"price": 3}, durable=True)
            while (await cheap.get())["price"] != 3:
                pass  # what wasn't acknowledged before comes again
            async with aiohttp.ClientSession() as session, session.get(f"{http(a)}/v1/peers") as response:
                assert await response.json() == [{"peer": "b", "url": b.url, "connected": True}]
            await tell(a, "DELETE", "b")
            await until(lambda: not b.engine.broker.links["a"].synced)
            assert "no neighbour of a" in await tell(a, "DELETE", "b", status=404)
        async with broker("a", data=tmp_path / "a") as a:
            assert not a.engine.broker.links


@in_loop
async def test_a_neighbour_of_the_configuration_that_was_removed_stays_so_until_the_file_is_without_it(
    tmp_path: Path,
) -> None:
    async with broker("a", {"b": ""}, data=tmp_path) as a:
        await tell(a, "DELETE", "b")
    async with broker("a", {"b": ""}, data=tmp_path) as a:
        assert not a.engine.broker.links
    async with broker("a", {}, data=tmp_path) as a:
        assert not a.engine.broker.links
    async with broker("a", {"b": ""}, data=tmp_path) as a:
        assert list(a.engine.broker.links) == ["b"]


@in_loop
async def test_the_table_of_peers_counts_when_the_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('id = "a"\nport = 0\n[peers]\nc = ""\n')
    async with broker("b", {"a": ""}) as b, Server(load(file, {"peers": {"d": ""}})) as a:
        file.write_text(f'id = "a"\nport = 0\n[peers]\nb = "{b.url}"\n')
        assert await a.reload()
        await until(lambda: a.engine.broker.links.keys() == {"b", "d"} and a.engine.broker.links["b"].synced)
        file.write_text('id = "a"\nport = 0\n[peers]\nb = "nowhere"\n')
        assert not await a.reload()
        assert a.engine.broker.links.keys() == {"b", "d"}
        file.write_text('id = "a"\nport = 0\n')
        assert await a.reload()
        assert a.engine.broker.links.keys() == {"d"}


@in_loop
async def test_what_can_not_be_a_neighbour_is_refused() -> None:
    async with broker("a") as a:
        assert "must start with ws://" in await tell(a, "PUT", "b", "http://x", status=422)
        assert "can't be a neighbour of a" in await tell(a, "PUT", "a", "", status=422)
        assert "can't be the name of a broker" in await tell(a, "PUT", "~b", "", status=400)
        assert not a.engine.broker.links
        async with (
            aiohttp.ClientSession() as session,
            session.put(f"{http(a)}/v1/peers/b", data=b'{"uri": "ws://x"}') as response,
        ):
            assert (response.status, "uri" in await response.text()) == (400, True)


@in_loop
async def test_changing_the_network_needs_the_right_to(tmp_path: Path) -> None:
    async with broker("a", security=Security(secret=b"s" * 32), data=tmp_path) as a:
        await tell(a, "PUT", "b", "", status=401)
        await tell(a, "DELETE", "b", status=401)


@pytest.mark.parametrize("strategy", ["covering", pytest.param("merging", marks=pytest.mark.long)])
@in_loop
async def test_nothing_confirmed_is_lost_while_a_network_of_processes_changes_its_shape(
    tmp_path: Path, strategy: str
) -> None:
    """A line becomes a ring, the ring another line, and so on, while events are published at one end."""
    async with AsyncExitStack() as stack:
        brokers = {
            name: await stack.enter_async_context(running(name, tmp_path, "--port", "0", "--strategy", strategy))
            for name in "abc"
        }

        async def change(method: str, one: str, other: str) -> None:
            is_new = method == "PUT"
            await tell(brokers[one].url, method, other, brokers[other].url if is_new else None)
            await tell(brokers[other].url, method, one, "" if is_new else None)

        await change("PUT", "a", "b")
        await change("PUT", "b", "c")
        ann = await stack.enter_async_context(connect(brokers["a"].url, name="ann"))
        cyd = await stack.enter_async_context(connect(brokers["c"].url, name="cyd"))
        wanted = await ann.subscribe("n % 2 = 0", id="even", durable=True)
        over = asyncio.Event()
        confirmed = 0

        async def publish() -> None:
            nonlocal confirmed
            while not over.is_set():
                await cyd.publish([{"n": confirmed + at} for at in range(10)], durable=True)
                confirmed += 10
                await asyncio.sleep(0.005)

        publishing = asyncio.create_task(publish())
        await asyncio.sleep(0.5)
        for added, removed in ((("a", "c"), ("b", "c")), (("b", "c"), ("a", "b")), (("a", "b"), ("a", "c"))):
            await change("PUT", *added)
            await asyncio.sleep(1.0)
            await change("DELETE", *removed)
            await asyncio.sleep(0.5)
        over.set()
        await publishing
        assert confirmed
        # What comes again over another link may come late, but it comes, and once.
        got = [(await wanted.get())["n"] for _ in range(confirmed // 2)]
        assert sorted(got) == list(range(0, confirmed, 2))
