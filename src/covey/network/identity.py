"""Who is it? A request's token or certificate becomes a principal; a principal and a wish become a client's name.

Without any way to tell, everyone is `ANYONE`, and the broker listens on this machine only. Web pages are a door to this
machine, since a browser lets any page open a connection to it: so a request that a page of another origin makes is
refused, by its `Origin` or, where a page loads a picture or follows a link and so has none, by `Sec-Fetch-Site`; and
without authentication also one whose Host isn't a name of this machine.

Who someone is doesn't stay so: tokens end, and files that list them change. So a `Caller` carries what it was known by,
and `again` asks the same question once more (`standing.py`). Ends are moments of the wall clock as it is now: whoever
corrects the clock corrects them.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from covey.network.configuration import Security, ServerConfig, is_loopback
from covey.network.errors import IdentityError, OriginError
from covey.network.tls import names_in
from covey.network.tokens import ANYONE, LONGEST_TOKEN, PREFIX, Principal, Right, alive, sha256, sign, verify
from covey.routing.meta_events import PUBLISHER

LINK_TOKEN_SECONDS: Final = 60.0
"""A broker signs a token for each link that it opens."""
_OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Say nothing of the broker but that it is there, to probes that reach it by any name."""
_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})
"""What `Sec-Fetch-Site` says of pages that aren't the broker's own; another port of this machine is the same site."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, and what it is known by."""

    principal: Principal
    account: str
    """What quotas are counted under: the principal's name, or for anyone the address, as `@ADDRESS`."""
    token: str | None = None
    names: tuple[str, ...] = ()
    """In its certificate; counts where there is no token."""


class Identity:
    """What one broker knows of those who connect."""

    def __init__(self, config: ServerConfig, wall: Callable[[], float] = time.time) -> None:
        self._config = config
        self._security = config.security
        self._wall = wall
        self.neighbours: Callable[[], Container[str]] = lambda: config.peers
        """Who may open a link, by name."""

    @property
    def security(self) -> Security:
        """How it knows who connects; what files said when they were last read."""
        return self._security

    def reload(self, security: Security) -> None:
        """Know by these from now on. That everyone must say who they are can't be taken back while a broker runs."""
        self._security = security

    def caller(self, request: web.Request) -> Caller:
        """The client that makes a request; raises IdentityError."""
        if not self._config.authenticates:
            return Caller(ANYONE, f"@{request.remote or ''}")
        token = _bearer(request)
        names = () if token is not None else tuple(_certificate_names(request))
        principal = self._known(token, names)
        return Caller(principal, principal.name, token, names)

    def again(self, caller: Caller) -> Principal:
        """Who a caller is by now; raises IdentityError where it is nobody any more."""
        return self._known(caller.token, caller.names) if self._config.authenticates else caller.principal

    def client(self, request: web.Request) -> Principal:
        """The principal that makes a request; raises IdentityError."""
        return self.caller(request).principal

    def check_right(self, request: web.Request, *rights: Right) -> Caller:
        """Raises IdentityError, or HTTPForbidden, unless who makes a request has one of some rights."""
        caller = self.caller(request)
        if not any(caller.principal.may(right) for right in rights):
            wanted = " or ".join(f"{right} = true" for right in rights)
            raise web.HTTPForbidden(text=f"this needs a principal with {wanted}")
        return caller

    def check_peer(self, request: web.Request, peer: str) -> None:
        """Raises IdentityError unless a neighbour is who it says."""
        if peer not in self.neighbours():
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
        secret = self._security.secret
        if secret is None:
            return None
        name = self._config.broker.broker
        return sign(Principal(name, expires=self._wall() + LINK_TOKEN_SECONDS, broker=True), secret)

    def check_origin(self, request: web.Request) -> None:
        """Raises OriginError for what a web page of another origin asks."""
        if request.path in _OPEN_PATHS:
            return
        origin, allowed = request.headers.get("Origin"), self._security.origins
        if origin is not None and origin not in allowed and urlsplit(origin).netloc != request.host:
            raise OriginError(f"pages of {origin} may not use this broker; add it to origins in [security]")
        site = request.headers.get("Sec-Fetch-Site")
        if site in _ELSEWHERE and origin not in allowed and not _opens_the_page(request):
            raise OriginError("pages of other sites may not use this broker; add their origin to origins in [security]")
        if not self._config.authenticates and not is_loopback(_host_name(request.host)):
            raise OriginError(f"this broker has no security and isn't reachable as {request.host!r}")

    def _known(self, token: str | None, names: tuple[str, ...]) -> Principal:
        if token is not None:
            principal = self._by_token(token)
            if principal.broker:
                raise IdentityError("this is a broker's token, not a client's")
            return principal
        for name in names:
            if name in self._security.certified:
                return alive(self._security.certified[name], self._wall())
        raise IdentityError("a token (Authorization: Bearer ...) or a known certificate is needed")

    def _by_token(self, token: str) -> Principal:
        security, now = self._security, self._wall()
        if len(token) <= LONGEST_TOKEN:
            if token.startswith(f"{PREFIX}.") and security.secret is not None:
                return verify(token, security.secret, now)
            listed = (security.listed or {}).get(sha256(token))
            if listed is not None:
                return alive(listed, now)
        raise IdentityError("this isn't a token that this broker knows")


def client_name(principal: Principal, wanted: str | None, longest: int) -> str:
    """The name of a client: what it wants to be called, within the names that are its principal's."""
    if wanted is not None:
        is_name = wanted and len(wanted) <= longest and wanted.isprintable() and not wanted.startswith("~")
        if not is_name or wanted == PUBLISHER:
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


def _opens_the_page(request: web.Request) -> bool:
    """Whether somebody follows a link to the console, which says nothing and can't be framed."""
    mode, into = request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest")
    return request.method == "GET" and request.path == "/" and mode == "navigate" and into == "document"


def _host_name(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host
