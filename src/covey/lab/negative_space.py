"""Jafarpour et al., section 5: figures 10 and 11, tables 1 and 2.

The paper's subscriptions start where a Zipf law says whose exponent it doesn't state; `workloads.rectangles` takes 0.5,
and table 1 shows the range. Its curves are given by what the text says of them; numbers are from its text and tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from covey.lab.experiments import Cell, Chart, Outcome, Panel, Paper, Row, Rows, experiment
from covey.lab.negative_space_points import grow, grow_plain
from covey.lab.points import Lab
from covey.lab.readings import averaged, number, ratio, where
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
EXPONENTS: Final = (0.0, 0.5, 1.0)
PLAIN_STOP: Final = {2: 1.0, 3: 1.0, 4: 0.4}
"""The share of all subscriptions up to which rectangles are cut the paper's way too: in four dimensions, where the
paper ran out of memory."""
CONSIDERABLE: Final = 0.1
"""What counts as a considerable increase."""
TELLING: Final = 0.2
"""Below this scale there are too few subscriptions for the findings."""

_COUNTS: Final = ("redundant", "covered", "beyond_covering", "rectangles", "large", "megabytes", "cpu_seconds")
_STEPS: Final = (2_000, 4_000, 6_000, 8_000, 10_000)
EXACT: Final = {2: (181, 118, 81, 73, 66), 3: (15_983, 20_154, 19_667, 20_756, 22_230), 4: (364_740, 665_000)}
APPROXIMATE: Final = {
    2: (367, 405, 430, 438, 443),
    3: (27_928, 30_221, 31_755, 33_071, 34_079),
    4: (13_455, 23_414, 32_148, 39_969, 47_064),
}


def _published(counts: Mapping[int, Sequence[int]], *dimensions: int) -> list[Row]:
    return [
        {"dimensions": d, "subscriptions": step, "rectangles": count}
        for d in dimensions or counts
        for step, count in zip(_STEPS, counts[d], strict=False)
    ]


def grown(lab: Lab, points: Sequence[Row], runs: int = RUNS) -> list[Row]:
    """Averages of several runs of each point."""
    of = lab.size(SUBSCRIPTIONS, LEAST)
    asked: list[Row] = [{**point, "of": of, "run": run} for point in points for run in range(lab.size(runs))]
    names = [*dict.fromkeys(name for point in points for name in point), "subscriptions"]
    return averaged(lab.points(asked, grow), by=names, of=_COUNTS)


def picked(rows: Rows, *columns: str) -> list[Row]:
    """Some columns of rows."""
    return [{name: row[name] for name in columns} for row in rows]


def last(rows: Rows, **values: Cell) -> Mapping[str, Cell]:
    """The row of the most subscriptions."""
    return max(where(rows, **values), key=lambda row: number(row, "subscriptions"))


def parameters(lab: Lab, **more: Cell) -> dict[str, Cell]:
    """What the experiments have in common, and more."""
    return {"subscriptions": lab.size(SUBSCRIPTIONS, LEAST), "runs": lab.size(RUNS), "Zipf exponent": EXPONENT, **more}


def _redundancy(lab: Lab, rows: list[Row], what: str, settings: dict[str, Cell]) -> Outcome:
    dimensions = sorted({int(number(row, "dimensions")) for row in rows})
    ends = {d: last(rows, dimensions=d) for d in dimensions}
    shares = {d: number(end, "redundant") / number(end, "subscriptions") for d, end in ends.items()}
    alone = {d: number(end, "covered") / number(end, "subscriptions") for d, end in ends.items()}
    more = all(number(row, "redundant") >= number(row, "covered") for row in rows)
    falls = all(shares[a] > shares[b] for a, b in pairwise(dimensions))
    substantial = shares[4] >= (1 + CONSIDERABLE) * alone[4]
    told = ", ".join(f"{shares[d]:.1%} against {alone[d]:.1%} in {d}" for d in dimensions)
    holds = more and falls and substantial and shares[2] > 0.95
    return Outcome(
        picked(rows, "dimensions", "subscriptions", "covered", "redundant"),
        settings,
        None if lab.scale < TELLING else holds,
        f"Redundant by {what} against by covering alone, of all subscriptions, by dimensions: {told}; the paper has "
        f"more than 95% in 2. Subsumption finds {'more at every point' if more else 'less at some points'}, and the "
        f"share {'falls' if falls else 'does not always fall'} with the dimensions.",
    )


@experiment(
    paper=PAPER,
    place="figure 10",
    title="Redundant subscriptions found: exact subsumption against covering",
    claim="Subsumption always finds more than pair-wise covering, substantially so in 4 dimensions; both fall with the "
    "dimensions; in 2 more than 95% are subsumed.",
    chart=Chart("subscriptions", ("redundant", "covered"), ("dimensions",), y_label="subscriptions"),
)
def figure_10(lab: Lab) -> Outcome:
    """Exact, in 2 to 4 dimensions."""
    rows = grown(lab, [{"dimensions": d, "method": "exact"} for d in (2, 3, 4)])
    return _redundancy(lab, rows, "exact subsumption", parameters(lab))


@experiment(
    paper=PAPER,
    place="figure 11",
    title="Redundant subscriptions found: approximate subsumption against covering",
    claim="The approximate method, with k = 50, shows the same as figure 10.",
    chart=Chart("subscriptions", ("redundant", "covered"), ("dimensions",), y_label="subscriptions"),
)
def figure_11(lab: Lab) -> Outcome:
    """Approximate, in 2 to 5 dimensions."""
    rows = grown(lab, [{"dimensions": d, "method": "approximate"} for d in (2, 3, 4, 5)])
    return _redundancy(lab, rows, "approximate subsumption", parameters(lab, k=K))


@experiment(
    paper=PAPER,
    place="table 1",
    title="Negative rectangles of the exact method",
    claim="In 2 dimensions they stay below 200, in 3 there are 22,230 and in 4 already 665,000 after 4,000 "
    "subscriptions, where 1 GB of memory is used up.",
    paper_numbers=_published(EXACT),
    chart=Chart("subscriptions", ("rectangles", "cut as in figure 4"), ("dimensions",), log_y=True),
)
def table_1(lab: Lab) -> Outcome:
    """Ours and the paper's way of cutting, on the same subscriptions; then other exponents."""
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
    ends = {d: number(last(rows, dimensions=d), "rectangles") for d in EXACT}
    four = last(rows, dimensions=4)
    grows = ends[3] > 5 * ends[2] and ends[4] > 5 * ends[3]
    there = [row for row in rows if row["cut as in figure 4"] is not None and row["dimensions"] == 4]
    fewer = number(there[-1], "cut as in figure 4") / number(there[-1], "rectangles")
    held, size = number(four, "subscriptions"), number(four, "megabytes")
    told = (
        f"{ends[2]:,.0f}, {ends[3]:,.0f} and {ends[4]:,.0f} rectangles in 2, 3 and 4 dimensions. The exact method "
        f"holds all {held:,.0f} subscriptions in 4 dimensions in {size:.1f} MB, where the paper's ran out of 1 GB "
        f"at 4,000; cut the paper's way the same subscriptions have {fewer:.0f} times as many rectangles. "
    )
    if lab.scale == 1:
        told += _nearest(other)
    return Outcome(
        rows,
        parameters(lab),
        None if lab.scale < TELLING else grows and ends[2] <= 200,
        told.strip(),
        (Panel("Cut the paper's way, by the Zipf exponent, which the paper doesn't state", other),),
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
    """The approximate method's growth, and the exact one's beside it."""
    rows, exact = _both_methods(lab)
    end, full = last(rows, dimensions=4), last(exact, dimensions=4)
    missed = 1 - ratio(end, full, "redundant")
    most = max(number(row, "rectangles") / number(row, "subscriptions") for row in rows)
    fewer = ratio(full, end, "rectangles")
    return Outcome(
        _compared(rows, exact),
        parameters(lab, k=K),
        None if lab.scale < TELLING else fewer > 1 + CONSIDERABLE and 0 < missed < 0.5 and most <= K,
        f"In 4 dimensions {number(end, 'rectangles'):,.0f} rectangles instead of {number(full, 'rectangles'):,.0f}, "
        f"{fewer:.1f} times fewer (the paper: 28 times after 4,000), and {missed:.1%} of the redundant ones are "
        f"missed. There are at most {most:.1f} rectangles a subscription; k is {K}.",
    )


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
    """The same points, in 2 and 3 dimensions."""
    rows, exact = _both_methods(lab)
    shares = {d: ratio(last(rows, dimensions=d), last(exact, dimensions=d), "rectangles") for d in (2, 3)}
    told = " and ".join(f"{share:.2f} times the exact method's in {d} dimensions" for d, share in shares.items())
    return Outcome(
        [row for row in _compared(rows, exact) if row["dimensions"] != 4],
        parameters(lab, k=K),
        None if lab.scale < TELLING else all(share > 1 + CONSIDERABLE for share in shares.values()),
        f"Rectangles are {told} (the paper: 6.7 and 1.5 times). {large_share(exact, 2, 3)}",
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
