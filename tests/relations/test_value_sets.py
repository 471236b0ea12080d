"""Value sets are a Boolean algebra of exact sets, and print as filters that mean the same."""

from __future__ import annotations

import math
import pickle
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.errors import CoveyError
from covey.events import Meaning
from covey.filters import SEMANTICS, Semantics, matches
from covey.filters.predicates import Compare, In, Like, Predicate, RLike, StartsWith, SubstringOf
from covey.filters.semantics import truth
from covey.filters.values import Kind, Value
from covey.language import parse
from covey.relations.conjunctions import conjunction_of
from covey.relations.predicate_sets import from_predicate
from covey.relations.value_sets import DEFINED, EVERYTHING, MISSING, NOTHING, Interval, ValueSet
from tests.examples import examples
from tests.strategies import FLOATS, INTEGERS, STRINGS, TIMESTAMPS, predicates
from tests.strategies import values as scalars

TICK = timedelta(microseconds=1)
EDGES: list[Value | None] = [
    None, True, False, (), (1, None), math.nan, math.inf, -math.inf, 10**500, -(10**500), 0.1, 0.3,
    math.nextafter(0.3, 1), 2**53 - 1, 2**53 + 2, 0.5, 4.5,
    *INTEGERS, *FLOATS, *(math.nextafter(x, math.inf) for x in FLOATS), *(math.nextafter(x, -math.inf) for x in FLOATS),
    *STRINGS, *(text + "\0" for text in STRINGS), *(text + "\U0010ffff" for text in STRINGS), "ac", "aa",
    *TIMESTAMPS, *(time + TICK for time in TIMESTAMPS if time.year < 9999),
    *(time - TICK for time in TIMESTAMPS if time.year > 1),
]  # fmt: skip


def sets() -> st.SearchStrategy[ValueSet]:
    atoms = predicates(("s",)).map(lambda one: from_predicate(one) if isinstance(one, Predicate) else None)
    leaves = atoms.filter(lambda pair: pair is not None).map(lambda pair: pair[0])  # type: ignore[index]
    return st.recursive(
        leaves | st.sampled_from([NOTHING, EVERYTHING, MISSING]),
        lambda inner: st.builds(lambda a, b: a | b, inner, inner) | inner.map(lambda a: ~a),
        max_leaves=6,
    )


def members(values: ValueSet) -> list[bool]:
    return [value in values for value in EDGES]


@settings(max_examples=examples(300), deadline=None)
@given(sets(), sets(), sets())
def test_value_sets_are_a_boolean_algebra(a: ValueSet, b: ValueSet, c: ValueSet) -> None:
    assert a & b == b & a
    assert a | b == b | a
    assert a & (b & c) == (a & b) & c
    assert a | (b | c) == (a | b) | c
    assert a & (b | c) == (a & b) | (a & c)
    assert a | (b & c) == (a | b) & (a | c)
    assert ~(a | b) == ~a & ~b
    assert ~~a == a
    assert a & ~a == NOTHING
    assert a | ~a == EVERYTHING
    assert a & EVERYTHING == a
    assert a | NOTHING == a
    assert a - b == a & ~b


@settings(max_examples=examples(300), deadline=None)
@given(sets(), sets())
def test_the_operations_are_those_of_sets_of_members(a: ValueSet, b: ValueSet) -> None:
    ins, others = members(a), members(b)
    assert members(a | b) == [x or y for x, y in zip(ins, others, strict=True)]
    assert members(a & b) == [x and y for x, y in zip(ins, others, strict=True)]
    assert members(~a) == [not x for x in ins]
    assert a.issuperset(b) == (b - a).is_empty == b.issubset(a)
    assert a.overlaps(b) == (not (a & b).is_empty) == b.overlaps(a)
    assert (a == b) == (a.issuperset(b) and b.issuperset(a))
    if a == b:
        assert hash(a) == hash(b)


@settings(max_examples=examples(400), deadline=None)
@given(predicates(("s",)), st.sampled_from([*EDGES]) | scalars())
def test_a_predicates_sets_are_where_it_is_true_and_where_it_is_false(
    predicate: Predicate, value: Value | None
) -> None:
    for three_valued, semantics in ((True, "sql"), (False, "simple")):
        pair = from_predicate(predicate, semantics)  # type: ignore[arg-type]
        if pair is not None:
            meant = truth(predicate, lambda _: value, three_valued=three_valued)
            assert (value in pair[0], value in pair[1]) == (meant is True, meant is False)


