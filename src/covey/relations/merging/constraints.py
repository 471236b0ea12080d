"""The distinct constraints of a table of subscriptions, numbered; subscriptions become short rows of numbers.

A constraint is a value set of one attribute, or an opaque test (`shapes.py`), which is an attribute of its own with one
set, "holds". A row is the numbers of a shape's constraints in the order of attributes, so that equal shapes are equal
rows.

The cuts that the sets of an attribute have (`cuts.py`) are numbered in order, kind after kind, and the four flags
follow as points; a set then is some intervals of integers, for kernels. Unions and hulls have the cuts of their parts,
so whatever merging makes of the sets is coded without numbering anew.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from covey.events.meaning import Meaning
from covey.filters.algebra import Filter
from covey.filters.values import Kind, Value, kind_of
from covey.relations.conjunctions import conjunction_from
from covey.relations.cuts import FULL, Cut, Cuts, below
from covey.relations.domains import domain_of
from covey.relations.merging.shapes import Shape
from covey.relations.value_sets import IS_FALSE, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

Row: TypeAlias = tuple[int, ...]

HOLDS: Final = ValueSet(flags=IS_TRUE)
"""The one set of an opaque test."""

_FLAGS = (IS_MISSING, IS_FALSE, IS_TRUE, IS_LIST)


class Constraints:
    """Constraints by number: their attribute, their set, and its code intervals."""

    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning
        self.attributes: list[str | Filter] = []
        self.values: list[ValueSet] = []
        self.attribute_of: list[int] = []
        self._attribute_numbers: dict[str | Filter, int] = {}
        self._numbers: list[dict[ValueSet, int]] = []
        self._places: list[dict[Kind, tuple[dict[Cut, int], list[Cut]]]] = []
        self._flag_places: list[int] = []
        self._pieces: list[tuple[int, ...]] = []

    def row(self, shape: Shape) -> Row:
        """The row of a satisfiable shape."""
        numbers = [self.number(self._attribute(name), values) for name, values in shape.conjunction.sets]
        numbers.extend(self.number(self._attribute(one), HOLDS) for one in shape.opaque)
        return self.ordered(numbers)

    def ordered(self, numbers: Iterable[int]) -> Row:
        """Constraints of different attributes as a row: by attribute."""
        return tuple(sorted(numbers, key=self.attribute_of.__getitem__))

    def with_set(self, rest: Row, attribute: int, values: ValueSet) -> Row:
        """A row with a set on one more attribute, or as it is where the set says nothing."""
        normal = self.normal(attribute, values)
        return rest if normal is None else self.ordered((*rest, self.number(attribute, normal)))

    def normal(self, attribute: int, values: ValueSet) -> ValueSet | None:
        """A set as the meaning has it (a widened one may have a default in it, say); None where it says nothing."""
        name = self.attributes[attribute]
        if not isinstance(name, str):
            return values
        sets = conjunction_from([(name, values)], self.meaning).sets
        return sets[0][1] if sets else None

    def shape(self, row: Row) -> Shape:
        """The shape of a row."""
        sets: list[tuple[str, ValueSet]] = []
        opaque: list[Filter] = []
        for number in row:
            attribute = self.attributes[self.attribute_of[number]]
            if isinstance(attribute, str):
                sets.append((attribute, self.values[number]))
            else:
                opaque.append(attribute)
        return Shape(conjunction_from(sets, self.meaning), frozenset(opaque))

    def number(self, attribute: int, values: ValueSet) -> int:
        """The number of a constraint, new or known."""
        known = self._numbers[attribute]
        number = known.get(values)
        if number is None:
            number = known[values] = len(self.values)
            self.values.append(values)
            self.attribute_of.append(attribute)
        return number

    def _attribute(self, key: str | Filter) -> int:
        number = self._attribute_numbers.get(key)
        if number is None:
            number = self._attribute_numbers[key] = len(self.attributes)
            self.attributes.append(key)
            self._numbers.append({})
        return number

    def number_cuts(self) -> None:
        """Number the cuts of all sets so far; sets that come later may have no others."""
        cuts: list[dict[Kind, set[Cut]]] = [{kind: set(FULL[kind]) for kind in FULL} for _ in self.attributes]
        domains = [domain_of(self.meaning.schema, name) for name in self.attributes if isinstance(name, str)]
        named = [at for at, name in enumerate(self.attributes) if isinstance(name, str)]
        for attribute, values in (*zip(named, domains, strict=True), *zip(self.attribute_of, self.values, strict=True)):
            for kind, own in _by_kind(values):
                cuts[attribute][kind].update(own)
        for by_kind in cuts:
            place = 0
            places: dict[Kind, tuple[dict[Cut, int], list[Cut]]] = {}
            for kind, found in by_kind.items():
                ordered = sorted(found)
                places[kind] = ({cut: place + at for at, cut in enumerate(ordered)}, ordered)
                place += len(ordered)
            self._places.append(places)
            self._flag_places.append(place)

    def pieces(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Code intervals of all sets: the first end of each set's, and the ends (low, high, low, high, ...)."""
        for number in range(len(self._pieces), len(self.values)):
            self._pieces.append(self._coded(number))
        lengths = np.fromiter(map(len, self._pieces), np.int64, len(self._pieces))
        first = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        flat = np.fromiter((end for piece in self._pieces for end in piece), np.int32, int(first[-1]))
        return first, flat

    def _coded(self, number: int) -> tuple[int, ...]:
        attribute, values = self.attribute_of[number], self.values[number]
        places = self._places[attribute]
        ends = [places[kind][0][cut] for kind, cuts in _by_kind(values) for cut in cuts]
        for at, flag in enumerate(_FLAGS):
            if values.flags & flag:
                place = self._flag_places[attribute] + 2 * at
                ends += (place, place + 1)
        return tuple(ends)

    def code(self, attribute: int, value: Value | None) -> int:
        """The code of an event's value: in a set exactly if in one of its intervals, low included, high not."""
        flags = self._flag_places[attribute]
        if value is None:
            return flags
        if isinstance(value, bool):
            return flags + (4 if value else 2)
        if isinstance(value, tuple):
            return flags + 6
        numbers, ordered = self._places[attribute][kind_of(value)]
        return numbers[ordered[bisect_right(ordered, below(value)) - 1]]


def _by_kind(values: ValueSet) -> tuple[tuple[Kind, Cuts], ...]:
    return ((Kind.NUMBER, values.numbers), (Kind.STRING, values.strings), (Kind.TIMESTAMP, values.timestamps))
