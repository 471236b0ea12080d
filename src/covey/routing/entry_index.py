"""Numbered entries in an index, with those that are on their way into it.

An index takes many entries at once far more quickly than a few at a time, and compiling hundreds takes longer than
anybody's event should wait. So new entries *wait*, found meanwhile by values that an event must have
(`waiting_entries.py`). When there are many, or when interpreting them for events has cost as much as the index takes
for them, they are compiled on a thread: they are *coming*, and still interpreted until the index has them. Which of the
three an entry is in changes nothing but the time that an event takes. Where too many would have to wait, whoever brings
them waits for those that are coming.

Numbers grow, so matches come in the order of numbers, but for entries that the index can't take, which come last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from covey.events.messagepack_batches import MessagePackMaps
from covey.filters.algebra import Filter
from covey.matching import Index, Matches, Prepared
from covey.routing.journal import Flaw
from covey.routing.known_filters import KnownFilters
from covey.routing.packed_events import PackedEvents
from covey.routing.waiting_entries import WaitingEntries

Row: TypeAlias = tuple[str, Filter]

WAITING: Final = 512
"""Entries that wait before they are compiled; so many are read by the bulk parser, in some milliseconds."""
MOST_WAITING: Final = 2_048
"""Entries that wait at most while others are compiled."""
ONE_BY_ONE: Final = 32
"""Entries up to which the index takes what waits one by one, into its head."""
PATIENCE: Final = 8
"""How many times more than an index takes for them entries that are coming may cost before somebody waits for them."""
SHOWN: Final = 300
"""Characters of a filter that are reported."""


@dataclass(slots=True)
class _Coming:
    """Entries that are being compiled."""

    entries: WaitingEntries
    """Those that are still wanted."""
    rows: list[Row]
    prepared: Future[Prepared]
    gone: list[str] = field(default_factory=list)
    """Those that aren't wanted any more."""


class EntryIndex:
    """Filters by number."""

    def __init__(
        self, known: KnownFilters, report: Callable[[Flaw], None], changing: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._known = known
        self._report = report
        """Is told of entries that the index can't take."""
        self._changing = changing
        """Around changes of the index: where something raises within, nobody knows what it has."""
        self._index = known.index()
        self._waiting = WaitingEntries()
        self._coming: _Coming | None = None
        self._apart: dict[str, Filter] = {}
        """Entries that the index can't take."""

    def add(self, number: str, condition: Filter) -> None:
        """Let an entry wait, under a number that is larger than all before."""
        self._waiting.add(number, condition)
        if len(self._waiting) >= WAITING:
            self._compile()

    def add_many(self, rows: Sequence[Row]) -> None:
        """As `add`; so many that the bulk parser is worth its while for them alone are taken at once."""
        if len(rows) <= WAITING:
            for number, condition in rows:
                self.add(number, condition)
            return
        self._take_all()
        with self._changing():
            self._take(rows)

    def remove_many(self, numbers: Collection[str]) -> None:
        """These entries are gone."""
        inside = [number for number in numbers if not self._stops_waiting(number)]
        if inside:
            with self._changing():
                self._index.remove_many(inside)

    def compact(self) -> None:
        """Much was removed: what is only marked as removed is still looked at with each event."""
        with self._changing():
            self._index.compact(wait=False)

    def _stops_waiting(self, number: str) -> bool:
        """Forget an entry that the index hasn't; False where it has it."""
        coming = self._coming
        if coming is not None and coming.entries.remove(number):
            coming.gone.append(number)
            return True
        return self._waiting.remove(number) or self._apart.pop(number, None) is not None

    # Into the index

    def _compile(self) -> None:
        """Let what waits be compiled, unless others are."""
        self._arrive(wait=len(self._waiting) >= MOST_WAITING)
        if self._coming is None:
            rows = list(self._waiting.items())
            written = [(number, self._known.written(condition)) for number, condition in rows]
            prepared = self._index.prepare_later(written, [condition for _, condition in rows])
            self._coming = _Coming(self._waiting, rows, prepared)
            self._waiting = WaitingEntries()

    def _arrive(self, *, wait: bool) -> None:
        """The index takes what was compiled, if it is; or waits for it."""
        coming = self._coming
        if coming is None or not (wait or coming.prepared.done()):
            return
        self._coming = None
        with self._changing():
            try:
                self._index.add_prepared(coming.prepared.result())
            except Exception:  # of whichever entry is at fault, which `_take` finds and reports
                gone = set(coming.gone)
                self._take([row for row in coming.rows if row[0] not in gone])
                return
            if coming.gone:
                self._index.remove_many(coming.gone)

    def _take_all(self) -> None:
        """The index takes all that waits and all that comes."""
        self._arrive(wait=True)
        if self._waiting:
            with self._changing():
                rows = list(self._waiting.items())
                if len(rows) > ONE_BY_ONE:
                    self._take(rows)
                else:
                    for row in rows:
                        self._take([row])
            self._waiting = WaitingEntries()

    def _take(self, rows: Sequence[Row]) -> None:
        """Let the index take entries. One that it can't take, which is a defect of the index, must not keep others from
        it, nor whoever publishes next: it is matched apart, and reported."""
        try:
            if len(rows) == 1:
                self._index.add(*rows[0])
            elif rows:
                written = [(number, self._known.written(condition)) for number, condition in rows]
                self._index.add_prepared(self._index.prepare(written, [condition for _, condition in rows]))
        except Exception as error:
            if len(rows) == 1:
                self._apart.update(rows)
                self._report(Flaw(f"an index can't take {rows[0][1]!s:.{SHOWN}}", error))
                return
            middle = len(rows) // 2
            self._take(rows[:middle])
            self._take(rows[middle:])

    def _up_to_date(self, events: int) -> Index:
        """The index for so many events, which knows all but what is interpreted."""
        waiting, coming = self._waiting, self._coming
        if coming is not None:
            self._arrive(wait=coming.entries.is_dear(events, PATIENCE))
        if events > 1 and waiting.is_dear(events):
            self._take_all()
        elif waiting and waiting.is_dear(1):
            if len(waiting) > ONE_BY_ONE:
                self._compile()
            else:
                self._take_all()
        return self._index

    # Matching

    def match(self, event: Mapping[str, Any]) -> list[str]:
        """The numbers of the entries that an event, with its defaults, meets."""
        index = self._up_to_date(1)
        return index.match(event) + self._interpreted(event)

    def match_many(self, events: Sequence[Mapping[str, Any]]) -> tuple[Matches, list[tuple[int, str]]]:
        """As `match`, for events in a row: what the index found, and places of events with the numbers of others that
        they meet, event by event."""
        given = MessagePackMaps(events.data, bounds=events.bounds) if isinstance(events, PackedEvents) else events
        found = self._up_to_date(len(events)).match_batch(given, threads=1)
        if not self._apart and not self._waiting and self._coming is None:
            return found, []
        return found, [(at, number) for at, event in enumerate(events) for number in self._interpreted(event)]

    def _interpreted(self, event: Mapping[str, Any]) -> list[str]:
        matches = self._known.matches
        found: list[str] = []
        if self._coming is not None:
            found += self._coming.entries.matched(event, matches)
        if self._waiting:
            found += self._waiting.matched(event, matches)
        if self._apart:
            found += [number for number, condition in self._apart.items() if matches(condition, event)]
        return found
