"""The global predicate index: each distinct test is stored, numbered and evaluated once (Li, Hou and Jacobsen, 3.1).

A test's number is its Boolean variable in every diagram over this index. Tests are counted by use; when the last
user releases one, its number goes to the next new test, so that the numbers stay dense however long a broker runs.
The first of the two steps of matching (section 3.3) is `truth_assignment`: for each attribute that has tests, one
look at the event's value decides them all (`attribute_tests.py`); attributes that nobody asks about cost nothing.

What the numbers mean: FALSE and TRUE; and UNDEFINED, Campailla et al.'s star. In three-valued logic a test is
UNDEFINED where its predicate is unknown: the attribute is missing, or of another kind than the constant. In
two-valued logic only a missing attribute makes it UNDEFINED, because there a comparison across kinds is false, not
missing, and `strict` must tell the two apart. IS NULL is never UNDEFINED.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from covey.diagrams.attribute_tests import UNDEFINED, AttributeTests, Truths
from covey.errors import CoveyError
from covey.filters.semantics import Lookup
from covey.filters.terms import term_of
from covey.filters.two_valued import Test, attribute_of


class PredicateIndex:
    """Tests and their variables, counted by use."""

    def __init__(self) -> None:
        self._variables: dict[Test, int] = {}
        self._tests: list[Test | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self._attributes: dict[str, AttributeTests] = {}

    def __len__(self) -> int:
        """How many tests are in use."""
        return len(self._variables)

    def __contains__(self, test: object) -> bool:
        return test in self._variables

    def __iter__(self) -> Iterator[tuple[int, Test]]:
        """Variables in use, each with its test, in no particular order."""
        for test, variable in self._variables.items():
            yield variable, test

    @property
    def size(self) -> int:
        """One more than the largest variable: the length of a truth assignment."""
        return len(self._tests)

    def variable(self, test: Test) -> int:
        """The variable of a `test`, and one use more; a new test takes the smallest free number."""
        known = self._variables.get(test)
        if known is not None:
            self._uses[known] += 1
            return known
        attribute = attribute_of(test)
        if self._free:
            variable = heapq.heappop(self._free)
            self._tests[variable] = test
            self._uses[variable] = 1
        else:
            variable = len(self._tests)
            self._tests.append(test)
            self._uses.append(1)
        self._variables[test] = variable
        self._attributes.setdefault(attribute, AttributeTests()).add(variable, test)
        return variable

    def find(self, test: Test) -> int | None:
        """The variable of a `test` if it has one, without using it."""
        return self._variables.get(test)

    def release(self, variable: int) -> bool:
        """One use of a `variable` less; true if that was the last, and its number is free again."""
        test = self.test(variable)
        self._uses[variable] -= 1
        if self._uses[variable]:
            return False
        attribute = attribute_of(test)
        tests = self._attributes[attribute]
        tests.remove(variable)
        if not tests:
            del self._attributes[attribute]
        del self._variables[test]
        self._tests[variable] = None
        heapq.heappush(self._free, variable)
        return True

    def uses(self, variable: int) -> int:
        """How often a `variable` is used."""
        self.test(variable)
        return self._uses[variable]

    def test(self, variable: int) -> Test:
        """The test of a `variable` in use."""
        test = self._tests[variable] if 0 <= variable < len(self._tests) else None
        if test is None:
            raise CoveyError(f"variable {variable} is not in use; it was released or never given out")
        return test

    def attributes(self) -> frozenset[str]:
        """Every attribute that some test asks about."""
        return frozenset(self._attributes)

    def asks(self, attribute: str) -> bool:
        """Whether some test asks about an `attribute`."""
        return attribute in self._attributes

    def variables_of(self, attribute: str) -> list[int]:
        """The variables of the tests on one `attribute`, ascending."""
        tests = self._attributes.get(attribute)
        return sorted(variable for variable, _ in tests) if tests is not None else []

    def truth_assignment(self, lookup: Lookup, *, three_valued: bool = True) -> Truths:
        """FALSE, TRUE or UNDEFINED for each variable; free ones are UNDEFINED. `lookup` gives an attribute's value, or
        None; `three_valued` says whether a test across kinds is UNDEFINED, as in SQL, rather than FALSE."""
        truths = np.full(len(self._tests), UNDEFINED, dtype=np.uint8)
        for attribute, tests in self._attributes.items():
            tests.assign(term_of(attribute).value(lookup), truths, three_valued=three_valued)
        return truths
