"""Bittner and Hinze, figure 1 (d) to (f): the same prunings on a line of five brokers.

Three sets of rows. *Counted*: steps of the paper's kind of matcher at all brokers that an event comes to. *Tables*: the
paper's full size, where what each link carries is read off the pruned table of figures (a) to (c). *Brokers*: real
brokers in the simulator, with fewer subscriptions, since each of the five reads, files and prunes what all the others
tell it; beside what they carry stands what the tables alone would say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from covey.lab.counted_tables import SAMPLE, WEIGHT, WEIGHTS, line_steps
from covey.lab.curves import at
from covey.lab.experiments import Cell, Chart, Outcome, Panel, Row, Rows, experiment
from covey.lab.points import Lab
from covey.lab.pruned_lines import pruned_lines
from covey.lab.pruned_tables import pruned_tables
from covey.lab.pruning import (
    BENDS,
    CLASSES,
    LARGE,
    LEAST,
    NEAR,
    PAPER,
    PARAMETERS,
    by_dimension,
    counted,
    memory_sentence,
    memory_settings,
    tables,
)
from covey.lab.readings import number, only, where
from covey.lab.verdicts import Check, Setting, near, true
from covey.lab.workloads.auctions import EVENTS
from covey.relations.pruning import DIMENSIONS, Dimension

LINE_SUBSCRIPTIONS: Final = 4_000
LINE_EVENTS: Final = 2_000
LOADS: Final[dict[tuple[Dimension, float], float]] = {
    ("network", 0.5): 0.10,
    ("throughput", 0.5): 0.26,
    ("network", 0.75): 0.37,
}
OTHER_SIZES: Final = (500, 5_000, 20_000, 50_000)
"""How many subscriptions there are decides how many links an event crosses before anything is pruned."""
SHORTER: Final[dict[Dimension, float]] = {"network": 0.53, "throughput": 1 - 6.5 / (4.2 / (1 - 0.53))}
"""How much shorter filtering gets in the paper, where each dimension is at its best: 4.2 ms is 53% less than unpruned,
and throughput-based pruning comes to 6.5 ms."""
NO_IMPROVEMENT: Final = 0.05
APART: Final = 0.05
"""What real brokers' tables may differ by from one broker's."""


def lines(lab: Lab) -> list[Row]:
    """Real brokers by each dimension, without prunings and with some; changes are against those without."""
    rows = lab.points(
        [
            {
                "dimension": dimension,
                "subscriptions": lab.size(LINE_SUBSCRIPTIONS, 200),
                "events": lab.size(LINE_EVENTS, 200),
                "class": 0,
            }
            for dimension in DIMENSIONS
        ],
        pruned_lines,
        alone=True,
    )
    whole = number(rows[0], "neighbours' predicates")
    return [
        row | {"fewer associations": round(1 - number(row, "neighbours' predicates") / whole, 4)}
        for row in _against_unpruned(rows)
    ]


def full_size(lab: Lab) -> list[Row]:
    """The line read off the tables: load against the unpruned."""
    return [row for dimension in DIMENSIONS for row in _against_unpruned(where(tables(lab), dimension=dimension))]


def _other_sizes(lab: Lab) -> list[Row]:
    """All dimensions with fewer subscriptions, which leave more events that nobody beyond a link wants."""
    points: list[Row] = [
        {
            "dimension": dimension,
            "subscriptions": size,
            "events": lab.size(EVENTS // 10, 200),
            "class": 0,
            "steps": "coarse",
        }
        for size in sorted({lab.size(size, 200) for size in OTHER_SIZES})
        for dimension in DIMENSIONS
    ]
    return [row for point in points for row in _against_unpruned(lab.points([point], pruned_tables))]


def _against_unpruned(rows: Rows) -> list[Row]:
    """How much more crosses links than in the first row, which is without prunings."""
    whole = number(rows[0], "links an event")
    return [dict(row) | {"load increase": round(_over(number(row, "links an event"), whole), 4)} for row in rows]


def _over(value: float, base: float) -> float:
    """By which part a value is above another; 0 where there is nothing to compare with."""
    return value / base - 1 if base else 0.0


def _brokers_panel(rows: list[Row], column: str) -> Panel:
    title = f"Real brokers, {rows[0]['subscriptions']:,} subscriptions, {rows[0]['events']:,} events"
    return Panel(title, rows, Chart("prunings", (column,), split=("dimension",), paper="none"))


@experiment(
    paper=PAPER,
    place="figure 1(d)",
    title="Filtering time on a line of five brokers",
    claim="Network-based pruning does best: 4.2 ms a message, 53% less than unpruned and 35% less than "
    "throughput-based pruning's best of 6.5 ms; memory-based pruning brings nothing.",
    paper_numbers=[{"dimension": "network", "best ms": 4.2}, {"dimension": "throughput", "best ms": 6.5}],
    chart=Chart("prunings", ("steps on the line",), split=("dimension",), x_label="share of prunings", paper="none"),
)
def figure_1d(lab: Lab) -> Outcome:
    """Steps of a counting matcher at all brokers that an event comes to; beside them real brokers' time."""
    mixed, alone = counted(lab)
    real = lines(lab)
    rows = [row | {"steps on the line": round(line_steps(row, _whole(mixed, row)), 1)} for row in mixed]
    settings = [
        Setting(f"an evaluated predicate at {weight:g} of a counted one", _line_checks(mixed, weight))
        for weight in (WEIGHT, *(weight for weight in WEIGHTS if weight != WEIGHT))
    ]
    settings += [Setting(f"class {kind} alone", _line_checks(where(alone, **{"class": kind}))) for kind in CLASSES]
    spent = {
        dimension: 1
        - min(number(row, "µs an event") for row in real if row["dimension"] == dimension and row["prunings"])
        / number(real[0], "µs an event")
        for dimension in DIMENSIONS
    }
    sentence = (
        "A broker's own clients' subscriptions are never pruned, and every event that goes on is filtered again, so "
        f"time falls less than in one broker. covey's brokers, {real[0]['subscriptions']:,} subscriptions on the line, "
        f"spend {spent['network']:.0%} (network), {spent['throughput']:.0%} (throughput) and {spent['memory']:.0%} "
        "(memory) less processor time at best."
    )
    parameters = PARAMETERS | {"weight of an evaluated predicate": WEIGHT, "subscriptions": lab.size(SAMPLE, LEAST)}
    panel = _brokers_panel(real, "µs an event")
    return Outcome(rows, parameters, tuple(settings), sentence, (panel,), lab.scale >= LARGE)


