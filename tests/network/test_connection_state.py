"""What a client says of its connection, what waits for whom, and what travels."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from covey.network import connect
from tests.network.running import broker, in_loop, until


@in_loop
async def test_losing_and_regaining_the_connection_is_told(tmp_path: Path, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "covey.network.client")
    told: list[str] = []
    first = broker(data=tmp_path)
    await first.start()
    port = int(first.url.rpartition(":")[2])
    async with connect(first.url, on_connection=told.append) as client:
        assert client.state == "connected"
        subscription = await client.subscribe("price < 10")
        await first.stop()
        await until(lambda: told == ["lost"])
        assert client.state == "lost"
        async with broker(data=tmp_path, port=port):
            await until(lambda: told == ["lost", "connected"])
            assert client.state == "connected"
            await client.publish({"price": 1})
            assert (await subscription.get(timeout=30))["price"] == 1
    assert client.state == "closed"
    said = [record.getMessage() for record in caplog.records if record.name == "covey.network.client"]
    assert "opening it again" in said[0]
    assert "is back" in said[1]


@in_loop
async def test_waiting_has_a_deadline_in_asyncio_too() -> None:
    async with broker() as server, connect(server.url) as client:
        subscription = await client.subscribe("price < 10")
        with pytest.raises(TimeoutError):
            await subscription.get(timeout=0.01)
        with pytest.raises(TimeoutError):
            await subscription.get_many(timeout=0.01)
        await client.publish({"price": 5})
        assert (await subscription.get(timeout=30))["price"] == 5


@in_loop
async def test_an_address_without_a_scheme_is_a_websocket() -> None:
    async with broker() as server, connect(server.url.removeprefix("ws://")) as client:
        assert client.state == "connected"


@in_loop
async def test_values_of_tables_travel() -> None:
    frame = pd.DataFrame({"price": np.array([5], np.int32), "ratio": np.array([0.5], np.float32), "name": ["IBM"]})
    async with broker() as server, connect(server.url) as client:
        subscription = await client.subscribe("price = 5")
        row = dict(frame.iloc[0]) | {"none": pd.NA, "never": pd.NaT, "list": np.array([1, 2]), "in": {"x": np.int64(3)}}
        await client.publish(row)
        found = (await subscription.get(timeout=30)).attributes
    assert found == {
        "price": 5,
        "ratio": 0.5,
        "name": "IBM",
        "none": None,
        "never": None,
        "list": [1, 2],
        "in": {"x": 3},
    }
    assert type(found["price"]) is int


@pytest.mark.parametrize("durable", [True, False])
@in_loop
async def test_what_reaches_the_broker_of_a_durable_subscription_waits_there(tmp_path: Path, durable: bool) -> None:
    async with broker(data=tmp_path) as server:
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe("price < 10", id="cheap", durable=True)
        async with connect(server.url, name="bob") as bob:
            await bob.publish({"price": 1}, durable=durable)
    async with broker(data=tmp_path) as server, connect(server.url, name="ann") as ann:
        subscription = await ann.subscribe("price < 10", id="cheap", durable=True)
        assert (await subscription.get(timeout=30))["price"] == 1


@in_loop
async def test_sub_says_when_its_connection_breaks_and_when_it_is_back(tmp_path: Path) -> None:
    first = broker(data=tmp_path)
    await first.start()
    address = first.url.removeprefix("ws://")
    command = (sys.executable, "-m", "covey.cli", "sub", "n > 0", "-n", "1", "--broker", address)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert await process.stderr.readline() == b"covey: subscribed\n"
    await first.stop()
    assert (await process.stderr.readline()).decode() == f"covey: {address}: the connection broke; opening it again\n"
    async with broker(data=tmp_path, port=int(address.rpartition(":")[2])) as second:
        assert (await process.stderr.readline()).decode() == f"covey: {address}: the connection is back\n"
        async with connect(second.url) as client:
            # The subscription is made again after the connection is back.
            while process.returncode is None:
                await client.publish({"n": 1})
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 0.2)
    assert await process.stdout.readline() == b'{"n":1}\n'
