"""Subsumption by the negative space (Jafarpour et al., Sections 3 and 4).

The *negative space* is what no active subscription asks for, held as disjoint rectangles. A subscription is subsumed
by the union of the active ones if and only if it meets none of these rectangles. A subsumed subscription is passive:
a broker keeps it and doesn't forward it. Any other is active: it is forwarded, and subtracted from the negative space.

Why no answer is a false "subsumed". At all times every point that no active subscription holds is in a negative
rectangle: subtracting an active subscription removes only points that it holds itself, and when it goes, at least the
points that only it held come back. So a region that misses all rectangles is held by active subscriptions. Everything
the approximations do leaves more in the negative space, never less; the price is a subsumed subscription taken for
active, that is forwarded without need.

`exact`        Every rectangle that meets a new subscription is split (Figure 6). Unsubscribing gives back the
               subscription minus the other active ones (Figure 7). The rectangles are then exactly the complement,
               and "subsumed" is an equivalence. There may be O(n^d) rectangles.
`approximate`  At most k new rectangles for a subscription (Figure 8); with the dynamic threshold zeta(i) = k i - m,
               what k for each of i subscriptions leaves after m rectangles. The best rectangles are split: by the
               volume that they have in common with the subscription (benefit), by the number of pieces (cost), or by
               benefit for the cost. What is cut out is remembered as covered by that subscription alone, and comes
               back when it leaves (Figure 9): negative rectangles and covered ones always partition the space.

Where the negative space is larger than it must be, a rectangle that meets it may still be covered by a single active
one. That is looked up too: the paper counts what it finds on top of pair-wise covering, and in many dimensions the
approximation alone would miss most of that. A passive subscription that a leaving one may concern becomes active only
if it isn't subsumed any more; the others stay where they are. `rebuild` is the paper's offline reconstruction, largest
subscriptions first, so that fewer of them are active.

The limit. `limit` bounds the rectangles held. A subscription that would pass it is active as ever, but only splits
what doesn't grow; `is_exact` is then false until the next `rebuild`. Nothing fails, nothing is falsely subsumed.

Costs, with m rectangles of which c meet a subscription: a search takes m / 64 + c steps, splitting c d^2, and keeping
the rectangles merged and ordered O(log m) for each new one (`store`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from covey.errors import CoveyError, DuplicateIdError, UnknownIdError
from covey.kernels import splitting as split_kernels
from covey.relations.subsumption.rectangles import Rectangle, Region, Rows, Space, rectangles_of_rows
from covey.relations.subsumption.registry import Registry
from covey.relations.subsumption.store import RectangleStore

Method = Literal["exact", "approximate"]
Metric = Literal["benefit/cost", "benefit", "1/cost"]

DEFAULT_K = 50
"""New rectangles for one subscription; the paper finds little gain above."""

DEFAULT_LIMIT = 4_000_000
"""Rectangles of one negative space: some 400 MB in four dimensions."""

_METRICS: dict[Metric, int] = {
    "benefit/cost": split_kernels.BENEFIT_PER_COST,
    "benefit": split_kernels.BENEFIT,
    "1/cost": split_kernels.INVERSE_COST,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a subscription: whether it is active, and by how many negative rectangles there are more (or,
    below zero, fewer).
    """

    active: bool
    growth: int


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild changed: passive subscriptions that are active now, and active ones that are passive now."""

    promoted: tuple[Hashable, ...]
    demoted: tuple[Hashable, ...]


class NegativeSpace:
    """Active and passive subscriptions over a space, and the negative space that tells them apart."""

    def __init__(
        self,
        space: Space,
        *,
        method: Method = "exact",
        k: int = DEFAULT_K,
        metric: Metric = "benefit/cost",
        dynamic_threshold: bool = False,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        if method not in get_args(Method):
            raise CoveyError(f"method {method!r} is not known; use one of {', '.join(get_args(Method))}")
        if metric not in _METRICS:
            raise CoveyError(f"metric {metric!r} is not known; use one of {', '.join(_METRICS)}")
        if k < 0 or limit < 1:
            raise CoveyError(f"k is {k} and limit is {limit}; k must be at least 0 and limit at least 1")
        self.space = space
        self.method: Method = method
        self.k = k
        self.metric: Metric = metric
        self.dynamic_threshold = dynamic_threshold
        self.limit = limit
        self._scale = space.scale()
        self._reset()

    def _reset(self) -> None:
        self._store = RectangleStore(self.space.rows(self.space.whole()))
        self._active = Registry(len(self.space))
        self._passive = Registry(len(self.space))
        self._covered: dict[Hashable, list[Rows]] = {}
        self._covered_count = 0
        self._is_exact = self.method == "exact"

    def __len__(self) -> int:
        return len(self._active) + len(self._passive)

    def __contains__(self, identifier: Hashable) -> bool:
        return identifier in self._active or identifier in self._passive

    @property
    def is_exact(self) -> bool:
        """Whether the negative rectangles are known to be exactly what no active subscription holds."""
        return self._is_exact

    def actives(self) -> tuple[Hashable, ...]:
        """The ids of active subscriptions, in the order in which they became active."""
        return tuple(self._active)

    def passives(self) -> tuple[Hashable, ...]:
        """The ids of passive subscriptions, in the order in which they became passive."""
        return tuple(self._passive)

    def is_active(self, identifier: Hashable) -> bool:
        """Whether a subscription is active; it is passive otherwise."""
        self._check_known(identifier)
        return identifier in self._active

    def rectangle_count(self) -> int:
        """How many negative rectangles there are."""
        return len(self._store)

    def rectangles(self) -> tuple[Rectangle, ...]:
        """The negative rectangles."""
        return rectangles_of_rows(self._store.rows())

    def covered_by(self, identifier: Hashable) -> tuple[Rectangle, ...]:
        """What the approximate method holds to be covered by an active subscription alone."""
        self._check_known(identifier)
        return tuple(piece for rows in self._covered.get(identifier, ()) for piece in rectangles_of_rows(rows))

    def nbytes(self) -> int:
        """Bytes of the negative rectangles and, in the approximate method, the covered ones."""
        return self._store.nbytes() + sum(rows.nbytes for listed in self._covered.values() for rows in listed)

    def volume(self, region: Region) -> float:
        """The share of the space that a region takes, as the selection metrics measure it."""
        return float(self._volumes(self.space.rows(region)).sum())

    def is_subsumed(self, region: Region) -> bool:
        """Whether active subscriptions together hold all of a region: true only if so, in the exact method iff so."""
        return self._is_subsumed(self.space.rows(region))

    def subscribe(self, identifier: Hashable, region: Region) -> Outcome:
        """Add a subscription: passive where it is subsumed, active otherwise."""
        if identifier in self:
            raise DuplicateIdError(f"subscription {identifier!r} is already there; unsubscribe it first")
        before = len(self._store)
        active = self._place(identifier, self.space.rows(region))
        return Outcome(active, len(self._store) - before)

    def unsubscribe(self, identifier: Hashable) -> tuple[Hashable, ...]:
        """Remove a subscription; gives the passive ones that are active from now on."""
        self._check_known(identifier)
        if identifier in self._passive:
            self._passive.remove(identifier)
            return ()
        rows = self._active.remove(identifier)
        freed = self._uncovered(rows) if self.method == "exact" else self._given_back(identifier)
        self._store.add(freed.rows())
        return self._promote(rows, freed)

    def rebuild(self) -> Rebuilt:
        """Compute everything anew from the subscriptions, the largest first (the paper's offline reconstruction)."""
        were_active = set(self._active)
        regions = {name: registry.region(name) for registry in (self._active, self._passive) for name in registry}
        by_size = sorted(regions, key=lambda name: -float(self._volumes(regions[name]).sum()))
        self._reset()
        for name in by_size:
            self._place(name, regions[name])
        return Rebuilt(
            tuple(name for name in self._active if name not in were_active),
            tuple(name for name in self._passive if name in were_active),
        )

    def _check_known(self, identifier: Hashable) -> None:
        if identifier not in self:
            raise UnknownIdError(f"subscription {identifier!r} is not there")

    def _is_subsumed(self, rows: Rows) -> bool:
        return all(not self._store.meets(row) or (not self._is_exact and self._active.covers(row)) for row in rows)

    def _volumes(self, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        volumes: np.ndarray[tuple[int], np.dtype[np.float64]] = split_kernels.volumes(
            rows, self._scale.first, self._scale.extent, self._scale.decoded
        )
        return volumes

    def _place(self, identifier: Hashable, rows: Rows) -> bool:
        if self._is_subsumed(rows):
            self._passive.add(identifier, rows)
            return False
        budget = self._threshold()
        self._active.add(identifier, rows)
        for row in rows:
            budget = self._subtract(identifier, row, budget)
        return True

    def _threshold(self) -> int:
        """How many new rectangles the next subscription may bring."""
        if self.method == "exact":
            return self.limit
        return max(0, self.k * (len(self) + 1) - len(self._store)) if self.dynamic_threshold else self.k

    def _subtract(self, identifier: Hashable, row: Rows, budget: int) -> int:
        """Take one rectangle of an active subscription out of the negative space; gives what is left of the budget."""
        hits = self._store.find(row)
        if self.method == "exact":
            fits = self._store.growth(hits, row) <= self._room()
            if not fits and self._store.tidy_if_grown():
                hits = self._store.find(row)
                fits = self._store.growth(hits, row) <= self._room()
            if fits:
                self._store.split(hits, row)
                return budget
            self._is_exact = False
        common = self._store.common(hits, row)
        is_kept = self.method == "approximate"
        chosen, spent = self._store.choose(
            hits, row, self._volumes(common), _METRICS[self.metric], budget, self._room(), is_kept
        )
        if is_kept:
            self._covered.setdefault(identifier, []).append(common[chosen])
            self._covered_count += int(chosen.sum())
        self._store.split(hits[chosen], row)
        return budget - spent

    def _room(self) -> int:
        return self.limit - len(self._store) - self._covered_count

    def _uncovered(self, rows: Rows) -> RectangleStore:
        """The exact method's new negative space: a region minus the active subscriptions near it.

        The largest are subtracted first, since what they take needs no splitting by others. Where the limit was ever
        met, the region may still have negative rectangles in it, which must not be there twice.
        """
        freed = RectangleStore(rows[:1])
        for i in range(1, len(rows)):
            later = RectangleStore(rows[i : i + 1])
            for row in rows[:i]:
                later.split(later.find(row), row)
            freed.add(later.rows())
        if not self._is_exact:
            for row in rows:
                for negative in self._store.common(self._store.find(row), row):
                    freed.split(freed.find(negative), negative)
        others = self._active.rows_near(rows)
        for other in others[np.argsort(-self._volumes(others), kind="stable")]:
            hits = freed.find(other)
            if not len(hits):
                continue
            if freed.growth(hits, other) > self._room() - len(freed):
                self._is_exact = False
                benefits = self._volumes(freed.common(hits, other))
                chosen, _ = freed.choose(hits, other, benefits, _METRICS[self.metric], 0, 0, False)
                hits = hits[chosen]
            freed.split(hits, other)
        return freed

    def _given_back(self, identifier: Hashable) -> RectangleStore:
        """The approximate method's new negative space: what was cut out for the subscription alone."""
        pieces = self._covered.pop(identifier, [])
        self._covered_count -= sum(len(rows) for rows in pieces)
        return RectangleStore(np.concatenate([np.empty((0, 2 * len(self.space)), np.int64), *pieces]))

    def _promote(self, rows: Rows, freed: RectangleStore) -> tuple[Hashable, ...]:
        promoted = []
        for name in self._passive.affected(rows, freed):
            region = self._passive.region(name)
            if not self._is_subsumed(region):
                self._passive.remove(name)
                self._place(name, region)
                promoted.append(name)
        return tuple(promoted)
