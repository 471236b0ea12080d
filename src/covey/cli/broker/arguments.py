"""The arguments of `covey broker` and of the commands that talk to one, and for each a class of what it is given."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, Final

from covey.cli.options import ON_ERROR, IndexOptions
from covey.file_names import FORMATS
from covey.language import DIALECTS

DEFAULT_BROKER: Final = "ws://127.0.0.1:7400"
_SECONDS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class ConnectionOptions:
    """Which broker, and who asks."""

    broker: str
    token_file: str | None
    authority: str | None
    certificate: str | None
    key: str | None


class ClientOptions(ConnectionOptions):
    """A client's session."""

    name: str | None


class ClaimOptions(ClientOptions):
    """A subscription or an advertisement."""

    filter: str | None
    dialect: str
    id: str | None
    durable: bool
    lease: float | None
    remove: bool


class BrokerOptions:
    """Of `covey broker`."""

    config: str | None
    id: str | None
    host: str | None
    port: int | None
    peers: list[tuple[str, str]]
    data: str | None
    strategy: str | None
    routes_by_advertisements: bool | None
    meta_events: bool | None
    check: bool
    log_level: str


class PubOptions(ClientOptions):
    """Of `covey pub`."""

    listed: list[str]
    durable: bool
    id_attribute: str | None
    verbose: bool


class SubOptions(ClaimOptions):
    """Of `covey sub`."""

    most: int | None
    timeout: float | None
    verbose: bool


class AdvertiseOptions(ClaimOptions):
    """Of `covey advertise`."""


class FiguresOptions(ConnectionOptions):
    """Of `covey status`, `covey routes` and `covey load list`."""

    json: bool


class HitsOptions(FiguresOptions):
    """Of `covey hits`."""

    client: str | None
    rows: int
    fewest: bool


class TraceOptions(FiguresOptions):
    """Of `covey trace`."""

    event: str


class LoadSubscriptionsOptions(FiguresOptions, IndexOptions):
    """Of `covey load subscriptions`."""

    name: str
    client: str | None
    compacted: str | None


class LoadProfileOptions(ConnectionOptions):
    """Of `covey load profile`."""

    file: str


class LoadDropOptions(ConnectionOptions):
    """Of `covey load drop`."""

    name: str


class PeerOptions(ConnectionOptions):
    """Of `covey peer remove`."""

    peer: str


class PeerAddOptions(PeerOptions):
    """Of `covey peer add`."""

    url: str


class TokenOptions:
    """Of `covey token`."""

    principal: str
    secret_file: str
    expires: float
    may_publish: str | None
    may_subscribe: str | None
    may_advertise: str | None
    admin: bool
    monitor: bool
    load: bool


