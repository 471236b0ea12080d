"""Online book auctions, after the scenario of Bittner and Hinze's experiments: three classes of subscriptions, and
events whose values are spread as auctions' are.

Titles are named by a Zipf law, in events and in subscriptions alike; a title has one author and one category. Prices
are log-normal, dearer for new, signed and first editions. Most auctions have no bid, fixed-price offers never have one,
and what is still to be announced ends soon more often than late. Format, condition and specials may be left out.

1. A reader wants a title, at a price that depends on its condition, at once or soon.
2. A follower wants an author's books below a price, in a format or signed, not yet fought over, of a trusted seller.
3. A collector watches a category: first editions, signed copies, or auctions about to end that nobody noticed.

Only the attributes and the classes are taken from what the authors describe; the parameters below are chosen. Which
author and category a title has depends on the seed alone, everything else on the seed and the row.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters import And, Compare, Filter, Not, Or
from covey.lab.workloads.blocks import BLOCK, block_count, by_chance, frame, generator, table, zipf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBSCRIPTIONS: Final = 200_000
EVENTS: Final = 100_000

TITLES: Final = 20_000
AUTHORS: Final = 4_000
CATEGORIES: Final = (
    "crime",
    "fantasy",
    "romance",
    "thriller",
    "classic",
    "horror",
    "poetry",
    "humour",
    "war",
    "western",
)
FORMATS: Final = ("paperback", "hardcover", "audio")
CLASSES: Final = (0.5, 0.3, 0.2)
"""Shares of the three classes among subscriptions."""

_SKEW: Final = 0.9
_MEDIAN_PRICE: Final = 6.0
_WEEK: Final = 168


@dataclass(frozen=True)
class Auctions:
    """Subscriptions, the class of each (1 to 3), and events."""

    subscriptions: list[tuple[str, Filter]]
    classes: NDArray[np.int64]
    events: pa.Table

    def texts(self) -> list[tuple[str, str]]:
        """The same subscriptions as SQL."""
        return [(id, str(condition)) for id, condition in self.subscriptions]


@dataclass(frozen=True)
class _Library:
    """Which author and category each title has."""

    author: NDArray[np.int64]
    category: NDArray[np.int64]


@dataclass(frozen=True)
class _Predicates:
    """Predicates by what they say, so that equal ones are one object."""

    made: dict[tuple[str, str, object], Filter] = field(default_factory=dict)

    def all(self, name: str, operator: str, values: Sequence[object]) -> list[Filter]:
        """A predicate for each value."""
        return [self.one(name, operator, value) for value in values]

    def one(self, name: str, operator: str, value: object) -> Filter:
        """The predicate on this value."""
        key = (name, operator, value)
        if key not in self.made:
            self.made[key] = Compare(name, operator, value)  # type: ignore[arg-type]
        return self.made[key]


def generate(subscriptions: int = SUBSCRIPTIONS, events: int = EVENTS, seed: int = 1) -> Auctions:
    """The workload in this process."""
    enabled = gc.isenabled()
    gc.disable()  # millions of small values and no cycles: collecting would take most of the time
    try:
        shared = _Predicates()
        blocks = [_block(seed, number, shared) for number in range(block_count(subscriptions))]
        listed = [condition for _, filters in blocks for condition in filters][:subscriptions]
    finally:
        if enabled:
            gc.enable()
    classes = np.concatenate([np.zeros(0, np.int64), *(numbers for numbers, _ in blocks)])[:subscriptions]
    drawn = table(events, lambda number: event_block(seed, number))
    return Auctions([(f"a{at}", one) for at, one in enumerate(listed)], classes, drawn)


def subscriptions(
    spark: SparkSession, count: int = SUBSCRIPTIONS, seed: int = 1, partitions: int | None = None
) -> DataFrame:
    """Subscriptions as a DataFrame: row, class (1 to 3) and filter (SQL text)."""
    return frame(spark, count, lambda number: subscription_block(seed, number), partitions)


def events(spark: SparkSession, count: int = EVENTS, seed: int = 1, partitions: int | None = None) -> DataFrame:
    """Events as a DataFrame, with a column for each attribute."""
    return frame(spark, count, lambda number: event_block(seed, number), partitions)


def subscription_block(seed: int, number: int) -> pa.Table:
    """One block of subscriptions: class, filter."""
    classes, filters = _block(seed, number, _Predicates())
    return pa.table({"class": classes, "filter": [str(condition) for condition in filters]})


def _block(seed: int, number: int, shared: _Predicates) -> tuple[NDArray[np.int64], list[Filter]]:
    rng, library = generator(seed, "auction subscriptions", number), _library(seed)
    classes = rng.choice(np.arange(1, len(CLASSES) + 1), BLOCK, p=CLASSES)
    placed: list[tuple[int, Filter]] = []
    for which, make in enumerate((_readers, _followers, _collectors), 1):
        rows = np.flatnonzero(classes == which)
        placed += zip(rows.tolist(), make(rng, len(rows), library, shared), strict=True)
    return classes, [one for _, one in sorted(placed, key=lambda pair: pair[0])]


@lru_cache(maxsize=4)
def _library(seed: int) -> _Library:
    rng = generator(seed, "auction library")
    writers = by_chance(rng, zipf(AUTHORS, _SKEW), TITLES)
    return _Library(writers, rng.integers(0, len(CATEGORIES), AUTHORS)[writers])


_TITLE_CHANCES: Final = zipf(TITLES, _SKEW)


def _titles(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    return by_chance(rng, _TITLE_CHANCES, size)


def _prices(rng: np.random.Generator, size: int, factor: float) -> NDArray[np.float64]:
    """What people are ready to pay, in halves."""
    prices = _MEDIAN_PRICE * factor * rng.lognormal(0.0, 0.5, size)
    return np.maximum(0.5, np.round(prices * 2) / 2)


def _readers(rng: np.random.Generator, size: int, _: _Library, predicates: _Predicates) -> list[Filter]:
    new, used = predicates.all("condition", "=", ("new", "used"))
    now = predicates.one("buy_it_now", "=", True)
    columns = zip(
        predicates.all("title", "=", [f"title {at}" for at in _titles(rng, size).tolist()]),
        predicates.all("price", "<", _prices(rng, size, 1.5).tolist()),
        predicates.all("price", "<", _prices(rng, size, 0.8).tolist()),
        predicates.all("ending", "<", rng.choice([6, 12, 24, 48], size).tolist()),
        strict=True,
    )
    return [
        And((title, Or((And((new, dear)), And((used, cheap)))), Or((now, soon))))
        for title, dear, cheap, soon in columns
    ]


def _followers(rng: np.random.Generator, size: int, library: _Library, predicates: _Predicates) -> list[Filter]:
    signed = predicates.one("special", "=", "signed")
    columns = zip(
        predicates.all("author", "=", [f"author {at}" for at in library.author[_titles(rng, size)].tolist()]),
        predicates.all("price", "<", _prices(rng, size, 1.2).tolist()),
        predicates.all("format", "=", rng.choice(FORMATS, size, p=(0.5, 0.4, 0.1)).tolist()),
        predicates.all("bids", ">", rng.integers(1, 10, size).tolist()),
        predicates.all("rating", ">=", rng.choice([10, 50, 100, 500, 1000], size).tolist()),
        strict=True,
    )
    return [
        And((author, price, Or((form, signed)), Not(bids), rating)) for author, price, form, bids, rating in columns
    ]


def _collectors(rng: np.random.Generator, size: int, _: _Library, predicates: _Predicates) -> list[Filter]:
    first, signed = predicates.all("special", "=", ("first edition", "signed"))
    used, auction = Not(predicates.one("condition", "=", "used")), predicates.one("buy_it_now", "=", False)
    columns = zip(
        predicates.all("category", "=", rng.choice(CATEGORIES, size).tolist()),
        predicates.all("price", "<=", _prices(rng, size, 3.0).tolist()),
        predicates.all("price", "<=", _prices(rng, size, 4.0).tolist()),
        predicates.all("price", "<=", _prices(rng, size, 0.5).tolist()),
        predicates.all("bids", "<=", rng.integers(0, 3, size).tolist()),
        predicates.all("ending", "<=", rng.choice([1, 2, 4], size).tolist()),
        strict=True,
    )
    return [
        And(
            (
                category,
                Or((And((first, most)), And((signed, more, used)), And((auction, bids, ending, bargain)))),
            )
        )
        for category, most, more, bargain, bids, ending in columns
    ]


def event_block(seed: int, number: int) -> pa.Table:
    """One block of events."""
    rng, library, size = generator(seed, "auction events", number), _library(seed), BLOCK
    titles = _titles(rng, size)
    condition = rng.choice([0, 1, 2], size, p=(0.25, 0.65, 0.1))
    special = rng.choice([0, 1, 2], size, p=(0.06, 0.04, 0.9))
    fixed = rng.random(size) < 0.35
    dearer = np.array([1.6, 1.0, 1.0])[condition] * np.array([4.0, 5.0, 1.0])[special]
    bids = np.where(fixed | (rng.random(size) < 0.55), 0, rng.geometric(0.25, size))
    price = _MEDIAN_PRICE * dearer * rng.lognormal(0.0, 0.8, size) * (1 + 0.05 * bids)
    return pa.table(
        {
            "title": _named("title", TITLES).take(pa.array(titles)),
            "author": _named("author", AUTHORS).take(pa.array(library.author[titles])),
            "category": _taken(CATEGORIES, library.category[titles]),
            "format": _taken((*FORMATS, None), rng.choice(4, size, p=(0.6, 0.3, 0.05, 0.05))),
            "condition": _taken(("new", "used", None), condition),
            "special": _taken(("first edition", "signed", None), special),
            "buy_it_now": fixed,
            "price": np.round(price, 2),
            "bids": bids,
            "ending": np.round(_WEEK * rng.beta(0.8, 2.0, size), 2),
            "rating": np.floor(rng.lognormal(5.0, 1.8, size)).astype(np.int64),
        }
    )


@lru_cache(maxsize=2)
def _named(what: str, count: int) -> pa.Array:
    return pa.array([f"{what} {number}" for number in range(count)], pa.string())


def _taken(names: Sequence[str | None], places: NDArray[np.int64]) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(places))
