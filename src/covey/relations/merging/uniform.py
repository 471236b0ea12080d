"""Chances where nothing is known but ranges: attributes independent of each other, each uniform over its range.

The assumption of Li, Hou and Jacobsen's evaluation. Exact for conjunctions of value sets and for disjunctions of a few
of them (by inclusion and exclusion); other filters are counted on a seeded sample. Where no ranges are known either,
`Uniform.around` takes them from the filters' own constants: of numbers and timestamps the span from the least to the
greatest, widened by a tenth to both sides; of other kinds the constants and one value more, equally likely.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from itertools import combinations
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.errors import CoveyError
from covey.events.meaning import Meaning
from covey.filters.algebra import Filter, Or, leaves
from covey.filters.predicates import Predicate, compared_with
from covey.filters.semantics import Semantics
from covey.filters.values import Kind, Scalar, instant, kind_of, microseconds, normalise
from covey.history.chances import EventSample
from covey.relations.conjunctions import Conjunction, conjunction_from, conjunction_of
from covey.relations.cuts import EARLIEST, LATEST
from covey.relations.value_sets import ValueSet

Range: TypeAlias = tuple[Any, Any] | list[Any]
"""A pair of numbers or timestamps, ends included (two integers: the integers between); or a list of values."""

SAMPLE_EVENTS: Final = 4_096
EXACT_PARTS: Final = 8
"""Disjunctions of at most this many conjunctions are exact: 2^8 products."""

_LARGEST = 10**15
"""Constants beyond are taken as this: a range that reaches to them would leave nothing to the others."""
_ANOTHER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class _Span:
    """A range of one ordered kind."""

    low: Any
    high: Any
    integer: bool

    def draw(self, rng: random.Random) -> Scalar:
        if self.integer:
            return rng.randint(self.low, self.high)
        if isinstance(self.low, datetime):
            return instant(rng.randint(microseconds(self.low), microseconds(self.high)))
        return rng.uniform(self.low, self.high)

    def chance(self, values: ValueSet) -> float:
        inside = values & ValueSet.between(self.low, self.high)
        step = 0
        if self.integer:
            inside, step = inside.integers(), 1
        low, high = _number(self.low), _number(self.high)
        # An end that isn't known is that of all values of the kind, and so of the range.
        widths = (
            _number(interval.high, high) - _number(interval.low, low) + step
            for interval in inside.intervals(integer=self.integer)
        )
        return sum(widths) / (high - low + step)


@dataclass(frozen=True, slots=True)
class _Listed:
    """Values that are equally likely."""

    values: tuple[Scalar | None, ...]

    def draw(self, rng: random.Random) -> Scalar | None:
        return rng.choice(self.values)

    def chance(self, values: ValueSet) -> float:
        return sum(value in values for value in self.values) / len(self.values)


class Uniform:
    """Chances of independent attributes, each uniform over a range or a list; attributes without one are missing."""

    def __init__(self, ranges: Mapping[str, Range], *, sample_events: int = SAMPLE_EVENTS, seed: int = 0) -> None:
        self._ranges = {name: _source(name, given) for name, given in ranges.items()}
        self._sample_events = sample_events
        self._seed = seed
        self._sample: EventSample | None = None

    @staticmethod
    def around(filters: Iterable[Filter], *, sample_events: int = SAMPLE_EVENTS, seed: int = 0) -> Uniform:
        """Ranges around the constants that filters compare with."""
        constants: dict[str, list[Scalar]] = {}
        for condition in filters:
            for leaf in leaves(condition):
                if isinstance(leaf, Predicate):
                    known = constants.setdefault(leaf.attribute, [])
                    known.extend(value for value in _constants(leaf) if value is not None)
        ranges = {name: _around(values) for name, values in constants.items()}
        return Uniform(ranges, sample_events=sample_events, seed=seed)

    def events(self, count: int, stream: int = 0) -> list[dict[str, Any]]:
        """Events drawn at random: the same for the same seed and stream."""
        rng = random.Random(f"{self._seed}/{stream}")
        return [{name: source.draw(rng) for name, source in self._ranges.items()} for _ in range(count)]

    def chances(self, filters: Sequence[Filter], semantics: Semantics = "sql") -> NDArray[np.float64]:
        """For each filter the fraction of events that match it."""
        meaning = Meaning(semantics)
        found = [self._exact(condition, meaning) for condition in filters]
        counted = [at for at, chance in enumerate(found) if chance is None]
        if counted:
            if self._sample is None:
                self._sample = EventSample(self.events(self._sample_events))
            sampled = self._sample.chances([filters[at] for at in counted], semantics)
            for at, chance in zip(counted, sampled, strict=True):
                found[at] = float(chance)
        return np.array(found, dtype=np.float64)

    def _exact(self, condition: Filter, meaning: Meaning) -> float | None:
        whole = conjunction_of(condition, meaning)
        if whole is not None:
            return self._product(whole)
        if not isinstance(condition, Or) or len(condition.parts) > EXACT_PARTS or meaning.semantics == "strict":
            return None
        parts = [conjunction_of(part, meaning) for part in condition.parts]
        known = [part for part in parts if part is not None]
        return self._of_union(known) if len(known) == len(parts) else None

    def _of_union(self, parts: Sequence[Conjunction]) -> float:
        total = 0.0
        for size in range(1, len(parts) + 1):
            sign = 1 if size % 2 else -1
            total += sign * sum(self._product(reduce(_both, chosen)) for chosen in combinations(parts, size))
        return min(max(total, 0.0), 1.0)

    def _product(self, conjunction: Conjunction) -> float:
        if not conjunction.satisfiable:
            return 0.0
        return math.prod(self._chance(name, values) for name, values in conjunction.sets)

    def _chance(self, name: str, values: ValueSet) -> float:
        source = self._ranges.get(name)
        return float(None in values) if source is None else source.chance(values)


def _both(left: Conjunction, right: Conjunction) -> Conjunction:
    if not (left.satisfiable and right.satisfiable):
        return left if not left.satisfiable else right
    sets = dict(left.sets)
    for name, values in right.sets:
        sets[name] = sets[name] & values if name in sets else values
    return conjunction_from(sets.items())


def _number(end: Scalar | None, otherwise: float = math.nan) -> float:
    if end is None:
        return otherwise
    return microseconds(end) if isinstance(end, datetime) else float(end)


def _source(name: str, given: Range) -> _Span | _Listed:
    if isinstance(given, list):
        if not given:
            raise CoveyError(f"the range of {name!r} is an empty list; give at least one value")
        return _Listed(tuple(_scalar(value) for value in given))
    low, high = (_scalar(end) for end in given)
    if isinstance(low, (bool, str)) or low is None or high is None or kind_of(low) is not kind_of(high) or low >= high:  # type: ignore[operator]
        raise CoveyError(
            f"the range of {name!r} is ({low!r}, {high!r}); give two numbers or timestamps, the lower first"
        )
    return _Span(low, high, isinstance(low, int) and isinstance(high, int))


def _scalar(value: Any) -> Scalar | None:
    normal = normalise(value)
    if isinstance(normal, tuple):
        raise CoveyError("a list is no value of a range; give numbers, strings, booleans or timestamps")
    return normal


def _constants(leaf: Predicate) -> tuple[Scalar | None, ...]:
    compared = compared_with(leaf)
    if compared:
        return compared
    text = getattr(leaf, "text", None)
    return (text,) if isinstance(text, str) else ()


def _around(constants: Sequence[Scalar]) -> Range:
    """One range for the kind that most constants have."""
    kinds = [kind_of(value) for value in constants]
    kind = max(kinds, key=kinds.count) if kinds else Kind.STRING
    own: list[Any] = [value for value, of in zip(constants, kinds, strict=True) if of is kind]
    if kind is Kind.BOOLEAN:
        return [False, True]
    if kind is Kind.STRING:
        return [*sorted(set(own)), _ANOTHER]
    if kind is Kind.TIMESTAMP:
        return _around_instants(own)
    known = [min(max(value, -_LARGEST), _LARGEST) for value in own if value == value]
    if not known:
        return (-1.0, 1.0)
    low, high = min(known), max(known)
    if all(isinstance(value, int) for value in known):
        width = max((high - low) // 10, 1)
    else:
        width = max((high - low) / 10, 1.0)
    return (low - width, high + width)


def _around_instants(instants: Sequence[datetime]) -> Range:
    low, high = min(instants), max(instants)
    margin = max((high - low) / 10, timedelta(seconds=1))
    return (low - min(margin, low - EARLIEST), high + min(margin, LATEST - high))
