"""Stock quotes with people who ask for round figures.

Symbols are popular by Zipf's law, among subscribers and in quotes. What is asked for, beside one symbol or a few: a
price up to a step of five, a band between two such steps, a volume above a step; so some filters are equal, some cover
others, some are neighbours that make a perfect merger, and some are covered by several together. Two exchanges publish,
each the quotes of its own symbols, and that is what they advertise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from covey.relations.subsumption import Integer, Nominal, Number, Space

SYMBOLS: Final = 100
SKEW: Final = 0.9
STEP: Final = 5
PRICES: Final = 100
VOLUMES: Final = 10_000
EXCHANGES: Final = ("north", "south")


@dataclass(frozen=True, slots=True)
class Workload:
    """Subscriptions (id and text), those that end again, and each exchange's advertisement and quotes."""

    subscriptions: list[tuple[str, str]]
    ended: list[str]
    advertisements: dict[str, str]
    quotes: dict[str, list[dict[str, Any]]]
    sample: list[dict[str, Any]]
    """Quotes of another day, for profiles."""


def generate(subscriptions: int, quotes: int, seed: int = 1) -> Workload:
    """The workload; the same arguments give the same one."""
    rng = np.random.default_rng(seed)
    listed = [(f"s{at}", _filter(rng)) for at in range(subscriptions)]
    ended = [listed[at][0] for at in rng.choice(subscriptions, subscriptions // 10, replace=False)]
    names = {
        exchange: [f"S{at}" for at in range(number, SYMBOLS, len(EXCHANGES))]
        for number, exchange in enumerate(EXCHANGES)
    }
    drawn = _quotes(rng, quotes)
    return Workload(
        listed,
        ended,
        {exchange: f"symbol IN ({', '.join(map(repr, symbols))})" for exchange, symbols in names.items()},
        {exchange: [quote for quote in drawn if quote["symbol"] in symbols] for exchange, symbols in names.items()},
        _quotes(rng, 5_000),
    )


def space() -> Space:
    """All quotes, for subsumption."""
    return Space([Nominal("symbol", [f"S{at}" for at in range(SYMBOLS)]), Number("price"), Integer("volume")])


def _symbol(rng: np.random.Generator) -> str:
    chances = np.arange(1, SYMBOLS + 1) ** -SKEW
    return f"S{rng.choice(SYMBOLS, p=chances / chances.sum())}"


def _filter(rng: np.random.Generator) -> str:
    symbol, step = _symbol(rng), STEP * int(rng.integers(1, PRICES // STEP))
    volume = 1_000 * int(rng.integers(1, 10))
    match rng.choice(5, p=(0.25, 0.35, 0.2, 0.15, 0.05)):
        case 0:
            return f"symbol = '{symbol}' AND price <= {step}"
        case 1:
            return f"symbol = '{symbol}' AND price >= {step} AND price < {step + STEP * int(rng.integers(1, 4))}"
        case 2:
            return f"symbol = '{symbol}' AND price >= {step} AND volume > {volume}"
        case 3:
            return f"symbol IN ('{symbol}', '{_symbol(rng)}') AND volume > {volume}"
        case _:
            return f"price >= {max(step, PRICES - 2 * STEP)} AND volume > {max(volume, 8_000)}"


def _quotes(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    chances = np.arange(1, SYMBOLS + 1) ** -SKEW
    symbols = rng.choice(SYMBOLS, count, p=chances / chances.sum())
    prices = np.round(rng.uniform(0, PRICES, count), 2)
    volumes = rng.integers(0, VOLUMES, count)
    return [
        {"symbol": f"S{symbol}", "price": price, "volume": volume}
        for symbol, price, volume in zip(symbols.tolist(), prices.tolist(), volumes.tolist(), strict=True)
    ]
