"""A made-up market: stocks, the wishes of traders as filters, and a stream of quotes. The seed decides it all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

SECTORS = (
    "Energy", "Materials", "Industrials", "Utilities", "Health", "Finance", "Consumer", "Technology", "Telecom",
    "Property", "Transport",
)  # fmt: skip
VENUES = ("NORTH", "SOUTH", "HARBOUR", "ISLAND")
_VERSIONS = 5
_LETTERS = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


@dataclass(frozen=True, slots=True)
class Market:
    """The stocks: a symbol, a sector, a usual price and a usual volume of each, the most traded first."""

    symbols: tuple[str, ...]
    sectors: tuple[str, ...]
    prices: NDArray[np.float64]
    volumes: NDArray[np.float64]
    interest: NDArray[np.float64]
    """How often each stock is traded and asked for; few stocks have most of it."""


def market(seed: int, size: int = 500) -> Market:
    """A market of stocks with names of three or four letters."""
    random = np.random.default_rng(seed)
    symbols: dict[str, None] = {}
    while len(symbols) < size:
        symbols["".join(random.choice(_LETTERS, size=random.integers(3, 5)))] = None
    interest = 1 / np.arange(1, size + 1) ** 0.7
    return Market(
        symbols=tuple(symbols),
        sectors=tuple(random.choice(SECTORS, size=size)),
        prices=np.round(random.lognormal(3.7, 0.9, size), 2),
        volumes=random.lognormal(7.5, 0.7, size),
        interest=interest / interest.sum(),
    )


def wishes(stocks: Market, count: int, seed: int) -> list[tuple[str, str]]:
    """Subscriptions: (id, filter) of `count` traders."""
    random = np.random.default_rng([seed, 1])
    chosen = random.choice(len(stocks.symbols), size=count, p=stocks.interest)
    kinds = random.choice(7, size=count, p=[0.34, 0.18, 0.16, 0.1, 0.1, 0.07, 0.05])
    return [
        (trader_id(number), _wish(int(kind), int(stock), stocks, random))
        for number, (kind, stock) in enumerate(zip(kinds, chosen, strict=True))
    ]


def changes(stocks: Market, traders: int, count: int, seed: int, version: int) -> list[dict[str, Any]]:
    """Rows of changes to the wishes of `traders`: at most `count` of them want something else, and one in ten of these
    nothing any more. Versions change different traders, up to five of them."""
    random = np.random.default_rng([seed, 3, version])
    some = np.arange(version % _VERSIONS, traders, _VERSIONS)
    chosen = random.choice(some, size=min(count, len(some)), replace=False).tolist()
    new = wishes(stocks, len(chosen), seed + version)
    return [
        {"version": version, "op": "replace", "id": trader_id(number), "filter": text}
        if place % 10
        else {"version": version, "op": "remove", "id": trader_id(number), "filter": None}
        for place, (number, (_, text)) in enumerate(zip(chosen, new, strict=True))
    ]


def trader_id(number: int) -> str:
    """What a trader is called."""
    return f"trader-{number:05}"


def _wish(kind: int, stock: int, stocks: Market, random: np.random.Generator) -> str:
    symbol, sector, price = stocks.symbols[stock], stocks.sectors[stock], float(stocks.prices[stock])
    low, high = price * random.uniform(0.85, 0.99), price * random.uniform(1.01, 1.15)
    near = price * random.uniform(0.88, 1.12)
    match kind:
        case 0:
            return f"symbol = '{symbol}' AND price BETWEEN {near:.2f} AND {near * random.uniform(1.005, 1.03):.2f}"
        case 1:
            return f"symbol = '{symbol}' AND (price <= {low:.2f} OR price >= {high:.2f}) AND NOT halted"
        case 2:
            others = random.choice(stocks.symbols, size=random.integers(2, 6), replace=False)
            listed = ", ".join(f"'{name}'" for name in dict.fromkeys([symbol, *map(str, others)]))
            sign = random.choice([-1, 1])
            test = f"change {'>=' if sign > 0 else '<='} {sign * random.uniform(1.5, 4):.1f}"
            return f"symbol IN ({listed}) AND {test} AND volume > {random.integers(5, 40) * 100}"
        case 3:
            hated = random.choice(stocks.symbols, size=2, replace=False)
            return (
                f"sector = '{sector}' AND volume >= {random.integers(80, 300) * 100} "
                f"AND NOT symbol IN ('{hated[0]}', '{hated[1]}')"
            )
        case 4:
            other = random.choice(SECTORS)
            return (
                f"(sector = '{sector}' OR sector = '{other}') AND change < -{random.uniform(3, 6):.1f} "
                f"AND price < {random.uniform(5, 60):.2f}"
            )
        case 5:
            venue = random.choice(VENUES)
            return f"symbol LIKE '{symbol[:2]}%' AND venue = '{venue}' AND price < {low:.2f}"
        case _:
            return f"dividend >= {random.uniform(3, 6):.1f} AND sector = '{sector}' AND price <= {high:.2f}"


def quotes(stocks: Market, count: int, seed: int) -> pa.Table:
    """A stream of quotes. Each stock's price wanders around its usual one; few quotes tell of a dividend."""
    random = np.random.default_rng([seed, 2])
    stock = random.choice(len(stocks.symbols), size=count, p=stocks.interest)
    walk = np.empty(count)
    for one in range(len(stocks.symbols)):
        where = np.flatnonzero(stock == one)
        walk[where] = np.cumsum(random.normal(0, 0.03 / np.sqrt(max(len(where), 1)), len(where)))
    price = np.round(stocks.prices[stock] * (1 + walk), 2)
    words = pa.array(stock, pa.int32())
    return pa.table(
        {
            "symbol": pa.DictionaryArray.from_arrays(words, pa.array(stocks.symbols)),
            "sector": pa.DictionaryArray.from_arrays(words, pa.array(stocks.sectors)).dictionary_decode(),
            "price": price,
            "change": np.round(100 * walk + random.normal(0, 0.5, count), 2),
            "volume": (stocks.volumes[stock] * random.lognormal(0, 0.6, count)).astype(np.int64),
            "venue": pa.array(np.array(VENUES)[random.integers(len(VENUES), size=count)]),
            "halted": random.random(count) < 0.002,
            "dividend": pa.array(np.round(random.uniform(0, 7, count), 1), mask=random.random(count) > 0.02),
        }
    )