def add(commands: Any, positive: Callable[[str], int], filters: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add all commands around brokers."""
    _broker(commands)
    _pub(commands)
    _sub(commands, positive)
    _advertise(commands)
    _operators(commands, positive)
    _load(commands, filters)
    _neighbours(commands)
    _token(commands)


def _broker(commands: Any) -> None:
    parser = commands.add_parser(
        "broker",
        help="run a broker",
        description="Run one broker of a network. Without security it listens on this machine only; docs/network.md "
        "has the configuration file. Flags go before what the file says.",
    )
    parser.add_argument("--config", metavar="FILE", help="a TOML file")
    parser.add_argument("--id", help="the broker's name, one for each in the network")
    parser.add_argument("--host", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=_port, help="the port (7400); 0 for any that is free")
    parser.add_argument(
        "--peer",
        dest="peers",
        action="append",
        default=[],
        type=_peer,
        metavar="NAME=URL",
        help="a neighbour, ws://HOST:PORT or wss://HOST:PORT; NAME alone if it opens the link. Both ends need it",
    )
    parser.add_argument("--data", metavar="DIR", help="where its journal is; without, nothing survives the process")
    # Not `choices`: whoever has no broker needn't have what brokers need. A wrong one is refused with the right ones.
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help="what neighbours are told of subscriptions: flooding, simple, identity, covering (the default), merging",
    )
    parser.add_argument(
        "--advertisements",
        dest="routes_by_advertisements",
        action="store_true",
        default=None,
        help="subscriptions go only where something matching is advertised",
    )
    parser.add_argument(
        "--meta-events", action="store_true", default=None, help="publish subscriptions and advertisements as events"
    )
    parser.add_argument("--check", action="store_true", help="say all that is wrong with the configuration, and end")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")


def _pub(commands: Any) -> None:
    parser = commands.add_parser(
        "pub",
        help="publish events",
        description="Publish events: JSON objects on the command line, or one a line on standard input.",
    )
    parser.add_argument("listed", nargs="*", metavar="EVENT", help="a JSON object; none, or -, reads standard input")
    parser.add_argument("--durable", action="store_true", help="kept for those who are away; confirmed when committed")
    parser.add_argument(
        "--id", dest="id_attribute", metavar="ATTRIBUTE",
        help="of each event, what it is known by: one that the broker has from a client of this --name counts once, so "
        "that all may be sent again",
    )  # fmt: skip
    parser.add_argument("-v", "--verbose", action="store_true", help="say how many were published")
    _connection(parser)


def _sub(commands: Any, positive: Callable[[str], int]) -> None:
    parser = commands.add_parser(
        "sub",
        help="print events that match a filter, as they come",
        description="Print the events that match a filter, one JSON object a line, until interrupted.",
    )
    parser.add_argument("filter", nargs="?", metavar="FILTER", help="what to ask for")
    parser.add_argument("-n", "--count", dest="most", type=positive, help="end after so many events")
    parser.add_argument("-w", "--timeout", type=duration, help="end after so long without an event (5s, 2m)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print event, publisher and subscriptions too")
    _claim(parser, "subscription")
    _connection(parser)


def _advertise(commands: Any) -> None:
    parser = commands.add_parser(
        "advertise",
        help="say what will be published",
        description="Advertise what will be published. It lasts until interrupted; a durable one lasts until removed.",
    )
    parser.add_argument("filter", nargs="?", metavar="FILTER", help="what will be published")
    _claim(parser, "advertisement")
    _connection(parser)


def _operators(commands: Any, positive: Callable[[str], int]) -> None:
    status = commands.add_parser("status", help="a broker in figures")
    routes = commands.add_parser("routes", help="what a broker's neighbours and clients asked for")
    hits = commands.add_parser(
        "hits",
        help="how many events each subscription matched",
        description="Say how many events the subscriptions of a broker's clients matched since it was started, the "
        "most first.",
    )
    hits.add_argument("--client", metavar="NAME", help="of this client alone")
    hits.add_argument("-n", "--rows", type=positive, default=20, help="so many subscriptions (20; at most 1,000)")
    hits.add_argument("--fewest", action="store_true", help="the fewest first: what nobody publishes for")
    trace = commands.add_parser(
        "trace",
        help="say where an event would go, and why",
        description="Say where an event would go if it were published, and why. Nothing is published.",
    )
    trace.add_argument("event", metavar="EVENT", help="a JSON object; - reads standard input")
    for parser in (status, routes, hits, trace):
        parser.add_argument("--json", action="store_true", help="print JSON")
        _connection(parser, named=False)


def _load(commands: Any, filters: Callable[[argparse.ArgumentParser], None]) -> None:
    parser = commands.add_parser(
        "load",
        help="load subscriptions and profiles into a broker that runs",
        description="Load what batch jobs made into a broker that runs; docs/loading.md has more. Where brokers know "
        "who connects, this needs a token with --load, and a profile one with --admin.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    made = actions.add_parser(
        "subscriptions",
        help="give a client the subscriptions of an index or a table",
        description="Give a client the durable subscriptions of a saved index or a table, in the place of those that "
        "the load of this name gave before. Only what differs changes, all of it or nothing.",
    )
    made.add_argument(
        "subscriptions", metavar="FILE", help="rows with an id and a filter, as JSON lines, CSV or Parquet, or an index"
    )
    made.add_argument("--format", dest="subscriptions_format", choices=FORMATS, help="by itself told by the name")
    filters(made)
    made.add_argument(
        "--on-error",
        choices=ON_ERROR,
        default="raise",
        help="load nothing if a subscription can't be used (raise, the default), or leave it out (skip)",
    )
    made.add_argument("--name", required=True, help="the load's name; the same again replaces it")
    made.add_argument("--client", help="whose subscriptions they are; by itself the load's name")
    made.add_argument(
        "--compacted", metavar="TABLE", help="what covey compact made of them: neighbours hear its entries instead"
    )
    profile = actions.add_parser(
        "profile", help="judge by a profile how likely filters are to match: mergers, prunings, orders of tests"
    )
    profile.add_argument("file", metavar="FILE", help="what covey spark profile made")
    listed = actions.add_parser("list", help="list loads")
    dropped = actions.add_parser("drop", help="end all that a load gave")
    dropped.add_argument("name", metavar="NAME", help="the load")
    for action in (made, listed):
        action.add_argument("--json", action="store_true", help="print JSON")
    for action in (made, profile, listed, dropped):
        _connection(action, named=False)


def _neighbours(commands: Any) -> None:
    parser = commands.add_parser(
        "peer",
        help="change a broker's neighbours while it runs",
        description="Change a broker's neighbours while it runs. A link needs both ends: tell each of the two "
        "brokers of the other. Where brokers know who connects, this needs a token with --admin.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="list neighbours")
    listed.add_argument("--json", action="store_true", help="print JSON")
    added = actions.add_parser("add", help="have a link to a broker from now on, or give it another address")
    added.add_argument("peer", metavar="NAME", help="the neighbour's name")
    added.add_argument("url", metavar="URL", nargs="?", default="", help="its address; left out, it opens the link")
    removed = actions.add_parser("remove", help="have no link to a broker any more")
    removed.add_argument("peer", metavar="NAME", help="the neighbour's name")
    for action in (listed, added, removed):
        _connection(action, named=False)


def _token(commands: Any) -> None:
    parser = commands.add_parser(
        "token",
        help="make a token for a client",
        description="Sign a token that says who a client is and what it may do. Brokers with the same secret know it.",
    )
    parser.add_argument("principal", metavar="NAME", help="who it is for")
    parser.add_argument("--secret-file", required=True, metavar="FILE", help="the secret that the brokers have")
    parser.add_argument("--expires", type=duration, default=30 * 86400.0, help="when it ends: 90s, 8h, 30d (30d)")
    parser.add_argument("--publish", dest="may_publish", metavar="FILTER", help="what it may publish (everything)")
    parser.add_argument("--subscribe", dest="may_subscribe", metavar="FILTER", help="what it may subscribe to")
    parser.add_argument("--advertise", dest="may_advertise", metavar="FILTER", help="what it may advertise")
    parser.add_argument("--monitor", action="store_true", help="it may see the broker's tables and figures")
    parser.add_argument("--load", action="store_true", help="it may load subscriptions, within --subscribe")
    parser.add_argument("--admin", action="store_true", help="both, and it may change the broker itself")


def _claim(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--dialect", choices=tuple(DIALECTS), default="sql", help="what the filter is written in (%(default)s)"
    )
    parser.add_argument("--id", help=f"the {what}'s id, one for each of the client's")
    parser.add_argument(
        "--durable", action="store_true", help="it goes on while the client is away; needs --name, --id"
    )
    parser.add_argument("--lease", type=duration, help="it ends so long after the client is gone (30s, 5m, 2h)")
    parser.add_argument("--remove", action="store_true", help=f"end the {what} with --id, of the client with --name")


def _connection(parser: argparse.ArgumentParser, *, named: bool = True) -> None:
    broker = os.environ.get("COVEY_BROKER", DEFAULT_BROKER)
    parser.add_argument(
        "--broker", metavar="URL", default=broker, help="by itself $COVEY_BROKER, else ws://127.0.0.1:7400"
    )
    if named:
        parser.add_argument("--name", help="the client's name, to come back to")
    parser.add_argument("--token-file", metavar="FILE", help="says who it is; by itself $COVEY_TOKEN holds the token")
    parser.add_argument("--authority", metavar="FILE", help="signs the broker's certificate, as PEM")
    parser.add_argument("--certificate", metavar="FILE", help="the client's own certificate, as PEM")
    parser.add_argument("--key", metavar="FILE", help="the certificate's key")


def duration(text: str) -> float:
    """Seconds of `90`, `90s`, `5m`, `2h` or `7d`."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _SECONDS else (text, "s")
    try:
        seconds = float(number) * _SECONDS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 90s, 5m, 2h or 7d")
    return seconds


def _peer(text: str) -> tuple[str, str]:
    name, _, url = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not a neighbour; write NAME=ws://HOST:PORT")
    return name, url


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)
