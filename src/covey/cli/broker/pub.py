"""`covey pub`: publish events from the command line or from standard input.

Lines are read in large pieces, and published some hundreds at a time without waiting for each confirmation. Whatever
stops it, it says which lines are published, which aren't, and of which nobody knows. With `--id` lines may be sent
again: those that the broker has count once.
"""

from __future__ import annotations

import io
import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Final, cast

from covey.cli.broker.arguments import PubOptions
from covey.cli.broker.connection import client
from covey.cli.terminal import complain
from covey.errors import CoveyError, EventError
from covey.network.errors import RefusedError

if TYPE_CHECKING:
    from covey.network.sync.publishing import Publishing

BATCH: Final = 1_000
"""Lines published at a time where they come faster than they can be published one by one."""
PIECE: Final = 1 << 16
"""Bytes that are read at a time; whole lines of them are published, however few there are."""
PIECES: Final = 16
"""Pieces that wait to be published."""


@dataclass(slots=True)
class Batch:
    """Events that are published together, and where they stand."""

    places: list[int] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    wrong: EventError | None = None
    """What is wrong with the line behind them."""


class Progress:
    """Which events are published, by where they stand."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._last = 0
        self._seen = 0
        self._open: deque[tuple[int, int, int]] = deque()
        """Of publications that aren't known to be confirmed: how many events, and the first and last place."""
        self.out: Publishing | None = None

    def gave(self, batch: Batch) -> None:
        """A batch is about to be published."""
        self._open.append((len(batch.events), batch.places[0], batch.places[-1]))
        self._follow()

    def _follow(self) -> None:
        confirmed = 0 if self.out is None else self.out.confirmed
        while self._open and self._seen + self._open[0][0] <= confirmed:
            count, _, self._last = self._open.popleft()
            self._seen += count

    def so_far(self, error: BaseException) -> str:
        """Which are published, and of which nobody knows."""
        self._follow()
        unknown = self._open
        if isinstance(error, RefusedError) and len(unknown) == 1 and unknown[0][0] == 1:
            unknown = deque()  # several may have gone in parts, of which one was refused
        done = f"{_span(self._unit, 1, self._last)} went out" if self._last else f"no {self._unit} went out"
        if not unknown:
            return done
        open = _span(self._unit, unknown[0][1], unknown[-1][2])
        return f"{done}, and whether {open} did isn't known" if self._last else f"whether {open} went out isn't known"


def run(options: PubOptions) -> int:
    """Publish events."""
    unit = "line" if options.listed in ([], ["-"]) else "event"
    progress = Progress(unit)
    try:
        with client(options) as publisher, publisher.publishing(durable=options.durable) as out:
            progress.out = out
            for batch in _batches(options.listed):
                if batch.events:
                    ids = None if options.id_attribute is None else _ids(batch, options.id_attribute, unit)
                    progress.gave(batch)
                    out.publish(batch.events, id=ids)
                if batch.wrong is not None:
                    raise batch.wrong
    except CoveyError as error:
        raise CoveyError(f"{error}; {progress.so_far(error)}") from None
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(f"interrupted; {progress.so_far(interrupt)}") from None
    if options.verbose:
        complain(f"{out.confirmed:,} published")
    return 0


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
    pieces: Queue[bytes] = Queue(PIECES)

    stdin = cast(io.BufferedReader, sys.stdin.buffer)

    def read() -> None:
        while piece := stdin.read1(PIECE):
            pieces.put(piece)
        pieces.put(b"")

    # Reading blocks until something is there, and what was read before it mustn't wait for that.
    threading.Thread(target=read, daemon=True).start()
    number, rest, more = 0, b"", True
    while more:
        found, more = _waiting(pieces)
        *lines, rest = (rest + found).split(b"\n")
        if not more:
            lines.append(rest)
        for start in range(0, len(lines), BATCH):
            some = enumerate(lines[start : start + BATCH], number + start + 1)
            yield _read([(place, line) for place, line in some if line and not line.isspace()], "line")
        number += len(lines)


def _waiting(pieces: Queue[bytes]) -> tuple[bytes, bool]:
    """What is there, at least one piece; and whether more may come."""
    found = [pieces.get()]
    while found[-1] and len(found) < PIECES:
        try:
            found.append(pieces.get_nowait())
        except Empty:
            break
    return b"".join(found), bool(found[-1])


def _read(texts: list[tuple[int, bytes | str]], unit: str) -> Batch:
    """The events as far as they can be read."""
    from covey.network.event_sources import read_line

    batch = Batch()
    for place, text in texts:
        try:
            batch.events.append(read_line(text, f"{unit} {place:,}"))
        except EventError as error:
            batch.wrong = error
            break
        batch.places.append(place)
    return batch
