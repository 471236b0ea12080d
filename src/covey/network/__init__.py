"""The broker on real sockets: server, storage, links, identity, limits, metrics; and clients, asynchronous and not.

Drives `covey.routing`'s broker, which decides everything about events and subscriptions; here are only sockets, files
and clocks. May import `covey.routing` and all below it; must not know the simulator, Spark or the command line. Needs
aiohttp and prometheus_client, which the extra `broker` brings.
"""

from typing import TYPE_CHECKING

from covey.lazy_names import have_names
from covey.network.errors import (
    ClosedError,
    ConnectionLostError,
    IdentityError,
    NetworkError,
    RefusedError,
    SessionTakenError,
    SubscriptionEndedError,
)

if TYPE_CHECKING:
    from covey.network.asyncio.client import connect
    from covey.network.configuration import Security, ServerConfig, TlsFiles
    from covey.network.limits import NetworkLimits
    from covey.network.server import Server
    from covey.network.sync.client import connect as connect_sync
    from covey.network.tls import client_context
    from covey.network.tokens import Principal, sign

have_names(
    "covey.network",
    {
        "covey.network.asyncio.client": ("connect",),
        "covey.network.configuration": (
            "Security",
            "ServerConfig",
            "TlsFiles",
        ),
        "covey.network.limits": ("NetworkLimits",),
        "covey.network.server": ("Server",),
        "covey.network.sync.client": ("connect as connect_sync",),
        "covey.network.tls": ("client_context",),
        "covey.network.tokens": (
            "Principal",
            "sign",
        ),
    },
)

__all__ = [
    "ClosedError",
    "ConnectionLostError",
    "IdentityError",
    "NetworkError",
    "NetworkLimits",
    "Principal",
    "RefusedError",
    "Security",
    "Server",
    "ServerConfig",
    "SessionTakenError",
    "SubscriptionEndedError",
    "TlsFiles",
    "client_context",
    "connect",
    "connect_sync",
    "sign",
]
