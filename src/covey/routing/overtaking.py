"""Messages that don't wait for the rows that are being committed: those about plain events.

Nothing that anybody hears may be undone by a crash, so messages wait for the rows of their turn and for all before. An
event without durability hangs on no row: it is gone with the broker that has it, and whoever gets it could as well
have had it a moment before. So where an input brings plain events and changes no row, these go to clients and
neighbours, and publishers hear that they were taken, while commits are under way.

What must not be overtaken is *held*. A client hears all in order, so for one that something waits for the rest waits
too. To a neighbour plain events are numbered by themselves and mean the same before a delta as after it; only a Hello
comes first, and the end last. A row that reserves events' numbers holds everything: a number that went out and isn't
reserved would be given to another event after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from covey.routing.journal import Outputs, Record
from covey.routing.messages import (
    ClosePeer,
    Confirmed,
    Deliveries,
    Events,
    FromClient,
    FromPeer,
    Hello,
    Input,
    Output,
    Publications,
    Publish,
    Refused,
    Taken,
    ToClient,
    ToPeer,
)
from covey.routing.packed_events import PackedDeliveries, PackedPublications

Receiver: TypeAlias = tuple[str, str]
"""A client or a neighbour for whom something waits."""
NUMBERS: Final[Receiver] = ("broker", "numbers")
"""Everybody, while the row of this space and key waits: it reserves numbers."""


class UnderWay:
    """What waits for commits that are under way, as far as it must not be overtaken."""

    def __init__(self) -> None:
        self._held: dict[Receiver, int] = {}
        """How many commits each waits for."""

    def divide(self, input: Input | None, outputs: Outputs) -> tuple[list[Output], list[Output]]:
        """What of an input's outputs may go at once, and what waits behind the commits that are under way."""
        if outputs.records or NUMBERS in self._held or not _is_plain(input):
            return [], outputs.sends
        answers = not isinstance(input, FromPeer)
        at_once: list[Output] = []
        later: list[Output] = []
        behind = set()
        for output in outputs.sends:
            receiver = _receiver(output)
            if receiver not in self._held and receiver not in behind and _passes(output, answers=answers):
                at_once.append(output)
                continue
            later.append(output)
            if _holds(output):
                behind.add(receiver)
        return at_once, later

    def hold(self, records: Iterable[Record], sends: Iterable[Output]) -> list[Receiver]:
        """These wait for a commit; gives what `release` takes when it is done."""
        held = [NUMBERS for record in records if record.space == NUMBERS[0] and record.key == NUMBERS[1]]
        held += [_receiver(output) for output in sends if _holds(output)]
        for one in held:
            self._held[one] = self._held.get(one, 0) + 1
        return held

    def release(self, held: Iterable[Receiver]) -> None:
        """What waited has gone."""
        for one in held:
            self._held[one] -= 1
            if not self._held[one]:
                del self._held[one]


def is_plain(publish: Publish) -> bool:
    """Whether nothing of a publication is written down."""
    events = publish.events
    if isinstance(events, PackedPublications):
        return events.is_plain
    return not any(event.durable or event.id for event in events)


def _is_plain(input: Input | None) -> bool:
    """Whether an input brings events of which nothing is written down, not even that they came."""
    if isinstance(input, Publications):
        return not input.ids and not any(input.durable)
    if isinstance(input, FromClient):
        return isinstance(input.message, Publish) and is_plain(input.message)
    return isinstance(input, FromPeer) and isinstance(input.message, Events)


def _receiver(output: Output) -> Receiver:
    return ("p", output.peer) if isinstance(output, ToPeer | ClosePeer) else ("c", output.client)


def _passes(output: Output, *, answers: bool) -> bool:
    if isinstance(output, Deliveries):
        return isinstance(output.messages, PackedDeliveries) or not any(one.number for one in output.messages)
    if isinstance(output, ToPeer):
        return isinstance(output.message, Events | Taken)
    return answers and isinstance(output, ToClient) and isinstance(output.message, Confirmed | Refused)


def _holds(output: Output) -> bool:
    return not isinstance(output, ToPeer) or isinstance(output.message, Hello)
