"""A broker that chooses by itself what to prune by, and how far, while its load changes (P7).

Bittner and Hinze measure three dimensions and leave open which of them a system should take, and how many prunings are
best (sections 4.2 and 5). A broker with `dimension = "auto"` follows what it is measured to use; here the measurements
are counts, so that a run is the same everywhere. There are two brokers of `covey.routing`, one with the subscribers,
and one where all publications enter, whose entries are pruned. What that one uses, in each of many windows of
publications:

- memory: predicates in the entries as they are matched;
- bandwidth: events that cross the link;
- processing: steps that the paper's counting matcher takes with these entries (`counting_matcher`).

What there is of each is set so that unpruned it is used up to `TIGHT` in one of three phases. In the first all
subscriptions are there and little is published; in the second half of the subscribers have gone and much is published;
in the third more still, but nothing that anybody wants, so that only matching it takes something. Before that, half
of it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from covey.history import EventSample
from covey.lab.counted_tables import WEIGHT, paper_steps
from covey.lab.counting_matcher import CountingMatcher
from covey.lab.experiments import Chart, Outcome, Row, Rows, experiment
from covey.lab.points import Lab
from covey.lab.pruned_tables import workload
from covey.lab.pruning import PAPER
from covey.lab.readings import number, where
from covey.lab.verdicts import Check, Setting, true
from covey.lab.workloads.blocks import generator
from covey.matching import Index
from covey.relations.pruning import Load
from covey.routing import PruningOptions
from covey.routing.inspection import status
from covey.simulation.traffic import Network, line

SUBSCRIPTIONS: Final = 2_000
LEAST: Final = 300
EVENTS: Final = 10_000
"""To draw windows from, and to count selectivities on."""
WINDOW: Final = 300
"""Publications between two measurements."""
WINDOWS: Final = 20
"""Measurements in a phase: more than the search for a share needs."""
TIGHT: Final = (1.0, 0.9, 1.2)
"""How much of what there is the scarcest resource takes in its phase, without prunings."""
SLACK: Final = 0.05
"""By how much of all there is windows of one load differ."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A load, and the dimension that spares what is scarce under it."""

    name: str
    dimension: str
    subscribers: float
    """Which part of the subscriptions is there."""
    wanted: float
    """Which part of what is published anybody wants."""
    rate: float
    """Publications of a window stand for this many times as many."""


PHASES: Final = (
    Phase("memory", "memory", 1.0, 0.5, 0.4),
    Phase("bandwidth", "network", 0.5, 0.5, 1.0),
    Phase("processing", "throughput", 0.5, 0.0, 3.0),
)


