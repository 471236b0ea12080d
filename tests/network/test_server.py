"""One broker, over each of its doors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from covey.errors import FilterError
from covey.network import ClosedError, RefusedError, SessionTakenError, SubscriptionEndedError, connect
from covey.network.cloudevents import STRUCTURED
from covey.network.frames import WRITTEN
from covey.network.limits import NetworkLimits
from covey.network.sync import connect as connect_sync
from tests.network.running import broker, http, in_loop, until


async def attributes(subscription: Any, count: int) -> list[dict[str, Any]]:
    return [(await subscription.get()).attributes for _ in range(count)]


async def next_event(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The next event of a stream, with its fields."""
    while True:
        block = (await response.content.readuntil(b"\n\n")).decode()
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            return {**fields, "data": json.loads(fields["data"])}


@in_loop
async def test_every_event_reaches_exactly_those_who_asked_for_it() -> None:
    async with broker() as server, connect(server.url) as ann, connect(server.url) as bob, connect(server.url) as eve:
        cheap = await ann.subscribe("price < 10")
        ibm = await ann.subscribe("company = 'IBM'")
        bobs = await bob.subscribe("company IS NULL")
        events = [{"price": 5}, {"price": 50, "company": "IBM"}, {"price": 7, "company": "IBM"}]
        await eve.publish(events)
        assert await attributes(cheap, 2) == [events[0], events[2]]
        assert await attributes(ibm, 2) == [events[1], events[2]]
        assert await attributes(bobs, 1) == [events[0]]


@in_loop
async def test_nothing_comes_after_a_confirmed_unsubscription() -> None:
    async with broker() as server, connect(server.url) as ann:
        cheap = await ann.subscribe("price < 10")
        await ann.publish({"price": 1})
        await cheap.close()
        await ann.publish({"price": 2})
        with pytest.raises(ClosedError):
            await cheap.get()
        assert server.engine.broker.clients.get("ann") is None


@in_loop
async def test_a_filter_that_cannot_be_read_is_refused_with_a_reason_and_the_session_goes_on() -> None:
    async with broker() as server, connect(server.url) as ann:
        with pytest.raises(RefusedError, match="price <"):
            await ann.subscribe("price <")
        subscription = await ann.subscribe("price < 3")
        await ann.publish({"price": 1})
        assert await attributes(subscription, 1) == [{"price": 1}]


@in_loop
async def test_a_client_that_takes_nothing_for_a_while_gets_everything_in_the_end() -> None:
    async with broker() as server, connect(server.url) as ann, connect(server.url) as bob:
        all_of_them = await ann.subscribe("x >= 0")
        # More than the credit, less than credit and buffer together.
        await bob.publish([{"x": number} for number in range(1_800)])
        assert [one["x"] for one in await attributes(all_of_them, 1_800)] == list(range(1_800))
        assert ann.missed == 0


@in_loop
async def test_a_client_that_is_too_slow_hears_how_much_it_missed() -> None:
    async with broker() as server, connect(server.url) as ann, connect(server.url) as bob:
        all_of_them = await ann.subscribe("x >= 0")
        await bob.publish([{"x": number} for number in range(2_500)])
        await until(lambda: ann.missed > 0)
        got = await attributes(all_of_them, 2_500 - ann.missed)
        assert len(got) + ann.missed == 2_500
        assert got[-1] == {"x": 2_499}


@in_loop
async def test_a_second_client_of_the_same_name_takes_the_session() -> None:
    async with broker() as server, connect(server.url, name="ann") as first:
        waiting = asyncio.create_task((await first.subscribe("x = 1")).get())
        async with connect(server.url, name="ann") as second:
            with pytest.raises(SessionTakenError, match="'ann'"):
                await waiting
            with pytest.raises(SessionTakenError):
                await first.publish({"x": 1})
            await second.publish({"x": 1})


@in_loop
async def test_a_lease_is_renewed_while_the_client_is_there_and_ends_when_told() -> None:
    async with broker() as server:
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe("x = 1", id="s", durable=True, lease=0.6)
            await asyncio.sleep(1.5)
            client = server.engine.broker.clients.get("ann")
            assert client is not None
            assert list(client.claims[0]) == ["s"]
        await until(lambda: server.engine.broker.clients.get("ann") is None)


@in_loop
async def test_a_subscriber_hears_that_its_lease_has_ended() -> None:
    async with broker() as server, connect(server.url, name="ann") as ann:
        subscription = await ann.subscribe("x = 1", id="s", lease=0.3)
        assert ann._renewing is not None
        ann._renewing.cancel()
        with pytest.raises(SubscriptionEndedError, match="'s'"):
            await subscription.get()


