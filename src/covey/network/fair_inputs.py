"""Inputs that wait for the broker, taken fairly, owner by owner.

An owner is a principal with all of its sessions, or a single session where nobody knows whose it is. Each has a queue
of its own. Owners take turns by what their inputs cost, in seconds that the broker worked for them: deficit round robin
(Shreedhar and Varghese, 1996), with the rule of FQ-CoDel (RFC 8290) that an owner who had nothing waiting comes before
those who have. So a client that says little hardly waits, whatever others have in their queues, and clients that say
much share the broker's time evenly, whether their inputs are many or costly. New owners and busy ones alternate, so
that opening sessions without end doesn't starve those who have some.

A neighbour's link carries what many clients say and gets more of the time. Plain events on it have a queue of their
own, so that they don't wait behind what is told of tables (`covey.routing.overtaking` says why they may pass by). What
belongs to no session, time above all, comes first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from covey.network.sessions import Session
from covey.routing.messages import ClientDown, FromClient, Input, Publish, Subscribe
from covey.routing.overtaking import is_plain

SHARE_SECONDS: Final = 0.001
"""What an owner may cost before it is another one's turn."""
LINK_SHARES: Final = 8
"""How many clients a link counts as."""
LARGEST_DEBT: Final = 1.0
"""Seconds of others' time that a costly input is paid back by at most."""

Owner: TypeAlias = Session | str | tuple[Session, str]
"""The last is a neighbour with its plain events."""


class _Queue:
    __slots__ = ("inputs", "left", "owner", "share")

    def __init__(self, owner: Owner, share: float) -> None:
        self.owner = owner
        self.share = share
        self.inputs: deque[tuple[Session, Input]] = deque()
        self.left = share
        """Seconds that it may still cost before it is another one's turn."""


class FairInputs:
    """Queues of inputs by owner."""

    def __init__(self) -> None:
        self._common: deque[Input] = deque()
        self._queues: dict[Owner, _Queue] = {}
        """Of owners who have something waiting, or were served just now."""
        self._fresh: deque[_Queue] = deque()
        """Those that had nothing waiting before, in the order in which they came."""
        self._busy: deque[_Queue] = deque()
        self._busy_next = False
        self._count = 0
        self._taken: _Queue | None = None
        """Where the last input was taken from."""

    def __len__(self) -> int:
        return self._count

    def put(self, session: Session | None, input: Input, *, passes: bool = False) -> None:
        """Let an input wait; None for one that belongs to no session. `passes` lets it pass by what else the session
        has said. The end of a session comes behind those who are there: a thousand may end together."""
        if not self._count:
            # Nobody waits, so nobody owes anything.
            self.clear()
        self._count += 1
        if session is None:
            self._common.append(input)
            return
        owner = (session, "events") if passes else _owner(session)
        queue = self._queues.get(owner)
        if queue is None:
            share = SHARE_SECONDS * (LINK_SHARES if session.is_peer else 1)
            queue = self._queues[owner] = _Queue(owner, share)
            (self._busy if isinstance(input, ClientDown) else self._fresh).append(queue)
        queue.inputs.append((session, input))

    def put_back(self, session: Session, input: Input) -> None:
        """Let what is left of an input that was taken be the next of its owner."""
        queue = self._queues.get(_owner(session))
        if queue is None or not self._count:
            self.put(session, input)
        else:
            self._count += 1
            queue.inputs.appendleft((session, input))

    def put_last(self, session: Session, input: Input) -> None:
        """Let an input wait that nothing of its session may come after, nor what passes by."""
        passing = self._queues.get((session, "events"))
        while passing is not None and passing.inputs:
            self._count -= 1
            self.put(*passing.inputs.popleft())
        self.put(session, input)

    def of(self, session: Session) -> int:
        """How many inputs of a session's owner wait."""
        queues = (self._queues.get(owner) for owner in (_owner(session), (session, "events")))
        return sum(len(queue.inputs) for queue in queues if queue is not None)

    def take(self) -> tuple[Session | None, Input]:
        """The next input; there must be one."""
        self._count -= 1
        self._taken = None
        if self._common:
            return None, self._common.popleft()
        self._taken = self._next()
        return self._taken.inputs.popleft()

    def take_publications(
        self, first: Session, like: Publish, most: float, weigh: Callable[[Session, Publish], float]
    ) -> Iterator[tuple[Session, FromClient]]:
        """Publications that are next in their queues, one of each owner in turn, as long as they weigh no more than
        `most` with one of `first` that was taken before. All of them are plain as that one is, or none is: who
        publishes plain events doesn't wait for others' rows."""
        left, plain = most - weigh(first, like), is_plain(like)
        found = True
        while found and left > 0:
            found = False
            for queue in (*self._fresh, *self._busy):
                if not queue.inputs:
                    continue
                session, input = queue.inputs[0]
                if (
                    isinstance(input, FromClient)
                    and isinstance(input.message, Publish)
                    and is_plain(input.message) is plain
                    and (weight := weigh(session, input.message)) <= left
                ):
                    found = True
                    self._count -= 1
                    left -= weight
                    queue.inputs.popleft()
                    yield session, input

    def take_subscriptions(self, session: Session, most: int) -> list[Subscribe]:
        """Subscriptions that are next in the queue that a session's input was taken from, and are this session's."""
        queue = self._queues.get(_owner(session))
        found: list[Subscribe] = []
        while queue is not None and queue.inputs and len(found) < most:
            sender, input = queue.inputs[0]
            if sender is not session or not isinstance(input, FromClient) or not isinstance(input.message, Subscribe):
                break
            queue.inputs.popleft()
            found.append(input.message)
        self._count -= len(found)
        return found

    def charge(self, session: Session | None, seconds: float) -> None:
        """What an input of a session has cost."""
        taken = self._taken
        if taken is not None and taken.owner == (session, "events"):
            queue: _Queue | None = taken
        else:
            queue = None if session is None else self._queues.get(_owner(session))
        if queue is not None:
            queue.left = max(queue.left - seconds, -LARGEST_DEBT)

    def clear(self) -> None:
        """Forget all inputs."""
        self._common.clear()
        self._queues.clear()
        self._fresh.clear()
        self._busy.clear()
        self._count = 0

    def _next(self) -> _Queue:
        """The queue whose turn it is."""
        while True:
            queues = self._busy if self._busy and (self._busy_next or not self._fresh) else self._fresh
            queue = queues[0]
            if queue.inputs and queue.left > 0:
                return queue
            queues.popleft()
            if queue.inputs or queues is self._fresh:
                self._busy_next = queues is self._fresh
            if queue.left <= 0:
                queue.left += queue.share
            elif not queue.inputs and queues is self._busy:
                del self._queues[queue.owner]
                continue
            # One that was served in front goes around once before it is new again.
            self._busy.append(queue)


def _owner(session: Session) -> Owner:
    # Whoever is known by the address alone is one of many that share it.
    return session if not session.owner or session.owner.startswith("@") else session.owner
