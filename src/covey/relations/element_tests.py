"""What one test of a list's elements says about another, as far as their conditions tell.

Where every element that meets one condition meets another, a list that some element of which meets the first has one
that meets the second, and likewise if all do. Conditions inside lambdas are SQL's, three-valued, whatever is around
them; fields of a record are taken as independent of it, which is on the safe side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Final

from covey.events.meaning import PLAIN
from covey.filters.algebra import leaves
from covey.filters.predicates import ElementTest, Predicate
from covey.filters.semantics import truth_for
from covey.filters.terms import is_path
from covey.filters.values import Scalar
from covey.relations.steps import Budget, Steps

MOST_TESTS: Final = 8
"""Tests of one list's elements that are held against each other: the cost grows with their square."""
_STEPS: Final = 10_000
"""Steps that the question about two conditions may take."""


def implied_tests(tests: Sequence[ElementTest], steps: Steps) -> Iterator[tuple[ElementTest, ElementTest]]:
    """Pairs of tests on one list of which the first certainly implies the second."""
    from covey.relations.exact import RelationLimits, decide_covers  # which asks about lists in turn

    for given, asked in permutations(tests, 2) if len(tests) <= MOST_TESTS else ():
        if given.every is not asked.every or given.variable != asked.variable or steps.left <= 0:
            continue
        budget = Budget(_STEPS)
        limits = RelationLimits(min(_STEPS, steps.left))
        implied = decide_covers(asked.condition, given.condition, PLAIN, limits, budget)
        steps.left -= min(budget.spent, steps.left)
        if implied:
            yield given, asked


def holds_of_element(test: ElementTest, value: Scalar) -> bool:
    """Whether a list that holds an element that equals a value certainly meets a test that some element does."""
    plain = all(is_path(leaf.attribute) for leaf in leaves(test.condition) if isinstance(leaf, Predicate))
    return plain and not test.every and truth_for(test, (value,)) is True