@in_loop
async def test_a_client_without_asyncio_does_the_same() -> None:
    def work(url: str) -> list[Any]:
        with connect_sync(url, name="ann") as ann, connect_sync(url) as bob:
            subscription = ann.subscribe("price < 10", id="cheap", durable=True, manual_ack=True)
            with pytest.raises(TimeoutError):
                subscription.get(timeout=0.05)
            bob.publish([{"price": 1}, {"price": 20}, {"price": 2}], durable=True)
            found = []
            for delivery in subscription:
                found.append(delivery["price"])
                delivery.ack()
                if len(found) == 2:
                    break
            assert bob.advertise("price > 0", id="mine") == "mine"
            bob.unadvertise("mine")
            subscription.close()
            assert ann.broker == "a"
        with pytest.raises(ClosedError):
            ann.publish({"price": 1})
        return found

    async with broker() as server:
        assert await asyncio.to_thread(work, server.url) == [1, 2]


@in_loop
async def test_http_publishes_plain_events_and_cloudevents() -> None:
    async with broker() as server, connect(server.url) as ann, aiohttp.ClientSession() as session:
        everything = await ann.subscribe("price IS NOT NULL")
        context = {"specversion": "1.0", "id": "7", "source": "/s", "type": "quote"}
        url = f"{http(server)}/v1/events"
        for body, headers in (
            ({"price": 1}, {"Content-Type": "application/json"}),
            ([{"price": 2}, {"price": 3}], {"Content-Type": "application/json"}),
            ({**context, "data": {"price": 4}}, {"Content-Type": STRUCTURED}),
            ({"price": 5}, {"Content-Type": "application/json", **{f"ce-{k}": v for k, v in context.items()}}),
        ):
            async with session.post(url, data=json.dumps(body), headers=headers) as response:
                assert response.status == 202, await response.text()
        got = await attributes(everything, 5)
        assert [one["price"] for one in got] == [1, 2, 3, 4, 5]
        assert [one.get("ce") for one in got[3:]] == [context, context]


@in_loop
async def test_clients_and_http_take_other_dialects_and_the_broker_keeps_sql(tmp_path: Path) -> None:
    async with (
        broker(data=tmp_path) as server,
        connect(server.url, name="ann") as ann,
        aiohttp.ClientSession() as session,
    ):
        near = await ann.subscribe("hop < 5", id="near", dialect="cesql")
        with pytest.raises(FilterError, match="ends too early"):
            await ann.subscribe("hop <", dialect="cesql")
        await ann.publish([{"hop": "7"}, {"hop": "3"}])
        assert await attributes(near, 1) == [{"hop": "3"}]
        url = f"{http(server)}/v1/clients/bob/subscriptions/heavy"
        claim = {"filter": "weight / 2 > 3", "durable": True, "dialect": "jms"}
        async with session.put(url, json=claim) as response:
            assert (await response.json())["filter"] == "weight / 2 > 3"
        for dialect, words in (("sigma", "brokers don't read"), ("latin", "is not known"), ("jms", "no meaning")):
            async with session.put(url, json={**claim, "filter": "?", "dialect": dialect}) as response:
                assert response.status == 400
                assert words in (await response.json())["error"]


