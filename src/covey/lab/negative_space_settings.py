"""Jafarpour et al., figures 12 to 15: the settings of the approximate method; and what unsubscribing leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from covey.lab.experiments import Cell, Chart, Outcome, Panel, Row, experiment
from covey.lab.negative_space import (
    CONSIDERABLE,
    LEAST,
    PAPER,
    TELLING,
    K,
    grown,
    large_share,
    last,
    parameters,
    picked,
)
from covey.lab.negative_space_points import PROBES, leave
from covey.lab.points import Lab
from covey.lab.readings import number, only, ratio, where
from covey.lab.workloads.rectangles import SUBSCRIPTIONS

KS: Final = (10, 50, 100)
METRICS: Final = ("benefit/cost", "benefit", "1/cost")


def _by_setting(lab: Lab, setting: str, values: Sequence[Cell]) -> tuple[list[Row], tuple[Panel, ...]]:
    """Three dimensions as in the paper; then four, and other exponents."""
    rows = grown(lab, [{"dimensions": 3, "method": "approximate", setting: value} for value in values])
    four = grown(lab, [{"dimensions": 4, "method": "approximate", setting: value} for value in values])
    even = grown(
        lab,
        [{"dimensions": 3, "method": "approximate", "exponent": e, setting: v} for e in (0.0, 1.0) for v in values],
        runs=1,
    )
    columns = ("dimensions", setting, "subscriptions", "beyond_covering", "rectangles")
    ends = [last(even, exponent=e, **{setting: v}) for e in (0.0, 1.0) for v in values]
    panels = (
        Panel("In 4 dimensions", picked([last(four, **{setting: value}) for value in values], *columns)),
        Panel("In 3 dimensions, by the Zipf exponent", picked(ends, "exponent", *columns)),
    )
    return picked(rows, *columns), panels


@experiment(
    paper=PAPER,
    place="figure 12",
    title="Redundant subscriptions found beyond covering, by k",
    claim="In 3 dimensions k = 50 finds considerably more than 10 (up to 600 in all), and 100 hardly more than 50.",
    chart=Chart("subscriptions", ("beyond_covering",), ("k",), y_label="found beyond covering"),
)
def figure_12(lab: Lab) -> Outcome:
    """k of 10, 50 and 100."""
    rows, panels = _by_setting(lab, "k", KS)
    low, middle, high = (number(last(rows, k=k), "beyond_covering") for k in KS)
    return Outcome(
        rows,
        parameters(lab),
        None if lab.scale < TELLING else middle - low > 4 * max(0.0, high - middle),
        f"From k = 10 to 50 it finds {middle - low:,.0f} more ({low:,.0f} to {middle:,.0f}), from 50 to 100 "
        f"{high - middle:,.0f} more.",
        panels,
    )


@experiment(
    paper=PAPER,
    place="figure 13",
    title="Negative rectangles by k",
    claim="In 3 dimensions there are considerably more rectangles with k = 100 than with 50 (up to some 40,000).",
    chart=Chart("subscriptions", ("rectangles",), ("k",)),
)
def figure_13(lab: Lab) -> Outcome:
    """The points of figure 12."""
    rows, panels = _by_setting(lab, "k", KS)
    three = ratio(last(rows, k=100), last(rows, k=50), "rectangles") - 1
    exact = grown(lab, [{"dimensions": d, "method": "exact"} for d in (3, 4)])
    four = ratio(only(panels[0].rows, k=100), only(panels[0].rows, k=50), "rectangles") - 1
    return Outcome(
        rows,
        parameters(lab),
        None if lab.scale < TELLING else three > CONSIDERABLE,
        f"From k = 50 to 100 there are {three:.1%} more rectangles in 3 dimensions and {four:.1%} more in 4; more than "
        f"{CONSIDERABLE:.0%} is taken for considerable. {large_share(exact, 3, 4)}",
        panels,
    )


@experiment(
    paper=PAPER,
    place="figure 14",
    title="Redundant subscriptions found beyond covering, by what is split first",
    claim="Benefit for the cost finds most; benefit alone slightly more than cost alone.",
    chart=Chart("subscriptions", ("beyond_covering",), ("metric",), y_label="found beyond covering"),
)
def figure_14(lab: Lab) -> Outcome:
    """The three metrics."""
    rows, panels = _by_setting(lab, "metric", METRICS)
    best, benefit, cost = (number(last(rows, metric=metric), "beyond_covering") for metric in METRICS)
    four = [number(only(panels[0].rows, metric=metric), "beyond_covering") for metric in METRICS]
    return Outcome(
        rows,
        parameters(lab, k=K),
        None if lab.scale < TELLING or best == benefit else best > benefit >= cost,
        f"Benefit for the cost finds {best:,.0f}, benefit {benefit:,.0f}, cost {cost:,.0f}; in 4 dimensions "
        f"{four[0]:,.0f}, {four[1]:,.0f} and {four[2]:,.0f}.",
        panels,
    )


@experiment(
    paper=PAPER,
    place="figure 15",
    title="Negative rectangles by what is split first",
    claim="Benefit for the cost leaves the fewest rectangles; benefit alone fewer than cost alone.",
    chart=Chart("subscriptions", ("rectangles",), ("metric",)),
)
def figure_15(lab: Lab) -> Outcome:
    """The points of figure 14."""
    rows, panels = _by_setting(lab, "metric", METRICS)
    best, benefit, cost = (number(last(rows, metric=metric), "rectangles") for metric in METRICS)
    four = [number(only(panels[0].rows, metric=metric), "rectangles") for metric in METRICS]
    return Outcome(
        rows,
        parameters(lab, k=K),
        None if lab.scale < TELLING or best == benefit else best < benefit <= cost,
        f"Benefit for the cost leaves {best:,.0f} rectangles, benefit {benefit:,.0f}, cost {cost:,.0f}; in 4 "
        f"dimensions {four[0]:,.0f}, {four[1]:,.0f} and {four[2]:,.0f}.",
        panels,
    )


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
    return Outcome(
        rows,
        parameters(lab, leaving=leaving, k=K) | {"events tried a passive subscription": PROBES},
        lost == 0 and smaller,
        f"After {leaving} left, the approximate negative space has at most {growth:.1%} more rectangles, "
        f"{'none' if smaller else 'some'} of the rebuilt ones is larger than before the rebuild, and {lost:,.0f} "
        f"events are lost. One takes {slowest:.1f} ms at most.",
    )
