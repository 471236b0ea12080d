"""What past subscriptions asked for, counted, and the order of attributes that follows from it.

A test is a plain question about an event (`filters/two_valued.py`). How many subscriptions use a test, name an
attribute, or name two attributes together is what Li, Hou and Jacobsen order attributes by (section 3.2). What many
subscriptions have in common belongs to the bottom of a diagram, where diagrams share it: attributes that are named
often, and attributes whose tests are concentrated on few values. Attributes that occur together stand close to each
other.

The learned order goes greedily from the bottom up. An attribute's weight is the expected number of other subscriptions
with the very same test on it: how often it is named, times the chance that two of its tests coincide (Simpson's index,
1 where all ask the same, near 0 where all differ). The next attribute is the one with the greatest weight, raised by
up to its double by how regularly it is named together with the one placed before (their Jaccard index). Cost:
quadratic in the number of attributes, not of subscriptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from covey.filters.algebra import Filter
from covey.filters.semantics import Semantics
from covey.filters.two_valued import Lowering, Test, attribute_of

_PAIRED_ATTRIBUTES = 64
"""Attributes of one subscription that are counted in pairs: the pairs of a wider one say little and cost much."""


@dataclass(slots=True)
class History:
    """What past subscriptions asked for: the counts that orders are learned from."""

    subscriptions: int = 0
    tests: Counter[Test] = field(default_factory=Counter)
    """How many subscriptions use a test."""
    attributes: Counter[str] = field(default_factory=Counter)
    """How many subscriptions name an attribute."""
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many subscriptions name two attributes together; the names are sorted."""
    untracked: Counter[str] = field(default_factory=Counter)
    """By attribute, uses of tests that are too rare to be listed in `tests`, where a summary was read."""

    @classmethod
    def of(
        cls, filters: Iterable[Filter], semantics: Semantics = "sql", *, variable_for_inequality: bool = False
    ) -> History:
        """The counts of `filters`, whose tests depend on `semantics` and `variable_for_inequality` (`Lowering`)."""
        history = cls()
        for condition in filters:
            history.add(asked_by(condition, semantics, variable_for_inequality=variable_for_inequality))
        return history

    def add(self, used: set[Test]) -> None:
        """Count the tests `used` by one filter."""
        names = sorted({attribute_of(test) for test in used})
        self.subscriptions += 1
        self.tests.update(used)
        self.attributes.update(names)
        self.pairs.update(combinations(names[:_PAIRED_ATTRIBUTES], 2))

    def concentration(self) -> dict[str, float]:
        """For each attribute the chance that two of its tests, drawn by use, are the same."""
        total: Counter[str] = Counter(self.untracked)
        squares: Counter[str] = Counter()
        for test, count in self.tests.items():
            total[attribute_of(test)] += count
            squares[attribute_of(test)] += count * count
        return {name: squares[name] / total[name] ** 2 for name in total if total[name]}

    def together(self, left: str, right: str) -> float:
        """Of the subscriptions that name `left` or `right`, the part that names both."""
        both = self.pairs[(left, right) if left < right else (right, left)]
        either = self.attributes[left] + self.attributes[right] - both
        return both / either if either else 0.0


class _Collector:
    """A function that only notes which tests a filter is made of."""

    def __and__(self, other: _Collector) -> _Collector:
        return self

    def __or__(self, other: _Collector) -> _Collector:
        return self

    def __invert__(self) -> _Collector:
        return self


def asked_by(condition: Filter, semantics: Semantics = "sql", *, variable_for_inequality: bool = False) -> set[Test]:
    """The tests that the diagram of a filter, `condition`, may ask. They depend on `semantics` and
    `variable_for_inequality` (`Lowering`)."""
    return set(asked_in_turn(condition, semantics, variable_for_inequality=variable_for_inequality))


def asked_in_turn(
    condition: Filter, semantics: Semantics = "sql", *, variable_for_inequality: bool = False
) -> list[Test]:
    """The tests that a filter's diagram may ask, each once, as they first occur."""
    nothing = _Collector()
    found: dict[Test, None] = {}

    def note(test: Test) -> _Collector:
        found[test] = None
        return nothing

    lowering = Lowering(semantics, note, nothing, nothing, variable_for_inequality=variable_for_inequality)
    lowering.holds(condition)
    return list(found)


def learned_attributes(names: Iterable[str], history: History) -> list[str]:
    """Attributes from top to bottom as history suggests."""
    concentration = history.concentration()
    weight = {name: history.attributes[name] * concentration.get(name, 0.0) for name in sorted(set(names))}
    upwards: list[str] = []
    while weight:
        if upwards:
            below = upwards[-1]
            chosen = max(weight, key=lambda name: weight[name] * (1 + history.together(name, below)))
        else:
            chosen = max(weight, key=lambda name: weight[name])
        upwards.append(chosen)
        del weight[chosen]
    return upwards[::-1]
