"""Jafarpour et al., section 5: figures 10 and 11, tables 1 and 2.

The paper's subscriptions start where a Zipf law says whose exponent it doesn't state; `workloads.rectangles` takes 0.5,
and 0 and 1 are the range of every verdict. Its curves are given by what the text says of them, numbers by its text
and its tables. Rectangles are counted as the paper cuts them (`plain_negative_space`), and beside that as covey does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from covey.lab.experiments import Cell, Chart, Outcome, Panel, Paper, Row, Rows, experiment
from covey.lab.negative_space_points import grow, grow_plain
from covey.lab.points import Lab
from covey.lab.readings import averaged, number, where
from covey.lab.verdicts import Check, Setting, true
from covey.lab.workloads.rectangles import EXPONENT, SUBSCRIPTIONS
from covey.relations.subsumption.negative_space import DEFAULT_K

PAPER: Final = Paper(
    "negative-space",
    "Jafarpour, Hore, Mehrotra and Venkatasubramanian",
    "Subscription subsumption evaluation for content-based publish/subscribe systems",
    2008,
)

LEAST: Final = 200
RUNS: Final = 3
"""Runs with other subscriptions, of which averages are shown."""
K: Final = DEFAULT_K
EXPONENTS: Final = (EXPONENT, 0.0, 1.0)
"""The one that rows are about, then the rest of the range."""
PLAIN_STOP: Final = {2: 1.0, 3: 1.0, 4: 0.4}
"""The share of all subscriptions up to which rectangles are cut the paper's way too: in four dimensions, where the
paper ran out of memory."""
CONSIDERABLE: Final = 0.1
"""What counts as a considerable increase."""
TELLING: Final = 0.5
"""Below this scale there are too few subscriptions for the findings."""

PLAIN_COUNTS: Final = ("redundant", "covered", "beyond_covering", "rectangles", "cpu_seconds")
_COUNTS: Final = ("redundant", "covered", "beyond_covering", "rectangles", "large", "megabytes", "cpu_seconds")
_STEPS: Final = (2_000, 4_000, 6_000, 8_000, 10_000)
EXACT: Final = {2: (181, 118, 81, 73, 66), 3: (15_983, 20_154, 19_667, 20_756, 22_230), 4: (364_740, 665_000)}
APPROXIMATE: Final = {
    2: (367, 405, 430, 438, 443),
    3: (27_928, 30_221, 31_755, 33_071, 34_079),
    4: (13_455, 23_414, 32_148, 39_969, 47_064),
}


def _published(counts: Mapping[int, Sequence[int]], *dimensions: int, column: str = "rectangles") -> list[Row]:
    return [
        {"dimensions": d, "subscriptions": step, column: count}
        for d in dimensions or counts
        for step, count in zip(_STEPS, counts[d], strict=False)
    ]


def grown(lab: Lab, points: Sequence[Row], runs: int = RUNS) -> list[Row]:
    """Averages of several runs of each point."""
    of = lab.size(SUBSCRIPTIONS, LEAST)
    asked: list[Row] = [{**point, "of": of, "run": run} for point in points for run in range(lab.size(runs))]
    names = [*dict.fromkeys(name for point in points for name in point), "subscriptions"]
    return averaged(lab.points(asked, grow), by=names, of=_COUNTS)


def plainly(lab: Lab, points: Sequence[Row], runs: int = RUNS) -> list[Row]:
    """The same by the paper's own cutting."""
    of = lab.size(SUBSCRIPTIONS, LEAST)
    asked: list[Row] = [{**point, "of": of, "run": run} for point in points for run in range(lab.size(runs))]
    names = [*dict.fromkeys(name for point in points for name in point), "subscriptions"]
    return averaged(lab.points(asked, grow_plain), by=names, of=PLAIN_COUNTS)


def exponent_name(exponent: float) -> str:
    """A setting's name."""
    return f"exponent {exponent:g}"


def picked(rows: Rows, *columns: str) -> list[Row]:
    """Some columns of rows."""
    return [{name: row[name] for name in columns} for row in rows]


def last(rows: Rows, **values: Cell) -> Mapping[str, Cell]:
    """The row of the most subscriptions."""
    return max(where(rows, **values), key=lambda row: number(row, "subscriptions"))


def parameters(lab: Lab, **more: Cell) -> dict[str, Cell]:
    """What the experiments have in common, and more."""
    return {"subscriptions": lab.size(SUBSCRIPTIONS, LEAST), "runs": lab.size(RUNS), "Zipf exponent": EXPONENT, **more}


MANY: Final = 0.95
"""What is redundant in 2 dimensions, at least."""


