"""What one would do on Spark without covey, each as well as it can be done: DataFrames of (events matched with ids).

The nested loop join takes conjunctions as a table of bounds, with a NULL for what a subscription doesn't ask, which is
how rules of several shapes fit in one table. The hash join is what a person who knows that every rule has a symbol
would write; it is fast, and covers this one shape only. The array of CASE expressions takes any Boolean filter; code
generation is off for it, since beyond some hundred expressions it fails and falls back, at a tenth of the speed. Brute
force tries every subscription on every event in compiled code inside `mapInArrow`: once written for the one shape of
`conj`, once for any Boolean filter, as tests with jumps so that no test is made whose outcome doesn't matter.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.trees import Tree
from benchmarks.workloads import Workload

BOUNDS = "id string, symbol string, p0 double, p1 double, v0 bigint, v1 bigint"
PAIRS = "event bigint, subscription int"


def bounds(workload: Workload) -> list[tuple[str, str, float, float, int, int]]:
    """The `conj` workload as a table of bounds."""
    rows = []
    for (identifier, _), tree in zip(workload.subscriptions, workload.trees, strict=True):
        _, (_, _, _, symbol), (_, _, p0, p1), (_, _, v0, v1) = tree
        rows.append((identifier, symbol, p0, p1, v0, v1))
    return rows


def _within() -> object:
    price, volume = F.col("price").between(F.col("p0"), F.col("p1")), F.col("volume").between(F.col("v0"), F.col("v1"))
    return (F.col("p0").isNull() | price) & (F.col("v0").isNull() | volume)


def nested_loop_join(spark: SparkSession, events: DataFrame, workload: Workload) -> DataFrame:
    """Every event with every rule, one broadcast."""
    rules = spark.createDataFrame(bounds(workload), BOUNDS).withColumnRenamed("symbol", "wanted")
    symbol = F.col("wanted").isNull() | (F.col("symbol") == F.col("wanted"))
    return events.join(F.broadcast(rules), symbol & _within()).select(*events.columns, "id")


def hash_join(spark: SparkSession, events: DataFrame, workload: Workload) -> DataFrame:
    """By symbol, for rules that all have one."""
    rules = spark.createDataFrame(bounds(workload), BOUNDS).withColumnRenamed("symbol", "wanted")
    joined = events.join(F.broadcast(rules), (F.col("symbol") == F.col("wanted")) & _within())
    return joined.select(*events.columns, "id")


def case_array(spark: SparkSession, events: DataFrame, workload: Workload) -> DataFrame:
    """One array of CASE expressions, in pieces of 500."""
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    cases = [F.expr(f"CASE WHEN {text} THEN '{identifier}' END") for identifier, text in workload.subscriptions]
    pieces = [F.array_compact(F.array(*cases[first : first + 500])) for first in range(0, len(cases), 500)]
    return events.select("*", F.concat(*pieces).alias("subscriptions"))


@numba.njit(cache=True)
def _brute(event, symbol, price, volume, wanted, p0, p1, v0, v1, found):  # type: ignore[no-untyped-def]
    """Numbers of the rules that one event meets; how many."""
    count = 0
    for rule in range(len(wanted)):
        if (
            symbol[event] == wanted[rule]
            and p0[rule] <= price[event] <= p1[rule]
            and v0[rule] <= volume[event] <= v1[rule]
        ):
            found[count] = rule
            count += 1
    return count


@numba.njit(cache=True)
def _brute_all(symbol, price, volume, wanted, p0, p1, v0, v1):  # type: ignore[no-untyped-def]
    """Offsets and rules of all events."""
    offsets = np.zeros(len(symbol) + 1, np.int32)
    found = np.empty(len(wanted), np.int32)
    out = np.empty(1 << 16, np.int32)
    for event in range(len(symbol)):
        count = _brute(event, symbol, price, volume, wanted, p0, p1, v0, v1, found)
        used = offsets[event]
        if used + count > len(out):
            larger = np.empty(2 * (used + count), np.int32)
            larger[:used] = out[:used]
            out = larger
        out[used : used + count] = found[:count]
        offsets[event + 1] = used + count
    return offsets, out[: offsets[-1]].copy()


def brute_force(events: DataFrame, workload: Workload) -> DataFrame:
    """Compiled code that tries each rule on each event, in workers; arrays of integers, as its cheapest answer."""
    rows = bounds(workload)
    symbols = sorted({row[1] for row in rows})
    place = {symbol: number for number, symbol in enumerate(symbols)}
    wanted = np.array([place[row[1]] for row in rows], np.int32)
    columns = [np.array([row[n] for row in rows]) for n in range(2, 6)]

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        known = pa.array(symbols)
        for batch in batches:
            symbol = pc.fill_null(pc.index_in(batch.column("symbol"), known), -1).to_numpy().astype(np.int32)
            price, volume = batch.column("price").to_numpy(), batch.column("volume").to_numpy()
            offsets, rules = _brute_all(symbol, price, volume, wanted, *columns)
            lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(rules))
            yield pa.RecordBatch.from_arrays([*batch.columns, lists], names=[*batch.schema.names, "subscriptions"])

    kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in events.schema)
    return events.mapInArrow(match, f"{kinds}, subscriptions array<int>")


@numba.njit(cache=True)
def _jump(values, starts, attribute, low, high, if_true, if_false):  # type: ignore[no-untyped-def]
    """Offsets and subscriptions of all events. A test is low <= value <= high of an attribute; a jump to -1 says that
    the subscription matches, to -2 that it doesn't."""
    count = len(starts) - 1
    offsets = np.zeros(values.shape[1] + 1, np.int32)
    out = np.empty(1 << 16, np.int32)
    used = 0
    for event in range(values.shape[1]):
        if used + count > len(out):
            larger = np.empty(2 * (used + count), np.int32)
            larger[:used] = out[:used]
            out = larger
        for subscription in range(count):
            at = starts[subscription]
            while at >= 0:
                holds = low[at] <= values[attribute[at], event] <= high[at]
                at = if_true[at] if holds else if_false[at]
            if at == -1:
                out[used] = subscription
                used += 1
        offsets[event + 1] = used
    return offsets, out[:used].copy()


