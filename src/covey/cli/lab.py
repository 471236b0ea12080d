"""`covey lab`: the papers' tables and figures, run on this machine or a cluster, and a page about them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from covey.cli.terminal import aligned, complain, watched

if TYPE_CHECKING:
    from covey.cli.arguments import Options
    from covey.lab.experiments import Experiment
    from covey.lab.runs import Finished

_LONGEST: Final = 64
"""Characters of what an experiment is doing, on a line of its own."""


def show(options: Options) -> int:
    """List the experiments."""
    from covey.lab.papers import experiments

    listed = experiments()
    width = max(len(one.name) for one in listed)
    if options.json:
        print(json.dumps([{"name": one.name, "title": one.title, "claim": one.claim} for one in listed], indent=1))
        return 0
    for one in listed:
        print(f"{one.name:<{width}}  {one.title}")
    return 0


def run(options: Options) -> int:
    """Run experiments and write the report; 1 if one of them failed."""
    from covey.cli.spark_session import cores, session, spark_line
    from covey.lab import papers, runs
    from covey.lab.report import verdict
    from covey.lab.running import MOST_SLOTS

    chosen = papers.experiments(*options.names)
    since = time.time() if options.fresh else 0.0
    with session(options) as spark:
        slots = cores(spark) or MOST_SLOTS  # A cluster queues what it has no room for.
        settings = runs.Settings(Path(options.work), options.scale, options.seed, slots, since)
        with _progress(len(chosen)) as say:
            done = runs.run(spark, chosen, settings, say=say, problem_of=spark_line)
    page = _written(options, done)
    for one in done:
        if one.outcome is None:
            complain(f"{one.experiment.name}: {one.problem} (more in {settings.trace(one.experiment)})")
    verdicts = [[one.experiment.name, verdict(one), f"{one.seconds:.1f} s"] for one in done if one.outcome is not None]
    if verdicts:
        print(aligned(verdicts))
    print(page)
    return int(any(one.outcome is None for one in done))


def report(options: Options) -> int:
    """Write the report of what was run before."""
    print(_written(options, []))
    return 0


def _written(options: Options, done: Sequence[Finished]) -> Path:
    """The page of outcomes that are kept or were found just now."""
    from covey.lab import machine, papers, runs
    from covey.lab.report import write

    everything = papers.experiments()
    kept = runs.all_kept(everything, runs.Settings(Path(options.work), options.scale, options.seed))
    finished = kept | {one.experiment.name: one for one in done}
    facts = machine.describe()
    return write(Path(options.report), everything, finished, scale=options.scale, seed=options.seed, machine=facts)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Experiment, str], None]]:
    """Which experiment runs, and what it does; plain lines where nobody watches."""
    if not watched():
        yield _plain_lines()
        return
    bar = Progress(
        SpinnerColumn(),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
    )
    started: dict[str, None] = {}
    with bar:
        task = bar.add_task("", total=total)

        def say(experiment: Experiment, text: str) -> None:
            started.setdefault(experiment.name)
            line = f"{experiment.name}: {text}"[:_LONGEST]
            bar.update(task, description=line, completed=len(started) - 1)

        yield say


def _plain_lines() -> Callable[[Experiment, str], None]:
    told: set[str] = set()

    def say(experiment: Experiment, text: str) -> None:
        del text
        if experiment.name not in told:
            told.add(experiment.name)
            complain(f"running {experiment.name}")

    return say
