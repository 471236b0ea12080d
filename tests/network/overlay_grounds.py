"""Where an overlay's brokers live and how they are cut off: on loopback behind proxies, or in network namespaces.

A `Ground` knows addresses, and how to cut and mend the link of two brokers. Both cut by real means: a proxy closes its
connections and refuses others, or stays silent; an interface goes down.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import time
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from covey.network import Principal, TlsFiles, client_context, sign
from tests.network.certificates import Authority
from tests.network.overlay_client import Door, enter
from tests.network.overlay_proxy import Proxy

Link = tuple[str, str]
PORTS = range(20_000, 30_000)
"""Below those that outgoing connections get: a dead broker's port must be free when it comes back."""
NAMESPACE_PORT = 7400
SECONDS = 10.0
"""For one request, or one command, before it hangs."""


class Ground(ABC):
    """Places for brokers and clients."""

    def __init__(self, names: list[str], links: list[Link]) -> None:
        self.names = names
        self.links = links

    @abstractmethod
    def namespace(self, broker: str) -> str | None:
        """The network namespace that a broker and its clients are in; None for that of this process."""

    @abstractmethod
    def settings(self, broker: str) -> dict[str, Any]:
        """What its configuration says on addresses and security."""

    @abstractmethod
    def peer_url(self, broker: str, peer: str) -> str:
        """Where a broker finds a neighbour."""

    @abstractmethod
    def door(self, broker: str) -> Door:
        """How clients get to a broker."""

    @abstractmethod
    async def get(self, broker: str, path: str) -> Any:
        """What a broker answers to an operator."""

    @abstractmethod
    async def cut(self, link: Link, *, silent: bool) -> None:
        """Let nothing pass between two brokers."""

    @abstractmethod
    async def mend(self, link: Link) -> None:
        """Let everything pass again."""

    @abstractmethod
    async def open(self) -> None:
        """Make the places."""

    @abstractmethod
    async def close(self) -> None:
        """Leave nothing behind."""


class Loopback(Ground):
    """All brokers on 127.0.0.1, each link through proxies."""

    def __init__(self, names: list[str], links: list[Link]) -> None:
        super().__init__(names, links)
        self._proxies: dict[Link, Proxy] = {}

    async def open(self) -> None:
        ports = _free_ports(len(self.names) + 2 * len(self.links))
        self._ports = dict(zip(self.names, ports, strict=False))
        spare = iter(ports[len(self.names) :])
        for one, other in self.links:
            for pair in ((one, other), (other, one)):
                self._proxies[pair] = Proxy(next(spare), self._ports[pair[1]])
                await self._proxies[pair].open()

    async def close(self) -> None:
        for proxy in self._proxies.values():
            await proxy.close()

    def namespace(self, broker: str) -> str | None:
        return None

    def settings(self, broker: str) -> dict[str, Any]:
        return {"port": self._ports[broker]}

    def peer_url(self, broker: str, peer: str) -> str:
        return f"ws://127.0.0.1:{self._proxies[broker, peer].port}"

    def door(self, broker: str) -> Door:
        return Door(f"ws://127.0.0.1:{self._ports[broker]}")

    async def get(self, broker: str, path: str) -> Any:
        return await asyncio.to_thread(_get, f"http://127.0.0.1:{self._ports[broker]}{path}", None, None)

    async def cut(self, link: Link, *, silent: bool) -> None:
        for proxy in self._of(link):
            if silent:
                proxy.hush()
            else:
                await proxy.cut()

    async def mend(self, link: Link) -> None:
        for proxy in self._of(link):
            await proxy.open()

    def _of(self, link: Link) -> tuple[Proxy, Proxy]:
        return self._proxies[link], self._proxies[link[::-1]]


