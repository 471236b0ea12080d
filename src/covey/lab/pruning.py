"""Bittner and Hinze, figure 1 (a) to (c): pruning by network load, memory and throughput, in one broker.

The paper prunes subscriptions of online book auctions, 200,000 of them, and publishes 100,000 events. Of its three
classes of subscriptions and its distributions only the names are known; `workloads.auctions` draws what stands for
them, and each class alone is the range. Its matcher counts fulfilled predicates, so fewer predicates mean less work:
time is shown as the steps of such a matcher (`counted_tables`), and beside it covey's own, which finds subscriptions by
their rarest member and then takes time by what matches.
"""

from __future__ import annotations

from typing import Final

from covey.lab.counted_tables import EVENTS as COUNTED_EVENTS
from covey.lab.counted_tables import SAMPLE, WEIGHT, WEIGHTS, counted_tables, paper_steps
from covey.lab.curves import Curve, at, bend, crossing, curve
from covey.lab.experiments import Chart, Outcome, Panel, Paper, Row, Rows, experiment
from covey.lab.points import Lab
from covey.lab.pruned_tables import BROKERS, SAMPLED, pruned_tables
from covey.lab.readings import number, only, where
from covey.lab.verdicts import Check, Setting, near, true
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
LEAD, LEAD_AT = 0.18, 0.35
NEAR: Final = 0.15
"""Shares of prunings that differ by no more than this are the same on curves of so few points."""
CLASSES: Final = (1, 2, 3)
OF_ONE_CLASS: Final = 20_000
COUNTED_OF_ONE_CLASS: Final = 5_000
PARAMETERS: Final = {"selectivities from events": SAMPLED, "brokers": BROKERS}


def tables(lab: Lab) -> list[Row]:
    """Every dimension at every share, on the whole workload, by covey's index."""
    size, events = lab.size(SUBSCRIPTIONS, LEAST), lab.size(EVENTS, LEAST)
    points: list[Row] = [
        {"dimension": dimension, "subscriptions": size, "events": events, "class": 0, "steps": "fine"}
        for dimension in DIMENSIONS
    ]
    return lab.points(points, pruned_tables, alone=True)


