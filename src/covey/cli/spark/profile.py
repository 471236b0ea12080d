"""`covey spark profile`: what events and subscriptions are like, saved for later."""

from __future__ import annotations

import warnings

from covey.cli.spark.arguments import SparkProfileOptions
from covey.cli.spark.session import job_progress, session
from covey.cli.spark.sources import read_events, read_subscriptions
from covey.cli.terminal import complain


def run(options: SparkProfileOptions) -> int:
    """Learn the statistics of events and subscriptions, and save them."""
    assert options.output is not None
    from covey.history import Profile

    previous = Profile.open(options.merge) if options.merge is not None else None
    with session(options) as spark, warnings.catch_warnings(record=True) as warned:
        from covey.spark import profile

        warnings.simplefilter("always", UserWarning)
        events = read_events(spark, options)
        given = options.subscriptions
        subscriptions = read_subscriptions(spark, given, options) if given is not None else None
        with job_progress(spark, "tasks of profiling"):
            found = profile(
                events, subscriptions, id=options.id_column, filter=options.filter_column, dialect=options.dialect,
                previous=previous,
            )  # fmt: skip
        found.save(options.output)
        print(found.summary())
    for warning in warned:
        if issubclass(warning.category, UserWarning):
            complain(str(warning.message))
    return 0