def _redundancy_checks(rows: Rows) -> tuple[Check, ...]:
    """The claims of figures 10 and 11, on rows of one exponent."""
    dimensions = sorted({int(number(row, "dimensions")) for row in rows})
    ends = {d: last(rows, dimensions=d) for d in dimensions}
    shares = {d: number(end, "redundant") / number(end, "subscriptions") for d, end in ends.items()}
    alone = {d: number(end, "covered") / number(end, "subscriptions") for d, end in ends.items()}
    return (
        Check("redundant in 2 dimensions", "more than 95%", shares[2], MANY, None),
        Check("more than by covering, in 4", "substantially", shares[4] / alone[4] - 1, CONSIDERABLE, None),
        true("more at every point", all(number(row, "redundant") >= number(row, "covered") for row in rows)),
        true("fewer with more dimensions", all(shares[a] > shares[b] for a, b in pairwise(dimensions))),
    )


_REDUNDANT: Final = ("dimensions", "subscriptions", "covered", "redundant")


@experiment(
    paper=PAPER,
    place="figure 10",
    title="Redundant subscriptions found: exact subsumption against covering",
    claim="Subsumption always finds more than pair-wise covering, substantially so in 4 dimensions; both fall with the "
    "dimensions; in 2 more than 95% are subsumed.",
    chart=Chart("subscriptions", ("redundant", "covered"), ("dimensions",), y_label="subscriptions"),
)
def figure_10(lab: Lab) -> Outcome:
    """Exact, in 2 to 4 dimensions. What is redundant doesn't depend on how rectangles are cut: covey's way is taken."""
    by = {
        exponent: grown(
            lab,
            [{"dimensions": d, "method": "exact", "exponent": exponent} for d in (2, 3, 4)],
            RUNS if exponent == EXPONENT else 1,
        )
        for exponent in EXPONENTS
    }
    settings = tuple(Setting(exponent_name(exponent), _redundancy_checks(rows)) for exponent, rows in by.items())
    told = "The later a subscription comes and the fewer dimensions it has, the surer others cover it together."
    rows = picked(by[EXPONENT], *_REDUNDANT)
    return Outcome(rows, parameters(lab), settings, told, (), lab.scale >= TELLING)


@experiment(
    paper=PAPER,
    place="figure 11",
    title="Redundant subscriptions found: approximate subsumption against covering",
    claim="The approximate method, with k = 50, shows the same as figure 10.",
    chart=Chart("subscriptions", ("redundant", "covered"), ("dimensions",), y_label="subscriptions"),
)
def figure_11(lab: Lab) -> Outcome:
    """Approximate, in 2 to 5 dimensions, cut the paper's way; beside it covey's. What one other covers is taken to be
    found first: the paper counts what subsumption finds "in addition to the covered"."""
    by = {
        exponent: plainly(
            lab,
            [
                {"dimensions": d, "method": "approximate", "exponent": exponent, "covering first": True}
                for d in (2, 3, 4, 5)
            ],
            1,
        )
        for exponent in EXPONENTS
    }
    own = grown(lab, [{"dimensions": d, "method": "approximate"} for d in (2, 3, 4, 5)])
    settings = tuple(Setting(exponent_name(exponent), _redundancy_checks(rows)) for exponent, rows in by.items())
    found = {d: number(last(by[EXPONENT], dimensions=d), "redundant") for d in (4, 5)}
    ours = {d: number(last(own, dimensions=d), "redundant") for d in (4, 5)}
    told = (
        f"covey, which cuts where most is cut off and merges neighbours, finds {ours[4]:,.0f} in 4 dimensions and "
        f"{ours[5]:,.0f} in 5 with the same k; cut the paper's way it is {found[4]:,.0f} and {found[5]:,.0f}."
    )
    panel = Panel("covey's own cutting", picked(own, *_REDUNDANT))
    rows = picked(by[EXPONENT], *_REDUNDANT)
    return Outcome(rows, parameters(lab, k=K), settings, told, (panel,), lab.scale >= TELLING)


