"""A defect of the broker costs whoever met it the connection, and nobody else anything."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from covey.matching import Index
from covey.network import Server, connect
from covey.network.sessions import Session
from covey.network.set_aside import FILE_BYTES, FILE_NAME, described, set_aside
from covey.routing import entry_index, undo, waiting_entries
from covey.routing.batches import Batch, Wanted
from covey.routing.client import Client
from covey.routing.exporter import Exporter
from covey.routing.peers import Peers
from covey.routing.queues import Queues
from covey.routing.routing_table import FEW
from tests.network.running import broker, http, in_loop, until
from tests.network.test_door import HELLO
from tests.network.test_hostile import closed_with, unaffected

pack = msgspec.msgpack.encode


class DefectForTestError(Exception):
    pass


@pytest.fixture
def defective(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise in the middle of a turn, where a client or an event is called so."""
    change_claims, deliver = Exporter.change_claims, Queues.deliver

    def change(self: Exporter, client: Client, *arguments: Any) -> None:
        change_claims(self, client, *arguments)
        if client.id == "boom" and any(new is not None for _, new in arguments[1]):
            raise DefectForTestError("change_claims")

    def deliver_or_raise(self: Queues, found: list[tuple[Client, Wanted]], batch: Batch) -> None:
        deliver(self, found, batch)
        if any("boom" in batch.attributes[at] for _, wanted in found for at in wanted.places):
            raise DefectForTestError("deliver")

    monkeypatch.setattr(Exporter, "change_claims", change)
    monkeypatch.setattr(Queues, "deliver", deliver_or_raise)


async def metric(server: Server, name: str) -> float:
    async with aiohttp.ClientSession() as session, session.get(f"{http(server)}/metrics") as response:
        lines = (await response.text()).splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_a_filter_that_the_index_cannot_take_is_counted_and_logged_and_matched_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    add = Index.add

    def add_or_raise(self: Index, id: str, filter: Any) -> None:
        if "poison" in str(filter):
            raise DefectForTestError("no room")
        add(self, id, filter)

    monkeypatch.setattr(Index, "add", add_or_raise)
    monkeypatch.setattr(waiting_entries, "DEAR", 0)
    monkeypatch.setattr(entry_index, "ONE_BY_ONE", 10**9)

    @in_loop
    async def check() -> None:
        async with broker() as server, connect(server.url) as client:
            texts = [f"x = {at}" for at in range(FEW)]
            many = [await client.subscribe(text) for text in (*texts, "poison = 1")]
            for _ in range(2):  # the first is held against what waits for the index
                await client.publish({"poison": 1})
                async with asyncio.timeout(30):
                    assert (await many[-1].get()).attributes == {"poison": 1}
            assert await metric(server, "covey_defects_total") == 1
            assert "an index can't take poison = 1" in caplog.text

    check()


@pytest.mark.usefixtures("defective")
def test_a_request_that_raises_is_taken_back_and_costs_its_sender_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @in_loop
    async def check() -> None:
        async with broker(data=tmp_path) as server:
            async with (
                unaffected(server),
                aiohttp.ClientSession() as session,
                session.ws_connect(f"{server.url}/v1/client?client=boom") as socket,
            ):
                await socket.send_bytes(pack([["Subscribe", 1, "s", "x = 1", True]]))
                code, reason = await closed_with(socket)
                assert code == 1011
                assert "the broker has a defect" in reason
                assert len(server.engine.broker.table) == 1
            assert await metric(server, "covey_defects_total") == 1
            assert await metric(server, "covey_restarts_total") == 0
        async with broker(data=tmp_path) as server:
            assert server.engine.broker.clients.get("boom") is None

    check()
    assert "Subscribe(request=1" in caplog.text
    assert "DefectForTestError" in caplog.text


@pytest.mark.usefixtures("defective")
@in_loop
async def test_of_publications_that_came_together_only_the_one_that_raises_is_taken_back() -> None:
    async with broker() as server, connect(server.url, name="ann", reconnect=False) as ann:
        subscription = await ann.subscribe("x >= 0")
        async with aiohttp.ClientSession() as session:
            sockets = [await session.ws_connect(f"{server.url}/v1/client?client=c{at}") for at in range(4)]
            await until(lambda: server.engine.sessions == 5)
            events: list[dict[str, Any]] = [{"x": 0}, {"x": 1, "boom": 1}, {"x": 2}, {"x": 3}]
            for at, socket in enumerate(sockets):
                await socket.send_bytes(pack([["Publish", 7, [["Publication", events[at]]]]]))
            assert sorted([(await subscription.get())["x"] for _ in range(3)]) == [0, 2, 3]
            assert (await closed_with(sockets[1]))[0] == 1011
            for at in (0, 2, 3):
                answers = [msgspec.msgpack.decode((await sockets[at].receive()).data)[0] for _ in range(2)]
                assert answers[1] == ["Confirmed", 7]
        assert server.engine.counts.defects == 1


