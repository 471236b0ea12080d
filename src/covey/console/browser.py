"""The subscriptions by covering order: `GET /v1/console/subscriptions`, and with `under=KEY` what one of them covers.

At the top is what no other filter covers. Under a filter is what it covers and nothing else that it covers covers, so a
filter under two others is shown under both: covering is an order, not a tree. With a search the filters that have it
are listed, whatever covers them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from covey.console.answers import answer, page, wanted
from covey.console.filter_questions import FilterQuestions, Owners
from covey.errors import CoveyError
from covey.filters.algebra import Filter
from covey.network.errors import FrameError
from covey.network.extensions import ServerParts
from covey.routing.covering_stage import Covering
from covey.routing.known_filters import KnownFilters, digest
from covey.routing.stages import Change

ORDER_SECONDS: Final = 3.0
"""How long an order is used again: pages of one look should fit together."""
DEADLINE_SECONDS: Final = 1.5
"""What isn't compared by then isn't shown, and the answer says so."""
CHUNK: Final = 64


@dataclass(slots=True)
class Order:
    """The broker's filters at one moment."""

    filters: dict[str, Filter]
    """By key, a digest of their text."""
    owners: dict[str, Owners]
    left_out: int
    made_at: float
    tops: dict[str, list[str]] = field(default_factory=dict)
    """The uppermost filters under a key, or of all under the empty key, as far as they were asked for."""


class Browser:
    """Shows subscriptions."""

    def __init__(self, server: ServerParts, questions: FilterQuestions) -> None:
        self._identity = server.identity
        self._questions = questions
        self._order: Order | None = None

    async def subscriptions(self, request: web.Request) -> web.Response:
        """One level of the order, or what a search finds."""
        self._identity.check_right(request, "monitor")
        asked, under = wanted(request), request.query.get("under", "")
        order = await self._present()
        if under and under not in order.filters:
            raise FrameError("this subscription is gone; load the page again")
        deadline = time.monotonic() + DEADLINE_SECONDS
        if asked.search:
            keys = [key for key, one in order.filters.items() if asked.has(str(one), *order.owners[key].names)]
        else:
            keys = await self._questions.ask(_tops, self._questions.known, order, under, deadline)
        found = page(keys, asked, lambda key: key)
        counts = await self._questions.ask(_covered, self._questions.known, order.filters, found["rows"], deadline)
        rows = [self._row(order, key, counts.get(key)) for key in found["rows"]]
        return answer({**found, "rows": rows, "filters": len(order.filters), "more": order.left_out})

    async def _present(self) -> Order:
        now = time.monotonic()
        if self._order is None or now - self._order.made_at > ORDER_SECONDS:
            listed, left_out = self._questions.filters()
            self._order = await self._questions.ask(_read, self._questions.known, listed, left_out, now)
        return self._order

    def _row(self, order: Order, key: str, covers: int | None) -> dict[str, Any]:
        owners = order.owners[key]
        return {
            "key": key,
            "filter": str(order.filters[key]),
            "owners": owners.names,
            "owned": owners.count,
            "covers": covers,
        }


def _read(known: KnownFilters, listed: Mapping[str, Owners], left_out: int, now: float) -> Order:
    order = Order({}, {}, left_out, now)
    for text, owners in listed.items():
        try:
            condition = known.parse(text)
        except CoveyError:
            continue
        key = digest(text)
        order.filters[key], order.owners[key] = condition, owners
    return order


def _tops(known: KnownFilters, order: Order, under: str, deadline: float) -> list[str]:
    """The uppermost filters under one, or of all; as far as time allows."""
    made = order.tops.get(under)
    if made is not None:
        return made
    # Of filters that mean the same, the first becomes the top of the others; `_below` takes it for the smallest key.
    keys = sorted(order.filters if not under else _below(known, order.filters, under, deadline))
    covering = Covering(known)
    for start in range(0, len(keys), CHUNK):
        chunk = keys[start : start + CHUNK]
        covering.change(Change({key: order.filters[key] for key in chunk}), 0.0)
        if time.monotonic() > deadline:
            keys = keys[: start + CHUNK]
            break
    tops = [key for key in keys if covering.follow(key).is_itself]
    tops.sort(key=lambda key: str(order.filters[key]))
    order.tops[under] = tops
    return tops


def _below(known: KnownFilters, filters: Mapping[str, Filter], key: str, deadline: float) -> list[str]:
    """The filters that one covers; of those that mean the same, the ones with a larger key."""
    condition, found = filters[key], []
    for other, inner in filters.items():
        if time.monotonic() > deadline:
            break
        if other != key and known.covers(condition, inner) and (other > key or not known.covers(inner, condition)):
            found.append(other)
    return found


def _covered(
    known: KnownFilters, filters: Mapping[str, Filter], keys: Iterable[str], deadline: float
) -> dict[str, int]:
    """How many filters each of some covers, as far as time allows."""
    found: dict[str, int] = {}
    for key in keys:
        if time.monotonic() > deadline:
            break
        found[key] = len(_below(known, filters, key, deadline))
    return found
