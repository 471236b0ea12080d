"""Pruning of book auctions by each dimension: `python -m benchmarks.relations.pruning [--subscriptions N] [--match]`.

First table: the process's CPU seconds to build (trees, selectivities of all distinct predicates on sampled events,
first prunings) and to do every pruning, and what the clock says. Second: how predicates in subscriptions and bytes
fall, and how selectivity degrades, over the share of all prunings done: Fig. 1(c) of Bittner and Hinze, and the
estimate behind 1(b). With --match, a third: the index built from pruned subscriptions, its time for an event and the
share of (event, subscription) pairs that match: Fig. 1(a) and 1(b).
"""

from __future__ import annotations

import argparse
import time

import pyarrow as pa

from covey import Index, Statistics
from covey.filters import Filter
from covey.history import EventSample
from covey.lab.workloads.auctions import EVENTS, SUBSCRIPTIONS, generate
from covey.relations.pruning import DIMENSIONS, Dimension, Pruner

SAMPLED = 10_000
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0)
MATCHED_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def timings(subscriptions: list[tuple[str, Filter]], sample: EventSample) -> tuple[list[str], dict[Dimension, Pruner]]:
    """Rows of the first table, and the pruners, restored."""
    rows, pruners = [], {}
    for dimension in DIMENSIONS:
        start, wall = time.process_time(), time.perf_counter()
        pruner = Pruner(subscriptions, sample, dimension)
        built = time.process_time()
        done = len(pruner.prune())
        pruned, wall = time.process_time(), time.perf_counter() - wall
        rows.append(
            f"| {dimension} | {built - start:.1f} | {pruned - built:.1f} | {pruned - start:.1f} | {wall:.1f} "
            f"| {done:,} | {pruner.total_possible:,} |"
        )
        pruner.restore()
        pruners[dimension] = pruner
    return rows, pruners


def falling(pruners: dict[Dimension, Pruner]) -> list[str]:
    """Rows of the second table."""
    rows = []
    whole = next(iter(pruners.values()))
    associations, size, predicates = whole.associations, whole.bytes, whole.predicates
    for share in SHARES:
        cells = [f"{share:.0%}"]
        for pruner in pruners.values():
            pruner.prune_to(round(share * pruner.total_possible))
            cells += [
                f"{1 - pruner.associations / associations:.1%}",
                f"{1 - pruner.predicates / predicates:.1%}",
                f"{1 - pruner.bytes / size:.1%}",
                f"{pruner.mean_degradation:.5f}",
            ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def matching(pruners: dict[Dimension, Pruner], events: pa.Table) -> list[str]:
    """Rows of the third table."""
    rows = []
    statistics = Statistics(events)
    for dimension, pruner in pruners.items():
        pruner.restore()
        for share in MATCHED_SHARES:
            pruner.prune_to(round(share * pruner.total_possible))
            index = Index(statistics=statistics)
            index.add_many(pruner.filters())
            index.match_batch(events.slice(0, 1))
            start = time.perf_counter()
            matches = len(index.match_batch(events))
            each = (time.perf_counter() - start) / events.num_rows
            rows.append(
                f"| {dimension} | {share:.0%} | {each * 1e6:.1f} | {matches / events.num_rows / len(pruner):.5%} |"
            )
    return rows


def main() -> None:
    """Print the tables as Markdown."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--subscriptions", type=int, default=SUBSCRIPTIONS)
    options.add_argument("--events", type=int, default=EVENTS)
    options.add_argument("--match", action="store_true", help="match events against the pruned subscriptions as well")
    options.add_argument("--matched", type=int, default=500, help="events for --match")
    given = options.parse_args()
    auctions = generate(given.subscriptions, given.events)
    sample = EventSample(auctions.events.slice(0, SAMPLED))
    Pruner(auctions.subscriptions[:5_000], sample).prune()  # kernels compile on first use
    print(f"{given.subscriptions:,} subscriptions, selectivities from {sample.count:,} of {given.events:,} events.\n")
    print("| dimension | build, CPU s | prune, CPU s | together | by the clock | prunings | most possible |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    rows, pruners = timings(auctions.subscriptions, sample)
    print(*rows, sep="\n")
    columns = [f"{dimension}: {figure}" for dimension in pruners for figure in ("assoc.", "pred.", "bytes", "degr.")]
    print(f"\n| prunings | {' | '.join(columns)} |\n|---{'|---:' * len(columns)}|")
    print(*falling(pruners), sep="\n")
    if given.match:
        print("\n| dimension | prunings | µs an event | matching pairs |\n|---|---:|---:|---:|")
        print(*matching(pruners, auctions.events.slice(0, given.matched)), sep="\n")


if __name__ == "__main__":
    main()
