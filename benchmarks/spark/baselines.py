"""What one would do on Spark without covey, each as well as it can be done: DataFrames of (events matched with ids).

The nested loop join takes conjunctions as a table of bounds, with a NULL for what a subscription doesn't ask, which is
how rules of several shapes fit in one table. The hash join is what a person who knows that every rule has a symbol
would write; it is fast, and covers this one shape only. The array of CASE expressions takes any Boolean filter; code
generation is off for it, since beyond some hundred expressions it fails and falls back, at a tenth of the speed. Brute
force tries every subscription on every event in compiled code inside `mapInArrow`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

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
