"""Three brokers in a line on this machine, a - b - c. Other examples and `covey pub` and `covey sub` can use them.

Run it alone and it stays until interrupted; give it the name of another example to run that against it and end:

    python examples/network/brokers.py
    python examples/network/brokers.py stock_quotes.py
"""

import asyncio
import runpy
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from covey.console import console
from covey.network import Server, ServerConfig
from covey.routing.config import BrokerConfig

PORTS = {"a": 7400, "b": 7401, "c": 7402}
LINKS = {"a": ("b",), "b": ("a", "c"), "c": ("b",)}


async def start(stack: AsyncExitStack, data: Path) -> dict[str, str]:
    """Start the brokers; gives their addresses."""
    urls = {name: f"ws://127.0.0.1:{port}" for name, port in PORTS.items()}
    servers = []
    for name, peers in LINKS.items():
        config = ServerConfig(
            BrokerConfig(name, meta_events=True),
            port=PORTS[name],
            peers={peer: urls[peer] for peer in peers},
            data=data / name,
        )
        servers.append(await stack.enter_async_context(Server(config, doors=[console])))
    # A subscription is confirmed when all brokers that can be reached know it; so let all be reached first.
    while not all(link.synced for server in servers for link in server.engine.broker.links.values()):
        await asyncio.sleep(0.05)
    return urls


async def main(example: str | None) -> None:
    """Run the brokers, and an example or nothing."""
    with tempfile.TemporaryDirectory() as directory:
        async with AsyncExitStack() as stack:
            for name, url in (await start(stack, Path(directory))).items():
                print(f"broker {name} listens on {url}", flush=True)
            if example is None:
                print(
                    'try: covey sub "price < 100", and in another terminal: covey pub \'{"price": 42}\' --broker',
                    end=" ",
                )
                print(f"ws://127.0.0.1:{PORTS['c']}", flush=True)
                await asyncio.Event().wait()
            else:
                path = Path(__file__).with_name(example)
                await asyncio.to_thread(runpy.run_path, str(path), run_name="__main__")


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
    except KeyboardInterrupt:
        print("stopped")
