"""Who is it? A request's token or certificate becomes a principal; a principal and a wish become a client's name.

Without any way to tell, everyone is `ANYONE`, and the broker listens on this machine only. Web pages are a door to this
machine, since a browser lets any page open a connection to it: so a request that a page of another origin makes is
refused, and without authentication also one whose Host isn't a name of this machine.
"""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from covey.network.configuration import ServerConfig, is_loopback
from covey.network.engine import Clock
from covey.network.errors import IdentityError, OriginError
from covey.network.tls import names_in
from covey.network.tokens import ANYONE, LONGEST_TOKEN, PREFIX, Principal, alive, sha256, sign, verify

LINK_TOKEN_SECONDS: Final = 60.0
"""A broker signs a token for each link that it opens."""


class Identity:
    """What one broker knows of those who connect."""

    def __init__(self, config: ServerConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock

    def client(self, request: web.Request) -> Principal:
        """The client that makes a request; raises IdentityError."""
        if not self._config.authenticates:
            return ANYONE
        token = _bearer(request)
        if token is not None:
            principal = self._by_token(token)
            if principal.broker:
                raise IdentityError("this is a broker's token, not a client's")
            return principal
        for name in _certificate_names(request):
            if name in self._config.security.certified:
                return alive(self._config.security.certified[name], self._clock())
        raise IdentityError("a token (Authorization: Bearer ...) or a known certificate is needed")

    def check_admin(self, request: web.Request) -> None:
        """Raises IdentityError, or HTTPForbidden, unless an operator makes a request."""
        if not self.client(request).admin:
            raise web.HTTPForbidden(text="this needs a principal with admin = true")

    def check_peer(self, request: web.Request, peer: str) -> None:
        """Raises IdentityError unless a neighbour is who it says."""
        if peer not in self._config.peers:
            raise IdentityError(f"{peer!r} is not a neighbour; add it to peers")
        if not self._config.authenticates or peer in _certificate_names(request):
            return
        token = _bearer(request)
        if token is None:
            raise IdentityError(f"a certificate or a token for the broker {peer!r} is needed")
        principal = self._by_token(token)
        if not principal.broker or principal.name != peer:
            raise IdentityError(f"this isn't the token of the broker {peer!r}")

    def link_token(self) -> str | None:
        """What this broker shows to a neighbour; None where a certificate must do."""
        secret = self._config.security.secret
        if secret is None:
            return None
        name = self._config.broker.broker
        return sign(Principal(name, expires=self._clock() + LINK_TOKEN_SECONDS, broker=True), secret)

    def check_origin(self, request: web.Request) -> None:
        """Raises OriginError for what a web page of another origin asks."""
        origin, allowed = request.headers.get("Origin"), self._config.security.origins
        if origin is not None and origin not in allowed and urlsplit(origin).netloc != request.host:
            raise OriginError(f"pages of {origin} may not use this broker; add it to origins in [security]")
        if not self._config.authenticates and not is_loopback(_host_name(request.host)):
            raise OriginError(f"this broker has no security and isn't reachable as {request.host!r}")

    def _by_token(self, token: str) -> Principal:
        security, now = self._config.security, self._clock()
        if len(token) <= LONGEST_TOKEN:
            if token.startswith(f"{PREFIX}.") and security.secret is not None:
                return verify(token, security.secret, now)
            listed = security.listed.get(sha256(token))
            if listed is not None:
                return alive(listed, now)
        raise IdentityError("this isn't a token that this broker knows")


def client_name(principal: Principal, wanted: str | None, longest: int) -> str:
    """The name of a client: what it wants to be called, within the names that are its principal's."""
    if wanted is not None:
        if not wanted or len(wanted) > longest or not wanted.isprintable() or wanted.startswith("~"):
            raise IdentityError(f"{wanted[:40]!r} can't be a client's name; use printable text of at most {longest}")
    else:
        wanted = f"{ANONYMOUS}{secrets.token_hex(8)}"
    return f"{principal.name}/{wanted}" if principal.name else wanted


ANONYMOUS: Final = "anonymous-"
"""Starts the names of clients that didn't say one."""


def _bearer(request: web.Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def _certificate_names(request: web.Request) -> list[str]:
    transport = request.transport
    return [] if transport is None else names_in(transport.get_extra_info("peercert"))


def _host_name(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host
