"""What a stream reports after each micro-batch: how much, how fast, under which version, how far behind.

The reports come from the driver's own loop and not from Spark's listener bus, because Spark knows neither versions nor
matches; they are the same on classic Spark and on Connect. On Connect the loop runs in a process beside the server, so
that a listener there is a copy: it may print, write or send, but variables of the client don't change.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

_KEPT = 100


@dataclass(frozen=True, slots=True)
class BatchReport:
    """One micro-batch."""

    batch: int
    version: int
    """The version of the subscriptions that all of the batch was matched with."""
    newest: int
    """The newest version that was complete when the batch ended."""
    events: int | None
    """None where a writer of yours computed nothing."""
    matches: int | None
    seconds: float
    """From the batch's start to its commit, changes of subscriptions included."""
    change_seconds: float
    """Of these, for reading and applying changes and saving the version."""
    changes: int
    """Changed subscriptions that this batch is the first to see."""
    bad_changes: int
    """Rows of changes that could not be applied, since the stream started."""
    waiting: int
    """Change files that are not complete yet."""
    replayed: bool
    """Whether the batch had been begun by an earlier run of the stream."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """By rule, the events on which a term of it failed; rules without failures are left out."""

    @property
    def lag(self) -> int:
        """How far the version is behind the newest."""
        return self.newest - self.version

    @property
    def events_per_second(self) -> float:
        """Events of the batch by its duration."""
        return (self.events or 0) / self.seconds

    @property
    def matches_per_second(self) -> float:
        """Matches of the batch by its duration."""
        return (self.matches or 0) / self.seconds

    def line(self) -> str:
        """All of it in one line."""
        counts = "events and matches unknown"
        if self.events is not None and self.matches is not None:
            counts = (
                f"{self.events:,} events ({self.events_per_second:,.0f}/s), "
                f"{self.matches:,} matches ({self.matches_per_second:,.0f}/s)"
            )
        line = f"batch {self.batch}: {counts}, version {self.version} (lag {self.lag}), {self.seconds:.2f} s"
        if self.changes:
            line += f", {self.changes:,} changes in {self.change_seconds:.2f} s"
        counted = ((self.bad_changes, "bad changes"), (self.waiting, "files incomplete"),
                   (sum(self.failures.values()), "failed terms"))  # fmt: skip
        for number, what in counted:
            if number:
                line += f", {number:,} {what}"
        return line + (", replayed" if self.replayed else "")


class MatchListener:
    """Hears every micro-batch: prints a line, calls a function, and keeps the last 100 reports."""

    def __init__(self, call: Callable[[BatchReport], None] | None = None, *, echo: bool = False) -> None:
        self._call = call
        self._echo = echo
        self.reports: deque[BatchReport] = deque(maxlen=_KEPT)

    def on_batch(self, report: BatchReport) -> None:
        """Called by the stream. An error of the function is printed and does not stop the stream."""
        self.reports.append(report)
        if self._echo:
            print(report.line(), flush=True)
        if self._call is not None:
            try:
                self._call(report)
            except Exception as error:
                print(f"batch {report.batch}: the listener failed: {error!r}", file=sys.stderr, flush=True)


Listener: TypeAlias = "MatchListener | Callable[[BatchReport], None]"


def listener_of(given: Listener | None) -> MatchListener | None:
    """A listener from a listener or a function."""
    return given if given is None or isinstance(given, MatchListener) else MatchListener(given)
