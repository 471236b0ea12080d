"""Verdicts: a claim in numbers, what was found, and the range over what the paper doesn't state.

A `Check` is one number of a claim. It says in the paper's words what the paper has, what was found, and from where to
where a number counts as the paper's. The bounds stand in the code of the experiment, before anything is measured.
Numbers are compared as whole ten-thousandths, so that 0.9 - 0.75 is 0.15 here, and no rounding crosses a bound.

A `Setting` is one way to fill in what the paper leaves open (a generator's parameter, a size), with all checks of the
claim. The first setting of an outcome is the one that its rows and plots are about. From settings follows one of

- *holds*: every check holds in every setting;
- *holds in this range*: in some settings every check holds, and the verdict names them;
- *does not hold*: in none, and the verdict says which checks of the first setting fail;
- *can't tell*: the run was too small for the finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

PARTS: Final = 10_000
"""Numbers are compared in these parts of one."""
MOST_NAMED: Final = 4
"""Settings that a verdict names one by one."""

Unit = Literal["%", "×", ""]
Word = Literal["holds", "holds in this range", "does not hold", "can't tell"]


@dataclass(frozen=True, slots=True)
class Check:
    """One number of a claim: None as a bound is none, None as `ours` was not to be had, which fails."""

    what: str
    paper: str
    ours: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "%"

    @property
    def holds(self) -> bool:
        """Whether what was found counts as the paper's."""
        if self.ours is None:
            return False
        ours = parts(self.ours)
        return (self.low is None or ours >= parts(self.low)) and (self.high is None or ours <= parts(self.high))

    def found(self) -> str:
        """What was found, with its name."""
        return f"{self.what} {self.shown(self.ours)}"

    def bounds(self) -> str:
        """From where to where a number counts as the paper's."""
        if self.low is not None and self.high is not None:
            return f"{self.shown(self.low)} to {self.shown(self.high)}"
        if self.low is not None:
            return f"{self.shown(self.low)} or more"
        return f"{self.shown(self.high)} or less" if self.high is not None else "any"

    def shown(self, value: float | None) -> str:
        """A number in the check's unit."""
        if value is None:
            return "nowhere"
        if self.unit == "%":
            return f"{value:.1%}".replace(".0%", "%")
        digits = 2 if abs(value) < 100 and value != round(value) else 0
        return f"{value:,.{digits}f}{'' if self.unit == '' else ' ' + self.unit}"


@dataclass(frozen=True, slots=True)
class Setting:
    """What fills in the open parameters, in words, and the claim's numbers there."""

    name: str
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether all numbers do."""
        return all(check.holds for check in self.checks)


def parts(value: float) -> int:
    """A number as whole parts of one."""
    return round(value * PARTS)


def near(what: str, paper: float, ours: float | None, within: float, unit: Unit = "%") -> Check:
    """A number of the paper that ours may differ from by so much, the bounds included."""
    shown = Check(what, "", paper, unit=unit).shown(paper)
    return Check(what, shown, ours, paper - within, paper + within, unit)


def true(what: str, holds: bool) -> Check:
    """A part of a claim that has no number: an order, or that something grows."""
    return Check(what, "yes", 1.0 if holds else 0.0, 1.0, None, "")


def word(settings: Sequence[Setting], telling: bool) -> Word:
    """The verdict in a few words."""
    if not telling or not settings:
        return "can't tell"
    held = sum(setting.holds for setting in settings)
    if held == len(settings):
        return "holds"
    return "holds in this range" if held else "does not hold"


def ours(settings: Sequence[Setting]) -> str:
    """What was found in the first setting, as one line."""
    return "; ".join(_plainly(check) for check in settings[0].checks) if settings else ""


def _plainly(check: Check) -> str:
    if check.unit == "" and check.paper == "yes":
        return check.what if check.holds else f"not: {check.what}"
    return check.found()


def ranges(settings: Sequence[Setting]) -> str:
    """Each number's least and greatest over all settings, as one line; empty where there is one setting."""
    if len(settings) < 2:
        return ""
    told = []
    for check in settings[0].checks:
        found = [one for setting in settings for one in setting.checks if one.what == check.what]
        numbers = [one.ours for one in found if one.ours is not None]
        if check.paper == "yes":
            told.append(f"{check.what} in {sum(one.holds for one in found)} of {len(found)}")
        elif numbers:
            told.append(f"{check.what} {check.shown(min(numbers))} to {check.shown(max(numbers))}")
    return "; ".join(told)


def because(settings: Sequence[Setting], telling: bool) -> str:
    """What a verdict rests on where it isn't plainly "holds": where it does hold, or what fails."""
    which = word(settings, telling)
    if which == "holds in this range":
        held, missed = ([one.name for one in settings if one.holds is holds] for holds in (True, False))
        return f"with {_listed(held)}; not with {_listed(missed)}"
    if which == "does not hold":
        return "; ".join(
            _plainly(check) if check.paper == "yes" else f"{check.found()}, where {check.bounds()} would count"
            for check in settings[0].checks
            if not check.holds
        )
    return "too small a run for this finding" if which == "can't tell" else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def as_plain(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """Settings as values for JSON."""
    return [
        {"name": setting.name, "checks": [asdict(check) | {"holds": check.holds} for check in setting.checks]}
        for setting in settings
    ]


def from_plain(found: Sequence[Mapping[str, Any]]) -> tuple[Setting, ...]:
    """The settings that `as_plain` wrote."""
    return tuple(
        Setting(
            one["name"],
            tuple(
                Check(**{name: value for name, value in check.items() if name != "holds"}) for check in one["checks"]
            ),
        )
        for one in found
    )
