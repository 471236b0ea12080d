"""Sets A and B of Li, Hou and Jacobsen (section 6): subscriptions over a fixed number of distinct predicates.

The paper says: twenty ordered attributes, integers, 200,000 subscriptions, 2,000 distinct predicates in set A and 5,000
in set B, values taken evenly from ranges; "about 75%" of set A's and "about 45%" of set B's subscriptions are covered.
It doesn't say how many predicates a subscription has, which operators, or whether some are asked for more often. Here:

- an attribute has an equal part of the predicates: a share of them are equalities, the others half `<=`, half `>=`;
- constants are evenly spaced, so that every predicate is distinct;
- a subscription has a number of predicates on different attributes, with the chances in `widths`;
- attributes are popular by Zipf's law with exponent `skew`, in their order; predicates of one attribute evenly.

`skew`, the widths and the share of equalities were chosen such that the covering rates come near the paper's. They
are one world of many that give these rates. The set of figures 14 and 15 is only known to have 100,000 subscriptions
of which covering and perfect merging leave 32,852; `IMT_SET` is set A with a skew that comes near that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters import And, Compare, Filter
from covey.lab.workloads.blocks import BLOCK, block_count, frame, generator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTRIBUTES: Final = tuple(f"a{number:02}" for number in range(20))
SUBSCRIPTIONS: Final = 200_000
IMT_SUBSCRIPTIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Pool:
    """How a set is drawn."""

    name: str
    predicates: int
    widths: tuple[tuple[int, float], ...]
    equal_share: float
    skew: float
    paper_rate: float | None


_WIDTHS: Final = ((3, 0.2), (4, 0.8))
SET_A: Final = Pool("A", 2_000, _WIDTHS, 0.3, 0.85, 0.75)
SET_B: Final = Pool("B", 5_000, _WIDTHS, 0.53, 0.0, 0.45)
IMT_SET: Final = Pool("IMT", 2_000, _WIDTHS, 0.3, 0.91, None)
POOLS: Final = {pool.name: pool for pool in (SET_A, SET_B, IMT_SET)}


@dataclass(frozen=True, slots=True)
class Drawn:
    """Subscriptions as numbers of predicates; `ends[i]` is where subscription i ends in `chosen`."""

    filters: tuple[Compare, ...]
    chosen: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def subscriptions(self) -> list[Filter]:
        """The filters; equal predicates are the same object."""
        chosen, start, result = self.chosen.tolist(), 0, []
        for end in self.ends.tolist():
            parts = tuple([self.filters[number] for number in chosen[start:end]])
            result.append(And(parts) if len(parts) > 1 else parts[0])
            start = end
        return result

    def texts(self) -> list[str]:
        """The filters as SQL text."""
        words = [str(condition) for condition in self.filters]
        chosen, start, result = self.chosen.tolist(), 0, []
        for end in self.ends.tolist():
            result.append(" AND ".join([words[number] for number in chosen[start:end]]))
            start = end
        return result


@lru_cache(maxsize=8)
def predicates(pool: Pool) -> tuple[Compare, ...]:
    """The distinct predicates, attribute by attribute."""
    each = pool.predicates // len(ATTRIBUTES)
    equal = round(each * pool.equal_share)
    low = (each - equal) // 2
    result = []
    for name in ATTRIBUTES:
        result += [Compare(name, "=", 10 * value) for value in range(equal)]
        result += [Compare(name, "<=", _spread(value, low, equal)) for value in range(low)]
        result += [
            Compare(name, ">=", _spread(value, each - equal - low, equal)) for value in range(each - equal - low)
        ]
    return tuple(result)


def _spread(number: int, count: int, equal: int) -> int:
    """Thresholds as evenly over the range of the equalities' constants as integers allow."""
    return (number + 1) * 10 * max(equal, count) // (count + 1)


def block(pool: Pool, seed: int, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One block of subscriptions: how many predicates each has, and their numbers, one subscription after the other."""
    rng = generator(seed, f"pool {pool.name}", number)
    each = pool.predicates // len(ATTRIBUTES)
    widths = rng.choice([width for width, _ in pool.widths], size=BLOCK, p=[chance for _, chance in pool.widths])
    popularity = 1 / np.arange(1, len(ATTRIBUTES) + 1) ** pool.skew
    # Gumbel's trick draws different attributes for all subscriptions at once, by weight and without replacement.
    order = np.argsort(-(np.log(popularity) + rng.gumbel(size=(BLOCK, len(ATTRIBUTES)))), axis=1)
    numbers = order * each + rng.integers(0, each, size=order.shape)
    return widths, numbers[np.arange(len(ATTRIBUTES)) < widths[:, None]]


def draw(pool: Pool, count: int = SUBSCRIPTIONS, seed: int = 2005) -> Drawn:
    """Random subscriptions of a pool, in this process."""
    blocks = [block(pool, seed, number) for number in range(block_count(count))]
    empty = np.zeros(0, np.int64)
    ends = np.cumsum(np.concatenate([empty, *(widths for widths, _ in blocks)])[:count])
    chosen = np.concatenate([empty, *(numbers for _, numbers in blocks)])[: ends[-1] if count else 0]
    return Drawn(predicates(pool), chosen, ends)


def subscriptions(
    spark: SparkSession, pool: Pool, count: int = SUBSCRIPTIONS, seed: int = 2005, partitions: int | None = None
) -> DataFrame:
    """The same as a DataFrame: row, filter (SQL text) and predicates (their numbers)."""

    def make(number: int) -> pa.Table:
        widths, numbers = block(pool, seed, number)
        drawn = Drawn(predicates(pool), numbers, np.cumsum(widths))
        offsets = pa.array(np.concatenate([[0], drawn.ends]), pa.int32())
        return pa.table({"filter": drawn.texts(), "predicates": pa.ListArray.from_arrays(offsets, pa.array(numbers))})

    return frame(spark, count, make, partitions)
