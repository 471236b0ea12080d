"""How many events each subscription matched, over HTTP from a real server."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from covey.network import Principal, Security, Server, connect, hits, sign
from tests.network.running import broker, http, in_loop

SECRET = b"a secret of thirty-two bytes, or more"


async def asked(server: Server, token: str = "", **query: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as http_client,
        http_client.get(f"{http(server)}/v1/hits", params=query, headers=headers) as response,
    ):
        return response.status, await response.json(content_type=None) if response.status != 403 else None


@in_loop
async def test_subscriptions_are_listed_by_their_hits_with_those_of_clients_who_are_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hits, "AT_A_TIME", 2)
    async with broker() as server, connect(server.url) as pub:
        async with connect(server.url, name="away") as away:
            await away.subscribe("p >= 3", id="upper", durable=True)
        async with connect(server.url, name="ann") as ann:
            await ann.subscribe_many({f"from-{low}": f"p >= {low}" for low in range(5)})
            await ann.subscribe("q = 1", id="never")
            await pub.publish([{"p": value} for value in range(5)])
            found = (await asked(server))[1]
            assert [(row["client"], row["id"], row["hits"]) for row in found["rows"][:3]] == [
                ("ann", "from-0", 5), ("ann", "from-1", 4), ("ann", "from-2", 3)
            ]  # fmt: skip
            assert {(row["client"], row["id"]) for row in found["rows"] if row["hits"] == 2} == {
                ("ann", "from-3"), ("away", "upper")
            }  # fmt: skip
            assert (found["broker"], found["subscriptions"], found["hits"], found["without"]) == ("a", 7, 17, 1)
            fewest = (await asked(server, order="fewest", limit="2"))[1]["rows"]
            assert [(row["id"], row["hits"], row["filter"]) for row in fewest] == [
                ("never", 0, "q = 1"), ("from-4", 1, "p >= 4")
            ]  # fmt: skip
            assert [row["id"] for row in (await asked(server, client="away"))[1]["rows"]] == ["upper"]


@in_loop
async def test_what_cannot_be_answered_is_said_in_a_line() -> None:
    async with broker() as server:
        for query, status, problem in (
            ({"order": "best"}, 400, "order=best is not known"),
            ({"limit": "0"}, 400, "limit=0 is not a number of subscriptions"),
            ({"limit": "1001"}, 400, "from 1 to 1,000"),
            ({"limit": "9" * 40}, 400, "is not a number of subscriptions"),
            ({"client": "nobody"}, 404, "there is no client 'nobody'"),
        ):
            found = await asked(server, **query)
            assert found[0] == status
            assert problem in found[1]["error"]


@in_loop
async def test_hits_are_for_those_who_may_monitor() -> None:
    async with broker(security=Security(secret=SECRET)) as server:
        assert (await asked(server))[0] == 401
        assert (await asked(server, sign(Principal("ann"), SECRET)))[0] == 403
        assert (await asked(server, sign(Principal("olga", monitor=True), SECRET)))[0] == 200
