"""Servers with the console on free ports of this machine, and what they answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from covey.console import console
from covey.network import Server
from tests.network.running import broker, http


def with_console(name: str = "a", peers: dict[str, str] | None = None, **options: Any) -> Server:
    """A server with the console that isn't started."""
    return Server(broker(name, peers, **options).config, doors=[console])


@asynccontextmanager
async def looking(server: Server, token: str | None = None) -> AsyncIterator[Looking]:
    """Ask a server what the page asks."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield Looking(server, session)


class Looking:
    """Asks for JSON."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self._server = server
        self._session = session

    async def get(self, path: str, **query: str) -> Any:
        status, answer = await self.answer(path, **query)
        assert status == 200, answer
        return answer

    async def answer(self, path: str, **query: str) -> tuple[int, Any]:
        async with self._session.get(http(self._server) + f"/v1/console/{path}", params=query) as response:
            text = await response.text()
            return response.status, await response.json() if response.content_type == "application/json" else text

    async def post(self, path: str, body: Any) -> Any:
        async with self._session.post(http(self._server) + f"/v1/console/{path}", json=body) as response:
            return await response.json()
