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

Values have the type that they should have: text isn't taken for a number, nor true for 1. Each part is read by itself,
so that `check` finds all that is wrong, not only what is wrong first.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

from covey.errors import CoveyError
from covey.events.schema import Schema
from covey.limits import BROKER_FILTER_LIMITS, Limits
from covey.network.configuration import DEFAULT_PORT, Security, ServerConfig, TlsFiles, check_names_differ, check_url
from covey.network.limits import NetworkLimits
from covey.network.routing_options import NAMES, REROUTED, TABLES, check_names, names_of, routing_options
from covey.network.tokens import Principal, principal_of, read_listed, read_secret
from covey.routing.config import BrokerConfig, BrokerLimits, ConfigError, Timing

LAST_PORT: Final = 65_535
_KINDS: Final = {str: "text", int: "a whole number", bool: "true or false", dict: "a table", list: "a list"}
_TOP: Final[Mapping[str, type]] = {
    "id": str, "host": str, "port": int, "data": str, "schema": str, "profile": str, "strategy": str, "semantics": str,
    "advertisements": bool, "meta_events": bool, "peers": dict, "tls": dict, "security": dict, "clients": dict,
    "limits": dict, "timing": dict, "merging": dict, "subsumption": dict, "pruning": dict, "adaptive": dict,
}  # fmt: skip
_SECURITY: Final[Mapping[str, type]] = {"secret_file": str, "tokens_file": str, "plain": bool, "origins": list}
assert {*NAMES, *TABLES} <= _TOP.keys(), "an option of routing whose type nobody says"

Part = TypeVar("Part")


def load(path: Path | None, flags: Mapping[str, Any]) -> ServerConfig:
    """The configuration of a file (or none), with the flags that were given over it; raises ConfigError for what is
    wrong first."""
    config, problems = check(path, flags)
    if config is None:
        more = f" (and {len(problems) - 1} more; covey broker --check lists them)" if len(problems) > 1 else ""
        raise ConfigError(problems[0] + more)
    return config


def check(path: Path | None, flags: Mapping[str, Any]) -> tuple[ServerConfig | None, list[str]]:
    """The configuration, or all that is wrong with it, a line each."""
    try:
        tables = {} if path is None else _read(path)
    except ConfigError as error:
        return None, [str(error)]
    where = "the command line" if path is None else str(path)
    given = {name: value for name, value in flags.items() if value is not None}
    reading = _Reading(tables, given, path)
    config = reading.config()
    return config, [f"{where}: {problem}" for problem in reading.problems]


def read_security(config: ServerConfig) -> Security:
    """What the files of a broker that runs say by now of who may connect; raises ConfigError. Nothing else of its
    configuration is looked at."""
    if config.source is None:
        return config.security
    reading = _Reading(_read(config.source), {}, config.source)
    security = reading.security()
    if reading.problems:
        raise ConfigError(f"{config.source}: {reading.problems[0]}")
    check_names_differ(config.peers, security)
    return security


def read_peers(config: ServerConfig) -> dict[str, str]:
    """The table of neighbours as the file of a broker has it by now; raises ConfigError."""
    if config.source is None:
        return {}
    reading = _Reading(_read(config.source), {}, config.source)
    peers = reading.peers
    for peer, url in peers.items():
        check_url(peer, url)
    if reading.problems:
        raise ConfigError(f"{config.source}: {reading.problems[0]}")
    return peers


def read_routing(config: ServerConfig) -> dict[str, Any]:
    """How the file of a broker has it routed by now, as arguments of `BrokerConfig`, but for what holds as long as it
    runs; raises ConfigError."""
    if config.source is None:
        return {}
    tables = {name: value for name, value in _read(config.source).items() if name in REROUTED}
    reading = _Reading(tables, {}, config.source)
    options: dict[str, Any] = reading.routing()
    if reading.problems:
        raise ConfigError(f"{config.source}: {reading.problems[0]}")
    return options


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None


