"""Settling: when is a change known everywhere that it matters?

A change of what a neighbour must know travels as a numbered delta. The neighbour commits it and says *received*; when
all that it has had to pass on by then is settled too, it says *settled*. So what waits (a client's request, or a delta
that came in) waits for the last delta on each tree link at that time, and is settled when those are. That may include
deltas that it didn't cause: settled late, never early, and no causes need to be tracked.

No wait goes in circles. A delta of subscriptions waits on all links but the one that it came from, so along a tree
waits only go outward. A delta of advertisements also waits for the subscriptions that flow back where it came from, and
those wait for subscriptions only. Where trees disagree for a moment, circles are possible; they end with the
disagreement, since a link that leaves the tree, and one that failed, releases all that waits for it.

Numbers are cumulative, so each link keeps its waits in order and the cost is constant for each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from covey.routing.by_table import Table
from covey.routing.undo import Remembered

if TYPE_CHECKING:
    from covey.routing.links import Link


class Settling(Remembered):
    """Something that waits for a number of deltas."""

    __slots__ = ("_left", "_then")

    def __init__(self, then: Callable[[], None]) -> None:
        self._left = 1
        self._then = then

    def wait(self) -> None:
        """One more to wait for."""
        self._left += 1

    def done(self) -> None:
        """One less; after the last one, what was to come comes."""
        self._left -= 1
        if self._left == 0:
            self._then()

    ready = done
    """All waits are listed (the count starts with one, so that it can't end before)."""


class Waits(Remembered):
    """What waits for the deltas of one table on one link."""

    __slots__ = ("_held", "_queue", "settled")

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Settling]] = deque()
        self._held: deque[tuple[int, Settling]] = deque()
        """What waits for changes that no delta has told yet, by the number of the last of them."""
        self.settled = 0

    def __len__(self) -> int:
        return len(self._queue) + len(self._held)

    def hold(self, change: int, settling: Settling) -> None:
        """Wait for the delta that will tell a change; numbers come in ascending order."""
        settling.wait()
        self._held.append((change, settling))

    def told(self, change: int, number: int) -> None:
        """A delta, and those before it, have told all changes up to a number."""
        while self._held and self._held[0][0] <= change:
            settling = self._held.popleft()[1]
            if number > self.settled:
                self._queue.append((number, settling))
            else:
                settling.done()

    def add(self, number: int, settling: Settling) -> None:
        """Wait for a delta; numbers come in ascending order."""
        if number > self.settled:
            settling.wait()
            self._queue.append((number, settling))

    def settle(self, number: int) -> None:
        """Deltas up to a number are settled."""
        self.settled = max(self.settled, number)
        while self._queue and self._queue[0][0] <= self.settled:
            self._queue.popleft()[1].done()

    def restart(self) -> None:
        """A new session: its first delta stands for all before."""
        self._queue = deque((1, settling) for _, settling in self._queue)
        self.settled = 0

    def release(self) -> None:
        """Wait no longer."""
        waiting = [*self._queue, *self._held]
        self._queue.clear()
        self._held.clear()
        for _, settling in waiting:
            settling.done()


class Due(NamedTuple):
    """Something that this turn began, and that waits for the deltas that the turn ends with."""

    settling: Settling
    table: Table
    source: str | None
    """The neighbour that it needn't wait for, since it came from there."""


class Settlings(Remembered):
    """What is to be settled with this turn. Owned by the broker, which lists the waits at the turn's end; `Peers`,
    `Requests` and `Loads` add to it."""

    def __init__(self) -> None:
        self._due: list[Due] = []

    def add(self, settling: Settling, table: Table, source: str | None = None) -> None:
        """Let something wait for the deltas of this turn."""
        self._due.append(Due(settling, table, source))

    def list_waits(self, links: Iterable[Link], *, advertisements: bool) -> None:
        """Let all of it wait. What is ready at once may bring more."""
        if not self._due:
            return
        tree = [link for link in links if link.in_tree]
        while self._due:
            due, self._due = self._due, []
            for settling, table, source in due:
                if table is Table.SUBSCRIPTIONS or advertisements:
                    _wait_for(tree, settling, table, source)
                settling.ready()


def _wait_for(tree: list[Link], settling: Settling, table: Table, source: str | None) -> None:
    for link in tree:
        if table is Table.ADVERTISEMENTS:
            link.wait(Table.SUBSCRIPTIONS, settling)
        if link.peer != source:
            link.wait(table, settling)