@in_loop
async def test_http_manages_the_durable_subscriptions_of_a_client_that_is_away(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as server, aiohttp.ClientSession() as session:
        url = f"{http(server)}/v1/clients/ann/subscriptions"
        async with session.put(f"{url}/cheap", json={"filter": "price < 10", "durable": True}) as response:
            assert response.status == 200, await response.text()
        async with session.put(f"{url}/other", json={"filter": "price < 10"}) as response:
            assert response.status == 422
            assert "durable" in (await response.json())["error"]
        async with session.post(f"{http(server)}/v1/events?durable=true", json=[{"price": 5}]) as response:
            assert response.status == 202
        async with session.get(url) as response:
            assert [one["id"] for one in await response.json()] == ["cheap"]
        async with connect(server.url, name="ann") as ann:
            assert ann.kept == {"cheap"}
            assert await attributes(await ann.subscribe("price < 10", id="cheap", durable=True), 1) == [{"price": 5}]
        async with session.delete(f"{url}/cheap") as response:
            assert response.status == 204
        async with session.delete(f"{url}/cheap") as response:
            assert response.status == 422


@in_loop
async def test_a_stream_of_events_for_curl() -> None:
    async with broker() as server, aiohttp.ClientSession() as session:
        query = {"filter": "price < 10"}
        async with session.get(f"{http(server)}/v1/events", params=query) as stream:
            assert stream.headers["Content-Type"] == "text/event-stream"
            async with connect(server.url) as ann:
                await ann.publish([{"price": 50}, {"price": 5}])
            assert (await next_event(stream))["data"]["attributes"] == {"price": 5}
        await until(lambda: len(server.engine.broker.table) == 0)


@in_loop
async def test_a_durable_stream_goes_on_after_the_last_event_that_was_seen(tmp_path: Path) -> None:
    async with broker(data=tmp_path) as server, aiohttp.ClientSession() as session, connect(server.url) as ann:
        claim = {"filter": "price < 10", "durable": True}
        async with session.put(f"{http(server)}/v1/clients/screen/subscriptions/events", json=claim) as made:
            assert made.status == 200
        query = {"client": "screen", "format": "cloudevents"}
        async with session.get(f"{http(server)}/v1/events", params=query) as stream:
            await ann.publish({"price": 1}, durable=True)
            first = await next_event(stream)
            assert first["data"]["data"] == {"price": 1}
        await until(lambda: not server.engine.broker.clients.get("screen").up)  # type: ignore[union-attr]
        await ann.publish({"price": 2}, durable=True)
        last = {"Last-Event-ID": first["id"]}
        async with session.get(f"{http(server)}/v1/events", params=query, headers=last) as stream:
            assert (await next_event(stream))["data"]["data"] == {"price": 2}


@in_loop
async def test_a_client_may_speak_json_over_the_websocket() -> None:
    async with broker() as server, aiohttp.ClientSession() as session:
        async with session.ws_connect(f"{server.url}/v1/client?client=web", protocols=[WRITTEN]) as socket:
            assert json.loads(await socket.receive_str())[0][0] == "Welcome"
            await socket.send_str(
                '[["Subscribe", 1, "s", "price < 3"], ["Publish", 2, [["Publication", {"price": 1}]]]]'
            )
            answers: list[Any] = []
            while len(answers) < 3:
                answers += json.loads(await socket.receive_str())
        assert sorted(answer[0] for answer in answers) == ["Confirmed", "Confirmed", "Deliver"]
        assert next(answer for answer in answers if answer[0] == "Deliver")[3] == {"price": 1}


@in_loop
async def test_operators_see_figures_tables_and_where_an_event_would_go() -> None:
    async with broker() as server, connect(server.url, name="ann") as ann, aiohttp.ClientSession() as session:
        await ann.subscribe("price < 10", id="cheap")
        for path, expected in (
            ("/healthz", "ok"),
            ("/readyz", "ok"),
            ("/v1/status", '"subscriptions":1'),
            ("/v1/routes", '"filter":"price < 10"'),
            ("/metrics", "covey_subscriptions 1.0"),
            ("/metrics", 'covey_answer_seconds_bucket{le="+Inf"} '),
            ("/metrics", 'covey_pause_seconds_bucket{le="+Inf"} '),
            ("/metrics", "covey_delivered_total 0.0"),
        ):
            async with session.get(f"{http(server)}{path}") as response:
                assert response.status == 200
                assert expected in await response.text()
        async with session.post(f"{http(server)}/v1/trace", json={"price": 1}) as response:
            found = await response.json()
        assert found["clients"] == [{"client": "ann", "subscriptions": {"cheap": "price < 10"}}]
        async with session.post(f"{http(server)}/v1/trace", json={"price": 100}) as response:
            assert (await response.json())["clients"] == []


@in_loop
async def test_a_client_goes_on_after_its_broker_was_stopped_and_started(tmp_path: Path) -> None:
    first = broker(data=tmp_path)
    await first.start()
    async with connect(first.url, name="ann") as ann:
        durable = await ann.subscribe("x >= 0", id="d", durable=True)
        volatile = await ann.subscribe("x = 2")
        await ann.publish({"x": 1}, durable=True)
        assert await attributes(durable, 1) == [{"x": 1}]
        await first.stop()
        async with broker(data=tmp_path, port=first.port):
            await ann.publish({"x": 2}, durable=True)
            assert await attributes(durable, 1) == [{"x": 2}]
            assert await attributes(volatile, 1) == [{"x": 2}]


@in_loop
async def test_who_publishes_over_http_advertises_over_http_under_the_same_name() -> None:
    async with (
        broker(advertisements=True) as server,
        aiohttp.ClientSession() as session,
        connect(server.url) as ann,
    ):
        subscription = await ann.subscribe("price < 10")
        url = f"{http(server)}/v1/events?client=feed"
        async with session.post(url, json={"price": 5}) as response:
            assert response.status == 422
        claim = {"filter": "price > 0", "durable": True}
        async with session.put(f"{http(server)}/v1/clients/feed/advertisements/quotes", json=claim) as response:
            assert response.status == 200
        many = await asyncio.gather(*(session.post(url, json={"price": 5}) for _ in range(10)))
        assert [response.status for response in many] == [202] * 10
        assert [(await subscription.get())["price"] for _ in range(10)] == [5] * 10
        async with session.post(url, json={"price": -1}) as response:
            assert response.status == 422
        await until(lambda: server.engine.sessions == 1)


@in_loop
async def test_a_broker_that_takes_nobody_more_is_alive_and_not_ready() -> None:
    async with broker(limits=NetworkLimits(connections=1)) as server, aiohttp.ClientSession() as session:

        async def statuses() -> list[int]:
            answers = [await session.get(f"{http(server)}/{path}") for path in ("healthz", "readyz")]
            return [answer.status for answer in answers]

        assert await statuses() == [200, 200]
        async with connect(server.url):
            assert await statuses() == [200, 503]
        await until(lambda: server.engine.sessions == 0)
        assert await statuses() == [200, 200]
