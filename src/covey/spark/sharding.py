"""Splitting a saved index that is larger than a worker's memory budget.

Shards are runs of the subscriptions in their order, so the ids that an event gets from one shard after the other are in
the order that the whole index would give. Each is compiled anew from its texts. A shard's size is known only when it is
built: constants that subscriptions share are in every shard that names them. So the number of shards starts at size
over budget, and a shard that is still too large is halved again, until it fits or is a single subscription.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from covey.errors import CoveyError
from covey.limits import Limits
from covey.matching import Index

Rows = list[tuple[str, str]]


def shards(path: str | os.PathLike[str], budget: int, limits: Limits) -> Iterator[Index]:
    """Indexes of parts of a saved one, each within the budget of bytes."""
    if budget < 1:
        raise CoveyError(f"memory_budget is {budget} bytes; use 1 or more")
    whole = Index.open(path, verify=False, limits=limits)
    rows = list(whole.rows())
    count = min(len(rows), -(-os.path.getsize(path) // budget))
    for part in np.array_split(np.arange(len(rows)), max(1, count)):
        yield from _within(whole, [rows[row] for row in part.tolist()], budget, limits)


def _within(whole: Index, rows: Rows, budget: int, limits: Limits) -> Iterator[Index]:
    shard = Index(semantics=whole.semantics, schema=whole.schema, limits=limits)
    shard.add_many(rows)
    if len(rows) > 1 and shard.stats().bytes > budget:
        middle = len(rows) // 2
        yield from _within(whole, rows[:middle], budget, limits)
        yield from _within(whole, rows[middle:], budget, limits)
    else:
        yield shard
