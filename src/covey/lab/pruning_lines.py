"""Bittner and Hinze, figure 1 (d) to (f): the same prunings on a line of five brokers.

Two sets of rows. *Tables*: the paper's full size, where what each link carries is read off the pruned table of
figures (a) to (c). *Brokers*: real brokers in the simulator, with fewer subscriptions, since each of the five reads,
files and prunes what all the others tell it; beside what they carry stands what the tables alone would say.
"""

from __future__ import annotations

from typing import Final

from covey.lab.curves import at, bend, curve
from covey.lab.experiments import Chart, Outcome, Panel, Row, experiment
from covey.lab.points import Lab
from covey.lab.pruned_lines import SHARES, pruned_lines
from covey.lab.pruned_tables import pruned_tables
from covey.lab.pruning import BENDS, LARGE, NEAR, PAPER, PARAMETERS, memory_verdict, tables
from covey.lab.readings import number, only, where
from covey.lab.workloads.auctions import EVENTS
from covey.relations.pruning import DIMENSIONS, Dimension

LINE_SUBSCRIPTIONS: Final = 4_000
LINE_EVENTS: Final = 2_000
LOADS: Final[dict[tuple[Dimension, float], float]] = {
    ("network", 0.5): 0.10,
    ("throughput", 0.5): 0.26,
    ("network", 0.75): 0.37,
}
OTHER_SIZES: Final = (500, 5_000, 50_000)
FASTER: Final = 0.53
"""How much shorter network-based pruning makes filtering in the paper, at best."""


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
    """The line read off the tables: load against the unpruned, and time at every broker that an event comes to."""
    return [
        row | {"µs on the line": round(number(row, "µs an event") * (1 + number(row, "links an event")), 2)}
        for row in _against_unpruned(tables(lab))
    ]


def _other_sizes(lab: Lab) -> list[Row]:
    """The network-based curve with fewer subscriptions, which leave more events that nobody beyond a link wants."""
    points: list[Row] = [
        {
            "dimension": "network",
            "subscriptions": size,
            "events": lab.size(EVENTS // 10, 200),
            "class": 0,
            "steps": "coarse",
        }
        for size in sorted({lab.size(size, 200) for size in OTHER_SIZES})
    ]
    return [row for point in points for row in _against_unpruned(lab.points([point], pruned_tables))]


def _against_unpruned(rows: list[Row]) -> list[Row]:
    """How much more crosses links than in the first row, which is without prunings."""
    whole = number(rows[0], "links an event")
    return [row | {"load increase": round(_over(number(row, "links an event"), whole), 4)} for row in rows]


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
    chart=Chart("prunings", ("µs on the line",), split=("dimension",), log_y=True, paper="none"),
)
def figure_1d(lab: Lab) -> Outcome:
    """Matching time at all brokers that an event comes to."""
    rows, real = full_size(lab), lines(lab)
    times = {dimension: curve(rows, "prunings", "µs on the line", dimension=dimension) for dimension in DIMENSIONS}
    whole = times["network"][0][1]
    best = {dimension: min(points[1:], key=lambda point: point[1]) for dimension, points in times.items()}
    spent = {
        dimension: 1
        - min(number(row, "µs an event") for row in real if row["dimension"] == dimension and row["prunings"])
        / number(real[0], "µs an event")
        for dimension in DIMENSIONS
    }
    saved = {dimension: 1 - time / whole for dimension, (_, time) in best.items()}
    sentence = (
        f"The paper's network-based pruning makes filtering {FASTER:.0%} shorter; here at best {saved['network']:+.0%} "
        f"(at {best['network'][0]:.0%} of the prunings), throughput-based {saved['throughput']:+.0%} (at "
        f"{best['throughput'][0]:.0%}) and memory-based {saved['memory']:+.0%}. The real brokers' processor time falls "
        f"by {spent['network']:+.0%}, {spent['throughput']:+.0%} and {spent['memory']:+.0%} at best."
    )
    holds = abs(saved["network"] - FASTER) <= NEAR and saved["network"] > saved["throughput"] > saved["memory"]
    panel = _brokers_panel(real, "µs an event")
    return Outcome(rows, PARAMETERS, holds if lab.scale >= LARGE else None, sentence, (panel,))


