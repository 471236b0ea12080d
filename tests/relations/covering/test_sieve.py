"""Witnesses only ever say no: whatever a table with witnesses answers is what asking about each pair answers."""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any

import pytest

import covey
from covey.events.meaning import Meaning
from covey.events.schema import Schema
from covey.filters import Filter
from covey.filters.semantics import SEMANTICS, Semantics
from covey.kernels.witnesses import BOOLEAN
from covey.relations.conjunctions import Conjunction, conjunction_of
from covey.relations.covering import CoveringLimits, CoveringTable
from covey.relations.covering.bounds import bounds_of
from covey.relations.covering.codes import code_of, spans_of
from covey.relations.covering.sieve import WitnessSieve
from covey.relations.covering.witnesses import WITNESSES, corners_meet, witnesses_of
from covey.relations.exact import covers
from covey.relations.predicate_sets import from_predicate
from tests.random_worlds import filter_of
from tests.relations.covering.small_worlds import DEFAULTS, NAMES, boolean, comparison, conjunctive
from tests.relations.small_worlds import VALUES, random_filter

LIMITS = CoveringLimits(exact_decisions=10_000)
TYPED = Schema(
    {"kind": covey.Attribute("string", mandatory=True), "a": covey.Attribute("int", mandatory=True), "b": "double"},
    type_attribute="kind",
    subtypes={"Bid": "Offer"},
    mandatory_by_type={"Offer": ["b"]},
)
TYPED_TEXTS = (
    "kind = 'Offer' AND a > {0}", "kind = 'Bid' AND (a < {0} OR b >= {1})", "b IS NOT NULL AND a != {0} OR b < {1}",
    "a BETWEEN {0} AND {1} OR b > {1}", "NOT (a = {0} AND b <= {1})", "kind = 'Offer' OR a = {0} AND b IS NULL",
    "a IN ({0}, {1}) AND (b < {1} OR kind = 'Bid')", "kind LIKE '%i%' AND (a > {0} OR b IS NULL)",
)  # fmt: skip


def typed(rng: random.Random) -> Filter:
    return covey.parse(rng.choice(TYPED_TEXTS).format(rng.randint(0, 3), rng.randint(0, 3)))


class Pairs:
    """Who covers whom, by the definition: each pair is asked about once."""

    def __init__(self, meaning: Meaning) -> None:
        self._options = {"semantics": meaning.semantics, "defaults": meaning.defaults, "schema": meaning.schema}
        self._known: dict[tuple[Filter, Filter], bool] = {}

    def covers(self, outer: Filter, inner: Filter) -> bool:
        known = self._known.get((outer, inner))
        if known is None:
            known = self._known[outer, inner] = covers(outer, inner, **self._options)  # type: ignore[arg-type]
        return known

    def check(self, table: CoveringTable, filters: dict[Hashable, Filter]) -> None:
        """Roots cover no other root, and what isn't a root stands under one that covers it."""
        roots = table.roots()
        for root in roots:
            assert not [other for other in roots if other != root and self.covers(filters[other], filters[root])]
        for id, condition in filters.items():
            above = table.covered_by(id)
            assert (above is None) == (id in roots)
            assert above is None or self.covers(filters[above], condition)


def live(rng: random.Random, meaning: Meaning, draw: Any, steps: int) -> None:
    """Insertions and removals; the table is what the definition says after each."""
    table = CoveringTable(semantics=meaning.semantics, defaults=meaning.defaults, schema=meaning.schema, limits=LIMITS)
    pairs, filters = Pairs(meaning), {}
    for step in range(steps):
        if len(filters) > 6 and rng.random() < 0.35:
            id = rng.choice(list(filters))
            table.remove(id)
            del filters[id]
        else:
            filters[step] = draw(rng)
            table.insert(step, filters[step])
        pairs.check(table, filters)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_tables_of_boolean_filters_and_conjunctions_are_what_pairs_say(semantics: Semantics) -> None:
    meaning = Meaning(semantics, DEFAULTS if semantics == "default" else None)
    for seed in range(3):
        live(random.Random(seed), meaning, lambda rng: rng.choice((boolean, conjunctive))(rng), 25)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_tables_with_a_schema_and_types_are_what_pairs_say(semantics: Semantics) -> None:
    for seed in range(3):
        live(random.Random(seed), Meaning(semantics, None, TYPED), typed, 25)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_a_witness_is_an_event_that_meets_the_filter(semantics: Semantics) -> None:
    rng = random.Random(5)
    found = 0
    for schema, draw in ((None, lambda: filter_of(rng, 3)), (TYPED, lambda: typed(rng))):
        meaning = Meaning(semantics, None, schema)
        for _ in range(150):
            condition = meaning.read(draw())
            key: Conjunction | Filter = conjunction_of(condition, meaning) or condition
            witnesses = witnesses_of(key, bounds_of(condition, meaning).inner, meaning)
            assert len(witnesses) <= WITNESSES
            for event in witnesses:
                assert meaning.matches(condition, event)
                if schema is not None:
                    schema.decode(event)
                    assert not [names for _, names in schema.missing_mandatory([event])]
            found += len(witnesses)
    assert found > 300


