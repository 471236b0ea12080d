"""Jafarpour et al., figures 12 to 15: the settings of the approximate method; and what unsubscribing leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from covey.lab.experiments import Cell, Chart, Outcome, Panel, Row, Rows, experiment
from covey.lab.negative_space import (
    EXPONENTS,
    LEAST,
    PAPER,
    RUNS,
    TELLING,
    K,
    exponent_name,
    grown,
    last,
    parameters,
    picked,
    plainly,
)
from covey.lab.negative_space_points import PROBES, leave
from covey.lab.points import Lab
from covey.lab.readings import number, only, where
from covey.lab.verdicts import Check, Setting, true
from covey.lab.workloads.rectangles import EXPONENT, SUBSCRIPTIONS

KS: Final = (10, 50, 100)
METRICS: Final = ("benefit/cost", "benefit", "1/cost")
CONSIDERABLE: Final = 0.1
HARDLY: Final = 0.05
"""What counts as a considerable increase, and as hardly any."""
AS_MANY: Final = 0.995
"""Counts that are at least this part of others are no fewer, by chance."""


def _by_setting(lab: Lab, setting: str, values: Sequence[Cell]) -> tuple[dict[float, list[Row]], Panel]:
    """Three dimensions cut the paper's way, for every exponent; and covey's own in three and four."""
    by = {
        exponent: plainly(
            lab,
            [{"dimensions": 3, "method": "approximate", "exponent": exponent, setting: value} for value in values],
            RUNS,
        )
        for exponent in EXPONENTS
    }
    own = grown(lab, [{"dimensions": d, "method": "approximate", setting: value} for d in (3, 4) for value in values])
    columns = ("dimensions", setting, "subscriptions", "beyond_covering", "rectangles")
    ends = [last(own, dimensions=d, **{setting: value}) for d in (3, 4) for value in values]
    return by, Panel("covey's own cutting", picked(ends, *columns))


def _ends(rows: Rows, setting: str, values: Sequence[Cell], column: str) -> list[float]:
    """A column after all subscriptions, for each value of a setting."""
    return [number(last(rows, **{setting: value}), column) for value in values]


def _over(value: float, base: float) -> float:
    return value / max(1e-9, base)


@experiment(
    paper=PAPER,
    place="figure 12",
    title="Redundant subscriptions found beyond covering, by k",
    claim="In 3 dimensions k = 50 finds considerably more than 10 (up to 600 in all), and 100 hardly more than 50.",
    chart=Chart("subscriptions", ("beyond_covering",), ("k",), y_label="found beyond covering"),
)
def figure_12(lab: Lab) -> Outcome:
    """k of 10, 50 and 100."""
    by, panel = _by_setting(lab, "k", KS)
    settings = []
    for exponent, rows in by.items():
        low, middle, high = _ends(rows, "k", KS, "beyond_covering")
        checks = (
            Check("50 finds more than 10, by", "considerably", _over(middle, low) - 1, CONSIDERABLE, None),
            Check("100 more than 50, by", "hardly", _over(high, middle) - 1, None, HARDLY),
        )
        settings.append(Setting(exponent_name(exponent), checks))
    own = [number(only(panel.rows, dimensions=3, k=k), "beyond_covering") for k in KS]
    told = (
        f"covey's cutting leaves so few rectangles that k = 10 finds {own[0]:,.0f} already, 50 {own[1]:,.0f} and 100 "
        f"{own[2]:,.0f}."
    )
    return Outcome(by[EXPONENT], parameters(lab), tuple(settings), told, (panel,), lab.scale >= TELLING)


@experiment(
    paper=PAPER,
    place="figure 13",
    title="Negative rectangles by k",
    claim="In 3 dimensions there are considerably more rectangles with k = 100 than with 50 (up to some 40,000).",
    chart=Chart("subscriptions", ("rectangles",), ("k",)),
)
def figure_13(lab: Lab) -> Outcome:
    """The points of figure 12."""
    by, panel = _by_setting(lab, "k", KS)
    settings = []
    for exponent, rows in by.items():
        _, middle, high = _ends(rows, "k", KS, "rectangles")
        more = Check("100 leaves more than 50, by", "considerably", _over(high, middle) - 1, CONSIDERABLE, None)
        settings.append(Setting(exponent_name(exponent), (more,)))
    own = {(d, k): number(only(panel.rows, dimensions=d, k=k), "rectangles") for d in (3, 4) for k in KS}
    told = (
        f"covey's cutting has {own[3, 50]:,.0f} and {own[3, 100]:,.0f} rectangles in 3 dimensions, where k hardly ever "
        f"bites, and {own[4, 50]:,.0f} and {own[4, 100]:,.0f} in 4."
    )
    return Outcome(by[EXPONENT], parameters(lab), tuple(settings), told, (panel,), lab.scale >= TELLING)


@experiment(
    paper=PAPER,
    place="figure 14",
    title="Redundant subscriptions found beyond covering, by what is split first",
    claim="Benefit for the cost finds most; benefit alone slightly more than cost alone.",
    chart=Chart("subscriptions", ("beyond_covering",), ("metric",), y_label="found beyond covering"),
)
def figure_14(lab: Lab) -> Outcome:
    """The three metrics."""
    by, panel = _by_setting(lab, "metric", METRICS)
    settings = []
    for exponent, rows in by.items():
        best, benefit, cost = _ends(rows, "metric", METRICS, "beyond_covering")
        checks = (
            Check("benefit/cost over benefit finds", "more", _over(best, benefit), AS_MANY, None, "×"),
            Check("benefit over 1/cost finds", "slightly more", _over(benefit, cost), AS_MANY, None, "×"),
        )
        settings.append(Setting(exponent_name(exponent), checks))
    own = [number(only(panel.rows, dimensions=4, metric=metric), "beyond_covering") for metric in METRICS]
    told = (
        "In 3 dimensions all three are close together. In 4, where the threshold bites, covey's cutting finds "
        f"{own[0]:,.0f} by benefit for the cost, {own[1]:,.0f} by benefit and {own[2]:,.0f} by cost."
    )
    return Outcome(by[EXPONENT], parameters(lab, k=K), tuple(settings), told, (panel,), lab.scale >= TELLING)


@experiment(
    paper=PAPER,
    place="figure 15",
    title="Negative rectangles by what is split first",
    claim="Benefit for the cost leaves the fewest rectangles; benefit alone fewer than cost alone.",
    chart=Chart("subscriptions", ("rectangles",), ("metric",)),
)
def figure_15(lab: Lab) -> Outcome:
    """The points of figure 14."""
    by, panel = _by_setting(lab, "metric", METRICS)
    settings = []
    for exponent, rows in by.items():
        best, benefit, cost = _ends(rows, "metric", METRICS, "rectangles")
        checks = (
            Check("benefit/cost over benefit leaves", "fewer", _over(best, benefit), None, 1 / AS_MANY, "×"),
            Check("benefit over 1/cost leaves", "fewer", _over(benefit, cost), None, 1 / AS_MANY, "×"),
        )
        settings.append(Setting(exponent_name(exponent), checks))
    own = [number(only(panel.rows, dimensions=4, metric=metric), "rectangles") for metric in METRICS]
    told = (
        f"In 4 dimensions covey's cutting leaves {own[0]:,.0f}, {own[1]:,.0f} and {own[2]:,.0f} rectangles: cost alone "
        "has fewest there, because it gives up most of what could be found."
    )
    return Outcome(by[EXPONENT], parameters(lab, k=K), tuple(settings), told, (panel,), lab.scale >= TELLING)


@experiment(
    paper=PAPER,
    place="section 4, unsubscription",
    title="Unsubscribing active subscriptions, and the offline rebuild",
    claim="Approximate unsubscription may enlarge the negative space but never loses an event; an offline rebuild "
    "makes it small again.",
    chart=Chart(
        "dimensions", ("rectangles_before", "rectangles_after", "rectangles_rebuilt"), ("method",),
        log_y=True, y_label="rectangles",
    ),
)  # fmt: skip
def unsubscription(lab: Lab) -> Outcome:
    """Fifty leave, in 2 to 4 dimensions."""
    leaving = lab.size(50, 10)
    points: list[Row] = [
        {"dimensions": d, "method": method, "of": lab.size(SUBSCRIPTIONS, LEAST), "leaving": leaving}
        for d in (2, 3, 4)
        for method in ("exact", "approximate")
    ]
    rows = lab.points(points, leave, alone=True)
    lost = sum(number(row, "events_lost") for row in rows)
    approximate = where(rows, method="approximate")
    smaller = all(number(row, "rectangles_rebuilt") <= number(row, "rectangles_after") for row in approximate)
    growth = max(number(row, "rectangles_after") / number(row, "rectangles_before") - 1 for row in approximate)
    slowest = max(number(row, "milliseconds_each") for row in rows)
    checks = (
        Check("events lost", "none", lost, None, 0.0, ""),
        true("a rebuild never leaves more rectangles", smaller),
    )
    return Outcome(
        rows,
        parameters(lab, leaving=leaving, k=K) | {"events tried a passive subscription": PROBES},
        (Setting("exponent 0.5, in 2 to 4 dimensions", checks),),
        f"After {leaving} left, the approximate negative space has at most {growth:.1%} more rectangles, and one that "
        f"leaves takes {slowest:.1f} ms at most.",
    )
