"""Both directions of covering in one pass or in two, while a table fills: figure 13 of Li, Hou and Jacobsen.

The table is the covering table's own store and variables, so that each direction can be asked for alone. As it grows,
subscriptions that come later are looked for in three ways:

- one pass for both directions, with figure 7's early exits;
- two passes, the second (whom does it cover?) only where the first found nothing that covers it;
- two passes, always both: what "two separate algorithms" cost where neither knows of the other.

Each way goes once over the index, and once over all roots one by one (`scan_kernels`), as the paper's goes over MBDs.

Times are of the processor. The ways take turns, so that each finds the caches as another left them. What a busy machine
can't change is counted beside them, on smaller tables: looks at tests (`plain_scans`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from covey.kernels.scanning import scan
from covey.kernels.value_sets import COVERED, COVERS
from covey.lab.experiments import Row
from covey.lab.measuring import seconds, without_collecting
from covey.lab.plain_scans import PlainCovering
from covey.lab.workloads.predicate_pools import POOLS, draw
from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.covering.roots import BOTH, Box, Results, RootStore
from covey.relations.covering.variables import VariableIndex

BATCH: Final = 2_000
"""Subscriptions behind each of the paper's data points."""
ASKED: Final = 400
"""New subscriptions that are searched for at each point, by every way."""
TURNS: Final = 3
"""Each way is first, second and third once."""
LOOKED_AT: Final = (0.25, 0.5, 1.0)
"""Parts of a table that looks are counted at."""
OVERS: Final = ("the index", "all roots")
WAYS: Final = ("one pass", "two passes", "always both")


class RootTable:
    """Conjunctions, the roots among them, and what a search needs."""

    def __init__(self, *, cached: bool = True) -> None:
        self.variables = VariableIndex() if cached else VariableIndex(related_variables=0)
        self.store = RootStore()
        self._boxes: list[Box] = []
        self._attribute_of: list[int] = []

    def __len__(self) -> int:
        return len(self._boxes)

    def box(self, conjunction: Conjunction) -> Box:
        """A conjunction as the store sees it; its variables are taken."""
        pairs = self.variables.take_all(conjunction.sets)
        for attribute, variable in pairs:
            if variable >= len(self._attribute_of):
                self._attribute_of += [-1] * (variable + 1 - len(self._attribute_of))
            self._attribute_of[variable] = attribute
        return self.store.box(pairs)

    def insert(self, conjunctions: Sequence[Conjunction]) -> None:
        """Insert in one batch, in order."""
        boxes = [self.box(conjunction) for conjunction in conjunctions]
        first = len(self._boxes)
        self.store.make_room_for_forms(first + len(boxes))
        numbers = np.arange(first, first + len(boxes), dtype=np.int64)
        self.store.insert(0, numbers, boxes, self.variables, Results(len(boxes), self.store.roots))
        self._boxes += boxes

    def roots(self) -> NDArray[np.int64]:
        """The places of the conjunctions that nothing covers."""
        return np.flatnonzero(self.store.store.parent[: len(self._boxes)] < 0)

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The roots' variables one after the other, and where each root's begin."""
        rows = [self._boxes[root].variables for root in self.roots().tolist()]
        variables = np.array([variable for row in rows for variable in row], np.int64)
        return variables, np.cumsum([0, *(len(row) for row in rows)])

    def assignment(self, box: Box) -> NDArray[np.int8]:
        """The two bits of every variable against a new one's, as `scan_kernels` has them."""
        sets, owners = self.variables.sets, np.array(self._attribute_of)
        assignment = np.zeros(len(owners) + 1, np.int8)
        for variable in box.variables:
            members = np.flatnonzero(owners == owners[variable])
            assignment[members] = 4 | sets.relation[sets.rows[variable] + sets.local[members]]
        assignment[-1] = len(box.variables)
        return assignment