class Namespaces(Ground):
    """Each broker in a namespace with its clients; a pair of interfaces for each link. Brokers know each other by their
    certificates, and clients by their tokens."""

    def __init__(self, names: list[str], links: list[Link], directory: Path) -> None:
        super().__init__(names, links)
        self._directory = directory
        self._tag = f"covey-{os.getpid()}-{random.SystemRandom().randrange(16**6):06x}"
        self._made: list[str] = []
        self._threads: dict[str, ThreadPoolExecutor] = {}

    async def open(self) -> None:
        authority = Authority(self._directory / "certificates")
        self._authority = authority.certificate
        self._files: dict[str, TlsFiles] = {name: authority.sign(name) for name in self.names}
        secret = os.urandom(32).hex()
        self._secret = self._directory / "secret"
        self._secret.write_text(secret)
        expires = time.time() + 3600
        self._token = sign(Principal("crew", expires), secret.encode())
        self._operator = sign(Principal("operator", expires, admin=True), secret.encode())
        for name in self.names:
            _ip("netns", "add", self.namespace(name))
            self._made.append(self.namespace(name))
            _ip("-n", self.namespace(name), "link", "set", "lo", "up")
            self._threads[name] = ThreadPoolExecutor(1, initializer=enter, initargs=(self.namespace(name),))
        for at, link in enumerate(self.links):
            ends = [["name", other, "netns", self.namespace(name)] for name, other in (link, link[::-1])]
            _ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
            for name, other, last in ((*link, 1), (*link[::-1], 2)):
                _ip("-n", self.namespace(name), "address", "add", f"10.77.{at}.{last}/24", "dev", other)
                _ip("-n", self.namespace(name), "link", "set", other, "up")

    async def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown()
        for namespace in self._made:
            _ip("netns", "delete", namespace)

    def namespace(self, broker: str) -> str:
        return f"{self._tag}-{broker}"

    def settings(self, broker: str) -> dict[str, Any]:
        files = self._files[broker]
        return {
            "host": "0.0.0.0",
            "port": NAMESPACE_PORT,
            "tls": {"certificate": files.certificate, "key": files.key, "authority": files.authority},
            "security": {"secret_file": self._secret},
        }

    def peer_url(self, broker: str, peer: str) -> str:
        link = (broker, peer)
        at, last = (self.links.index(link), 2) if link in self.links else (self.links.index(link[::-1]), 1)
        return f"wss://10.77.{at}.{last}:{NAMESPACE_PORT}"

    def door(self, broker: str) -> Door:
        return Door(f"wss://127.0.0.1:{NAMESPACE_PORT}", self._token, str(self._authority))

    async def get(self, broker: str, path: str) -> Any:
        url = f"https://127.0.0.1:{NAMESPACE_PORT}{path}"
        tls = client_context(self._authority)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads[broker], _get, url, self._operator, tls)

    async def cut(self, link: Link, *, silent: bool) -> None:
        """Down at one end, or at both: the end that stays up sees its cable unplugged, and goes on trying."""
        for name, other in (link,) if silent else (link, link[::-1]):
            await asyncio.to_thread(_ip, "-n", self.namespace(name), "link", "set", other, "down")

    async def mend(self, link: Link) -> None:
        for name, other in (link, link[::-1]):
            await asyncio.to_thread(_ip, "-n", self.namespace(name), "link", "set", other, "up")


def needs_namespaces() -> None:
    """Skip a test where no network namespace can be made."""
    if shutil.which("ip") is None:
        pytest.skip("network namespaces are made by `ip`, of iproute2")
    name = f"covey-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, timeout=SECONDS)
    if tried.returncode:
        pytest.skip(f"network namespaces can't be made here: {tried.stderr.strip()}")
    _ip("netns", "delete", name)


def _free_ports(count: int) -> list[int]:
    found: list[int] = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            break
    return found


def _get(url: str, token: str | None, tls: ssl.SSLContext | None) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with urlopen(Request(url, headers=headers), timeout=SECONDS, context=tls) as answer:
        return json.load(answer)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
