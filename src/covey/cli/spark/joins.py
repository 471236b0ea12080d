"""What Spark does alone with the demo's wishes: joins, one for each shape of wish.

Wishes of one shape differ in their constants only, so that they are a table of constants, and matching them is a join
with that table whose condition is the shape. That is the best that is known without an index: Spark joins by a hash
where a shape asks for equality (`symbol = …`), and tries every wish with every quote where it doesn't.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CONSTANT: Final = re.compile(r"'([^']*)'|(?<![\w.])-?\d+(?:\.\d+)?")
FEW, MANY = 200, 2_200
"""Quotes of the two runs, between which the costs of planning and of sending tables around cancel out."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A sample matched by joins."""

    quotes: int
    matches: int
    rate: float
    """Quotes a second, beyond what a query costs by itself."""
    shapes: int


def shape(text: str) -> tuple[str, list[str], list[float]]:
    """A wish with the places of its constants, its texts, and its numbers."""
    words: list[str] = []
    numbers: list[float] = []

    def place(found: re.Match[str]) -> str:
        if found[1] is None:
            numbers.append(float(found[0]))
            return f"numbers[{len(numbers) - 1}]"
        words.append(found[1])
        return f"words[{len(words) - 1}]"

    return _CONSTANT.sub(place, text), words, numbers


def joined(spark: SparkSession, quotes: DataFrame, wishes: Sequence[tuple[str, str]]) -> tuple[DataFrame, int]:
    """The quotes with each wish (`id`) that they meet, and how many joins that takes."""
    from pyspark.sql import functions as sf

    tables: dict[str, list[tuple[str, list[str], list[float]]]] = {}
    for id, text in wishes:
        condition, words, numbers = shape(text)
        tables.setdefault(condition, []).append((id, words, numbers))
    parts = []
    for condition, rows in tables.items():
        columns = dict(zip(("id", "words", "numbers"), zip(*rows, strict=True), strict=True))
        table = spark.createDataFrame(pa.table({name: list(values) for name, values in columns.items()}, _SCHEMA))
        parts.append(quotes.join(sf.broadcast(table), sf.expr(condition)).drop("words", "numbers"))
    return reduce(lambda one, other: one.unionAll(other), parts), len(parts)


_SCHEMA: Final = pa.schema({"id": pa.string(), "words": pa.list_(pa.string()), "numbers": pa.list_(pa.float64())})


def compare(spark: SparkSession, quotes: pa.Table, wishes: Sequence[tuple[str, str]]) -> Compared:
    """Match a sample of quotes by joins, twice, and say what a quote costs."""
    seconds, counts = [], []
    for size in (FEW, FEW, MANY):
        sample = spark.createDataFrame(quotes.slice(0, size))
        found, shapes = joined(spark, sample, wishes)
        start = time.perf_counter()
        counts.append(found.count())
        seconds.append(time.perf_counter() - start)
    size = min(MANY, quotes.num_rows)
    more = seconds[2] - seconds[1]
    rate = (size - FEW) / more if more > 0 and size > FEW else size / seconds[2]
    return Compared(size, counts[2], rate, shapes)
