"""Bittner and Hinze, figure 1: pruning by network load, memory and throughput, in one broker and on a line of five.

The paper prunes subscriptions of online book auctions, 200,000 of them, and publishes 100,000 events. Of its three
classes of subscriptions and its distributions only the names are known; `workloads.auctions` draws what stands for
them, and panels show each class alone. Its matcher counts fulfilled predicates, so fewer predicates mean less work;
covey's finds subscriptions by their rarest member and then takes time by what matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from covey.lab.curves import at, bend, crossing, curve
from covey.lab.experiments import Chart, Outcome, Panel, Paper, Row, Rows, experiment
from covey.lab.points import Lab
from covey.lab.pruned_tables import BROKERS, SAMPLED, pruned_tables
from covey.lab.readings import number, only
from covey.lab.workloads.auctions import EVENTS, SUBSCRIPTIONS
from covey.relations.pruning import DIMENSIONS, Dimension

PAPER: Final = Paper(
    "pruning", "Bittner and Hinze", "Dimension-Based Subscription Pruning for Publish/Subscribe Systems", 2006
)

LEAST: Final = 1_000
LARGE: Final = 0.05
"""Below this scale a table is too small for the paper's shares to show."""
BENDS: Final[dict[Dimension, float]] = {"network": 0.75, "throughput": 0.5, "memory": 0.05}
CROSSING: Final = 0.43
NEAR: Final = 0.15
"""Shares of prunings that differ by no more than this are the same on curves of so few points."""
OF_ONE_CLASS: Final = 20_000
PARAMETERS: Final = {"selectivities from events": SAMPLED, "brokers": BROKERS}


def tables(lab: Lab) -> list[Row]:
    """The rows of all six figures: every dimension at every share, on the whole workload."""
    return lab.points(
        [
            {
                "dimension": dimension,
                "subscriptions": lab.size(SUBSCRIPTIONS, LEAST),
                "events": lab.size(EVENTS, LEAST),
                "class": 0,
                "steps": "fine",
            }
            for dimension in DIMENSIONS
        ],
        pruned_tables,
        alone=True,
    )


