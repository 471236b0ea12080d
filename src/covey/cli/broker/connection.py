"""How commands reach a broker: its address, who they are, and one request of an operator."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.cli.broker.arguments import ClientOptions, ConnectionOptions
from covey.cli.terminal import complain
from covey.errors import CoveyError

if TYPE_CHECKING:
    from covey.network.sync import Client


def needs_network() -> None:
    """Say what to install where it is missing."""
    try:
        import aiohttp  # noqa: F401
        import prometheus_client  # noqa: F401
    except ImportError as error:
        raise CoveyError(f"{error.name} is not installed; pip install 'covey[broker]'") from None


def client(options: ClientOptions) -> Client:
    """A client's session; where the connection breaks and where it is back, a line says so."""
    needs_network()
    from covey.network.sync import connect

    def say(state: str) -> None:
        complain(f"{options.broker}: the connection {'broke; opening it again' if state == 'lost' else 'is back'}")

    return connect(options.broker, name=options.name, token=token(options), tls=context(options), on_connection=say)


def token(options: ConnectionOptions) -> str | None:
    """The token in the file that was named, or in the environment."""
    if options.token_file is not None:
        return Path(options.token_file).read_text().strip()
    return os.environ.get("COVEY_TOKEN") or None


def context(options: ConnectionOptions) -> ssl.SSLContext | None:
    """TLS as the options say; None for the system's own."""
    from covey.network.tls import client_context

    if options.authority is None and options.certificate is None:
        return None
    return client_context(options.authority, options.certificate, options.key)


def ask(
    options: ConnectionOptions,
    path: str,
    body: Any = None,
    *,
    url: str | None = None,
    query: Mapping[str, str] | None = None,
    method: str | None = None,
) -> Any:
    """An operator's request; the answer's JSON, or None where there is none."""
    needs_network()
    method = method or ("GET" if body is None else "POST")
    return asyncio.run(_ask(options, method, path, body, url or options.broker, query or {}))


async def _ask(
    options: ConnectionOptions, method: str, path: str, body: Any, url: str, query: Mapping[str, str]
) -> Any:
    import aiohttp

    who = token(options)
    headers = {} if who is None else {"Authorization": f"Bearer {who}"}
    tls = context(options)
    address = (url if "://" in url else f"ws://{url}").replace("ws", "http", 1).rstrip("/") + path
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as http,
            http.request(
                method, address, json=body, params=query, headers=headers, ssl=tls if tls is not None else True,
            ) as response,
        ):  # fmt: skip
            if response.status == 204:
                return None
            if response.status != 200:
                raise CoveyError(f"{url}: {_problem(await response.text())} (HTTP {response.status})")
            return await response.json()
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise CoveyError(f"{url}: {error or 'no answer'}; is a broker running there?") from None


def _problem(text: str) -> str:
    start, _, rest = text.partition('{"error": "')
    return rest.rpartition('"')[0] if not start and rest else text
