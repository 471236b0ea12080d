"""Loads over real sockets: files of batch jobs into brokers that run, and what is left after a kill."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa
import pytest
from pyarrow import parquet

from covey.history import Profile
from covey.matching import Index
from covey.network import Security, connect, connect_sync
from covey.network.errors import ConnectionLostError, RefusedError
from covey.network.limits import NetworkLimits
from covey.network.load_client import drop_load, load_profile, load_subscriptions, loads
from covey.network.tokens import Principal, sign
from covey.routing.config import PruningOptions
from covey.simulation.uniform_chances import UniformChances
from tests.network.running import broker, http, in_loop, linked, until
from tests.network.test_crashes import running


def saved_index(path: Path, filters: dict[str, str], **options: Any) -> Path:
    index = Index(**options)
    index.add_many(filters.items())
    index.save(path)
    return path


def saved_table(path: Path, rows: list[tuple[str, str, list[str]]]) -> Path:
    ids, texts, behind = (list(column) for column in zip(*rows, strict=True))
    parquet.write_table(pa.table({"id": ids, "filter": texts, "stands_for": behind}), path)
    return path


@in_loop
async def test_an_index_is_loaded_while_events_flow(tmp_path: Path) -> None:
    path = saved_index(tmp_path / "s.covey", {f"s{at}": f"x = {at}" for at in range(0, 200, 2)})
    table = saved_table(tmp_path / "entries.parquet", [("all", "x >= 0", [f"s{at}" for at in range(0, 200, 2)])])
    b = broker("b", {"a": ""}, strategy="simple")
    async with b, broker("a", {"b": b.url}, strategy="simple") as a:
        await until(lambda: linked(a, b))
        async with connect(b.url, name="bob") as bob:
            stop = asyncio.Event()

            async def publish() -> None:
                while not stop.is_set():
                    await bob.publish([{"x": -1}, {"x": 1}])

            publishing = asyncio.create_task(publish())
            found = await asyncio.to_thread(load_subscriptions, a.url, "night", "ann", path, compacted=table)
            stop.set()
            await publishing
            assert (found.version, found.made, found.subscriptions, found.told) == (1, 100, 100, 1)
            assert [str(one) for one in b.engine.broker.links["a"].inward[0].holding.entries.values()] == ["x >= 0"]
            await bob.publish([{"x": at} for at in range(20)], durable=True)
            async with connect(a.url, name="ann") as ann:
                assert ann.kept == {f"s{at}" for at in range(0, 200, 2)}
                subscription = await ann.subscribe("x = 8", id="s8", durable=True)
                assert (await subscription.get())["x"] == 8


@in_loop
async def test_a_client_takes_what_was_loaded_for_it_in_one_inbox() -> None:
    async with broker("a") as a, connect(a.url, name="ann") as ann, connect(a.url) as bob:
        inbox, own = ann.loaded(), await ann.subscribe("x > 8", id="own")
        both = [("low", "x < 5"), ("even", "x IN (0, 2, 4, 6, 8)")]
        await asyncio.to_thread(load_subscriptions, a.url, "night", "ann", both)
        await bob.publish([{"x": x} for x in range(10)])
        got = [await inbox.get() for _ in range(7)]
        assert [(one["x"], sorted(one.subscriptions)) for one in got] == [
            (0, ["even", "low"]), (1, ["low"]), (2, ["even", "low"]), (3, ["low"]), (4, ["even", "low"]),
            (6, ["even"]), (8, ["even"]),
        ]  # fmt: skip
        assert (await own.get())["x"] == 9


@in_loop
async def test_a_client_without_asyncio_takes_it_too() -> None:
    def work(url: str) -> list[Any]:
        with connect_sync(url, name="ann") as ann, connect_sync(url) as bob, ann.loaded() as inbox:
            load_subscriptions(url, "night", "ann", [("low", "x < 5")])
            bob.publish([{"x": x} for x in range(3, 8)])
            return [inbox.get(timeout=30)["x"] for _ in range(2)]

    async with broker("a") as a:
        assert await asyncio.to_thread(work, a.url) == [3, 4]


@in_loop
async def test_what_came_for_loaded_subscriptions_meanwhile_waits_and_is_acknowledged_once_taken() -> None:
    async with broker("a") as a:
        await asyncio.to_thread(load_subscriptions, a.url, "night", "ann", [("low", "x < 5"), ("odd", "x IN (1, 3)")])
        async with connect(a.url) as bob:
            await bob.publish([{"x": x} for x in range(10)], durable=True)
        async with connect(a.url, name="ann") as ann:
            first = ann.loaded()
            assert [(await first.get())["x"] for _ in range(2)] == [0, 1]
            await first.close()
            second = ann.loaded()
            assert [(await second.get())["x"] for _ in range(2)] == [2, 3]
        async with connect(a.url, name="ann") as ann:
            assert (await ann.loaded().get())["x"] == 3


@in_loop
async def test_loads_are_listed_replaced_and_dropped(tmp_path: Path) -> None:
    async with broker("a") as a:
        lines = tmp_path / "s.jsonl"
        lines.write_text("".join(json.dumps({"id": f"s{at}", "filter": f"x = {at}"}) + "\n" for at in range(3)))
        await asyncio.to_thread(load_subscriptions, a.url, "day/1", "ann", lines)
        again = await asyncio.to_thread(load_subscriptions, a.url, "day/1", "ann", [("s1", "x = 1"), ("s9", "x = 9")])
        assert (again.version, again.made, again.ended, again.subscriptions) == (2, 1, 2, 2)
        assert await asyncio.to_thread(loads, a.url) == [again]
        await asyncio.to_thread(drop_load, a.url, "day/1")
        assert await asyncio.to_thread(loads, a.url) == []
        with pytest.raises(RefusedError, match="there is no load 'day/1'"):
            await asyncio.to_thread(drop_load, a.url, "day/1")


@in_loop
async def test_what_cannot_be_loaded_is_refused_in_one_line(tmp_path: Path) -> None:
    async with broker("a", limits=NetworkLimits(load_bytes=1_000, name_length=20)) as a:

        async def refused(*arguments: Any) -> str:
            with pytest.raises(RefusedError) as error:
                await asyncio.to_thread(load_subscriptions, a.url, *arguments)
            assert "\n" not in str(error.value)
            return str(error.value)

        simple = saved_index(tmp_path / "s.covey", {"s": "x = 1"}, semantics="simple")
        assert "semantics 'simple'; this broker has 'sql'" in await refused("n", "ann", simple)
        assert "load 'n': subscription 's': " in await refused("n", "ann", [("s", "x = ")])
        assert "load_bytes is the limit (HTTP 413)" in await refused("n", "ann", [("s" * 10, "x = 1")] * 100)
        assert "'~x' can't be the name of a client" in await refused("n", "~x", [])
        assert "can't be the name of a load" in await refused("n" * 21, "ann", [])
        assert "line 1: an id of 30 characters" in await refused("n", "ann", [("s" * 30, "x = 1")])
        assert a.engine.broker.loads() == []
        bad = tmp_path / "bad.profile"
        bad.write_bytes(b"nothing")
        with pytest.raises(RefusedError, match=r"bad\.profile: not a covey profile"):
            await asyncio.to_thread(load_profile, a.url, bad)
        async with aiohttp.ClientSession() as session:
            for body in (b"[1]", b'{"id": "s"}', b'{"id": "s", "filter": "x = 1", "more": 1}', b"\xff"):
                async with session.put(f"{http(a)}/v1/loads/n?client=ann", data=body) as response:
                    assert response.status == 422
                    assert (await response.json())["error"].startswith("line 1: ")
            headers = {"Content-Encoding": "gzip"}
            async with session.put(f"{http(a)}/v1/loads/n?client=ann", data=b"", headers=headers) as response:
                assert response.status == 400
    with pytest.raises(ConnectionLostError, match="is a broker running there"):
        await asyncio.to_thread(loads, "ws://127.0.0.1:9")


@in_loop
async def test_only_operators_may_load(tmp_path: Path) -> None:
    secret = b"s" * 32
    path = tmp_path / "p.profile"
    Profile.of([{"x": 1}], attributes=["x"]).save(path)
    async with broker("a", security=Security(secret=secret)) as a:
        tokens = {admin: sign(Principal("op", expires=2e9, admin=admin), secret) for admin in (True, False)}
        for action in (
            lambda token: load_subscriptions(a.url, "n", "op/x", [("s", "x = 1")], token=token),
            lambda token: loads(a.url, token=token),
            lambda token: load_profile(a.url, path, token=token),
            lambda token: drop_load(a.url, "n", token=token),
        ):
            with pytest.raises(RefusedError, match="HTTP 403"):
                await asyncio.to_thread(action, tokens[False])
            with pytest.raises(RefusedError, match="HTTP 401"):
                await asyncio.to_thread(action, None)
            await asyncio.to_thread(action, tokens[True])


@in_loop
async def test_a_profile_is_replaced_while_a_broker_runs(tmp_path: Path) -> None:
    path = tmp_path / "p.profile"
    Profile.of([{"k": "a", "p": 3 * at} for at in range(100)], attributes=["k", "p"]).save(path)
    b = broker("b", {"a": ""}, strategy="simple")
    pruned = {"pruning": PruningOptions("network", 0.5), "chances": UniformChances()}
    async with b, broker("a", {"b": b.url}, strategy="simple", **pruned) as a, connect(b.url, name="ann") as ann:
        await until(lambda: linked(a, b))
        for at in range(4):
            await ann.subscribe(f"k = 'a' AND p < {at + 20}", id=f"s{at}")

        def matched() -> set[str]:
            return {str(one) for one in a.engine.broker.table.entries("p:b").values()}

        assert "k = 'a'" in matched()
        await asyncio.to_thread(load_profile, a.url, path)
        assert "k = 'a'" not in matched()
        assert a.engine.broker.profile is not None
        assert a.engine.broker.profile.name == "p.profile"


@in_loop
async def test_a_load_survives_the_death_of_its_broker_whole_or_not_at_all(tmp_path: Path) -> None:
    first = saved_index(tmp_path / "1.covey", {f"s{at}": f"x = {at}" for at in range(500)})
    second = saved_index(tmp_path / "2.covey", {f"s{at}": f"x = {at + 10_000}" for at in range(250, 750)})
    async with running("a", tmp_path, "--port", "0") as a:
        await asyncio.to_thread(load_subscriptions, a.url, "night", "ann", first)
        loading = asyncio.create_task(asyncio.to_thread(load_subscriptions, a.url, "night", "ann", second))
        await asyncio.sleep(0.05)
        await a.kill()
        confirmed = not isinstance((await asyncio.gather(loading, return_exceptions=True))[0], Exception)
    async with running("a", tmp_path, "--port", "0") as a:
        (found,) = await asyncio.to_thread(loads, a.url)
        assert found.version in ((2,) if confirmed else (1, 2))
        start, shift = (0, 0) if found.version == 1 else (250, 10_000)
        async with connect(a.url, name="ann") as ann, connect(a.url, name="bob") as bob:
            assert ann.kept == {f"s{at}" for at in range(start, start + 500)}
            last = await ann.subscribe(f"x = {start + shift + 499}", id=f"s{start + 499}", durable=True)
            await bob.publish([{"x": x} for x in (0, 499, 10_250, 10_749)], durable=True)
            assert (await last.get())["x"] == start + shift + 499
