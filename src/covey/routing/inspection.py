"""A broker seen from outside: figures for metrics, and its tables for checks. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from covey.filters.algebra import Filter
from covey.routing.by_table import ByTable

if TYPE_CHECKING:
    from covey.routing.broker import Broker


@dataclass(frozen=True, slots=True)
class LinkView:
    """One link as one end sees it."""

    peer: str
    open: bool
    in_tree: bool
    failed: bool
    filtering: bool
    outbox: int
    dropped: int
    """Events without durability for the neighbour that weren't sent, since it wasn't there or took too little."""
    unacked: int
    waits: int
    exported: ByTable[dict[str, Filter]]
    """What the neighbour must know of subscriptions and advertisements."""
    held: ByTable[dict[str, Filter]]
    """What the neighbour has told."""


@dataclass(frozen=True, slots=True)
class PruningView:
    """By what neighbours' entries are pruned, and how far."""

    dimension: str
    share: float
    """Which part of all possible prunings is done."""
    auto: bool
    """Whether both follow what the broker was measured to use."""
    settled: bool
    """Whether the share is the best that was found; else it is being tried."""
    memory: float
    bandwidth: float
    processing: float
    """What was last measured, as shares of what there is; 0 before."""


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """All clients of a broker, counted."""

    clients: int
    connected: int
    subscriptions: int
    advertisements: int
    queued: int


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """Figures of a broker."""

    broker: str
    clients: int
    connected: int
    subscriptions: int
    advertisements: int
    queued: int
    entries: int
    """Of the routing table: clients' subscriptions and tree neighbours' entries."""
    events_kept: int
    links: tuple[LinkView, ...]
    tree: tuple[tuple[str, str], ...]
    pruning: PruningView | None = None
    """None where nothing is pruned."""


def link_views(broker: Broker) -> list[LinkView]:
    """All links."""
    return [
        LinkView(
            link.peer,
            link.open,
            link.in_tree,
            link.failed,
            link.traffic.filtering,
            len(link.outbox),
            link.events.dropped,
            sum(len(outward.unacked) for outward in link.outward),
            sum(len(outward.waits) for outward in link.outward),
            ByTable(*(dict(outward.export.outcome) for outward in link.outward)),
            ByTable(*(dict(inward.holding.entries) for inward in link.inward)),
        )
        for link in broker.links.values()
    ]


def tree_links(broker: Broker) -> list[tuple[str, str]]:
    """The links of the spanning tree, as this broker sees it."""
    return sorted(broker.topology.tree())


def own_filters(broker: Broker) -> Iterator[Filter]:
    """The subscriptions of the broker's own clients."""
    return (claim.condition for client in broker.clients for claim in client.claims.subscriptions.values())


def client_figures(broker: Broker) -> ClientFigures:
    """Its clients, counted."""
    clients = list(broker.clients)
    return ClientFigures(
        len(clients),
        sum(client.up for client in clients),
        sum(len(client.claims.subscriptions) for client in clients),
        sum(len(client.claims.advertisements) for client in clients),
        sum(len(client.queue) for client in clients),
    )


def status(broker: Broker) -> BrokerStatus:
    """Figures for metrics and the console."""
    found = client_figures(broker)
    return BrokerStatus(
        broker.config.broker,
        found.clients,
        found.connected,
        found.subscriptions,
        found.advertisements,
        found.queued,
        len(broker.table),
        len(broker.events),
        tuple(link_views(broker)),
        tuple(tree_links(broker)),
        pruning_view(broker),
    )


def pruning_view(broker: Broker) -> PruningView | None:
    """What it prunes by, and why."""
    choice = broker.pruning
    if choice is None:
        return None
    used = (0.0, 0.0, 0.0) if choice.load is None else astuple(choice.load)
    return PruningView(choice.dimension, choice.share, choice.is_auto, choice.settled, *used)
