"""`covey spark compact`: fewer subscriptions that stand for all."""

from __future__ import annotations

from contextlib import ExitStack

from covey.cli.arguments import UsageError
from covey.cli.spark.arguments import SparkCompactOptions
from covey.cli.spark.match import check_free, write
from covey.cli.spark.session import is_local, job_progress, session
from covey.cli.spark.sources import read_advertisements, read_subscriptions
from covey.cli.terminal import aligned


def run(options: SparkCompactOptions) -> int:
    """Write fewer subscriptions that stand for all."""
    assert options.output is not None
    from covey.history import Profile

    if (options.imt or options.prune) and options.profile is None:
        raise UsageError("--imt and --prune need --profile FILE: how much more a filter matches depends on the events")
    with ExitStack() as afterwards, session(options) as spark:
        from covey.spark import compact

        if is_local(spark):
            check_free(options.output, overwrite=options.overwrite)
        known = Profile.open(options.profile) if options.profile is not None else None
        advertisements = read_advertisements(spark, options) if options.advertisements is not None else None
        subscriptions = read_subscriptions(spark, options.subscriptions, options)
        with job_progress(spark, "tasks of compacting"):
            found = compact(
                subscriptions, id=options.id_column, filter=options.filter_column,
                semantics=options.semantics or "sql", dialect=options.dialect, profile=known,
                advertisements=advertisements, merging=options.merging, imt=options.imt,
                measure=options.measure, prune=options.prune,
            )  # fmt: skip
            write(spark, found.table, options.output, afterwards, overwrite=options.overwrite)
        print(_steps([(step.name, step.before, step.after) for step in found.steps]))
        print(f"written to {options.output}")
    return 0


def _steps(steps: list[tuple[str, int, int]]) -> str:
    """The number of subscriptions before and after each step, and the share that is left."""
    table = [("step", "before", "after", "left")] + [
        (name, f"{before:,}", f"{after:,}", f"{after / before:.1%}" if before else "") for name, before, after in steps
    ]
    return aligned(table)
