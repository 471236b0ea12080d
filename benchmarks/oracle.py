"""The number of matches by an evaluation that shares no code with covey.

A predicate's outcome over all events is one Python integer per truth value, a bit an event: `true` and `false`; an
event in neither is unknown, as in SQL. Comparisons come from prefix unions over the sorted values, so that a range
costs two look-ups, and a tree costs a handful of integer operations whatever the number of events. `check` compares
this evaluation with DuckDB running the SQL text of a sample of the same subscriptions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.trees import Tree
from benchmarks.workloads import Workload

Truth = tuple[int, int]
_ROWS_AT_ONCE = 4096


class _Column:
    """One attribute over all events."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.by_value: dict[Any, int] = {}
        self._parts: dict[tuple[str, bool], int] = {}
        self._lowered: list[str] = []
        for event, value in enumerate(values):
            if value is not None:
                self.by_value[value] = self.by_value.get(value, 0) | (1 << event)
        self.ordered: list[Any] = sorted(self.by_value)
        self.below = [0]
        for value in self.ordered:
            self.below.append(self.below[-1] | self.by_value[value])
        self.defined = self.below[-1]

    def less(self, bound: Any) -> int:
        return self.below[bisect_left(self.ordered, bound)]

    def less_or_equal(self, bound: Any) -> int:
        return self.below[bisect_right(self.ordered, bound)]

    def compare(self, operator: str, bound: Any) -> int:
        if operator == "=":
            return self.by_value.get(bound, 0)
        if operator == "!=":
            return self.defined & ~self.by_value.get(bound, 0)
        if operator == "<":
            return self.less(bound)
        if operator == "<=":
            return self.less_or_equal(bound)
        if operator == ">":
            return self.defined & ~self.less_or_equal(bound)
        return self.defined & ~self.less(bound)

    def with_part(self, text: str, *, any_case: bool) -> int:
        """The events whose text has a part; each is looked for once."""
        found = self._parts.get((text, any_case))
        if found is None:
            wanted = text.lower() if any_case else text
            held = self.ordered if not any_case else self._lower()
            values = [value for value, one in zip(self.ordered, held, strict=True) if wanted in str(one)]
            found = self._parts[text, any_case] = self.any_of(values)
        return found

    def _lower(self) -> list[str]:
        if not self._lowered:
            self._lowered = [str(value).lower() for value in self.ordered]
        return self._lowered

    def any_of(self, values: Sequence[Any]) -> int:
        found = 0
        for value in values:
            found |= self.by_value.get(value, 0)
        return found


class Oracle:
    """Counts of matches for each event of one workload."""

    def __init__(self, trees: list[Tree], events: pa.Table) -> None:
        self._events = events.num_rows
        self._columns = {name: _Column(events[name].to_pylist()) for name in events.column_names}
        self.per_event = self._count(trees)

    def total(self, first: int) -> int:
        """Matches of the first `first` events."""
        return int(self.per_event[:first].sum())

    def matches(self, tree: Tree) -> int:
        """The events that satisfy the tree, a bit each."""
        return self._evaluate(tree)[0]

    def _evaluate(self, tree: Tree) -> Truth:
        kind = tree[0]
        if kind == "and":
            true, false = self._evaluate(tree[1])
            for child in tree[2:]:
                t, f = self._evaluate(child)
                true &= t
                false |= f
            return true, false
        if kind == "or":
            true, false = self._evaluate(tree[1])
            for child in tree[2:]:
                t, f = self._evaluate(child)
                true |= t
                false &= f
            return true, false
        if kind == "not":
            true, false = self._evaluate(tree[1])
            return false, true
        column = self._columns[tree[1]]
        true = self._predicate(column, tree)
        return true, column.defined & ~true

    def _predicate(self, column: _Column, tree: Tree) -> int:
        kind = tree[0]
        if kind == "cmp":
            return column.compare(tree[2], tree[3])
        if kind == "between":
            return column.less_or_equal(tree[3]) & ~column.less(tree[2])
        if kind == "in":
            return column.any_of(tree[2])
        text: str = tree[2]
        if kind == "contains" or kind == "icontains":
            return column.with_part(text, any_case=kind == "icontains")
        return column.any_of([value for value in column.ordered if str(value) in text])

    def _count(self, trees: list[Tree]) -> np.ndarray:
        total = np.zeros(self._events, dtype=np.int64)
        for block in self._blocks(trees):
            bits = np.unpackbits(block, axis=1, count=self._events, bitorder="little")
            total += bits.sum(axis=0, dtype=np.int64)
        return total

    def _blocks(self, trees: list[Tree]) -> Iterator[np.ndarray]:
        width = (self._events + 7) // 8
        rows: list[bytes] = []
        for tree in trees:
            mask = self.matches(tree)
            if mask:
                rows.append(mask.to_bytes(width, "little"))
            if len(rows) == _ROWS_AT_ONCE:
                yield np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, width)
                rows = []
        if rows:
            yield np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, width)


def check(workload: Workload, sample: int = 100, first: int = 500) -> int:
    """Compare with DuckDB on some subscriptions and the first events; the matches there, or AssertionError.

    Half of the sample is taken in order, half from those that match something, since most match nothing at all.
    """
    import duckdb

    events = workload.events.slice(0, first)
    oracle = Oracle([], events)
    chosen = list(range(min(sample // 2, len(workload.trees))))
    matching = (i for i, tree in enumerate(workload.trees) if oracle.matches(tree))
    chosen += list(islice(matching, sample - len(chosen)))
    connection = duckdb.connect()
    connection.execute("CREATE MACRO substring_of(value, text) AS contains(text, value)")
    connection.register("events", events)
    total = 0
    for i in chosen:
        sql = workload.subscriptions[i][1]
        row = connection.execute(f"SELECT count(*) FROM events WHERE {sql}").fetchone()
        here = oracle.matches(workload.trees[i]).bit_count()
        assert row is not None
        assert row[0] == here, f"{workload.name}: {here} here, {row} by DuckDB for {sql}"
        total += here
    return total
