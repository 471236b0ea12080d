"""What is otherwise loaded and made when it is first used, done once before anybody waits for it.

Modules that only many subscriptions need, compiled code, and what that keeps about the types it is called with: whoever
came first with more than a few subscriptions would make everyone wait for all of it.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pyarrow as pa

from covey.kernels.loading import load_all
from covey.language import parse
from covey.matching import Index
from covey.relations.covering import CoveringTable

ROWS: Final = 520
"""Subscriptions that are rehearsed with: so many go through the bulk parser."""
COVERING: Final = 40
EVENTS: Final = 64


@cache
def rehearse() -> None:
    """Do once what brokers do often."""
    load_all()
    pa.array([""])  # looks for pandas, which takes a third of a second
    rows = [(str(at), _filter(at)) for at in range(ROWS)]
    filters = [parse(text) for _, text in rows]
    index = Index()
    index.add_prepared(index.prepare(rows, filters))
    index.add_prepared(index.prepare([(f"{id} again", text) for id, text in rows[:COVERING]], filters[:COVERING]))
    index.compact()
    index.match({"a": 1, "b": 1})
    index.match_batch([{"a": 1, "b": 1}] * EVENTS, threads=1)
    table = CoveringTable()
    table.insert_many([(str(at), condition) for at, condition in enumerate(filters[:COVERING])])


def _filter(at: int) -> str:
    if at % 2:
        return f"(a = {at} AND b BETWEEN {at} AND {at + 2}) OR (c IN ('x', 'y{at}') AND NOT d < {at})"
    return f"a = {at} AND b < 4 AND startswith(c, 'x')"
