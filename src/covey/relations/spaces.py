"""All that events can be, as far as some filters can tell: the cells of each attribute that they name.

A list may hold any of the constants that array_contains asks for, independently of each other, and a NULL besides; so
next to the cells of the attribute itself, in which "a list" is one cell, each constant is a small attribute of its own
with the cells no (1) and yes (2), and so is NULL. A test of a list's elements (`exists`, `forall`) is such an attribute
too, that may be unknown (4) besides, and isn't certain to be any of these; where there is no list, it says so (8).

Under `default` the cell "missing" behaves as the default value does. A schema narrows what attributes can be; what it
makes mandatory by the event's type depends on that type (`requirements`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from covey.events.meaning import Meaning
from covey.events.types import ListType
from covey.filters.algebra import Filter, leaves
from covey.filters.predicates import ArrayContains, ElementTest, Predicate
from covey.filters.semantics import Supposed
from covey.filters.terms import is_path, is_presence, term_of
from covey.filters.values import Scalar, Value, kind_of, order_key
from covey.relations.cells import Cells, TextTests
from covey.relations.domains import domain_of, is_integer, requirements
from covey.relations.element_tests import holds_of_element, implied_tests
from covey.relations.predicate_sets import Pair, from_predicate
from covey.relations.steps import Steps
from covey.relations.value_sets import DEFINED, IS_LIST, IS_MISSING, IS_TRUE, ValueSet

NO: Final = 1
YES: Final = 2
UNKNOWN: Final = 4
NO_LIST: Final = 8

_Key: TypeAlias = tuple[str, Any]
_NULL: Final[_Key] = ("null", None)


class Space:
    """The cells of every attribute that some filters name. Attributes are numbered."""

    def __init__(self, filters: Iterable[Filter], meaning: Meaning, steps: Steps) -> None:
        self._meaning = meaning
        self._schema = meaning.schema
        self._numbers: dict[str, int] = {}
        self._cells: list[Cells] = []
        self._pairs: dict[Predicate, Pair] = {}
        self._elements: dict[str, dict[_Key, int]] = {}
        self._element_tests: dict[ElementTest, int] = {}
        self._follows: list[tuple[int, int]] = []
        """Where one is YES, so is the other."""
        self._held: list[tuple[str, Scalar | None]] = []
        tests: dict[str, dict[Predicate, None]] = {}
        for condition in filters:
            for leaf in leaves(condition):
                if isinstance(leaf, Predicate):
                    tests.setdefault(leaf.attribute, {})[leaf] = None
                    if meaning.semantics == "strict" and not is_path(leaf.attribute):
                        for name in leaf.term.attributes():  # they must be defined, whatever the term is
                            tests.setdefault(name, {})
        self._required = {name: types for name, types in requirements(self._schema).items() if name in tests}
        self._type = "" if self._schema is None else self._schema.type_attribute or ""
        if self._required:
            tests.setdefault(self._type, {})
        for path in [term_of(name).attributes()[0] for name in tests if is_presence(name)]:
            tests.setdefault(path, {})
        for name, asked in sorted(tests.items()):
            self._numbers[name] = len(self._cells)
            self._cells.append(self._cut(name, asked, steps))
        self.possible = [cells.possible for cells in self._cells]
        """For each attribute the cells that it may take, for all that is known."""
        self.certain = [cells.certain for cells in self._cells]
        """For each attribute the cells that it can take."""
        for name, asked in sorted(tests.items()):
            self._add_elements(name, [test.value for test in asked if isinstance(test, ArrayContains)])
            self._add_element_tests(name, asked, steps)
        self.complete = all(cells.complete for cells in self._cells)
        """Whether the possible cells are all that there are."""

    def _cut(self, name: str, tests: Iterable[Predicate], steps: Steps) -> Cells:
        integer = is_integer(self._schema, name)
        default = self._meaning.default(name)
        sets: list[ValueSet] = [*self._required.values()] if name == self._type else []
        texts: list[Predicate] = []
        for test in tests:
            pair = from_predicate(test, self._meaning.semantics)
            if pair is not None:
                true, false = pair[0].with_default(default), pair[1].with_default(default)
                self._pairs[test] = (true.integers(), false.integers()) if integer else (true, false)
                sets += self._pairs[test]
            elif not isinstance(test, (ArrayContains, ElementTest)):
                texts.append(test)
        tested = TextTests(tuple(texts), default, steps)
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

    def _add_element_tests(self, name: str, asked: Iterable[Predicate], steps: Steps) -> None:
        """A test of elements is true, false or unknown of a list, and which lists do what isn't known, but for what
        follows from one test for another."""
        tests = [test for test in asked if isinstance(test, ElementTest)]
        for test in tests:
            self._element_tests[test] = len(self.possible)
            self.possible.append(YES | NO | UNKNOWN | NO_LIST)
            self.certain.append(NO_LIST)
        for given, implied in implied_tests(tests, steps):
            self._follows.append((self._element_tests[given], self._element_tests[implied]))
        for value in {_key(test.value): test.value for test in asked if isinstance(test, ArrayContains)}.values():
            for test in tests:
                if value is not None and holds_of_element(test, value):
                    self._follows.append((self._elements[name][_key(value)], self._element_tests[test]))

    def element_test(self, test: ElementTest) -> int:
        """The number of what stands for a test of elements: YES, NO, UNKNOWN or NO_LIST."""
        return self._element_tests[test]

    def number(self, name: str) -> int:
        """The number of an attribute that the filters name."""
        return self._numbers[name]

    def mask(self, name: str, values: ValueSet) -> int:
        """The cells of an attribute that are in a set made of the predicates' sets."""
        return self._cells[self._numbers[name]].mask(values)

    def masks(self, predicate: Predicate) -> tuple[int, int] | None:
        """The cells in which a predicate is true and those in which SQL has it false; None for tests of lists."""
        cells = self._cells[self._numbers[predicate.attribute]]
        pair = self._pairs.get(predicate)
        if pair is not None:
            return cells.mask(pair[0]), cells.mask(pair[1])
        return None if isinstance(predicate, (ArrayContains, ElementTest)) else cells.text_masks(predicate)

    def elements(self, predicate: ArrayContains) -> tuple[int, int, int]:
        """What array_contains is about: the cell of lists, the attribute of its constant, and the one of NULL."""
        elements = self._elements[predicate.attribute]
        return IS_LIST, elements[_key(predicate.value)], elements[_NULL]

    def requirements(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """What the event's type makes mandatory: (the type's number, its cells that don't ask for an attribute) or
        (the attribute's number, its cells but "missing") must hold. And tests of elements are about lists alone, and
        what isn't there is missing."""
        for name, number in self._numbers.items():
            if is_presence(name):
                yield (number, IS_TRUE), (self._numbers[term_of(name).attributes()[0]], IS_MISSING)
        for given, implied in self._follows:
            yield (given, ~YES), (implied, YES)
        for test, number in self._element_tests.items():
            attribute = self._numbers[test.attribute]
            yield (attribute, ~IS_LIST), (number, YES | NO | UNKNOWN)
            yield (attribute, IS_LIST), (number, NO_LIST)
        for name, types in self._required.items():
            yield (self._numbers[self._type], ~self.mask(self._type, types)), (
                self._numbers[name], self.mask(name, DEFINED),
            )  # fmt: skip

    def event(self, cases: Mapping[int, int]) -> dict[str, Value | None]:
        """An event whose attributes are in the given cells; what isn't given is left out where it can be."""
        event: dict[str, Value | None] = {}
        for name, at in self._numbers.items():
            cells = cases.get(at, 0) or self.certain[at] & IS_MISSING or self.certain[at]
            value = self._cells[at].value(cells)
            if value == ():
                value = self._list(name, cases)
            if value is not None:
                event[name] = value
        for name in [name for name in event if is_presence(name)]:
            if event.pop(name) is True:
                event.setdefault(term_of(name).attributes()[0], None)
        if self._schema is not None:
            self._define(self._schema.mandatory(), event)
            event_type = event.get(self._type)
            self._define(self._schema.mandatory(event_type if isinstance(event_type, str) else None), event)
        return event if all(is_path(name) or is_presence(name) for name in self._numbers) else Supposed(event)

    def _define(self, mandatory: Iterable[str], event: dict[str, Value | None]) -> None:
        for name in mandatory:
            if name not in event:
                member = domain_of(self._schema, name).example(integer=is_integer(self._schema, name))
                assert member is not None, "a mandatory attribute has values"
                event[name] = member

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
