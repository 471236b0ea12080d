"""What pruning reports: each step with its three estimates, and where to stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import overload

import numpy as np
from numpy.typing import NDArray

from covey.errors import CoveyError
from covey.filters import Filter
from covey.kernels.pruning import GRID, Log
from covey.relations.pruning.trees import rebuilt

UNBOUNDED = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Pruning:
    """One part removed from one subscription."""

    id: str
    removed: Filter
    degradation: float
    """Estimated growth in selectivity against the original subscription, all its prunings so far included."""
    throughput: int
    """Change in the minimal number of fulfilled predicates against the original."""
    bytes: int
    """Bytes saved by this step."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to stop, whichever comes first. The first two are never exceeded; the others are goals to come down to."""

    degradation: float | None = None
    """The most that any one subscription may degrade."""
    mean_degradation: float | None = None
    """The most that subscriptions may degrade on average."""
    associations: int | None = None
    """Predicates in subscriptions, each counted as often as it stands in one."""
    predicates: int | None = None
    """Distinct predicates that some subscription still has."""
    bytes: int | None = None
    """Bytes of all subscriptions."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value >= 0:
                raise CoveyError(f"target {field.name}={value!r} can't be reached; give a number from 0 on")

    def most(self, subscriptions: int) -> NDArray[np.int64]:
        """The largest degradation of one subscription and of all together, on the kernels' grid."""
        one = UNBOUNDED if self.degradation is None else int(min(self.degradation, 1.0) * GRID)
        if self.mean_degradation is None:
            return np.array([one, UNBOUNDED])
        return np.array([one, int(min(self.mean_degradation, 1.0) * GRID * subscriptions)])

    def goals(self) -> NDArray[np.int64]:
        """Associations, bytes and predicates to come down to; -1 where there is no such goal."""
        goals = (self.associations, self.bytes, self.predicates)
        return np.array([-1 if goal is None else goal for goal in goals], dtype=np.int64)


class Prunings(Sequence[Pruning]):
    """Prunings in the order in which they were done. Kept as arrays; a `Pruning` is made when it is asked for."""

    def __init__(self, log: Log, count: int, ids: Sequence[str], leaves: Sequence[Filter]) -> None:
        nodes = int(log.starts[count])
        # Copies: the log has room for as many prunings as were possible.
        self._rows, self._starts = log.rows[:count].copy(), log.starts[: count + 1].copy()
        self._kind, self._size, self._leaf = (column[:nodes].copy() for column in (log.kind, log.size, log.leaf))
        self._ids = ids
        self._leaves = leaves

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Pruning: ...

    @overload
    def __getitem__(self, at: slice) -> list[Pruning]: ...

    def __getitem__(self, at: int | slice) -> Pruning | list[Pruning]:
        if isinstance(at, slice):
            return [self._one(one) for one in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"there are {len(self)} prunings, none at {at}")
        return self._one(at % len(self))

    def __iter__(self) -> Iterator[Pruning]:
        return map(self._one, range(len(self)))

    def _one(self, at: int) -> Pruning:
        tree, worse, slower, larger = self._rows[at].tolist()
        part = slice(int(self._starts[at]), int(self._starts[at + 1]))
        removed = rebuilt(self._kind[part].tolist(), self._size[part].tolist(), self._leaf[part].tolist(), self._leaves)
        return Pruning(self._ids[tree], removed, worse / GRID, -slower, -larger)

    @property
    def degradations(self) -> NDArray[np.float64]:
        """The degradation of every step, as one array."""
        return np.asarray(self._rows[:, 1] / GRID, dtype=np.float64)