def single_classes(lab: Lab) -> list[Row]:
    """The same of each class of subscriptions alone, at fewer shares."""
    size, events = lab.size(OF_ONE_CLASS, LEAST), lab.size(EVENTS // 10, LEAST)
    points: list[Row] = [
        {"dimension": dimension, "subscriptions": size, "events": events, "class": kind, "steps": "coarse"}
        for kind in CLASSES
        for dimension in DIMENSIONS
    ]
    return lab.points(points, pruned_tables)


def counted(lab: Lab) -> tuple[list[Row], list[Row]]:
    """Steps of the counting matcher: on the mixture of classes, and on each alone."""

    def point(dimension: Dimension, kind: int) -> Row:
        return {
            "dimension": dimension,
            "subscriptions": lab.size(COUNTED_OF_ONE_CLASS if kind else SAMPLE, LEAST),
            "events": SAMPLED if lab.scale == 1 else lab.size(SAMPLED, LEAST),
            "counted events": lab.size(COUNTED_EVENTS, 100),
            "class": kind,
            "steps": "coarse" if kind else "fine",
        }

    mixed = lab.points([point(dimension, 0) for dimension in DIMENSIONS], counted_tables)
    alone = lab.points([point(dimension, kind) for kind in CLASSES for dimension in DIMENSIONS], counted_tables)
    return mixed, alone


def chart(column: str, label: str, *, log: bool = False) -> Chart:
    """A column by the share of prunings, a line for each dimension."""
    return Chart("prunings", (column,), split=("dimension",), x_label="share of prunings", y_label=label, log_y=log)


def by_dimension(rows: Rows, column: str) -> dict[Dimension, Curve]:
    """A column's curve for each dimension."""
    return {dimension: curve(rows, "prunings", column, dimension=dimension) for dimension in DIMENSIONS}


@experiment(
    paper=PAPER,
    place="figure 1(a)",
    title="Filtering time in one broker",
    claim="Throughput-based pruning filters fastest up to 43% of all prunings (18% faster after 35%), network-based "
    "pruning after that; memory-based pruning is slowest.",
    paper_numbers=[{"throughput-based is fastest up to": CROSSING, "then": "network", "slowest": "memory"}],
    chart=chart("steps", "steps of a counting matcher"),
)
def figure_1a(lab: Lab) -> Outcome:
    """Steps of the counting matcher, and beside them the time that covey takes for an event in a batch."""
    mixed, alone = counted(lab)
    own = tables(lab)
    rows = [row | {"steps": round(paper_steps(row), 1)} for row in mixed]
    settings = [
        Setting(f"an evaluated predicate at {weight:g} of a counted one", _time_checks(mixed, weight))
        for weight in (WEIGHT, *(weight for weight in WEIGHTS if weight != WEIGHT))
    ]
    settings += [Setting(f"class {kind} alone", _time_checks(where(alone, **{"class": kind}))) for kind in CLASSES]
    times = by_dimension(own, "µs an event")
    least = {dimension: min(y for _, y in points) for dimension, points in times.items()}
    found = crossing(times["throughput"], times["network"])
    crossed = "is never behind network-based pruning" if found is None else f"falls behind from {found:.0%} on"
    sentence = (
        "A counting matcher has less to count with every pruning; covey's finds a subscription by its rarest test and "
        f"has hardly less to do: {times['network'][0][1]:.0f} µs an event without prunings, at best "
        f"{least['network']:.0f} by network load and {least['throughput']:.0f} by throughput, which {crossed}. "
        "What costs it time is what matches more: memory-based pruning takes "
        f"{at(times['memory'], 0.5):,.0f} µs at 50%."
    )
    panel = Panel("covey's own matcher, in batches on one thread", own, chart("µs an event", "µs an event", log=True))
    parameters = PARAMETERS | {"weight of an evaluated predicate": WEIGHT, "subscriptions": lab.size(SAMPLE, LEAST)}
    return Outcome(rows, parameters, tuple(settings), sentence, (panel,), lab.scale >= LARGE)


def _time_checks(rows: Rows, weight: float = WEIGHT) -> tuple[Check, ...]:
    """The claims of figure 1(a) on some counted rows. After all prunings every dimension has left the same, so the last
    share says nothing about which is ahead."""
    weighed = [dict(row) | {"steps": paper_steps(row, weight)} for row in rows if number(row, "prunings") < 1]
    steps = by_dimension(weighed, "steps")
    lead = 1 - at(steps["throughput"], LEAD_AT) / at(steps["network"], LEAD_AT)
    slowest = all(
        at(steps["memory"], share) >= max(at(steps["network"], share), at(steps["throughput"], share))
        for share in (0.5, 0.75)
    )
    return (
        near("throughput-based is fastest up to", CROSSING, crossing(steps["throughput"], steps["network"]), NEAR),
        near("its lead at 35% is", LEAD, lead, NEAR),
        true("memory-based is slowest", slowest),
    )


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
    rows, classes = tables(lab), single_classes(lab)
    loads = by_dimension(rows, "matching share")
    growth = {dimension: at(points, BENDS[dimension]) / points[0][1] for dimension, points in loads.items()}
    settings = [Setting("all three classes", _load_checks(rows))]
    settings += [Setting(f"class {kind} alone", _load_checks(where(classes, **{"class": kind}))) for kind in CLASSES]
    sentence = (
        f"At the paper's bends matches are {growth['network']:.1f} (network), {growth['throughput']:.1f} (throughput) "
        f"and {growth['memory']:.1f} (memory) times those without prunings: the estimate of selectivity that "
        "network-based pruning goes by is what keeps the load low for longest."
    )
    panel = Panel(
        "Each class of subscriptions alone",
        classes,
        Chart("prunings", ("matching share",), split=("class", "dimension"), log_y=True),
    )
    return Outcome(rows, PARAMETERS, tuple(settings), sentence, (panel,), lab.scale >= LARGE)


def _load_checks(rows: Rows) -> tuple[Check, ...]:
    loads = by_dimension(rows, "matching share")
    shares = [share for share, _ in loads["network"][1:-1]]
    ordered = all(
        at(loads["network"], share) <= at(loads["throughput"], share) <= at(loads["memory"], share) for share in shares
    )
    bends = [near(f"bend by {name}", share, bend(loads[name]), NEAR) for name, share in BENDS.items()]
    return (*bends, true("least load by network, most by memory, at every share", ordered))


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
    return Outcome(rows, PARAMETERS, memory_settings(lab), memory_sentence(rows), (), lab.scale >= LARGE)


def memory_settings(lab: Lab) -> tuple[Setting, ...]:
    """The claims of figure 1(c), on all classes and on each alone."""
    classes = single_classes(lab)
    alone = [Setting(f"class {kind} alone", _memory_checks(where(classes, **{"class": kind}))) for kind in CLASSES]
    return (Setting("all three classes", _memory_checks(tables(lab))), *alone)


def _memory_checks(rows: Rows) -> tuple[Check, ...]:
    saved = by_dimension(rows, "fewer associations")
    ahead = {
        share: value - max(at(saved["network"], share), at(saved["throughput"], share))
        for share, value in saved["memory"]
        if share
    }
    early = [gap for share, gap in ahead.items() if share < 0.7]
    late = [abs(gap) for share, gap in ahead.items() if 0.7 <= share < 1]
    return (
        Check("memory-based is ahead by at most", "10%", max(ahead.values()), 0.0001, 0.1),
        Check("and before 70% behind by at most", "0%", max(0.0, -min(early)), None, 0.01),
        Check("all are apart after 70% by at most", "little", max(late), None, 0.1),
        near("network-based saves at 75%", 0.67, at(saved["network"], 0.75), 0.1),
    )


def memory_sentence(rows: Rows) -> str:
    """What pruning saves in bytes, which the paper doesn't count."""
    size = number(only(rows, dimension="network", prunings=0.75), "fewer bytes")
    most = number(only(rows, dimension="memory", prunings=0.5), "fewer bytes")
    less = number(only(rows, dimension="network", prunings=0.5), "fewer bytes")
    return (
        f"In bytes, which the paper doesn't count, network-based pruning saves {size:.1%} at 75%; at half of the "
        f"prunings memory-based pruning saves {most:.1%} of them and network-based {less:.1%}."
    )
