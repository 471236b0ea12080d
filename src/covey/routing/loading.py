"""Loads: subscriptions and profiles that operators bring in bulk, while events flow.

A *load* is a named set of durable subscriptions of one client, as a saved index or a table has them. A load of the same
name takes the place of the one before: both are compared, and only what differs changes, in one turn. The turn's rows
are committed as a whole, so after a crash the broker has the old load or the new one. What the client subscribed to by
itself stays as it is.

With a load may come a *compacted table* (`covey compact`, `covey spark compact`): fewer entries, each standing for some
of the subscriptions. Neighbours are then told the entries, so that the broker needn't find out for itself what covers
what. That is advice, and it is checked: an entry counts for the subscriptions that it certainly covers, and every other
subscription is told by itself. Whatever the table says, no event is lost; and since clients are matched by their own
subscriptions, an entry that is too wide costs traffic and no false delivery.

A *profile* says how likely filters are to match. It takes the place of the one in the configuration: imperfect mergers
are judged anew, prunings are chosen anew, and the index over the routing table is built anew with orders by the new
events.

What is costly and can't change anything (parsing, comparing entries with subscriptions) is done by `prepare`, which
needs no broker and so can run beside one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from covey.errors import CoveyError
from covey.filters.algebra import Filter
from covey.history import Profile
from covey.history.files import from_bytes
from covey.routing.clients import Claim, Client
from covey.routing.config import BrokerConfig
from covey.routing.exporting import META
from covey.routing.exports import subscription_stages
from covey.routing.journal import read
from covey.routing.known_filters import KnownFilters
from covey.routing.messages import (
    SUBSCRIPTIONS,
    Confirmed,
    Load,
    LoadedSubscription,
    LoadProfile,
    Publication,
    Refused,
    Unload,
)
from covey.routing.requests import Requests
from covey.routing.standing import SPACE as STANDING
from covey.routing.standing import StandingRow
from covey.routing.tables import PrunedTable

PART: Final = 1 << 19
"""Bytes of a profile in one row of the journal."""


class LoadError(CoveyError):
    """A load that can't be used."""


class LoadRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a load beside its subscriptions and entries."""

    client: str
    version: int
    loaded_at: float
    made: int
    ended: int


class ProfileRow(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a profile beside its parts."""

    name: str
    parts: int
    loaded_at: float


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An entry of a compacted table."""

    id: str
    filter: str
    stands_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadView:
    """A load as operators see it."""

    name: str
    client: str
    version: int
    loaded_at: float
    made: int
    """Subscriptions that this version brought or changed."""
    ended: int
    """Subscriptions that it ended."""
    subscriptions: int
    told: int
    """What neighbours must know of it: entries, and subscriptions that none stands for."""
    entries: int


def prepare(
    config: BrokerConfig,
    name: str,
    client: str,
    subscriptions: Iterable[tuple[str, str]],
    entries: Iterable[TableEntry] = (),
) -> Load:
    """Read a load's filters, and find out which entries stand for which subscriptions. Changes nothing, so it can run
    in a thread of its own. Raises LoadError for what can't be used."""
    known = KnownFilters(config.semantics, config.defaults, config.schema, config.limits.filters)
    most = config.limits.loaded_subscriptions
    found: dict[str, LoadedSubscription] = {}
    for number, (id, text) in enumerate(subscriptions):
        if number >= most:
            raise LoadError(f"load {name!r} has more than {most:,} subscriptions; loaded_subscriptions is the limit")
        if not id:
            raise LoadError(f"load {name!r}: subscription {number + 1} has no id")
        if id in found:
            raise LoadError(f"load {name!r}: two subscriptions have the id {id!r}")
        found[id] = LoadedSubscription(text, _parsed(known, f"load {name!r}: subscription {id!r}", text))
    standing: dict[str, tuple[str, Filter]] = {}
    for entry in entries:
        if len(standing) >= most:
            raise LoadError(f"load {name!r} has more than {most:,} entries; loaded_subscriptions is the limit")
        if not entry.id or entry.id in standing:
            raise LoadError(f"load {name!r}: the compacted table has two entries {entry.id!r}, or one without an id")
        condition = _parsed(known, f"load {name!r}: entry {entry.id!r}", entry.filter)
        standing[entry.id] = (entry.filter, condition)
        for id in entry.stands_for:
            one = found.get(id)
            if one is not None and not one.under and _stands_for(known, condition, one.condition):
                found[id] = msgspec.structs.replace(one, under=entry.id)
    used = {one.under for one in found.values()}
    return Load(0, name, client, found, {id: entry for id, entry in standing.items() if id in used})


