"""What clients asked for, published and were told: the facts that invariants are checked against.

The ledger knows no brokers. Filters are evaluated by the interpreter, so it is an oracle of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Any

from covey.events.schema import Schema
from covey.filters.algebra import Filter
from covey.language import parse
from covey.routing.messages import Deliver
from covey.routing.meta_events import META, PUBLISHER
from covey.simulation.permissions import Rights

GRACE = 1.0
"""Seconds after the end of a lease in which deliveries may still be on their way."""


@lru_cache(maxsize=10_000)
def parsed(text: str) -> Filter:
    """The filter of a text."""
    return parse(text)


@dataclass(slots=True)
class Wanted:
    """One subscription, as its client sees it."""

    client: str
    id: str
    text: str
    condition: Filter
    durable: bool
    lease: float
    asked_at: float
    confirmed_at: float = inf
    refused: bool = False
    """It went beyond what the client may have, and isn't asked for again."""
    leaving_at: float = inf
    left_at: float = inf
    """When the end was confirmed."""
    over_at: float = inf
    """When the lease has certainly ended, if it is known when it began."""


@dataclass(slots=True)
class Published:
    """One event, as its publisher sees it."""

    uid: str
    client: str
    attributes: dict[str, Any]
    durable: bool
    number: int
    sent_at: float = inf
    confirmed_at: float = inf
    refused: bool = False
    steady: bool = False
    """Published while nothing failed and tables were settled."""


@dataclass(slots=True)
class Ledger:
    """All facts of a run."""

    wanted: dict[tuple[str, str], Wanted] = field(default_factory=dict)
    published: dict[str, Published] = field(default_factory=dict)
    delivered: dict[tuple[str, str], list[tuple[float, Deliver]]] = field(default_factory=dict)
    """By client and event."""
    highest: dict[tuple[str, str], int] = field(default_factory=dict)
    """By client and publisher: the highest number delivered in order."""
    ordered: bool = True
    rights: Rights = field(default_factory=Rights)
    schema: Schema | None = None
    """What filters are read by."""
    failures: list[str] = field(default_factory=list)

    def condition(self, text: str) -> Filter:
        """What a client asks for by a text."""
        return parsed(text) if self.schema is None else self.schema.check(parsed(text))

    def expect_news(self, now: float, broker: str, client: str, id: str, text: str) -> None:
        """A subscription that all who watch hear of."""
        attributes = {META: "subscribed", "broker": broker, "client": client, "id": id, "filter": text}
        uid = _uid(attributes)
        self.published[uid] = Published(uid, PUBLISHER, attributes, False, 0, now, now, steady=True)

    def fail(self, text: str) -> None:
        """Note a violation."""
        self.failures.append(text)

    def deliver(self, now: float, client: str, message: Deliver) -> None:
        """A client was given an event."""
        uid = _uid(message.attributes)
        event = self.published.get(uid)
        if event is None and META in message.attributes:
            # Whatever comes and goes is told of, and may be lost while things fail.
            event = Published(uid, PUBLISHER, message.attributes, False, 0, now, now)
            for id in message.subscriptions:
                self._check_wanted(now, client, id, event)
            return
        if event is None:
            self.fail(f"{now:.3f} {client} got {uid!r}, which nobody published")
            return
        for id in message.subscriptions:
            self._check_wanted(now, client, id, event)
        if not self.rights.may_get(now, client, event.attributes):
            self.fail(f"{now:.3f} {client} got {uid}, which it may not have by now")
        before = self.delivered.setdefault((client, uid), [])
        self._check_once(now, client, uid, message, [earlier for _, earlier in before])
        if message.number and not before:
            self._check_order(now, client, event, message)
        before.append((now, message))

    def _check_wanted(self, now: float, client: str, id: str, event: Published) -> None:
        wanted = self.wanted.get((client, id))
        if wanted is None:
            self.fail(f"{now:.3f} {client} got {event.uid} for {id}, which it never asked for")
        elif not wanted.condition.matches(event.attributes):
            self.fail(f"{now:.3f} {client} got {event.uid} for {id}, which doesn't match {wanted.condition}")
        elif now > wanted.left_at:
            self.fail(f"{now:.3f} {client} got {event.uid} for {id}, whose end was confirmed at {wanted.left_at:.3f}")
        elif now > wanted.over_at + GRACE:
            self.fail(f"{now:.3f} {client} got {event.uid} for {id}, whose lease ended at {wanted.over_at:.3f}")

    def _check_once(self, now: float, client: str, uid: str, message: Deliver, before: list[Deliver]) -> None:
        for earlier in before:
            if message.number and earlier.number and earlier.number != message.number:
                self.fail(f"{now:.3f} {client} got {uid} as {earlier.number} and as {message.number}")
            if not message.number and self.published[uid].steady:
                self.fail(f"{now:.3f} {client} got {uid} twice")

    def _check_order(self, now: float, client: str, event: Published, message: Deliver) -> None:
        if not self.ordered or not event.durable or message.late:
            return
        key = (client, event.client)
        if event.number < self.highest.get(key, 0):
            self.fail(
                f"{now:.3f} {client} got {event.uid} ({event.number}) after {self.highest[key]} of {event.client}"
            )
        self.highest[key] = max(self.highest.get(key, 0), event.number)

    def check_durable(self) -> None:
        """No durable event is lost to a durable subscription that was confirmed before it was published."""
        lasting = [wish for wish in self.wanted.values() if wish.durable and not wish.lease and wish.leaving_at == inf]
        for event in self.published.values():
            if not event.durable or event.confirmed_at == inf:
                continue
            for wish in lasting:
                missing = wish.confirmed_at < event.sent_at and (wish.client, event.uid) not in self.delivered
                if missing and self._must_get(wish, event):
                    self.fail(
                        f"{wish.client} never got {event.uid} (sent at {event.sent_at:.3f}) for {wish.id} "
                        f"({wish.condition}), confirmed at {wish.confirmed_at:.3f}"
                    )

    def _must_get(self, wish: Wanted, event: Published) -> bool:
        return wish.condition.matches(event.attributes) and self.rights.must_get(
            event.sent_at, wish.client, event.attributes
        )

    def check_steady(self) -> None:
        """In a settled network, clients get exactly what flooding would give them."""
        for event in self.published.values():
            if not event.steady or event.refused:
                continue
            if event.confirmed_at == inf:
                self.fail(f"{event.uid}, published at {event.sent_at:.3f}, was never confirmed")
            for wish in self.wanted.values():
                if wish.confirmed_at > event.sent_at or wish.leaving_at < inf or wish.lease:
                    continue
                if self._must_get(wish, event) and (wish.client, event.uid) not in self.delivered:
                    self.fail(
                        f"{wish.client} didn't get {event.uid} of the settled network for {wish.id} ({wish.condition})"
                    )


def _uid(attributes: dict[str, Any]) -> str:
    """What tells an event from others; of brokers' own, what it is about."""
    if META in attributes:
        return " ".join(str(attributes.get(name)) for name in (META, "broker", "client", "id"))
    return str(attributes.get("uid", ""))
