"""`covey match`: a file of events against a file of subscriptions."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from covey.cli.arguments import MatchOptions, UsageError
from covey.cli.events import EventBatch, EventFile
from covey.cli.results import Results, output_format, results
from covey.cli.sources import source
from covey.cli.subscriptions import index_of
from covey.cli.terminal import Report, complain, progress, watched
from covey.matching import Matches


@dataclass
class Totals:
    """How far matching has come."""

    events: int = 0
    matched_events: int = 0
    matches: int = 0

    def __str__(self) -> str:
        return f"{self.matched_events:,} of {self.events:,} events matched, {self.matches:,} matches"


def run(options: MatchOptions) -> int:
    """Match the files."""
    if options.subscriptions == "-" and options.events == "-":
        raise UsageError("only one of SUBSCRIPTIONS and EVENTS can be -, standard input")
    given = source(options.events, options.format)
    if options.output is not None:
        output_format(options.output)
    on_screen = options.output is None and not options.count and sys.stdout.isatty()
    index, unused = index_of(options, shown=watched())
    totals = Totals()
    with progress("events", shown=watched() and not on_screen) as step:
        events = EventFile(
            given,
            index,
            batch_size=options.batch_size,
            skip=options.on_error == "skip",
            step=step,
            schema=index.schema,
        )
        output = results(options.output, count=options.count)
        try:
            for batch, found in events.matches(options.threads):
                _write(output, batch, found, everything=options.all)
                _add(totals, batch, found)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted after {totals.events:,} events ({totals}); they are written"
            ) from None
        finally:
            output.close()
    _conclude(options, totals, unused, events.report, on_screen=on_screen)
    return 0


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


def _conclude(options: MatchOptions, totals: Totals, unused: Report, unread: Report, *, on_screen: bool) -> None:
    if options.count:
        print(totals if sys.stdout.isatty() else json.dumps(asdict(totals)))
    elif on_screen or options.output is not None:
        print(totals, file=sys.stderr)
    if unused.count or unread.count:
        complain(f"left out {' and '.join(str(report) for report in (unused, unread) if report.count)}")
