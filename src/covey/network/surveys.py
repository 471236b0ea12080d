"""Surveys: one broker asks all others how they are, or where an event would go.

A question goes over the links, which both ends have authenticated and which are there whichever end opened them. So no
broker needs another's address, or an operator's token, to show the whole overlay. Every broker answers a question once
and passes it on: for figures over all open links, for an event only where the event would go. Answers go back the way
that the question came; each broker remembers for a while which way that was. Nothing is asked unless somebody looks.

What is kept is bounded: ways by `WAYS`, answers by `MOST_BROKERS`, questions of one neighbour by `ASKS_A_SECOND`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from covey.network.engine import Engine
from covey.network.frames import wrong_shape
from covey.network.limits import Rate
from covey.network.survey_messages import Ask, Figures, LinkFigures, Passage, Told
from covey.network.tracing import trace_event
from covey.routing.inspection import client_figures
from covey.routing.links import Link

HOPS: Final = 64
"""Links that a question crosses."""
WAYS: Final = 4_096
"""Questions whose way back is remembered."""
MOST_BROKERS: Final = 1_000
"""Brokers whose figures are kept."""
MOST_LINKS: Final = 200
"""Links of one broker in its figures."""
MOST_ENTRIES: Final = 20
"""Entries that match an event, shown for each hop."""
ASKS_A_SECOND: Final = 100.0
"""Questions that come over one link; more are dropped."""
ASK_AGAIN_SECONDS: Final = 0.5
"""Figures are asked for no more often, however many look."""
PATIENCE_SECONDS: Final = 2.0
"""How long an event's way is followed."""


@dataclass(slots=True)
class Counted:
    """Events that crossed a link since the start."""

    received: int = 0
    sent: int = 0
    sent_bytes: int = 0
    """Of all messages, not of events alone."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A broker's figures, and when they came (by the monotonic clock)."""

    figures: Figures
    at: float


@dataclass(slots=True)
class _Following:
    """An event's way, as far as brokers have answered."""

    expected: set[str]
    passages: dict[str, Passage] = field(default_factory=dict)
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Surveys:
    """Asks and answers for one broker."""

    def __init__(
        self,
        engine: Engine,
        neighbours: Callable[[], Iterable[str]],
        send: Callable[[str, Ask | Told], None],
    ) -> None:
        self.traffic: dict[str, Counted] = {}
        """By neighbour."""
        self._engine = engine
        self._own = engine.broker.config.broker
        self._neighbours = neighbours
        self._send = send
        self._ways: dict[tuple[str, int], str] = {}
        self._rates: dict[str, Rate] = {}
        self._heard: dict[str, Heard] = {}
        self._following: dict[int, _Following] = {}
        # Questions from before a restart may still be on their way.
        self._numbers = itertools.count(int(engine.clock() * 1_000_000))
        self._started = time.monotonic()
        self._asked_at = float("-inf")

    # Asking

    def figures(self) -> dict[str, Heard]:
        """What is known of all brokers; newer figures are asked for, and are there next time."""
        now = time.monotonic()
        if now >= self._asked_at + ASK_AGAIN_SECONDS:
            self._asked_at = now
            question = Ask(self._own, next(self._numbers), HOPS)
            for peer in self._neighbours():
                self._send(peer, question)
        return {**self._heard, self._own: Heard(self.own_figures(), now)}

    async def follow(self, event: dict[str, Any]) -> tuple[dict[str, Passage], set[str]]:
        """What each broker on an event's way would do with it, from here on; and those that didn't say."""
        own = trace_event(self._engine.broker, event, None, MOST_ENTRIES)
        number = next(self._numbers)
        following = self._following[number] = _Following({self._own})
        try:
            self._take(following, self._own, own)
            self._pass_on(Ask(self._own, number, HOPS, event), None, own)
            async with asyncio.timeout(PATIENCE_SECONDS):
                await following.done.wait()
        except TimeoutError:
            pass
        finally:
            del self._following[number]
        return following.passages, following.expected - following.passages.keys()

    def own_figures(self) -> Figures:
        """This broker."""
        broker, counts = self._engine.broker, self._engine.counts
        inputs, records = self._engine.waiting
        found = client_figures(broker)
        return Figures(
            broker.config.strategy, time.monotonic() - self._started, found.clients, found.connected,
            found.subscriptions, found.advertisements, found.queued, len(broker.table), len(broker.events),
            counts.published, broker.clients.delivered, inputs, records,
            [self._link(link) for link in itertools.islice(broker.links.values(), MOST_LINKS)],
        )  # fmt: skip

    def _link(self, link: Link) -> LinkFigures:
        crossed = self.traffic.get(link.peer, Counted())
        told, heard = link.outward.subscriptions.export.outcome, link.inward.subscriptions.holding
        return LinkFigures(
            link.peer, link.open, link.in_tree, link.failed, link.traffic.filtering, len(link.outbox), len(told),
            len(heard), crossed.received, crossed.sent,
        )  # fmt: skip

    # Answering

    def hear(self, peer: str, message: Ask | Told) -> None:
        """A neighbour's message."""
        if isinstance(message, Told):
            self._answered(message)
        elif self._rates.setdefault(peer, Rate(ASKS_A_SECOND)).take(1.0, time.monotonic()) == 0.0:
            self._asked(peer, message)

    def _asked(self, peer: str, question: Ask) -> None:
        key = (question.asker, question.number)
        if question.asker == self._own or key in self._ways:
            return
        self._ways[key] = peer
        if len(self._ways) > WAYS:
            del self._ways[next(iter(self._ways))]
        if question.event is None:
            self._answer(peer, question, self.own_figures())
            self._pass_on(question, peer, None)
        elif wrong_shape(question.event, self._engine.limits) is None:
            found = trace_event(self._engine.broker, question.event, peer, MOST_ENTRIES)
            self._answer(peer, question, found)
            self._pass_on(question, peer, found)

    def _answer(self, peer: str, question: Ask, body: Figures | Passage) -> None:
        self._send(peer, Told(question.asker, question.number, self._own, body))

    def _pass_on(self, question: Ask, source: str | None, found: Passage | None) -> None:
        if question.hops <= 0:
            return
        further = Ask(question.asker, question.number, question.hops - 1, question.event)
        wanted = None if found is None else _next(found)
        for peer in self._neighbours():
            if peer != source and (wanted is None or peer in wanted):
                self._send(peer, further)

    def _answered(self, answer: Told) -> None:
        if answer.asker != self._own:
            way = self._ways.get((answer.asker, answer.number))
            if way is not None:
                self._send(way, answer)
        elif isinstance(answer.body, Passage):
            following = self._following.get(answer.number)
            if following is not None:
                self._take(following, answer.origin, answer.body)
        elif answer.origin != self._own and (answer.origin in self._heard or len(self._heard) < MOST_BROKERS):
            self._heard[answer.origin] = Heard(answer.body, time.monotonic())

    def _take(self, following: _Following, origin: str, found: Passage) -> None:
        if len(following.passages) >= MOST_BROKERS:
            return
        following.passages[origin] = found
        following.expected |= _next(found)
        if following.expected <= following.passages.keys():
            following.done.set()


def _next(found: Passage) -> set[str]:
    return {hop.peer for hop in found.links if hop.goes}
