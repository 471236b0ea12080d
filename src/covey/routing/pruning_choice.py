"""By which dimension a broker prunes, and how far: fixed by its configuration, or followed from measurements (P7).

A broker has no clock and sees no memory, so what it uses of three resources comes in as an input, `Measured`. With
`dimension = "auto"` each measurement does two things (`covey.relations.pruning.control`). How far to prune is searched
for, up to where the dimension pays: the cost of a share of all prunings is the use of the scarcest resource while it is
in force, the next share is tried, and the best one stays until its cost drifts. The dimension becomes that of the
scarcest resource, where it is scarcer by a margin, and another dimension starts the search anew.

Prunings move use from one resource to another, so the dimension is judged while there are none, which is how every
search starts: that memory-based prunings have made enough room is no reason to undo them, and that they fill links
none to prune for links. Where another resource becomes scarce under prunings, the search starts again, and its first
measurement tells whether the load has changed; if it was the prunings, their cost says so, and it isn't asked again
until that drifts.
"""

from __future__ import annotations

from typing import Final

from covey.relations.pruning.control import (
    MEMORY_PAYS,
    PRESSING,
    THROUGHPUT_PAYS,
    CountSearch,
    Load,
    choose_dimension,
)
from covey.relations.pruning.dimensions import Dimension
from covey.routing.config import PruningOptions

SHARES: Final = 16
"""Shares of all prunings that are told apart."""
POINTS: Final = 5
"""Shares that a round of the search tries."""
PAYS: Final[dict[Dimension, float]] = {"network": 1.0, "memory": MEMORY_PAYS, "throughput": THROUGHPUT_PAYS}
"""The share of all prunings beyond which a dimension gains nothing over network-based pruning."""
MOST_USE: Final = 1_000.0
"""A use of a resource above this counts as this."""


class PruningChoice:
    """What is in force. Measurements change it; a turn that is taken back leaves what was measured."""

    def __init__(self, options: PruningOptions) -> None:
        self.is_auto = options.dimension == "auto"
        self.dimension: Dimension = "network" if options.dimension == "auto" else options.dimension
        self.load: Load | None = None
        """The last measurement; None before the first."""
        self._share = options.share
        self._search = self._anew()
        self._asked = False
        """Whether this search started to see what is scarce without prunings."""

    @property
    def share(self) -> float:
        """Which part of all possible prunings is to be done."""
        if not self.is_auto or self.load is None:
            return self._share
        return self._search.decide() / SHARES

    @property
    def settled(self) -> bool:
        """Whether the share is the best that was found, and not one that is being tried."""
        return not self.is_auto or self._search.settled

    def measure(self, load: Load) -> bool:
        """Take a measurement; whether something else is in force now."""
        if not self.is_auto:
            return False
        load = Load(*(min(max(share, 0.0), MOST_USE) for share in (load.memory, load.bandwidth, load.processing)))
        before = (self.dimension, self.share)
        unpruned = self.load is None or self.share == 0
        scarcest = max(load.memory, load.bandwidth, load.processing)
        if self.load is not None:
            settled = self._search.settled
            self._search.observe(scarcest)
            self._asked = self._asked and (self._search.settled or not settled)
        dimension = choose_dimension(load, self.dimension)
        if dimension != self.dimension and unpruned:
            self.dimension, self._search, self._asked = dimension, self._anew(), False
        elif dimension != self.dimension and scarcest >= PRESSING and not self._asked:
            self._search, self._asked = self._anew(), True
        self.load = load
        return (self.dimension, self.share) != before

    def _anew(self) -> CountSearch:
        return CountSearch(int(SHARES * PAYS[self.dimension]), points=POINTS, resolution=1 / SHARES)