@in_loop
async def test_a_neighbours_message_that_raises_costs_its_link_alone() -> None:
    with pytest.MonkeyPatch.context() as patch:
        late = Peers._settle_later

        def settle_or_raise(self: Peers, *arguments: Any) -> None:
            late(self, *arguments)
            raise DefectForTestError("delta")

        patch.setattr(Peers, "_settle_later", settle_or_raise)
        async with (
            broker("a", {"b": ""}) as server,
            unaffected(server),
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/v1/link", headers={"Covey-Broker": "b"}) as socket,
        ):
            await socket.send_bytes(pack([HELLO]))
            await until(lambda: server.engine.broker.links["b"].open)
            await socket.send_bytes(pack([["Delta", 0, 1, True, [], [], [["Entry", "k", "x = 1"]], []]]))
            assert (await closed_with(socket))[0] == 1011
            assert not server.engine.broker.links["b"].inward.subscriptions.holding
            assert not server.engine.broker.links["b"].up


@pytest.mark.usefixtures("defective")
def test_where_taking_back_fails_the_broker_is_restored_and_everyone_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roll_back = undo.roll_back

    def fail_once() -> None:
        monkeypatch.setattr(undo, "roll_back", roll_back)
        raise DefectForTestError("taking back")

    @in_loop
    async def check() -> None:
        async with broker(data=tmp_path) as server, connect(server.url, name="ann") as ann:
            subscription = await ann.subscribe("x >= 0", id="s", durable=True)
            await ann.publish({"x": 1}, durable=True)
            before = server.engine.broker
            monkeypatch.setattr(undo, "roll_back", fail_once)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"{server.url}/v1/client?client=boom") as socket,
            ):
                await socket.send_bytes(pack([["Subscribe", 1, "s", "x = 1", True]]))
                assert await closed_with(socket) == (1012, "the broker restarts; connect again")
            assert server.engine.broker is not before
            assert server.engine.broker.clients.get("boom") is None
            assert (await subscription.get())["x"] == 1
            await ann.publish({"x": 2}, durable=True)
            assert (await subscription.get())["x"] == 2
            assert await metric(server, "covey_restarts_total") == 1
        aside = [json.loads(line) for line in (tmp_path / FILE_NAME).read_text().splitlines()]
        assert len(aside) == 1
        assert "boom" in aside[0]["input"]
        assert "taking back" in aside[0]["error"]

    check()


@pytest.mark.usefixtures("defective")
@in_loop
async def test_a_broker_that_has_to_be_restored_again_and_again_stops() -> None:
    with pytest.MonkeyPatch.context() as patch:

        def fail() -> None:
            undo.end()
            raise DefectForTestError("taking back")

        patch.setattr(undo, "roll_back", fail)
        async with broker() as server, aiohttp.ClientSession() as session:
            for _ in range(4):
                async with session.ws_connect(f"{server.url}/v1/client?client=boom") as socket:
                    await socket.send_bytes(pack([["Subscribe", 1, "s", "x = 1"]]))
                    assert (await closed_with(socket))[0] in (1011, 1012)
            assert isinstance(server.engine.stopped.exception(), Exception)
            assert server.engine.counts.restarts == 3


@in_loop
async def test_answers_that_cant_be_sent_keep_nobody_else_from_theirs() -> None:
    take = Session.take

    def take_or_raise(self: Session, messages: list[Any]) -> None:
        if self.name == "boom" and any(type(message).__name__ == "Confirmed" for message in messages):
            raise DefectForTestError("an answer")
        take(self, messages)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "take", take_or_raise)
        async with (
            broker() as server,
            unaffected(server),
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{server.url}/v1/client?client=boom") as socket,
        ):
            await socket.send_bytes(pack([["Subscribe", 1, "s", "x = 1"]]))
            assert (await closed_with(socket))[0] == 1011
            await until(lambda: server.engine.broker.clients.get("boom") is None)
            assert server.engine.counts.defects == 1


def test_what_is_set_aside_is_bounded(tmp_path: Path) -> None:
    assert len(described("x" * 100_000)) < 5_000
    for _ in range(3):
        (tmp_path / FILE_NAME).write_text("x" * (FILE_BYTES + 1))
        assert set_aside(tmp_path, "input", ValueError("why")) == tmp_path / FILE_NAME
    assert len(list(tmp_path.iterdir())) == 2
    assert (tmp_path / FILE_NAME).stat().st_size < 5_000
