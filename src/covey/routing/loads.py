"""Loads: subscriptions that operators bring in bulk, while events flow.

A *load* is a named set of durable subscriptions of one client, as a saved index or a table has them. A load of the same
name takes the place of the one before: both are compared, and only what differs changes, in one turn. The turn's rows
are committed as a whole, so after a crash the broker has the old load or the new one. What the client subscribed to by
itself stays as it is.

With a load may come a *compacted table* (`covey compact`, `covey spark compact`): fewer entries, each standing for some
of the subscriptions. Neighbours are then told the entries, so that the broker needn't find out for itself what covers
what. That is advice, and it is checked: an entry counts for the subscriptions that it certainly covers, and every other
subscription is told by itself. Whatever the table says, no event is lost; and since clients are matched by their own
subscriptions, an entry that is too wide costs traffic and no false delivery.

What is costly and can't change anything (parsing, comparing entries with subscriptions) is done before (`loading.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from covey.filters.algebra import Filter
from covey.routing.by_table import Table
from covey.routing.client import Claim, Client
from covey.routing.clients import Clients
from covey.routing.context import Context
from covey.routing.exporter import Exporter
from covey.routing.journal import read
from covey.routing.loaded_entries import SPACE, LoadedEntryRow
from covey.routing.loading import LoadView
from covey.routing.messages import Load, LoadedSubscription, Refused, Unload
from covey.routing.meta_events import about_load
from covey.routing.requests import Requests
from covey.routing.router import Router
from covey.routing.undo import Remembered


class LoadRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a load beside its subscriptions and entries."""

    client: str
    version: int
    loaded_at: float
    made: int
    ended: int


class Loads(Remembered):
    """Does what operators ask for.

    Owns what is known of each load; its subscriptions are claims of its client, its entries are the exporter's. Changes
    clients through `Clients`, tables and exports through `Exporter`; `Requests` confirms.
    """

    def __init__(
        self, context: Context, clients: Clients, router: Router, exporter: Exporter, requests: Requests
    ) -> None:
        self._context = context
        self._clients = clients
        self._router = router
        self._exporter = exporter
        self._requests = requests
        self._loads: dict[str, LoadRow] = {}
        requests.handlers |= {Load: self._load, Unload: self._unload}

    def views(self) -> list[LoadView]:
        """All loads, by name."""
        return [self._view(name, row) for name, row in sorted(self._loads.items())]

    def _view(self, name: str, row: LoadRow) -> LoadView:
        client = self._clients.get(row.client)
        asked = {} if client is None else client.claims.subscriptions
        claims = [claim for claim in asked.values() if claim.load == name]
        entries = len(self._exporter.loaded_entries.of(row.client, name))
        alone = sum(1 for claim in claims if not claim.under)
        return LoadView(
            name, row.client, row.version, row.loaded_at, row.made, row.ended, len(claims), alone + entries, entries
        )

    def _load(self, operator: Client, message: Load) -> None:
        refusal = self._refusal(message)
        if refusal is not None:
            self._clients.send(operator, Refused(message.request, refusal))
            return
        before = self._loads.get(message.name)
        if before is not None and before.client != message.client:
            self._replace(message.name, before.client, {}, {})
        made, ended = self._replace(
            message.name, message.client, message.subscriptions, message.entries, message.allowed
        )
        version = 1 if before is None else before.version + 1
        row = self._loads[message.name] = LoadRow(message.client, version, self._context.turn.now, made, ended)
        self._context.turn.out.put("load", message.name, row)
        self._publish_meta("loaded", message.name, message.client)
        self._requests.confirm_when_settled(operator, Table.SUBSCRIPTIONS, message.request)

    def _refusal(self, message: Load) -> str | None:
        limits = self._context.config.limits
        if not message.name or not message.client:
            return "a load needs a name and a client"
        if message.name not in self._loads and len(self._loads) >= limits.loads:
            return f"there are {limits.loads:,} loads already (loads); drop some of them first"
        if len(message.subscriptions) > limits.loaded_subscriptions:
            return (
                f"{len(message.subscriptions):,} subscriptions; loaded_subscriptions is {limits.loaded_subscriptions:,}"
            )
        client = self._clients.get(message.client)
        own = {} if client is None else client.claims.subscriptions
        for id in message.subscriptions:
            if id in own and own[id].load != message.name:
                other = f"the load {own[id].load!r}" if own[id].load else "the client itself"
                return f"the client {message.client!r} has a subscription {id!r} from {other}; use other ids"
        return None

    def _unload(self, operator: Client, message: Unload) -> None:
        row = self._loads.pop(message.name, None)
        if row is None:
            self._clients.send(operator, Refused(message.request, f"there is no load {message.name!r}"))
            return
        self._replace(message.name, row.client, {}, {})
        self._context.turn.out.drop("load", message.name)
        self._publish_meta("unloaded", message.name, row.client)
        self._requests.confirm_when_settled(operator, Table.SUBSCRIPTIONS, message.request)

    def _replace(
        self,
        name: str,
        client_name: str,
        subscriptions: Mapping[str, LoadedSubscription],
        entries: Mapping[str, tuple[str, Filter]],
        allowed: str | None = None,
    ) -> tuple[int, int]:
        """Bring a client's loaded subscriptions to these, in tables, exports and the journal; how many were made or
        changed, and how many ended."""
        client = self._clients.get(client_name) or Client(client_name)
        old = {id: claim for id, claim in client.claims.subscriptions.items() if claim.load == name}
        ended = [id for id in old if id not in subscriptions]
        made = [
            Claim(id, asked.filter, asked.condition, True, load=name, under=asked.under, within=allowed)
            for id, asked in subscriptions.items()
            if id not in old or (old[id].text, old[id].under, old[id].within) != (asked.filter, asked.under, allowed)
        ]
        changed = [*ended, *(claim.id for claim in made if claim.id in old)]
        before = self._entries_of(client, name, [old[id] for id in changed])
        self._clients.change_many(client, ended, made)
        counts = Counter(asked.under for asked in subscriptions.values())
        rows = [
            (LoadedEntryRow(client.id, name, id, text), condition, counts[id])
            for id, (text, condition) in entries.items()
        ]
        self._exporter.loaded_entries.replace(client.id, name, rows)
        after = self._entries_of(client, name, made)
        conditions = {
            claim.id: claim.condition for claim in made if claim.id not in old or old[claim.id].text != claim.text
        }
        self._exporter.change_subscriptions(client, conditions, ended, before, after)
        self._clients.tidy(client)
        return len(made), len(ended)

    def _entries_of(self, client: Client, name: str, claims: Iterable[Claim]) -> dict[str, Filter]:
        """What neighbours are told of a load as it is: all of its entries, and some subscriptions."""
        entries = {entry.key: entry.condition for entry in self._exporter.loaded_entries.of(client.id, name).values()}
        entries.update(self._exporter.entry_of(client, claim) for claim in claims)
        return entries

    def _publish_meta(self, what: str, name: str, client: str) -> None:
        config = self._context.config
        if config.meta_events:
            self._router.publish(about_load(config.broker, client, what, name))

    def restore(self, spaces: Mapping[str, Mapping[str, bytes]]) -> None:
        """Take loads back, before clients' subscriptions come back, which are counted under their entries."""
        self._loads = {name: read(value, LoadRow) for name, value in spaces.get("load", {}).items()}
        for value in spaces.get(SPACE, {}).values():
            row = read(value, LoadedEntryRow)
            self._exporter.loaded_entries.restore(row, self._context.known.parse(row.filter))
