"""What to prune by, and how far: decided from measurements, without a clock (Sect. 1, 4.2 and 5).

The dimension follows the scarcest resource. The paper's experiments bound that: throughput-based pruning filters
fastest for the first two fifths of all prunings only, memory-based pruning saves more than the others up to 70 % of
them, and network-based pruning does best overall, so it is what is left.

How many prunings are best the paper leaves open. Its curves of cost (filtering plus forwarding) fall, then bend
sharply up where pruned subscriptions start to match what nobody wants. `CountSearch` finds the bottom of such a curve
from measurements alone. It tries an even grid of counts, keeps the stretch between the neighbours of the best one, and
goes on inside it until the grid is as fine as asked. Of a curve that falls and then rises, the bottom is always between
the neighbours of the grid's best point; a grid of several points, unlike a golden section, also survives a flat
stretch or a wrong measurement far from the bottom. Noise is met by the median of several measurements. With `points`
p, a round costs about p - 2 counts more and shrinks the stretch (p - 1) / 2 times.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import isfinite
from statistics import median

from covey.errors import CoveyError
from covey.relations.pruning.dimensions import Dimension

PRESSING = 0.7
"""From this use on a resource is scarce."""
MARGIN = 0.1
"""How much scarcer another resource must be before the dimension changes."""
THROUGHPUT_PAYS = 0.4
"""Share of all prunings up to which throughput-based pruning filters fastest (the paper has 35 to 43 %)."""
MEMORY_PAYS = 0.7
"""Share of all prunings after which memory-based pruning saves no more than the others."""


@dataclass(frozen=True, slots=True)
class Load:
    """Measured use of three resources, each as a share of what there is: 1 is all of it."""

    memory: float
    bandwidth: float
    processing: float


def choose_dimension(
    load: Load,
    current: Dimension | None = None,
    progress: float = 0.0,
    *,
    pressing: float = PRESSING,
    margin: float = MARGIN,
) -> Dimension:
    """The dimension of the scarcest resource, as long as it pays after `progress` (the share of all possible prunings
    that is done); network where nothing is scarce. The current one stays unless another is scarcer by `margin`."""
    use: dict[Dimension, float] = {"network": load.bandwidth, "memory": load.memory, "throughput": load.processing}
    for dimension, share in use.items():
        if not (isfinite(share) and share >= 0):
            raise CoveyError(
                f"the load for {dimension} is {share!r}; give the use of the resource as a share from 0 on"
            )
    scarce = {dimension: share for dimension, share in use.items() if _pays(dimension, progress)}
    best = max(scarce, key=scarce.__getitem__)
    if current in scarce and scarce[current] >= max(scarce[best], pressing) - margin:
        return current
    return best if scarce[best] >= pressing else "network"


def _pays(dimension: Dimension, progress: float) -> bool:
    match dimension:
        case "throughput":
            return progress < THROUGHPUT_PAYS
        case "memory":
            return progress < MEMORY_PAYS
        case "network":
            return True


class CountSearch:
    """Looks for the number of prunings, from 0 to `total`, at which a measured cost is least.

    Prune to `decide()`, measure, `observe` the cost, and so on. Once `settled`, `decide()` stays with the best count;
    where the cost measured there comes to differ by the share `drift` from what it was, the search starts again.
    """

    def __init__(
        self, total: int, *, points: int = 9, repeats: int = 1, resolution: float = 1 / 64, drift: float = 0.25
    ) -> None:
        if total < 0 or points < 4 or repeats < 1 or not 0 < resolution <= 1 or not drift > 0:
            raise CoveyError(
                f"can't search with total={total}, points={points}, repeats={repeats}, resolution={resolution}, "
                f"drift={drift}; total is from 0 on, points from 4, repeats from 1, resolution in (0, 1], drift above 0"
            )
        self.total = total
        self._points = points
        self._repeats = repeats
        self._finest = max(1, int(total * resolution))
        self._drift = drift
        self._start()

    def _start(self) -> None:
        self.settled = False
        self.best = 0
        self._costs: dict[int, list[float]] = {}
        self._recent: deque[float] = deque(maxlen=max(3, self._repeats))
        self._lay(0, self.total)

    def _lay(self, low: int, high: int) -> None:
        gaps = self._points - 1
        evenly = {low + (high - low) * at // gaps for at in range(self._points)}
        self._grid = sorted(evenly | {count for count in self._costs if low <= count <= high})

    def decide(self) -> int:
        """The number of prunings to measure next, or to stay at."""
        return next((count for count in self._grid if self._wanting(count)), self.best)

    def observe(self, cost: float) -> None:
        """Note the cost measured at the count that `decide()` gives."""
        if not isfinite(cost):
            raise CoveyError(f"a cost of {cost!r} can't be compared; give a finite number")
        if self.settled:
            self._watch(cost)
            return
        self._costs.setdefault(self.decide(), []).append(cost)
        while not self.settled and not any(map(self._wanting, self._grid)):
            self._narrow()

    @property
    def cost(self) -> float:
        """The cost at the best count so far; 0 before anything is measured."""
        return self._cost(self.best) if self.best in self._costs else 0.0

    @property
    def curve(self) -> list[tuple[int, float]]:
        """What was measured: counts, each with its median cost."""
        return [(count, self._cost(count)) for count in sorted(self._costs)]

    def _wanting(self, count: int) -> bool:
        return not self.settled and len(self._costs.get(count, ())) < self._repeats

    def _cost(self, count: int) -> float:
        return median(self._costs[count])

    def _narrow(self) -> None:
        """Settle on the grid's best count, or lay a finer grid around it. Of equals the least pruned is best."""
        grid = self._grid
        at = min(range(len(grid)), key=lambda at: self._cost(grid[at]))
        self.best = grid[at]
        low, high = grid[max(0, at - 1)], grid[min(len(grid) - 1, at + 1)]
        if max(self.best - low, high - self.best) <= self._finest:
            self.settled = True
        else:
            self._lay(low, high)

    def _watch(self, cost: float) -> None:
        self._recent.append(cost)
        if len(self._recent) == self._recent.maxlen:
            known = self.cost
            if abs(median(self._recent) - known) > self._drift * abs(known):
                self._start()
