"""Rows drawn in blocks of 1,024 by counter-based random numbers.

Philox is a function from (key, counter) to random bits. The key here is the workload's seed and the name of what is
drawn, and each block starts at a counter of its own, so a block can be drawn by anyone, at any time, in any order. A
block is always drawn whole and then cut, so that the number of rows asked for doesn't change the rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.lab.experiments import LabError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BLOCK: Final = 1_024
MOST_ROWS: Final = 1_000_000_000
MakeBlock = Callable[[int], pa.Table]


def generator(seed: int, what: str, block: int = 0) -> np.random.Generator:
    """The random numbers of one block of `what`."""
    key = np.array([seed & (2**64 - 1), zlib.crc32(what.encode())], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=[0, 0, 0, block]))


def block_count(rows: int) -> int:
    """How many blocks hold that many rows."""
    if not 0 <= rows <= MOST_ROWS:
        raise LabError(f"{rows:,} rows were asked for; a workload has 0 to {MOST_ROWS:,}")
    return -(-rows // BLOCK)


def table(rows: int, make: MakeBlock) -> pa.Table:
    """All rows in this process."""
    blocks = [make(block) for block in range(max(1, block_count(rows)))]
    return pa.concat_tables(blocks).slice(0, rows).combine_chunks()


def frame(spark: SparkSession, rows: int, make: MakeBlock, partitions: int | None = None) -> DataFrame:
    """All rows as a DataFrame; workers draw them, block by block. Its column `row` numbers them from 0."""
    from pyspark.sql.pandas.types import from_arrow_schema

    blocks = block_count(rows)

    def draw(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column(0).to_pylist():
                yield from _numbered(make(block), block, rows).to_batches()

    schema = from_arrow_schema(_numbered(make(0), 0, 0).schema)
    return spark.range(0, blocks, 1, partitions).mapInArrow(draw, schema)


def _numbered(drawn: pa.Table, block: int, rows: int) -> pa.Table:
    start = block * BLOCK
    cut = drawn.slice(0, max(0, rows - start))
    numbers = pa.array(np.arange(start, start + cut.num_rows))
    return cut.add_column(0, "row", numbers).combine_chunks()


def zipf(size: int, skew: float) -> NDArray[np.float64]:
    """Cumulative chances of ranks 1 to `size` under Zipf's law."""
    weights = np.arange(1, size + 1) ** -float(skew)
    return np.asarray(np.cumsum(weights) / weights.sum())


def by_chance(
    rng: np.random.Generator, cumulative: NDArray[np.float64], size: int | tuple[int, ...]
) -> NDArray[np.int64]:
    """Places drawn by cumulative chances."""
    places = np.searchsorted(cumulative, rng.random(size), side="right")
    return np.minimum(places, len(cumulative) - 1).astype(np.int64)
