"""HTTP for operators: neighbours that come and go while a broker runs.

    GET    /v1/peers
    PUT    /v1/peers/NAME    {"url": "ws://..."}, or {} where the neighbour opens the link
    DELETE /v1/peers/NAME

A link needs both ends: each of the two brokers is told of the other, in any order. What is told here is kept in the
journal and holds beside the configuration: a neighbour of the file that was removed here stays removed when the broker
is started again, until a start without it in the file. Events that wait for a neighbour that is removed go where they
are wanted over other links, if there are any. Where there is authentication this needs a principal with `admin`, and
looking at it one with `monitor`.

What the table `[peers]` of the configuration's file says by now counts when the file is read again (`reloads.py`), as
if it had been told here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
from aiohttp import web

from covey.network.configuration import check_names_differ, check_url
from covey.network.engine import Engine
from covey.network.errors import FrameError, MissingError, RefusedError
from covey.network.http_api import Nowhere
from covey.network.identity import Identity
from covey.network.links import Links
from covey.routing.config import ConfigError
from covey.routing.messages import AddLink, OperatorMessage, Permissions, RemoveLink

OPERATOR: Final = "~neighbours"
"""The session in which neighbours are changed; clients can't have such a name."""


class PeerBody(msgspec.Struct, forbid_unknown_fields=True):
    """What is said of a neighbour."""

    url: str = ""


class Neighbours:
    """Serves operators who change the network, and follows the configuration's file."""

    def __init__(self, engine: Engine, identity: Identity, links: Links) -> None:
        self._engine = engine
        self._identity = identity
        self._links = links
        self._one_at_a_time = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        return [
            web.get("/v1/peers", self.listed, allow_head=False),
            web.put("/v1/peers/{name}", self.add),
            web.delete("/v1/peers/{name}", self.remove),
        ]

    async def listed(self, request: web.Request) -> web.Response:
        """All neighbours."""
        self._identity.check_right(request, "monitor")
        urls = sorted(self._links.urls.items())
        found = [{"peer": peer, "url": url, "connected": peer in self._links.open} for peer, url in urls]
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    async def add(self, request: web.Request) -> web.Response:
        """A neighbour from now on."""
        self._identity.check_right(request, "admin")
        body = await request.read()
        try:
            url = msgspec.json.decode(body or b"{}", type=PeerBody).url
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise FrameError(f'a neighbour is {{"url": "ws://..."}}: {error}') from None
        await self.change({self._name(request): url}, ())
        return web.Response(status=204)

    async def remove(self, request: web.Request) -> web.Response:
        """A neighbour no more."""
        self._identity.check_right(request, "admin")
        name = self._name(request)
        if name not in self._engine.broker.links:
            raise MissingError(f"{name!r} is no neighbour of {self._engine.broker.config.broker}")
        await self.change({}, (name,))
        return web.Response(status=204)

    async def change(self, added: Mapping[str, str], removed: tuple[str, ...]) -> None:
        """Add and remove neighbours, committed when this returns; raises RefusedError where one can't be."""
        try:
            for peer, url in added.items():
                check_url(peer, url)
            check_names_differ(added, self._identity.security)
        except ConfigError as error:
            raise RefusedError(str(error)) from None
        async with self._one_at_a_time:
            await self._engine.room()
            session = self._engine.open_client(OPERATOR, Permissions(), Nowhere())
            asked: list[OperatorMessage] = [RemoveLink(0, peer) for peer in removed]
            asked += [AddLink(0, peer, url) for peer, url in added.items()]
            try:
                for message in asked:
                    await self._engine.ask(session, partial(_numbered, message))
            finally:
                self._engine.end(session)
                self._links.use(await asyncio.to_thread(self._links.read_tls))
                self._links.follow()

    def _name(self, request: web.Request) -> str:
        given, longest = request.match_info["name"], self._engine.limits.name_length
        if len(given) > longest or not given.isprintable() or given.startswith("~"):
            raise FrameError(f"{given[:40]!r} can't be the name of a broker; use printable text of at most {longest}")
        return given


def _numbered(message: OperatorMessage, request: int) -> OperatorMessage:
    return msgspec.structs.replace(message, request=request)
