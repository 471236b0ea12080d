"""The rectangles of Jafarpour et al., section 5: subscriptions in 2 to 5 dimensions.

The domain of each dimension is [0, 1000]. The lower end is drawn by Zipf's law, the size evenly up to the domain's end.
The paper states neither the law's exponent nor whether lower ends are whole. Here they are whole (rank 1 is 0), sizes
are real, and the exponent is a parameter, which decides how much is redundant.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.lab.workloads.blocks import BLOCK, block_count, by_chance, frame, generator, zipf
from covey.relations.subsumption import Number, Rectangle, Space

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBSCRIPTIONS: Final = 10_000
DOMAIN: Final = 1_000
EXPONENT: Final = 0.5
Ends = tuple[NDArray[np.float64], NDArray[np.float64]]

_chances = lru_cache(maxsize=8)(zipf)


def block(dimensions: int, seed: int, number: int, exponent: float = EXPONENT) -> Ends:
    """Lower and upper ends of one block, both included, a column for each dimension."""
    rng = generator(seed, f"rectangles in {dimensions}", number)
    low = by_chance(rng, _chances(DOMAIN + 1, exponent), (BLOCK, dimensions)).astype(np.float64)
    return low, low + rng.random((BLOCK, dimensions)) * (DOMAIN - low)


def ends(dimensions: int, count: int = SUBSCRIPTIONS, seed: int = 1, exponent: float = EXPONENT) -> Ends:
    """The same for many, in this process."""
    blocks = [block(dimensions, seed, number, exponent) for number in range(max(1, block_count(count)))]
    low, high = (np.concatenate(parts)[:count] for parts in zip(*blocks, strict=True))
    return low, high


def rectangles(
    spark: SparkSession,
    subscriptions: int = SUBSCRIPTIONS,
    dimensions: int = 2,
    seed: int = 1,
    exponent: float = EXPONENT,
    partitions: int | None = None,
) -> DataFrame:
    """The same as a DataFrame: row, and columns low_0, high_0 and so on."""

    def make(number: int) -> pa.Table:
        low, high = block(dimensions, seed, number, exponent)
        return pa.table(
            {
                f"{end}_{dimension}": values[:, dimension]
                for dimension in range(dimensions)
                for end, values in (("low", low), ("high", high))
            }
        )

    return frame(spark, subscriptions, make, partitions)


def space(dimensions: int) -> Space:
    """The space they live in: numbers that every event has."""
    return Space(Number(f"a{dimension}", 0, DOMAIN, optional=False) for dimension in range(dimensions))


def regions(within: Space, bounds: Ends) -> list[Rectangle]:
    """Ends as rectangles of a space."""
    names = [dimension.attribute for dimension in within.dimensions]
    pairs = zip(*(side.tolist() for side in bounds), strict=True)
    return [within.rectangle(dict(zip(names, zip(low, high, strict=True), strict=True))) for low, high in pairs]
