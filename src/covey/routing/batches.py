"""Batches: events on their way through one turn, each known by its place among the others.

What the router needs of all events of a batch (their attributes, for matching; whether they are durable) it takes as
columns. What a client gets of them at once is made from the columns (`deliveries`). An envelope, which is an event by
itself, is made only of one that goes over a link or stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from covey.routing import packed_events
from covey.routing.messages import Deliver, Envelope
from covey.routing.packed_events import NamedPairs, PackedEvents, packed_deliveries
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
    def attributes(self) -> Sequence[dict[str, Any]]:
        """What is matched, by place."""

    @property
    def durable(self) -> Sequence[bool]:
        """Which of them are."""

    def envelope(self, at: int) -> Envelope:
        """An event by itself."""

    def size(self, at: int) -> int:
        """What it counts where limits are in bytes."""

    def sizes(self, places: list[int]) -> list[int]:
        """The same of some of them."""

    def deliveries(self, places: list[int], subscriptions: list[list[str]], sizes: list[int]) -> Sequence[Deliver]:
        """Some of the events as a client gets them that needn't acknowledge them."""


class _Measured:
    """Events whose sizes are found when they are first asked for."""

    __slots__ = ("_sizes", "attributes")

    def __init__(self, attributes: Sequence[dict[str, Any]]) -> None:
        self.attributes = attributes
        self._sizes: dict[int, int] = {}

    def size(self, at: int) -> int:
        """What an event counts where limits are in bytes."""
        size = self._sizes.get(at)
        if size is None:
            size = self._sizes[at] = size_of(self.attributes[at])
        return size

    def sizes(self, places: list[int]) -> list[int]:
        """The same of some of them."""
        size = self.size
        return [size(at) for at in places]


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
        self, publisher: str, numbers: list[int], durable: list[bool], attributes: Sequence[dict[str, Any]],
        trace: str = "",
    ) -> None:  # fmt: skip
        """Add events of one publisher."""
        if trace:
            start = len(self.attributes)
            self.traces.update(dict.fromkeys(range(start, start + len(attributes)), trace))
        self.publishers += [publisher] * len(attributes)
        self.publisher_numbers += numbers
        self.durable += durable
        self.attributes = _extended(self.attributes, attributes)

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

    def size(self, at: int) -> int:
        """What an event counts where limits are in bytes."""
        if isinstance(self.attributes, PackedEvents):
            return self.attributes.sizes([at])[0]
        return super().size(at)

    def sizes(self, places: list[int]) -> list[int]:
        """The same of some of them."""
        if isinstance(self.attributes, PackedEvents):
            return self.attributes.sizes(places)
        return super().sizes(places)

    def deliveries(self, places: list[int], subscriptions: list[list[str]], sizes: list[int]) -> Sequence[Deliver]:
        """Some of the events as a client gets them that needn't acknowledge them."""
        origin, first = self._origin, self._first
        if isinstance(self.attributes, PackedEvents) and len(places) >= packed_events.PACKED_FROM and not self.traces:
            named = NamedPairs.of(places, subscriptions)
            return packed_deliveries(self.attributes, named, len(places), sum(sizes), self.publishers, origin, first)
        attributes, publishers = self.attributes, self.publishers
        numbers, durable, traces = self.publisher_numbers, self.durable, self.traces
        return [
            Deliver(
                0, ids, attributes[at], publishers[at], numbers[at], durable[at], f"{origin}/{first + at}", False, size,
                traces.get(at, ""),
            )
            for at, ids, size in zip(places, subscriptions, sizes, strict=True)
        ]  # fmt: skip

    @property
    def packed(self) -> PackedEvents | None:
        """The events, where all of them are bytes and have nothing that deliveries must say besides."""
        return self.attributes if isinstance(self.attributes, PackedEvents) and not self.traces else None

    def packed_deliveries(self, named: NamedPairs, count: int, size: int) -> Sequence[Deliver]:
        """As `deliveries`, of so many events that are packed, with so many bytes."""
        assert isinstance(self.attributes, PackedEvents)
        return packed_deliveries(self.attributes, named, count, size, self.publishers, self._origin, self._first)


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


def _extended(events: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Events and others behind them; packed as long as these go on in the same bytes."""
    if isinstance(others, PackedEvents):
        if not events:
            return others
        if isinstance(events, PackedEvents) and events.goes_on(others):
            return events.with_next(others)
    if not isinstance(events, list):
        return [*events, *others]
    events += others
    return events


def delivery(number: int, subscriptions: list[str], event: Envelope, size: int) -> Deliver:
    """One event as a client gets it."""
    return Deliver(
        number, subscriptions, event.attributes, event.publisher, event.publisher_number, event.durable, event.key,
        event.recalled, size, event.trace,
    )  # fmt: skip
