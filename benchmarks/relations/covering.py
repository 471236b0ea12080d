"""The covering table on sets A and B of Li, Hou and Jacobsen, against simpler ways. Prints Markdown.

    python -m benchmarks.relations.covering [--count 200000]

Times are processor time of one thread, so that other work on the machine doesn't enter (but for caches that it takes).
The paper's own figures are from a Xeon of 2005 and Java; they stand beside ours for their ratios.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import workloads
from benchmarks.machine import describe
from covey.filters import Filter
from covey.kernels.scanning import scan
from covey.kernels.value_sets import COVERED, COVERS
from covey.lab.workloads import auctions
from covey.lab.workloads.predicate_pools import SET_A, SET_B, SUBSCRIPTIONS, Drawn, Pool, draw
from covey.language import parse
from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.covering import CoveringTable
from covey.relations.covering.bounds import bounds_of
from covey.relations.covering.roots import BOTH, Box
from covey.relations.exact import covers

QUERIES = 2_000
PAIRWISE = 2_000
NUMPY = 5_000
BOOLEAN = 100_000
WITHOUT_WITNESSES = 200
SAMPLE = 300


@dataclass(slots=True)
class Filled:
    """A table with all subscriptions of a set, and what filling it took."""

    pool: Pool
    table: CoveringTable
    drawn: Drawn
    conjunctions: list[Conjunction]
    from_filters: float
    from_conjunctions: float


def seconds(action: Callable[..., Any], *arguments: Any) -> float:
    """Processor time of an action."""
    start = time.process_time()
    action(*arguments)
    return time.process_time() - start


def normal(filters: list[Filter]) -> list[Conjunction]:
    """All filters of a set are conjunctions."""
    found = [conjunction_of(condition) for condition in filters]
    return [conjunction for conjunction in found if conjunction is not None]


def fill(pool: Pool, count: int) -> Filled:
    """Two tables, one from filters and one from conjunctions."""
    drawn = draw(pool, count)
    filters = drawn.subscriptions()
    from_filters = seconds(CoveringTable().insert_many, enumerate(filters))
    conjunctions = normal(filters)
    table = CoveringTable()
    from_conjunctions = seconds(table.insert_many, enumerate(conjunctions))
    return Filled(pool, table, drawn, conjunctions, from_filters, from_conjunctions)


def bulk_rows(filled: Filled) -> str:
    """One row of the table of bulk insertions."""
    count, pool = len(filled.conjunctions), filled.pool
    rate = 1 - filled.table.root_count() / count
    return (
        f"| {pool.name} | {count:,} | {len(filled.table.variables):,} | {rate:.1%} | {pool.paper_rate:.0%} "
        f"| {count / filled.from_filters:,.0f} | {count / filled.from_conjunctions:,.0f} |"
    )


def new_ones(filled: Filled, count: int, seed: int = 7) -> list[Filter]:
    """Subscriptions of the same kind that come after the table is full."""
    return draw(filled.pool, count, seed).subscriptions()


def single_rows(filled: Filled) -> str:
    """Insertions and removals one at a time, on the full table; it is as before afterwards."""
    inserts, removes, roots = [], [], []
    for number, condition in enumerate(new_ones(filled, QUERIES)):
        id = ("new", number)
        inserts.append(seconds(filled.table.insert, id, condition))
    for number in range(QUERIES):
        id = ("new", number)
        root = filled.table.covered_by(id) is None
        (roots if root else removes).append(seconds(filled.table.remove, id))
    return (
        f"| {filled.pool.name} | {_micro(statistics.median(inserts))} | {_micro(np.quantile(inserts, 0.99))} "
        f"| {_micro(statistics.median(removes))} | {_micro(statistics.median(roots))} | {_micro(max(roots))} |"
    )


def batch_rows(filled: Filled) -> list[str]:
    """The same new conjunctions in batches of several sizes."""
    rows = []
    conjunctions = normal(new_ones(filled, 8_192, 11))
    for size in (1, 16, 256, 8_192):
        spent = 0.0
        for start in range(0, len(conjunctions), size):
            batch = [(("b", start + at), one) for at, one in enumerate(conjunctions[start : start + size])]
            spent += seconds(filled.table.insert_many, batch)
        for number in range(len(conjunctions)):
            filled.table.remove(("b", number))
        rows.append(f"| {filled.pool.name} | {size:,} | {len(conjunctions) / spent:,.0f} |")
    return rows


def phase_rows(filled: Filled) -> list[str]:
    """One pass for both directions against two passes: on a scan of all roots, and on the table's index."""
    table = filled.table
    store, index = table._store, table._variables
    boxes = [table._forms[id].hull for id in table.roots()]
    rows = [box.variables for box in boxes if box is not None]
    variables = np.array([variable for row in rows for variable in row], np.int64)
    starts = np.cumsum([0, *(len(row) for row in rows)])
    hits = np.empty(len(rows), np.int64)
    asked = normal(new_ones(filled, QUERIES // 4, 13))

    def scan_once(assignment: NDArray[np.int8]) -> None:
        scan(assignment, starts, variables, 3, hits)

    def scan_twice(assignment: NDArray[np.int8]) -> None:
        witness, _ = scan(assignment, starts, variables, 1, hits)
        if witness < 0:
            scan(assignment, starts, variables, 2, hits)

    def search_once(box: Box) -> None:
        store.search(box, index, BOTH)

    def search_twice(box: Box) -> None:
        if store.search(box, index, COVERED).witness < 0:
            store.search(box, index, COVERS)

    spent = {over: {outcome: np.zeros(3) for outcome in (True, False)} for over in ("scan of all roots", "the index")}
    for conjunction in asked:
        box = store.box(index.take_all(conjunction.sets))
        covered = store.search(box, index, COVERED).witness >= 0
        assignment = _assignment(table, box.variables)
        spent["scan of all roots"][covered] += _alternately(scan_once, scan_twice, assignment)
        spent["the index"][covered] += _alternately(search_once, search_twice, box)
        for variable in box.variables:
            index.release(variable)
    return [
        f"| {filled.pool.name} | {over} | {'covered' if covered else 'not covered'} | {_micro(once / number)} "
        f"| {_micro(twice / number)} | {1 - once / twice:.0%} |"
        for over, outcomes in spent.items()
        for covered, (once, twice, number) in outcomes.items()
    ]


def _alternately(once: Callable[..., None], twice: Callable[..., None], argument: Any) -> NDArray[np.float64]:
    """Times of two actions, in turns so that both find the caches as the other left them, and the number of turns."""
    once(argument)
    times = [(seconds(once, argument), seconds(twice, argument), 1.0) for _ in range(3)]
    return np.array(times).sum(axis=0)


def _assignment(table: CoveringTable, variables: tuple[int, ...]) -> NDArray[np.int8]:
    """The two bits of every variable, with bit 2 for those of the new one's attributes; their number at the end."""
    index = table.variables
    sets = index.sets
    assignment = np.zeros(len(index._owner) + 1, np.int8)
    for variable in variables:
        attribute, _ = index._owned(variable)
        members = np.fromiter(attribute.variables.values(), np.int64, len(attribute.variables))
        assignment[members] = 4 | sets.relation[sets.rows[variable] + sets.local[members]]
    assignment[-1] = len(variables)
    return assignment


def pairwise(conjunctions: list[Conjunction]) -> set[int]:
    """The straightforward way: each new one against each root, in Python; equal ones are covered by the first."""
    roots: dict[int, Conjunction] = {}
    for number, new in enumerate(conjunctions):
        if any(root.covers(new) for root in roots.values()):
            continue
        for covered in [other for other, root in roots.items() if new.covers(root)]:
            del roots[covered]
        roots[number] = new
    return set(roots)


def in_numpy(conjunctions: list[Conjunction], names: list[str]) -> set[int]:
    """Each new one against a matrix of all roots' ends, attribute by attribute, in NumPy."""
    low, high = np.full((len(conjunctions), len(names)), -np.inf), np.full((len(conjunctions), len(names)), np.inf)
    numbers = {name: number for number, name in enumerate(names)}
    for row, conjunction in enumerate(conjunctions):
        for name, values in conjunction.sets:
            (interval,) = values.intervals()
            low[row, numbers[name]] = -1e300 if interval.low is None else interval.low
            high[row, numbers[name]] = 1e300 if interval.high is None else interval.high
    roots = np.zeros(len(conjunctions), bool)
    for row in range(len(conjunctions)):
        known = np.flatnonzero(roots[:row])
        lows, highs = low[known], high[known]
        if ((lows <= low[row]) & (highs >= high[row])).all(axis=1).any():
            continue
        roots[known[((lows >= low[row]) & (highs <= high[row])).all(axis=1)]] = False
        roots[row] = True
    return set(np.flatnonzero(roots).tolist())


def other_ways(filled: Filled) -> list[str]:
    """Small tables filled by the straightforward ways and by the covering table; all have the same roots."""
    rows = []
    names = sorted({name for one in filled.conjunctions[:NUMPY] for name, _ in one.sets})
    ways: list[tuple[str, int, Callable[[list[Conjunction]], set[int]]]] = [
        ("pairs in Python", PAIRWISE, pairwise),
        ("matrix in NumPy", NUMPY, lambda some: in_numpy(some, names)),
    ]
    for name, size, way in ways:
        some = filled.conjunctions[:size]
        start = time.process_time()
        found = way(some)
        spent = time.process_time() - start
        table = CoveringTable()
        ours = seconds(table.insert_many, enumerate(some))
        assert found == set(table.roots()), "the ways disagree"
        rows.append(f"| {filled.pool.name} | {size:,} | {name} | {size / spent:,.0f} | {size / ours:,.0f} |")
    return rows


def boolean_filters(name: str, count: int) -> list[Filter]:
    """The first Boolean filters of a workload."""
    if name == "auctions":
        return [condition for _, condition in auctions.generate(count, 1).subscriptions]
    return [parse(text) for _, text in workloads.generate(name, count, 1).subscriptions]


def boolean_row(name: str, count: int) -> str:
    """Insertions one at a time of Boolean filters, how long the last ones took, and the same without witnesses."""
    filters = boolean_filters(name, count)
    table = CoveringTable()
    times = np.array([seconds(table.insert, number, condition) for number, condition in enumerate(filters)])
    last = times[-QUERIES:]
    plain = seconds(by_bounds_and_decisions, filters[:WITHOUT_WITNESSES]) / WITHOUT_WITNESSES
    disagree_with_pairs(table, filters)
    return (
        f"| {name} | {count:,} | {1 - table.root_count() / count:.0%} | {count / times.sum():,.0f} "
        f"| {_micro(statistics.median(last))} | {_micro(np.quantile(last, 0.99))} | {_micro(plain)} |"
    )


def by_bounds_and_decisions(filters: list[Filter]) -> list[Filter]:
    """The straightforward way: bounds, then an exact decision, for each new one against each root."""
    roots: list[tuple[Filter, Any]] = []
    for condition in filters:
        bounds = bounds_of(condition)

        def over(outer: tuple[Filter, Any], inner: tuple[Filter, Any]) -> bool:
            possible = all(outer[1].hull.covers(box) for box in inner[1].inner)
            return possible and covers(outer[0], inner[0])

        new = (condition, bounds)
        if not any(over(root, new) for root in roots):
            roots = [root for root in roots if not over(new, root)] + [new]
    return [condition for condition, _ in roots]


def disagree_with_pairs(table: CoveringTable, filters: list[Filter]) -> None:
    """Hold a sample of answers against exact decisions about pairs: coverers, and a root against other roots."""
    rng = random.Random(3)
    roots = list(table.roots())
    for id in rng.sample(range(len(filters)), min(SAMPLE, len(filters))):
        above = table.covered_by(id)
        assert above is None or covers(filters[above], filters[id]), "a filter is under one that doesn't cover it"  # type: ignore[index]
    for id in rng.sample(roots, min(SAMPLE, len(roots))):
        others = [other for other in rng.sample(roots, min(10, len(roots))) if other != id]
        assert not any(covers(filters[other], filters[id]) for other in others), "a root covers another"  # type: ignore[index]


def _micro(duration: float | np.floating[Any]) -> str:
    return f"{float(duration) * 1e6:,.0f} µs"


def warm_up() -> None:
    """Compile what is measured."""
    some = normal(draw(SET_A, 3_000, 1).subscriptions())
    table = CoveringTable()
    table.insert_many(enumerate(some))
    for id in random.Random(1).sample(range(len(some)), 500):
        table.remove(id)
    table.insert_many((("bool", number), condition) for number, condition in enumerate(boolean_filters("bool", 100)))


def report_boolean(count: int) -> None:
    """Measure Boolean filters and print."""
    print("\nBoolean filters, one at a time into an empty table, and without witnesses a table of 200:\n")
    print("| workload | filters | covered | insertions a second | at the end, median | 99% | without witnesses |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name in ("bool", "auctions"):
        print(boolean_row(name, count), flush=True)


def report(count: int) -> None:
    """Measure and print."""
    filled = [fill(pool, count) for pool in (SET_A, SET_B)]
    machine = describe()
    print("# Covering table\n")
    print(f"{machine['Processor']}, one thread; Python {machine['Python']}, Numba {machine.get('numba', '?')}.\n")
    print("Bulk insertion into an empty table, subscriptions a second:\n")
    print("| set | subscriptions | variables | covered | paper | from filters | from conjunctions |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for one in filled:
        print(bulk_rows(one))
    print("\nOne at a time, from filters, on the full table:\n")
    print(
        "| set | insert, median | insert, 99% | remove covered, median | remove root, median | remove root, longest |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for one in filled:
        print(single_rows(one))
    print("\nBatches of conjunctions on the full table, subscriptions a second:\n")
    print("| set | batch | insertions a second |")
    print("|---|--:|--:|")
    for one in filled:
        print("\n".join(batch_rows(one)))
    print(
        "\nA search on the full table, both directions in one pass or in two (the paper: one pass is 45.8% faster):\n"
    )
    print("| set | over | the new one is | one pass | two passes | saved |")
    print("|---|---|---|--:|--:|--:|")
    for one in filled:
        print("\n".join(phase_rows(one)))
    print("\nStraightforward ways, on tables small enough for them; insertions a second while filling:\n")
    print("| set | subscriptions | way | its insertions a second | covering table |")
    print("|---|--:|---|--:|--:|")
    for one in filled:
        print("\n".join(other_ways(one)))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--count", type=int, default=SUBSCRIPTIONS)
    arguments.add_argument("--boolean", type=int, default=BOOLEAN, help="Boolean filters of each workload")
    arguments.add_argument("--only-boolean", action="store_true")
    given = arguments.parse_args()
    warm_up()
    if not given.only_boolean:
        report(given.count)
    report_boolean(given.boolean)
