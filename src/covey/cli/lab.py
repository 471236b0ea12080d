"""`covey lab`: the papers' tables and figures, run on this machine or a cluster, and a page about them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

from covey.cli.lab_arguments import LabListOptions, LabReportOptions, LabRunOptions
from covey.cli.terminal import aligned, complain, on_screen, watched

if TYPE_CHECKING:
    from covey.lab.experiments import Experiment
    from covey.lab.runs import Finished

_LONGEST: Final = 64
"""Characters of what an experiment is doing, on a line of its own."""


def show(options: LabListOptions) -> int:
    """List the experiments."""
    from covey.lab.papers import experiments

    listed = experiments()
    width = max(len(experiment.name) for experiment in listed)
    if options.json:
        print(
            json.dumps(
                [
                    {"name": experiment.name, "title": experiment.title, "claim": experiment.claim}
                    for experiment in listed
                ],
                indent=1,
            )
        )
        return 0
    for experiment in listed:
        print(f"{experiment.name:<{width}}  {experiment.title}")
    return 0


def run(options: LabRunOptions) -> int:
    """Run experiments and write the report; 1 if one of them failed."""
    from covey.cli.spark.session import cores, session, spark_line
    from covey.lab import papers, runs
    from covey.lab.points import MOST_SLOTS
    from covey.lab.report import verdict

    chosen = papers.experiments(*options.names)
    since = time.time() if options.fresh else 0.0
    with session(options) as spark:
        slots = cores(spark) or MOST_SLOTS  # A cluster queues what it has no room for.
        settings = runs.Settings(Path(options.work), options.scale, options.seed, slots, since)
        with _progress(len(chosen)) as say:
            done = runs.run(spark, chosen, settings, say=say, problem_of=spark_line)
    page = _written(options, done)
    for result in done:
        if result.outcome is None:
            complain(f"{result.experiment.name}: {result.problem} (more in {settings.trace(result.experiment)})")
    verdicts = [
        [result.experiment.name, verdict(result), f"{result.seconds:.1f} s"]
        for result in done
        if result.outcome is not None
    ]
    if verdicts:
        print(aligned(verdicts))
    print(page)
    return int(any(result.outcome is None for result in done))


def report(options: LabReportOptions) -> int:
    """Write the report of what was run before."""
    print(_written(options, []))
    return 0


def _written(options: LabReportOptions, done: Sequence[Finished]) -> Path:
    """The page of outcomes that are kept or were found just now."""
    from covey.lab import machine, papers, runs
    from covey.lab.report import write

    everything = papers.experiments()
    settings = runs.Settings(Path(options.work), options.scale, options.seed)
    kept, seeds = runs.all_kept(everything, settings), runs.other_seeds(everything, settings)
    finished = kept | {result.experiment.name: result for result in done}
    facts = machine.describe()
    return write(
        Path(options.report), everything, finished, scale=options.scale, seed=options.seed, machine=facts, seeds=seeds
    )


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Experiment, str], None]]:
    """Which experiment runs, and what it does; plain lines where nobody watches."""
    if not watched():
        yield _plain_lines()
        return
    columns = (
        SpinnerColumn(), BarColumn(bar_width=16), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )  # fmt: skip
    started: dict[str, None] = {}
    with on_screen(*columns) as bar:
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
