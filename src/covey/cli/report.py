"""`covey report`: which rules never fire, which are the broadest, equal, covered, contradictory, always true."""

from __future__ import annotations

import json

from covey.cli.arguments import BATCH_SIZE, ReportOptions
from covey.cli.events import EventFile
from covey.cli.subscriptions import is_held, load
from covey.cli.terminal import complain, progress, watched
from covey.errors import skips
from covey.events.files import sources, table_columns
from covey.matching.table_columns import TableColumns, converted
from covey.relations.rule_report import Reporter


def run(options: ReportOptions) -> int:
    """Print the report, as a table or JSON, or write it as a page."""
    loaded = load(options, shown=watched())
    given_events = sources(options.events, options.format, xml=True)
    if given_events and is_held(options) and loaded.index.schema is None:
        tables = table_columns(given_events)
        if tables is not None:
            loaded.index, unread = converted(loaded.index, TableColumns(tables))
            loaded.refuse(unread)
    loaded.settle(options.on_error)
    index, unused = loaded.index, loaded.report
    reporter = Reporter(index)
    with progress("events", shown=watched()) as step:
        for given in given_events:
            events = EventFile(
                given, index, batch_size=BATCH_SIZE, skip=skips(options.on_error), step=step, schema=index.schema
            )
            for batch in events.batches():
                reporter.count(batch.events)
            events.report.end()
    with progress("rules", shown=watched()) as step:
        found = reporter.report(lambda done, total: step(done, done, total))
    if options.html is not None:
        with open(options.html, "w", encoding="utf-8") as file:
            file.write(found.to_html())
    if options.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    elif options.html is None:
        print(found)
    if unused.count:
        complain(f"left out {unused}")
    return 0
