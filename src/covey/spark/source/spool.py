"""Events that were delivered and that Spark has not committed, on disk, so that a batch can be read a second time.

Spark's checkpoint says "batch 7 is from offset 120 to 180" and asks for the same rows after a crash. A broker gives
what isn't acknowledged again, but not in the same portions, and it forgets what is acknowledged. So each event gets a
position here, once: it is written with its delivery number to a segment, synced and linked into place, before Spark
hears of the position. Offsets are positions. What is delivered again is known by its number, and gets no other.

Delivery numbers ascend for as long as the broker keeps the subscription. Where it has none, a new era of numbers
begins; that is written down before the subscription is made, so a crash between the two can't mix up the eras.

`state.json` says up to where Spark has committed; segments below that are gone. The spool is one query's: a lock on it
lasts as long as the process that holds it, so a driver that isn't quite dead keeps its successor waiting, not confused.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from covey.errors import CoveyError
from covey.spark.stream.journal import write_durably

SEGMENT_EVENTS: Final = 10_000
"""Events in one file, which is what one task reads."""
SPOOLED_EVENTS: Final = 500_000
"""Events that wait for Spark to commit them; beyond, nothing more is taken from the broker."""
LOCK_SECONDS: Final = 30.0
"""How long to wait for a query that still has the spool."""
_SUFFIX: Final = ".events"


class SpooledEvent(msgspec.Struct, frozen=True, array_like=True):
    """One event as it was delivered."""

    number: int
    event: str
    attributes: dict[str, Any]


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A file: events of one era, at positions that follow each other."""

    first: int
    era: int
    events: list[SpooledEvent]

    @property
    def last(self) -> int:
        """The position of the last event."""
        return self.first + len(self.events) - 1


@dataclass(frozen=True, slots=True)
class Committed:
    """Up to where everything is done."""

    position: int = 0
    era: int = 0
    number: int = 0
    """The last delivery number of this era that is done."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Events from one position to another, in one segment."""

    path: str
    first: int
    last: int


class Spool:
    """The spool of one query; `open` before anything else."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = ""
        self.committed = Committed()
        self.last = 0
        """The position of the last event."""
        self._lock: int | None = None
        self._segments: dict[int, int] = {}
        self._positions: dict[int, int] = {}
        """Where events of this era are that aren't committed, by delivery number."""

    def open(self, subscription: str) -> None:
        """Lock the spool and read what it has."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        path = self.directory / "spool.json"
        made = {"spool": uuid.uuid4().hex, "subscription": subscription}
        write_durably(path, json.dumps(made).encode(), once=True)
        found = json.loads(path.read_bytes())
        if found["subscription"] != subscription:
            raise CoveyError(
                f"spool {str(self.directory)!r} has events of the subscription {found['subscription']!r}, not "
                f"{subscription!r}; give each subscription a spool of its own"
            )
        self.id = found["spool"]
        state = self.directory / "state.json"
        if state.exists():
            self.committed = Committed(**json.loads(state.read_bytes()))
        self.last = self.committed.position
        for path in sorted(self.directory.glob(f"*{_SUFFIX}")):
            self._note(read_segment(path))

    def close(self) -> None:
        """Let others have the spool."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def room(self) -> int:
        """Events that may still come."""
        return max(0, SPOOLED_EVENTS - (self.last - self.committed.position))

    def begin_era(self) -> None:
        """The broker will number deliveries anew."""
        self._write_state(Committed(self.committed.position, self.committed.era + 1, 0))
        self._positions.clear()

    def position_of(self, number: int) -> int | None:
        """Where a delivery stands; 0 where that is long done, None where it is new."""
        return 0 if number <= self.committed.number else self._positions.get(number)

    def append(self, events: Sequence[SpooledEvent]) -> None:
        """Give events the next positions, durably."""
        for start in range(0, len(events), SEGMENT_EVENTS):
            segment = Segment(self.last + 1, self.committed.era, list(events[start : start + SEGMENT_EVENTS]))
            if not write_durably(self._path(segment.first), msgspec.msgpack.encode(segment), once=True):
                raise CoveyError(f"another query writes to the spool {str(self.directory)!r}; give each its own")
            self._note(segment)

    def slices(self, after: int, last: int) -> list[Slice]:
        """The events after one position, up to another; an error where they aren't there."""
        found: list[Slice] = []
        next_one = after + 1
        for first, end in sorted(self._segments.items()):
            if end >= next_one and first <= last:
                if first > next_one:
                    break
                found.append(Slice(str(self._path(first)), next_one, min(end, last)))
                next_one = found[-1].last + 1
        if next_one <= last:
            raise CoveyError(
                f"spool {str(self.directory)!r} lacks events {next_one} to {last}, which the checkpoint asks for; "
                "restore the spool, or start with a new checkpoint and a new spool"
            )
        return found

    def commit(self, position: int) -> None:
        """Events up to a position won't be asked for again."""
        if position <= self.committed.position:
            return
        done = [number for number, at in self._positions.items() if at <= position]
        number = max(done, default=self.committed.number)
        self._write_state(Committed(position, self.committed.era, number))
        for delivered in done:
            del self._positions[delivered]
        for first, last in list(self._segments.items()):
            if last <= position:
                self._path(first).unlink(missing_ok=True)
                del self._segments[first]

    def _note(self, segment: Segment) -> None:
        if segment.last <= self.committed.position:
            # Its deletion was cut short.
            self._path(segment.first).unlink(missing_ok=True)
            return
        self._segments[segment.first] = segment.last
        self.last = max(self.last, segment.last)
        if segment.era == self.committed.era:
            for at, event in enumerate(segment.events, segment.first):
                if at > self.committed.position:
                    self._positions[event.number] = at

    def _path(self, first: int) -> Path:
        return self.directory / f"{first:016d}{_SUFFIX}"

    def _write_state(self, committed: Committed) -> None:
        write_durably(self.directory / "state.json", json.dumps(asdict(committed)).encode())
        self.committed = committed

    def _take_lock(self) -> None:
        lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > end:
                    os.close(lock)
                    raise CoveyError(
                        f"another query uses the spool {str(self.directory)!r}; stop it, or give each its own"
                    ) from None
                time.sleep(0.1)
            else:
                self._lock = lock
                return


_decoder = msgspec.msgpack.Decoder(Segment)


def read_segment(path: Path) -> Segment:
    """The events of a file."""
    try:
        return _decoder.decode(path.read_bytes())
    except FileNotFoundError:
        raise CoveyError(
            f"{path} is not to be seen here; a spool has to be on a path that the driver and all workers share"
        ) from None
    except msgspec.DecodeError as error:
        raise CoveyError(f"{path} is damaged: {error}; restore it, or start with a new checkpoint and spool") from None


def read_slice(part: Slice) -> list[SpooledEvent]:
    """The events of a slice."""
    segment = read_segment(Path(part.path))
    return segment.events[part.first - segment.first : part.last - segment.first + 1]
