"""Sets A and B of Li, Hou and Jacobsen (section 6): subscriptions over a fixed number of distinct predicates.

The paper says: twenty ordered attributes, integers, 200,000 subscriptions, 2,000 distinct predicates in set A and 5,000
in set B, values taken evenly from ranges; "about 75%" of set A's and "about 45%" of set B's subscriptions are covered.
It doesn't say how many predicates a subscription has, which operators, or whether some are asked for more often. Here:

- an attribute has an equal part of the predicates: a share of them are equalities, the others half `<=`, half `>=`;
- constants are evenly spaced, so that every predicate is distinct;
- a subscription has a number of predicates on different attributes, with the chances in `widths`;
- attributes are popular by Zipf's law with exponent `skew`, in their order; predicates of one attribute evenly.

`skew`, the widths and the share of equalities were chosen such that the covering rates come near the paper's. They
are one world of many that give these rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.filters import And, Compare, Filter

ATTRIBUTES = tuple(f"a{number:02}" for number in range(20))
SUBSCRIPTIONS = 200_000


@dataclass(frozen=True, slots=True)
class Pool:
    """How a set is drawn."""

    name: str
    predicates: int
    widths: dict[int, float]
    equal_share: float
    skew: float
    paper_rate: float


SET_A = Pool("A", 2_000, {3: 0.2, 4: 0.8}, 0.3, 0.85, 0.75)
SET_B = Pool("B", 5_000, {3: 0.2, 4: 0.8}, 0.53, 0.0, 0.45)


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
        words = [str(one) for one in self.filters]
        chosen, start, result = self.chosen.tolist(), 0, []
        for end in self.ends.tolist():
            result.append(" AND ".join([words[number] for number in chosen[start:end]]))
            start = end
        return result


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


def draw(pool: Pool, count: int = SUBSCRIPTIONS, seed: int = 2005) -> Drawn:
    """Random subscriptions of a pool."""
    rng = np.random.default_rng(seed)
    each = pool.predicates // len(ATTRIBUTES)
    widths = rng.choice(list(pool.widths), size=count, p=list(pool.widths.values()))
    popularity = 1 / np.arange(1, len(ATTRIBUTES) + 1) ** pool.skew
    # Gumbel's trick draws different attributes for all subscriptions at once, by weight and without replacement.
    order = np.argsort(-(np.log(popularity) + rng.gumbel(size=(count, len(ATTRIBUTES)))), axis=1)
    numbers = order * each + rng.integers(0, each, size=order.shape)
    taken = np.arange(len(ATTRIBUTES)) < widths[:, None]
    return Drawn(predicates(pool), numbers[taken], np.cumsum(widths))
