"""Entries: from the hop that asked for them to the routing table and the exports of other tree neighbours (rule 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from covey.filters.algebra import Filter
from covey.relations.pruning.control import Load
from covey.routing.by_table import Table
from covey.routing.client import Claim, Client, entry_key
from covey.routing.clients import Clients
from covey.routing.config import BrokerConfig, MergingOptions, PruningOptions, SubsumptionOptions
from covey.routing.context import Context
from covey.routing.links import Link
from covey.routing.loaded_entries import LoadedEntries
from covey.routing.messages import Entry, Measured, Reroute
from covey.routing.meta_events import META, META_FILTER
from covey.routing.pruning_choice import PruningChoice
from covey.routing.routing_table import PrunedTable, RoutingTable
from covey.routing.strategies import PLANS, advertisement_stages, subscription_stages
from covey.routing.undo import Remembered, RememberedDict, repair

DEPARTED: Final = 100_000
"""Claims that ended with their sessions and are still in tables, at most; more of them go at once."""
DEPARTED_STEPS: Final = 5
"""Steps that taking one out counts as."""
DEPARTED_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class _Departed:
    """What is left in tables of a session that had many claims."""

    client: Client
    table: Table
    claims: dict[str, Claim]


class Exporter(Remembered):
    """Keeps the routing table and all exports at what hops ask for.

    Owns the loaded entries, the prunings, and claims that ended and are still in tables: a session can end with more of
    them than others should wait for, and nobody waits for their end. May touch the routing table (which the router
    reads), and of each link the holding and the exports; reads clients' claims.
    """

    def __init__(self, context: Context, table: RoutingTable, clients: Clients, links: Mapping[str, Link]) -> None:
        self.loaded_entries = LoadedEntries(context.config.broker, context.turn)
        self._context = context
        self._table = table
        self._clients = clients
        self._links = links
        self._pruned: PrunedTable | None = None
        options = context.config.pruning
        self.pruning = None if options is None else PruningChoice(options)
        """By what, and how far; None where nothing is pruned."""
        self._departed: dict[tuple[str, Table], _Departed] = {}
        self._departed_count = 0
        self._choose_prunings()

    # Neighbours' entries

    def hold(self, link: Link, table: Table, added: list[tuple[Entry, Filter]], removed: list[str]) -> None:
        """A neighbour's entries change: the holding, the journal, and if the link is in the tree, all that follows."""
        holding, out = link.inward[table].holding, self._context.turn.out
        removed = [key for key in removed if key in holding.entries]
        news = {entry.key: condition for entry, condition in added if holding.entries.get(entry.key) != condition}
        for key in removed:
            holding.remove(key)
            out.drop("entry", f"{link.peer}/{table:d}/{key}")
        for entry, condition in added:
            if entry.key in news:
                holding.add(entry, condition)
                out.put("entry", f"{link.peer}/{table:d}/{entry.key}", entry)
        if link.in_tree:
            self.use(link, table, news, removed)

    def use(self, link: Link, table: Table, added: dict[str, Filter], removed: Iterable[str]) -> None:
        """Entries of a tree neighbour count from now on, or no longer."""
        if table is Table.SUBSCRIPTIONS:
            if self._pruned is not None:
                repair(self, self._prune_anew)
                self._pruned.change_many(link.hop, added, removed)
            else:
                self._table.change_many(link.hop, added, removed)
        else:
            held = link.inward.advertisements.holding.entries if link.in_tree else {}
            link.outward.subscriptions.export.advertise(held, self._context.turn.now)
        self.export(table, link.hop, added, removed)

    # Clients' entries

    def change_claims(self, client: Client, table: Table, changes: Sequence[tuple[Claim | None, Claim | None]]) -> None:
        """A client's subscriptions or advertisements, of different ids, came, went or became others."""
        changes = self._come_again(client, table, changes)
        if table is Table.SUBSCRIPTIONS:
            ended = [old.id for old, _ in changes if old is not None]
            self._table.change_many(client.hop, {new.id: new.condition for _, new in changes if new is not None}, ended)
        added = dict([self.entry_of(client, new) for _, new in changes if new is not None])
        removed = [key for old, _ in changes if old is not None for key in self._leave(client, old)]
        self.export(table, client.hop, added, removed)

    def end_claims(self, client: Client, table: Table, claims: Sequence[Claim]) -> None:
        """A client's subscriptions, or advertisements, went with its session; many of them when there is time."""
        if len(claims) <= self._context.config.limits.request_entries or self._departed_count + len(claims) > DEPARTED:
            self._end_now(client, table, claims)
            return
        departed = self._departed.setdefault((client.id, table), _Departed(client, table, RememberedDict()))
        departed.claims.update([(claim.id, claim) for claim in claims])
        self._departed_count += len(claims)

    def _end_now(self, client: Client, table: Table, claims: Sequence[Claim]) -> None:
        if not claims:
            return
        if table is Table.SUBSCRIPTIONS:
            self._table.change_many(client.hop, {}, [claim.id for claim in claims])
        self.export(table, client.hop, {}, [key for claim in claims for key in self._leave(client, claim)])

    def change_subscriptions(
        self, client: Client, conditions: dict[str, Filter], ended: list[str], before: Mapping[str, Filter],
        after: Mapping[str, Filter],
    ) -> None:  # fmt: skip
        """Many of a client's subscriptions changed, and with them the entries that neighbours are told."""
        self._depart(client.id, Table.SUBSCRIPTIONS, DEPARTED)
        self._table.change_many(client.hop, conditions, ended)
        added = {key: condition for key, condition in after.items() if key not in before}
        self.export(Table.SUBSCRIPTIONS, client.hop, added, [key for key in before if key not in after])

    def _come_again(
        self, client: Client, table: Table, changes: Sequence[tuple[Claim | None, Claim | None]]
    ) -> Sequence[tuple[Claim | None, Claim | None]]:
        """Changes as tables see them, which may still have what ended with the client's session before."""
        departed = self._departed.get((client.id, table))
        if departed is None:
            return changes
        seen: list[tuple[Claim | None, Claim | None]] = []
        for old, new in changes:
            ended = None if old is not None or new is None else departed.claims.pop(new.id, None)
            if ended is None:
                seen.append((old, new))
                continue
            self._departed_count -= 1
            if new is not None and new.text != ended.text:
                seen.append((ended, new))
        self._tidy_departed(departed)
        return seen

    def _depart(self, client: str, table: Table, most: int) -> None:
        """Take so many of a client's claims that ended out of tables."""
        departed = self._departed.get((client, table))
        if departed is None:
            return
        claims = list(islice(departed.claims.values(), most))
        for claim in claims:
            del departed.claims[claim.id]
        self._departed_count -= len(claims)
        self._tidy_departed(departed)
        self._end_now(departed.client, table, claims)

    def _tidy_departed(self, departed: _Departed) -> None:
        if not departed.claims:
            del self._departed[departed.client.id, departed.table]

    def entry_of(self, client: Client, claim: Claim) -> tuple[str, Filter]:
        """What neighbours are told of a claim: itself, or the loaded entry that stands for it."""
        entry = self.loaded_entries.get(client.id, claim)
        if entry is not None:
            return entry.key, entry.condition
        return entry_key(self._context.config.broker, client.id, claim.id, claim.text), claim.condition

    def _leave(self, client: Client, claim: Claim) -> list[str]:
        """The keys that go with a claim; none while the entry that stands for it stands for others."""
        key, _ = self.entry_of(client, claim)
        return [key] if self.loaded_entries.leave(client.id, claim) else []

    # Exports

    def export(self, table: Table, hop: str, added: dict[str, Filter], removed: Iterable[str]) -> None:
        """A hop's entries changed: the exports for all tree neighbours but itself follow."""
        if not self._travels(table):
            return
        named = {f"{hop}\n{key}": condition for key, condition in added.items()}
        gone = [f"{hop}\n{key}" for key in removed]
        for link in self._links.values():
            if link.in_tree and link.hop != hop:
                link.outward[table].export.change(named, gone, self._context.turn.now)

    def entries_for(self, table: Table, link: Link) -> dict[str, Filter]:
        """The entries of all hops but a neighbour."""
        if not self._travels(table):
            return {}
        entries: dict[str, Filter] = {}
        if table is Table.ADVERTISEMENTS and self._context.config.meta_events:
            entries[META] = self._context.known.parse(META_FILTER)
        for client in self._clients:
            for claim in client.claims[table].values():
                key, condition = self.entry_of(client, claim)
                entries[f"{client.hop}\n{key}"] = condition
        for other in self._links.values():
            if other.in_tree and other is not link:
                for key, condition in other.inward[table].holding.entries.items():
                    entries[f"{other.hop}\n{key}"] = condition
        return entries

    def _travels(self, table: Table) -> bool:
        config = self._context.config
        return not PLANS[config.strategy].floods and (table is Table.SUBSCRIPTIONS or config.advertisements)

    # How the broker routes

    def reroute(self, input: Reroute) -> None:
        """Route in another way from now on: exports get other stages, prunings are chosen anew, or filtering goes on
        everywhere."""
        before, now = self._context.config, self._context.turn.now
        config = self._context.config = replace(
            before, strategy=input.strategy, merging=input.merging, subsumption=input.subsumption,
            pruning=input.pruning, adaptive=input.adaptive,
        )  # fmt: skip
        assert PLANS[before.strategy].floods == PLANS[config.strategy].floods, "neighbours wouldn't know"
        for link in self._links.values():
            if _staged_by(config) != _staged_by(before):
                link.outward.subscriptions.export.restage(lambda: subscription_stages(config, self._context.known), now)
            if config.merging.advertisements != before.merging.advertisements:
                link.outward.advertisements.export.restage(
                    lambda: advertisement_stages(config, self._context.known), now
                )
            if config.adaptive is None:
                link.traffic.filtering = True
        if config.adaptive is None:
            self._table.leave_out(frozenset())
        if config.pruning != before.pruning:
            self._prune_otherwise(config.pruning)

    def _prune_otherwise(self, options: PruningOptions | None) -> None:
        repair(self, self._prune_anew)
        self.pruning = None if options is None else PruningChoice(options)
        self._pruned = None
        self._prune_anew()
        if self._pruned is None:
            for link in self._links.values():
                if link.in_tree:
                    self._table.change_many(link.hop, link.inward.subscriptions.holding.entries, ())

    # What is known of events

    def judge_anew(self) -> None:
        """What is known of events has changed: choose mergers, prunings and the index's orders anew."""
        config, now = self._context.config, self._context.turn.now
        repair(self, self._prune_anew)
        self._choose_prunings()
        for link in self._links.values():
            if PLANS[config.strategy].judges:
                link.outward.subscriptions.export.restage(lambda: subscription_stages(config, self._context.known), now)
            if link.in_tree and self._pruned is not None:
                self._pruned.change_many(link.hop, link.inward.subscriptions.holding.entries, ())
        self._table.rebuild()

    def _choose_prunings(self) -> None:
        config = self._context.config
        if self.pruning is not None and config.chances is not None:
            self._pruned = PrunedTable(self._table, self._context.known, self.pruning, config.chances)

    def measure(self, input: Measured) -> None:
        """What the broker uses of its resources decides what is pruned by, and when mergers are made."""
        self._context.known.bandwidth = input.bytes_a_second
        if self.pruning is None or self._pruned is None:
            return
        before = self.pruning.dimension
        if self.pruning.measure(Load(input.memory, input.bandwidth, input.processing)):
            repair(self, self._prune_anew)
            if self.pruning.dimension != before:
                self._prune_anew()
            self._pruned.choose_anew()

    def follow_filtering(self) -> None:
        """Entries of neighbours that filtering is off for needn't be matched: they get all events (R5). Those of others
        must be, before the next event."""
        if self._context.config.adaptive is not None:
            everything = (link.hop for link in self._links.values() if not link.traffic.filtering)
            self._table.leave_out(frozenset(everything))

    # What is put off

    @property
    def behind(self) -> int:
        """How much was put off."""
        behind = sum(outward.export.behind for link in self._links.values() for outward in link.outward)
        return behind + self._departed_count + (self._pruned is not None and self._pruned.waits)

    def work(self) -> None:
        """Do what was put off, as far as the budget goes."""
        budget = self._context.known.budget
        while self._departed and budget.left > 0:
            client, table = next(iter(self._departed))
            budget.spend(DEPARTED_STEPS * min(DEPARTED_TOGETHER, self._departed_count))
            self._depart(client, table, DEPARTED_TOGETHER)
        for link in self._links.values():
            for outward in link.outward:
                if outward.export.behind:
                    outward.export.work(self._context.turn.now)

    def _prune_anew(self) -> None:
        """Neighbours' entries are what they were before this turn: choose prunings of these."""
        self._choose_prunings()
        if self._pruned is not None:
            for link in self._links.values():
                if link.in_tree:
                    self._pruned.change_many(link.hop, link.inward.subscriptions.holding.entries, ())

    def refresh(self) -> None:
        """At the end of a turn: leave out of matching what adaptive filtering spares, and choose prunings anew where
        enough has changed."""
        self.follow_filtering()
        if self._pruned is not None and (self._pruned.is_due or self._pruned.waits):
            repair(self, self._prune_anew)
            self._pruned.refresh()


def _staged_by(config: BrokerConfig) -> tuple[str, MergingOptions | None, SubsumptionOptions | None]:
    """What the stages of subscriptions follow from."""
    strategy = config.strategy
    merging = config.merging if strategy == "merging" else None
    return strategy, merging, config.subsumption if strategy == "subsumption" else None
