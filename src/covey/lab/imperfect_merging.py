"""Li, Hou and Jacobsen, figures 14 and 15: what the imperfect merging threshold buys, and what it costs.

The set of these figures is only known to have 100,000 subscriptions, of which covering and perfect merging leave
32,852. The threshold bounds a merger's imperfect degree times its chance (section 5.3), which is the part of all
publications that it lets through in vain; a panel bounds the degree alone.

Where everything is wanted by somebody no publication can be false. So false positives are read off tables of several
sizes, down to some that leave most publications unwanted.
"""

from __future__ import annotations

from typing import Final

from covey.lab.experiments import Chart, Outcome, Panel, Row, Rows, experiment
from covey.lab.merged_tables import merged_tables
from covey.lab.modified_bdds import IMT, LARGE, LEAST, NEAR, PAPER
from covey.lab.points import Lab
from covey.lab.readings import number, only, where
from covey.lab.verdicts import Check, Setting, near
from covey.lab.workloads.predicate_pools import IMT_SUBSCRIPTIONS

LEFT: Final = 32_852
PUBLICATIONS: Final = 5_000
BEND: Final = 0.15
TOLERATED, TOLERATED_BELOW = 0.025, 0.1
ADVERTISED: Final = 0.5
OTHER_ADVERTISED: Final = (0.75, 0.25)
SIZES: Final = (50, 200, 1_000, 5_000)
"""Subscriptions that leave publications unwanted."""
FLATTER: Final = 3.0
"""How many times less a table must shrink for each unit of the threshold above 0.15 to have a bend there."""


def _point(lab: Lab, measure: str, advertised: float, steps: str) -> Row:
    return {
        "set": "IMT",
        "subscriptions": lab.size(IMT_SUBSCRIPTIONS, LEAST),
        "publications": lab.size(PUBLICATIONS, 200),
        "measure": measure,
        "advertised": advertised,
        "steps": steps,
    }


def _main(lab: Lab) -> list[Row]:
    """The rows of both figures, with everything advertised and with a part."""
    return lab.points([_point(lab, "traffic", share, "fine") for share in (1.0, ADVERTISED)], merged_tables)


@experiment(
    paper=PAPER,
    place="figure 14",
    title="Routing table size by the imperfect merging threshold",
    claim="100,000 subscriptions become 32,852 at IMT 0; most mergers come up to 0.15, after which the table shrinks "
    "only slightly; knowing advertisements it shrinks further.",
    paper_numbers=[{"imt": 0.0, "advertised": 1.0, "entries": LEFT}],
    chart=Chart("imt", ("entries",), split=("advertised",), y_label="entries"),
)
def figure_14(lab: Lab) -> Outcome:
    """Thresholds with and without an advertisement; other advertisements; the degree instead of degree times chance."""
    rows = _main(lab)
    degree = lab.points([_point(lab, "degree", share, "coarse") for share in (1.0, ADVERTISED)], merged_tables)
    other = lab.points([_point(lab, "traffic", share, "coarse") for share in OTHER_ADVERTISED], merged_tables)
    everything, known = where(rows, advertised=1.0), where(rows, advertised=ADVERTISED)
    first, bend, last = (number(only(everything, imt=imt), "entries") for imt in (0.0, BEND, 1.0))
    steeper = ((first - bend) / BEND) / max((bend - last) / (1 - BEND), 1e-9)
    sentence = (
        f"The set's skew was chosen for the entries at IMT 0. Up to {BEND} the table loses {first - bend:,.0f} of the "
        f"{first - last:,.0f} that it ever loses. Where the threshold bounds the degree alone, knowing advertisements "
        f"takes {_gained(where(degree, advertised=1.0), where(degree, advertised=ADVERTISED), IMT):.1%} off at IMT "
        f"{IMT}."
    )
    bent = Check("up to 0.15 it shrinks faster than beyond, by", "most", steeper, FLATTER, None, "×")
    same = near("entries at IMT 0, of the paper's 32,852,", 1.0, first / LEFT, NEAR)
    settings = [
        Setting(
            f"{share:.0%} of four attributes advertised",
            (same, bent, Check("advertisements take off", "more", _gained(everything, some, IMT), 0.0001, None)),
        )
        for share, some in (
            (ADVERTISED, known),
            *((share, where(other, advertised=share)) for share in OTHER_ADVERTISED),
        )
    ]
    panels = (
        Panel("The threshold bounds the degree, not degree times chance", degree),
        Panel("Other advertised parts of four attributes", other),
    )
    return Outcome(rows, {"pieces": 1}, tuple(settings), sentence, panels, lab.scale >= LARGE)


def _gained(everything: Rows, known: Rows, imt: float) -> float:
    """The part of the entries that knowing advertisements saves."""
    return 1 - number(only(known, imt=imt), "entries") / number(only(everything, imt=imt), "entries")


@experiment(
    paper=PAPER,
    place="figure 15",
    title="False positives by the imperfect merging threshold",
    claim="A threshold below 0.1 keeps false positives within 2.5% of the publications that match.",
    chart=Chart("imt", ("false events", "false pairs"), split=("size",), y_label="false, of all that match"),
)
def figure_15(lab: Lab) -> Outcome:
    """Tables of several sizes, merged at every threshold. A publication that anybody wants is no false positive; an
    entry's match may be."""
    sizes = sorted({lab.size(size, min(size, 200)) for size in SIZES})
    points = [_point(lab, "traffic", 1.0, "fine") | {"subscriptions": size} for size in sizes]
    by = {
        size: where(lab.points([point], merged_tables), subscriptions=size)
        for size, point in zip(sizes, points, strict=True)
    }
    whole = where(_main(lab), advertised=1.0)
    by[int(number(whole[0], "subscriptions"))] = whole
    settings = tuple(
        Setting(f"{size:,} subscriptions, {_wanted(rows):.1%} of publications wanted", _false_checks(rows))
        for size, rows in by.items()
    )
    rows = [{"size": size, **row} for size, some in by.items() for row in some]
    last = [max(number(row, "false events") for row in where(some, imt=1.0)) for some in by.values()]
    sentence = (
        f"False publications show where few are wanted: at IMT 1 up to {max(last):.1%} of those forwarded are false. "
        "With ever more subscriptions somebody wants every publication, and only single entries' matches can be false."
    )
    return Outcome(rows, {"pieces": 1}, settings, sentence, (), lab.scale >= LARGE)


def _wanted(rows: Rows) -> float:
    return number(rows[0], "wanted") / number(rows[0], "publications")


def _false_checks(rows: Rows) -> tuple[Check, ...]:
    below = [row for row in rows if number(row, "imt") < TOLERATED_BELOW]
    return (
        Check(
            "false of the publications forwarded, below IMT 0.1",
            "2.5%",
            max(number(row, "false events") for row in below),
            None,
            TOLERATED,
        ),
        Check("of entries' matches", "2.5%", max(number(row, "false pairs") for row in below), None, TOLERATED),
    )
