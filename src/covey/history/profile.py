"""A profile: what past events and subscriptions were like, in one small file that grows by merging, not by rereading.

It gives the index its accesses (`statistics`), the diagrams their variable order (`history`), merging and pruning their
estimates (`chances`). A filter's chance is counted on the sample, with whatever dependence there is among attributes.
Where fewer than ten sampled events match, the sample can't say how rare the filter is; then the attributes' sketches
give each predicate's chance, taken as independent, and never more than the sample makes plausible.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from covey.errors import CoveyError
from covey.events import Batch
from covey.filters import Filter, Predicate, Semantics
from covey.filters.algebra import And, Constant, Is, Not, Or, leaves
from covey.filters.predicates import Between, Compare, In, IsNull
from covey.filters.values import Scalar, microseconds
from covey.history.asked import History, learned_attributes
from covey.history.chances import EventSample
from covey.history.dependence import dependence
from covey.history.event_profile import EventProfile
from covey.history.files import read, write
from covey.history.subscription_profile import SubscriptionProfile
from covey.history.summary import summary
from covey.language import parse
from covey.matching import Statistics

_ENOUGH = 10
"""Sampled matches from which on the sample's own fraction is used."""
_PLAUSIBLE = 3
"""With no match among n sampled events, a chance above 3 / n is unlikely (at 95%)."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What past events and subscriptions were like.

    `events` is what was seen of events, None before any; `subscriptions` what was seen of filters. `Profile.of` makes
    both from events and filters, `Profile.open` reads them from a file. `version` counts the profiles merged into it.
    """

    events: EventProfile | None = None
    subscriptions: SubscriptionProfile = field(default_factory=SubscriptionProfile)
    version: int = 1
    """How many profiles were merged into this one."""

    @classmethod
    def of(
        cls, events: Batch | None = None, subscriptions: Iterable[Filter | str] = (), *,
        attributes: Iterable[str] | None = None, seed: int = 0,
    ) -> Profile:  # fmt: skip
        """The profile of a batch of events and of some filters, in this process.

        `events` is an Arrow table or record batch, or a list of mappings; None profiles the filters alone.
        `subscriptions` are filters, as texts or as `covey.parse` gives them.
        `attributes` are those of the events that are looked at; without, those that the filters name.
        `seed` is that of the sample of events that is kept.
        """
        asked = SubscriptionProfile.of(parse(one) if isinstance(one, str) else one for one in subscriptions)
        names = sorted(asked.attributes if attributes is None else set(attributes))
        return cls(None if events is None else EventProfile.of(events, names, seed=seed), asked)

    def merged(self, other: Profile) -> Profile:
        """Yesterday's profile plus today's, `other`."""
        if self.events is None or other.events is None:
            events = self.events or other.events
        else:
            events = self.events.merged(other.events)
        return Profile(events, self.subscriptions.merged(other.subscriptions), self.version + other.version)

    def statistics(self) -> Statistics:
        """For `Index(statistics=…)`: accesses and orders chosen by these events."""
        return Statistics(self._known().sample)

    def history(self, semantics: Semantics = "sql") -> History:
        """For `SharedDiagram.add_many(order="learned", history=…)`: which tests filters that mean what `semantics` says
        have together."""
        return self.subscriptions.history(semantics)

    def attribute_order(self) -> list[str]:
        """For `Index(order="learned", profile=…)`: the attributes that subscriptions named, what they have in common
        last, what occurs together side by side (`asked.py`)."""
        known = self.history()
        return learned_attributes(known.attributes, known)

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        """For each of `filters` the fraction of events that match it under these `semantics`."""
        sample = EventSample(self._known().sample)
        found = sample.chances(filters, semantics)
        rare = np.flatnonzero(found * sample.count < _ENOUGH)
        if not len(rare) or not sample.count:
            return found
        unsure = [filters[at] for at in rare.tolist()]
        tests = list(dict.fromkeys(leaf for one in unsure for leaf in leaves(one) if isinstance(leaf, Predicate)))
        counted = dict(zip(tests, sample.chances(tests, "sql").tolist(), strict=True))
        leaf_chances = {test: self._leaf(test, chance, sample.count) for test, chance in counted.items()}
        for at, one in zip(rare.tolist(), unsure, strict=True):
            estimate = self._independent(one, leaf_chances, semantics == "sql")[0]
            found[at] = min(estimate, (found[at] * sample.count + _PLAUSIBLE) / sample.count)
        return found

    def _known(self) -> EventProfile:
        if self.events is None:
            raise CoveyError("this profile has seen no events; profile some (events=)")
        return self.events

    def _leaf(self, test: Predicate, counted: float, sampled: int) -> tuple[float, float]:
        """Chances that a predicate is true, and that it is false."""
        events = self._known()
        sketch = events.sketches.get(test.attribute)
        if sketch is None or not events.count:
            return counted, 1 - counted
        if isinstance(test, IsNull):
            missing = 1 - sketch.present / events.count
            return missing, 1 - missing
        true = counted
        if counted * sampled < _ENOUGH:
            times = self._times(test)
            true = counted if times is None else times / events.count
        return true, max(0.0, sketch.present / events.count - true)

    def _times(self, test: Predicate) -> float | None:
        """How many events meet a comparison, by the attribute's sketches; None for other tests."""
        match test:
            case Compare(_, operator, value) if value is not None:
                return self._compared(test.attribute, operator, value)
            case Between(_, low, high) if low is not None and high is not None:
                above, below = (self._compared(test.attribute, sign, end) for sign, end in (("<", low), ("<=", high)))
                return None if above is None or below is None else max(0.0, below - above)
            case In(_, values):
                each = [self._compared(test.attribute, "=", value) for value in values if value is not None]
                return sum(times for times in each if times is not None)
        return None

    def _compared(self, attribute: str, operator: str, value: Scalar) -> float | None:
        sketch = self._known().sketches[attribute]
        if isinstance(value, bool):
            return float(sketch.truths[value]) if operator in ("=", "<=>") else None
        if isinstance(value, str):
            return sketch.times(value) if operator in ("=", "<=>") else None
        number = float(microseconds(value)) if isinstance(value, datetime) else _clipped(value)
        ordered = sketch.numbers - sketch.nans + sketch.timestamps
        match operator:
            case "<" | ">=":
                below = sketch.below(number, inclusive=False)
                return below if operator == "<" else ordered + sketch.nans - below
            case "<=" | ">":
                below = sketch.below(number, inclusive=True)
                return below if operator == "<=" else ordered + sketch.nans - below
            case "=" | "<=>":
                equal = sketch.below(number, inclusive=True) - sketch.below(number, inclusive=False)
                return equal or (ordered / sketch.distinct if sketch.distinct >= 1 else 0.0)
        return None

    def _independent(
        self, condition: Filter, leaf_chances: dict[Predicate, tuple[float, float]], three_valued: bool
    ) -> tuple[float, float]:
        """Chances that a filter is true, and that it is false, were its parts independent."""
        match condition:
            case Predicate():
                true, false = leaf_chances[condition]
                return (true, false) if three_valued else (true, 1 - true)
            case Constant(value):
                return float(value is True), float(value is False)
            case Not(part):
                true, false = self._independent(part, leaf_chances, three_valued)
                return false, true
            case And(parts) | Or(parts):
                each = [self._independent(part, leaf_chances, three_valued) for part in parts]
                all_true = float(np.prod([true for true, _ in each]))
                all_false = float(np.prod([false for _, false in each]))
                if isinstance(condition, And):
                    return all_true, 1 - float(np.prod([1 - false for _, false in each]))
                return 1 - float(np.prod([1 - true for true, _ in each])), all_false
            case Is(part, wanted):
                true, false = self._independent(part, leaf_chances, three_valued)
                holds = true if wanted is True else false if wanted is False else max(0.0, 1 - true - false)
                return holds, 1 - holds
        raise TypeError(f"{type(condition).__name__} is not a filter")

    def dependence(self, left: str, right: str) -> float:
        """How much one attribute tells about the other, from 0 (nothing) to 1 (all), on the sample."""
        return dependence(self._known().sample, left, right)

    def summary(self) -> str:
        """For people: a page of what is in it."""
        return summary(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, whole or not at all."""
        write(self, path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Profile:
        """Read what `save` wrote."""
        return read(path)


def _clipped(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def merged(profiles: Iterable[Profile]) -> Profile:
    """All profiles as one; at least one is needed."""
    listed = list(profiles)
    if not listed:
        raise CoveyError("there are no profiles to merge")
    result = listed[0]
    for profile in listed[1:]:
        result = result.merged(profile)
    return result
