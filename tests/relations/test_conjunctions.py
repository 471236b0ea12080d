"""Conjunctions with one value set for each attribute decide identity, covering and overlap exactly."""

from __future__ import annotations

import math
import pickle
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.events import Attribute, Meaning, Schema
from covey.filters import SEMANTICS, Filter, Semantics, matches
from covey.filters.values import Kind
from covey.language import parse
from covey.relations.conjunctions import ALWAYS, UNSATISFIABLE, Conjunction, conjunction_from, conjunction_of
from covey.relations.value_sets import DEFINED, EVERYTHING, NOTHING, ValueSet
from tests import random_worlds
from tests.examples import examples
from tests.strategies import filters

SOME_VALUES: list[Any] = [
    None, -1, 0, 0.5, 1, 2, 2.5, 3, 5, 7, 9, math.inf, -math.inf, math.nan, 2**53 + 1, 10**30, "", "a", "aa", "ab", "b",
    "zz", True, False, (), (1,), *random_worlds.TIMES,
]  # fmt: skip


def of(text: str, semantics: Semantics = "sql", **more: Any) -> Conjunction:
    found = conjunction_of(parse(text), Meaning(semantics, **more))
    assert found is not None
    return found


@settings(max_examples=examples(400), deadline=None)
@given(filters(("i", "s")), st.sampled_from(SEMANTICS), st.sampled_from([{}, {"i": 1}, {"i": 7, "s": "a"}]))
def test_a_conjunction_means_what_its_filter_means(
    condition: Filter, semantics: Semantics, defaults: dict[str, Any]
) -> None:
    found = conjunction_of(condition, Meaning(semantics, defaults))
    if found is None:
        return
    printed = found.to_filter(semantics)
    for i, s in list(product(SOME_VALUES, repeat=2))[::7]:
        event = {"i": i, "s": s}
        meant = matches(condition, event, semantics=semantics, defaults=defaults)
        assert meant == (found.satisfiable and all(event[name] in values for name, values in found.sets))
        assert meant == matches(printed, event, semantics=semantics, defaults=defaults)
    assert conjunction_of(parse(str(printed)), Meaning(semantics, defaults)) == found


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_covering_and_overlap_are_exact(semantics: Semantics) -> None:
    rng = random.Random(11)
    sets = [ValueSet.of([1]), ValueSet.of([1, 2]), ValueSet.between(None, 2), ValueSet.between(2, 3), DEFINED]
    sets += [~one for one in sets[:4]]
    values = (None, 0, 1, 1.5, 2, 2.5, 3, 4, "x")
    pairs = 0
    for _ in range(400):
        f, g = ({name: rng.choice(sets) for name in rng.sample("ab", rng.randint(1, 2))} for _ in range(2))
        one, other = (conjunction_from(box.items(), Meaning(semantics)) for box in (f, g))
        events = [dict(zip("ab", pair, strict=True)) for pair in product(values, repeat=2)]
        left = [all(event[name] in one for name, one in f.items()) for event in events]
        right = [all(event[name] in one for name, one in g.items()) for event in events]
        assert one.covers(other) == all(x or not y for x, y in zip(left, right, strict=True))
        assert one.overlaps(other) == any(x and y for x, y in zip(left, right, strict=True))
        assert one.equivalent(other) == (left == right) == (one == other)
        pairs += one.covers(other)
    assert pairs > 20


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 AND a = 2",
        "a > 5 AND b = 1 AND a < 3",
        "NOT (a = 1 OR NOT a = 1)",
        "a = NULL",
        "a < 5 AND a IS NULL",
        "FALSE OR a = 1 AND FALSE",
    ],
)
def test_what_nothing_meets_is_recognised(text: str) -> None:
    assert of(text) == UNSATISFIABLE


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("b = 2 AND a = 1", "a = 1 AND b = 2"),
        ("a < 1 OR a > 5 OR a IN (2, 3)", "NOT (a >= 1 AND a <= 5 AND a NOT IN (2, 3))"),
        ("NOT (a < 5 OR b != 3)", "a >= 5 AND b = 3"),
        ("(a = 1 AND b = 2) OR (a = 1 AND b = 3)", "a = 1 AND b IN (2, 3)"),
        ("a = 1 OR (a = 1 AND b = 2)", "a = 1"),
        ("(a = 1) IS TRUE", "a <=> 1"),
        ("(a < 1) IS UNKNOWN AND a IS NOT NULL", "NOT (a IS NULL) AND NOT ((a >= double('-Infinity')) IS TRUE)"),
        ("a >= 1 AND a >= 3 AND a < 9", "a >= 3 AND a < 9 AND a < 12"),
        ("TRUE AND a IS NULL OR FALSE", "a IS NULL"),
    ],
)
def test_one_meaning_has_one_conjunction(text: str, same: str) -> None:
    assert of(text) == of(same)
    assert hash(of(text)) == hash(of(same))
    assert pickle.loads(pickle.dumps(of(text))) == of(same)


