"""Batches: events on their way through one turn, each known by its place among the others.

What the router needs of all events of a batch (their attributes, for matching; whether they are durable) it takes as
columns. An envelope, which is an event by itself, is made only of one that goes somewhere or stays: most events that
nobody asks for never become an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from covey.routing.messages import Envelope


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


class Originated:
    """Events that enter the network here; their numbers follow each other."""

    __slots__ = ("_first", "_hops", "_origin", "attributes", "durable", "publisher_numbers", "publishers", "traces")

    def __init__(self) -> None:
        self.publishers: list[str] = []
        self.publisher_numbers: list[int] = []
        self.durable: list[bool] = []
        self.attributes: list[dict[str, Any]] = []
        self.traces: dict[int, str] = {}
        """By place, of those that have one."""
        self._origin, self._first, self._hops = "", 0, 0

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
        return Envelope(
            self._origin,
            self._first + at,
            self.publishers[at],
            self.publisher_numbers[at],
            self.durable[at],
            self._hops,
            self.attributes[at],
            trace=self.traces.get(at, "") if self.traces else "",
        )


class Arrived:
    """Events that came from a neighbour, with the numbers of the brokers where they entered the network."""

    __slots__ = ("_envelopes", "attributes", "durable")

    def __init__(self, envelopes: list[Envelope]) -> None:
        self._envelopes = envelopes
        self.attributes = [envelope.attributes for envelope in envelopes]
        self.durable = [envelope.durable for envelope in envelopes]

    def envelope(self, at: int) -> Envelope:
        """An event by itself."""
        return self._envelopes[at]
