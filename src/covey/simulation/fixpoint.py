"""What must hold of brokers' tables once nothing fails and all has settled.

All brokers have the same spanning tree; every neighbour holds exactly what is exported to it; nothing waits. What is
exported over a tree link means what a fresh look at the entries behind it gives: together the same events (more, for
imperfect mergers), tried on every event of the scenarios' small world, and for the strategies with one outcome the same
filters.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

from covey.filters.algebra import Filter
from covey.relations.exact import covers, overlaps
from covey.routing.broker import Broker
from covey.routing.by_table import Table
from covey.routing.inspection import LinkView, link_views, own_filters, tree_links
from covey.routing.meta_events import CAME, META, META_FILTER, WENT
from covey.simulation.ledger import parsed
from covey.simulation.scenarios import KINDS

NEWS = [{META: what, "broker": "b00", "client": "c0", "id": "s0", "filter": "TRUE"} for what in (*CAME, *WENT)]
"""Brokers' own events."""
WORLD = [
    {name: value for name, value in (("k", kind), ("p", price)) if value is not None}
    for kind, price in product((*KINDS, "z", None), (*range(-1, 31), None))
]
"""Every event of clients that filters of scenarios can tell apart."""
_TOLD_APART = [*WORLD, *NEWS, {"client": "c0"}]

Views = dict[tuple[str, str], LinkView]


def check_fixpoint(brokers: dict[str, Broker], links: Iterable[tuple[str, str]]) -> list[str]:
    """What doesn't hold."""
    trees = {name: tree_links(broker) for name, broker in brokers.items()}
    tree = next(iter(trees.values()))
    failures = [f"{name} has another tree: {own} instead of {tree}" for name, own in trees.items() if own != tree]
    if len(tree) != len(brokers) - 1:
        failures.append(f"the tree {tree} doesn't span {len(brokers)} brokers")
    views = {(name, view.peer): view for name, broker in brokers.items() for view in link_views(broker)}
    for one, other in links:
        for near, far in ((one, other), (other, one)):
            failures += _link_failures(near, views[near, far], views[far, near], (one, other) in tree)
    failures += [f"{name} has put off {broker.behind}" for name, broker in brokers.items() if broker.behind]
    for one, other in tree:
        for near, far in ((one, other), (other, one)):
            failures += _meaning_failures(brokers[near], views, near, far)
    return failures + [failure for broker in brokers.values() for failure in total_failures(broker)]


def total_failures(broker: Broker) -> list[str]:
    """Where what is counted of a principal isn't what its clients have."""
    failures: list[str] = []
    for client in broker.clients:
        mine = [other for other in broker.clients if other.totals is client.totals]
        totals = client.totals
        counted = (totals.queue_bytes, totals.filter_bytes, *totals.claims)
        own = [[claim for other in mine for claim in other.claims[table].values() if not claim.load] for table in Table]
        texts = sum(len(claim.text) for claims in own for claim in claims)
        queued = sum(broker.events.bytes_of(row.event) for other in mine for row in other.queue)
        found = (queued, texts, *map(len, own))
        if counted != found or any(other.principal != client.principal for other in mine):
            failures.append(f"{client.principal} is counted {counted} and has {found}")
    return failures


def _link_failures(near: str, mine: LinkView, theirs: LinkView, in_tree: bool) -> list[str]:
    where = f"{near} to {mine.peer}"
    failures: list[str] = []
    if not mine.open or mine.failed:
        failures.append(f"{where}: no session")
    if mine.in_tree != in_tree:
        failures.append(f"{where}: in the tree is {mine.in_tree}, should be {in_tree}")
    if mine.outbox or mine.unacked or mine.waits:
        failures.append(f"{where}: {mine.outbox} in the outbox, {mine.unacked} deltas, {mine.waits} waits left")
    for table, told in mine.exported.by_table():
        held = theirs.held[table]
        if told != held:
            failures.append(f"{where}: table {table} exports {_texts(told)} and {mine.peer} holds {_texts(held)}")
    return failures


def _texts(entries: dict[str, Filter]) -> list[str]:
    return sorted(map(str, entries.values()))


def _meaning_failures(broker: Broker, views: Views, near: str, far: str) -> list[str]:
    config = broker.config
    if config.strategy == "flooding":
        return []
    behind = _behind(broker, views, near, far)
    exported = list(views[near, far].exported.subscriptions.values())
    wanted, told = _matched(behind.values()), _matched(exported)
    where = f"{near} to {far}"
    failures: list[str] = []
    if wanted & ~told:
        failures.append(f"{where}: an event is wanted that the exported {list(map(str, exported))} don't match")
    if told & ~wanted and not (config.strategy == "merging" and config.merging.imt):
        failures.append(f"{where}: an event is matched by {list(map(str, exported))} that nobody wants")
    if config.strategy in ("simple", "identity") and len(exported) != _distinct(behind, config.strategy):
        failures.append(f"{where}: {len(exported)} entries for {len(behind)}")
    if config.strategy == "covering":
        failures += [
            f"{where}: {one} is exported beside {other}, which covers it"
            for one, other in product(exported, exported)
            if one is not other and covers(other, one)
        ]
    return failures


def _behind(broker: Broker, views: Views, near: str, far: str) -> dict[str, Filter]:
    """The entries of all hops of a broker but one, by key: two neighbours that leave out equal filters may tell
    the same entry."""
    behind = {f"own {at}": condition for at, condition in enumerate(own_filters(broker))}
    for (name, peer), view in views.items():
        if name == near and peer != far and view.in_tree:
            behind |= view.held.subscriptions
    if broker.config.advertisements:
        advertised = views[near, far].held.advertisements.values()
        behind = {
            key: condition
            for key, condition in behind.items()
            if any(_may_meet(condition, other) for other in advertised)
        }
    return behind


def _may_meet(condition: Filter, advertised: Filter) -> bool:
    """Whether an advertised event may match; of those that brokers advertise it is known what they have."""
    if advertised == parsed(META_FILTER):
        return any(condition.matches(event) for event in NEWS)
    return overlaps(condition, advertised)


def _distinct(filters: dict[str, Filter], strategy: str) -> int:
    return len(filters) if strategy == "simple" else len({_matched_by(condition) for condition in filters.values()})


def _matched(filters: Iterable[Filter]) -> int:
    """The events of the world that match some filter, one bit each."""
    bits = 0
    for condition in filters:
        bits |= _matched_by(condition)
    return bits


@lru_cache(maxsize=20_000)
def _matched_by(condition: Filter) -> int:
    return sum(1 << at for at, event in enumerate(_TOLD_APART) if condition.matches(event))
