"""One message can't stop a broker: what doesn't fit its declared range is refused where it comes in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from covey.network import RefusedError, Server, connect
from covey.routing.messages import Publication, Publish
from tests.network.running import broker, in_loop, linked, until
from tests.network.test_hostile import closed_with, unaffected

pack = msgspec.msgpack.encode

TOO_LARGE = 2**64
"""The first integer that can't be packed."""
LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    "text",
    [
        f'[["Unsubscribe",{TOO_LARGE},"x"]]',
        f'[["Subscribe",{TOO_LARGE},"x","TRUE"]]',
        f'[["Subscribe",{TOO_LARGE},"x","TRUE",true]]',
        f'[["Publish",{TOO_LARGE},[]]]',
        f'[["Publish",1,[["Publication",{{"x":1}},true,{TOO_LARGE}]]]]',
        f'[["Renew",{TOO_LARGE}]]',
        f'[["Renew",1,["{"x" * 1_000}"]]]',
        f'[["Acknowledge",{TOO_LARGE}]]',
        f'[["Credit",{TOO_LARGE}]]',
        '[["Credit",-1]]',
        f'[["Unsubscribe",1,"{"x" * 1_000}"]]',
        f'[["Unsubscribe",{1 << 40},"x"]]',
    ],
)
def test_a_number_or_a_name_out_of_range_costs_a_client_its_connection_alone(text: str, tmp_path: Path) -> None:
    @in_loop
    async def check() -> None:
        async with (
            broker(data=tmp_path) as server,
            unaffected(server),
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/v1/client") as socket,
        ):
            await socket.send_str(text)
            code, reason = await closed_with(socket)
            assert code in (1007, 1008), reason
            assert not server.engine.stopped.done()

    check()


HELLO = ["Hello", "b", [[], []], 0, 0, True]


def an_event(**changes: Any) -> list[Any]:
    fields: dict[str, Any] = {
        "origin": "b", "number": 1, "publisher": "p", "publisher_number": 0, "durable": False, "hops": 9,
        "attributes": {"x": 1},
    } | changes  # fmt: skip
    return ["Envelope", *fields.values()]


@pytest.mark.parametrize(
    "message",
    [
        ["Events", [an_event(attributes={"mine": b"raw"})]],
        ["Events", [an_event(attributes={"mine": msgspec.msgpack.Ext(5, b"raw")})]],
        ["Events", [an_event(attributes={"mine": [[1]]})]],
        ["Events", [an_event(attributes={"mine": {"x": [{"y": b""}]}})]],
        ["Events", [an_event(attributes={"mine": {1: 2}})]],
        ["Events", [an_event(number=LARGEST)]],
        ["Events", [an_event(publisher_number=LARGEST)]],
        ["Events", [an_event(hops=LARGEST)]],
        ["Events", [an_event(origin="")]],
        ["Events", [an_event(origin="b/1")]],
        ["Events", [an_event(origin="b" * 5_000)]],
        ["Events", [an_event(publisher="b" * 5_000)]],
        ["Stream", 1, 1, [an_event(durable=True, attributes={"mine": [[1]]})]],
        ["Stream", LARGEST, 1, []],
        ["Stream", 1, LARGEST, [an_event()]],
        ["StreamAck", LARGEST, 1],
        ["LinkStates", [["LinkState", "a", LARGEST, [["b", True]]]]],
        ["LinkStates", [["LinkState", "c", LARGEST, [["b", True]]]]],
        ["LinkStates", [["LinkState", "", 1, [["b", True]]]]],
        ["LinkStates", [["LinkState", "c", 1, [["b" * 5_000, True]]]]],
        ["Delta", 0, LARGEST, True, [], [], [], []],
        ["Delta", 0, 1, True, [], [LARGEST], [], []],
        ["Delta", 0, 1, True, [], [], [["Entry", "k" * 50_000, "x = 1"]], []],
        ["DeltaAck", 0, LARGEST, LARGEST],
        ["Ping", LARGEST],
        ["Ask", "b", LARGEST, 1],
        ["Ask", "b", 1, 1, {"mine": b"raw"}],
        ["Ask", "b", 1, 1, {"mine": [[1]]}],
    ],
)
def test_what_is_out_of_range_costs_a_neighbour_its_link_alone(message: list[Any]) -> None:
    @in_loop
    async def check() -> None:
        async with (
            broker("a", {"b": ""}) as server,
            unaffected(server),
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/v1/link", headers={"Covey-Broker": "b"}) as socket,
        ):
            await socket.send_bytes(pack([HELLO]))
            await until(lambda: server.engine.broker.links["b"].open)
            await socket.send_bytes(pack([message]))
            code, reason = await closed_with(socket)
            assert code in (1007, 1008), reason
            assert not server.engine.stopped.done()

    check()


