"""Relations read filters as a schema does: with subtypes, and with what an event's type makes mandatory."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import covey
from covey.events import Attribute, Meaning, Schema
from covey.filters import SEMANTICS, Filter, Semantics, all_of, any_of, matches
from covey.filters.predicates import Compare, In, IsNull
from covey.language import parse
from covey.matching import Index
from covey.relations import conjunction_of, covers, equivalent, overlaps
from covey.relations.covering import CoveringTable
from covey.relations.merging import merge
from covey.routing.known_filters import KnownFilters

QUOTES = Schema(
    {"type": "string", "price": "int", "volume": "int"},
    type_attribute="type",
    subtypes={"StockQuote": "Quote"},
    mandatory_by_type={"Quote": ["price"], "Trade": ["volume"]},
)
CONSTANTS: dict[str, list[Any]] = {"type": ["Quote", "StockQuote", "Trade", "Other"], "price": [1, 2], "volume": [1]}
VALUES: dict[str, list[Any]] = {
    "type": [None, *CONSTANTS["type"], "another"],
    "price": [None, 0, 1, 2],
    "volume": [None, 0, 1],
}


def world() -> list[dict[str, Any]]:
    """Every event over few values that the schema allows."""
    events = [
        {name: value for name, value in zip(VALUES, chosen, strict=True) if value is not None}
        for chosen in product(*VALUES.values())
    ]
    return [event for event in events if all(name in event for name in QUOTES.mandatory(event.get("type")))]


WORLD = world()


def random_filter(rng: random.Random, *, depth: int = 2) -> Filter:
    roll = rng.random()
    if depth == 0 or roll < 0.4:
        name = rng.choice(list(CONSTANTS))
        constants = CONSTANTS[name]
        return rng.choice(
            [
                IsNull(name),
                ~IsNull(name),
                Compare(name, rng.choice(["=", "!=", "<=>"]), rng.choice(constants)),  # type: ignore[arg-type]
                In(name, tuple(rng.sample(constants, min(2, len(constants))))),
            ]
        )
    if roll < 0.5:
        return ~random_filter(rng, depth=depth - 1)
    parts = [random_filter(rng, depth=depth - 1) for _ in range(2)]
    return all_of(parts) if roll < 0.8 else any_of(parts)


def test_a_filter_on_a_type_is_about_its_subtypes_too() -> None:
    f, g = parse("type = 'Quote'"), parse("type = 'StockQuote'")
    index = Index(schema=QUOTES)
    index.add_many([("f", f), ("g", g)])
    assert index.match({"type": "StockQuote", "price": 1}) == ["f", "g"]
    relation = covey.relate(f, g, schema=QUOTES)
    assert (relation.covers, relation.covered, relation.overlaps) == (True, False, True)
    assert relation.both is not None
    assert index.match(relation.both) == ["f", "g"]
    assert overlaps(f, g, schema=QUOTES)
    assert covers(f, g, schema=QUOTES)
    assert equivalent(f, parse("type IN ('StockQuote', 'Quote')"), schema=QUOTES)


def test_texts_relate_as_their_filters_do() -> None:
    assert covey.relate("price < 5", "price < 3") == covey.relate(parse("price < 5"), parse("price < 3"))
    assert covey.relate("type = 'Quote'", parse("type = 'StockQuote'"), schema=QUOTES).covers
    with pytest.raises(covey.FilterSyntaxError, match="value or condition"):
        covey.relate("price <", "price < 3")


def test_what_a_type_makes_mandatory_needs_no_test() -> None:
    plain, tested = "type = 'Quote'", "type = 'Quote' AND exists(price)"
    assert covey.relate(plain, tested, schema=QUOTES).equivalent
    assert equivalent(parse(plain), parse(tested), schema=QUOTES)
    assert covers(parse("exists(price)"), parse(plain), schema=QUOTES)
    assert not overlaps(parse("price IS NULL"), parse("type = 'StockQuote'"), schema=QUOTES)
    assert not equivalent(parse("type = 'Trade'"), parse("type = 'Trade' AND exists(price)"), schema=QUOTES)
    assert not equivalent(parse(plain), parse(tested))
    meaning = Meaning(schema=QUOTES)
    kept = conjunction_of(meaning.read(parse(tested)), meaning)
    assert kept is not None
    assert str(kept.to_filter(schema=QUOTES)) == "type IN ('Quote', 'StockQuote')"


def test_a_schema_with_a_mandatory_type_shows_events_that_it_allows() -> None:
    schema = Schema(
        {"type": Attribute("string", mandatory=True), "price": "int"},
        type_attribute="type",
        mandatory_by_type={"": ["price"], "Quote": ["price"]},
    )
    for f, g in (("price IS NULL", "FALSE"), ("type = 'Quote'", "FALSE"), ("x = 1", "y = 1"), ("TRUE", "x = 1")):
        relation = covey.relate(f, g, schema=schema)
        for event in (relation.only_f, relation.only_g, relation.both):
            assert event is None or schema.decode(event)


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_relations_are_what_all_events_that_a_schema_allows_say(semantics: Semantics) -> None:
    defaults: dict[str, Any] = {"price": 1, "type": "Trade"}
    rng = random.Random(f"meaning {semantics}")
    given: dict[str, Any] = {"semantics": semantics, "defaults": defaults, "schema": QUOTES}
    known = KnownFilters(Meaning(**given))
    shown = 0

    def matched(condition: Filter) -> list[bool]:
        read = QUOTES.check(condition)
        return [matches(read, event, semantics=semantics, defaults=defaults) for event in WORLD]

    for _ in range(600):
        f, g = random_filter(rng), random_filter(rng)
        in_f, in_g = matched(f), matched(g)
        pairs = list(zip(in_f, in_g, strict=True))
        meant = (all(a or not b for a, b in pairs), all(b or not a for a, b in pairs), any(a and b for a, b in pairs))
        found = covey.relate(f, g, **given)
        assert (found.covers, found.covered, found.overlaps) == meant, (str(f), str(g))
        assert covers(f, g, **given) is meant[0], (str(f), str(g))
        assert equivalent(f, g, **given) is (meant[0] and meant[1]), (str(f), str(g))
        assert overlaps(f, g, **given) is meant[2], (str(f), str(g))
        read = known.parse(str(f)), known.parse(str(g))
        assert (known.covers(*read), known.overlaps(*read)) == (meant[0], meant[2]), (str(f), str(g))
        for event in (found.only_f, found.only_g, found.both):
            shown += event is not None and bool(QUOTES.decode(event))
    assert shown > 600


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_a_normal_form_that_another_broker_reads_means_the_same(semantics: Semantics) -> None:
    rng = random.Random(f"normal {semantics}")
    known = KnownFilters(Meaning(semantics, {"price": 1, "type": "Trade"}, QUOTES))
    texts = ["type != 'Quote' OR type = 'StockQuote'", "type IN ('Quote') AND NOT type = 'StockQuote'"]
    for text in [*texts, *(str(random_filter(rng)) for _ in range(300))]:
        read = known.parse(text)
        again = known.parse(str(known.normal(read)[1]))
        assert [known.matches(read, event) for event in WORLD] == [known.matches(again, event) for event in WORLD], text


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_mergers_and_covering_tables_lose_no_event_that_a_schema_allows(semantics: Semantics) -> None:
    rng = random.Random(f"merging {semantics}")

    def matched(condition: Filter) -> set[int]:
        read = QUOTES.check(condition)
        return {at for at, event in enumerate(WORLD) if matches(read, event, semantics=semantics)}

    for _ in range(150):
        parts = [random_filter(rng, depth=1) for _ in range(3)]
        wanted = set[int]().union(*map(matched, parts))
        table = CoveringTable(semantics=semantics, schema=QUOTES)
        table.insert_many(enumerate(parts))
        assert set[int]().union(*(matched(table.filter(root)) for root in table.roots())) == wanted
        try:
            merger = merge(parts, semantics=semantics, schema=QUOTES)
        except covey.CoveyError:
            assert semantics == "strict"
            continue
        assert matched(merger.filter) == wanted, [str(part) for part in parts]


TYPED_EVENTS = Schema(
    {"type": Attribute("string", mandatory=True), "price": "int"},
    type_attribute="type",
    subtypes={"StockQuote": "Quote"},
    mandatory_by_type={"Quote": ["price"]},
)
"""Every event has a type, as Mühl, Fiege and Buchmann have it."""


def _typed_filters() -> st.SearchStrategy[str]:
    tests = st.sampled_from(
        [
            "type = 'Quote'", "type = 'StockQuote'", "type = 'News'", "type != 'Quote'",
            "type IN ('News', 'StockQuote')", "type IS NULL", "type IS NOT NULL", "type <=> 'Quote'",
            "price < 3", "price >= 2", "price IS NULL",
        ]
    )  # fmt: skip
    return st.recursive(
        tests,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: "({} {} {})".format(*parts)),
            inner.map("NOT ({})".format),
        ),
        max_leaves=5,
    )


@given(_typed_filters(), _typed_filters())
def test_where_every_event_has_a_type_relations_are_about_events_that_have_one(one: str, other: str) -> None:
    events = [
        {"type": kind, **({} if price is None else {"price": price})}
        for kind in ("Quote", "StockQuote", "News", "Else")
        for price in (None, 1, 2, 3)
        if price is not None or not kind.endswith("Quote")
    ]
    for event in events:
        assert TYPED_EVENTS.decode(event)
    found = covey.relate(one, other, schema=TYPED_EVENTS)
    left, right = (TYPED_EVENTS.check(covey.parse(text)) for text in (one, other))
    matched = [(left.matches(event), right.matches(event)) for event in events]
    assert found.covers == all(here or not there for here, there in matched)
    assert found.covered == all(there or not here for here, there in matched)
    assert found.overlaps == any(here and there for here, there in matched)


def test_an_event_without_its_type_is_refused() -> None:
    with pytest.raises(covey.EventError, match="attribute 'type' is mandatory and missing"):
        TYPED_EVENTS.decode({"price": 1})
    assert covey.relate("type IS NOT NULL", "TRUE", schema=TYPED_EVENTS).equivalent
    assert Schema.from_json(TYPED_EVENTS.to_json()) == TYPED_EVENTS
