"""What becomes of mergers that are merged again: the imperfect merging threshold along a line of brokers (R9).

Li, Hou and Jacobsen bound a merger's imperfect degree where it is made (section 5.3), and say nothing of the next
broker, which knows the merger and not what it is made of. Here six brokers stand in a line, each with subscribers, and
all publications enter at the last. For each link: how much of what crosses it nobody beyond wants, where each broker
spends the threshold by itself, and where mergers carry what they have spent.

Two kinds of interest. *Stairs*: each broker's rectangles are a bit higher and much narrower than those of the broker
before, so that each hull with them is within the threshold and wider than all before; the worst that was found. *Near*:
rectangles at random around places that lie beside each other from broker to broker.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, cast

import numpy as np

from covey.lab.experiments import Chart, Outcome, Row, experiment
from covey.lab.modified_bdds import PAPER
from covey.lab.points import Lab
from covey.lab.readings import number, where
from covey.lab.verdicts import Check, Setting
from covey.lab.workloads.blocks import generator
from covey.relations.merging import MergingPolicy, Uniform
from covey.routing import MergingOptions
from covey.simulation.traffic import Network, line

BROKERS: Final = 6
THRESHOLDS: Final = (0.1, 0.2)
INTERESTS: Final = ("stairs", "near")
BOUNDS: Final = ("hop", "path")
Bounds: TypeAlias = Literal["hop", "path"]
PUBLICATIONS: Final = 20_000
SIDE: Final = 1_000
"""Coordinates are integers below this."""
STAIRS: Final = 4
"""Stairs beside each other."""
LOWEST: Final = 200
NARROW: Final = 0.4
SPENT: Final = 0.8
PLACES: Final = 5
NEAR_SUBSCRIPTIONS: Final = 10
"""Of each broker."""
MERGED: Final = 61.0
"""Seconds after which all brokers have merged once."""


def chain(point: Row) -> list[Row]:
    """One line of brokers: what crosses each link, and what of it nobody beyond wants."""
    imt, seed = cast(float, point["imt"]), cast(int, point["seed"])
    rng = generator(seed, f"chain of {point['interest']}")
    network = Network(
        line(BROKERS),
        strategy="merging",
        merging=MergingOptions(imt, MergingPolicy(every=MERGED - 1), bounds=cast(Bounds, point["bounds"])),
        chances=Uniform({"x": (0, SIDE - 1), "y": (0, SIDE - 1)}, seed=seed),
    )
    for at in range(BROKERS):
        network.join(f"c{at}", f"b{at + 1}")
        filters = stairs(at, imt) if point["interest"] == "stairs" else near_places(at, rng)
        network.subscribe(f"c{at}", {f"s{number}": text for number, text in enumerate(filters)})
    network.join("publisher", f"b{BROKERS}")
    for _ in range(BROKERS):
        network.wait(MERGED)
    network.reset()
    drawn = rng.integers(0, SIDE, (cast(int, point["publications"]), 2)).tolist()
    network.publish("publisher", [{"x": x, "y": y} for x, y in drawn], batch=500)
    traffic = network.traffic()
    rows: list[Row] = []
    for hop in range(1, BROKERS):
        link = traffic.links[f"b{hop + 1}", f"b{hop}"]
        rows.append(
            {
                "hop": hop,
                "forwarded": link.forwarded,
                "in vain": round(link.in_vain, 4),
                "entries": traffic.tables[f"b{hop + 1}"].neighbours,
                "false deliveries": traffic.false_deliveries,
            }
        )
    return rows


def stairs(at: int, imt: float) -> list[str]:
    """A broker's rectangles: the first broker's are wide, each later one's narrow and a step higher, so that its hull
    with what is below has `SPENT` of the threshold in vain."""
    width = SIDE // STAIRS
    own = width if at == 0 else round(width * NARROW)
    height = round(LOWEST / (1 - SPENT * imt / (1 - NARROW)) ** at)
    return [f"x >= {left} AND x < {left + own} AND y < {height}" for left in range(0, SIDE, width)]


def near_places(at: int, rng: np.random.Generator) -> list[str]:
    """A broker's rectangles: each at one of some places, a bit beside those of the broker before."""
    texts = []
    for _ in range(NEAR_SUBSCRIPTIONS):
        place = int(rng.integers(PLACES))
        wide, high = (int(length) for length in rng.integers(60, 120, 2))
        x = min(max(0, 100 * (at + 1) + int(rng.integers(-60, 70))), SIDE - wide)
        y = min(max(0, SIDE * place // PLACES + int(rng.integers(-30, 40))), SIDE - high)
        texts.append(f"x >= {x} AND x < {x + wide} AND y >= {y} AND y < {y + high}")
    return texts


@experiment(
    paper=PAPER,
    place="section 5.3, chained",
    title="False positives along a line of brokers",
    claim="The threshold bounds what mergers let through in vain. The paper merges at every broker and doesn't say "
    "what becomes of a merger that is merged again.",
    chart=Chart(
        "hop", ("in vain",), split=("bounds", "imt", "interest"), x_label="hop", y_label="in vain, of what crosses"
    ),
)
def chained(lab: Lab) -> Outcome:
    """Two thresholds and two kinds of interest, by hop and by path."""
    points: list[Row] = [
        {"interest": interest, "imt": imt, "bounds": bounds, "publications": lab.size(PUBLICATIONS, 2_000)}
        for interest in INTERESTS
        for imt in THRESHOLDS
        for bounds in BOUNDS
    ]
    rows = lab.points(points, chain)

    def worst(**asked: str | float) -> float:
        return max(number(row, "in vain") for row in where(rows, **asked))

    settings = tuple(
        Setting(
            f"{interest}, IMT {imt:g}",
            (
                Check(
                    f"at the worst hop, carried, of IMT {imt:g}",
                    f"{imt:.0%}",
                    worst(interest=interest, imt=imt, bounds="path"),
                    None,
                    imt,
                ),
            ),
        )
        for interest in INTERESTS
        for imt in THRESHOLDS
    )
    told = "; ".join(
        f"{worst(interest=interest, imt=imt, bounds='hop'):.1%} where each of {BROKERS} brokers spends {imt:g} alone"
        f", {worst(interest=interest, imt=imt, bounds='path'):.1%} where mergers carry what is spent ({interest})"
        for interest in INTERESTS
        for imt in THRESHOLDS
    )
    return Outcome(
        rows, {"brokers": BROKERS, "stairs": STAIRS, "places": PLACES}, settings, f"At the worst hop {told}."
    )
