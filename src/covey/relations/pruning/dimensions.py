"""The three dimensions of pruning: what each estimates, and in which order ties are broken (Sect. 3).

Network load. The selectivity of a tree is estimated as three numbers (min, avg, max). A leaf has its chance in all
three. With children 1..n:

    ALL   min = max(0, 1 - sum(1 - min_i))    avg = product(avg_i)            max = min(max_i)
    ANY   min = max(min_i)                    avg = 1 - product(1 - avg_i)    max = min(1, sum(max_i))

min and max are bounds that hold however the leaves depend on each other (Fréchet's); avg is right if they don't.
NOT, which would swap and complement them, stands in leaves only. Under `strict` semantics an event that lacks an
attribute of one alternative meets none of them; there ANY takes the min of ALL, which is a bound again. All of it is
monotone in every child. The degradation of a pruned tree is the largest growth of the three against the ORIGINAL
subscription, so that many small steps don't hide a large one.

Memory. Bytes saved against the tree as it is now: its text, and 16 bytes for each atom (`leaves`). The largest part
would always win, so a part is only offered while there is no pruning inside it.

Throughput. pmin is the least number of fulfilled predicates that can fulfil a tree: the sum over ALL, the least over
ANY. The improvement is pmin now minus pmin of the ORIGINAL; pruning removes demands, so it is never above zero, and
the best pruning is the one that keeps it closest: a matcher that counts fulfilled predicates looks at a subscription
the less often, the more of them it takes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

from covey.errors import CoveyError
from covey.kernels.pruning import MEMORY, NETWORK, THROUGHPUT

Dimension: TypeAlias = Literal["network", "memory", "throughput"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

ORDERS: dict[Dimension, tuple[int, int, int]] = {
    "network": (NETWORK, THROUGHPUT, MEMORY),
    "memory": (MEMORY, NETWORK, THROUGHPUT),
    "throughput": (THROUGHPUT, NETWORK, MEMORY),
}
"""Which estimate decides first, which breaks its ties, and which breaks those (Sect. 3.4)."""


class Selectivity(NamedTuple):
    """The estimated share of events that match: a lower bound, an expectation, an upper bound."""

    min: float
    avg: float
    max: float


def check_dimension(dimension: str) -> Dimension:
    """The dimension of that name, or an error that lists them."""
    for known in DIMENSIONS:
        if dimension == known:
            return known
    raise CoveyError(f"dimension {dimension!r} is not known; use one of {', '.join(DIMENSIONS)}")
