"""Many subscriptions in one inbox, and deliveries taken many at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from covey import connect_sync
from covey.network import NetworkError, RefusedError, connect
from covey.network.errors import ClosedError
from covey.routing.config import BrokerLimits
from tests.network.running import broker, in_loop, until


@in_loop
async def test_an_event_comes_to_a_group_once_however_many_of_its_filters_match() -> None:
    async with broker() as server, connect(server.url) as ann:
        group = await ann.subscribe_many({"low": "p < 5", "all": "p >= 0", "high": "p > 5"})
        alone = await ann.subscribe("p = 3", id="three")
        await ann.publish([{"p": 3}, {"p": 9}])
        first, second = [await group.get(), await group.get()]
        assert (first["p"], sorted(first.subscriptions)) == (3, ["all", "low", "three"])
        assert (second["p"], sorted(second.subscriptions)) == (9, ["all", "high"])
        assert (await alone.get())["p"] == 3


@in_loop
async def test_more_subscriptions_than_a_frame_has_room_for_are_made_at_once() -> None:
    async with broker() as server, connect(server.url) as ann:
        group = await ann.subscribe_many({str(n): f"p = {n}" for n in range(5_000)})
        await ann.publish([{"p": n} for n in range(0, 5_000, 50)])
        came: list[int] = []
        while len(came) < 100:
            came += [delivery["p"] for delivery in await group.get_many()]
        assert came == list(range(0, 5_000, 50))


@in_loop
async def test_what_is_taken_many_at_a_time_is_acknowledged_with_the_next(tmp_path: Path) -> None:
    limits = BrokerLimits(credit=64)
    async with broker(data=tmp_path, broker_limits=limits) as server, connect(server.url, name="ann") as ann:
        group = await ann.subscribe_many({"low": "p < 500", "all": "p >= 0"}, durable=True)
        await ann.publish([{"p": p} for p in range(1_000)], durable=True)
        came: list[int] = []
        while len(came) < 1_000:
            some = await group.get_many()
            assert len(some) <= limits.credit
            came += [delivery["p"] for delivery in some]
        assert came == list(range(1_000))
        client = server.engine.broker.clients.get("ann")
        assert client is not None
        assert client.queue
        await group.close()
        await until(lambda: not client.queue)


@in_loop
async def test_one_of_a_group_can_end_and_what_only_it_asked_for_goes_with_it() -> None:
    async with broker() as server, connect(server.url) as ann:
        group = await ann.subscribe_many({"low": "p < 5", "small": "p < 2", "high": "p > 5"})
        await ann.publish([{"p": 1}, {"p": 3}, {"p": 9}])
        await until(lambda: len(group._queue) == 3)
        await ann.unsubscribe("low")
        assert sorted(group.filters) == ["high", "small"]
        assert [delivery["p"] for delivery in await group.get_many()] == [1, 9]
        await ann.unsubscribe("small", "high")
        with pytest.raises(ClosedError):
            await group.get()


@in_loop
async def test_a_group_of_which_one_is_refused_leaves_nothing_behind() -> None:
    async with broker() as server, connect(server.url, name="ann") as ann:
        with pytest.raises(RefusedError):
            await ann.subscribe_many({"good": "p < 5", "bad": "p <"})
        client = server.engine.broker.clients.get("ann")
        assert client is not None
        await until(lambda: not client.claims[0])
        assert (await ann.subscribe_many({"good": "p < 5"})).filters == {"good": "p < 5"}


@in_loop
async def test_an_id_belongs_to_one_inbox() -> None:
    async with broker() as server, connect(server.url) as ann:
        await ann.subscribe("p = 1", id="one")
        await ann.subscribe_many({"two": "p = 2"})
        with pytest.raises(NetworkError, match="'one' already"):
            await ann.subscribe_many({"three": "p = 3", "one": "p = 1"})
        with pytest.raises(NetworkError, match="'two' is one of a group"):
            await ann.subscribe("p = 2", id="two")
        with pytest.raises(NetworkError, match="need a client with a name"):
            await ann.subscribe_many({"four": "p = 4"}, durable=True)


@in_loop
async def test_a_durable_group_is_given_what_came_while_its_client_was_away(tmp_path: Path) -> None:
    wishes = {"low": "p < 5", "all": "p >= 0"}
    async with broker(data=tmp_path) as server, connect(server.url) as eve:
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe_many(wishes, durable=True)
        await eve.publish([{"p": 9}, {"p": 1}, {"p": 8}], durable=True)
        async with connect(server.url, name="ann") as ann:
            await until(lambda: sum(map(len, ann._deliveries.early.values())) == 4)
            with pytest.raises(RefusedError):
                await ann.subscribe_many({**wishes, "bad": "p <"}, durable=True)
            group = await ann.subscribe_many(wishes, durable=True)
            await eve.publish({"p": 7}, durable=True)
            assert [(await group.get())["p"] for _ in range(4)] == [9, 1, 8, 7]
        client = server.engine.broker.clients.get("ann")
        assert client is not None
        assert len(client.queue) == 1


@in_loop
async def test_a_program_without_asyncio_has_groups_too() -> None:
    async with broker() as server:

        def program() -> list[int]:
            with connect_sync(server.url) as ann:
                group = ann.subscribe_many({"low": "p < 5", "high": "p > 7"})
                ann.publish([{"p": p} for p in range(10)])
                came = [group.get(timeout=20)["p"]]
                while len(came) < 7:
                    came += [delivery["p"] for delivery in group.get_many(timeout=20)]
                with pytest.raises(TimeoutError):
                    group.get_many(timeout=0.01)
                return came

        assert await asyncio.to_thread(program) == [0, 1, 2, 3, 4, 8, 9]
