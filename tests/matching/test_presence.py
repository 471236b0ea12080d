"""`is_present` and `is_missing` tell null from missing, in every way of matching; IS NULL doesn't."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import covey
from covey.events import Schema
from covey.filters import attr, matches
from covey.filters.semantics import SEMANTICS, Semantics
from covey.relations import covers, equivalent, overlaps

EVENTS: list[dict[str, Any]] = [
    {}, {"a": None}, {"a": 5}, {"r": None}, {"r": {}}, {"r": {"x": None}}, {"r": {"x": 1}}, {"r.x": None},
    {"a": None, "r": {"x": 2}}, {"a": []}, {"a": {"b": 1}}, {"a": {}},
]  # fmt: skip
TESTS = ["is_present(a)", "is_missing(a)", "a IS NULL", "a = 5", "is_missing(r.x)", "is_present(r.x)", "r.x IS NULL"]


def test_null_is_there_and_what_is_missing_is_not() -> None:
    def holds(text: str) -> list[bool]:
        return [covey.parse(text).matches(event) for event in EVENTS]

    assert holds("is_missing(a)") == ["a" not in event or isinstance(event["a"], dict) for event in EVENTS]
    assert holds("is_present(a) AND a IS NULL") == [event.get("a", 0) is None for event in EVENTS]
    assert holds("is_present(r.x)") == [at in (5, 6, 7, 8) for at in range(len(EVENTS))]
    assert holds("a IS NULL") == [covey.parse("a <=> NULL").matches(event) for event in EVENTS]


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_all_ways_of_matching_are_as_interpreted(semantics: Semantics, tmp_path: Path) -> None:
    rng = random.Random(semantics)
    rules = {}
    for at in range(80):
        one, other = rng.sample(TESTS, 2)
        rules[str(at)] = rng.choice(
            [one, f"NOT {one}", f"{one} AND {other}", f"{one} OR NOT {other}", f"({one}) IS FALSE"]
        )
    wanted = [
        {id for id, rule in rules.items() if matches(covey.parse(rule), event, semantics=semantics)} for event in EVENTS
    ]
    index = covey.Index(semantics=semantics)
    index.add_many(rules.items())
    index.save(tmp_path / "index")
    for one_index in (index, covey.Index.open(tmp_path / "index")):
        assert [set(ids) for ids in one_index.match_batch(EVENTS).to_pylist()] == wanted
        assert [set(one_index.match(event)) for event in EVENTS] == wanted
        lines = "\n".join(map(json.dumps, EVENTS)).encode()
        assert [set(ids) for ids in one_index.match_json_lines(lines).to_pylist()] == wanted
        assert [set(one_index.match_json(json.dumps(event).encode())) for event in EVENTS] == wanted
    assert any(wanted)


def test_a_schema_and_defaults_leave_it_alone() -> None:
    schema = Schema({"a": "int"})
    index = covey.Index(schema=schema)
    index.add_many(
        [
            ("missing", "is_missing(a)"),
            ("null", "is_present(a) AND a IS NULL"),
            *((f"n{at}", f"b = {at}") for at in range(100)),
        ]
    )
    events: list[dict[str, Any]] = [{}, {"a": None}, {"a": 1}]
    few = covey.Index(schema=schema)
    few.add("missing", "is_missing(a)")
    few.add("null", "is_present(a) AND a IS NULL")
    assert [few.match(event) for event in events] == [["missing"], ["null"], []]
    assert few.match_batch(events).to_pylist() == [["missing"], ["null"], []]
    assert (
        index.match_batch(events).to_pylist() == [index.match(event) for event in events] == [["missing"], ["null"], []]
    )


def test_arrow_has_no_null_beside_missing() -> None:
    index = covey.Index()
    index.add_many(
        [("missing", "is_missing(a)"), ("there", "is_present(a)"), *((f"n{at}", f"b = {at}") for at in range(100))]
    )
    assert index.match_batch(pa.table({"a": [None, 1]})).to_pylist() == [["missing"], ["there"]]


def test_it_is_written_as_sql_json_and_python() -> None:
    test = covey.parse("is_missing(r.x)")
    assert test == attr("r.x").is_missing() == covey.from_json({"attribute": "r.x", "present": False})
    assert covey.parse("is_present(r.x)") == attr("r.x").is_present()
    for one in (test, ~test, attr("odd name").is_present()):
        assert covey.parse(str(one)) == one
        assert covey.from_json(json.loads(json.dumps(covey.to_json(one)))) == one
    assert covey.parse("exists(l, x -> is_missing(x.k))").matches({"l": [{"k": None}, {}]})
    assert not covey.parse("exists(l, x -> is_missing(x.k))").matches({"l": [{"k": None}]})
    for wrong in (
        "is_missing(5)",
        "is_missing(a + 1)",
        "coalesce(is_present(a), b) = 1",
        "CASE WHEN is_present(a) THEN 1 END = 1",
    ):
        with pytest.raises(covey.FilterError):
            covey.parse(wrong)


def test_relations_have_two_cells_where_a_filter_asks() -> None:
    def f(text: str) -> covey.Filter:
        return covey.parse(text)

    assert covers(f("a IS NULL"), f("is_missing(a)"))
    assert not covers(f("is_missing(a)"), f("a IS NULL"))
    assert covers(f("is_present(a)"), f("a = 5"))
    assert covers(f("is_present(a)"), f("a = 5 OR a LIKE '%x'"))
    assert not overlaps(f("is_missing(a)"), f("a = 5"))
    assert not overlaps(f("is_missing(a)"), f("a = 5 OR a LIKE '%x'"))
    assert equivalent(f("is_missing(a) OR (is_present(a) AND a IS NULL)"), f("a IS NULL"))
    assert equivalent(f("is_present(a) AND a = 5"), f("a = 5"))
    assert equivalent(f("NOT is_present(a)"), f("is_missing(a)"))
    found = covey.relate("is_missing(a)", "a IS NULL")
    assert found.only_g == {"a": None}
    assert found.both == {}


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_relations_are_what_all_events_say(semantics: Semantics) -> None:
    rng = random.Random(f"relations {semantics}")
    tests = ["is_present(a)", "is_missing(a)", "a IS NULL", "a = 5", "a = 6", "b = 1", "is_missing(b)", "a LIKE '%x'"]
    a: list[dict[str, Any]] = [{}, {"a": None}, {"a": 5}, {"a": 6}, {"a": 7}, {"a": "x"}, {"a": "y"}, {"a": True}]
    b: list[dict[str, Any]] = [{}, {"b": None}, {"b": 1}, {"b": 2}]
    events = [{**one, **other} for one in a for other in b]
    for _ in range(150):
        left, right = (
            covey.parse(
                rng.choice(["{0} AND {1}", "{0} OR {1}", "NOT {0}", "({0} OR {1}) AND {2}"]).format(
                    *rng.sample(tests, 3)
                )
            )
            for _ in range(2)
        )
        pairs = [tuple(matches(one, event, semantics=semantics) for one in (left, right)) for event in events]
        assert covers(left, right, semantics=semantics) is ((False, True) not in pairs), (str(left), str(right))
        assert overlaps(left, right, semantics=semantics) is ((True, True) in pairs), (str(left), str(right))