@settings(max_examples=examples(300), deadline=None)
@given(sets(), st.sampled_from(SEMANTICS))
def test_a_set_prints_as_a_filter_that_means_it(values: ValueSet, semantics: Semantics) -> None:
    if semantics == "strict" and None in values and not values.is_everything:
        with pytest.raises(CoveyError):
            values.to_filter("a", semantics)
        return
    printed = values.to_filter("a", semantics)
    for value in EDGES:
        assert matches(printed, {"a": value}, semantics=semantics) == (value in values)
    read = conjunction_of(parse(str(printed)), Meaning(semantics))
    assert read is not None
    assert read.get("a") == (None if values.is_everything or values.is_empty else values)
    assert read.satisfiable != values.is_empty


@pytest.mark.parametrize(
    ("text", "semantics", "shortest"),
    [
        ("a = 1 OR a = 2 OR a = 3", "sql", "a IN (1, 2, 3)"),
        ("a >= 1 AND a <= 5", "sql", "a BETWEEN 1 AND 5"),
        ("a > 1 AND a < 5 AND a < 7", "sql", "a > 1 AND a < 5"),
        ("a < 1 OR a > 1", "sql", "a != 1"),
        ("a < 1 OR a > 1", "simple", "a < 1 OR a > 1"),
        ("NOT a = 1", "simple", "NOT a = 1"),
        ("NOT a IN (1, 2)", "sql", "a NOT IN (1, 2)"),
        ("a >= 'ab' AND a < 'ac'", "sql", "startswith(a, 'ab')"),
        ("a LIKE 'ab%'", "sql", "startswith(a, 'ab')"),
        ("a LIKE 'ab'", "sql", "a = 'ab'"),
        ("NOT a IS NULL", "sql", "a IS NOT NULL"),
        ("a = 1 OR NOT (a = 1) OR a IS NULL OR NOT ((a >= double('-Infinity')) IS TRUE)", "sql", "TRUE"),
        ("a > 0.3", "sql", "a > 0.3"),
        ("a >= 10000000000000000", "sql", "a >= 10000000000000000"),
        ("a > 9007199254740992 AND a < 9007199254740993", "sql", "FALSE"),
        ("a > 'x' AND a < 'x\\0'", "sql", "FALSE"),
        ("a = double('NaN') OR a = double('Infinity')", "sql", "a >= double('Infinity')"),
        ("a > TIMESTAMP '2024-01-01 00:00:00'", "sql", "a > TIMESTAMP '2024-01-01 00:00:00'"),
        ("a != double('-Infinity')", "sql", "a != double('-Infinity')"),
        ("a > double('-Infinity') AND a < 3", "sql", "a > double('-Infinity') AND a < 3"),
        ("a = TRUE OR a = FALSE", "sql", "a IN (FALSE, TRUE)"),
        ("a IS NOT NULL OR a = 3", "strict", "a IS NOT NULL"),
    ],
)
def test_printed_filters_are_short(text: str, semantics: Semantics, shortest: str) -> None:
    found = conjunction_of(parse(text), Meaning(semantics))
    assert found is not None
    assert str(found.to_filter(semantics)).replace("Z'", "'").replace("+00:00'", "'") == shortest


def test_equal_values_of_other_types_are_one_value() -> None:
    assert ValueSet.of([1]) == ValueSet.of([1.0])
    assert ValueSet.of([0.0]) == ValueSet.of([-0.0])
    assert ValueSet.of([1]) != ValueSet.of([True])
    assert from_predicate(In("a", (1, 0))) != from_predicate(In("a", (True, False)))
    assert from_predicate(In("a", (None, 1, None))) != from_predicate(In("a", (None, True, None)))
    assert from_predicate(Compare("a", "=", 1)) != from_predicate(Compare("a", "=", True))
    assert ValueSet.of([math.nan]) == ValueSet.of([float("nan")])


def test_neighbours_leave_no_gap() -> None:
    assert ValueSet.between("a", "a\0", low_included=False, high_included=False) == NOTHING
    assert ValueSet.between(None, "a") == ValueSet.between(None, "a\0", high_included=False)
    assert ValueSet.between(None, 0.3) == ValueSet.between(None, math.nextafter(0.3, 1), high_included=False)
    assert ValueSet.between(2**60, 2**60 + 1, low_included=False, high_included=False) == NOTHING
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert ValueSet.between(moment, None, low_included=False) == ValueSet.between(moment + TICK, None)
    assert not ValueSet.between("a", "a\1", low_included=False, high_included=False).is_empty
    assert not ValueSet.between(1e308, math.inf, low_included=False, high_included=False).is_empty


