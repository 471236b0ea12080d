"""The tests on one attribute, kept so that one value decides them all without asking each.

By kind, then by operator, then by value (Li, Hou and Jacobsen, section 3.1 and figure 3). A value touches only the
tests of its own kind: equalities and sets by one hash lookup, ordered comparisons by one binary search for each
operator over its sorted constants; all variables on one side of the cut are true, all on the other false, written
with two slices. Tests on texts and lists are asked one by one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from covey.filters.algebra import Is
from covey.filters.predicates import Compare, In, Operator
from covey.filters.semantics import truth_for
from covey.filters.two_valued import Test, predicate_of
from covey.filters.values import Kind, Scalar, Value, kind_of, order_key

FALSE: Final = 0
TRUE: Final = 1
UNDEFINED: Final = 2

Key = tuple[int, Any]
Truths = NDArray[np.uint8]


class _Thresholds:
    """The constants of one ordered operator, sorted, with their variables."""

    __slots__ = ("_array", "_cut", "_keys", "_true_above", "_variables")

    def __init__(self, operator: Operator) -> None:
        # `a < c` is true where c > a: from the first constant above a onwards.
        self._true_above = operator in ("<", "<=")
        self._cut = bisect_right if operator in ("<", ">=") else bisect_left
        self._keys: list[Key] = []
        self._variables: list[int] = []
        self._array: NDArray[np.intp] | None = None

    def add(self, key: Key, variable: int) -> None:
        at = bisect_right(self._keys, key)
        self._keys.insert(at, key)
        self._variables.insert(at, variable)
        self._array = None

    def remove(self, key: Key, variable: int) -> None:
        at = self._variables.index(variable, bisect_left(self._keys, key))
        del self._keys[at], self._variables[at]
        self._array = None

    def assign(self, key: Key, truths: Truths) -> None:
        if self._array is None:
            self._array = np.array(self._variables, dtype=np.intp)
        at = self._cut(self._keys, key)
        truths[self._array[:at]] = not self._true_above
        truths[self._array[at:]] = self._true_above


class _Postings:
    """Tests that one value among many decides: `hit` where the value is listed, `miss` where it isn't."""

    __slots__ = ("_array", "_hit", "_listed", "_miss", "_variables")

    def __init__(self, hit: int, miss: int) -> None:
        self._hit = hit
        self._miss = miss
        self._listed: defaultdict[Key, list[int]] = defaultdict(list)
        self._variables: dict[int, None] = {}
        self._array: NDArray[np.intp] | None = None

    def add(self, keys: set[Key], variable: int) -> None:
        for key in keys:
            self._listed[key].append(variable)
        self._variables[variable] = None
        self._array = None

    def remove(self, keys: set[Key], variable: int) -> None:
        for key in keys:
            self._listed[key].remove(variable)
            if not self._listed[key]:
                del self._listed[key]
        del self._variables[variable]
        self._array = None

    def assign(self, key: Key, truths: Truths, *, three_valued: bool) -> None:
        if self._array is None:
            self._array = np.array(list(self._variables), dtype=np.intp)
        truths[self._array] = FALSE if self._miss == UNDEFINED and not three_valued else self._miss
        hits = self._listed.get(key)
        if hits:
            truths[hits] = self._hit


class AttributeTests:
    """All tests on one attribute; a value assigns each of them false, true or undefined."""

    def __init__(self) -> None:
        self._tests: dict[int, Test] = {}
        self._others: dict[int, Test] = {}
        self._thresholds: dict[tuple[Kind, Operator], _Thresholds] = {}
        self._postings: dict[tuple[Kind, int, int], _Postings] = {}
        self._array: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self._tests)

    def __iter__(self) -> Any:
        return iter(self._tests.items())

    def add(self, variable: int, test: Test) -> None:
        """Enter a `test` under its `variable`."""
        self._tests[variable] = test
        self._array = None
        match test:
            case Compare(_, ("<" | "<=" | ">" | ">=") as operator, value) if value is not None:
                place = (kind_of(value), operator)
                self._thresholds.setdefault(place, _Thresholds(operator)).add(order_key(value), variable)
            case _ if (listing := _listing(test)) is not None:
                kind, hit, miss, keys = listing
                self._postings.setdefault((kind, hit, miss), _Postings(hit, miss)).add(keys, variable)
            case _:
                self._others[variable] = test

    def remove(self, variable: int) -> None:
        """Forget the test of a `variable`."""
        test = self._tests.pop(variable)
        self._array = None
        match test:
            case Compare(_, ("<" | "<=" | ">" | ">=") as operator, value) if value is not None:
                self._thresholds[kind_of(value), operator].remove(order_key(value), variable)
            case _ if (listing := _listing(test)) is not None:
                kind, hit, miss, keys = listing
                self._postings[kind, hit, miss].remove(keys, variable)
            case _:
                del self._others[variable]

    def assign(self, value: Value | None, truths: Truths, *, three_valued: bool) -> None:
        """Write each test's truth for an attribute of this `value`; None where the event doesn't define it.

        `three_valued` says whether a test across kinds is UNDEFINED, as in SQL, rather than FALSE.

        `truths` is UNDEFINED at every variable of this attribute beforehand. A defined value that doesn't compare
        with a test's constant leaves the test UNDEFINED in three-valued logic and FALSE in two-valued.
        """
        if value is not None and not three_valued:
            if self._array is None:
                self._array = np.array(list(self._tests), dtype=np.intp)
            truths[self._array] = FALSE
        if value is not None and not isinstance(value, tuple):
            kind, key = kind_of(value), order_key(value)
            for (of_kind, _), thresholds in self._thresholds.items():
                if of_kind is kind:
                    thresholds.assign(key, truths)
            for (of_kind, _, _), postings in self._postings.items():
                if of_kind is kind:
                    postings.assign(key, truths, three_valued=three_valued)
        for variable, test in self._others.items():
            truth = truth_of(test, value)
            if truth is not None:
                truths[variable] = truth


def truth_of(test: Test, value: Value | None) -> bool | None:
    """Whether a `test` holds for a `value` of its attribute; None where its predicate is unknown."""
    truth = truth_for(predicate_of(test), value)
    return truth if truth is None or not isinstance(test, Is) else not truth


def _listing(test: Test) -> tuple[Kind, int, int, set[Key]] | None:
    """For a test on equality with constants: their kind, its truth on a hit and on a miss, and the constants."""
    predicate = predicate_of(test)
    values: tuple[Scalar | None, ...]
    match predicate:
        case Compare(_, ("=" | "!=") as operator, value) if value is not None:
            values, hit, miss = (value,), operator == "=", operator != "="
        case In(_, values) if any(value is not None for value in values):
            hit, miss = True, False
        case _:
            return None
    if isinstance(test, Is):
        hit, miss = miss, hit
    known = [value for value in values if value is not None]
    # `a IN (1, NULL)` is unknown rather than false where a is another number.
    truth_on_miss = UNDEFINED if None in values else int(miss)
    return kind_of(known[0]), int(hit), truth_on_miss, {order_key(value) for value in known}
