"""Batches: events on their way through one turn, each known by its place among the others.

What the router needs of all events of a batch (their attributes, for matching; whether they are durable) it takes as
columns. What a client gets of them at once is made from the columns (`deliveries`). An envelope, which is an event by
itself, is made only of one that goes over a link or stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from covey.routing.messages import Deliver, Envelope
from covey.routing.plain_events import size_of


@dataclass(slots=True)
class Wanted:
    """What a hop asks for of events in a row."""

    places: list[int] = field(default_factory=list)
    """Of the events, ascending."""
    keys: list[list[str]] = field(default_factory=list)
    """Of each, the hop's entries that match it."""


class Batch(Protocol):
    """Numbered events."""

    @property
    def attributes(self) -> list[dict[str, Any]]:
        """What is matched, by place."""

    @property
    def durable(self) -> Sequence[bool]:
        """Which of them are."""

    def envelope(self, at: int) -> Envelope:
        """An event by itself."""

    def size(self, at: int) -> int:
        """What it counts where limits are in bytes."""

    def deliveries(self, places: list[int], subscriptions: list[list[str]], sizes: list[int]) -> list[Deliver]:
        """Some of the events as a client gets them that needn't acknowledge them."""


class _Measured:
    """Events whose sizes are found when they are first asked for."""

    __slots__ = ("_sizes", "attributes")

    def __init__(self, attributes: list[dict[str, Any]]) -> None:
        self.attributes = attributes
        self._sizes: dict[int, int] = {}

    def size(self, at: int) -> int:
        """What an event counts where limits are in bytes."""
        size = self._sizes.get(at)
        if size is None:
            size = self._sizes[at] = size_of(self.attributes[at])
        return size


class Originated(_Measured):
    """Events that enter the network here; their numbers follow each other."""

    __slots__ = (
        "_first", "_hops", "_made", "_origin", "durable", "publisher_numbers", "publishers", "traces",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__([])
        self.publishers: list[str] = []
        self.publisher_numbers: list[int] = []
        self.durable: list[bool] = []
        self.traces: dict[int, str] = {}
        """By place, of those that have one."""
        self._origin, self._first, self._hops = "", 0, 0
        self._made: dict[int, Envelope] = {}

    def __len__(self) -> int:
        return len(self.attributes)

    def extend(
        self, publisher: str, numbers: list[int], durable: list[bool], attributes: list[dict[str, Any]], trace: str = ""
    ) -> None:
        """Add events of one publisher."""
        if trace:
            start = len(self.attributes)
            self.traces.update(dict.fromkeys(range(start, start + len(attributes)), trace))
        self.publishers += [publisher] * len(attributes)
        self.publisher_numbers += numbers
        self.durable += durable
        self.attributes += attributes

    def number(self, origin: str, first: int, hops: int) -> None:
        """Give the events their ids: the broker, and numbers from `first` on."""
        self._origin, self._first, self._hops = origin, first, hops

    def envelope(self, at: int) -> Envelope:
        """An event by itself."""
        made = self._made.get(at)
        if made is None:
            made = self._made[at] = Envelope(
                self._origin,
                self._first + at,
                self.publishers[at],
                self.publisher_numbers[at],
                self.durable[at],
                self._hops,
                self.attributes[at],
                trace=self.traces.get(at, "") if self.traces else "",
            )
        return made

    def deliveries(self, places: list[int], subscriptions: list[list[str]], sizes: list[int]) -> list[Deliver]:
        """Some of the events as a client gets them that needn't acknowledge them."""
        origin, first = self._origin, self._first
        attributes, publishers = self.attributes, self.publishers
        numbers, durable, traces = self.publisher_numbers, self.durable, self.traces
        return [
            Deliver(
                0, ids, attributes[at], publishers[at], numbers[at], durable[at], f"{origin}/{first + at}", False, size,
                traces.get(at, ""),
            )
            for at, ids, size in zip(places, subscriptions, sizes, strict=True)
        ]  # fmt: skip


class Arrived(_Measured):
    """Events that came from a neighbour, with the numbers of the brokers where they entered the network."""

    __slots__ = ("_envelopes", "durable")

    def __init__(self, envelopes: list[Envelope]) -> None:
        super().__init__([envelope.attributes for envelope in envelopes])
        self._envelopes = envelopes
        self.durable = [envelope.durable for envelope in envelopes]

    def envelope(self, at: int) -> Envelope:
        """An event by itself."""
        return self._envelopes[at]

    def deliveries(self, places: list[int], subscriptions: list[list[str]], sizes: list[int]) -> list[Deliver]:
        """Some of the events as a client gets them that needn't acknowledge them."""
        envelopes = self._envelopes
        return [
            delivery(0, ids, envelopes[at], size) for at, ids, size in zip(places, subscriptions, sizes, strict=True)
        ]


def delivery(number: int, subscriptions: list[str], event: Envelope, size: int) -> Deliver:
    """One event as a client gets it."""
    return Deliver(
        number, subscriptions, event.attributes, event.publisher, event.publisher_number, event.durable, event.key,
        event.recalled, size, event.trace,
    )  # fmt: skip
