"""Lowered filters are true exactly where the interpreter says so, with tests as plain questions about an event."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.examples import examples
from tests.strategies import events, filters

from covey.diagrams import Lowering, asked_by, predicate_of, truth_of
from covey.filters import Compare, In, Is, IsNull, attr, truth
from covey.filters.semantics import attribute_value


class Answer:
    """A plain truth with the three operations."""

    def __init__(self, holds):
        self.holds = holds

    def __and__(self, other):
        return Answer(self.holds and other.holds)

    def __or__(self, other):
        return Answer(self.holds or other.holds)

    def __invert__(self):
        return Answer(not self.holds)


@pytest.mark.parametrize("semantics", ["sql", "simple"])
@settings(max_examples=examples(500), deadline=None)
@given(filters(), events())
def test_true_and_false_are_the_interpreters(semantics, condition, event):
    def ask(test):
        return Answer(truth_of(test, attribute_value(event, predicate_of(test).attribute)) is True)

    lowering = Lowering(semantics, ask, Answer(True), Answer(False))
    wanted = truth(condition, lambda name: attribute_value(event, name), three_valued=semantics == "sql")
    assert lowering.holds(condition).holds is (wanted is True)
    assert lowering.fails(condition).holds is (wanted is False)


def test_one_question_has_one_test():
    same = [attr("a").is_in([2, 1, 2.0]), attr("a").is_in([1, 2]), attr("a").is_in([1, 2, None])]
    assert {frozenset(asked_by(condition, "sql")) for condition in same} == {frozenset({In("a", (1, 2))})}
    assert asked_by(attr("a").is_in([5]), "sql") == asked_by(attr("a").null_safe_equals(5.0), "sql")
    assert asked_by(attr("a").between(1, 2), "sql") == {Compare("a", ">=", 1), Compare("a", "<=", 2)}
    assert asked_by(attr("a") == -0.0, "sql") == {Compare("a", "=", 0)}


def test_negation_asks_the_complement_where_there_is_one():
    assert asked_by(~(attr("a") < 5), "sql") == {Compare("a", ">=", 5)}
    assert asked_by(~(attr("a") < 5), "simple") == {Compare("a", "<", 5)}
    assert asked_by(attr("a") != 5, "simple") == {Compare("a", "=", 5)}
    assert asked_by(~attr("a").is_in([1, 2]), "sql") == {Is(In("a", (1, 2)), False)}
    assert asked_by(attr("a").exists(), "sql") == {IsNull("a")}


def test_what_null_decides_is_not_asked():
    assert asked_by(attr("a") < None, "sql") == set()
    assert asked_by(~attr("a").is_in([1, None]), "sql") == set()
    assert asked_by(attr("a").null_safe_equals(None), "sql") == {IsNull("a")}


def test_only_tests_are_tests():
    with pytest.raises(TypeError, match="a test is"):
        predicate_of(Is(attr("a") < 5, True))