def test_codes_never_say_that_a_member_of_a_set_is_none() -> None:
    rng = random.Random(6)
    told_apart = 0
    for _ in range(2_000):
        leaf = comparison(rng, "a") if rng.random() < 0.3 else random_filter(rng, "a", texts=False, depth=0)
        pair = from_predicate(leaf) if hasattr(leaf, "attribute") else None
        for values in pair or ():
            spans = spans_of(values)
            for value in (*VALUES, 2**53, 2**53 + 1, 2**70, -(2**1100), 1e300):
                if value is None:
                    continue
                kind, code = code_of(value)
                inside = any(kind == one and low <= code <= high for one, low, high in spans)
                assert inside or value not in values
                told_apart += not inside
    assert told_apart > 1_000


def test_the_sieve_leaves_out_what_a_witness_rules_out_and_nothing_that_covers() -> None:
    rng = random.Random(7)
    meaning = Meaning()
    filters = [boolean(rng) for _ in range(120)]
    sieve = WitnessSieve()
    coded = []
    for number, condition in enumerate(filters):
        bounds = bounds_of(condition, meaning)
        boxes = bounds.inner if bounds.complete else (bounds.hull,)
        coded.append(sieve.coded(boxes, witnesses_of(condition, bounds.inner, meaning)) if bounds.inner else None)
        if coded[-1] is not None:
            sieve.add(number, coded[-1], outer=True)
    left = pairs = 0
    for number, asked in enumerate(coded):
        if asked is None:
            continue
        over, under = sieve.may_cover(asked), sieve.may_be_covered(asked)
        for other, known in enumerate(coded):
            if known is not None:
                pairs += 1
                assert other in over or not covers(filters[other], filters[number])
                assert other in under or not covers(filters[number], filters[other])
        left += len(over) + len(under)
    assert left < pairs


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_corners_in_codes_are_those_of_the_events(semantics: Semantics) -> None:
    rng = random.Random(9)
    meaning = Meaning(semantics, DEFAULTS if semantics == "default" else None)
    sieve = WitnessSieve()
    compared = 0
    for _ in range(400):
        condition = rng.choice((boolean, lambda one: filter_of(one, 3)))(rng)
        inner = bounds_of(condition, meaning).inner
        if inner and corners_meet(inner, meaning):
            witnesses = witnesses_of(condition, inner, meaning)
            expected, found = sieve.coded(inner, witnesses).keys, sieve.coded(inner, (), inner).keys
            assert expected[:1] == found[:1]
            # Events are different where they differ for Python, to which 1 is TRUE; points where their codes are.
            assert len(found) == WITNESSES or set(expected) <= set(found)
            assert set(found) <= set(expected) or len(expected) == WITNESSES or _has_booleans(found)
            compared += len(witnesses)
    assert compared > 500


def _has_booleans(points: Any) -> bool:
    return any(code[0] == BOOLEAN for keys in points for _, code in keys)


def test_a_sieve_made_anew_answers_as_before() -> None:
    rng = random.Random(8)
    meaning = Meaning()
    sieve = WitnessSieve()
    slots, asked = {}, []
    for number in range(200):
        condition = boolean(rng, NAMES)
        bounds = bounds_of(condition, meaning)
        if bounds.inner and bounds.complete:
            coded = sieve.coded(bounds.inner, witnesses_of(condition, bounds.inner, meaning))
            slots[number] = sieve.add(number, coded, outer=number % 3 > 0)
            asked.append(coded)
    for number in list(slots)[::2]:
        sieve.remove(slots.pop(number))
    before = [(sieve.may_cover(one), sieve.may_be_covered(one)) for one in asked]
    assert {form for form, _ in sieve.tidy()} == set(slots)
    assert [(sieve.may_cover(one), sieve.may_be_covered(one)) for one in asked] == before


def test_an_event_by_which_a_search_said_no_spares_the_next_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counting(*arguments: Any) -> Any:
        asked.append(arguments)
        return exact(*arguments)

    from covey.relations.covering import table as module

    exact = module.decide_covers_or_show
    monkeypatch.setattr(module, "decide_covers_or_show", counting)
    table = CoveringTable()
    table.insert("narrow", covey.parse("a < 9 AND b < 9 OR a > 1 AND c = 1"))
    for number in range(3):
        hole = 4.2 - number / 10  # each hole has the one before in it, and so what was found there
        table.insert(number, covey.parse(f"(a < {hole} OR a > 4.5) AND b < 9 OR c = 1 AND a > 1 OR d = {number}"))
    assert sorted(map(str, table.roots())) == ["0", "1", "2", "narrow"]
    assert 1 <= len(asked) < 3
