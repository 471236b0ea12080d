"""Five real brokers in a line that prune what their neighbours told them: figure 1 (d) to (f) of Bittner and Hinze.

The brokers are those of `covey.routing`, handed each other's messages by `covey.simulation.traffic`. Every broker has
one client, with a fifth of the subscriptions, that publishes a fifth of the events.
"""

from __future__ import annotations

from typing import Any, Final, cast

import pyarrow as pa

from covey.history import EventSample
from covey.lab.experiments import Row
from covey.lab.measuring import without_collecting
from covey.lab.pruned_tables import BROKERS, SAMPLED, dealt, match, workload
from covey.matching import Index, Statistics
from covey.relations.pruning import Dimension, Pruner
from covey.routing import PruningOptions
from covey.simulation.traffic import Network, Traffic, line

SHARES: Final = (0.0, 0.05, 0.5, 0.75)


def pruned_lines(point: Row) -> list[Row]:
    """One dimension at some shares: what the brokers forward, what they spend, how many predicates are left."""
    dimension = cast(Dimension, point["dimension"])
    rows: list[Row] = []
    with without_collecting():
        drawn, events = workload(point)
        sample = EventSample(events.slice(0, SAMPLED))
        pruner = Pruner(drawn, sample, dimension)
        for share in SHARES:
            found = publish(brokers(drawn, PruningOptions(dimension, share), sample), events)
            pruner.prune_to(round(share * pruner.total_possible))
            index = Index(statistics=Statistics(events.slice(0, SAMPLED)))
            index.add_many(pruner.filters())
            alone = match(index, events)
            rows.append(
                {
                    "prunings": share,
                    "µs an event": round(sum(found.seconds.values()) / events.num_rows * 1e6, 1),
                    "links an event": round(found.forwarded / events.num_rows, 4),
                    "links by the table alone": round(alone.forwarded / alone.events, 4),
                    "false positives": found.false_positives,
                    "deliveries": found.deliveries,
                    "neighbours' predicates": found.predicates,
                }
            )
    return rows


def brokers(drawn: list[tuple[str, Any]], pruning: PruningOptions | None, sample: EventSample) -> Network:
    """A line of brokers whose clients have subscribed."""
    network = Network(line(BROKERS), strategy="simple", check=False, pruning=pruning, chances=sample)
    for broker in range(BROKERS):
        network.join(f"c{broker + 1}", f"b{broker + 1}")
    for broker in range(BROKERS):
        network.load(f"c{broker + 1}", dealt(drawn, broker))
    return network


def publish(network: Network, events: pa.Table) -> Traffic:
    """The clients publish in turn; what passes is counted."""
    listed = [{name: value for name, value in event.items() if value is not None} for event in events.to_pylist()]
    network.publish("c1", listed[:1])
    network.reset()
    for broker in range(BROKERS):
        network.publish(f"c{broker + 1}", dealt(listed, broker))
    return network.traffic()
