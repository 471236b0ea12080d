"""`covey match`: files of events against a file of subscriptions."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from covey.cli.arguments import MatchOptions, UsageError
from covey.cli.events import EventBatch, EventFile
from covey.cli.findings import MOST_CHECKED, say_findings
from covey.cli.results import Results, output_format, results
from covey.cli.rows import RowWriter, counted, empty_schema, row_format, rows_of
from covey.cli.subscriptions import hold, is_held, lacks_columns, load
from covey.cli.terminal import Report, Step, complain, progress, watched
from covey.errors import CoveyError, skips
from covey.events.files import Source, sources, table_columns
from covey.matching import Index, Matches
from covey.matching.against import Seen, findings
from covey.matching.matches import Tally

ENOUGH: Final = 10
"""Events from which on it is said that none has an attribute: fewer say little of what events may have."""


@dataclass
class Totals:
    """How far matching has come."""

    events: int = 0
    matched_events: int = 0
    matches: int = 0
    tally: Tally = field(default_factory=Tally)

    def __str__(self) -> str:
        return f"{self.matched_events:,} of {self.events:,} events matched, {self.matches:,} matches"

    def to_dict(self) -> dict[str, int]:
        """For JSON."""
        return {"events": self.events, "matched_events": self.matched_events, "matches": self.matches}


def run(options: MatchOptions) -> int:
    """Match the files."""
    if options.subscriptions == "-" and "-" in options.events:
        raise UsageError("only one of SUBSCRIPTIONS and EVENTS can be -, standard input")
    given = sources(options.events, options.format, xml=True)
    by_rows = bool(options.columns) or options.form != "lists" or len(given) > 1
    if options.output is not None:
        (row_format if by_rows else output_format)(options.output)
    check_free(options.output, overwrite=options.overwrite)
    on_screen = options.output is None and not options.count and sys.stdout.isatty()
    loaded = load(options, shown=watched())
    if is_held(options):
        hold(loaded, table_columns(given), lacking=lacks_columns(options))
    loaded.settle(options.on_error)
    index, unused = loaded.index, loaded.report
    index.nan_is_missing = options.nan_is_missing
    writer = None
    if by_rows:
        shape = empty_schema(options.columns, file=len(given) > 1, form=options.form, whole=index.integer_ids)
        writer = RowWriter(options.output, shape)
    totals, first = Totals(), True
    seen = Seen(index.tested, index.schema, nan_is_missing=options.nan_is_missing)
    unread = Report("event", ", ".join(options.events))
    with progress("events", shown=watched() and not on_screen) as step:
        output = results(options.output, count=options.count) if writer is None else None
        try:
            for source, batch, found in _matched(given, index, options, step, unread):
                if output is not None:
                    _write(output, batch, found, everything=options.all)
                elif writer is not None and options.form != "counts" and not options.count:
                    file = source.path if len(given) > 1 else None
                    pairs = options.form == "pairs"
                    writer.write(
                        rows_of(batch, found, file=file, columns=options.columns, pairs=pairs, everything=options.all)
                    )
                _add(totals, batch, found)
                seen.look(batch.events)
                if first:
                    seen.narrow(map(index.filter, _quiet(index, totals)))
                    first = False
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted after {totals.events:,} events ({totals}); they are written"
            ) from None
        finally:
            if writer is not None and options.form == "counts" and not options.count:
                writer.write(counted(index, totals.tally.fired()))
            for one in (output, writer):
                if one is not None:
                    one.close()
    _say_what_cannot_fire(index, totals, seen)
    _conclude(options, totals, unused, unread, on_screen=on_screen)
    return 0


def check_free(output: str | None, *, overwrite: bool) -> None:
    """Whether a file may be written, before any work is done."""
    if output is not None and os.path.exists(output) and not overwrite:
        raise CoveyError(f"{output} is there already; --overwrite replaces it")


def _matched(
    given: list[Source], index: Index, options: MatchOptions, step: Step, unread: Report
) -> Iterator[tuple[Source, EventBatch, Matches]]:
    for source in given:
        events = EventFile(
            source,
            index,
            batch_size=options.batch_size,
            skip=skips(options.on_error),
            step=step,
            schema=index.schema,
            columns=options.columns,
        )
        for batch, found in events.matches(options.threads):
            yield source, batch, found
        events.report.end()
        unread.count += events.report.count


def _write(output: Results, batch: EventBatch, found: Matches, *, everything: bool) -> None:
    lists, numbers = found.lists(), batch.numbers
    if not everything:
        some = found.counts() > 0
        if not some.all():
            lists, numbers = lists.filter(pa.array(some)), numbers[some]
    output.write(numbers, lists)


def _add(totals: Totals, batch: EventBatch, found: Matches) -> None:
    totals.events += len(batch)
    totals.matched_events += int(np.count_nonzero(found.counts()))
    totals.matches += len(found)
    totals.tally.add(found)


def _conclude(options: MatchOptions, totals: Totals, unused: Report, unread: Report, *, on_screen: bool) -> None:
    if options.count:
        print(totals if sys.stdout.isatty() else json.dumps(totals.to_dict()))
    elif on_screen or options.output is not None:
        print(totals, file=sys.stderr)
    if unused.count or unread.count:
        complain(f"left out {' and '.join(str(report) for report in (unused, unread) if report.count)}")


def _quiet(index: Index, totals: Totals) -> list[Any]:
    """The subscriptions that haven't fired; none where they are too many to be looked at."""
    fired = totals.tally.fired()
    if not 0 < len(index) - len(fired) <= MOST_CHECKED:
        return []
    return [id for id in index.ids() if id not in fired]


def _say_what_cannot_fire(index: Index, totals: Totals, seen: Seen) -> None:
    """A line for each of some subscriptions that can't have fired, whatever the events' values are."""
    if not totals.events:
        return
    found = findings([(id, index.filter(id)) for id in _quiet(index, totals)], seen, index.semantics)
    if totals.events < ENOUGH:
        found = [one for one in found if one.why != "attribute" or one.meant]
    say_findings(found)
