"""Online book auctions, after the scenario of Bittner and Hinze's experiments: three classes of subscriptions, and
events whose values are spread as auctions' are.

Titles are named by a Zipf law, in events and in subscriptions alike; a title has one author and one category. Prices
are log-normal, dearer for new, signed and first editions. Most auctions have no bid, fixed-price offers never have one,
and what is still to be announced ends soon more often than late. Format, condition and specials may be left out.

1. A reader wants a title, at a price that depends on its condition, at once or soon.
2. A follower wants an author's books below a price, in a format or signed, not yet fought over, of a trusted seller.
3. A collector watches a category: first editions, signed copies, or auctions about to end that nobody noticed.

All draws come from one numpy generator, a column at a time. Only the attributes are taken from
what the authors describe; the parameters below are chosen.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from covey.filters import And, Compare, Filter, Not, Or

SUBSCRIPTIONS = 200_000
EVENTS = 100_000

TITLES = 20_000
AUTHORS = 4_000
CATEGORIES = ("crime", "fantasy", "romance", "thriller", "classic", "horror", "poetry", "humour", "war", "western")
FORMATS = ("paperback", "hardcover", "audio")
CLASSES = (0.5, 0.3, 0.2)
"""Shares of the three classes among subscriptions."""

_SKEW = 0.9
_MEDIAN_PRICE = 6.0
_WEEK = 168


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


def generate(subscriptions: int = SUBSCRIPTIONS, events: int = EVENTS, seed: int = 1) -> Auctions:
    """The workload; the same arguments give the same one."""
    rng = np.random.default_rng(seed)
    writers = rng.choice(AUTHORS, TITLES, p=_zipf(AUTHORS))
    library = _Library(writers, rng.integers(0, len(CATEGORIES), AUTHORS)[writers])
    classes = rng.choice(np.arange(1, 4), subscriptions, p=CLASSES)
    enabled = gc.isenabled()
    gc.disable()  # millions of small values and no cycles: collecting would take most of the time
    try:
        filters: list[Filter | None] = [None] * subscriptions
        for number, make in enumerate((_readers, _followers, _collectors), 1):
            rows = np.flatnonzero(classes == number)
            for row, one in zip(rows.tolist(), make(rng, len(rows), library), strict=True):
                filters[row] = one
        listed = [(f"a{at}", one) for at, one in enumerate(filters) if one is not None]
    finally:
        if enabled:
            gc.enable()
    return Auctions(listed, classes, _events(rng, events, library))


def _zipf(size: int) -> NDArray[np.float64]:
    weights = np.arange(1, size + 1) ** -_SKEW
    return np.asarray(weights / weights.sum())


def _titles(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    return rng.choice(TITLES, size, p=_zipf(TITLES))


def _prices(rng: np.random.Generator, size: int, factor: float) -> NDArray[np.float64]:
    """What people are ready to pay, in halves."""
    prices = _MEDIAN_PRICE * factor * rng.lognormal(0.0, 0.5, size)
    return np.maximum(0.5, np.round(prices * 2) / 2)


def _readers(rng: np.random.Generator, size: int, _: _Library) -> list[Filter]:
    new, used, now = Compare("condition", "=", "new"), Compare("condition", "=", "used"), _fixed_price(True)
    columns = zip(
        _comparisons("title", "=", [f"title {at}" for at in _titles(rng, size).tolist()]),
        _comparisons("price", "<", _prices(rng, size, 1.5).tolist()),
        _comparisons("price", "<", _prices(rng, size, 0.8).tolist()),
        _comparisons("ending", "<", rng.choice([6, 12, 24, 48], size).tolist()),
        strict=True,
    )
    return [
        And((title, Or((And((new, dear)), And((used, cheap)))), Or((now, soon))))
        for title, dear, cheap, soon in columns
    ]


def _followers(rng: np.random.Generator, size: int, library: _Library) -> list[Filter]:
    signed = Compare("special", "=", "signed")
    columns = zip(
        _comparisons("author", "=", [f"author {at}" for at in library.author[_titles(rng, size)].tolist()]),
        _comparisons("price", "<", _prices(rng, size, 1.2).tolist()),
        _comparisons("format", "=", rng.choice(FORMATS, size, p=(0.5, 0.4, 0.1)).tolist()),
        _comparisons("bids", ">", rng.integers(1, 10, size).tolist()),
        _comparisons("rating", ">=", rng.choice([10, 50, 100, 500, 1000], size).tolist()),
        strict=True,
    )
    return [
        And((author, price, Or((form, signed)), Not(bids), rating)) for author, price, form, bids, rating in columns
    ]


def _collectors(rng: np.random.Generator, size: int, _: _Library) -> list[Filter]:
    first, signed = Compare("special", "=", "first edition"), Compare("special", "=", "signed")
    used, auction = Not(Compare("condition", "=", "used")), _fixed_price(False)
    columns = zip(
        _comparisons("category", "=", rng.choice(CATEGORIES, size).tolist()),
        _comparisons("price", "<=", _prices(rng, size, 3.0).tolist()),
        _comparisons("price", "<=", _prices(rng, size, 4.0).tolist()),
        _comparisons("price", "<=", _prices(rng, size, 0.5).tolist()),
        _comparisons("bids", "<=", rng.integers(0, 3, size).tolist()),
        _comparisons("ending", "<=", rng.choice([1, 2, 4], size).tolist()),
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


def _fixed_price(value: bool) -> Filter:
    return Compare("buy_it_now", "=", value)


def _comparisons(name: str, operator: str, values: Sequence[object]) -> list[Filter]:
    """A predicate for each value; equal values share one."""
    made = {value: Compare(name, operator, value) for value in dict.fromkeys(values)}  # type: ignore[arg-type]
    return [made[value] for value in values]


def _events(rng: np.random.Generator, size: int, library: _Library) -> pa.Table:
    titles = _titles(rng, size)
    condition = rng.choice([0, 1, 2], size, p=(0.25, 0.65, 0.1))
    special = rng.choice([0, 1, 2], size, p=(0.06, 0.04, 0.9))
    fixed = rng.random(size) < 0.35
    dearer = np.array([1.6, 1.0, 1.0])[condition] * np.array([4.0, 5.0, 1.0])[special]
    bids = np.where(fixed | (rng.random(size) < 0.55), 0, rng.geometric(0.25, size))
    price = _MEDIAN_PRICE * dearer * rng.lognormal(0.0, 0.8, size) * (1 + 0.05 * bids)
    return pa.table(
        {
            "title": _taken([f"title {at}" for at in range(TITLES)], titles),
            "author": _taken([f"author {at}" for at in range(AUTHORS)], library.author[titles]),
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


def _taken(names: Sequence[str | None], places: NDArray[np.int64]) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(places))
