"""Extensions of a server: paths that someone above the network adds to it, such as the console.

`Server(config, doors=[console])` calls each of them with the server's parts once the broker is there, and serves the
routes that it gives. So the server needn't know who uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from aiohttp import web

from covey.network.configuration import ServerConfig
from covey.network.engine import Engine
from covey.network.identity import Identity
from covey.network.surveys import Surveys


@dataclass(frozen=True, slots=True)
class ServerParts:
    """What an extension may use."""

    config: ServerConfig
    engine: Engine
    identity: Identity
    surveys: Surveys


Extension: TypeAlias = Callable[[ServerParts], Iterable[web.RouteDef]]
