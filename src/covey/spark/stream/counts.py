"""What is counted of a micro-batch while it is computed: events, matches, and terms that failed, by rule."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

from covey.spark.rules import Columns, TermFailures
from covey.spark.worker_files import Placed

_WAIT: Final = 2.0
"""Seconds to wait for the counts of a writer's DataFrame: for ever, if the writer never ran it."""


@dataclass(frozen=True, slots=True)
class Counts:
    """A micro-batch in numbers."""

    events: int
    matches: int
    failures: dict[str, int] = field(default_factory=dict)
    """By rule, the events on which a term of it failed."""


class Counter:
    """Counts one micro-batch on its way; the counts are there once its result has been computed."""

    def __init__(self) -> None:
        self._observation = Observation()
        self._failures = TermFailures()

    def failing(self, events: DataFrame, placed: Placed) -> DataFrame:
        """The events, whose terms that fail are counted."""
        return self._failures.observe(events, placed.columns or Columns())

    @property
    def failures(self) -> dict[str, int]:
        """The terms that failed, by rule."""
        return self._failures.counts

    def counting(self, result: DataFrame, column: str, *, lists: bool = True) -> DataFrame:
        """The result, counted; `column` has the ids, or their numbers."""
        matched = sf.coalesce(sf.sum(sf.size(column) if lists else sf.col(column)), sf.lit(0))
        return result.observe(self._observation, sf.count(sf.lit(1)).alias("events"), matched.alias("matches"))

    def counts(self) -> Counts:
        """What was counted."""
        found = self._observation.get
        return Counts(int(found["events"]), int(found["matches"]), self._failures.counts)

    def counts_soon(self) -> Counts | None:
        """The counts, or None where the DataFrame was never run: classic Spark would wait for it for ever."""
        found: list[Counts] = []

        def wait() -> None:
            if self._observation.get:
                found.append(self.counts())

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(_WAIT)
        return found[0] if found else None
