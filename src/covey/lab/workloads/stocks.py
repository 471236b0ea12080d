"""Stock quotes: a symbol by Zipf's law, a price and a volume; subscriptions name a symbol and a range of each.

The symbols of subscriptions and of quotes follow one law, so what is asked for most is quoted most. Ranges are a tenth
of the domain wide, which gives some ten matches a quote at 100,000 subscriptions. Prices are rounded to cents.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from covey.lab.workloads.blocks import BLOCK, by_chance, frame, generator, zipf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SYMBOLS: Final = 1_000
SKEW: Final = 0.8
PRICE_MOST: Final = 1_000.0
VOLUME_MOST: Final = 1_000_000
WIDTH: Final = 0.1

_CHANCES: Final = zipf(SYMBOLS, SKEW)


def subscription_block(seed: int, number: int) -> pa.Table:
    """One block of subscriptions: filter (SQL text)."""
    rng = generator(seed, "stock subscriptions", number)
    symbols = by_chance(rng, _CHANCES, BLOCK).tolist()
    prices = np.round(rng.uniform(0, PRICE_MOST * (1 - WIDTH), BLOCK), 2)
    volumes = rng.integers(0, round(VOLUME_MOST * (1 - WIDTH)), BLOCK)
    columns = zip(symbols, prices.tolist(), volumes.tolist(), strict=True)
    texts = [
        f"symbol = 'S{symbol}' AND price BETWEEN {price} AND {round(price + PRICE_MOST * WIDTH, 2)} "
        f"AND volume BETWEEN {volume} AND {volume + round(VOLUME_MOST * WIDTH)}"
        for symbol, price, volume in columns
    ]
    return pa.table({"filter": texts})


def quote_block(seed: int, number: int) -> pa.Table:
    """One block of quotes."""
    rng = generator(seed, "stock quotes", number)
    return pa.table(
        {
            "symbol": _symbols().take(pa.array(by_chance(rng, _CHANCES, BLOCK))),
            "price": np.round(rng.uniform(0, PRICE_MOST, BLOCK), 2),
            "volume": rng.integers(0, VOLUME_MOST, BLOCK),
        }
    )


def subscriptions(spark: SparkSession, count: int, seed: int = 1, partitions: int | None = None) -> DataFrame:
    """Subscriptions as a DataFrame: row and filter."""
    return frame(spark, count, lambda number: subscription_block(seed, number), partitions)


def quotes(spark: SparkSession, count: int, seed: int = 1, partitions: int | None = None) -> DataFrame:
    """Quotes as a DataFrame: row, symbol, price and volume."""
    return frame(spark, count, lambda number: quote_block(seed, number), partitions)


@lru_cache(maxsize=1)
def _symbols() -> pa.Array:
    return pa.array([f"S{number}" for number in range(SYMBOLS)], pa.string())