@experiment(
    paper=PAPER,
    place="table 1",
    title="Negative rectangles of the exact method",
    claim="In 2 dimensions they stay below 200, in 3 there are 22,230 and in 4 already 665,000 after 4,000 "
    "subscriptions, where 1 GB of memory is used up.",
    paper_numbers=_published(EXACT, column="cut as in figure 4"),
    chart=Chart("subscriptions", ("rectangles", "cut as in figure 4"), ("dimensions",), log_y=True),
)
def table_1(lab: Lab) -> Outcome:
    """covey's and the paper's way of cutting, on the same subscriptions; then other exponents."""
    of = lab.size(SUBSCRIPTIONS, LEAST)
    exact = grown(lab, [{"dimensions": d, "method": "exact"} for d in EXACT])
    plain = lab.points(
        [{"dimensions": d, "of": of, "stop": round(of * share), "run": 0} for d, share in PLAIN_STOP.items()],
        grow_plain,
    )
    rows = [
        {**row, "cut as in figure 4": next((one["rectangles"] for one in _same(plain, row)), None)}
        for row in picked(exact, "dimensions", "subscriptions", "rectangles", "megabytes", "cpu_seconds")
    ]
    other = _by_exponent(lab, of)
    settings = tuple(
        Setting(exponent_name(exponent), _growth_checks(where(other, exponent=exponent))) for exponent in EXPONENTS
    )
    four = last(rows, dimensions=4)
    there = [row for row in rows if row["cut as in figure 4"] is not None and row["dimensions"] == 4]
    fewer = number(there[-1], "cut as in figure 4") / number(there[-1], "rectangles")
    held, size = number(four, "subscriptions"), number(four, "megabytes")
    told = (
        f"covey's exact method holds all {held:,.0f} subscriptions in 4 dimensions in {size:.1f} MB, where the paper's "
        f"ran out of 1 GB at 4,000: cut the paper's way the same subscriptions have {fewer:.0f} times as many "
        "rectangles. "
    )
    if lab.scale == 1:
        told += _nearest(other)
    return Outcome(
        rows,
        parameters(lab),
        settings,
        told.strip(),
        (Panel("Cut the paper's way, by the Zipf exponent, which the paper doesn't state", other),),
        lab.scale >= TELLING,
    )


FEW: Final = 200
GROWTH: Final = 5.0
"""How many times more rectangles a dimension more brings, at least; in the paper 88 and 23 times after 2,000."""


def _growth_checks(rows: Rows) -> tuple[Check, ...]:
    """Rectangles after a fifth of all subscriptions, cut the paper's way."""
    count = {d: number(last(rows, dimensions=d), "rectangles") for d in EXACT}
    return (
        Check("rectangles in 2 dimensions", "181, below 200", count[2], None, FEW, ""),
        Check("3 dimensions over 2", "88 ×", count[3] / max(1, count[2]), GROWTH, None, "×"),
        Check("4 over 3", "23 ×", count[4] / max(1, count[3]), GROWTH, None, "×"),
    )


def _same(rows: Rows, row: Mapping[str, Cell]) -> Rows:
    return where(rows, dimensions=row["dimensions"], subscriptions=row["subscriptions"])


def _by_exponent(lab: Lab, of: int) -> list[Row]:
    """Rectangles after a fifth of all subscriptions, cut the paper's way."""
    points: list[Row] = [
        {"dimensions": d, "exponent": exponent, "of": of, "stop": round(of / 5), "run": 0}
        for d in EXACT
        for exponent in EXPONENTS
    ]
    rows = picked(lab.points(points, grow_plain), "dimensions", "exponent", "subscriptions", "rectangles")
    return [{**row, "the_paper": EXACT[int(number(row, "dimensions"))][0]} for row in rows]


def _nearest(rows: Rows) -> str:
    """Which exponent comes nearest to the paper's counts, in each number of dimensions."""
    nearest = {
        d: min(where(rows, dimensions=d), key=lambda row: abs(number(row, "rectangles") / number(row, "the_paper") - 1))
        for d in EXACT
    }
    told = ", ".join(f"{number(row, 'exponent'):g} in {d}" for d, row in nearest.items())
    return f"Of the Zipf exponents tried, the paper's counts after 2,000 are nearest to those of {told} dimensions."


@experiment(
    paper=PAPER,
    place="table 2",
    title="Negative rectangles of the approximate method in 4 dimensions",
    claim="With k = 50 there are 23,414 instead of 665,000 after 4,000 subscriptions; some subsumed ones are missed.",
    paper_numbers=_published(APPROXIMATE),
    chart=Chart("subscriptions", ("rectangles",), ("dimensions",), log_y=True),
)
def table_2(lab: Lab) -> Outcome:
    """The approximate method's growth cut the paper's way, beside the exact one's; and covey's."""
    stop = round(lab.size(SUBSCRIPTIONS, LEAST) * PLAIN_STOP[4])
    by = {exponent: _four(lab, exponent, stop) for exponent in EXPONENTS}
    settings = tuple(Setting(exponent_name(exponent), _fewer_checks(rows)) for exponent, rows in by.items())
    own = _compared(*_both_methods(lab))
    end = last(own, dimensions=4)
    told = (
        f"covey's cutting has {number(end, 'rectangles'):,.0f} rectangles instead of {number(end, 'exact'):,.0f} after "
        f"all subscriptions in 4 dimensions and misses {1 - ratio_of(end, 'redundant', 'redundant_exact'):.1%} of the "
        "redundant ones: with fewer rectangles to begin with there is less to save."
    )
    panel = Panel("covey's own cutting", own, Chart("subscriptions", ("rectangles", "exact"), ("dimensions",)))
    return Outcome(by[EXPONENT], parameters(lab, k=K), settings, told, (panel,), lab.scale >= TELLING)


