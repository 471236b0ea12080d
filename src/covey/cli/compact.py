"""`covey compact`: fewer subscriptions that stand for all, in this process."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from covey.cli.arguments import CompactOptions, UsageError
from covey.cli.events import EventFile
from covey.cli.subscriptions import SubscriptionFile, as_one_kind
from covey.cli.terminal import BadRowsError, aligned, progress, watched
from covey.errors import CoveyError, DuplicateIdError, skips
from covey.events.files import source
from covey.filters import Filter, IsNull, any_of
from covey.history import Chances, EventProfile, Profile
from covey.language import parse
from covey.limits import DEFAULT_LIMITS
from covey.matching import BadSubscription, Index
from covey.matching.index import as_filter
from covey.relations.compaction import Compacted, Entry, Step, compact

_EVENTS = 65_536


def run(options: CompactOptions) -> int:
    """Print the number of subscriptions after each step, and write what is left."""
    if (options.imt or options.prune) and options.profile is None and options.events is None:
        raise UsageError("--imt and --prune need --profile or --events: there it shows how much more a filter matches")
    subscriptions = _subscriptions(options)
    chances = _chances(options, subscriptions)
    advertisements = _advertisements(options)
    with progress("filters", shown=watched()) as step:
        found = compact(
            subscriptions, semantics=options.semantics or "sql", chances=chances, advertisements=advertisements,
            merging=options.merging, imt=options.imt, measure=options.measure, prune=options.prune,
            dimension=options.dimension,
            progress=lambda _step, done, total: step(done, done, total), clock=time.perf_counter,
        )  # fmt: skip
    print(table_of(found.steps))
    if options.output is not None:
        _write(found, options.output)
        print(f"written to {options.output}")
    return 0


def table_of(steps: list[Step]) -> str:
    """The number of subscriptions before and after each step, and the share that is left of all."""
    rows = [("step", "before", "after", "left", "seconds")]
    for step in steps:
        left = f"{step.after / steps[0].before:.1%}" if steps[0].before else ""
        rows.append((step.name, f"{step.before:,}", f"{step.after:,}", left, f"{step.seconds:.1f}"))
    return aligned(rows)


def _subscriptions(options: CompactOptions) -> list[tuple[str, Filter]]:
    rows = SubscriptionFile(source(options.subscriptions, options.subscriptions_format, "--format"), options)
    found: dict[str, Filter | None] = {}
    errors: list[BadSubscription] = []
    with progress("subscriptions", shown=watched()) as step:
        for number, (id, given) in enumerate(as_one_kind(list(rows.pairs(step)))):
            try:
                if id in found:
                    raise DuplicateIdError(f"subscription {id!r} stands in an earlier row too, and the first counts")
                found[id] = None
                found[id] = as_filter(given, DEFAULT_LIMITS)
            except CoveyError as error:
                errors.append(BadSubscription(number, id, error))
    rows.settle(errors)
    rows.report.end()
    if rows.report.count and not skips(options.on_error):
        raise BadRowsError(f"{rows.report} can't be used, so nothing was done; --on-error skip goes on without")
    return [(id, condition) for id, condition in found.items() if condition is not None]


def _chances(options: CompactOptions, subscriptions: list[tuple[str, Filter]]) -> Chances | None:
    """From a saved profile, or from the events of a file, all of them sampled alike."""
    if options.profile is not None:
        return Profile.open(options.profile)
    if options.events is None:
        return None
    names = sorted({name for _, condition in subscriptions for name in condition.attributes()})
    wanted = Index()
    wanted.add("all", any_of(IsNull(name) for name in names))
    given = source(options.events, options.events_format, "--events-format", xml=True)
    seen: EventProfile | None = None
    with progress("events", shown=watched()) as step:
        file = EventFile(given, wanted, batch_size=_EVENTS, skip=skips(options.on_error), step=step)
        for number, batch in enumerate(file.batches()):
            part = EventProfile.of(batch.events, names, seed=number)
            seen = part if seen is None else seen.merged(part)
    if seen is None:
        raise CoveyError(f"{options.events} has no events to learn from")
    return Profile(seen)


def _advertisements(options: CompactOptions) -> list[Filter]:
    if options.advertisements is None:
        return []
    found = []
    for number, line in enumerate(Path(options.advertisements).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                given = json.loads(line)[options.filter_column] if line.lstrip().startswith("{") else line
                found.append(parse(given))
            except (CoveyError, ValueError, KeyError) as error:
                raise CoveyError(f"{options.advertisements} line {number}: {error}") from None
    return found


def _write(found: Compacted, path: str) -> None:
    """Beside its place and renamed, so that a file under that name is whole."""
    fresh = f"{path}.{os.getpid()}.new"
    try:
        if path.endswith(".parquet"):
            parquet.write_table(_arrow(found.entries), fresh)
        else:
            with open(fresh, "w", encoding="utf-8") as out:
                for entry in found.entries:
                    row: dict[str, object] = {"id": entry.id, "filter": str(entry.filter)}
                    row |= {"stands_for": list(entry.stands_for), "how": list(entry.how)}
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
        os.replace(fresh, path)
    finally:
        Path(fresh).unlink(missing_ok=True)


def _arrow(entries: list[Entry]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([entry.id for entry in entries], pa.string()),
            "filter": pa.array([str(entry.filter) for entry in entries], pa.string()),
            "stands_for": pa.array([list(entry.stands_for) for entry in entries], pa.list_(pa.string())),
            "how": pa.array([list(entry.how) for entry in entries], pa.list_(pa.string())),
        }
    )
