"""Li, Hou and Jacobsen, figures 14 and 15: what the imperfect merging threshold buys, and what it costs.

The set of these figures is only known to have 100,000 subscriptions, of which covering and perfect merging leave
32,852. The threshold bounds a merger's imperfect degree times its chance (section 5.3), which is the part of all
publications that it lets through in vain; a panel bounds the degree alone.
"""

from __future__ import annotations

from typing import Final

from covey.lab.experiments import Chart, Outcome, Panel, Row, Rows, experiment
from covey.lab.merged_tables import merged_tables
from covey.lab.modified_bdds import IMT, LARGE, LEAST, NEAR, PAPER
from covey.lab.points import Lab
from covey.lab.readings import number, only, where
from covey.lab.workloads.predicate_pools import IMT_SUBSCRIPTIONS

LEFT: Final = 32_852
PUBLICATIONS: Final = 5_000
BEND: Final = 0.15
TOLERATED, TOLERATED_BELOW = 0.025, 0.1
ADVERTISED: Final = 0.5
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
    other = lab.points([_point(lab, "traffic", share, "coarse") for share in (0.75, 0.25)], merged_tables)
    everything, known = where(rows, advertised=1.0), where(rows, advertised=ADVERTISED)
    first, bend, last = (number(only(everything, imt=imt), "entries") for imt in (0.0, BEND, 1.0))
    before, after = (first - bend) / BEND, (bend - last) / (1 - BEND)
    gained = {number(row, "imt"): _gained(everything, known, number(row, "imt")) for row in everything}
    sentence = (
        f"The paper has {LEFT:,} entries at IMT 0, here {first:,.0f}: the set's skew was chosen for that. Up to "
        f"{BEND} the table loses {first - bend:,.0f} "
        f"of the {first - last:,.0f} that it ever loses, {before / max(after, 1e-9):.1f} times as many for each unit "
        f"of the threshold as beyond. Knowing that {ADVERTISED:.0%} of the range of four attributes is advertised "
        f"takes another {gained[IMT]:.1%} off at IMT {IMT} "
        f"({_gained(where(degree, advertised=1.0), where(degree, advertised=ADVERTISED), IMT):.1%} where the threshold "
        "bounds the degree alone)."
    )
    holds = abs(first - LEFT) <= NEAR * LEFT and before >= FLATTER * after and gained[IMT] > 0
    panels = (
        Panel("The threshold bounds the degree, not degree times chance", degree),
        Panel("Other advertised parts of four attributes", other),
    )
    return Outcome(rows, {"pieces": 1}, holds if lab.scale >= LARGE else None, sentence, panels)


def _gained(everything: Rows, known: Rows, imt: float) -> float:
    """The part of the entries that knowing advertisements saves."""
    return 1 - number(only(known, imt=imt), "entries") / number(only(everything, imt=imt), "entries")


@experiment(
    paper=PAPER,
    place="figure 15",
    title="False positives by the imperfect merging threshold",
    claim="A threshold below 0.1 keeps false positives within 2.5% of the publications that match.",
    chart=Chart("imt", ("false events", "false pairs"), split=("advertised",), y_label="false, of all that match"),
)
def figure_15(lab: Lab) -> Outcome:
    """The tables of figure 14. A publication that anybody wants is no false positive; an entry's match may be."""
    rows = _main(lab)
    everything = where(rows, advertised=1.0)
    below = [row for row in everything if number(row, "imt") < TOLERATED_BELOW]
    worst, at, last = (
        max(number(row, "false pairs") for row in some)
        for some in (below, where(everything, imt=IMT), where(everything, imt=1.0))
    )
    events = max(number(row, "false events") for row in below)
    wanted = number(everything[0], "wanted") / number(everything[0], "publications")
    sentence = (
        f"The paper stays within {TOLERATED:.1%} below IMT {TOLERATED_BELOW}. Here {wanted:.1%} of the publications "
        f"are wanted by somebody, and at most {events:.2%} of those forwarded are false; of the matches of single "
        f"entries {worst:.2%} are in vain below IMT {TOLERATED_BELOW}, {at:.2%} at {IMT} and {last:.2%} at 1."
    )
    holds = max(worst, events) <= TOLERATED
    return Outcome(rows, {"pieces": 1}, holds if lab.scale >= LARGE else None, sentence)
