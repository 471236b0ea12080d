"""Loads: subscriptions that operators bring in bulk, while events flow.

A *load* is a named set of durable subscriptions of one client, as a saved index or a table has them. A load of the same
name takes the place of the one before: both are compared, and only what differs changes. After a crash the broker has
the old load or the new one. What the client subscribed to by itself stays as it is.

A small load is one turn. One of many subscriptions is made in pieces, when there is time (`Work`), so that events go on
meanwhile: it is written down (`load_parts.py`), begins, is made, and is confirmed in the end. Until then a client may
get events of some of its subscriptions, and may replace one of them by its own, which then stays.

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
from typing import Final

from covey.filters.algebra import Filter
from covey.routing.by_table import Table
from covey.routing.client import Claim, Client
from covey.routing.clients import Clients
from covey.routing.context import Context
from covey.routing.exporter import Exporter
from covey.routing.journal import read
from covey.routing.load_parts import LOADING, PART, PARTS, LoadingRow, LoadRow, PartRow, part_key
from covey.routing.loaded_entries import SPACE, LoadedEntryRow
from covey.routing.loading import LoadView
from covey.routing.messages import Load, LoadedSubscription, Refused, Unload
from covey.routing.meta_events import about_load
from covey.routing.requests import Requests
from covey.routing.router import Router
from covey.routing.undo import Remembered

TOGETHER: Final = 64
"""Subscriptions of a large load that are made in one piece."""
MAKING_STEPS: Final = 15
"""Steps that making one of them counts as, or ending one."""
WRITING_STEPS: Final = 1
"""Steps that writing one down counts as."""


class _Loading(Remembered):
    """A large load on its way."""

    def __init__(self, operator: Client, message: Load) -> None:
        self.operator = operator
        self.session = operator.session
        self.message = message
        self.ids = tuple(message.subscriptions)
        self.ended: tuple[str, ...] = ()
        self.row: LoadRow | None = None
        """What is kept of it in the end; None until it has begun."""
        self.written = 0
        self.changed = 0
        """How many of `ids` differ from the load before, as far as they are written down."""
        self.done = 0
        """How many of `ids`, and of `ended` behind them, tables have."""

    @property
    def left(self) -> int:
        """What is to be done, in subscriptions to write down, make or end, and one to finish."""
        return len(self.ids) - self.written + len(self.ids) + len(self.ended) - self.done + 1


class Loads(Remembered):
    """Does what operators ask for.

    Owns what is known of each load, and the one that is on its way; its subscriptions are claims of its client, its
    entries are the exporter's. Changes clients through `Clients`, tables and exports through `Exporter`; `Requests`
    confirms.
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
        self._loading: _Loading | None = None
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
        self._finish_now()
        refusal = self._refusal(message)
        if refusal is not None:
            self._clients.send(operator, Refused(message.request, refusal))
            return
        before = self._loads.get(message.name)
        if self._is_large(before, message):
            self._loading = _Loading(operator, message)
            return
        if before is not None and before.client != message.client:
            self._replace(message.name, before.client, {}, {})
        made, ended = self._replace(
            message.name, message.client, message.subscriptions, message.entries, message.allowed
        )
        self._keep(message.name, self._row(message, made, ended))
        self._requests.confirm_when_settled(operator, Table.SUBSCRIPTIONS, message.request)

    def _row(self, message: Load, made: int, ended: int) -> LoadRow:
        before = self._loads.get(message.name)
        version = 1 if before is None else before.version + 1
        return LoadRow(message.client, version, self._context.turn.now, made, ended)

    def _keep(self, name: str, row: LoadRow) -> None:
        self._loads[name] = row
        self._context.turn.out.put("load", name, row)
        self._publish_meta("loaded", name, row.client)

    # Large ones

    def _is_large(self, before: LoadRow | None, message: Load) -> bool:
        """Whether a load is made in pieces. One with a compacted table isn't: what entries stand for changes as a
        whole."""
        size = len(message.subscriptions)
        if before is not None:
            size += sum([claim.load == message.name for claim in self._claims(message.client).values()])
        has_entries = message.entries or self._exporter.loaded_entries.of(message.client, message.name)
        is_at_home = before is None or before.client == message.client
        return size > self._context.config.limits.request_entries and is_at_home and not has_entries

    @property
    def behind(self) -> int:
        """How much of a large load is to be done."""
        return 0 if self._loading is None else self._loading.left

    def work(self) -> None:
        """Get on with a large load, as far as the budget goes."""
        budget = self._context.known.budget
        while self._loading is not None and budget.left > 0:
            self._advance(self._loading)

    def _finish_now(self) -> None:
        """Whoever comes next must see what a load before it has done."""
        while self._loading is not None:
            self._advance(self._loading)

    def _advance(self, loading: _Loading) -> None:
        """One piece, whose steps are spent before what exports make of it may take the rest."""
        if loading.written < len(loading.ids):
            self._write_part(loading)
        elif loading.row is None:
            self._begin(loading)
        elif loading.done < len(loading.ids):
            self._make(loading)
        elif loading.done < len(loading.ids) + len(loading.ended):
            self._end(loading)
        else:
            self._finish(loading)

    def _spend(self, steps: int) -> None:
        self._context.known.budget.spend(steps)

    def _write_part(self, loading: _Loading) -> None:
        message, out = loading.message, self._context.turn.out
        ids = loading.ids[loading.written : loading.written + PART]
        rows = [(id, message.subscriptions[id].filter) for id in ids]
        out.put(PARTS, part_key(message.name, loading.written // PART), PartRow(message.name, rows))
        loading.changed += sum(1 for id in ids if self._differs(message, id))
        loading.written += len(ids)
        self._spend(WRITING_STEPS * len(ids))

    def _begin(self, loading: _Loading) -> None:
        message = loading.message
        claims = self._claims(message.client)
        loading.ended = tuple(
            [id for id, claim in claims.items() if claim.load == message.name and id not in message.subscriptions]
        )
        loading.row = self._row(message, loading.changed, len(loading.ended))
        parts = -(-len(loading.ids) // PART)
        self._context.turn.out.put(LOADING, message.name, LoadingRow(loading.row, message.allowed, parts))
        self._spend(WRITING_STEPS * (len(loading.ids) + len(claims)) // 10)

    def _make(self, loading: _Loading) -> None:
        message = loading.message
        ids = loading.ids[loading.done : loading.done + TOGETHER]
        self._spend(MAKING_STEPS * len(ids))
        claims = self._claims(message.client)
        wanted = {
            id: message.subscriptions[id]
            for id in ids
            if (id not in claims or claims[id].load == message.name) and self._differs(message, id)
        }
        self._change(message.name, message.client, wanted, [], message.allowed)
        loading.done += len(ids)

    def _end(self, loading: _Loading) -> None:
        message, first = loading.message, loading.done - len(loading.ids)
        ids = loading.ended[first : first + TOGETHER]
        self._spend(MAKING_STEPS * len(ids))
        claims = self._claims(message.client)
        self._change(
            message.name, message.client, {}, [id for id in ids if id in claims and claims[id].load == message.name]
        )
        loading.done += len(ids)

    def _finish(self, loading: _Loading) -> None:
        message, out = loading.message, self._context.turn.out
        assert loading.row is not None
        for first in range(0, len(loading.ids), PART):
            out.drop(PARTS, part_key(message.name, first // PART))
        out.drop(LOADING, message.name)
        self._keep(message.name, loading.row)
        self._loading = None
        if loading.operator.session == loading.session:
            self._requests.confirm_when_settled(loading.operator, Table.SUBSCRIPTIONS, message.request)
        self._spend(WRITING_STEPS * len(loading.ids) // PART)

    def _claims(self, client: str) -> Mapping[str, Claim]:
        found = self._clients.get(client)
        return {} if found is None else found.claims.subscriptions

    def _differs(self, message: Load, id: str) -> bool:
        """Whether a subscription of a large load isn't there as it is in it."""
        claim, asked = self._claims(message.client).get(id), message.subscriptions[id]
        return claim is None or (claim.text, claim.under, claim.within) != (asked.filter, "", message.allowed)

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
        self._finish_now()
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
        old = {id: claim for id, claim in self._claims(client_name).items() if claim.load == name}
        ended = [id for id in old if id not in subscriptions]
        wanted = {
            id: asked
            for id, asked in subscriptions.items()
            if id not in old or (old[id].text, old[id].under, old[id].within) != (asked.filter, asked.under, allowed)
        }
        counts = Counter(asked.under for asked in subscriptions.values())
        rows = [
            (LoadedEntryRow(client_name, name, id, text), condition, counts[id])
            for id, (text, condition) in entries.items()
        ]
        self._change(name, client_name, wanted, ended, allowed, rows)
        return len(wanted), len(ended)

    def _change(
        self,
        name: str,
        client_name: str,
        wanted: Mapping[str, LoadedSubscription],
        ended: list[str],
        allowed: str | None = None,
        entries: Iterable[tuple[LoadedEntryRow, Filter, int]] = (),
    ) -> None:
        """Make some of a client's loaded subscriptions and end others; what stands for them is `entries` then."""
        client = self._clients.get(client_name) or Client(client_name)
        held = client.claims.subscriptions
        old = {id: held[id] for id in (*ended, *wanted) if id in held}
        made = [
            Claim(id, asked.filter, asked.condition, True, load=name, under=asked.under, within=allowed)
            for id, asked in wanted.items()
        ]
        changed = [*ended, *(claim.id for claim in made if claim.id in old)]
        before = self._entries_of(client, name, [old[id] for id in changed])
        self._clients.change_many(client, ended, made)
        self._exporter.loaded_entries.replace(client.id, name, entries)
        after = self._entries_of(client, name, made)
        conditions = {
            claim.id: claim.condition for claim in made if claim.id not in old or old[claim.id].text != claim.text
        }
        self._exporter.change_subscriptions(client, conditions, ended, before, after)
        self._clients.tidy(client)

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