def single_classes(lab: Lab) -> list[Row]:
    """The same of each class of subscriptions alone, in the dimension whose bends the paper gives first."""
    return lab.points(
        [
            {
                "dimension": "network",
                "subscriptions": lab.size(OF_ONE_CLASS, LEAST),
                "events": lab.size(EVENTS // 10, LEAST),
                "class": kind,
                "steps": "coarse",
            }
            for kind in (1, 2, 3)
        ],
        pruned_tables,
    )


def chart(column: str, label: str, *, log: bool = False) -> Chart:
    """A column by the share of prunings, a line for each dimension."""
    return Chart("prunings", (column,), split=("dimension",), x_label="share of prunings", y_label=label, log_y=log)


@experiment(
    paper=PAPER,
    place="figure 1(a)",
    title="Filtering time in one broker",
    claim="Throughput-based pruning filters fastest up to 43% of all prunings (18% faster after 35%), network-based "
    "pruning after that; memory-based pruning is slowest.",
    paper_numbers=[{"throughput-based is fastest up to": CROSSING, "then": "network", "slowest": "memory"}],
    chart=chart("µs an event", "µs an event", log=True),
)
def figure_1a(lab: Lab) -> Outcome:
    """Time to match an event in a batch, on one thread."""
    rows = tables(lab)
    times = {dimension: curve(rows, "prunings", "µs an event", dimension=dimension) for dimension in DIMENSIONS}
    found = crossing(times["throughput"], times["network"])
    early = 1 - at(times["throughput"], 0.35) / at(times["network"], 0.35)
    whole = times["network"][0][1]
    best = {dimension: min(points, key=lambda point: point[1]) for dimension, points in times.items()}
    slowest = all(
        at(times["memory"], share) >= max(at(times[dimension], share) for dimension in DIMENSIONS[::2])
        for share in (0.5, 0.75)
    )
    matches = {
        dimension: number(only(rows, dimension=dimension, prunings=0.5), "matching share")
        * lab.size(SUBSCRIPTIONS, LEAST)
        for dimension in DIMENSIONS
    }
    crossed = "never" if found is None else f"from {found:.0%} on"
    sentence = (
        f"In the paper throughput-based pruning is fastest up to {CROSSING:.0%}, 18% ahead at 35%; here it is slower "
        f"than network-based pruning {crossed}, and {early:+.0%} ahead at 35%. Network-based pruning takes "
        f"{whole:.0f} µs without prunings and at best {best['network'][1]:.0f} (at {best['network'][0]:.0%}), "
        "throughput-based "
        f"{best['throughput'][1]:.0f} (at {best['throughput'][0]:.0%}). Memory-based pruning takes "
        f"{at(times['memory'], 0.5):,.0f} at 50%, where an event has {matches['memory']:,.0f} matches; by network load "
        f"there are {matches['network']:,.0f}, by throughput {matches['throughput']:,.0f}."
    )
    holds = found is not None and abs(found - CROSSING) <= NEAR and early > 0 and slowest
    return Outcome(rows, PARAMETERS, holds if lab.scale >= LARGE else None, sentence)


@experiment(
    paper=PAPER,
    place="figure 1(b)",
    title="Expected network load in one broker",
    claim="Matches rise only slightly up to 75% of the prunings by network load and 50% by throughput; by memory the "
    "bend is at about 5%.",
    paper_numbers=[{"dimension": dimension, "bend": share} for dimension, share in BENDS.items()],
    chart=chart("matching share", "matching pairs, of all", log=True),
)
def figure_1b(lab: Lab) -> Outcome:
    """The share of (event, subscription) pairs that match."""
    rows = tables(lab)
    classes = single_classes(lab)
    loads = {dimension: curve(rows, "prunings", "matching share", dimension=dimension) for dimension in DIMENSIONS}
    found = {dimension: bend(points) for dimension, points in loads.items()}
    growth = {dimension: at(points, BENDS[dimension]) / points[0][1] for dimension, points in loads.items()}
    ordered = all(
        at(loads["network"], share) <= at(loads["throughput"], share) <= at(loads["memory"], share)
        for share, _ in loads["network"][1:-1]
    )
    alone = [bend(curve(classes, "prunings", "matching share", **{"class": kind})) for kind in (1, 2, 3)]
    sentence = (
        f"The paper's curves bend at 75% (network), 50% (throughput) and 5% (memory); here at {_shares(found)}. At the "
        f"paper's bends matches are {growth['network']:.1f}, {growth['throughput']:.1f} and {growth['memory']:.1f} "
        f"times those without prunings. Network-based pruning adds least and memory-based most "
        f"{'at every share' if ordered else 'at some shares only'}. With one class of subscriptions alone "
        "network-based pruning bends at "
        f"{', '.join('none' if share is None else f'{share:.0%}' for share in alone)}."
    )
    holds = ordered and all(_near(found[dimension], share) for dimension, share in BENDS.items())
    panel = Panel(
        "Each class of subscriptions alone, network-based",
        classes,
        Chart("prunings", ("matching share",), split=("class",)),
    )
    return Outcome(rows, PARAMETERS, holds if lab.scale >= LARGE else None, sentence, (panel,))


def _shares(found: Mapping[Dimension, float | None]) -> str:
    return ", ".join(
        f"{'nowhere' if share is None else f'{share:.0%}'} ({dimension})" for dimension, share in found.items()
    )


def _near(found: float | None, share: float) -> bool:
    return found is not None and abs(found - share) <= NEAR


@experiment(
    paper=PAPER,
    place="figure 1(c)",
    title="Memory in one broker",
    claim="Memory-based pruning saves most predicates, at most 10% more than the others, and all are alike after 70%; "
    "network-based pruning saves 67% at 75% of its prunings.",
    paper_numbers=[{"dimension": "network", "prunings": 0.75, "fewer associations": 0.67}],
    chart=chart("fewer associations", "predicates in subscriptions, fewer by"),
)
def figure_1c(lab: Lab) -> Outcome:
    """The decrease in associations of predicates with subscriptions."""
    rows = tables(lab)
    return Outcome(rows, PARAMETERS, *memory_verdict(rows, lab.scale))


def memory_verdict(rows: Rows, scale: float) -> tuple[bool | None, str]:
    """Whether memory-based pruning saves most early, by how much, and what is saved at 75%."""
    saved = {dimension: curve(rows, "prunings", "fewer associations", dimension=dimension) for dimension in DIMENSIONS}
    ahead = {
        share: value - max(at(saved[dimension], share) for dimension in DIMENSIONS[::2])
        for share, value in saved["memory"]
        if share
    }
    early = {share: gap for share, gap in ahead.items() if share < 0.7}
    most = max(ahead, key=ahead.__getitem__)
    late = max(abs(gap) for share, gap in ahead.items() if 0.7 <= share < 1)
    network = at(saved["network"], 0.75)
    size = number(only(rows, dimension="network", prunings=0.75), "fewer bytes")
    sentence = (
        f"The paper's memory-based pruning is ahead by at most 10%, and level from 70% on; here it is "
        f"{ahead[most]:+.1%} ahead at {most:.0%}, on average {sum(early.values()) / len(early):+.1%} before 70%, and "
        f"{late:.1%} apart after. Network-based pruning saves {network:.1%} of the predicates at 75% of its prunings "
        f"(the paper: 67%), and {size:.1%} of the bytes."
    )
    holds = 0 < ahead[most] <= 0.1 and min(early.values()) >= -0.01 and late <= 0.1 and abs(network - 0.67) <= 0.1
    return (holds if scale >= LARGE else None), sentence
