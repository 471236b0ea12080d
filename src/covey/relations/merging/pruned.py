"""Imperfect mergers of Boolean filters: the disjunction of the parts, pruned.

A perfect merger of filters of any shape is their disjunction. Removing parts of it, those first that let it grow least
(`covey.relations.pruning`), gives shorter filters that match more; the shortest within the threshold is the merger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from covey.events.meaning import Meaning
from covey.filters.algebra import Filter, any_of
from covey.relations.merging.degrees import imperfect_degree
from covey.relations.merging.uniform import Uniform
from covey.relations.pruning import Pruner

if TYPE_CHECKING:
    from covey.history import Chances

MOST_PRUNINGS = 64
"""Prunings that are tried; each is judged by a count on the sample."""


def pruned_disjunction(
    parts: Sequence[Filter],
    *,
    chances: Chances | None,
    advertisements: Sequence[Filter],
    imt: float,
    meaning: Meaning,
) -> tuple[Filter, float] | None:
    """The disjunction of the parts, pruned as far as the threshold allows, and its degree; None where no pruning is."""
    if meaning.semantics == "strict":
        return None  # a disjunction asks for every attribute that it names, so it covers no part of its own
    source = chances if chances is not None else Uniform.around(parts)
    pruner = Pruner([("merger", any_of(parts))], source, "network", meaning.semantics)
    found: tuple[Filter, float] | None = None
    for _ in range(MOST_PRUNINGS):
        if not pruner.prune(count=1):
            break
        shorter = pruner.filter("merger")
        degree = imperfect_degree(shorter, parts, source, advertisements=advertisements, meaning=meaning)
        if degree > imt:
            break
        found = shorter, degree
    return found