def test_integers_have_no_values_in_between() -> None:
    def integers(text: str) -> ValueSet:
        found = conjunction_of(parse(text))
        assert found is not None
        return dict(found.sets).get("x", NOTHING).integers()

    assert integers("x > 3 AND x < 5") == integers("x = 4")
    assert integers("x > 3 AND x < 4") == NOTHING
    assert integers("x > 2.5") == integers("x >= 3")
    assert integers("x IN (1, 2.5, 2)") == integers("x BETWEEN 1 AND 2") == integers("x > 0 AND x < 3")
    assert integers("x != 5") == ValueSet.of_kind(Kind.NUMBER).integers() - ValueSet.of([5]).integers()
    assert str(integers("x > 3 AND x < 5").to_filter("x", integer=True)) == "x = 4"
    assert str(integers("x != 5").to_filter("x", integer=True)) == "x != 5"
    assert str(integers("x > 3").to_filter("x", integer=True)) == "x >= 4"


@settings(max_examples=examples(200), deadline=None)
@given(sets(), sets())
def test_rounding_to_integers_keeps_the_integers_and_the_operations(a: ValueSet, b: ValueSet) -> None:
    for value in EDGES:
        if isinstance(value, float) and not value.is_integer():
            continue
        assert (value in a.integers()) == (value in a)
    assert (a & b).integers() == a.integers() & b.integers()
    assert (a | b).integers() == a.integers() | b.integers()
    if not a.integers().is_empty:
        member = a.integers().example(integer=True)
        assert member in a
        assert not isinstance(member, float)


@settings(max_examples=examples(300), deadline=None)
@given(sets())
def test_a_set_that_is_not_empty_has_an_example(values: ValueSet) -> None:
    if values.is_empty:
        with pytest.raises(ValueError, match="empty"):
            values.example()
    else:
        assert values.example() in values


@settings(max_examples=examples(200), deadline=None)
@given(sets())
def test_a_set_is_its_intervals_and_its_hull_has_it_in_it(values: ValueSet) -> None:
    rebuilt = ValueSet(flags=values.flags)
    for one in values.intervals():
        rebuilt |= (
            ValueSet.of_kind(one.kind)
            if one.low is None and one.high is None
            else ValueSet.of([one.low])
            if one.is_point
            else ValueSet.between(
                one.low, one.high, low_included=one.low_included, high_included=one.high_included
            )
        )  # fmt: skip
    assert rebuilt == values
    assert values.hull().issuperset(values)
    assert pickle.loads(pickle.dumps(values)) == values


def test_touching_intervals_join_to_one() -> None:
    def span(text: str) -> ValueSet:
        found = conjunction_of(parse(text))
        assert found is not None
        return found.sets[0][1]

    assert span("x BETWEEN 1 AND 5").joins_to_interval(span("x > 5 AND x < 7"))
    assert not span("x >= 1 AND x < 5").joins_to_interval(span("x > 5"))
    assert span("x < 5").hull() == span("x < 5") == (span("x < 2") | span("x BETWEEN 2 AND 5") - span("x = 5"))
    assert list(span("x > 5").intervals()) == [Interval(Kind.NUMBER, 5, None, False, True)]
    assert span("x = 1 OR x > 5").pieces == 2


def test_patterns_that_are_no_intervals_have_no_set() -> None:
    assert from_predicate(Like("s", "a%b")) is None
    assert from_predicate(RLike("s", "a")) is None
    assert from_predicate(SubstringOf("s", "x" * 100)) is None
    assert from_predicate(StartsWith("s", "\U0010ffff")) == (
        ValueSet.between("\U0010ffff", None),
        ValueSet.between(None, "\U0010ffff", high_included=False),
    )


def test_a_default_stands_for_missing() -> None:
    below = ValueSet.between(None, 5, high_included=False)
    assert None in below.with_default(3)
    assert None not in (below | MISSING).with_default(7)
    assert below.with_default(None) == below
    assert DEFINED.with_default(1) == EVERYTHING


def test_sets_of_many_points_are_sorted_and_merged() -> None:
    rng = random.Random(5)
    points = [rng.randrange(1000) for _ in range(500)]
    values = ValueSet.of(points).integers()
    assert all((point in values) == (point in points) for point in range(1000))
