"""What an experiment is: the paper's table or figure, what the paper reports there, and a function that runs ours.

An experiment's function takes a `Lab` and gives an `Outcome`. Rows are flat dictionaries of plain values, one for each
measured point, in the order in which the page shows them. The outcome's settings are what its verdict follows from
(`verdicts.py`), and its sentence says what was learned. Both are computed from the rows and the paper's numbers;
nothing about what was found is typed by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from covey.errors import CoveyError
from covey.lab import verdicts
from covey.lab.verdicts import Setting, Word

if TYPE_CHECKING:
    from covey.lab.points import Lab

Cell = str | int | float | bool | None
Row = dict[str, Cell]
Rows = Sequence[Mapping[str, Cell]]


class LabError(CoveyError):
    """An experiment that can't be run as asked."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose tables and figures are run again; `key` begins the names of its experiments."""

    key: str
    authors: str
    title: str
    year: int


@dataclass(frozen=True, slots=True)
class Chart:
    """How rows are drawn: a line (or bars) for each of `y` and each combination of values of `split`.

    `paper` says where the paper's numbers go, if they have the same columns: into the same axes ("same", dashed), into
    axes of their own beside ours ("beside", where the machines differ too much), or nowhere ("none").
    """

    x: str
    y: tuple[str, ...]
    split: tuple[str, ...] = ()
    kind: Literal["line", "bar"] = "line"
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    paper: Literal["same", "beside", "none"] = "same"


@dataclass(frozen=True, slots=True)
class Panel:
    """A further table of an outcome, such as the range over a parameter that the paper doesn't state."""

    title: str
    rows: Rows
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment found.

    `settings` are what the verdict follows from, the first of them the one that the rows are about. `telling` is false
    at a scale too small for the finding. The sentence says what was learned, with numbers, and never repeats the
    verdict: the page puts that in front.
    """

    rows: Rows
    parameters: Mapping[str, Cell]
    settings: tuple[Setting, ...]
    sentence: str
    panels: tuple[Panel, ...] = ()
    telling: bool = True

    @property
    def verdict(self) -> Word:
        """The verdict in a few words."""
        return verdicts.word(self.settings, self.telling)

    @property
    def because(self) -> str:
        """What a verdict rests on that isn't plainly "holds"."""
        return verdicts.because(self.settings, self.telling)


@dataclass(frozen=True, slots=True)
class Experiment:
    """A registered table or figure."""

    name: str
    paper: Paper
    place: str
    title: str
    claim: str
    run: Callable[[Lab], Outcome]
    paper_numbers: Rows = ()
    chart: Chart | None = None
    module: str = field(default="", compare=False)


_REGISTERED: Final[dict[str, Experiment]] = {}


def experiment(
    *, paper: Paper, place: str, title: str, claim: str, paper_numbers: Rows = (), chart: Chart | None = None
) -> Callable[[Callable[[Lab], Outcome]], Callable[[Lab], Outcome]]:
    """Register a function as the experiment of one table or figure: `place` is "figure 12", `claim` what it reports."""

    def register(run: Callable[[Lab], Outcome]) -> Callable[[Lab], Outcome]:
        name = f"{paper.key}-{re.sub(r'[^a-z0-9]+', '-', place.lower()).strip('-')}"
        if name in _REGISTERED and _REGISTERED[name].module != run.__module__:
            raise LabError(f"two experiments are called {name!r}: in {_REGISTERED[name].module} and {run.__module__}")
        _REGISTERED[name] = Experiment(name, paper, place, title, claim, run, paper_numbers, chart, run.__module__)
        return run

    return register


def registered() -> dict[str, Experiment]:
    """All experiments that were registered so far, by name, in the order of registration."""
    return dict(_REGISTERED)


def chosen(everything: Sequence[Experiment], names: Sequence[str]) -> list[Experiment]:
    """The experiments with these names, or those of the papers whose keys are given; all where there is no name."""
    known = {experiment.name for experiment in everything} | {experiment.paper.key for experiment in everything}
    for name in names:
        if name not in known:
            raise LabError(f"no experiment {name!r}; `covey lab list` shows them all")
    return [
        experiment
        for experiment in everything
        if not names or experiment.name in names or experiment.paper.key in names
    ]
