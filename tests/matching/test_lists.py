"""Tests of lists' elements, records among them: in batches, alone, from Arrow and from files as interpreted."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import covey
from covey.errors import EventError
from covey.events import Schema
from covey.filters import Filter, attr, matches
from covey.filters.semantics import SEMANTICS, Semantics

ITEM = pa.struct([("price", pa.int64()), ("kind", pa.string()), ("tags", pa.list_(pa.string()))])
TYPE = pa.schema([("items", pa.list_(ITEM)), ("tags", pa.list_(pa.string())), ("n", pa.int64())])


def _record(rng: random.Random) -> dict[str, Any] | None:
    if rng.random() < 0.1:
        return None
    tags = None if rng.random() < 0.3 else [rng.choice(["a", "b", "AB", None]) for _ in range(rng.randint(0, 2))]
    return {"price": rng.choice([None, 1, 5, 9]), "kind": rng.choice([None, "a", "b"]), "tags": tags}


def _event(rng: random.Random) -> dict[str, Any]:
    event: dict[str, Any] = {"n": rng.choice([None, 1, 2])}
    event["items"] = None if rng.random() < 0.15 else [_record(rng) for _ in range(rng.randint(0, 3))]
    event["tags"] = (
        None if rng.random() < 0.2 else [rng.choice(["a", "ab", "b", None]) for _ in range(rng.randint(0, 3))]
    )
    return event


def _condition(rng: random.Random, variable: str) -> str:
    tests = [
        f"{variable}.price > {rng.choice([0, 4, 8])}",
        f"{variable}.kind = '{rng.choice('ab')}'",
        f"{variable}.price IS NULL",
        f"{variable} IS NULL",
        f"exists({variable}.tags, t -> t ILIKE '{rng.choice(['a%', '%b', 'b'])}')",
        f"forall({variable}.tags, {variable} -> {variable} = 'a')",
    ]
    chosen = rng.sample(tests, 2)
    return rng.choice(
        [chosen[0], f"NOT {chosen[0]}", f"{chosen[0]} AND {chosen[1]}", f"{chosen[0]} OR NOT {chosen[1]}"]
    )


def _filter(rng: random.Random) -> str:
    name = rng.choice(["x", "item"])
    tests = [
        f"exists(items, {name} -> {_condition(rng, name)})",
        f"forall(items, {name} -> {_condition(rng, name)})",
        f"exists(tags, x -> x LIKE '{rng.choice(['a%', '%b', '_'])}')",
        f"forall(tags, x -> x IN ('a', 'b'{rng.choice(['', ', NULL'])}))",
        f"arrays_overlap(tags, array('{rng.choice('ab')}', {rng.choice(['NULL', repr('ab')])}))",
        "array_contains(tags, 'a')",
        "items IS NOT NULL",
        f"n = {rng.randint(1, 2)}",
    ]
    chosen = rng.sample(tests, 2)
    return rng.choice(
        [chosen[0], f"NOT {chosen[0]}", " AND ".join(chosen), " OR ".join(chosen), f"({chosen[0]}) IS UNKNOWN"]
    )


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_batches_single_events_and_arrow_are_as_interpreted(semantics: Semantics, tmp_path: Path) -> None:
    rng = random.Random(semantics)
    rules = {str(at): _filter(rng) for at in range(120)}
    events = [_event(rng) for _ in range(60)]
    parsed = {id: covey.parse(text) for id, text in rules.items()}
    wanted = [{id for id, one in parsed.items() if matches(one, event, semantics=semantics)} for event in events]
    index = covey.Index(semantics=semantics)
    index.add_many(rules.items())
    index.save(tmp_path / "index")
    table = pa.Table.from_pylist(events, TYPE)
    for one in (index, covey.Index.open(tmp_path / "index")):
        assert [set(ids) for ids in one.match_batch(events).to_pylist()] == wanted
        assert [set(ids) for ids in one.match_batch(table).to_pylist()] == wanted
        assert [set(one.match(event)) for event in events] == wanted
    assert 0.02 < sum(map(len, wanted)) / (len(rules) * len(events)) < 0.98


def test_a_list_of_records_is_defined_and_holds_maps_and_lists() -> None:
    index = covey.Index()
    index.add("there", "items IS NOT NULL")
    index.add("deep", "exists(items, x -> exists(x, y -> y = 1))")
    index.add("map", "exists(items, x -> x.k = 1)")
    index.add_many([(f"n{at}", f"n = {at}") for at in range(100)])
    events = [{"items": [{"k": 1}]}, {"items": []}, {"items": [[1, 2]]}, {"items": None}]
    wanted = [["there", "map"], ["there"], ["there", "deep"], []]
    assert [sorted(index.match(event)) for event in events] == [sorted(ids) for ids in wanted]
    assert [sorted(ids) for ids in index.match_batch(events).to_pylist()] == [sorted(ids) for ids in wanted]
    maps = pa.table({"items": pa.array([[[("k", 1)]], [[("k", 2)]]], pa.list_(pa.map_(pa.string(), pa.int64())))})
    assert [sorted(ids) for ids in index.match_batch(maps).to_pylist()] == [["map", "there"], ["there"]]


def test_what_cannot_be_compared_inside_a_record_is_an_error_that_names_the_list() -> None:
    index = covey.Index()
    index.add("one", "exists(items, x -> x.k = 1)")
    index.add_many([(f"n{at}", f"n = {at}") for at in range(100)])
    event = {"items": [{"k": object(), "other": object()}]}
    with pytest.raises(EventError, match="attribute 'items'"):
        index.match_batch([event] * 40)
    assert index.match({"items": [{"k": 1, "other": object()}]}) == ["one"]


def test_a_schema_checks_what_elements_are_compared_with() -> None:
    schema = Schema({"tags": "list<string>", "n": "int"})
    fits = covey.parse("exists(tags, x -> x = 'a')")
    assert schema.check(fits) == fits
    for wrong in ("exists(tags, x -> x = 5)", "forall(n, x -> x = 5)"):
        with pytest.raises(covey.FilterTypeError):
            schema.check(covey.parse(wrong))


def test_equal_tests_are_equal_and_nesting_has_a_limit() -> None:
    assert covey.parse("exists(a, y -> y > 5)") == covey.parse("exists(a, x -> x > 5)")
    assert covey.parse("exists(a, x -> x > 5)").covers(covey.parse("exists(a, x -> x > 5) AND b = 1"))
    test: Filter = attr("x") == 1
    for _ in range(8):
        test = attr("x").any(test)
    with pytest.raises(covey.FilterError, match="nested more than 8 deep"):
        attr("x").any(test)
    assert covey.parse(str(test)) == test


def test_what_elements_meet_says_what_lists_do() -> None:
    def f(text: str) -> Filter:
        return covey.parse(text)

    assert f("exists(a, x -> x > 5)").covers(f("exists(a, x -> x > 7)"))
    assert f("exists(a, x -> x > 5)").covers(f("exists(a, y -> y = 7) AND b = 1"))
    assert f("forall(a, x -> x ILIKE 'a%')").covers(f("forall(a, x -> x LIKE 'A%')"))
    assert f("exists(a, x -> x > 5)").covers(f("array_contains(a, 7)"))
    assert f("exists(a, x -> x.k = 1)").covers(f("exists(a, x -> x.k = 1 AND x.p > 5)"))
    assert not f("exists(a, x -> x > 7)").covers(f("exists(a, x -> x > 5)"))
    assert not f("exists(a, x -> x > 5)").covers(f("forall(a, x -> x > 5)"))
    assert not f("exists(a, x -> x > 5)").covers(f("array_contains(a, 3)"))
    assert not f("exists(a, x -> x > 5)").covers(f("NOT exists(a, x -> x > 7)"))
    assert f("exists(a, x -> exists(x.l, y -> y > 1))").covers(f("exists(a, x -> exists(x.l, y -> y > 2))"))