@experiment(
    paper=PAPER,
    place="figure 1(e)",
    title="Network load on a line of five brokers",
    claim="Events over links grow by 10% at half of the network-based prunings and by 37% at 75%, where the curve "
    "bends; by 26% at half of the throughput-based ones, the bend of those; memory-based pruning bends at 5%.",
    paper_numbers=[
        {"dimension": dimension, "prunings": share, "load increase": load} for (dimension, share), load in LOADS.items()
    ],
    chart=Chart("prunings", ("load increase",), split=("dimension",), y_label="more events over links"),
)
def figure_1e(lab: Lab) -> Outcome:
    """Events over links, against the line without prunings."""
    rows, real, fewer = full_size(lab), lines(lab), _other_sizes(lab)
    loads = {dimension: curve(rows, "prunings", "load increase", dimension=dimension) for dimension in DIMENSIONS}
    sparse = {dimension: curve(real, "prunings", "load increase", dimension=dimension) for dimension in DIMENSIONS}
    found = {dimension: bend(points) for dimension, points in loads.items()}
    apart = max(abs(_over(number(row, "links an event"), number(row, "links by the table alone"))) for row in real)
    at_bend = {
        f"{size:,}": at(curve(fewer, "prunings", "load increase", subscriptions=size), 0.75)
        for size in dict.fromkeys(row["subscriptions"] for row in fewer)
    }
    said = ", ".join(
        f"{at(loads[dimension], share):+.0%} ({at(sparse[dimension], share):+.0%}) for {dimension} at {share:.0%}"
        for dimension, share in LOADS
    )
    most = number(rows[0], "links an event")
    sentence = (
        f"The paper has +10% and +37% for network at 50% and 75%, and +26% for throughput at 50%; here {said}, in "
        f"brackets the real brokers with {real[0]['subscriptions']:,} subscriptions. How many there are decides how "
        f"much the load can grow: unpruned, an event crosses {most:.2f} links of at most 4 with all subscriptions, "
        f"{number(real[0], 'links an event'):.2f} with those few; with {', '.join(at_bend)} of them "
        f"network-based pruning adds {', '.join(f'{load:.0%}' for load in at_bend.values())} at 75%. The curves bend "
        f"at {', '.join(f'{share:.0%} ({dimension})' for dimension, share in found.items() if share is not None)}. "
        f"Brokers and tables differ by at most {apart:.1%}."
    )
    least = all(
        at(loads["network"], share) <= at(loads["throughput"], share) <= at(loads["memory"], share) for share in SHARES
    )
    holds = least and all(abs(at(loads[dimension], share) - load) <= NEAR for (dimension, share), load in LOADS.items())
    sizes = Panel(
        "Other numbers of subscriptions, network-based, read off the tables",
        fewer,
        Chart("prunings", ("load increase",), split=("subscriptions",), paper="none"),
    )
    panels = (_brokers_panel(real, "load increase"), sizes)
    return Outcome(rows, PARAMETERS, holds if lab.scale >= LARGE else None, sentence, panels)


@experiment(
    paper=PAPER,
    place="figure 1(f)",
    title="Memory on a line of five brokers",
    claim="What neighbours told shrinks as in one broker: memory-based pruning is ahead by at most 10%, and "
    "network-based pruning saves 67% of the predicates.",
    paper_numbers=[{"dimension": "network", "prunings": BENDS["network"], "fewer associations": 0.67}],
    chart=Chart("prunings", ("fewer associations",), split=("dimension",), y_label="neighbours' predicates, fewer by"),
)
def figure_1f(lab: Lab) -> Outcome:
    """The decrease in predicates of neighbours' entries, at real brokers beside the tables."""
    rows, real = tables(lab), lines(lab)
    verdict, sentence = memory_verdict(rows, lab.scale)
    central = {
        dimension: curve(rows, "prunings", "fewer associations", dimension=dimension) for dimension in DIMENSIONS
    }
    apart = max(
        abs(number(row, "fewer associations") - at(central[dimension], number(row, "prunings")))
        for dimension in DIMENSIONS
        for row in where(real, dimension=dimension)
    )
    at_bend = number(only(real, dimension="network", prunings=BENDS["network"]), "fewer associations")
    sentence = (
        f"{sentence} The real brokers' tables of neighbours' entries shrink by {at_bend:.1%} there, and differ from "
        f"one broker's by at most {apart:.1%} at any share."
    )
    holds = None if verdict is None else verdict and apart <= 0.05
    panel = _brokers_panel(real, "fewer associations")
    return Outcome(rows, PARAMETERS, holds, sentence, (panel,))
