"""The tables of one link, in both directions: what the neighbour must know, and what it has told."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from covey.routing.by_table import Table
from covey.routing.exports import Export
from covey.routing.messages import Delta
from covey.routing.routing_table import Holding
from covey.routing.settling import Waits
from covey.routing.undo import Remembered


@dataclass(slots=True)
class Outward(Remembered):
    """One table in the direction of the neighbour."""

    table: Table
    export: Export
    waits: Waits = field(default_factory=Waits)
    number: int = 0
    unacked: deque[Delta] = field(default_factory=deque)
    said_joined: bool = False
    """Whether the last delta said that our tree has the link."""
    unsettled: deque[tuple[int, set[str]]] = field(default_factory=deque)
    """The keys of each delta, until it is settled."""
    doubtful: set[str] = field(default_factory=set)
    """Keys of deltas before this session that were never settled: if the link lapses, somebody behind the neighbour may
    not have heard of them in time. Having been received isn't enough."""
    all_doubtful: bool = True
    """After a restart it isn't known which those are."""
    recalls: set[str] = field(default_factory=set)
    """Filters to recall with the next delta, and again until one that names them is acknowledged."""
    recalls_due: bool = False
    sent_at: float = 0.0
    waiting_since: float = 0.0

    @property
    def awaited(self) -> int:
        """The delta that stands for all changes so far; before a session's first, that one will."""
        return max(1, self.number)


@dataclass(slots=True)
class Inward(Remembered):
    """One table as the neighbour told it."""

    table: Table
    holding: Holding = field(default_factory=Holding)
    applied: int = 0
    settled: int = 0
    unsettled: deque[int] = field(default_factory=deque)
    done: set[int] = field(default_factory=set)
    ack_due: bool = False
    session: int = 0
    is_fresh: bool = True
    """Whether nothing was heard since the link was made, or since all was forgotten."""
    part_keys: set[str] = field(default_factory=set)
    """Keys in parts of a delta of which more is to come. They needn't survive: a session that breaks starts from
    digests."""
