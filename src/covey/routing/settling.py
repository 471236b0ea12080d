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
from collections.abc import Callable


class Settling:
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


class Waits:
    """What waits for the deltas of one table on one link."""

    __slots__ = ("_queue", "settled")

    def __init__(self) -> None:
        self._queue: deque[tuple[int, Settling]] = deque()
        self.settled = 0

    def __len__(self) -> int:
        return len(self._queue)

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
        waiting, self._queue = self._queue, deque()
        for _, settling in waiting:
            settling.done()
