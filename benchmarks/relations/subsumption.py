"""Subsumption by the negative space, on the workload of Jafarpour et al. (Section 5). Prints Markdown.

    python -m benchmarks.relations.subsumption [--subscriptions 10000] [--exponent 0.5] [--exact 2 3 4] [--seed 1]

The paper's rectangles: a domain of [0, 1000] in each dimension, the lower end from a Zipf distribution, the size
uniform up to the domain's end. It states neither the exponent, nor whether lower ends are whole, nor the seed. Here
lower ends are whole, sizes are real, and the exponent is a parameter: with 0.5, and cutting in the order of dimensions
as in its Figure 4, four dimensions have about as many negative rectangles as its Table 1 (396,000 where it has 365,000
after 2,000 subscriptions).

Times are of the processor, since one thread does all the work. Where the package `rtree` can be imported, it is
measured beside the store's own index on the same rectangles.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import describe
from covey.lab.workloads.rectangles import Ends, ends, regions, space
from covey.relations.subsumption import NegativeSpace
from covey.relations.subsumption.store import RectangleStore

PAPER_EXACT = {
    2: (181, 118, 81, 73, 66),
    3: (15983, 20154, 19667, 20756, 22230),
    4: (364740, 665000, None, None, None),
}
PAPER_APPROXIMATE = {
    2: (367, 405, 430, 438, 443),
    3: (27928, 30221, 31755, 33071, 34079),
    4: (13455, 23414, 32148, 39969, 47064),
}
STEPS = 5


def pairwise_covered(bounds: Ends) -> int:
    """How many subscriptions an earlier one covers alone."""
    low, high = bounds
    return sum(
        bool(((low[:i] <= low[i]).all(axis=1) & (high[:i] >= high[i]).all(axis=1)).any()) for i in range(len(low))
    )


class Run:
    """Subscribes a workload and notes time, counts at every fifth, and memory."""

    def __init__(self, d: int, options: argparse.Namespace, exponent: float | None = None, **settings: Any) -> None:
        law = options.exponent if exponent is None else exponent
        self.ends = ends(d, options.subscriptions, options.seed, law)
        subscriptions = regions(space(d), self.ends)
        self.negative = NegativeSpace(space(d), **settings)
        self.counts: list[int] = []
        fifth = max(1, len(subscriptions) // STEPS)
        start = time.process_time()
        for number, subscription in enumerate(subscriptions, 1):
            self.negative.subscribe(number, subscription)
            if number % fifth == 0:
                self.counts.append(self.negative.rectangle_count())
        self.seconds = time.process_time() - start
        self.rate = len(subscriptions) / self.seconds
        self.redundant = len(self.negative.passives())


Runs = dict[tuple[str, int], Run]


def line(*cells: object) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(cell: object) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.2f}" if cell < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def table(title: str, header: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> None:
    print(f"\n### {title}\n")
    print(line(*header))
    print("|" + " --- |" * len(header))
    for row in rows:
        print(line(*row), flush=True)


def growth_rows(runs: Runs) -> Iterator[tuple[object, ...]]:
    for (method, d), run in runs.items():
        published = (PAPER_EXACT if method == "exact" else PAPER_APPROXIMATE).get(d)
        if published is not None:
            yield (method, d, "paper", *published, None, None, None)
        megabytes = run.negative.nbytes() / 1e6
        yield (method, d, "covey", *run.counts, run.seconds, run.rate, megabytes)


def exponent_rows(options: argparse.Namespace) -> Iterator[tuple[object, ...]]:
    for exponent in (0.0, 0.5, 1.0):
        for method in ("exact", "approximate"):
            run = Run(4, options, exponent, method=method)
            yield exponent, method, run.negative.rectangle_count(), run.redundant, run.seconds, run.rate


def redundancy_rows(runs: Runs) -> Iterator[tuple[object, ...]]:
    for d in sorted({d for _, d in runs}):
        exact, approximate = runs.get(("exact", d)), runs["approximate", d]
        yield d, pairwise_covered(approximate.ends), exact.redundant if exact else None, approximate.redundant


def setting_rows(options: argparse.Namespace) -> Iterator[tuple[object, ...]]:
    for d in (3, 4):
        for settings in (
            {"k": 10}, {"k": 50}, {"k": 100}, {"k": 50, "dynamic_threshold": True}, {"metric": "benefit"},
            {"metric": "1/cost"},
        ):  # fmt: skip
            run = Run(d, options, method="approximate", **settings)
            name = ", ".join(f"{key} = {value}" for key, value in settings.items())
            yield d, name, run.redundant, run.negative.rectangle_count(), run.rate


def leaving_rows(options: argparse.Namespace) -> Iterator[tuple[object, ...]]:
    for d in (2, 3, 4):
        for method in ("exact", "approximate"):
            negative = Run(d, options, method=method).negative
            before = negative.rectangle_count()
            chosen = np.random.default_rng(options.seed).choice(len(negative.actives()), 50, replace=False)
            leaving = [negative.actives()[number] for number in chosen]
            start = time.process_time()
            promoted = sum(len(negative.unsubscribe(name)) for name in leaving)
            left = time.process_time() - start
            after = negative.rectangle_count()
            start = time.process_time()
            negative.rebuild()
            rebuilt = time.process_time() - start
            yield (
                d, method, 1000 * left / len(leaving), promoted / len(leaving), before, after,
                negative.rectangle_count(), rebuilt,
            )  # fmt: skip


def index_rows(options: argparse.Namespace) -> Iterator[tuple[object, ...]]:
    for d in (3, 4):
        negative = Run(d, options).negative
        rows = negative.space.rows(negative.rectangles())
        queries = negative.space.rows(tuple(regions(negative.space, ends(d, 1000, options.seed + 1))))
        store = RectangleStore(rows)
        start = time.process_time()
        found = sum(len(store.find(query)) for query in queries)
        yield (
            d,
            len(rows),
            "blocks",
            found / len(queries),
            1e6 * (time.process_time() - start) / len(queries),
            *_changes(store, queries),
        )
        try:
            rtree = importlib.import_module("rtree.index")
        except ImportError:
            continue
        yield d, len(rows), "rtree", *_rtree(rtree, rows.astype(np.float64), queries.astype(np.float64))


def _changes(store: RectangleStore, queries: NDArray[np.int64]) -> tuple[float]:
    """Microseconds for each rectangle that is taken out and put back."""
    changed, start = 0, time.process_time()
    for query in queries:
        hits = store.find(query)
        common = store.common(hits, query)
        changed += len(hits)
        store.split(hits, query)
        store.add(common)
    return (1e6 * (time.process_time() - start) / max(1, changed),)


def _rtree(rtree: Any, rows: NDArray[np.float64], queries: NDArray[np.float64]) -> tuple[float, float, float]:
    d = rows.shape[1] // 2
    index = rtree.Index(
        ((number, row, None) for number, row in enumerate(rows.tolist())), properties=rtree.Property(dimension=d)
    )
    start = time.process_time()
    found = sum(len(list(index.intersection(query))) for query in queries.tolist())
    searching = 1e6 * (time.process_time() - start) / len(queries)
    listed = rows[:: max(1, len(rows) // 2000)].tolist()
    start = time.process_time()
    for number, row in enumerate(listed):
        index.insert(len(rows) + number, row)
        index.delete(len(rows) + number, row)
    return found / len(queries), searching, 1e6 * (time.process_time() - start) / len(listed)


def main() -> None:
    parser = argparse.ArgumentParser(description="Subsumption by the negative space, measured.")
    parser.add_argument("--subscriptions", type=int, default=10_000)
    parser.add_argument("--exponent", type=float, default=0.5)
    parser.add_argument("--exact", type=int, nargs="+", default=(2, 3, 4), help="dimensions of the exact method")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warm = argparse.Namespace(subscriptions=200, exponent=options.exponent, seed=0)
    for method in ("exact", "approximate"):
        Run(3, warm, method=method).negative.unsubscribe(1)

    print("## Subsumption by the negative space\n")
    print(f"{options.subscriptions:,} subscriptions, Zipf exponent {options.exponent}, one core.", end=" ")
    print("; ".join(f"{name} {value}" for name, value in describe().items()))
    runs: Runs = {("exact", d): Run(d, options) for d in options.exact}
    runs |= {("approximate", d): Run(d, options, method="approximate") for d in (2, 3, 4, 5)}
    steps = tuple(f"{options.subscriptions * step // STEPS:,}" for step in range(1, STEPS + 1))
    table(
        "Negative rectangles (the paper's Tables 1 and 2)",
        ("method", "d", "", *steps, "CPU s", "subscriptions/s", "MB"),
        growth_rows(runs),
    )
    table(
        "Four dimensions, by the Zipf exponent",
        ("exponent", "method", "rectangles", "redundant", "CPU s", "subscriptions/s"),
        exponent_rows(options),
    )
    table(
        "Redundant subscriptions found (Figures 10 and 11)",
        ("d", "covered by one", "subsumed, exact", "subsumed, approximate (k = 50)"),
        redundancy_rows(runs),
    )
    table(
        "Thresholds and metrics (Figures 12 to 15)",
        ("d", "setting", "redundant", "rectangles", "subscriptions/s"),
        setting_rows(options),
    )
    table(
        "Unsubscribing 50 active subscriptions",
        ("d", "method", "ms each", "promoted each", "rectangles before", "after", "after rebuild", "rebuild, s"),
        leaving_rows(options),
    )
    table(
        "The spatial index: microseconds (rtree also gives rectangles that only touch)",
        ("d", "rectangles", "index", "hits a search", "a search", "one rectangle out and in"),
        index_rows(options),
    )
    print(f"\nLargest resident size: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB.")


if __name__ == "__main__":
    main()
