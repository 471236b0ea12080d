"""Files that say who may connect, read again: when they change, and when somebody asks (SIGHUP).

What is read is the tables `[security]` and `[clients]`, the listed tokens, the secret, and the files of TLS, which hold
for connections that are made from then on; `[peers]`: neighbours that came into the table or left it since it was
last read come and go; and the strategy with the tables of its options (`rerouting.py`). Everything else of a broker's
configuration holds until it is started again.
A file with a mistake changes nothing: whoever edits a list of tokens mustn't lock everyone out by a typing error, and
what was revoked before stays revoked. A file that is being written is left alone until it has been the same for a
moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from covey.errors import CoveyError
from covey.network.configuration import ServerConfig
from covey.network.configuration_file import read_peers, read_security
from covey.network.engine import Counts
from covey.network.identity import Identity
from covey.network.links import Links
from covey.network.neighbours import Neighbours
from covey.network.rerouting import Rerouting
from covey.network.standing import Standing
from covey.network.tls import ServerTls
from covey.routing.config import ConfigError

LOOK_SECONDS: Final = 0.5
"""Between two looks at the files; a change counts when two looks see the same."""

log = logging.getLogger("covey.network")
Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]


class Reloads:
    """Keeps what a broker knows of those who connect like its files."""

    def __init__(
        self, config: ServerConfig, identity: Identity, standing: Standing, links: Links, neighbours: Neighbours,
        rerouting: Rerouting, counts: Counts, tls: ServerTls | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._identity = identity
        self._standing = standing
        self._links = links
        self._neighbours = neighbours
        self._rerouting = rerouting
        self._listed = _listed_peers(config)
        """The neighbours that the file named when it was last read; flags may have named others."""
        self._counts = counts
        self._tls = tls
        self._read = self._stamp()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look at the files from now on."""
        if self._config.source is not None and self._files:
            self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def reload(self) -> bool:
        """Read the files, and apply them to all who are connected; False where something is wrong with them."""
        self._read = self._stamp()
        try:
            security = await asyncio.to_thread(read_security, self._config)
            if replace(self._config, security=security).authenticates != self._config.authenticates:
                raise ConfigError("whether everyone must say who they are can't change; start the broker again")
            accepting = None if self._tls is None else await asyncio.to_thread(self._tls.read)
            opening = await asyncio.to_thread(self._links.read_tls)
            routing = await asyncio.to_thread(self._rerouting.read)
            await self._follow(await asyncio.to_thread(read_peers, self._config))
            await self._rerouting.follow(routing)
        except CoveyError as error:
            self._counts.failed_reloads += 1
            log.error("not reloaded, so who may connect stays as it was: %s", error)
            return False
        is_new = security.secret != self._identity.security.secret
        self._identity.reload(security)
        if self._tls is not None and accepting is not None:
            self._tls.use(accepting)
        self._links.use(opening)
        self._standing.look()
        if is_new:
            self._links.greet_again()
        self._counts.reloads += 1
        log.info("reloaded: %s", ", ".join(map(str, self._files)) or "no files")
        return True

    async def _follow(self, listed: dict[str, str]) -> None:
        """Let neighbours come and go as they did in the file."""
        before = self._listed
        added = {peer: url for peer, url in listed.items() if before.get(peer) != url}
        removed = tuple(peer for peer in before if peer not in listed and peer in self._links.urls)
        if added or removed:
            await self._neighbours.change(added, removed)
        self._listed = listed

    async def _watch(self) -> None:
        seen = self._read
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._stamp()
            if now != self._read and now == seen:
                await self.reload()
            seen = now

    def _stamp(self) -> Stamp:
        return tuple(map(_stamp_of, self._files))

    @property
    def _files(self) -> list[Path]:
        tls = None if self._tls is None else self._tls.files
        own = [] if tls is None else [path for path in (tls.certificate, tls.key, tls.authority) if path is not None]
        return [*self._identity.security.files, *own]


def _listed_peers(config: ServerConfig) -> dict[str, str]:
    try:
        return read_peers(config)
    except ConfigError:
        return dict(config.peers)  # it was changed since it was read, and isn't whole now


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
