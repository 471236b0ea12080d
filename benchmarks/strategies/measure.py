"""One strategy at a time: the same brokers, clients, subscriptions and quotes, and what passes between brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.strategies.workload import Workload, space
from covey.history import EventSample
from covey.matching import Index
from covey.routing import AdaptiveFiltering, MergingOptions, PruningOptions, SubsumptionOptions
from covey.simulation.traffic import Network, Traffic, tree

BROKERS: Final = 7
PLACES: Final = {"north": "b4", "south": "b7"}
"""Where the exchanges publish: two leaves of the tree, in different halves."""
IMT: Final = 0.1
SHARE: Final = 0.5
"""Of all possible prunings."""
MERGING_TIME: Final = 61.0
"""Seconds that pass before quotes come: merging by the clock happens at least once."""
MANY: Final = 3.4
"""Times the subscriptions, so that most events are wanted beyond most links."""
ROUNDS: Final = 3
ADAPTIVE: Final = AdaptiveFiltering(stop_above=0.5, ask_above=0.6, sample=50)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A name for the table, and options of BrokerConfig."""

    name: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one strategy did."""

    name: str
    subscribing: Traffic
    publishing: Traffic
    seconds: float

    @property
    def handling(self) -> tuple[float, float]:
        """Processor time of all brokers, for subscriptions and for quotes."""
        return sum(self.subscribing.seconds.values()), sum(self.publishing.seconds.values())


def strategies(workload: Workload) -> Iterator[Strategy]:
    """All strategies, each without and with advertisements."""
    sample = EventSample(workload.sample)
    exact, near = (SubsumptionOptions(space(), approximate=approximate) for approximate in (False, True))
    listed = [
        Strategy("flooding", {"strategy": "flooding"}),
        Strategy("simple", {"strategy": "simple"}),
        Strategy("identity", {"strategy": "identity"}),
        Strategy("covering", {"strategy": "covering"}),
        Strategy("perfect merging", {"strategy": "merging"}),
        Strategy(
            f"imperfect merging, {IMT:g}",
            {"strategy": "merging", "merging": MergingOptions(imt=IMT), "chances": sample},
        ),
        Strategy("subsumption", {"strategy": "subsumption", "subsumption": exact}),
        Strategy("subsumption, approximate", {"strategy": "subsumption", "subsumption": near}),
        *(
            Strategy(
                f"covering, pruned for {dimension}",
                {"strategy": "covering", "pruning": PruningOptions(dimension, SHARE), "chances": sample},
            )
            for dimension in ("network", "memory", "throughput")
        ),
        Strategy("covering, adaptive filtering", {"strategy": "covering", "adaptive": ADAPTIVE}),
    ]
    yield from listed
    for strategy in listed:
        if strategy.name != "flooding":
            yield Strategy(f"{strategy.name}; advertisements", {**strategy.options, "advertisements": True})


def adaptive_or_not(workload: Workload) -> list[Measured]:
    """Covering without and with adaptive filtering, by turns, and of each the round that took least for the quotes."""
    plain = Strategy("covering", {"strategy": "covering"})
    adaptive = Strategy("covering, adaptive filtering", {"strategy": "covering", "adaptive": ADAPTIVE})
    rounds = [[measure(strategy, workload) for strategy in (plain, adaptive)] for _ in range(ROUNDS)]
    return [min(found, key=lambda one: one.handling[1]) for found in zip(*rounds, strict=True)]


def measure(strategy: Strategy, workload: Workload) -> Measured:
    """Subscriptions one by one, a tenth of them ended, then all quotes."""
    start = time.perf_counter()
    network = Network(tree(BROKERS), **strategy.options)
    clients = [f"c{at}" for at in range(1, BROKERS + 1)]
    for at, client in enumerate(clients, 1):
        network.join(client, f"b{at}")
    for exchange, broker in PLACES.items():
        network.join(exchange, broker)
        if strategy.options.get("advertisements"):
            network.advertise(exchange, {"quotes": workload.advertisements[exchange]})
    for at, subscription in enumerate(workload.subscriptions):
        network.subscribe(clients[at % BROKERS], [subscription])
    places = {id: clients[at % BROKERS] for at, (id, _) in enumerate(workload.subscriptions)}
    for id in workload.ended:
        network.unsubscribe(places[id], [id])
    network.wait(MERGING_TIME)
    subscribing = network.traffic()
    network.reset()
    for exchange, quotes in workload.quotes.items():
        network.publish(exchange, quotes, batch=100)
    return Measured(strategy.name, subscribing, network.traffic(), time.perf_counter() - start)


def expected(workload: Workload) -> tuple[int, int]:
    """What clients must get, by an index over all subscriptions and nothing of a broker: deliveries and matches."""
    index, ended = Index(), set(workload.ended)
    homes = {id: at % BROKERS for at, (id, _) in enumerate(workload.subscriptions)}
    index.add_many((id, text) for id, text in workload.subscriptions if id not in ended)
    quotes = [quote for listed in workload.quotes.values() for quote in listed]
    found = index.match_batch(quotes).to_pylist()
    return sum(len({homes[id] for id in ids}) for ids in found), sum(map(len, found))
