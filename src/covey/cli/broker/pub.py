"""`covey pub`: publish events from the command line or from standard input.

Whatever stops it, it says which lines are published, which aren't, and of which nobody knows. With `--id` lines may be
sent again: those that the broker has count once.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import Any, Final

from covey.cli.broker.arguments import PubOptions
from covey.cli.broker.connection import client
from covey.cli.terminal import complain
from covey.errors import CoveyError, EventError
from covey.network.errors import RefusedError

BATCH: Final = 500
"""Lines published at a time where they come faster than they can be published one by one."""


@dataclass(slots=True)
class Batch:
    """Events that are published together, and where they stand."""

    places: list[int] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    wrong: EventError | None = None
    """What is wrong with the line behind them."""


def run(options: PubOptions) -> int:
    """Publish events."""
    count = last = 0
    unit = "line" if options.listed in ([], ["-"]) else "event"
    under_way: Batch | None = None
    try:
        with client(options) as publisher:
            for batch in _batches(options.listed):
                if batch.events:
                    ids = None if options.id_attribute is None else _ids(batch, options.id_attribute, unit)
                    under_way = batch
                    publisher.publish(batch.events, durable=options.durable, id=ids)
                    count, last, under_way = count + len(batch.events), batch.places[-1], None
                if batch.wrong is not None:
                    raise batch.wrong
    except CoveyError as error:
        if isinstance(error, RefusedError) and under_way is not None and len(under_way.events) == 1:
            under_way = None  # several may have gone in parts, of which one was refused
        raise CoveyError(f"{error}; {_so_far(unit, last, under_way)}") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {_so_far(unit, last, under_way)}") from None
    if options.verbose:
        complain(f"{count:,} published")
    return 0


def _so_far(unit: str, last: int, under_way: Batch | None) -> str:
    """Which lines are published, and of which nobody knows."""
    done = f"{_span(unit, 1, last)} went out" if last else f"no {unit} went out"
    if under_way is None:
        return done
    open = _span(unit, under_way.places[0], under_way.places[-1])
    return f"{done}, and whether {open} did isn't known" if last else f"whether {open} went out isn't known"


def _span(unit: str, first: int, last: int) -> str:
    return f"{unit} {first:,}" if first == last else f"{unit}s {first:,} to {last:,}"


def _ids(batch: Batch, attribute: str, unit: str) -> list[str]:
    for place, event in zip(batch.places, batch.events, strict=True):
        if not isinstance(event.get(attribute), (str, int)) or event[attribute] == "":
            raise EventError(f"{unit} {place:,} has no {attribute!r} to be known by")
    return [str(event[attribute]) for event in batch.events]


def _batches(listed: list[str]) -> Iterator[Batch]:
    if listed and listed != ["-"]:
        batch = _read(list(enumerate(listed, 1)), "event")
        if batch.wrong is not None:
            raise batch.wrong
        yield batch
        return
    lines: Queue[tuple[int, str] | None] = Queue(2 * BATCH)

    def read() -> None:
        for number, line in enumerate(sys.stdin, 1):
            lines.put((number, line))
        lines.put(None)

    # Reading blocks until a line is there, and what was read before it mustn't wait for that.
    threading.Thread(target=read, daemon=True).start()
    more = True
    while more:
        found, more = _waiting(lines)
        yield _read([(number, line) for number, line in found if line.strip()], "line")


def _waiting(lines: Queue[tuple[int, str] | None]) -> tuple[list[tuple[int, str]], bool]:
    """What is there, at least one line; and whether more may come."""
    found: list[tuple[int, str]] = []
    one = lines.get()
    while one is not None:
        found.append(one)
        if len(found) >= BATCH:
            return found, True
        try:
            one = lines.get_nowait()
        except Empty:
            return found, True
    return found, False


def _read(texts: list[tuple[int, str]], unit: str) -> Batch:
    """The events as far as they can be read."""
    batch = Batch()
    for place, text in texts:
        try:
            batch.events.append(_event(text, f"{unit} {place:,}"))
        except EventError as error:
            batch.wrong = error
            break
        batch.places.append(place)
    return batch


def _event(text: str, where: str) -> dict[str, Any]:
    try:
        event = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise EventError(f"{where} isn't JSON: {error}") from None
    if not isinstance(event, dict):
        raise EventError(f"{where} isn't a JSON object of attributes")
    return event
