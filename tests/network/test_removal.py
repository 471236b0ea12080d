"""Removing a subscription frees what waited for it, whichever way it is removed."""

from __future__ import annotations

import aiohttp

from covey.network import connect
from tests.network.running import broker, http, in_loop, until


@in_loop
async def test_a_subscription_that_is_deleted_over_http_leaves_nothing_queued() -> None:
    async with broker() as server, aiohttp.ClientSession() as session, connect(server.url) as shop:
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe("at >= 0", id="s", durable=True)
        await until(lambda: server.engine.client("ann") is None)
        await shop.publish([{"at": at} for at in range(1_500)], durable=True)
        async with session.delete(f"{http(server)}/v1/clients/ann/subscriptions/s") as response:
            assert response.status == 204
        await until(lambda: server.engine.broker.clients.get("ann") is None)


@in_loop
async def test_a_subscription_that_its_client_ends_leaves_nothing_queued() -> None:
    async with broker() as server, connect(server.url) as shop:
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe("at >= 0", id="s", durable=True)
        await until(lambda: server.engine.client("ann") is None)
        await shop.publish([{"at": at} for at in range(3_000)], durable=True)
        async with connect(server.url, name="ann") as ann:
            await ann.unsubscribe("s")
        await until(lambda: server.engine.broker.clients.get("ann") is None)
