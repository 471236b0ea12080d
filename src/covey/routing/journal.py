"""What a broker must not forget: rows by space and key.

A broker's lasting state is rows, as in a table with the primary key (space, key). One `handle` gives the rows that it
changed; whoever drives the broker commits them as a whole before it sends anything that came with them. Several
`handle`s may be committed together, in order. `Broker.restore` takes all rows, in any order.

Values are msgpack. A row is small: an entry of a table, an event, a place in a queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import msgspec

from covey.routing.messages import Output

Value = TypeVar("Value")

_encoder = msgspec.msgpack.Encoder()


class Put(msgspec.Struct, frozen=True, gc=False):
    """Set a row."""

    space: str
    key: str
    value: bytes


class Drop(msgspec.Struct, frozen=True, gc=False):
    """Delete a row; one that isn't there is no error."""

    space: str
    key: str


Record: TypeAlias = Put | Drop


@dataclass(frozen=True, slots=True)
class Flaw:
    """A defect of the broker that costs nobody anything but time."""

    what: str
    error: Exception


@dataclass(slots=True)
class Outputs:
    """What one `handle` asks for: commit all records together, then send."""

    records: list[Record] = field(default_factory=list)
    sends: list[Output] = field(default_factory=list)
    defects: list[Flaw] = field(default_factory=list)
    """What raised and was got round: to be counted and logged."""

    def put(self, space: str, key: str, value: Any) -> None:
        """Set a row."""
        self.records.append(Put(space, key, _encoder.encode(value)))

    def after(self, before: Outputs) -> Outputs:
        """These behind others."""
        if before.records or before.sends or before.defects:
            return Outputs(
                before.records + self.records, before.sends + self.sends, before.defects + self.defects
            )  # fmt: skip
        return self

    def drop(self, space: str, key: str) -> None:
        """Delete a row."""
        self.records.append(Drop(space, key))


@dataclass(slots=True)
class Turn:
    """One `handle`: when it is, and what came of it so far."""

    now: float = 0.0
    out: Outputs = field(default_factory=Outputs)
    number: int = 0
    """Counts turns."""

    def begin(self, now: float) -> None:
        """Start anew. Time doesn't go backwards, whatever the clock does."""
        self.now = max(now, self.now)
        self.number += 1
        self.out = Outputs()


def read(value: bytes, type: type[Value]) -> Value:
    """A row's value."""
    return msgspec.msgpack.decode(value, type=type)


def replay(rows: dict[tuple[str, str], bytes], records: list[Record]) -> None:
    """Apply records to rows: what a store does, in memory."""
    for record in records:
        if isinstance(record, Put):
            rows[record.space, record.key] = record.value
        else:
            rows.pop((record.space, record.key), None)
