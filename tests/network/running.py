"""Servers on free ports of this machine, and tests that are coroutines."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from covey.network import Security, Server, ServerConfig, TlsFiles
from covey.network.limits import NetworkLimits
from covey.routing.config import BrokerConfig, BrokerLimits, Timing

SECONDS = 120.0
"""A test that takes longer hangs."""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), SECONDS))

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not condition():
        await asyncio.sleep(0.01)


def broker(
    name: str = "a",
    peers: dict[str, str] | None = None,
    *,
    data: Path | None = None,
    port: int = 0,
    security: Security | None = None,
    tls: TlsFiles | None = None,
    limits: NetworkLimits | None = None,
    broker_limits: BrokerLimits | None = None,
    timing: Timing | None = None,
    **options: Any,
) -> Server:
    """A server that isn't started."""
    config = BrokerConfig(
        name,
        tuple(sorted(peers or {})),
        timing=timing or Timing(retry=0.2, failed=5.0),
        limits=broker_limits or BrokerLimits(),
        **options,
    )
    return Server(
        ServerConfig(
            config,
            port=port,
            peers=peers or {},
            data=data,
            security=security or Security(),
            tls=tls,
            limits=limits or NetworkLimits(),
        )
    )


def http(server: Server) -> str:
    """The address for requests."""
    return server.url.replace("ws", "http", 1)


def linked(*servers: Server) -> bool:
    """Whether all links of some brokers are open and have told their tables."""
    return all(link.synced and link.in_tree for server in servers for link in server.engine.broker.links.values())
