"""Questions about filters: where the console thinks about them, beside the broker's loop and with a memory of its own.

Comparing filters can take a while. It is done in a thread, one question at a time, each with a deadline, on filters
that were listed in the loop; so the broker goes on meanwhile, and what it remembers of filters isn't touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Final, ParamSpec, TypeVar

from covey.network.client_sockets import TooManyError
from covey.network.extensions import ServerParts
from covey.routing.broker import Broker
from covey.routing.known_filters import KnownFilters

MOST_WAITING: Final = 16
"""Questions that wait; more are refused."""
MOST_FILTERS: Final = 5_000
"""Distinct filters of the broker that are compared."""
MOST_ENTRIES: Final = 20_000
"""Entries of the routing table that are looked at for them."""
MOST_OWNERS: Final = 10
"""Who asked for a filter, at most."""

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class Owners:
    """Who asked for a filter."""

    __slots__ = ("count", "names")

    def __init__(self) -> None:
        self.count = 0
        self.names: list[str] = []

    def add(self, name: str) -> None:
        """One more."""
        self.count += 1
        if len(self.names) < MOST_OWNERS:
            self.names.append(name)


class FilterQuestions:
    """Answers questions about filters, one at a time."""

    def __init__(self, server: ServerParts) -> None:
        config = server.config.broker
        self.known = KnownFilters.under(config)
        """For use by questions alone."""
        self._engine = server.engine
        self._thread = ThreadPoolExecutor(1, "console")
        self._waiting = 0

    @property
    def _broker(self) -> Broker:
        """As it is now: a restart brings another."""
        return self._engine.broker

    async def ask(self, question: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """Run a question in its thread."""
        if self._waiting >= MOST_WAITING:
            raise TooManyError("too many questions wait for the console; ask again in a moment")
        self._waiting += 1
        asked = asyncio.get_running_loop().run_in_executor(self._thread, partial(question, *args, **kwargs))
        asked.add_done_callback(self._answered)
        # Whoever asked may go; the question counts until the thread is done with it.
        return await asyncio.shield(asked)

    def _answered(self, asked: asyncio.Future[Answer]) -> None:
        self._waiting -= 1
        if not asked.cancelled():
            asked.exception()

    def filters(self) -> tuple[dict[str, Owners], int]:
        """The filters of the routing table with their owners, and how many entries are left out."""
        found: dict[str, Owners] = {}
        taken = 0
        for owner, text in islice(_entries(self._broker), MOST_ENTRIES):
            owners = found.get(text)
            if owners is None:
                if len(found) >= MOST_FILTERS:
                    continue
                owners = found[text] = Owners()
            owners.add(owner)
            taken += 1
        return found, len(self._broker.table) - taken


def _entries(broker: Broker) -> Iterator[tuple[str, str]]:
    for client in broker.clients:
        for claim in client.claims.subscriptions.values():
            yield f"client {client.id}: {claim.id}", claim.text
    for link in broker.links.values():
        if link.in_tree:
            for condition in link.inward.subscriptions.holding.entries.values():
                yield f"broker {link.peer}", str(condition)
