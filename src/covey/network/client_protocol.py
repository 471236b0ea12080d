"""A client's side of a session, without IO: what to say again after a reconnection, what to acknowledge, what to grant.

Why nothing is lost and little comes twice:
- Subscriptions and advertisements that the client has are made again in each session; the same again does nothing.
- Requests that weren't answered are made again if that does no harm. A publication does no harm if the broker can tell
  that it had it, which durable events of a client with a name are numbered for, and others may have ids for; without
  either it fails with the connection.
- Numbered deliveries that aren't acknowledged come again with their numbers. One that is still being worked on is
  known by its number and isn't handed out twice; one that was finished is acknowledged again. That the broker still has
  its numbers is told by its having kept a durable subscription; if it has not, numbers start anew.
- Acknowledgements are cumulative and work may end in any order, so the least that isn't finished holds the rest back.

Credit is granted back when a delivery is taken out of its subscription, so what waits in a client is bounded by what
the broker grants at the start, in deliveries and in bytes, whatever it asked for. A delivery of a former session grants
nothing in this one.

What is lost is counted: the broker says what it drops; and where a session broke, how many deliveries without a number
it had in it, of which what didn't come is lost.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from covey.network.errors import NetworkError
from covey.routing.messages import (
    KNOWS_IDS,
    Acknowledge,
    Advertise,
    ClientMessage,
    Credit,
    Deliver,
    Gap,
    Publication,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Welcome,
)

PUBLISH_EVENTS: Final = 1_000
"""Events in one message; more are sent as several."""
FRAME_MESSAGES: Final = 1_000
"""Messages in one frame; the broker's limit `messages` is above it."""
GRANT_PART: Final = 0.25
"""Credit is granted back when this part of it has been used up: a message each would cost as much as the delivery."""

_encode = msgspec.msgpack.Encoder().encode


class AcknowledgementWindow:
    """Numbers that came, and those that are finished."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self._waiting: deque[int] = deque()
        self._finished: set[int] = set()
        self._open: set[int] = set()

    def came(self, number: int) -> bool:
        """Note a delivery; False where it came before."""
        if number <= self.acknowledged or number in self._open or number in self._finished:
            return False
        self._waiting.append(number)
        self._open.add(number)
        return True

    def finish(self, number: int) -> int | None:
        """A delivery is finished; what can be acknowledged now, if that is news."""
        if number not in self._open:
            return None
        self._open.remove(number)
        self._finished.add(number)
        before = self.acknowledged
        while self._waiting and self._waiting[0] in self._finished:
            self.acknowledged = self._waiting.popleft()
            self._finished.remove(self.acknowledged)
        return self.acknowledged if self.acknowledged > before else None

    def __len__(self) -> int:
        return len(self._waiting)


@dataclass(slots=True)
class Pending:
    """A request that wasn't answered."""

    message: ClientMessage
    packed: msgspec.Raw
    repeatable: bool
    sent_again: bool = False


@dataclass(slots=True)
class Answer:
    """How a request ended."""

    request: int
    refusal: str | None = None


