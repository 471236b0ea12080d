"""Covering, equivalence and overlap of any two filters are what brute force over small worlds says."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covey.relations.exact
from covey.events import Attribute, Schema
from covey.filters import FALSE, SEMANTICS, TRUE, And, Contains, Filter, Or, Semantics, attr, matches
from covey.language import parse
from covey.relations.exact import (
    SMALLEST,
    Question,
    RelationLimits,
    covers,
    decide_covers,
    decide_overlaps,
    equivalent,
    overlaps,
)
from covey.relations.relate import relate
from covey.relations.steps import Budget, LaterError
from tests.examples import examples
from tests.predicate_table import ADDRESSES
from tests.relations.small_worlds import VALUES, SmallWorld, random_filter
from tests.strategies import filters

DEFAULTS: dict[str, Any] = {"x": 1, "y": "ab"}
TEXTS = ["".join(letters) for length in range(6) for letters in product("abc", repeat=length)]


@pytest.mark.parametrize("semantics", SEMANTICS)
@pytest.mark.parametrize("names", ["xy", "xyz"])
def test_relations_are_what_all_events_of_a_small_world_say(semantics: Semantics, names: str) -> None:
    world = SmallWorld(names) if names == "xy" else SmallWorld(names, SmallWorld("x").values[::2])
    rng = random.Random(f"{semantics} {names}")
    pairs = 2400 if names == "xy" else 600
    covering = disjoint = 0
    for at in range(pairs):
        f, g = (random_filter(rng, names, texts=False) for _ in range(2))
        if at % 3 == 0:
            f = Or((f, And((g, random_filter(rng, names, texts=False)))))
        in_f, in_g = (world.matching(one, semantics, DEFAULTS) for one in (f, g))
        relation = relate(f, g, semantics=semantics, defaults=DEFAULTS)
        found = (relation.covers, relation.covered, relation.equivalent, relation.overlaps)
        meant = (not in_g & ~in_f, not in_f & ~in_g, in_f == in_g, bool(in_f & in_g))
        if names == "xy":
            assert found == meant, (str(f), str(g))
        else:
            # Half of the values are left out: brute force may miss a counterexample, but none that it has is missed.
            assert not any(found[:3]) or [a <= b for a, b in zip(found[:3], meant[:3], strict=True)] == [True] * 3
            assert found[3] >= meant[3]
        covering += found[0] or found[1]
        disjoint += not found[3]
        if at % 100 == 0:
            some = rng.randrange(world.all.bit_length())
            event = world.event(some)
            assert matches(f, event, semantics=semantics, defaults=DEFAULTS) == bool(in_f >> some & 1)
    assert covering > pairs // 20
    assert disjoint > pairs // 40


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_every_relation_that_does_not_hold_is_shown_by_an_event(semantics: Semantics) -> None:
    rng = random.Random(semantics)
    for _ in range(200):
        f, g = (random_filter(rng, "xy", texts=True) for _ in range(2))
        found = relate(f, g, semantics=semantics, defaults=DEFAULTS)
        assert found.covers is (found.only_g is None), (str(f), str(g))
        assert found.covered is (found.only_f is None), (str(f), str(g))
        assert found.overlaps is (found.both is not None), (str(f), str(g))
        for event, meant in ((found.only_f, (True, False)), (found.only_g, (False, True)), (found.both, (True, True))):
            if event is not None:
                seen = tuple(matches(one, event, semantics=semantics, defaults=DEFAULTS) for one in (f, g))
                assert seen == meant
        assert covers(f, g, semantics=semantics, defaults=DEFAULTS) is found.covers
        assert equivalent(f, g, semantics=semantics, defaults=DEFAULTS) is found.equivalent
        assert overlaps(f, g, semantics=semantics, defaults=DEFAULTS) is found.overlaps


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_no_text_contradicts_what_is_said_of_patterns(semantics: Semantics) -> None:
    rng = random.Random(f"texts {semantics}")
    world = SmallWorld("s", [None, 1, (), *TEXTS])
    decided = 0
    for _ in range(250):
        f, g = (random_filter(rng, "s", texts=True, depth=2) for _ in range(2))
        in_f, in_g = (world.matching(one, semantics, {}) for one in (f, g))
        if covers(f, g, semantics=semantics):
            assert not in_g & ~in_f, (str(f), str(g))
            decided += 1
        if not overlaps(f, g, semantics=semantics):
            assert not in_f & in_g, (str(f), str(g))
            decided += 1
    assert decided > 50


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_nothing_contradicts_what_is_said_of_predicates_that_are_not_always_decided(semantics: Semantics) -> None:
    rng = random.Random(f"inexact {semantics}")
    world = SmallWorld("xy", [*VALUES[::3], *ADDRESSES[:4], ("a",), ("a", None), ("b", "ab"), (1, "a")])
    decided = shown = 0
    for _ in range(250):
        f, g = (random_filter(rng, "xy", texts=True, depth=2, exact=False) for _ in range(2))
        in_f, in_g = (world.matching(one, semantics, {}) for one in (f, g))
        found = relate(f, g, semantics=semantics)
        if found.covers:
            assert not in_g & ~in_f, (str(f), str(g))
        if found.covered:
            assert not in_f & ~in_g, (str(f), str(g))
        if found.overlaps is False:
            assert not in_f & in_g, (str(f), str(g))
        decided += bool(found.covers or found.covered or found.overlaps is False)
        for event, meant in ((found.only_f, (True, False)), (found.only_g, (False, True)), (found.both, (True, True))):
            if event is not None:
                assert tuple(matches(one, event, semantics=semantics) for one in (f, g)) == meant, (str(f), str(g))
                shown += 1
    assert decided > 10
    assert shown > 100


@settings(max_examples=examples(60), deadline=None)
@given(filters(("i", "s", "l")), filters(("i", "s", "l")), filters(("i", "s", "l")), st.sampled_from(SEMANTICS))
def test_the_laws_of_covering(f: Filter, g: Filter, h: Filter, semantics: Semantics) -> None:
    def above(one: Filter, other: Filter) -> bool:
        return covers(one, other, semantics=semantics)

    assert above(f, f)
    assert above(f, And((f, f)))
    if semantics != "strict":
        # Under strict a disjunction asks for the attributes of both parts.
        assert above(Or((f, g)), f)
        assert above(TRUE, f)
    assert above(f, f & g)
    assert above(f, FALSE)
    assert equivalent(f, g, semantics=semantics) == (above(f, g) and above(g, f))
    assert overlaps(f, g, semantics=semantics) == overlaps(g, f, semantics=semantics)
    if above(f, g) and above(g, h):
        assert above(f, h)


def test_missing_is_something_that_an_attribute_can_be() -> None:
    assert not covers(parse("x < 5 OR x >= 5"), parse("y = 1"))
    assert not covers(parse("x < 5 OR x >= 5"), parse("y = 1"), semantics="strict")
    assert not covers(parse("x < 5 OR x >= 5"), parse("y = 1"), semantics="default")
    assert not covers(parse("x < 5 OR NOT x < 5"), parse("y = 1"))
    assert covers(parse("x < 5 OR NOT x < 5"), parse("y = 1"), semantics="simple")
    assert covers(parse("x < 5 OR x IS NULL OR x IS NOT NULL"), parse("y = 1"))


def test_a_disjunction_may_cover_what_none_of_its_parts_does() -> None:
    assert covers(parse("x < 5 OR x > 3"), parse("x BETWEEN 1 AND 9"))
    assert covers(parse("(x < 5 AND y = 1) OR (x >= 5 AND y = 1) OR z = 2"), parse("x = 7 AND y IN (1)"))
    assert covers(parse("x < 5 OR y < 5"), parse("x = 4 OR (x = 7 AND y = 1)"))
    assert not covers(parse("x < 5 OR y < 5"), parse("x = 4 OR (x = 7 AND y = 6)"))


@pytest.mark.parametrize(
    ("f", "g", "holds"),
    [
        ("contains(s, 'b')", "s LIKE 'a%b%c'", True),
        ("s LIKE 'a%c'", "s LIKE 'a_c'", True),
        ("s LIKE '%a%b%'", "contains(s, 'ab')", True),
        ("s LIKE 'a%a'", "startswith(s, 'a') AND endswith(s, 'a')", False),
        ("s LIKE 'a%a' OR s = 'a'", "startswith(s, 'a') AND endswith(s, 'a')", True),
        ("s >= 'b'", "startswith(s, 'ba') AND endswith(s, 'x')", True),
        ("substring_of(s, 'a long enough text')", "s IN ('text', 'long')", True),
        ("substring_of(s, 'a long enough text')", "substring_of(s, 'enough')", True),
        ("s RLIKE '^a.*b$'", "s LIKE 'a%b'", False),
        ("s LIKE 'a%b'", "s RLIKE '^a.*b$'", True),
        ("s RLIKE '[0-9]'", "s RLIKE '^[0-9]{2,4}$'", True),
        ("s RLIKE '(?i)ibm'", "contains(s, 'Ibm')", True),
        ("s RLIKE '\\\\bIBM\\\\b'", "s = 'IBM'", True),
        ("s RLIKE '\\\\bIBM\\\\b' OR s = 'x'", "s RLIKE '\\\\bIBM\\\\b' AND s > 'a'", True),
        ("array_contains(l, 1) OR array_contains(l, 2)", "array_contains(l, 2) AND array_contains(l, 3)", True),
        ("NOT array_contains(l, 1)", "array_contains(l, 2)", False),
    ],
)
def test_covering_by_patterns_and_lists(f: str, g: str, holds: bool) -> None:
    assert covers(parse(f), parse(g)) is holds


def test_what_is_not_understood_is_unknown_and_taken_on_the_safe_side() -> None:
    boundary, word = parse("s RLIKE '\\\\bIBM\\\\b'"), parse("s RLIKE '\\\\bIBM'")
    found = relate(boundary, word)
    assert found.covered is None
    assert not covers(word, boundary)
    assert overlaps(boundary, parse("s RLIKE '\\\\bDell\\\\b' AND s LIKE 'I%'"))
    assert found.only_g is None or matches(word, found.only_g)


def test_a_search_beyond_its_limit_is_unknown() -> None:
    f = parse(" OR ".join(f"(a = {n} AND b = {n + 1} AND c < {n})" for n in range(12)))
    g = parse("a > 3 AND b < 7 OR c > 2")
    few = RelationLimits(steps=20)
    assert relate(f, g, limits=few).covers is None
    assert not covers(g, f, limits=few)
    assert overlaps(f, g, limits=few)
    many = [Contains("s", f"{n}x") for n in range(30)]
    assert relate(And(tuple(many[:15])), Or(tuple(many)), limits=RelationLimits(steps=400)).covers is None
    assert covers(many[0], And(tuple(many[:3])), limits=RelationLimits(steps=400))


def test_a_schema_says_what_attributes_can_be() -> None:
    needed = {"n": Attribute("int", mandatory=True), "m": Attribute("double", mandatory=True)}
    schema = Schema({**needed, "s": "string", "l": "list<int>"})
    assert covers(parse("n = 4 OR s = 'x'"), parse("n > 3 AND n < 5"), schema=schema)
    assert not covers(parse("n = 4 OR s = 'x'"), parse("n > 3 AND n < 5"))
    assert covers(parse("n < 5 OR n >= 5"), parse("s = 'x' OR l IS NULL"), schema=schema)
    assert not overlaps(parse("array_contains(l, 2.5) OR n = 'x'"), parse("TRUE"), schema=schema)
    assert overlaps(parse("s = 1"), parse("TRUE"), schema=schema)  # a text may be read as a number
    found = relate(parse("n > 3 OR s = 'a'"), parse("n > 4"), schema=schema)
    assert found.only_f is not None
    assert schema.decode(found.only_f)
    assert found.only_f["n"] == 4


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_relations_of_integers_are_what_all_integers_say(semantics: Semantics) -> None:
    schema = Schema({"x": Attribute("int", mandatory=True), "y": "int"})
    world = SmallWorld("xy", [None, -1, 0, 1, 2, 3, 4])
    valid = world.matching(parse("x IS NOT NULL"), "sql", {})
    rng = random.Random(f"integers {semantics}")
    for _ in range(250):
        f, g = (random_filter(rng, "xy", texts=False) for _ in range(2))
        in_f, in_g = (world.matching(one, semantics, {"y": 2}) & valid for one in (f, g))
        found = relate(f, g, semantics=semantics, defaults={"y": 2}, schema=schema)
        meant = (not in_g & ~in_f, not in_f & ~in_g, in_f == in_g, bool(in_f & in_g))
        assert (found.covers, found.covered, found.equivalent, found.overlaps) == meant, (str(f), str(g))
        assert covers(f, g, semantics=semantics, defaults={"y": 2}, schema=schema) is found.covers
        for event in (found.only_f, found.only_g, found.both):
            assert event is None or schema.decode(event)


def test_the_schemas_defaults_are_the_defaults() -> None:
    schema = Schema({"n": Attribute("int", default=3)})
    assert covers(parse("n = 3 OR n IS NULL"), parse("n < 4 AND n > 2"), semantics="default", schema=schema)
    assert covers(parse("n = 3 OR n > 7"), parse("n = 3"), semantics="default", schema=schema)
    shown = relate(parse("n != 3"), parse("n = 4 OR n = 3"), semantics="default", schema=schema).only_g
    assert shown in ({}, {"n": 3})


def test_deeply_nested_questions_stay_small() -> None:
    text = "a = 1"
    for _ in range(40):
        text = f"(({text}) IS UNKNOWN OR b = 2)"
    assert covers(parse("b = 2 OR a IS NULL OR a IS NOT NULL"), parse(text))


def test_large_disjunctions_are_decided() -> None:
    stripes = Or(tuple((attr("x") >= n) & (attr("x") < n + 1) & (attr("y") < 100 - n) for n in range(60)))
    assert covers(stripes, parse("x >= 3 AND x < 50 AND y < 40"))
    assert not covers(stripes, parse("x >= 3 AND x < 50 AND y < 55"))
    assert relate(stripes, parse("x >= 3 AND x < 50 AND y < 55")).only_g is not None


def test_filters_answer_for_themselves() -> None:
    assert covey.relations.exact
    cheap, cheaper = attr("price") < 10, attr("price") < 5
    assert cheap.covers(cheaper)
    assert not cheaper.covers(cheap)
    assert cheap.overlaps(cheaper)
    assert cheap.equivalent(~(attr("price") >= 10))
    assert not cheap.equivalent(~(attr("price") >= 10), semantics="simple")
    assert cheap.covers(parse("price IS NULL"), semantics="default", defaults={"price": 1})


def _hard_texts(attributes: int) -> Filter:
    tests = ("RLIKE '^(a|b)*a(a|b){20}$'", "RLIKE '^(a|b)*b(a|b){19}$'")
    return parse(" AND ".join(f"a{at} {test}" for at in range(attributes) for test in tests))


def _pigeonholes(holes: int) -> Filter:
    """So many pigeons and one more in so many holes: nothing meets it, which takes a search exponential time."""
    pigeons = range(holes + 1)
    somewhere = ["(" + " OR ".join(f"p{i}h{j} = 1" for j in range(holes)) + ")" for i in pigeons]
    alone = [f"NOT (p{i}h{j} = 1 AND p{k}h{j} = 1)" for j in range(holes) for i in pigeons for k in range(i)]
    return parse(" AND ".join(somewhere + alone))


@pytest.mark.parametrize("limit", [2_000, 20_000])
@pytest.mark.parametrize("hard", [_hard_texts(1), _hard_texts(10), _pigeonholes(7)], ids=["text", "texts", "pigeons"])
def test_a_pair_has_one_limit_for_all_of_its_attributes(hard: Filter, limit: int) -> None:
    for other in (parse("FALSE"), hard | parse("z = 1"), _hard_texts(2)):
        question = Question(other, hard, limits=RelationLimits(steps=limit))
        question.only_g()
        assert question.spent <= limit + SMALLEST


def test_a_budget_puts_off_what_it_has_no_steps_for_and_decides_nothing() -> None:
    f, g = parse("a = 1 OR b = 2"), parse("a = 1 AND c = 3 OR b = 2")
    budget = Budget(0)
    assert decide_covers(f, g, budget=budget), "one question is always answered"
    assert budget.spent >= SMALLEST
    for decide in (decide_covers, decide_overlaps):
        with pytest.raises(LaterError):
            decide(f, g, budget=budget)
