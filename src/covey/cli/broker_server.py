"""`covey broker`: run one broker until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from covey.cli.arguments import Options
from covey.cli.broker_connection import needs_network
from covey.cli.terminal import complain

if TYPE_CHECKING:
    from covey.network import Server, ServerConfig

GC_ALLOCATIONS: Final = 100_000
"""Between looks of the garbage collector at young objects. Tables of a hundred thousand subscriptions are alive, and a
batch of events is tens of thousands of objects without cycles: looking after each 700 finds nothing."""


def run(options: Options) -> int:
    """Run a broker."""
    needs_network()
    gc.set_threshold(GC_ALLOCATIONS, 20, 100)
    from covey.network.configuration import load

    logging.basicConfig(level=options.log_level.upper(), format="covey: %(message)s")
    config = load(None if options.config is None else Path(options.config), _flags(options))
    if config.data is None:
        complain("no --data: subscriptions and events that wait are gone when this broker stops")
    asyncio.run(_serve(config))
    return 0


def _flags(options: Options) -> dict[str, Any]:
    return {
        "id": options.id,
        "host": options.host,
        "port": options.port,
        "peers": dict(options.peers),
        "data": options.data,
        "strategy": options.strategy,
        "advertisements": options.routes_by_advertisements,
        "meta_events": options.meta_events,
    }


async def _serve(config: ServerConfig) -> None:
    from covey.console import console
    from covey.network.server import run

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, stop.set)

    def ready(server: Server) -> None:
        # A line that scripts can wait for, and read the port from.
        print(f"broker {config.broker.broker} listens on {server.url}", flush=True)

    await run(config, ready, stop, doors=[console])