@dataclass(slots=True)
class ClientProtocol:
    """One client, over all its sessions. `outgoing` is what to send, packed; whoever does the IO empties it."""

    named: bool
    """Whether the client has a name that it will come back with, so that publications can be numbered."""
    most_bytes: int = 1 << 20
    """The broker's `message_bytes`."""
    outgoing: list[msgspec.Raw] = field(default_factory=list)
    claims: dict[tuple[bool, str], Subscribe | Advertise] = field(default_factory=dict)
    """What the client has, by whether it is an advertisement, and id."""
    epoch: int = 0
    """Counts sessions."""
    broker: str = ""
    ended: list[tuple[str, str]] = field(default_factory=list)
    """Subscriptions and advertisements that a new session refused, and why; whoever does the IO empties it."""
    _resuming: dict[int, Subscribe | Advertise] = field(default_factory=dict)
    _requests: int = 0
    _pending: dict[int, Pending] = field(default_factory=dict)
    _window: AcknowledgementWindow = field(default_factory=AcknowledgementWindow)
    _last_number: int = 0
    _used: int = 0
    _grant_at: int = 1
    _used_bytes: int = 0
    _grant_at_bytes: int = sys.maxsize
    missed: int = 0
    """Deliveries that the broker dropped, or that were lost with a connection."""
    maybe_missed: int = 0
    """Events that were lost between brokers and may have been for this client."""
    held: str = ""
    """Why the broker holds publications back; empty where it doesn't."""
    knows_ids: bool = False
    """Whether the broker knows an event that is sent again by the id that its publisher gave it."""
    _came: int = 0
    """Deliveries without a number that came in this session, or that the broker said it dropped."""

    # What the client wants

    def subscribe(self, id: str, filter: str, *, durable: bool, lease: float | None) -> int:
        """Subscribe; gives the request's number."""
        return self._claim(Subscribe(self._next(), id, filter, durable, lease))

    def advertise(self, id: str, filter: str, *, durable: bool, lease: float | None) -> int:
        """Advertise; gives the request's number."""
        return self._claim(Advertise(self._next(), id, filter, durable, lease))

    def end(self, id: str, *, advertisement: bool) -> int:
        """Unsubscribe, or unadvertise; gives the request's number."""
        self.claims.pop((advertisement, id), None)
        make = Unadvertise if advertisement else Unsubscribe
        return self._ask(make(self._next(), id), repeatable=True)

    def publish(
        self,
        events: list[dict[str, Any]],
        *,
        durable: bool,
        first: int | None = None,
        ids: Sequence[str] = (),
        trace: str = "",
    ) -> list[int]:
        """Publish events, in order; gives the numbers of the requests that it takes. `first` is the first event's
        publication number, where the caller counts, `ids` are the caller's own for all of them, and `trace` is a
        `traceparent` that goes with them."""
        if ids and self.broker and not self.knows_ids:
            raise NetworkError(
                f"the broker {self.broker!r} is older than publish(id=...); publish without, or renew it"
            )
        numbered = durable and self.named
        if first is not None:
            self._last_number = first - 1
        publications = []
        for at, event in enumerate(events):
            if numbered:
                self._last_number += 1
            number = self._last_number if numbered else 0
            publications.append(Publication(event, durable, number, ids[at] if ids else ""))
        messages: list[tuple[Publish, msgspec.Raw]] = []
        for start in range(0, len(publications), PUBLISH_EVENTS):
            messages += self._fitting(publications[start : start + PUBLISH_EVENTS], trace)
        repeatable = numbered or bool(ids)
        return [self._send(message, packed, repeatable=repeatable) for message, packed in messages]

    def ask(self, make: Callable[[int], ClientMessage]) -> int:
        """Any other request that may be repeated."""
        return self._ask(make(self._next()), repeatable=True)

    def _claim(self, message: Subscribe | Advertise) -> int:
        self.claims[isinstance(message, Advertise), message.id] = message
        return self._ask(message, repeatable=True)

    def _next(self) -> int:
        self._requests += 1
        return self._requests

    def _ask(self, message: Any, *, repeatable: bool) -> int:
        return self._send(message, msgspec.Raw(_encode(message)), repeatable=repeatable)

    def _send(self, message: Any, packed: msgspec.Raw, *, repeatable: bool) -> int:
        number: int = message.request
        self._pending[number] = Pending(message, packed, repeatable)
        if self.broker:
            self.outgoing.append(packed)
        return number

    def _fitting(self, publications: list[Publication], trace: str) -> list[tuple[Publish, msgspec.Raw]]:
        message = Publish(self._next(), publications, trace)
        try:
            packed = _encode(message)
        except (TypeError, OverflowError, ValueError, RecursionError) as error:
            raise NetworkError(f"an event can't travel: {error}") from None
        # A frame is an array around it.
        if len(packed) + 8 <= self.most_bytes:
            return [(message, msgspec.Raw(packed))]
        if len(publications) == 1:
            raise NetworkError(f"an event of {len(packed):,} bytes is too large; the limit is {self.most_bytes:,}")
        middle = len(publications) // 2
        return self._fitting(publications[:middle], trace) + self._fitting(publications[middle:], trace)

    # What the broker says

    def welcome(self, message: Welcome) -> list[Answer]:
        """A session opened: say again what must be said. Gives requests that turn out to be done."""
        self.epoch += 1
        self.broker = message.broker
        self._used, self._grant_at = 0, max(1, int(message.credit * GRANT_PART))
        # A broker of protocol 1 counts deliveries alone.
        self._used_bytes, self._grant_at_bytes = 0, int(message.credit_bytes * GRANT_PART) or sys.maxsize
        if self.epoch > 1:
            # The session before was this one's own; what came in it is known.
            self.missed += max(0, message.meant - self._came)
        self._came = 0
        self.held = message.held
        self.knows_ids = KNOWS_IDS in message.capabilities
        self._last_number = max(self._last_number, message.published)
        kept = set(message.subscriptions)
        if not any(
            claim.durable and claim.id in kept for claim in self.claims.values() if isinstance(claim, Subscribe)
        ):
            self._window = AcknowledgementWindow()
        done: list[Answer] = []
        self.outgoing = []
        waiting = {(isinstance(request.message, Advertise), request.message.id) for request in self._pending.values()
                   if isinstance(request.message, Subscribe | Advertise)}  # fmt: skip
        self._resuming = {}
        for key, claim in self.claims.items():
            if key not in waiting:
                number = self._next()
                self._resuming[number] = claim
                self.outgoing.append(msgspec.Raw(_encode(msgspec.structs.replace(claim, request=number))))
        for number, pending in list(self._pending.items()):
            if self._was_published(pending.message, message.published):
                del self._pending[number]
                done.append(Answer(number))
            else:
                pending.sent_again = True
                self.outgoing.append(pending.packed)
        return done

    def _was_published(self, message: ClientMessage, published: int) -> bool:
        return isinstance(message, Publish) and all(0 < event.number <= published for event in message.events)

    def lost(self) -> list[int]:
        """The session ended; gives requests that can't be made again."""
        self.broker = ""
        self.outgoing = []
        failed = [number for number, pending in self._pending.items() if not pending.repeatable]
        for number in failed:
            del self._pending[number]
        return failed

    def answered(self, request: int, refusal: str | None) -> Answer | None:
        """A request was answered; None where nobody waits for that."""
        pending = self._pending.pop(request, None)
        if pending is None:
            self._resumed(request, refusal)
            return None
        message = pending.message
        if refusal is not None:
            if isinstance(message, Subscribe | Advertise):
                key = (isinstance(message, Advertise), message.id)
                if self.claims.get(key) is message:
                    del self.claims[key]
            elif isinstance(message, Unsubscribe | Unadvertise) and pending.sent_again:
                # It was done, and the answer was lost with the connection.
                return Answer(request)
        return Answer(request, refusal)

    def _resumed(self, request: int, refusal: str | None) -> None:
        """Whoever asked for it was answered in a former session; only a refusal is news."""
        claim = self._resuming.pop(request, None)
        if claim is not None and refusal is not None:
            key = (isinstance(claim, Advertise), claim.id)
            if self.claims.get(key) is claim:
                del self.claims[key]
                self.ended.append((claim.id, refusal))

    def delivered(self, message: Deliver) -> bool:
        """A delivery came; whether it is to be handed out."""
        if not message.number:
            self._came += 1
            return True
        if self._window.came(message.number):
            return True
        self.taken(self.epoch, 1, message.bytes)
        if message.number <= self._window.acknowledged:
            self._say(Acknowledge(self._window.acknowledged))
        return False

    def delivered_plain(self, count: int) -> None:
        """So many deliveries without a number came, which are handed out."""
        self._came += count

    def gap(self, message: Gap) -> None:
        """The broker dropped deliveries."""
        self.missed += message.deliveries
        self._came += message.unnumbered

    def taken(self, epoch: int, deliveries: int = 1, size: int = 0) -> None:
        """Deliveries of some session left the client's own queues."""
        if epoch == self.epoch and self.broker:
            self._used += deliveries
            self._used_bytes += size
            if self._used >= self._grant_at or self._used_bytes >= self._grant_at_bytes:
                self._say(Credit(self._used, self._used_bytes))
                self._used = self._used_bytes = 0

    def finish(self, *numbers: int) -> None:
        """Numbered deliveries needn't come again."""
        before = self._window.acknowledged
        for number in numbers:
            self._window.finish(number)
        if self._window.acknowledged > before:
            self._say(Acknowledge(self._window.acknowledged))

    def expired(self, id: str) -> None:
        """A lease ended."""
        for advertisement in (False, True):
            self.claims.pop((advertisement, id), None)

    def _say(self, message: ClientMessage) -> None:
        if self.broker:
            self.outgoing.append(msgspec.Raw(_encode(message)))


def pack(messages: list[msgspec.Raw], most_bytes: int) -> list[bytes]:
    """Packed messages as frames of a bounded size."""
    frames: list[bytes] = []
    group: list[msgspec.Raw] = []
    size = 8
    for message in messages:
        length = len(memoryview(message))
        if group and (size + length > most_bytes or len(group) == FRAME_MESSAGES):
            frames.append(_encode(group))
            group, size = [], 8
        group.append(message)
        size += length
    if group:
        frames.append(_encode(group))
    return frames