def prepare_profile(config: BrokerConfig, name: str, file: bytes) -> LoadProfile:
    """Read a profile's file. Raises LoadError for one that can't be used."""
    most = config.limits.profile_bytes
    if len(file) > most:
        raise LoadError(f"profile {name!r} has {len(file):,} bytes; profile_bytes is {most:,}")
    try:
        profile = from_bytes(file, name)
    except CoveyError:
        raise
    except Exception as error:
        raise LoadError(f"{name}: not a covey profile: {error}") from None
    if profile.events is None:
        raise LoadError(f"{name}: this profile has seen no events; profile some")
    return LoadProfile(0, name, profile, file)


def _parsed(known: KnownFilters, where: str, text: str) -> Filter:
    try:
        return known.parse(text)
    except CoveyError as error:
        raise LoadError(f"{where}: {str(error).splitlines()[0]}") from None


def _stands_for(known: KnownFilters, entry: Filter, condition: Filter) -> bool:
    return entry == condition or known.covers(entry, condition)


class Loading(Requests):
    """Does what operators ask for."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self._loads: dict[str, LoadRow] = {}
        self.profile: ProfileRow | None = None
        self._client_handlers |= {Load: self._load, Unload: self._unload, LoadProfile: self._load_profile}

    def loads(self) -> list[LoadView]:
        """All loads, by name."""
        return [self._view(name, row) for name, row in sorted(self._loads.items())]

    def _view(self, name: str, row: LoadRow) -> LoadView:
        client = self.clients.get(row.client)
        claims = [] if client is None else [one for one in client.claims[SUBSCRIPTIONS].values() if one.load == name]
        entries = len(self.standing.of(row.client, name))
        alone = sum(1 for claim in claims if not claim.under)
        return LoadView(
            name, row.client, row.version, row.loaded_at, row.made, row.ended, len(claims), alone + entries, entries
        )

    # Subscriptions

    def _load(self, operator: Client, message: Load) -> None:
        refusal = self._refusal(message)
        if refusal is not None:
            self.clients.send(operator, Refused(message.request, refusal))
            return
        before = self._loads.get(message.name)
        if before is not None and before.client != message.client:
            self._replace(message.name, before.client, {}, {})
        made, ended = self._replace(message.name, message.client, message.subscriptions, message.entries)
        version = 1 if before is None else before.version + 1
        row = self._loads[message.name] = LoadRow(message.client, version, self._turn.now, made, ended)
        self._turn.out.put("load", message.name, row)
        self._tell_loaded("loaded", message.name, message.client)
        self._confirm_when_settled(operator, SUBSCRIPTIONS, message.request)

    def _refusal(self, message: Load) -> str | None:
        limits = self.config.limits
        if not message.name or not message.client:
            return "a load needs a name and a client"
        if message.name not in self._loads and len(self._loads) >= limits.loads:
            return f"there are {limits.loads:,} loads already (loads); drop some of them first"
        if len(message.subscriptions) > limits.loaded_subscriptions:
            return (
                f"{len(message.subscriptions):,} subscriptions; loaded_subscriptions is {limits.loaded_subscriptions:,}"
            )
        client = self.clients.get(message.client)
        own = {} if client is None else client.claims[SUBSCRIPTIONS]
        for id in message.subscriptions:
            if id in own and own[id].load != message.name:
                other = f"the load {own[id].load!r}" if own[id].load else "the client itself"
                return f"the client {message.client!r} has a subscription {id!r} from {other}; use other ids"
        return None

    def _unload(self, operator: Client, message: Unload) -> None:
        row = self._loads.pop(message.name, None)
        if row is None:
            self.clients.send(operator, Refused(message.request, f"there is no load {message.name!r}"))
            return
        self._replace(message.name, row.client, {}, {})
        self._turn.out.drop("load", message.name)
        self._tell_loaded("unloaded", message.name, row.client)
        self._confirm_when_settled(operator, SUBSCRIPTIONS, message.request)

    def _replace(
        self,
        name: str,
        client_name: str,
        subscriptions: Mapping[str, LoadedSubscription],
        entries: Mapping[str, tuple[str, Filter]],
    ) -> tuple[int, int]:
        """Bring a client's loaded subscriptions to these, in tables, exports and the journal; how many were made or
        changed, and how many ended."""
        client = self.clients.get(client_name) or Client(client_name)
        old = {id: claim for id, claim in client.claims[SUBSCRIPTIONS].items() if claim.load == name}
        ended = [id for id in old if id not in subscriptions]
        made = [
            Claim(id, one.filter, one.condition, True, load=name, under=one.under)
            for id, one in subscriptions.items()
            if id not in old or (old[id].text, old[id].under) != (one.filter, one.under)
        ]
        changed = [*ended, *(claim.id for claim in made if claim.id in old)]
        before = self._entries_told(client, name, [old[id] for id in changed])
        self.clients.change_many(client, ended, made)
        counts = Counter(one.under for one in subscriptions.values())
        self.standing.replace(
            client.id,
            name,
            [(StandingRow(client.id, name, id, text), one, counts[id]) for id, (text, one) in entries.items()],
        )
        after = self._entries_told(client, name, made)
        conditions = {
            claim.id: claim.condition for claim in made if claim.id not in old or old[claim.id].text != claim.text
        }
        self.table.change_many(client.hop, conditions, ended)
        added = {key: condition for key, condition in after.items() if key not in before}
        self._export(SUBSCRIPTIONS, client.hop, added, [key for key in before if key not in after])
        self.clients.tidy(client)
        return len(made), len(ended)

    def _entries_told(self, client: Client, name: str, claims: Iterable[Claim]) -> dict[str, Filter]:
        """What neighbours hear of a load as it is: all of its entries, and some subscriptions."""
        told = {entry.key: entry.condition for entry in self.standing.of(client.id, name).values()}
        told.update(self._told(client, claim) for claim in claims)
        return told

    def _tell_loaded(self, what: str, name: str, client: str) -> None:
        if self.config.meta_events:
            attributes = {META: what, "broker": self.config.broker, "client": client, "id": name}
            self._originate("covey", [Publication(attributes)])

    # Profiles

    def _load_profile(self, operator: Client, message: LoadProfile) -> None:
        before = 0 if self.profile is None else self.profile.parts
        parts = [message.file[at : at + PART] for at in range(0, len(message.file), PART)]
        for number, part in enumerate(parts):
            self._turn.out.put("profile_part", _part_key(number), part)
        for number in range(len(parts), before):
            self._turn.out.drop("profile_part", _part_key(number))
        self.profile = ProfileRow(message.name, len(parts), self._turn.now)
        self._turn.out.put("profile", "row", self.profile)
        self._judge_by(message.profile)
        for link in self.links.values():
            if link.in_tree and self.config.strategy == "merging":
                stages = subscription_stages(self.config, self._known)
                link.outward[SUBSCRIPTIONS].export.restage(stages, self._turn.now)
            if link.in_tree and self._pruned is not None:
                self._pruned.change_many(link.hop, link.inward[SUBSCRIPTIONS].holding.entries, ())
        self.table.rebuild()
        self.clients.send(operator, Confirmed(message.request))

    def _judge_by(self, profile: Profile) -> None:
        self.config = replace(self.config, chances=profile)
        for link in self.links.values():
            link.config = self.config
        self._known.statistics = profile.statistics()
        if self.config.pruning is not None:
            self._pruned = PrunedTable(self.table, self._known, self.config.pruning, profile)

    # Restoring

    def _restore_profile(self, spaces: Mapping[str, Mapping[str, bytes]]) -> None:
        """Before links are made, so that they are judged by it from the start."""
        rows = spaces.get("profile", {})
        if "row" not in rows:
            return
        self.profile = read(rows["row"], ProfileRow)
        kept = spaces["profile_part"]
        file = b"".join(read(kept[_part_key(number)], bytes) for number in range(self.profile.parts))
        self._judge_by(from_bytes(file, self.profile.name))

    def _restore_loads(self, spaces: Mapping[str, Mapping[str, bytes]]) -> None:
        """Before clients' subscriptions come back, which are counted under their entries."""
        self._loads = {name: read(value, LoadRow) for name, value in spaces.get("load", {}).items()}
        for value in spaces.get(STANDING, {}).values():
            row = read(value, StandingRow)
            self.standing.restore(row, self._known.parse(row.filter))


def _part_key(number: int) -> str:
    return f"{number:06d}"
