"""`covey broker`: run one broker until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from covey.cli.broker.arguments import BrokerOptions
from covey.cli.broker.connection import needs_network
from covey.cli.terminal import complain
from covey.errors import CoveyError

if TYPE_CHECKING:
    from covey.network import Server, ServerConfig

SWITCH_SECONDS: Final = 0.0005
"""How long a thread keeps the interpreter while another waits for it. The loop waits for it again after each call to
the system, so whatever a merge in the background or the journal keeps it for, everybody waits for several times."""


def run(options: BrokerOptions) -> int:
    """Run a broker."""
    needs_network()
    sys.setswitchinterval(SWITCH_SECONDS)
    from covey.network.configuration_file import load

    path = None if options.config is None else Path(options.config)
    if options.check:
        return _check(path, _flags(options))
    logging.basicConfig(level=options.log_level.upper(), format="covey: %(message)s")
    config = load(path, _flags(options))
    if config.data is None:
        complain("no --data: subscriptions and events that wait are gone when this broker stops")
    asyncio.run(_serve(config))
    return 0


def _check(path: Path | None, flags: dict[str, Any]) -> int:
    """Say what is wrong with a configuration, a line each, or that nothing is."""
    from covey.network.configuration_file import check
    from covey.network.tls import server_context

    config, problems = check(path, flags)
    if config is not None and config.tls is not None:
        try:
            server_context(config.tls)
        except CoveyError as error:
            problems.append(str(error))
    for problem in problems:
        complain(problem)
    for remark in [] if config is None else config.remarks:
        complain(remark)
    if not problems and config is not None:
        print(f"broker {config.broker.broker}: nothing is wrong with this configuration")
    return 1 if problems else 0


def _flags(options: BrokerOptions) -> dict[str, Any]:
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
    from covey.network.garbage import Garbage
    from covey.network.server import run

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    # Until the broker is there, there is nothing to read again.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)

    reloading: set[asyncio.Task[bool]] = set()

    def ready(server: Server) -> None:
        def reload() -> None:
            task = loop.create_task(server.reload())
            reloading.add(task)
            task.add_done_callback(reloading.discard)

        loop.add_signal_handler(signal.SIGHUP, reload)
        garbage.start(lambda: server.engine.sessions_opened)
        # A line that scripts can wait for, and read the port from.
        print(f"broker {config.broker.broker} listens on {server.url}", flush=True)

    garbage = Garbage()
    try:
        await run(config, ready, stop, doors=[console])
    finally:
        garbage.stop()