class Measurer:
    """The two brokers, and what the first uses of each resource."""

    def __init__(self, point: Row) -> None:
        self.drawn, events = workload(point)
        self._rng = generator(cast(int, point["seed"]), "windows of a load")
        listed: list[dict[str, Any]] = [
            {name: value for name, value in event.items() if value is not None} for event in events.to_pylist()
        ]
        index = Index()
        index.add_many(self.drawn[: len(self.drawn) // 2])
        found = index.match_batch(listed).counts()
        self._wanted = [event for event, count in zip(listed, found.tolist(), strict=True) if count]
        self._unwanted = [event for event, count in zip(listed, found.tolist(), strict=True) if not count]
        self.network = Network(
            line(2), strategy="simple", check=False, pruning=PruningOptions("auto", 0.0), chances=EventSample(events)
        )
        self.network.join("publisher", "b1")
        self.network.join("subscribers", "b2")
        self._wants = Index()

    def subscribe(self, part: float) -> None:
        """From now on the first of the subscriptions are there."""
        kept = self.drawn[: round(part * len(self.drawn))]
        self.network.load("subscribers", kept)
        self._wants = Index()
        self._wants.add_many(kept)

    def window(self, wanted: float) -> tuple[Row, int]:
        """Publish some, and count what that takes; and how many events got lost."""
        count = round(wanted * WINDOW)
        drawn = [(self._wanted, count), (self._unwanted, WINDOW - count)]
        events = [source[at] for source, some in drawn for at in self._rng.integers(0, len(source), some).tolist()]
        self.network.reset()
        self.network.publish("publisher", events)
        traffic = self.network.traffic()
        matcher = CountingMatcher(list(self.network.brokers["b1"].table.entries("p:b2").values()))
        steps = [matcher.match(event) for event in events]
        counted = {"counted": sum(one.counted for one in steps), "evaluated": sum(one.evaluated for one in steps)}
        used: Row = {
            "memory": traffic.tables["b1"].predicates, "bandwidth": traffic.forwarded,
            "processing": paper_steps(counted, WEIGHT),
        }  # fmt: skip
        lost = int(np.count_nonzero(self._wants.match_batch(events).counts())) - traffic.deliveries
        return used, lost


def followed(point: Row) -> list[Row]:
    """All windows of all phases: what is used of what there is, and what is in force."""
    measurer = Measurer(point)
    tight = cast(float, point["tight"])
    there: dict[str, float] = {}
    for phase in PHASES:  # What there is: by a window of each phase, before anything is measured and so pruned.
        measurer.subscribe(phase.subscribers)
        used, _ = measurer.window(phase.wanted)
        there[phase.name] = number(used, phase.name) * _rate(phase, phase.name) / tight
    rows: list[Row] = []
    for phase in PHASES:
        measurer.subscribe(phase.subscribers)
        for _ in range(WINDOWS):
            before = status(measurer.network.brokers["b1"]).pruning
            assert before is not None
            used, lost = measurer.window(phase.wanted)
            load = {name: number(used, name) * _rate(phase, name) / there[name] for name in there}
            measurer.network.measure("b1", Load(load["memory"], load["bandwidth"], load["processing"]))
            rows.append(
                {
                    "window": len(rows) + 1,
                    "load": phase.name,
                    "pruned by": before.dimension,
                    "share of prunings": before.share,
                    **{name: round(part, 4) for name, part in load.items()},
                    "lost": lost,
                }
            )
    return rows


def _rate(phase: Phase, resource: str) -> float:
    return 1.0 if resource == "memory" else phase.rate


@experiment(
    paper=PAPER,
    place="sections 4.2 and 5",
    title="What to prune by, and how far, while the load changes",
    claim="Which dimension a system should prune by depends on what it has least of; how many prunings are best is "
    "left open.",
    chart=Chart(
        "window", ("memory", "bandwidth", "processing", "share of prunings"), y_label="use of what there is, and share"
    ),
)
def by_load(lab: Lab) -> Outcome:
    """Three loads after each other, by how tight each is."""
    size = lab.size(SUBSCRIPTIONS, LEAST)
    points: list[Row] = [{"tight": tight, "subscriptions": size, "events": EVENTS, "class": 0} for tight in TIGHT]
    rows = lab.points(points, followed)
    settings = tuple(
        Setting(f"unpruned at {tight:.0%} of what there is", _checks(where(rows, tight=tight))) for tight in TIGHT
    )
    first = where(rows, tight=TIGHT[0])
    told = ", ".join(
        f"by {_last(first, phase)['pruned by']} to {number(_last(first, phase), 'share of prunings'):.0%} under "
        f"{phase.name}, where that takes {number(_last(first, phase), phase.name):.0%} of what there is"
        for phase in PHASES
    )
    sentence = f"The broker prunes {told}; without prunings it would be {TIGHT[0]:.0%} in each."
    parameters = {"windows of a load": WINDOWS, "publications a window": WINDOW, "weight of an evaluation": WEIGHT}
    return Outcome(first, parameters, settings, sentence, telling=size == SUBSCRIPTIONS)


def _last(rows: Rows, phase: Phase) -> Row:
    return dict(where(rows, load=phase.name)[-1])


def _checks(rows: Rows) -> tuple[Check, ...]:
    follows = [
        true(f"under {phase.name} it prunes by {phase.dimension}", _last(rows, phase)["pruned by"] == phase.dimension)
        for phase in PHASES
    ]
    tight = max(number(row, "tight") for row in rows)
    spent = [
        Check(
            f"of what is scarcest in the end under {phase.name}", "no more than unpruned",
            max(number(_last(rows, phase), resource.name) for resource in PHASES), high=tight + SLACK,
        )
        for phase in PHASES
    ]  # fmt: skip
    return (*follows, *spent, Check("lost events", "0", sum(number(row, "lost") for row in rows), 0.0, 0.0, ""))