def _whole(rows: Rows, row: Mapping[str, Cell]) -> Mapping[str, Cell]:
    """The row without prunings that belongs to a row."""
    return only(rows, dimension=row["dimension"], prunings=0.0)


def _line_checks(rows: Rows, weight: float = WEIGHT) -> tuple[Check, ...]:
    """The claims of figure 1(d): each dimension at the share where the paper says that its curve bends."""
    weighed = [dict(row) | {"steps": line_steps(row, _whole(rows, row), weight)} for row in rows]
    steps = by_dimension(weighed, "steps")
    shares: dict[Dimension, float] = {**BENDS, "memory": 0.5}
    saved = {dimension: 1 - at(steps[dimension], share) / steps[dimension][0][1] for dimension, share in shares.items()}
    return (
        near("network-based at 75% is shorter by", SHORTER["network"], saved["network"], NEAR),
        near("throughput-based at 50% is shorter by", SHORTER["throughput"], saved["throughput"], NEAR),
        Check("memory-based at 50% is shorter by", "nothing", saved["memory"], None, NO_IMPROVEMENT),
    )


@experiment(
    paper=PAPER,
    place="figure 1(e)",
    title="Network load on a line of five brokers",
    claim="Events over links grow by 10% at half of the network-based prunings and by 37% at 75%, where the curve "
    "bends; by 26% at half of the throughput-based ones, the bend of those; memory-based pruning bends at 5%.",
    paper_numbers=[
        {"dimension": dimension, "prunings": share, "load increase": load} for (dimension, share), load in LOADS.items()
    ],
    chart=Chart(
        "prunings", ("load increase",), split=("dimension",), x_label="share of prunings",
        y_label="more events over links",
    ),
)  # fmt: skip
def figure_1e(lab: Lab) -> Outcome:
    """Events over links, against the line without prunings, for several numbers of subscriptions."""
    rows, real, fewer = full_size(lab), lines(lab), _other_sizes(lab)
    settings = [Setting(f"{rows[0]['subscriptions']:,} subscriptions", _link_checks(rows))]
    sizes = [size for size in dict.fromkeys(row["subscriptions"] for row in fewer) if size != rows[0]["subscriptions"]]
    settings += [Setting(f"{size:,}", _link_checks(where(fewer, subscriptions=size))) for size in sizes]
    settings.append(Setting(f"real brokers with {real[0]['subscriptions']:,}", _link_checks(real)))
    apart = max(abs(_over(number(row, "links an event"), number(row, "links by the table alone"))) for row in real)
    crossed = {f"{size:,}": number(where(fewer, subscriptions=size)[0], "links an event") for size in sizes}
    sentence = (
        "How many subscriptions there are decides how much the load can grow: unpruned, an event crosses "
        f"{number(rows[0], 'links an event'):.2f} links of at most 4 with {rows[0]['subscriptions']:,} subscriptions, "
        f"{', '.join(f'{links:.2f}' for links in crossed.values())} with {', '.join(crossed)}. The paper doesn't say "
        f"how many links its events cross. Brokers and tables differ by at most {apart:.1%}."
    )
    panels = (
        _brokers_panel(real, "load increase"),
        Panel(
            "Other numbers of subscriptions, read off the tables",
            fewer,
            Chart("prunings", ("load increase",), split=("subscriptions", "dimension"), paper="none"),
        ),
    )
    return Outcome(rows, PARAMETERS, tuple(settings), sentence, panels, lab.scale >= LARGE)


