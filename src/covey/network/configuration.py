"""A broker's configuration: a TOML file, flags over it, and what is refused.

    id = "a"                      # the broker's name in the network
    host = "127.0.0.1"
    port = 7400
    data = "/var/lib/covey/a"     # without it, nothing survives the process
    strategy = "covering"         # also: semantics, schema, advertisements, meta_events, and the tables of
                                  # covey.network.routing_options: merging, subsumption, pruning, adaptive

    [peers]
    b = "wss://b.example.org:7400"
    c = ""                        # c opens the link

    [tls]
    certificate = "a.pem"
    key = "a.key"
    authority = "ca.pem"          # signs the certificates of neighbours and clients

    [security]
    secret_file = "secret"        # signs tokens; the same file on all brokers
    tokens_file = "tokens.toml"   # listed tokens
    plain = false                 # true where TLS ends before the broker
    origins = []                  # web pages elsewhere that may use it

    [clients.ann]                 # by certificate
    subscribe = "price < 100"

    [limits]                      # of covey.network.limits, covey.routing.config and covey.limits, by name
    [timing]

Paths are relative to the file. Without a way to know who connects, a broker listens on this machine only.
"""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from covey.errors import CoveyError
from covey.events.schema import Schema
from covey.limits import Limits
from covey.network.limits import NetworkLimits
from covey.network.routing_options import NAMES, TABLES, check_names, names_of, routing_options
from covey.network.tokens import Principal, principal_of, read_listed, read_secret
from covey.routing.config import BrokerConfig, BrokerLimits, ConfigError, Timing

DEFAULT_PORT: Final = 7400
_TOP: Final = frozenset(
    {"id", "host", "port", "data", "schema", "peers", "tls", "security", "clients", "limits", "timing"}
).union(NAMES, TABLES)


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
    listed: Mapping[str, Principal] = field(default_factory=dict)
    """Principals by the SHA-256 of their token."""
    certified: Mapping[str, Principal] = field(default_factory=dict)
    """Principals by the name in their certificate."""
    plain: bool = False
    """TLS ends before the broker, so tokens may come in over connections without it."""
    origins: tuple[str, ...] = ()
    """Origins of web pages, beside the broker's own, that may use it."""


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

    def __post_init__(self) -> None:
        if set(self.peers) != set(self.broker.peers):
            object.__setattr__(self, "broker", replace(self.broker, peers=tuple(sorted(self.peers))))
        for peer, url in self.peers.items():
            if url and not url.startswith(("ws://", "wss://")):
                raise ConfigError(f"peer {peer}={url}: the address must start with ws:// or wss://")
        both = sorted(set(self.peers) & set(self.security.certified))
        if both:
            raise ConfigError(f"{both[0]!r} is a neighbour and a client; certificates need different names for them")
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
        """Whether everyone must say who they are."""
        security = self.security
        certificates = self.tls is not None and self.tls.authority is not None
        return security.secret is not None or bool(security.listed) or certificates


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load(path: Path | None, flags: Mapping[str, Any]) -> ServerConfig:
    """The configuration of a file (or none), with the flags that were given over it."""
    tables: dict[str, Any] = {}
    where = "the command line"
    directory = Path()
    if path is not None:
        where, directory = str(path), path.parent
        try:
            tables = tomllib.loads(path.read_text())
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path}: not TOML: {error}") from None
    given = {name: value for name, value in flags.items() if value is not None}
    peers = {**tables.get("peers", {}), **given.pop("peers", {})}
    data = Path(given.pop("data")) if "data" in given else directory / tables["data"] if "data" in tables else None
    tables = {**tables, **given, "peers": peers}
    try:
        return _config(tables, directory, data)
    except (CoveyError, TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None


def _config(tables: dict[str, Any], directory: Path, data: Path | None) -> ServerConfig:
    check_names(tables, _TOP, "")
    if not isinstance(tables.get("id"), str):
        raise ConfigError("a broker needs a name; give id, or --id NAME")
    limits, broker_limits = _limits(tables.get("limits", {}))
    options = routing_options(tables, directory)
    if "schema" in tables:
        options["schema"] = Schema.from_json((directory / tables["schema"]).read_bytes())
    timing = Timing(**_known(tables.get("timing", {}), names_of(Timing), "timing"))
    broker = BrokerConfig(
        tables["id"], tuple(sorted(tables["peers"])), timing=timing, limits=broker_limits, **options
    )  # fmt: skip
    return ServerConfig(
        broker,
        tables.get("host", "127.0.0.1"),
        tables.get("port", DEFAULT_PORT),
        tables["peers"],
        data,
        _tls(tables.get("tls"), directory),
        _security(tables.get("security", {}), tables.get("clients", {}), directory),
        limits,
    )


def _limits(given: Mapping[str, Any]) -> tuple[NetworkLimits, BrokerLimits]:
    own, kept, filters = names_of(NetworkLimits), names_of(BrokerLimits) - {"filters"}, names_of(Limits)
    check_names(given, own | kept | filters, "limits.")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ConfigError(f"limits.{name} is {value!r}; it must be a number above 0")
    of_filters = Limits(**{name: given[name] for name in filters & given.keys()})
    return (
        NetworkLimits(**{name: given[name] for name in own & given.keys()}),
        BrokerLimits(**{name: given[name] for name in kept & given.keys()}, filters=of_filters),
    )


def _tls(given: Mapping[str, Any] | None, directory: Path) -> TlsFiles | None:
    if given is None:
        return None
    names = names_of(TlsFiles)
    check_names(given, names, "tls.")
    for name in ("certificate", "key"):
        if name not in given:
            raise ConfigError(f"[tls] needs {name}, the name of a file in PEM")
    paths = {name: directory / path for name, path in given.items()}
    for path in paths.values():
        if not path.is_file():
            raise ConfigError(f"{path}: no such file")
    return TlsFiles(**paths)


def _security(given: Mapping[str, Any], clients: Mapping[str, Any], directory: Path) -> Security:
    check_names(given, frozenset({"secret_file", "tokens_file", "plain", "origins"}), "security.")
    secret = read_secret(directory / given["secret_file"]) if "secret_file" in given else None
    listed = read_listed(directory / given["tokens_file"]) if "tokens_file" in given else {}
    certified = {name: principal_of(name, table, "clients") for name, table in clients.items()}
    return Security(secret, listed, certified, bool(given.get("plain", False)), tuple(given.get("origins", ())))


def _known(given: Mapping[str, Any], names: Any, table: str) -> dict[str, Any]:
    check_names(given, names, f"{table}.")
    return dict(given)