class _Program:
    """Trees as tests with jumps over columns of doubles; strings are numbers in a dictionary."""

    def __init__(self, names: list[str], codes: dict[str, float]) -> None:
        self._names = names
        self._codes = codes
        self.tests: list[tuple[int, float, float, int, int]] = []

    def add(self, tree: Tree, true: int, false: int) -> int:
        """Where the tests of a tree start; they are written last first, so that targets are known."""
        match tree:
            case ["not", part]:
                return self.add(part, false, true)
            case ["and", *parts]:
                for part in reversed(parts):
                    true = self.add(part, true, false)
                return true
            case ["or", *parts]:
                for part in reversed(parts):
                    false = self.add(part, true, false)
                return false
            case ["in", name, values]:
                return self.add(["or", *(["cmp", name, "=", value] for value in values)], true, false)
            case ["between", name, low, high]:
                return self._test(name, low, high, true, false)
            case ["cmp", name, "=", value]:
                code = self._codes[value] if isinstance(value, str) else value
                return self._test(name, code, code, true, false)
            case ["cmp", name, "<", value]:
                return self._test(name, -np.inf, np.nextafter(value, -np.inf), true, false)
        raise ValueError(f"no test for {tree!r}")

    def _test(self, name: str, low: float, high: float, true: int, false: int) -> int:
        self.tests.append((self._names.index(name), low, high, true, false))
        return len(self.tests) - 1


def boolean_brute_force(events: DataFrame, workload: Workload) -> DataFrame:
    """Compiled code that tries each Boolean subscription on each event; arrays of integers, as its cheapest answer."""
    names = workload.events.column_names
    words = sorted({word for name in names if workload.events[name].type == pa.string()
                    for word in workload.events[name].unique().to_pylist()})  # fmt: skip
    program = _Program(names, {word: float(number) for number, word in enumerate(words)})
    starts = np.array([program.add(tree, -1, -2) for tree in workload.trees] + [0], np.int64)
    columns = [np.array(column) for column in zip(*program.tests, strict=True)]

    def match(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow.compute as pc

        known = pa.array(words)
        for batch in batches:
            values = np.empty((len(names), batch.num_rows))
            for number, name in enumerate(names):
                column = batch.column(name)
                values[number] = pc.index_in(column, known) if column.type == pa.string() else column
            offsets, found = _jump(values, starts, *columns)
            lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(found))
            yield pa.RecordBatch.from_arrays([*batch.columns, lists], names=[*batch.schema.names, "subscriptions"])

    kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in events.schema)
    return events.mapInArrow(match, f"{kinds}, subscriptions array<int>")
