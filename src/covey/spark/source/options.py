"""The options of `format("covey")`, checked in one place and with a limit on everything that is held."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from covey.errors import CoveyError
from covey.events import Schema
from covey.language import parse
from covey.spark.stream.journal import local_path
from covey.spark.stream.sources import one_line

if TYPE_CHECKING:
    from covey.network.asyncio import connect

MOST_A_TRIGGER: Final = 20_000
"""`maxEventsPerTrigger`: events in one micro-batch, and events that wait in memory for the next."""
MOST_DRAINED: Final = 100_000
"""`most`: events that a batch read, or one run of `availableNow`, takes; a broker queues no more by default."""
PATIENCE: Final = 60.0
"""`patience`: seconds without a broker before a query fails."""
_TRUE: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Address:
    """Where the broker is, and who asks."""

    url: str
    token: str | None
    authority: str | None
    patience: float

    def connect(self, name: str | None, *, reconnect: bool) -> connect:
        """What opens a session, when it is awaited."""
        from covey.network.asyncio import connect

        return connect(self.url, name=name, token=self.token, tls=self._tls(), reconnect=reconnect)

    def _tls(self) -> ssl.SSLContext | None:
        from covey.network.tls import client_context

        return None if self.authority is None else client_context(self.authority)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What to read."""

    address: Address
    client: str
    subscription: str
    filter: str
    spool: Path | None
    most_a_trigger: int
    most: int
    fail_on_data_loss: bool
    fail_fast: bool


@dataclass(frozen=True, slots=True)
class XmlDocuments:
    """The column whose texts are the events, as simple XML documents, and the JSON of their schema, if there is one."""

    column: str
    schema: str | None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where to publish, and what."""

    address: Address
    publisher: str
    spool: Path | None
    xml: XmlDocuments | None = None


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """The options of `spark.read` and `spark.readStream`."""
    subscription = _needed(options, "subscription", "a name that the broker keeps the events for")
    text = _needed(options, "filter", "for example 'price < 10'")
    try:
        parse(text)
    except CoveyError as error:
        raise CoveyError(f"option filter: {one_line(error)}") from None
    mode = options.get("mode", "PERMISSIVE").upper()
    if mode not in ("PERMISSIVE", "FAILFAST"):
        raise CoveyError(f"option mode is {mode!r}; use PERMISSIVE (NULL for what doesn't fit) or FAILFAST")
    return ReadOptions(
        _address(options),
        options.get("client", f"spark-{subscription}"),
        subscription,
        text,
        _spool(options, "source"),
        _count(options, "maxEventsPerTrigger", MOST_A_TRIGGER),
        _count(options, "most", MOST_DRAINED),
        _flag(options, "failOnDataLoss"),
        mode == "FAILFAST",
    )


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """The options of `df.write` and `df.writeStream`."""
    return WriteOptions(_address(options), options.get("publisher", "spark"), _spool(options, "sink"), _xml(options))


def _xml(options: Mapping[str, str]) -> XmlDocuments | None:
    column, schema = options.get("xml"), options.get("xmlSchema")
    if column is None:
        if schema is not None:
            raise CoveyError("option xmlSchema is of documents in XML; name their column with option('xml', ...)")
        return None
    if schema is not None:
        try:
            Schema.from_json(schema)
        except CoveyError as error:
            raise CoveyError(f"option xmlSchema: {one_line(error)}") from None
    return XmlDocuments(column, schema)


def _address(options: Mapping[str, str]) -> Address:
    url = _needed(options, "url", "for example 'ws://127.0.0.1:7400'")
    if not url.startswith(("ws://", "wss://")):
        raise CoveyError(f"option url is {url!r}; a broker's address starts with ws:// or wss://")
    return Address(url, options.get("token"), options.get("authority"), float(_count(options, "patience", PATIENCE)))


def _spool(options: Mapping[str, str], end: str) -> Path | None:
    if "spool" in options:
        return local_path(options["spool"], "option spool")
    checkpoint = options.get("checkpointLocation")
    return None if checkpoint is None else local_path(checkpoint, "option checkpointLocation") / "covey" / end


def _needed(options: Mapping[str, str], name: str, what: str) -> str:
    value = options.get(name)
    if not value:
        raise CoveyError(f"format('covey') needs option({name!r}, ...), {what}")
    return value


def _count(options: Mapping[str, str], name: str, default: float) -> int:
    text = options.get(name, str(int(default)))
    if not text.isdecimal() or int(text) < 1:
        raise CoveyError(f"option {name} is {text!r}; use a whole number from 1 on")
    return int(text)


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "true").lower()
    if text not in _TRUE:
        raise CoveyError(f"option {name} is {text!r}; use true or false")
    return _TRUE[text]
