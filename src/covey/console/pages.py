"""The paths of the console: the page and its files, and what it asks for.

The files are part of the package and are read once. They are the same for everyone and say nothing of the broker, so
they need no authentication; everything under `/v1/console/` needs an operator, as the other doors for operators do.
Nothing may be loaded from elsewhere, and no script or style stands in the page itself: what an event or a client's name
has in it can't become either.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from aiohttp import web

from covey.console.browser import Browser
from covey.console.clients import ClientTables
from covey.console.entrance import Entrance
from covey.console.filter_questions import FilterQuestions
from covey.console.history import History
from covey.console.overview import Overview
from covey.console.playground import Playground
from covey.console.route_tables import Tables
from covey.network.extensions import ServerParts

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# Asked for again each time, and answered by "not modified": a broker of another version has other files.
_CACHED: Final = "no-cache"
_KINDS: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    content: bytes
    kind: str
    tag: str

    async def serve(self, request: web.Request) -> web.Response:
        """The file, or that it is what the browser has."""
        headers = {**SECURITY_HEADERS, "Cache-Control": _CACHED, "ETag": f'"{self.tag}"'}
        if any(known.value == self.tag for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=self.content, content_type=self.kind, charset="utf-8", headers=headers)


def console(server: ServerParts) -> list[web.RouteDef]:
    """The door to the console, for `Server(config, doors=[console])`."""
    assets = dict(_assets(files("covey.console") / "page", ""))
    questions = FilterQuestions(server)
    tables, clients = Tables(server), ClientTables(server)
    playground = Playground(server, questions)
    return [
        web.get("/", assets["index.html"].serve),
        *(web.get(f"/console/{name}", asset.serve) for name, asset in assets.items()),
        web.get("/v1/console/who", Entrance(server).who),
        web.get("/v1/console/overview", Overview(server).overview),
        web.get("/v1/console/history", History(server).history),
        web.get("/v1/console/routes", tables.summary),
        web.get("/v1/console/routes/told", tables.told),
        web.get("/v1/console/routes/heard", tables.heard),
        web.get("/v1/console/clients", clients.clients),
        web.get("/v1/console/claims", clients.claims),
        web.get("/v1/console/subscriptions", Browser(server, questions).subscriptions),
        web.post("/v1/console/playground", playground.play),
        web.post("/v1/console/route", playground.route),
    ]


def _assets(directory: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in directory.iterdir():
        kind = _KINDS.get(entry.name.rpartition(".")[2])
        if entry.is_dir():
            found += _assets(entry, f"{prefix}{entry.name}/")
        elif kind is not None:
            content = entry.read_bytes()
            found.append((prefix + entry.name, Asset(content, kind, blake2b(content, digest_size=12).hexdigest())))
    return found
