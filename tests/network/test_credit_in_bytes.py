"""What waits can always be delivered, however large it is, and what is lost is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import WSMsgType

from covey.network import NetworkLimits, connect
from covey.routing.config import BrokerLimits, Timing
from tests.network.running import broker, in_loop, linked, until

LARGE = "x" * 100_000
PACKED = msgspec.msgpack


@in_loop
async def test_a_durable_backlog_that_is_larger_than_the_send_buffer_comes_at_the_first_reconnection() -> None:
    limits = NetworkLimits(send_buffer_bytes=2_000_000)
    async with broker(limits=limits, broker_limits=BrokerLimits(credit_bytes=500_000)) as server:
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe("at >= 0", id="s", durable=True)
        async with connect(server.url) as shop:
            for at in range(60):
                await shop.publish({"at": at, "text": LARGE}, durable=True)
        async with connect(server.url, name="ann", reconnect=False) as ann:
            inbox = await ann.subscribe("at >= 0", id="s", durable=True)
            assert [(await inbox.get())["at"] for _ in range(60)] == list(range(60))
        assert server.engine.counts.sessions_cut == 0


@in_loop
async def test_a_client_of_protocol_1_gets_a_large_backlog_too() -> None:
    limits = NetworkLimits(send_buffer_bytes=2_000_000)
    async with broker(limits=limits, broker_limits=BrokerLimits(credit_bytes=500_000)) as server:
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{server.url}/v1/client?client=old") as old:
            await old.send_bytes(PACKED.encode([["Subscribe", 1, "s", "at >= 0", True]]))
            while server.engine.broker.clients.get("old") is None:
                await asyncio.sleep(0.01)
            async with connect(server.url) as shop:
                for at in range(60):
                    await shop.publish({"at": at, "text": LARGE}, durable=True)
            seen: list[int] = []
            while len(seen) < 60:
                frame = await old.receive(timeout=30)
                assert frame.type is WSMsgType.BINARY
                for message in PACKED.decode(frame.data):
                    if message[0] == "Deliver":
                        seen.append(message[3]["at"])
                        await old.send_bytes(PACKED.encode([["Credit", 1]]))
            assert seen == list(range(60))
        assert server.engine.counts.sessions_cut == 0


@in_loop
async def test_an_event_that_is_larger_than_all_windows_gets_through() -> None:
    limits = NetworkLimits(send_buffer_bytes=50_000)
    small = BrokerLimits(credit_bytes=1_000, buffer_bytes=1_000)
    async with (
        broker(limits=limits, broker_limits=small) as server,
        connect(server.url) as ann,
        connect(server.url) as shop,
    ):
        inbox = await ann.subscribe("at >= 0")
        for at in range(3):
            await shop.publish({"at": at, "text": LARGE})
            assert (await inbox.get())["at"] == at
        assert ann.missed == 0


@in_loop
async def test_a_burst_to_a_subscriber_that_reads_comes_or_is_told_as_missed() -> None:
    limits = NetworkLimits(send_buffer_bytes=2_000_000)
    small = BrokerLimits(credit_bytes=500_000, buffer_bytes=1_000_000)
    async with (
        broker(limits=limits, broker_limits=small) as server,
        connect(server.url) as ann,
        connect(server.url) as shop,
    ):
        inbox = await ann.subscribe("at >= 0")
        got: list[int] = []

        async def read() -> None:
            async for delivery in inbox:
                got.append(delivery["at"])

        reading = asyncio.create_task(read())
        await asyncio.gather(*(shop.publish({"at": at, "text": LARGE}) for at in range(120)))
        await until(lambda: len(got) + ann.missed == 120)
        reading.cancel()
        assert got == sorted(got)
        assert got[-1] == 119
        assert server.engine.counts.sessions_cut == 0


@in_loop
async def test_what_is_lost_with_a_connection_is_told_in_the_next_session() -> None:
    async with broker() as server, connect(server.url, name="ann") as ann, connect(server.url) as shop:
        inbox = await ann.subscribe("at >= 0")
        await shop.publish({"at": 0})
        assert (await inbox.get())["at"] == 0
        session = server.engine.client("ann")
        assert session is not None
        # What the broker sends from now on goes nowhere, as if the connection had broken on the way.
        session.outlet.send = lambda messages: None  # type: ignore[method-assign]
        await shop.publish([{"at": 1}, {"at": 2}, {"at": 3}])
        session.outlet.close("broken", 1012)
        await until(lambda: ann.missed == 3)
        await until(lambda: len(server.engine.broker.table) == 1)
        await shop.publish({"at": 4})
        assert (await inbox.get())["at"] == 4
        assert ann.missed == 3


@in_loop
async def test_a_program_that_starts_anew_has_missed_nothing_of_its_former_life() -> None:
    async with broker() as server, connect(server.url) as shop:
        for _ in range(2):
            async with connect(server.url, name="ann") as ann:
                inbox = await ann.subscribe("at >= 0")
                await shop.publish({"at": 0})
                await inbox.get()
                assert ann.missed == 0


@in_loop
async def test_a_link_takes_what_waited_for_an_absent_neighbour_whatever_its_size(tmp_path: Path) -> None:
    limits = NetworkLimits(send_buffer_bytes=1_000_000, peer_message_bytes=1_000_000)
    small = BrokerLimits(stream_flying_bytes=500_000)
    options: dict[str, Any] = {"limits": limits, "broker_limits": small, "timing": Timing(retry=0.2, failed=60.0)}
    async with broker("a", {"b": ""}, **options) as a, connect(a.url) as shop:
        async with broker("b", {"a": a.url}, data=tmp_path, **options) as b, connect(b.url, name="bob") as bob:
            await until(lambda: linked(a, b))
            await bob.subscribe("at >= 0", id="s", durable=True)
        for at in range(40):
            await shop.publish({"at": at, "text": LARGE}, durable=True)
        assert a.engine.broker.links["b"].outbox.bytes > 4_000_000
        async with broker("b", {"a": a.url}, data=tmp_path, **options) as b, connect(b.url, name="bob") as bob:
            inbox = await bob.subscribe("at >= 0", id="s", durable=True)
            assert [(await inbox.get())["at"] for _ in range(40)] == list(range(40))
            await until(lambda: not a.engine.broker.links["b"].outbox)
        assert a.engine.counts.sessions_cut == 0


@in_loop
async def test_a_burst_over_a_link_does_not_cut_it() -> None:
    limits = NetworkLimits(send_buffer_bytes=1_000_000, peer_message_bytes=1_000_000)
    small = BrokerLimits(events_flying_bytes=500_000, link_buffer_bytes=20_000_000, buffer_bytes=20_000_000)
    options: dict[str, Any] = {"limits": limits, "broker_limits": small, "timing": Timing(retry=0.2, failed=60.0)}
    async with broker("a", {"b": ""}, **options) as a, broker("b", {"a": a.url}, **options) as b:
        await until(lambda: linked(a, b))
        async with connect(a.url) as shop, connect(b.url) as bob:
            inbox = await bob.subscribe("at >= 0")
            await asyncio.gather(*(shop.publish({"at": at, "text": LARGE}) for at in range(60)))
            assert [(await inbox.get())["at"] for _ in range(60)] == list(range(60))
        assert a.engine.counts.sessions_cut == b.engine.counts.sessions_cut == 0


@in_loop
async def test_a_client_hears_of_what_was_lost_on_a_link() -> None:
    options: dict[str, Any] = {"timing": Timing(retry=0.2, failed=60.0)}
    async with broker("a", {"b": ""}, **options) as a, broker("b", {"a": a.url}, **options) as b:
        await until(lambda: linked(a, b))
        async with connect(a.url) as shop, connect(b.url) as bob:
            inbox = await bob.subscribe("at >= 0")
            await shop.publish({"at": 0})
            assert (await inbox.get())["at"] == 0
            link = a.engine.broker.links["b"]
            for session in list(a.engine._sessions.values()):
                if session.is_peer:
                    session.outlet.close("cut by a test", 1001)
            await until(lambda: not link.open)
            await shop.publish([{"at": 1}, {"at": 2}])
            await until(lambda: linked(a, b))
            await until(lambda: bob.maybe_missed == link.events.dropped)
            came = 2 - bob.maybe_missed
            await shop.publish({"at": 3})
            assert [(await inbox.get())["at"] for _ in range(came + 1)][-1] == 3
            assert bob.missed == 0