def _four(lab: Lab, exponent: float, stop: int) -> list[Row]:
    """Both methods cut the paper's way in 4 dimensions, as far as the paper's exact one comes."""
    of = lab.size(SUBSCRIPTIONS, LEAST)
    point: Row = {"dimensions": 4, "exponent": exponent, "of": of, "stop": stop, "run": 0}
    exact = lab.points([{**point, "method": "exact"}], grow_plain)
    rows = lab.points([{**point, "method": "approximate", "covering first": True}], grow_plain)
    return _compared(rows, exact)


SAVES: Final = 5.0
"""How many times fewer rectangles the threshold leaves in 4 dimensions, at least; 28 in the paper after 4,000."""


def _fewer_checks(rows: Rows) -> tuple[Check, ...]:
    end = last(rows, dimensions=4)
    missed = 1 - ratio_of(end, "redundant", "redundant_exact")
    most = max(number(row, "rectangles") / number(row, "subscriptions") for row in rows)
    return (
        Check("times fewer rectangles", "28 ×", ratio_of(end, "exact", "rectangles"), SAVES, None, "×"),
        Check("redundant ones missed", "some", missed, 0.0001, 0.5),
        Check("rectangles a subscription", "at most k = 50", most, None, K, ""),
    )


def ratio_of(row: Mapping[str, Cell], column: str, other: str) -> float:
    """A column over another of the same row."""
    return number(row, column) / max(1e-9, number(row, other))


@experiment(
    paper=PAPER,
    place="table 2, low dimensions",
    title="Negative rectangles of the approximate method in 2 and 3 dimensions",
    claim="Against expectation the approximate method has more rectangles than the exact one: 443 to 66 and 34,079 to "
    "22,230.",
    paper_numbers=_published(APPROXIMATE, 2, 3),
    chart=Chart("subscriptions", ("rectangles", "exact"), ("dimensions",), log_y=True),
)
def table_2_low(lab: Lab) -> Outcome:
    """Cut the paper's way in 2 and 3 dimensions, with the threshold and without."""
    by = {exponent: _low(lab, exponent) for exponent in EXPONENTS}
    settings = tuple(Setting(exponent_name(exponent), _more_checks(rows)) for exponent, rows in by.items())
    exact = grown(lab, [{"dimensions": d, "method": "exact"} for d in (2, 3)])
    told = (
        "Where a threshold isn't reached both methods are one: in 2 dimensions a subscription meets too few rectangles "
        f"for k = {K}. {large_share(exact, 2, 3)}"
    )
    return Outcome(by[EXPONENT], parameters(lab, k=K), settings, told, (), lab.scale >= TELLING)


def _low(lab: Lab, exponent: float) -> list[Row]:
    rows, exact = (
        plainly(lab, [{"dimensions": d, "method": method, "exponent": exponent} for d in (2, 3)], 1)
        for method in ("approximate", "exact")
    )
    return _compared(rows, exact)


def _more_checks(rows: Rows) -> tuple[Check, ...]:
    shares = {d: ratio_of(last(rows, dimensions=d), "rectangles", "exact") for d in (2, 3)}
    return (
        Check("the exact method's in 2 dimensions", "6.7 ×", shares[2], 1 + CONSIDERABLE, None, "×"),
        Check("in 3", "1.5 ×", shares[3], 1 + CONSIDERABLE, None, "×"),
    )


def large_share(exact: Rows, *dimensions: int) -> str:
    """How often k would bite, as a sentence: what the exact method adds where nothing limits it."""
    shares = []
    for d in dimensions:
        end = last(exact, dimensions=d)
        active = number(end, "subscriptions") - number(end, "redundant")
        shares.append(f"{number(end, 'large') / active:.1%} in {d}")
    told = " and ".join(shares)
    return f"Where nothing limits them, of the active subscriptions {told} dimensions add more than {K} rectangles."


def _both_methods(lab: Lab) -> tuple[list[Row], list[Row]]:
    rows = grown(lab, [{"dimensions": d, "method": "approximate"} for d in APPROXIMATE])
    return rows, grown(lab, [{"dimensions": d, "method": "exact"} for d in APPROXIMATE])


def _compared(rows: Rows, exact: Rows) -> list[Row]:
    return [
        {
            **picked([row], "dimensions", "subscriptions", "rectangles")[0],
            "exact": _same(exact, row)[0]["rectangles"],
            "redundant": row["redundant"],
            "redundant_exact": _same(exact, row)[0]["redundant"],
        }
        for row in rows
    ]
