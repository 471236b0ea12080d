"""What past subscriptions asked for: how often attributes, combinations of attributes and predicates occur.

Attributes and their combinations are counted exactly, up to a limit beyond which the rarest combinations go. Predicates
are counted by a frequent-items sketch for each attribute, as text, so a table of millions with as many distinct
predicates still gives a small profile. That is what the learned variable order needs (Li, Hou and Jacobsen, section
3.2): popularity, concentration on few values, and which attributes occur together.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from datasketches import frequent_items_error_type, frequent_strings_sketch

from covey.errors import CoveyError
from covey.filters import Filter, Semantics
from covey.filters.algebra import leaves
from covey.filters.predicates import Predicate
from covey.filters.two_valued import attribute_of
from covey.history.asked import History, asked_by
from covey.language import parse

MOST_COMBINATIONS = 4_096
"""Distinct combinations of attributes that are kept."""
PREDICATES_LOG2 = 11
LONGEST_PREDICATE = 1_000
_PAIRED = 64


@dataclass(slots=True, eq=False)
class SubscriptionProfile:
    """Counts of what subscriptions ask for."""

    count: int = 0
    attributes: Counter[str] = field(default_factory=Counter)
    """How many subscriptions name an attribute."""
    combinations: Counter[tuple[str, ...]] = field(default_factory=Counter)
    """How many subscriptions name just these attributes; the names are sorted."""
    predicates: dict[str, Any] = field(default_factory=dict)
    """By attribute, a frequent-items sketch of its predicates as text."""

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> SubscriptionProfile:
        """The counts of some filters."""
        profile = cls()
        for condition in filters:
            profile.add(condition)
        profile._shorten()
        return profile

    def add(self, condition: Filter) -> None:
        """Count one subscription."""
        self.count += 1
        tests = {leaf for leaf in leaves(condition) if isinstance(leaf, Predicate)}
        names = tuple(sorted({test.attribute for test in tests}))
        self.attributes.update(names)
        self.combinations[names] += 1
        if len(self.combinations) > 2 * MOST_COMBINATIONS:
            self._shorten()
        for test in tests:
            text = str(test)
            if len(text) <= LONGEST_PREDICATE:
                self._sketch(test.attribute).update(text, 1)

    def _sketch(self, attribute: str) -> Any:
        if attribute not in self.predicates:
            self.predicates[attribute] = frequent_strings_sketch(PREDICATES_LOG2)
        return self.predicates[attribute]

    def _shorten(self) -> None:
        if len(self.combinations) > MOST_COMBINATIONS:
            self.combinations = Counter(dict(self.combinations.most_common(MOST_COMBINATIONS)))

    def merged(self, other: SubscriptionProfile) -> SubscriptionProfile:
        """The profile of both sets of subscriptions."""
        result = SubscriptionProfile(
            self.count + other.count, self.attributes + other.attributes, self.combinations + other.combinations
        )
        for name, sketch in (*self.predicates.items(), *other.predicates.items()):
            result._sketch(name).merge(sketch)
        result._shorten()
        return result

    def popular(self, most: int = 10, attribute: str | None = None) -> list[tuple[Predicate, int]]:
        """The predicates that most subscriptions have, with their numbers (estimates from below)."""
        names = self.predicates if attribute is None else [attribute]
        found: list[tuple[str, int]] = []
        for name in names:
            sketch = self.predicates.get(name)
            if sketch is not None:
                items = sketch.get_frequent_items(frequent_items_error_type.NO_FALSE_NEGATIVES)
                found += [(text, lower) for text, _, lower, _ in items if lower > 0]
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        predicates: list[tuple[Predicate, int]] = []
        for text, count in found[:most]:
            predicate = _predicate(text)
            if predicate is not None:
                predicates.append((predicate, count))
        return predicates

    def together(self, left: str, right: str) -> int:
        """How many subscriptions name both attributes."""
        return sum(count for names, count in self.combinations.items() if left in names and right in names)

    def history(self, semantics: Semantics = "sql") -> History:
        """As the diagrams' variable orders take it. Predicates that no sketch tracks stand for themselves: each counts
        as one more test that nobody else has."""
        history = History(subscriptions=self.count, attributes=Counter(self.attributes))
        for names, count in self.combinations.items():
            for pair in combinations(names[:_PAIRED], 2):
                history.pairs[pair] += count
        for predicate, count in self.popular(most=sum(1 << PREDICATES_LOG2 for _ in self.predicates)):
            for test in asked_by(predicate, semantics):
                history.tests[test] += count
        tracked: Counter[str] = Counter()
        for test, count in history.tests.items():
            tracked[attribute_of(test)] += count
        for name, sketch in self.predicates.items():
            history.untracked[name] = max(0, int(sketch.total_weight) - tracked[name])
        return history

    def to_json(self) -> dict[str, Any]:
        """As it is kept in a file."""
        return {
            "count": self.count,
            "attributes": dict(self.attributes),
            "combinations": [[list(names), count] for names, count in self.combinations.items()],
            "predicates": {
                name: base64.b64encode(sketch.serialize()).decode() for name, sketch in self.predicates.items()
            },
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> SubscriptionProfile:
        """Out of a file."""
        return cls(
            kept["count"],
            Counter(kept["attributes"]),
            Counter({tuple(names): count for names, count in kept["combinations"]}),
            {
                name: frequent_strings_sketch.deserialize(base64.b64decode(sketch))
                for name, sketch in kept["predicates"].items()
            },
        )


def _predicate(text: str) -> Predicate | None:
    try:
        condition = parse(text)
    except CoveyError:
        return None
    return condition if isinstance(condition, Predicate) else None