def test_a_set_of_everything_drops_out() -> None:
    assert of("a IS NULL OR a IS NOT NULL") == ALWAYS
    assert of("a = 1 OR NOT (a = 1)", "simple") == ALWAYS
    assert of("a = 1 OR NOT (a = 1)").sets == (("a", ValueSet.of_kind(Kind.NUMBER)),)


def test_disjunctions_over_attributes_are_no_conjunctions() -> None:
    assert conjunction_of(parse("a = 1 OR b = 2")) is None
    assert conjunction_of(parse("a LIKE '%x%'")) is None
    assert conjunction_of(parse("NOT (a = 1 AND b = 2)")) is None


def test_strict_asks_for_what_is_simplified_away() -> None:
    always = of("price < 1000 OR price > 500", "strict")
    assert always.sets == (("price", DEFINED & of("price < 1000 OR price > 500").sets[0][1]),)
    assert of("a IS NULL OR a IS NOT NULL", "strict").sets == (("a", DEFINED),)
    assert of("a IS NULL", "strict") == UNSATISFIABLE
    assert of("NOT (a = 1)", "strict").sets == (("a", DEFINED - ValueSet.of([1])),)


def test_defaults_stand_for_what_is_missing() -> None:
    cheap = of("price < 10", "default", defaults={"price": 5})
    assert None in cheap.sets[0][1]
    assert of("price IS NULL", "default", defaults={"price": 5}) == UNSATISFIABLE
    assert of("price IS NOT NULL", "default", defaults={"price": 5}) == ALWAYS
    assert of("price IS NULL", "default", defaults={}).satisfiable


def test_a_schema_says_what_there_is() -> None:
    schema = Schema({"n": Attribute("int", mandatory=True), "s": "string", "d": "double"})
    assert of("n > 3 AND n < 5", schema=schema) == of("n = 4", schema=schema)
    assert of("n < 5 OR n >= 5", schema=schema) == ALWAYS
    assert of("s >= '' OR s IS NULL", schema=schema) == ALWAYS
    assert of("s = 5", schema=schema) == UNSATISFIABLE
    assert of("d > 3 AND d < 4", schema=schema).satisfiable
    assert str(of("n > 3 AND n < 5", schema=schema).to_filter(schema=schema)) == "n = 4"


def test_nothing_and_everything() -> None:
    assert ALWAYS.covers(of("a = 1"))
    assert not of("a = 1").covers(ALWAYS)
    assert of("a = 1").covers(UNSATISFIABLE)
    assert not UNSATISFIABLE.covers(of("a = 1"))
    assert not UNSATISFIABLE.overlaps(UNSATISFIABLE)
    assert conjunction_from([("a", NOTHING)]) == UNSATISFIABLE
    assert conjunction_from([("a", EVERYTHING)]) == ALWAYS


def test_a_conjunction_with_fewer_attributes_covers_one_with_more() -> None:
    """Mühl, Fiege and Buchmann, proposition 3 and its example: x > 3 covers x = 4 AND y = 2."""
    assert of("x > 3").covers(of("x = 4 AND y = 2"))
    assert not of("x = 4 AND y = 2").covers(of("x > 3"))
    assert of("x > 3").overlaps(of("y = 2"))
