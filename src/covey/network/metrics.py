"""Figures for Prometheus, gathered when they are asked for: counting costs the broker an addition, no more."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from covey.network.engine import Engine
from covey.relations.pruning.dimensions import DIMENSIONS
from covey.routing.inspection import BrokerStatus, status

_COUNTERS = {
    "inputs": "Inputs that the broker handled.",
    "turns": "Groups that they were handled in.",
    "published": "Events that clients published.",
    "sent": "Messages sent to clients and neighbours.",
    "commits": "Groups of rows committed.",
    "records": "Rows committed.",
    "sessions_cut": "Connections cut because they took too little.",
    "bad_frames": "Connections closed for what they sent.",
    "defects": "Inputs taken back since they raised, answers that couldn't be sent, filters no index could take.",
    "restarts": "Times that the broker was restored from its journal while it ran.",
    "refused_connections": "Connections refused because there were too many.",
    "unknown_messages": "Messages of neighbours that only a later version knows.",
    "reloads": "Times that files saying who may connect were read again.",
    "failed_reloads": "Times that they couldn't be, and nothing changed.",
    "ended_sessions": "Sessions ended because their token was removed or had expired.",
}
_GAUGES = {
    "clients": "Clients, connected or remembered.",
    "connected": "Clients that are connected.",
    "subscriptions": "Clients' subscriptions.",
    "advertisements": "Clients' advertisements.",
    "queued": "Deliveries that wait for clients.",
    "entries": "Entries of the routing table.",
    "events_kept": "Durable events kept.",
}
_LINK_GAUGES = {
    "outbox": "Items that wait for a neighbour.",
    "open": "Whether a neighbour is there.",
    "in_tree": "Whether the link is in the spanning tree.",
    "failed": "Whether the neighbour is taken for failed.",
}


class Metrics:
    """A broker's registry."""

    def __init__(self, engine: Engine) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Broker(engine))
        self.content_type = exposition.CONTENT_TYPE_LATEST

    def text(self) -> bytes:
        """All figures."""
        return exposition.generate_latest(self._registry)


class _Broker(Collector):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> list[Metric]:
        """Nothing is collected at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All figures of one moment."""
        counts, found = self._engine.counts, status(self._engine.broker)
        for name, help in _COUNTERS.items():
            yield CounterMetricFamily(f"covey_{name}", help, value=getattr(counts, name))
        for name, help in _GAUGES.items():
            yield GaugeMetricFamily(f"covey_{name}", help, value=getattr(found, name))
        inputs, records = self._engine.waiting
        yield GaugeMetricFamily("covey_waiting_inputs", "Messages that wait for the broker.", value=inputs)
        yield GaugeMetricFamily("covey_waiting_records", "Rows that wait for the disk.", value=records)
        broker = self._engine.broker
        delivered = broker.clients.queues.delivered
        yield CounterMetricFamily("covey_delivered", "Deliveries sent to clients.", value=delivered)
        answers = self._engine.answers
        yield HistogramMetricFamily(
            "covey_answer_seconds", "From taking up inputs until all that they cause is with the connections.",
            buckets=answers.buckets(), sum_value=answers.sum,
        )  # fmt: skip
        pauses = self._engine.pauses
        yield HistogramMetricFamily(
            "covey_pause_seconds", "Processor time of single inputs, while nothing else is taken up.",
            buckets=pauses.buckets(), sum_value=pauses.sum,
        )  # fmt: skip
        yield GaugeMetricFamily("covey_event_bytes", "Bytes of events that are kept or wait.", value=broker.event_bytes)
        yield GaugeMetricFamily(
            "covey_held_back", "Whether publishers are held back, above a mark.", value=float(self._engine.is_pressed)
        )
        yield GaugeMetricFamily(
            "covey_send_buffer_bytes", "Bytes that wait for clients' connections.", value=self._engine.buffers.bytes
        )
        yield GaugeMetricFamily(
            "covey_waiting_connections", "Connections that are nobody's session.", value=counts.strangers
        )
        yield CounterMetricFamily(
            "covey_turned_away", "Connections closed because too many were nobody's session.", value=counts.turned_away
        )
        yield from _pruning(found)
        yield from _links(found)


def _pruning(found: BrokerStatus) -> Iterator[Metric]:
    if found.pruning is None:
        return
    chosen = GaugeMetricFamily("covey_pruning", "Whether entries are pruned by a dimension.", labels=["dimension"])
    for dimension in DIMENSIONS:
        chosen.add_metric([dimension], float(dimension == found.pruning.dimension))
    yield chosen
    yield GaugeMetricFamily(
        "covey_pruning_share", "The part of all possible prunings that is done.", value=found.pruning.share
    )


def _links(found: BrokerStatus) -> Iterator[Metric]:
    dropped = CounterMetricFamily(
        "covey_link_dropped", "Events without durability that a neighbour should have had and weren't sent.",
        labels=["peer"],
    )  # fmt: skip
    for link in found.links:
        dropped.add_metric([link.peer], link.dropped)
    yield dropped
    for name, help in _LINK_GAUGES.items():
        family = GaugeMetricFamily(f"covey_link_{name}", help, labels=["peer"])
        for link in found.links:
            family.add_metric([link.peer], float(getattr(link, name)))
        yield family
    for name, tables in (("told", "exported"), ("heard", "held")):
        family = GaugeMetricFamily(f"covey_link_{name}", f"Entries {name} over a link.", labels=["peer", "table"])
        for link in found.links:
            for kind, table in zip(("subscriptions", "advertisements"), getattr(link, tables), strict=True):
                family.add_metric([link.peer, kind], len(table))
        yield family