def _link_checks(rows: Rows) -> tuple[Check, ...]:
    loads = by_dimension(rows, "load increase")
    most = all(
        at(loads["memory"], share) >= max(at(loads["network"], share), at(loads["throughput"], share))
        for share in (0.05, 0.5, 0.75)
    )
    return (
        *(
            near(f"{dimension}-based at {share:.0%} adds", load, at(loads[dimension], share), NEAR)
            for (dimension, share), load in LOADS.items()
        ),
        true("memory-based adds most", most),
    )


@experiment(
    paper=PAPER,
    place="figure 1(f)",
    title="Memory on a line of five brokers",
    claim="What neighbours told shrinks as in one broker: memory-based pruning is ahead by at most 10%, and "
    "network-based pruning saves 67% of the predicates.",
    paper_numbers=[{"dimension": "network", "prunings": BENDS["network"], "fewer associations": 0.67}],
    chart=Chart(
        "prunings", ("fewer associations",), split=("dimension",), x_label="share of prunings",
        y_label="neighbours' predicates, fewer by",
    ),
)  # fmt: skip
def figure_1f(lab: Lab) -> Outcome:
    """The decrease in predicates of neighbours' entries, at real brokers beside the tables."""
    rows, real = tables(lab), lines(lab)
    central = by_dimension(rows, "fewer associations")
    apart = max(
        abs(number(row, "fewer associations") - at(central[dimension], number(row, "prunings")))
        for dimension in DIMENSIONS
        for row in where(real, dimension=dimension)
    )
    same = Check("real brokers' tables differ from one broker's by", "as in one broker", apart, None, APART)
    settings = tuple(Setting(setting.name, (*setting.checks, same)) for setting in memory_settings(lab))
    at_bend = number(only(real, dimension="network", prunings=BENDS["network"]), "fewer associations")
    sentence = (
        f"Each broker prunes what its own neighbours told, and comes to the same: real brokers' tables shrink by "
        f"{at_bend:.1%} at 75% of the network-based prunings. {memory_sentence(rows)}"
    )
    panel = _brokers_panel(real, "fewer associations")
    return Outcome(rows, PARAMETERS, settings, sentence, (panel,), lab.scale >= LARGE)
