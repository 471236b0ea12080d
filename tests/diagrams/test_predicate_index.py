"""Distinct tests have one variable each, are counted by use, and are evaluated as the interpreter evaluates them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import events, predicates

from covey.diagrams import FALSE, TRUE, UNDEFINED, PredicateIndex
from covey.errors import CoveyError
from covey.filters import Compare, In, Is, IsNull, attr
from covey.filters.semantics import attribute_value, predicate_truth

TESTS = predicates() | predicates().map(lambda predicate: Is(predicate, False))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(TESTS, max_size=12), st.lists(events(), min_size=1, max_size=3), st.data())
def test_truths_equal_the_interpreters(tests, batch, data):
    index = PredicateIndex()
    variables = [index.variable(test) for test in tests]
    for variable in data.draw(st.lists(st.sampled_from(variables), unique=True)) if variables else []:
        while not index.release(variable):
            pass
    for event in batch:
        three = index.truth_assignment(lambda name, event=event: attribute_value(event, name))
        two = index.truth_assignment(lambda name, event=event: attribute_value(event, name), three_valued=False)
        assert len(three) == len(two) == index.size
        for variable, test in index:
            predicate = test.part if isinstance(test, Is) else test
            truth = predicate_truth(predicate, lambda name, event=event: attribute_value(event, name))
            known = None if truth is None else truth is not isinstance(test, Is)
            missing = attribute_value(event, predicate.attribute) is None
            assert three[variable] == (UNDEFINED if known is None else known)
            assert two[variable] == ((UNDEFINED if missing else FALSE) if known is None else known)


def test_a_test_is_stored_once_and_released_with_its_last_use():
    index = PredicateIndex()
    first = index.variable(Compare("price", "<", 150))
    assert index.variable(Compare("price", "<", 150)) == first
    assert (len(index), index.uses(first)) == (1, 2)
    assert index.release(first) is False
    assert index.release(first) is True
    assert len(index) == 0
    assert index.attributes() == frozenset()
    with pytest.raises(CoveyError, match="not in use"):
        index.release(first)


def test_a_released_number_is_used_again():
    index = PredicateIndex()
    numbers = [index.variable(Compare("a", "=", value)) for value in range(4)]
    index.release(numbers[1])
    assert index.find(Compare("a", "=", 1)) is None
    assert index.variable(Compare("b", "=", "new")) == numbers[1]
    assert index.size == 4
    assert index.test(numbers[1]) == Compare("b", "=", "new")
    assert index.variables_of("a") == [0, 2, 3]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=60))
def test_use_counts_follow_a_plain_count(steps):
    index = PredicateIndex()
    count = dict.fromkeys(range(6), 0)
    for take, value in steps:
        test = Compare("a", "<", value)
        if take:
            index.variable(test)
            count[value] += 1
        elif count[value]:
            found = index.find(test)
            assert found is not None
            count[value] -= 1
            assert index.release(found) is (count[value] == 0)
        assert len(index) == sum(1 for uses in count.values() if uses)
        assert len({index.find(Compare("a", "<", v)) for v, uses in count.items() if uses}) == len(index)


def test_only_attributes_with_tests_are_looked_up():
    index = PredicateIndex()
    index.variable(attr("a") < 5)
    asked = []
    index.truth_assignment(lambda name: asked.append(name))
    assert asked == ["a"]


def test_null_among_the_values_of_in_makes_a_miss_unknown():
    index = PredicateIndex()
    variable = index.variable(In("a", (1, None)))
    absent = index.variable(IsNull("a"))
    assert index.truth_assignment(lambda _: 1)[variable] == TRUE
    assert index.truth_assignment(lambda _: 2)[variable] == UNDEFINED
    assert index.truth_assignment(lambda _: None)[absent] == TRUE
