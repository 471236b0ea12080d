"""A publication that would take long is taken in parts: all of it or nothing, in order, and confirmed once."""

from __future__ import annotations

import asyncio

import pytest

from covey.network import RefusedError, connect
from covey.network import engine as engines
from covey.network.http_api import Nowhere
from covey.routing import Broker
from covey.routing.journal import Outputs
from covey.routing.messages import Input, Permissions, Publication, Publications, Publish
from tests.network.running import broker, in_loop, until


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Who published how many events in each input of the broker, which is one at most."""
    monkeypatch.setattr(engines, "EVENTS_SECONDS", 0.0)
    inputs: list[tuple[str, int]] = []
    handle = Broker.handle

    def handled(self: Broker, input: Input, now: float, steps: int | None = None) -> Outputs:
        if isinstance(input, Publications):
            inputs.extend((request.client, request.end - request.start) for request in input.requests)
        return handle(self, input, now, steps)

    monkeypatch.setattr(Broker, "handle", handled)
    return inputs


@in_loop
@pytest.mark.parametrize("durable", [False, True])
async def test_all_of_it_comes_once_and_in_order(durable: bool, taken: list[tuple[str, int]]) -> None:
    async with broker() as server, connect(server.url, name="ann") as ann, connect(server.url, name="bob") as bob:
        everything = await ann.subscribe("x >= 0", id="all", durable=durable)
        await bob.publish([{"x": number} for number in range(25)], durable=durable)
        await bob.publish({"x": 25}, durable=durable)
        async with asyncio.timeout(60):
            assert [(await everything.get())["x"] for _ in range(26)] == list(range(26))
        assert max(count for _, count in taken) == 1
        assert sum(count for _, count in taken) == 26


@in_loop
async def test_nothing_of_it_is_published_where_one_event_may_not_be(taken: list[tuple[str, int]]) -> None:
    async with broker() as server, connect(server.url, name="ann") as ann, connect(server.url, name="bob") as bob:
        everything = await ann.subscribe("x >= 0")
        with pytest.raises(RefusedError, match="event 25"):
            await bob.publish([*({"x": number} for number in range(24)), {"covey.x": 1, "x": 24}])
        await bob.publish({"x": 100})
        async with asyncio.timeout(60):
            assert (await everything.get())["x"] == 100
        assert len(taken) == 2


@in_loop
async def test_others_publish_between_its_parts(taken: list[tuple[str, int]]) -> None:
    async with broker() as server:
        engine = server.engine
        ann, bob = (engine.open_client(name, Permissions(), Nowhere()) for name in ("ann", "bob"))
        await until(lambda: ann.open and bob.open)
        engine.say(bob, Publish(1, [Publication({"x": number}) for number in range(2_000)]))
        engine.say(ann, Publish(1, [Publication({"x": 1})]))
        await until(lambda: sum(count for _, count in taken) == 2_001)
    names = [name for name, _ in taken]
    assert names[0] == names[-1] == "bob"
    assert "ann" in names
