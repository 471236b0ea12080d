"""One broker as a server: where it listens, whom it knows, where it keeps what must survive. `configuration_file.py`
reads all of it from a file and flags."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from covey.network.limits import NetworkLimits
from covey.network.tokens import Principal
from covey.routing.config import BrokerConfig, ConfigError

DEFAULT_PORT: Final = 7400


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files in PEM."""

    certificate: Path
    key: Path
    authority: Path | None = None
    """Signs the certificates of neighbours, and of clients that have one."""


@dataclass(frozen=True, slots=True)
class Security:
    """How a broker knows who connects."""

    secret: bytes | None = None
    """Signs tokens, of clients and of neighbours."""
    listed: Mapping[str, Principal] | None = None
    """Principals by the SHA-256 of their token; None where there is no list. One with nobody in it lets nobody in."""
    certified: Mapping[str, Principal] = field(default_factory=dict)
    """Principals by the name in their certificate."""
    plain: bool = False
    """TLS ends before the broker, so tokens may come in over connections without it."""
    origins: tuple[str, ...] = ()
    """Origins of web pages, beside the broker's own, that may use it."""
    files: tuple[Path, ...] = ()
    """What all of this was read from, to be read again when it changes."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One broker as a server."""

    broker: BrokerConfig
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    """0 for any that is free."""
    peers: Mapping[str, str] = field(default_factory=dict)
    """Neighbours' URLs; empty for those that open the link themselves."""
    data: Path | None = None
    """Where the journal is; without it nothing survives the process."""
    tls: TlsFiles | None = None
    security: Security = field(default_factory=Security)
    limits: NetworkLimits = field(default_factory=NetworkLimits)
    source: Path | None = None
    """The file that it was read from; None for one that was made by a program."""

    def __post_init__(self) -> None:
        if set(self.peers) != set(self.broker.peers):
            object.__setattr__(self, "broker", replace(self.broker, peers=tuple(sorted(self.peers))))
        for peer, url in self.peers.items():
            check_url(peer, url)
        check_names_differ(self.peers, self.security)
        if not is_loopback(self.host):
            if not self.authenticates:
                raise ConfigError(
                    f"without security a broker listens on this machine only, not on {self.host}; "
                    "configure [security] or [tls] with an authority, or use --host 127.0.0.1"
                )
            if self.tls is None and not self.security.plain:
                raise ConfigError(
                    f"tokens would travel in the clear to {self.host}; "
                    "configure [tls], or set plain = true in [security] if TLS ends before the broker"
                )

    @property
    def authenticates(self) -> bool:
        """Whether everyone must say who they are: as soon as anything says how, even if nobody is left whom it lets
        in."""
        security = self.security
        certificates = self.tls is not None and self.tls.authority is not None
        return security.secret is not None or security.listed is not None or bool(security.certified) or certificates

    @property
    def remarks(self) -> list[str]:
        """What is surely not meant so, and does no harm."""
        found: list[str] = []
        security, authority = self.security, None if self.tls is None else self.tls.authority
        if security.certified and authority is None:
            found.append("[clients] are known by certificates, and [tls] has no authority for them: they can't connect")
        if self.authenticates and security.secret is None and not security.listed and not security.certified:
            found.append("nobody is listed who may connect, so nobody can")
        return found


def check_url(peer: str, url: str) -> None:
    """Raises ConfigError where a neighbour can't be reached by an address; an empty one is none."""
    if url and not url.startswith(("ws://", "wss://")):
        raise ConfigError(f"peer {peer}={url}: the address must start with ws:// or wss://")


def check_names_differ(peers: Mapping[str, str], security: Security) -> None:
    """Raises ConfigError where a certificate's name would be a neighbour's and a client's."""
    both = sorted(set(peers) & set(security.certified))
    if both:
        raise ConfigError(f"{both[0]!r} is a neighbour and a client; certificates need different names for them")


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