class _Reading:
    """A file and flags, while they become a configuration; what is wrong is noted, and the rest is read on."""

    def __init__(self, tables: Mapping[str, Any], flags: Mapping[str, Any], path: Path | None) -> None:
        self.problems: list[str] = []
        self._path = path
        self._directory = Path() if path is None else path.parent
        self._data_flag = flags.get("data")
        listed = {name: value for name, value in flags.items() if name not in ("data", "peers")}
        self._tables = self._typed({**tables, **listed}, _TOP, "")
        self._peers = {**self._texts("peers"), **flags.get("peers", {})}

    @property
    def peers(self) -> dict[str, str]:
        """The neighbours' addresses."""
        return self._peers

    def config(self) -> ServerConfig | None:
        """The configuration; None where something is wrong."""
        tables = self._tables
        if "id" not in tables and not any(problem.startswith("id is") for problem in self.problems):
            self.problems.append("a broker needs a name; give id, or --id NAME")
        port = tables.get("port", DEFAULT_PORT)
        if not 0 <= port <= LAST_PORT:
            self.problems.append(f"port is {port}; use one from 1 to {LAST_PORT:,}, or 0 for any that is free")
        limits, broker_limits = self._limits()
        timing = self._timing()
        options = self.routing()
        if "schema" in tables:
            options["schema"] = self._part(self._schema, None)
        broker = self._part(
            lambda: BrokerConfig(
                tables.get("id", "unnamed"), tuple(sorted(self._peers)), timing=timing, limits=broker_limits, **options
            ),
            BrokerConfig("unnamed"),
        )
        tls, security = self._part(self._tls, None), self.security()
        config = self._part(
            lambda: ServerConfig(
                broker, tables.get("host", "127.0.0.1"), port, self._peers, self._data(), tls, security, limits,
                self._path,
            ),
            None,
        )  # fmt: skip
        return None if self.problems else config

    def routing(self) -> dict[str, Any]:
        """How the broker routes, as arguments of `BrokerConfig`."""
        none: dict[str, Any] = {}
        return self._part(lambda: routing_options(self._tables, self._directory), none)

    def security(self) -> Security:
        """How the broker knows who connects."""
        given = self._typed(self._tables.get("security", {}), _SECURITY, "security.")
        origins = given.get("origins", [])
        if not all(isinstance(origin, str) for origin in origins):
            self.problems.append(f"security.origins is {origins!r}; list origins as text, https://desk.example.org")
        directory = self._directory
        files = [] if self._path is None else [self._path]
        secret: bytes | None = None
        listed: dict[str, Principal] | None = None
        if "secret_file" in given:
            files.append(directory / given["secret_file"])
            secret = self._part(lambda: read_secret(directory / given["secret_file"]), None)
        if "tokens_file" in given:
            files.append(directory / given["tokens_file"])
            nobody: dict[str, Principal] = {}
            listed = self._part(lambda: read_listed(directory / given["tokens_file"]), nobody)
        return Security(
            secret, listed, self._certified(), given.get("plain", False), tuple(map(str, origins)), tuple(files)
        )

    # Parts

    def _part(self, read: Callable[[], Part], otherwise: Part) -> Part:
        """A part, or something in its place that lets the others be read."""
        try:
            return read()
        except OSError as error:
            self.problems.append(f"{error.filename}: {error.strerror}")
        except (CoveyError, TypeError, ValueError) as error:
            self.problems.append(str(error))
        return otherwise

    def _typed(self, given: Any, kinds: Mapping[str, type], prefix: str) -> dict[str, Any]:
        """Those values of a table that have the type they should have."""
        found = {}
        for name, value in given.items():
            kind = kinds.get(name)
            if kind is None:
                self.problems.append(
                    f"{prefix}{name} is not known; {prefix[:-1] or 'a broker'} has {', '.join(sorted(kinds))}"
                )
            elif type(value) is not kind:
                self.problems.append(f"{prefix}{name} is {_shown(value)}; it must be {_KINDS[kind]}")
            else:
                found[name] = value
        return found

    def _texts(self, table: str) -> dict[str, str]:
        given: dict[str, Any] = self._tables.get(table, {})
        return self._typed(given, dict.fromkeys(given, str), f"{table}.")

    def _schema(self) -> Schema:
        return Schema.from_json((self._directory / self._tables["schema"]).read_bytes())

    def _data(self) -> Path | None:
        if self._data_flag is not None:
            return Path(self._data_flag)
        return self._directory / self._tables["data"] if "data" in self._tables else None

    def _tls(self) -> TlsFiles | None:
        if "tls" not in self._tables:
            return None
        given = self._texts("tls")
        check_names(given, names_of(TlsFiles), "tls.")
        for name in ("certificate", "key"):
            if name not in given:
                raise ConfigError(f"[tls] needs {name}, the name of a file in PEM")
        paths = {name: self._directory / path for name, path in given.items()}
        for path in paths.values():
            if not path.is_file():
                raise ConfigError(f"{path}: no such file")
        return TlsFiles(**paths)

    def _certified(self) -> dict[str, Principal]:
        given: dict[str, Any] = self._tables.get("clients", {})
        tables = self._typed(given, dict.fromkeys(given, dict), "clients.")
        read = ((name, partial(principal_of, name, table, "clients")) for name, table in tables.items())
        found = {name: self._part(principal, None) for name, principal in read}
        return {name: principal for name, principal in found.items() if principal is not None}

    def _timing(self) -> Timing:
        return Timing(**self._numbers(self._tables.get("timing", {}), get_type_hints(Timing), "timing."))

    def _limits(self) -> tuple[NetworkLimits, BrokerLimits]:
        own, filters = get_type_hints(NetworkLimits), get_type_hints(Limits)
        kept = {name: kind for name, kind in get_type_hints(BrokerLimits).items() if name != "filters"}
        given = self._numbers(self._tables.get("limits", {}), own | kept | filters, "limits.")
        of_filters = replace(BROKER_FILTER_LIMITS, **{name: given[name] for name in filters.keys() & given.keys()})
        return (
            NetworkLimits(**{name: given[name] for name in own.keys() & given.keys()}),
            BrokerLimits(**{name: given[name] for name in kept.keys() & given.keys()}, filters=of_filters),
        )

    def _numbers(self, given: Mapping[str, Any], kinds: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """Numbers above 0: whole ones where something is counted, none that never ends."""
        found = {}
        for name, value in given.items():
            if name not in kinds:
                self.problems.append(f"{prefix}{name} is not known; {prefix[:-1]} has {', '.join(sorted(kinds))}")
            elif isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value <= 0:
                self.problems.append(f"{prefix}{name} is {_shown(value)}; it must be a number above 0")
            elif kinds[name] is int and not isinstance(value, int):
                self.problems.append(f"{prefix}{name} is {_shown(value)}; it must be a whole number above 0")
            else:
                found[name] = value
        return found


def _shown(value: Any) -> str:
    """A value as a TOML file has it, shortened."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