def passes(point: Row) -> list[Row]:
    """One set's table as it grows: insertion with and without the cached relation, and a search by every way."""
    pool, count = POOLS[str(point["set"])], cast(int, point["subscriptions"])
    points, seed = cast(int, point["points"]), cast(int, point["seed"])
    with without_collecting():
        # Late subscriptions are what is searched for: those that came after all that is ever inserted.
        drawn = normal(draw(pool, count + ASKED, seed))
        conjunctions, new = drawn[:count], drawn[count:]
        batch = max(1, min(BATCH, count // points))
        _warm_up(conjunctions[:batch])
        tables = {cached: RootTable(cached=cached) for cached in (True, False)}
        rows: list[Row] = []
        for at in range(points):
            size = count * (at + 1) // points
            inserted: dict[bool, float] = {}
            for cached, table in tables.items():
                table.insert(conjunctions[len(table) : size - batch])
                inserted[cached] = seconds(table.insert, conjunctions[size - batch : size]) / batch
            rows += _searched(tables[True], new, size, inserted)
    return rows


def looks(point: Row) -> list[Row]:
    """Looks at tests of a table's roots, in one pass and in two, for subscriptions that come after it."""
    pool, count = POOLS[str(point["set"])], cast(int, point["subscriptions"])
    asked, seed = cast(int, point["asked"]), cast(int, point["seed"])
    if "skew" in point:
        pool = replace(pool, skew=cast(float, point["skew"]))
    if "equalities" in point:
        pool = replace(pool, equal_share=cast(float, point["equalities"]))
    rows: list[Row] = []
    with without_collecting():
        drawn = normal(draw(pool, count + asked, seed))
        for share in LOOKED_AT:
            table = RootTable()
            table.insert(drawn[: round(count * share)])
            plain = PlainCovering([drawn[root] for root in table.roots().tolist()])
            once, twice = ([way(new) for new in drawn[count:]] for way in (plain.one_pass, plain.two_passes))
            rows.append(
                {
                    "table": len(table),
                    "roots": len(table.roots()),
                    "covered": round(sum(one.covered for one in once) / asked, 3),
                    "one pass, looks": round(sum(one.looked for one in once) / asked, 1),
                    "two passes, looks": round(sum(one.looked for one in twice) / asked, 1),
                }
            )
    return rows


def normal(drawn: Any) -> list[Conjunction]:
    """A set's subscriptions as conjunctions, which all of them are."""
    found = [conjunction_of(subscription) for subscription in drawn.subscriptions()]
    return [one for one in found if one is not None]


def _searched(table: RootTable, new: Sequence[Conjunction], size: int, inserted: dict[bool, float]) -> list[Row]:
    variables, starts = table.rows()
    hits = np.empty(len(starts), np.int64)
    spent = {(over, covered): np.zeros(len(WAYS)) for over in OVERS for covered in (True, False)}
    asked = {True: 0, False: 0}
    boxes = [table.box(conjunction) for conjunction in new]
    outcomes = [_by_index(table, box, COVERED) for box in boxes]
    # One way of looking after the other: a scan of all roots would leave nothing of the index in the caches.
    for box, covered in zip(boxes, outcomes, strict=True):
        asked[covered] += 1
        spent[OVERS[0], covered] += _ways(partial(_by_index, table, box))
    for box, covered in zip(boxes, outcomes, strict=True):
        bits = table.assignment(box)
        spent[OVERS[1], covered] += _ways(partial(_by_scan, bits, starts, variables, hits))
    for box in boxes:
        for variable in box.variables:
            table.variables.release(variable)
    return [
        {
            "table": size,
            "roots": len(starts) - 1,
            "over": over,
            "the new one is": "covered" if covered else "not covered",
            "asked": asked[covered],
            **{
                f"{way}, µs": round(float(time) / max(1, asked[covered]) * 1e6, 2)
                for way, time in zip(WAYS, spent[over, covered], strict=True)
            },
            "insert, µs": round(inserted[True] * 1e6, 2),
            "insert without cache, µs": round(inserted[False] * 1e6, 2),
        }
        for over, covered in spent
    ]


def _by_index(table: RootTable, box: Box, wanted: int) -> bool:
    return table.store.search(box, table.variables, wanted).witness >= 0


def _by_scan(
    bits: NDArray[np.int8],
    starts: NDArray[np.int64],
    variables: NDArray[np.int64],
    hits: NDArray[np.int64],
    wanted: int,
) -> bool:
    return bool(scan(bits, starts, variables, wanted, hits)[0] >= 0)


def _ways(ask: Callable[[int], bool]) -> NDArray[np.float64]:
    """Seconds by each way, on average over some turns."""

    def two_passes() -> None:
        if not ask(COVERED):
            ask(COVERS)

    def always_both() -> None:
        ask(COVERED)
        ask(COVERS)

    ask(BOTH)  # What came before has left other things in the caches; nobody should pay for that.
    ways = (lambda: ask(BOTH), two_passes, always_both)
    spent = np.zeros(len(ways))
    for turn in range(TURNS):
        for at in range(len(ways)):
            way = (turn + at) % len(ways)
            spent[way] += seconds(ways[way])
    return spent / TURNS


def _warm_up(some: Sequence[Conjunction]) -> None:
    """Compile what is measured."""
    for cached in (True, False):
        table = RootTable(cached=cached)
        table.insert(some)
        if cached:
            _searched(table, some[:1], len(table), {True: 0.0, False: 0.0})
