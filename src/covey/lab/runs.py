"""Running many experiments: one after the other, each outcome kept, and a failure of one no end of the others."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from covey.lab.experiments import Chart, Experiment, LabError, Outcome, Panel, Row, Rows
from covey.lab.points import Lab, write_json
from covey.lab.verdicts import as_plain, from_plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK: Final = 0.01
"""The scale of `make lab-quick`."""


@dataclass(frozen=True, slots=True)
class Finished:
    """An experiment that was run: its outcome, or what went wrong; and the seconds that its points took."""

    experiment: Experiment
    outcome: Outcome | None
    seconds: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """How large, from which seed, how much at once, and where finished work is kept and since when it counts."""

    work: Path
    scale: float = 1.0
    seed: int = 1
    slots: int = 2
    since: float = 0.0

    @property
    def outcomes(self) -> Path:
        """Where outcomes of this scale and seed are."""
        return self.work / "outcomes" / f"scale-{self.scale:g}-seed-{self.seed}"

    def trace(self, experiment: Experiment) -> Path:
        """Where the traceback of an experiment that failed is."""
        return self.work / "problems" / f"{experiment.name}.txt"


def run(
    spark: SparkSession,
    experiments: Sequence[Experiment],
    settings: Settings,
    *,
    say: Callable[[Experiment, str], None] = lambda *_: None,
    problem_of: Callable[[Exception], str] = str,
) -> list[Finished]:
    """Run experiments in turn; `say` hears what each is doing, `problem_of` puts what goes wrong into a line."""
    finished = []
    for experiment in experiments:
        lab = Lab(
            spark,
            settings.work,
            name=experiment.name,
            scale=settings.scale,
            seed=settings.seed,
            slots=settings.slots,
            since=settings.since,
            say=lambda text, experiment=experiment: say(experiment, text),  # type: ignore[misc]
        )
        start = time.perf_counter()
        try:
            outcome = experiment.run(lab)
        except Exception as error:
            trace = settings.trace(experiment)
            trace.parent.mkdir(parents=True, exist_ok=True)
            trace.write_text(traceback.format_exc())
            finished.append(Finished(experiment, None, time.perf_counter() - start, problem_of(error)))
            continue
        done = Finished(experiment, outcome, round(lab.seconds or time.perf_counter() - start, 2))
        keep(done, settings)
        finished.append(done)
    return finished


def keep(done: Finished, settings: Settings) -> None:
    """Keep an outcome: whole as JSON, its rows as Parquet."""
    assert done.outcome is not None
    outcome = done.outcome
    path = settings.outcomes / f"{done.experiment.name}.json"
    content = {
        "rows": list(map(dict, outcome.rows)),
        "parameters": dict(outcome.parameters),
        "settings": as_plain(outcome.settings),
        "telling": outcome.telling,
        "sentence": outcome.sentence,
        "panels": [
            {"title": panel.title, "rows": list(map(dict, panel.rows)), "chart": panel.chart and asdict(panel.chart)}
            for panel in outcome.panels
        ],
        "seconds": done.seconds,
    }
    write_json(path, content)
    pq.write_table(_table(outcome.rows), path.with_suffix(".parquet"))


def kept(experiment: Experiment, settings: Settings) -> Finished | None:
    """An outcome of an earlier run at this scale and seed."""
    path = settings.outcomes / f"{experiment.name}.json"
    if not path.exists():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        panels = tuple(Panel(panel["title"], panel["rows"], _chart(panel["chart"])) for panel in content["panels"])
        outcome = Outcome(
            content["rows"],
            content["parameters"],
            from_plain(content["settings"]),
            content["sentence"],
            panels,
            content["telling"],
        )
        return Finished(experiment, outcome, content["seconds"])
    except (ValueError, KeyError, TypeError) as error:
        raise LabError(
            f"{path} is not an outcome of the lab ({error}); delete it and run {experiment.name} again"
        ) from None


def all_kept(experiments: Sequence[Experiment], settings: Settings) -> dict[str, Finished]:
    """All outcomes of earlier runs at this scale and seed, by name."""
    found = ((experiment.name, kept(experiment, settings)) for experiment in experiments)
    return {name: done for name, done in found if done is not None}


def other_seeds(experiments: Sequence[Experiment], settings: Settings) -> dict[int, dict[str, Finished]]:
    """What is kept of this scale under other seeds, by seed."""
    own, before = settings.outcomes.name, f"scale-{settings.scale:g}-seed-"
    seeds = [path.name.removeprefix(before) for path in settings.outcomes.parent.glob(f"{before}*") if path.name != own]
    return {int(seed): all_kept(experiments, replace(settings, seed=int(seed))) for seed in seeds if seed.isdecimal()}


def _chart(found: dict[str, Any] | None) -> Chart | None:
    return None if found is None else Chart(**{**found, "y": tuple(found["y"]), "split": tuple(found["split"])})


def _table(rows: Rows) -> pa.Table:
    """Rows as a table; a column that some rows lack has nulls there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    plain: list[Row] = [{name: row.get(name) for name in names} for row in rows]
    return pa.Table.from_pylist(plain) if plain else pa.table({})
