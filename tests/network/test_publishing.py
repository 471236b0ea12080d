"""Publishing with a window of unconfirmed batches, and taking deliveries in batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest

from covey.network import NetworkError, Principal, RefusedError, Security, connect, connect_sync, sign
from covey.network.asyncio.publishing import Publishing
from tests.network.running import broker, in_loop

SECRET = b"a secret of thirty-two bytes, or more"
EVENTS = [{"x": number, "text": "even" if number % 2 == 0 else None} for number in range(25)]


class Slow:
    """A client whose publications are confirmed when somebody says so."""

    def __init__(self) -> None:
        self.under_way: list[tuple[list[Any], asyncio.Future[None]]] = []

    async def publish(self, events: list[Any], **options: Any) -> None:
        confirmed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.under_way.append((events, confirmed))
        await confirmed


@in_loop
async def test_no_more_than_the_window_is_unconfirmed_and_what_is_confirmed_is_a_beginning() -> None:
    client = Slow()
    out = Publishing(client, durable=False, window=2, trace="")  # type: ignore[arg-type]
    await out.publish([1, 2])  # type: ignore[list-item]
    await out.publish([3])  # type: ignore[list-item]
    third = asyncio.create_task(out.publish([4]))  # type: ignore[list-item]
    await asyncio.sleep(0.01)
    assert [events for events, _ in client.under_way] == [[1, 2], [3]]
    client.under_way[1][1].set_result(None)  # another is confirmed, but not all before it
    await asyncio.sleep(0.01)
    assert (out.confirmed, out.sent, third.done()) == (0, 3, False)
    client.under_way[0][1].set_result(None)
    await third
    assert [events for events, _ in client.under_way] == [[1, 2], [3], [4]]
    assert (out.confirmed, out.sent) == (3, 4)
    client.under_way[2][1].set_exception(RefusedError("no"))
    with pytest.raises(RefusedError):
        async with out:
            pass
    assert (out.confirmed, out.sent) == (3, 4)
    with pytest.raises(RefusedError):
        await out.publish([5])  # type: ignore[list-item]
    with pytest.raises(NetworkError, match="window is 0"):
        Publishing(client, durable=False, window=0, trace="")  # type: ignore[arg-type]


@in_loop
async def test_whatever_events_are_given_as_they_come_in_order() -> None:
    async def one_by_one() -> AsyncIterator[dict[str, Any]]:
        for event in EVENTS:
            yield event

    lines = b"".join(b'{"x": %d, "text": %s}\n' % (e["x"], b'"even"' if e["text"] else b"null") for e in EVENTS)
    async with broker() as server, connect(server.url) as client:
        inbox = await client.subscribe("x >= 0")
        for source in (EVENTS, iter(EVENTS), one_by_one(), lines, lines.splitlines(), pa.Table.from_pylist(EVENTS)):
            assert await client.publish_many(source, batch=4, window=3) == len(EVENTS)
            found: list[dict[str, Any]] = []
            while len(found) < len(EVENTS):
                found += (await inbox.get_many(most=10)).dicts()
            assert found == EVENTS


@in_loop
async def test_deliveries_come_as_dicts_or_as_a_table_and_are_acknowledged_together() -> None:
    async with broker() as server:
        async with connect(server.url, name="ann") as ann, connect(server.url) as bob:
            inbox = await ann.subscribe("x >= 0", id="s", durable=True, manual_ack=True)
            await bob.publish([{"x": 1}, {"x": 2, "y": "two"}, {"x": 3}, {"x": 4}])
            while len(inbox._queue) < 4:
                await asyncio.sleep(0.01)
            first = await inbox.get_many(most=3)
            assert first.dicts() == [{"x": 1}, {"x": 2, "y": "two"}, {"x": 3}]
            assert first.arrow().to_pydict() == {"x": [1, 2, 3], "y": [None, "two", None]}
            assert first.arrow(pa.schema({"y": pa.string()})).to_pydict() == {"y": [None, "two", None]}
            first.ack()
            assert (await inbox.get_many()).dicts() == [{"x": 4}]
        async with connect(server.url, name="ann") as ann:
            inbox = await ann.subscribe("x >= 0", id="s", durable=True)
            assert [delivery["x"] for delivery in await inbox.get_many()] == [4]


@in_loop
async def test_a_refusal_among_batches_is_raised_with_what_went_out_before_it() -> None:
    async with broker(security=Security(secret=SECRET)) as server:
        token = sign(Principal("ann", expires=server.engine.clock() + 60), SECRET)
        narrow = sign(Principal("pub", expires=server.engine.clock() + 60, publish="x < 10"), SECRET)
        async with connect(server.url, token=token) as ann, connect(server.url, token=narrow) as pub:
            inbox = await ann.subscribe("x >= 0")
            async with pub.publishing(window=2) as out:
                await out.publish({"x": 1})
                await out.publish([{"x": 2}, {"x": 3}])
            assert (out.sent, out.confirmed) == (3, 3)
            with pytest.raises(RefusedError, match="isn't among what may be published"):
                await pub.publish_many(({"x": number} for number in range(30)), batch=4, window=2)
            found: list[int] = []
            while len(found) < 11:
                found += [event["x"] for event in (await inbox.get_many()).dicts()]
            assert found == [1, 2, 3, *range(8)]


def test_the_client_without_asyncio_does_the_same() -> None:
    from covey.network import ServerConfig
    from covey.routing.config import BrokerConfig
    from tests.cli.test_broker_commands import Running

    running = Running()
    try:
        url = running.start(ServerConfig(BrokerConfig("a"), port=0)).url
        with connect_sync(url, name="ann") as client:
            inbox = client.subscribe("x >= 0", id="s", durable=True, manual_ack=True)
            assert client.publish_many(EVENTS, batch=4, window=2) == 25
            with client.publishing() as out:
                out.publish([{"x": 100}, {"x": 101}])
            assert (out.sent, out.confirmed) == (2, 2)
            found: list[Any] = []
            while len(found) < 27:
                batch = inbox.get_many(5, most=6)
                assert len(batch) <= 6
                assert [delivery.attributes for delivery in batch] == batch.dicts()
                assert batch[:2].arrow().column("x").to_pylist() == [event["x"] for event in batch.dicts()[:2]]
                found += batch.dicts()
                batch.ack()
            assert found == [*EVENTS, {"x": 100}, {"x": 101}]
        with connect_sync(url, name="ann") as client:
            inbox = client.subscribe("x >= 0", id="s", durable=True)
            with pytest.raises(TimeoutError):
                inbox.get_many(0.1)
    finally:
        running.stop()