@in_loop
async def test_a_request_with_a_number_of_the_servers_own_is_refused() -> None:
    """Requests that the server makes in a client's name are numbered from 2**40 on, and their answers are its own."""
    async with (
        broker() as server,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{server.url}/v1/client?client=ann") as socket,
    ):
        await socket.send_bytes(pack([["Subscribe", 1 << 40, "s", "TRUE"]]))
        assert (await closed_with(socket))[0] == 1007


async def _published(server: Server, attributes: dict[str, Any]) -> None:
    async with connect(server.url) as ann:
        await ann.publish(attributes)


@pytest.mark.parametrize("attributes", [{"covey.meta": "advertised"}, {"covey.x": 1}, {"covey": {"meta": "loaded"}}])
def test_names_that_are_the_brokers_own_cant_be_published_by_clients(attributes: dict[str, Any]) -> None:
    @in_loop
    async def check() -> None:
        async with broker() as server:
            with pytest.raises(RefusedError, match=r"event 1: .*covey.* names of brokers' own events"):
                await _published(server, attributes)
            await _published(server, {"coveys": 1, "x": {"covey": 1}})

    check()


@pytest.mark.parametrize(
    ("envelope", "is_taken"),
    [
        (an_event(publisher="covey", attributes={"covey.meta": "advertised", "broker": "b"}), True),
        (an_event(publisher="covey", attributes={"covey.meta": "advertised", "broker": "a"}), False),
        (an_event(publisher="ann", attributes={"covey.meta": "advertised", "broker": "b"}), False),
        (an_event(publisher="covey", attributes={"x": 1, "broker": "b"}), False),
        (an_event(publisher="ann", attributes={"covey": {"meta": "advertised"}, "broker": "b"}), False),
    ],
)
def test_a_neighbour_cant_forge_events_of_other_brokers_own(envelope: list[Any], is_taken: bool) -> None:
    @in_loop
    async def check() -> None:
        async with (
            broker("a", {"b": ""}) as server,
            connect(server.url) as ann,
            aiohttp.ClientSession() as session,
        ):
            subscription = await ann.subscribe("broker IS NOT NULL")
            async with session.ws_connect(f"{server.url}/v1/link", headers={"Covey-Broker": "b"}) as socket:
                await socket.send_bytes(pack([HELLO]))
                await until(lambda: server.engine.broker.links["b"].open)
                await socket.send_bytes(pack([["Events", [envelope]]]))
                if is_taken:
                    assert (await subscription.get())["covey.meta"] == "advertised"
                else:
                    assert (await closed_with(socket))[0] == 1008

    check()


@in_loop
async def test_a_client_cant_be_called_as_brokers_call_themselves() -> None:
    async with broker() as server, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(f"{server.url}/v1/client", params={"client": "covey"})


def test_a_publication_of_the_largest_number_is_taken(tmp_path: Path) -> None:
    @in_loop
    async def check() -> None:
        async with (
            broker(data=tmp_path) as server,
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/v1/client?client=ann") as socket,
        ):
            await socket.send_bytes(pack([Publish(1, [Publication({"x": 1}, True, 2**62)])]))
            assert msgspec.msgpack.decode((await socket.receive()).data)[0][0] == "Welcome"
            assert msgspec.msgpack.decode((await socket.receive()).data) == [["Confirmed", 1]]

    check()


@in_loop
async def test_a_neighbour_that_forges_ids_of_another_has_none_of_its_events_dropped(tmp_path: Path) -> None:
    async with (
        broker("c", {"a": ""}, data=tmp_path / "c") as far,
        broker("a", {"b": "", "c": far.url}, data=tmp_path / "a") as server,
        connect(server.url, name="ann") as ann,
        connect(far.url, name="bob") as bob,
        aiohttp.ClientSession() as session,
    ):
        await until(lambda: linked(far))
        subscription = await ann.subscribe("x >= 0", id="s", durable=True)
        async with session.ws_connect(f"{server.url}/v1/link", headers={"Covey-Broker": "b"}) as liar:
            await liar.send_bytes(pack([HELLO]))
            await until(lambda: server.engine.broker.links["b"].open)
            number = far.engine.broker.next_number
            forged = [
                an_event(origin="c", number=number + at, publisher="bob", durable=True, attributes={"x": -1})
                for at in range(20)
            ]
            own = [an_event(origin="a", number=server.engine.broker.next_number + at) for at in range(20)]
            await liar.send_bytes(pack([["Stream", 1, 1, forged], ["Events", own]]))
            await until(lambda: server.engine.broker.links["b"].inbox.received == len(forged))
            for at in range(10):
                await bob.publish({"x": at}, durable=True)
            assert [(await subscription.get())["x"] for _ in range(10)] == list(range(10))
            await ann.publish({"x": 99}, durable=True)
            assert (await subscription.get())["x"] == 99
