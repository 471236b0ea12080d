"""HTTP for operators: what Spark jobs and other batch work made, into a broker that runs.

    PUT    /v1/loads/NAME?client=CLIENT    subscriptions, and what stands for them, as lines of JSON; semantics=NAME
                                           refuses them where the broker has another one
    DELETE /v1/loads/NAME
    GET    /v1/loads
    PUT    /v1/profile?name=NAME           a profile's file
    GET    /v1/profile

A line of a load is `{"id": ..., "filter": ...}`, a subscription; one that has `stands_for`, a list of ids, is an entry
of a compacted table. `covey.routing.loading` has what a load is and does. The answer comes when it is committed and
settled. Where there is authentication, loads need a principal with `load`, a profile one with `admin`, and looking at
either one of these or `monitor`. A load is checked like subscriptions: it must be within what its loader may subscribe
to, and its client is delivered no more of it than the client itself may.

Bodies are read in pieces up to a limit of their own, one load at a time; filters are read in a thread beside the
broker, which goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any, Final

import msgspec
from aiohttp import web

from covey.network.engine import Engine
from covey.network.errors import FrameError, RefusedError
from covey.network.frames import TOO_LARGE
from covey.network.http_api import Nowhere
from covey.network.identity import Identity
from covey.routing.loading import LoadError, TableEntry, prepare, prepare_profile
from covey.routing.messages import Load, LoadProfile, OperatorMessage, Permissions, Unload

OPERATOR: Final = "~loading"
"""The session that loads are made in; clients can't have such a name."""
CHUNK: Final = 1 << 18


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """A subscription, or an entry that stands for some."""

    id: str
    filter: str
    stands_for: list[str] | None = None


class Loads:
    """Serves operators who load something."""

    def __init__(self, engine: Engine, identity: Identity) -> None:
        self._engine = engine
        self._identity = identity
        self._one_at_a_time = asyncio.Lock()
        self._lines = msgspec.json.Decoder(Line)

    def routes(self) -> list[web.RouteDef]:
        """The paths served."""
        return [
            web.put("/v1/loads/{name}", self.load),
            web.delete("/v1/loads/{name}", self.unload),
            web.get("/v1/loads", self.listed, allow_head=False),
            web.put("/v1/profile", self.load_profile),
            web.get("/v1/profile", self.profile, allow_head=False),
        ]

    async def load(self, request: web.Request) -> web.Response:
        """Load subscriptions."""
        caller = self._identity.check_right(request, "load")
        name = self._name("load", request.match_info["name"])
        client = self._name("client", request.query.get("client", ""))
        semantics, own = request.query.get("semantics"), self._engine.broker.config.semantics
        if semantics is not None and semantics != own:
            raise RefusedError(f"these subscriptions are meant with semantics {semantics!r}; this broker has {own!r}")
        async with self._one_at_a_time:
            body = await self._body(request, self._engine.limits.load_bytes, "load_bytes")
            prepared = await asyncio.to_thread(self._prepared, name, client, body, caller.principal.subscribe)
            del body
            await self._ask(prepared)
        return self._answer(name)

    async def unload(self, request: web.Request) -> web.Response:
        """End a load."""
        self._identity.check_right(request, "load")
        async with self._one_at_a_time:
            await self._ask(Unload(0, request.match_info["name"]))
        return web.Response(status=204)

    async def listed(self, request: web.Request) -> web.Response:
        """All loads."""
        self._identity.check_right(request, "load", "monitor")
        return _json([asdict(load) for load in self._engine.broker.loads()])

    async def load_profile(self, request: web.Request) -> web.Response:
        """Load a profile."""
        self._identity.check_right(request, "admin")
        name = self._name("profile", request.query.get("name", "profile"))
        config = self._engine.broker.config
        async with self._one_at_a_time:
            body = await self._body(request, config.limits.profile_bytes, "profile_bytes")
            await self._ask(await asyncio.to_thread(_profile_of, config, name, body))
        return self._profile_answer()

    async def profile(self, request: web.Request) -> web.Response:
        """The profile that is in use."""
        self._identity.check_right(request, "load", "monitor")
        return self._profile_answer()

    def _prepared(self, name: str, client: str, body: bytes, allowed: str | None) -> Load:
        subscriptions: list[tuple[str, str]] = []
        entries: list[TableEntry] = []
        for number, text in enumerate(body.splitlines(), 1):
            if not text.strip():
                continue
            try:
                line = self._lines.decode(text)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise RefusedError(
                    f'line {number}: {error}; a line is {{"id": "s1", "filter": "price < 10"}}'
                ) from None
            if len(line.id) > self._engine.limits.name_length:
                raise RefusedError(f"line {number}: an id of {len(line.id):,} characters; name_length is the limit")
            if line.stands_for is None:
                subscriptions.append((line.id, line.filter))
            else:
                entries.append(TableEntry(line.id, line.filter, tuple(line.stands_for)))
        try:
            return prepare(self._engine.broker.config, name, client, subscriptions, entries, allowed)
        except LoadError as error:
            raise RefusedError(str(error)) from None

    async def _body(self, request: web.Request, most: int, limit: str) -> bytes:
        if request.headers.get("Content-Encoding", "identity") != "identity":
            raise FrameError("a load comes as it is, not compressed; leave Content-Encoding out")
        parts, size = [], 0
        async for part in request.content.iter_chunked(CHUNK):
            size += len(part)
            if size > most:
                raise FrameError(f"more than {most:,} bytes; {limit} is the limit", TOO_LARGE)
            parts.append(part)
        return b"".join(parts)

    async def _ask(self, message: OperatorMessage) -> None:
        await self._engine.room()
        session = self._engine.open_client(OPERATOR, Permissions(), Nowhere())
        try:
            await self._engine.ask(session, lambda number: msgspec.structs.replace(message, request=number))
        finally:
            self._engine.end(session)

    def _name(self, what: str, given: str) -> str:
        longest = self._engine.limits.name_length
        if not given or len(given) > longest or not given.isprintable() or given.startswith("~"):
            raise FrameError(f"{given[:40]!r} can't be the name of a {what}; use printable text of at most {longest}")
        return given

    def _answer(self, name: str) -> web.Response:
        found = next((load for load in self._engine.broker.loads() if load.name == name), None)
        return _json(None if found is None else asdict(found))

    def _profile_answer(self) -> web.Response:
        found = self._engine.broker.profile
        return _json(None if found is None else {"name": found.name, "loaded_at": found.loaded_at})


def _profile_of(config: Any, name: str, body: bytes) -> LoadProfile:
    try:
        return prepare_profile(config, name, body)
    except Exception as error:
        raise RefusedError(str(error)) from None


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
