"""A filter as merging sees it: one value set for each attribute, and tests that no value set can say.

A filter is true where all parts of its conjunction are. The parts that value sets express go together into a
`Conjunction`; what is left (regular expressions, disjunctions over several attributes, ...) is kept as it is, *opaque*:
two opaque tests are either the same or have nothing to do with each other. Every filter has a shape, and what is said
of shapes is right for any of them: a shape with fewer or wider tests covers one with more, and shapes that are equal
but for one attribute unite perfectly on it, as F1 = P and A, F2 = P and B gives P and (A or B), whatever P is.
"""

from __future__ import annotations

from dataclasses import dataclass

from covey.events.meaning import Meaning
from covey.filters.algebra import FALSE, And, Filter, all_of
from covey.relations.conjunctions import Conjunction, conjunction_from, conjunction_of
from covey.relations.value_sets import DEFINED, EVERYTHING


@dataclass(frozen=True, slots=True)
class Shape:
    """A conjunction of value sets and opaque tests."""

    conjunction: Conjunction
    opaque: frozenset[Filter] = frozenset()

    @property
    def satisfiable(self) -> bool:
        """Whether the value sets leave anything; opaque tests aren't looked into."""
        return self.conjunction.satisfiable

    def covers(self, other: Shape) -> bool:
        """Whether every event that meets the other meets this one, as far as opaque tests tell."""
        if not other.satisfiable:
            return True
        return self.opaque <= other.opaque and self.conjunction.covers(other.conjunction)

    def names(self) -> frozenset[str]:
        """The attributes that it names."""
        named = {name for name, _ in self.conjunction.sets}
        return frozenset(named.union(*(one.attributes() for one in self.opaque)))

    def to_filter(self, meaning: Meaning) -> Filter:
        """A short filter that means this shape."""
        if not self.satisfiable:
            return FALSE
        sets = self.conjunction.to_filter(meaning.semantics, schema=meaning.schema)
        if not self.opaque:
            return sets
        opaque = sorted(self.opaque, key=str)
        return all_of(opaque if not self.conjunction.sets else (sets, *opaque))


def shape_of(condition: Filter, meaning: Meaning) -> Shape:
    """The shape of any filter."""
    condition = meaning.read(condition)
    whole = conjunction_of(condition, meaning)
    if whole is not None:
        return Shape(whole)
    parts = condition.parts if isinstance(condition, And) else (condition,)
    opaque = frozenset(part for part in parts if conjunction_of(part, meaning) is None)
    rest = conjunction_of(all_of(part for part in parts if part not in opaque), meaning)
    assert rest is not None, "conjunctions of conjunctions are one"
    if not rest.satisfiable:
        return Shape(rest)
    if meaning.semantics == "strict":
        sets = dict(rest.sets)
        for name in frozenset[str]().union(*(part.attributes() for part in opaque)):
            sets[name] = sets.get(name, EVERYTHING) & DEFINED
        rest = conjunction_from(sets.items(), meaning)
    return Shape(rest, opaque)
