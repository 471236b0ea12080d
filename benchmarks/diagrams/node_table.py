"""Section 8 of Campailla et al., measured: `python -m benchmarks.diagrams.node_table [--quick]`.

First table: nodes before and after dependency restriction, one variable for each of the 208 atoms, beside the paper's.
Second: seconds for 1,000 messages by density, MVEvalBDD under `strict` and EvalBDD under `simple` on total messages,
on the restricted diagram, one message at a time, from its attributes to the list of queries. Third: the four orders.

The paper's grammar isn't published; `covey.lab.workloads.queries` says how ours was calibrated. The paper's machine was
a Pentium Pro at 200 MHz: compare the shape of a row (how it falls with density, how it grows with queries), not its
height. `covey lab run campailla` has the same figures on a page, with the paper's beside them.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any, TypeVar

from covey.diagrams import ORDERS, Domain, FlatDiagram, OrderName, SharedDiagram, Snapshot, restrict
from covey.filters import Filter
from covey.lab.workloads.queries import KINDS, messages, queries

Result = TypeVar("Result")

TYPED = {name: Domain(kind) for name, kind in KINDS.items()}
TOTAL = {name: Domain(kind, True) for name, kind in KINDS.items()}
DENSITIES = (0.077, 0.154, 0.231, 0.308, 1.0)
MESSAGES = 1_000
PAPER_NODES = {
    25_000: (180_226, 108_889, 1.66),
    50_000: (351_616, 206_848, 1.70),
    75_000: (543_677, 299_942, 1.81),
    100_000: (708_969, 376_992, 1.88),
}
PAPER_SECONDS = {
    25_000: (1.56, 3.81, 5.86, 8.23, 27.64, 20.12),
    50_000: (3.56, 7.63, 10.92, 14.74, 55.66, 41.58),
    75_000: (6.65, 12.49, 18.11, 22.56, 89.93, 61.75),
    100_000: (9.01, 15.57, 21.40, 30.83, 121.32, 81.64),
}


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def build(filters: list[Filter], order: OrderName = "attribute") -> SharedDiagram:
    """The shared diagram with one variable an atom, as the paper counts."""
    diagram = SharedDiagram("simple", variable_for_inequality=True)
    diagram.add_many(enumerate(filters), order=order)
    return diagram


def restricted(diagram: SharedDiagram, flat: FlatDiagram) -> FlatDiagram:
    return restrict(flat, diagram.index.test, TOTAL)


def node_row(filters: list[Filter]) -> str:
    """One row of the first table."""
    count = len(filters)
    diagram, build_seconds = timed(lambda: build(filters))
    flat, flat_seconds = timed(diagram.flatten)
    after, seconds = timed(lambda: restricted(diagram, flat))
    before, left, factor = PAPER_NODES.get(count, (0, 0, 0.0))
    return (
        f"{count:>8,} {flat.node_count:>8,} {after.node_count:>7,} {flat.node_count / after.node_count:>6.2f}"
        f" {before:>12,} {left:>7,} {factor:>6.2f}"
        f" {build_seconds:>5.2f} {flat_seconds:>7.2f} {seconds:>8.2f}"
    )


def evaluation_row(filters: list[Filter]) -> str:
    """One row of the second table."""
    cells = []
    strict = SharedDiagram("strict")
    strict.add_many(enumerate(filters))
    snapshot = Snapshot(strict, domains=TYPED)
    for density in DENSITIES:
        cells.append(match_seconds(snapshot, messages(MESSAGES, density)))
    simple = SharedDiagram("simple")
    simple.add_many(enumerate(filters))
    cells.append(match_seconds(Snapshot(simple, domains=TOTAL), messages(MESSAGES, 1.0)))
    paper = PAPER_SECONDS.get(len(filters), (0.0,) * 6)
    ours = " ".join(f"{cell:>7.3f}" for cell in cells)
    theirs = " ".join(f"{cell:>7.2f}" for cell in paper)
    return f"{len(filters):>8,} {ours}\n   paper {theirs}"


def match_seconds(snapshot: Snapshot, batch: list[dict[str, Any]]) -> float:
    """Each message alone, from its attributes to the numbers of the queries that it matches."""
    snapshot.matching(batch[0])

    def run() -> None:
        for event in batch:
            snapshot.matching(event)

    return timed(run)[1]


def order_row(filters: list[Filter], order: OrderName) -> str:
    diagram, seconds = timed(lambda: build(filters, order))
    flat = diagram.flatten()
    after = restricted(diagram, flat)
    return (
        f"{order:>10} {flat.node_count:>10,} {after.node_count:>9,} {flat.node_count / after.node_count:>7.2f}"
        f" {seconds:>9.2f}"
    )


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description="Nodes and seconds of section 8 of Campailla et al.")
    parser.add_argument("--quick", action="store_true", help="25,000 queries only")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sizes = (25_000,) if options.quick else tuple(PAPER_NODES)
    gc.disable()  # Millions of small values and no cycles.
    filters = queries(max(sizes), options.seed)
    node_row(filters[:100])  # Kernels are compiled once.
    print("Nodes before and after restriction: ours, the paper's; seconds to build and so on")
    print(
        f"{'queries':>8} {'before':>8} {'after':>7} {'factor':>6} {'paper before':>12} {'after':>7} {'factor':>6}",
        end="",
    )
    print(f" {'build':>5} {'flatten':>7} {'restrict':>8}")
    for size in sizes:
        print(node_row(filters[:size]), flush=True)
    print("\nAND and OR equally likely, a tenth negated: 12 nodes a query, unlike the paper's")
    print(node_row(queries(sizes[0], options.seed, conjunctive=0.5, negated=0.1)), flush=True)
    print(f"\nSeconds for {MESSAGES:,} messages by density: MVEvalBDD, strict; EvalBDD on total ones last")
    print(f"{'queries':>8} " + " ".join(f"{density:>7.1%}" for density in DENSITIES) + f" {'SiSL':>7}")
    for size in sizes:
        print(evaluation_row(filters[:size]), flush=True)
    print(f"\nVariable orders at {sizes[0]:,} queries")
    print(f"{'order':>10} {'before':>10} {'after':>9} {'factor':>7} {'build s':>9}")
    for order in ORDERS:
        print(order_row(filters[: sizes[0]], order), flush=True)


if __name__ == "__main__":
    main()
