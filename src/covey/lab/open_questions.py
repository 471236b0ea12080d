"""What the five papers left open, in their last sections or between the lines, and where the answer can be tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Question:
    """A question, whose it is, what covey does about it, and the experiments that show it."""

    paper: str
    question: str
    answer: str
    experiments: tuple[str, ...] = ()


QUESTIONS: Final[tuple[Question, ...]] = (
    Question(
        "Bittner and Hinze",
        "Which dimension should be pruned by, and how many prunings are best?",
        'A broker with dimension = "auto" measures its load, prunes by the dimension of what is scarcest, and looks '
        "for the share of prunings that costs least; the search starts again when the cost drifts. covey status, the "
        "metrics and the console show the choice.",
        ("pruning-sections-4-2-and-5", "pruning-figure-1-a", "pruning-figure-1-d"),
    ),
    Question(
        "Jafarpour et al.",
        "How should k be chosen, and what is split first?",
        "Brokers and NegativeSpace take k, a metric, a dynamic threshold and a rebuild; the default metric, benefit "
        "for the cost, leaves fewest rectangles.",
        ("negative-space-figure-12", "negative-space-figure-13", "negative-space-section-4-unsubscription"),
    ),
    Question(
        "Li, Hou and Jacobsen",
        "Is the merging threshold a bound on the degree, or on degree times traffic?",
        'Either, by measure: "degree" or "traffic". With advertisements the degree counts only what is advertised.',
        ("modified-bdds-figure-14", "modified-bdds-figure-15"),
    ),
    Question(
        "Li, Hou and Jacobsen",
        "What becomes of the threshold where a merger is merged again, broker after broker?",
        "An entry carries what it has spent, and the next broker counts that in; each hop of a path stays within the "
        'threshold. With bounds = "hop" each broker spends it by itself, as in the paper.',
        ("modified-bdds-section-5-3-chained",),
    ),
    Question(
        "Mühl et al.",
        "Does it pay to stop filtering on a link where most events match?",
        "Where the sender then leaves that neighbour's entries out of matching, as brokers with [adaptive] do; else "
        "it only adds traffic.",
    ),
    Question(
        "Campailla et al.",
        "Does an order of variables help?",
        "Not for their kind of queries, where little is shared; the order learned from history is there to be tried.",
        ("campailla-section-7-orders",),
    ),
)
