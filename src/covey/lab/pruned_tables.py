"""Book auctions pruned further and further by one dimension, and matched: a table of Bittner and Hinze's experiments.

A point is one dimension; its rows are shares of all possible prunings. Each row has what a single broker sees (time,
matches, predicates) and what five brokers in a line would forward with the same table: subscriptions and publications
are dealt out to the brokers in turn, and an event crosses a link where a pruned subscription beyond it matches. Real
brokers choose prunings each for their own neighbours' entries, and show how near that comes (`pruned_lines`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters import Filter
from covey.history import EventSample
from covey.lab.experiments import Row
from covey.lab.measuring import without_collecting
from covey.lab.workloads import auctions
from covey.matching import Index, Matches, Statistics
from covey.relations.pruning import Dimension, Pruner

SHARES: Final = (0.0, 0.05, 0.2, 0.35, 0.5, 0.65, 0.75, 0.9, 1.0)
COARSE: Final = (0.0, 0.05, 0.25, 0.5, 0.75, 1.0)
SAMPLED: Final = 10_000
"""Events that selectivities are counted on."""
BROKERS: Final = 5
MOST_PAIRS: Final = 50_000_000
"""Matches after which a row has seen enough events: averages have settled, and memory-based pruning makes 100,000 of
them an event."""
PAIRS_AT_ONCE: Final = 4_000_000
"""Matches of one batch, judged by those before; never more events than that either."""
FIRST_BATCH: Final = 100


@dataclass(frozen=True, slots=True)
class Matched:
    """What some events met: how many there were, matches, processor seconds, and events that crossed links."""

    events: int
    pairs: int
    seconds: float
    forwarded: int


def pruned_tables(point: Row) -> list[Row]:
    """One dimension at every share of its prunings."""
    dimension = cast(Dimension, point["dimension"])
    with without_collecting():
        drawn, events = workload(point)
        pruner = Pruner(drawn, EventSample(events.slice(0, SAMPLED)), dimension)
        whole, size = pruner.associations, pruner.bytes
        statistics = Statistics(events.slice(0, SAMPLED))
        rows: list[Row] = []
        for share in SHARES if point["steps"] == "fine" else COARSE:
            pruner.prune_to(round(share * pruner.total_possible))
            index = Index(statistics=statistics)
            index.add_many(pruner.filters())
            index.wait()
            found = match(index, events)
            rows.append(
                {
                    "prunings": share,
                    "matched events": found.events,
                    "µs an event": round(found.seconds / found.events * 1e6, 2),
                    "matching share": round(found.pairs / found.events / max(1, len(pruner)), 7),
                    "fewer associations": round(1 - pruner.associations / whole, 4),
                    "fewer bytes": round(1 - pruner.bytes / size, 4),
                    "links an event": round(found.forwarded / found.events, 4),
                }
            )
    return rows


def workload(point: Row) -> tuple[list[tuple[str, Filter]], pa.Table]:
    """The subscriptions of a point, numbered from 0, and the events; of one class alone where the point says so."""
    count, wanted = cast(int, point["subscriptions"]), cast(int, point["class"])
    # The rarest class is a fifth of all.
    drawn = auctions.generate(count * (6 if wanted else 1), cast(int, point["events"]), cast(int, point["seed"]))
    filters = [
        condition
        for (_, condition), own in zip(drawn.subscriptions, drawn.classes.tolist(), strict=True)
        if wanted in (0, own)
    ]
    return [(str(at), condition) for at, condition in enumerate(filters[:count])], drawn.events


def match(index: Index, events: pa.Table, most: int = MOST_PAIRS) -> Matched:
    """Match events until all have been, or there are `most` pairs; the clock runs while the index matches."""
    index.match_batch(events.slice(0, 1), threads=1)
    home = np.zeros(0, np.uint8)
    done = pairs = forwarded = 0
    seconds = 0.0
    size = FIRST_BATCH
    while done < events.num_rows and pairs < most:
        batch = events.slice(done, size)
        start = time.process_time()
        found = index.match_batch(batch, threads=1)
        seconds += time.process_time() - start
        ids = found.lists().values
        if not len(home):
            home = np.array([1 << int(id) % BROKERS for id in ids.dictionary.to_pylist()], np.uint8)
        publishers = np.arange(done, done + batch.num_rows) % BROKERS
        forwarded += int(crossings(homes(found, home[ids.indices.to_numpy()]), publishers).sum())
        done += batch.num_rows
        pairs += len(found)
        size = max(1, int(PAIRS_AT_ONCE * done / max(pairs, done)))
    return Matched(done, pairs, seconds, forwarded)


def homes(found: Matches, home: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """For each event the brokers of the subscriptions that it meets, as bits."""
    counts = found.counts()
    result = np.zeros(len(counts), np.uint8)
    some = np.flatnonzero(counts)
    if len(some):
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        result[some] = np.bitwise_or.reduceat(home, starts[some])
    return result


def crossings(wanted: NDArray[np.uint8], publishers: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many links of the line each event crosses: from its publisher's broker to the farthest on either side that
    wants it."""
    lowest = np.array([_lowest(bits) for bits in range(1 << BROKERS)])[wanted]
    highest = np.array([_highest(bits) for bits in range(1 << BROKERS)])[wanted]
    distance = np.maximum(highest - publishers, 0) + np.maximum(publishers - lowest, 0)
    return np.where(wanted > 0, distance, 0)


def _lowest(bits: int) -> int:
    return min(_brokers(bits), default=0)


def _highest(bits: int) -> int:
    return max(_brokers(bits), default=0)


def _brokers(bits: int) -> Iterable[int]:
    return (broker for broker in range(BROKERS) if bits >> broker & 1)


def dealt(items: Sequence[Any], broker: int) -> Sequence[Any]:
    """The subscriptions or publications of one broker's clients: every fifth."""
    return items[broker::BROKERS]
