"""All that events can be, as far as some filters can tell: the cells of each attribute that they name.

A list may hold any of the constants that array_contains asks for, independently of each other, and a NULL besides; so
next to the cells of the attribute itself, in which "a list" is one cell, each constant is a small attribute of its own
with the cells no (1) and yes (2), and so is NULL.

Under `default` the cell "missing" behaves as the default value does. A schema narrows what attributes can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from covey.events.schema import Schema
from covey.events.types import ListType
from covey.filters.algebra import Filter, leaves
from covey.filters.predicates import ArrayContains, Predicate
from covey.filters.semantics import Defaults, Semantics
from covey.filters.values import Scalar, Value, kind_of, order_key
from covey.relations.cells import Cells, TextTests
from covey.relations.conjunctions import domain_of, is_integer
from covey.relations.predicate_sets import Pair, from_predicate
from covey.relations.value_sets import IS_LIST, IS_MISSING, ValueSet

NO: Final = 1
YES: Final = 2

_Key: TypeAlias = tuple[str, Any]
_NULL: Final[_Key] = ("null", None)


class Space:
    """The cells of every attribute that some filters name. Attributes are numbered."""

    def __init__(
        self,
        filters: Iterable[Filter],
        semantics: Semantics,
        defaults: Defaults,
        schema: Schema | None,
        text_steps: int,
    ) -> None:
        self._schema = schema
        self._numbers: dict[str, int] = {}
        self._cells: list[Cells] = []
        self._pairs: dict[Predicate, Pair] = {}
        self._elements: dict[str, dict[_Key, int]] = {}
        self._held: list[tuple[str, Scalar | None]] = []
        tests: dict[str, dict[Predicate, None]] = {}
        for condition in filters:
            for leaf in leaves(condition):
                if isinstance(leaf, Predicate):
                    tests.setdefault(leaf.attribute, {})[leaf] = None
        for name, asked in sorted(tests.items()):
            self._numbers[name] = len(self._cells)
            self._cells.append(self._cut(name, asked, semantics, defaults.get(name), text_steps))
        self.possible = [cells.possible for cells in self._cells]
        """For each attribute the cells that it may take, for all that is known."""
        self.certain = [cells.certain for cells in self._cells]
        """For each attribute the cells that it can take."""
        for name, asked in sorted(tests.items()):
            self._add_elements(name, [test.value for test in asked if isinstance(test, ArrayContains)])
        self.complete = all(cells.complete for cells in self._cells)
        """Whether the possible cells are all that there are."""

    def _cut(
        self, name: str, tests: Iterable[Predicate], semantics: Semantics, default: Scalar | None, text_steps: int
    ) -> Cells:
        integer = is_integer(self._schema, name)
        sets: list[ValueSet] = []
        texts: list[Predicate] = []
        for test in tests:
            pair = from_predicate(test, semantics)
            if pair is not None:
                true, false = pair[0].with_default(default), pair[1].with_default(default)
                self._pairs[test] = (true.integers(), false.integers()) if integer else (true, false)
                sets += self._pairs[test]
            elif not isinstance(test, ArrayContains):
                texts.append(test)
        tested = TextTests(tuple(texts), default, text_steps)
        return Cells(sets, domain_of(self._schema, name), tested, integer=integer)

    def _add_elements(self, name: str, constants: list[Scalar | None]) -> None:
        kind = None if self._schema is None else self._schema.type_of(name)
        for value in (None, *constants) if any(value is not None for value in constants) else ():
            elements = self._elements.setdefault(name, {})
            key = _key(value)
            if key not in elements:
                elements[key] = len(self.possible)
                self._held.append((name, value))
                cells = NO | YES if value is None or _may_hold(kind, value) else NO
                self.possible.append(cells)
                self.certain.append(cells)

    def number(self, name: str) -> int:
        """The number of an attribute that the filters name."""
        return self._numbers[name]

    def mask(self, name: str, values: ValueSet) -> int:
        """The cells of an attribute that are in a set made of the predicates' sets."""
        return self._cells[self._numbers[name]].mask(values)

    def masks(self, predicate: Predicate) -> tuple[int, int] | None:
        """The cells in which a predicate is true and those in which SQL has it false; None for array_contains."""
        cells = self._cells[self._numbers[predicate.attribute]]
        pair = self._pairs.get(predicate)
        if pair is not None:
            return cells.mask(pair[0]), cells.mask(pair[1])
        return None if isinstance(predicate, ArrayContains) else cells.text_masks(predicate)

    def elements(self, predicate: ArrayContains) -> tuple[int, int, int]:
        """What array_contains is about: the cell of lists, the attribute of its constant, and the one of NULL."""
        elements = self._elements[predicate.attribute]
        return IS_LIST, elements[_key(predicate.value)], elements[_NULL]

    def event(self, cases: Mapping[int, int]) -> dict[str, Value]:
        """An event whose attributes are in the given cells; what isn't given is left out where it can be."""
        event: dict[str, Value] = {}
        for name, at in self._numbers.items():
            cells = cases.get(at, 0) or self.certain[at] & IS_MISSING or self.certain[at]
            value = self._cells[at].value(cells)
            if value == ():
                value = self._list(name, cases)
            if value is not None:
                event[name] = value
        for name in () if self._schema is None else self._schema.mandatory():
            if name not in event:
                member = domain_of(self._schema, name).example(integer=is_integer(self._schema, name))
                assert member is not None, "a mandatory attribute has values"
                event[name] = member
        return event

    def _list(self, name: str, cases: Mapping[int, int]) -> tuple[Scalar | None, ...]:
        numbers = self._elements.get(name, {})
        return tuple(value for owner, value in self._held if owner == name and cases.get(numbers[_key(value)]) == YES)


def _key(value: Scalar | None) -> _Key:
    return _NULL if value is None else (kind_of(value).value, order_key(value))


def _may_hold(kind: object, value: Scalar) -> bool:
    """Whether a list of a schema's type can have an element that equals a constant."""
    if not isinstance(kind, ListType):
        return True
    if kind_of(value) is not kind.element.kind:
        return False
    try:
        kind.element.coerce(value)
    except ValueError:
        return False
    return True
