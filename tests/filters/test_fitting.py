"""What types rule out is left out of filters of dialects without types, and nothing else changes."""

import itertools
import json
import random
from typing import Any

import pytest

import covey
from covey.filters.algebra import TRUE
from covey.filters.fitting import Known, fitted
from covey.filters.values import Kind

SCHEMA = covey.Schema({"n": "int", "s": "string", "b": "boolean", "l": "list<string>", "m": "list<int>"})
VALUES: dict[str, list[Any]] = {
    "n": [None, 1, 5],
    "s": [None, "a", "ab", "5"],
    "b": [None, True],
    "l": [None, [], ["a", "b"]],
    "m": [None, [], [1], [5, 7]],
}
MATCHERS: list[Any] = ["a", "5", 5, True, {"prefix": "a"}, {"anything-but": "a"}, {"anything-but": [5]}]
MATCHERS += [{"exists": True}, {"exists": False}, {"numeric": [">", 2]}, {"wildcard": "*b"}]


def events() -> list[dict[str, Any]]:
    keys = list(VALUES)
    return [
        {key: value for key, value in zip(keys, values, strict=True) if value is not None}
        for values in itertools.product(*VALUES.values())
    ]


def test_a_fitted_filter_matches_the_same_events_of_these_types() -> None:
    draw = random.Random(5)
    shorter = 0
    for _ in range(60):
        pattern = {key: draw.sample(MATCHERS, 2) for key in draw.sample(list(VALUES), 2)}
        whole = covey.parse(json.dumps(pattern), dialect="eventbridge")
        cut = SCHEMA.fit(whole)
        SCHEMA.check(cut)
        shorter += len(str(cut)) < len(str(whole))
        for event in draw.sample(events(), 40):
            assert cut.matches(event) is whole.matches(event), (pattern, str(cut), event)
    assert shorter > 50


def test_what_is_left_is_plain() -> None:
    pattern = covey.parse('{"s": ["a", 5], "n": [{"anything-but": "a"}]}', dialect="eventbridge")
    assert str(SCHEMA.fit(pattern)) == "s = 'a' AND (n IS NOT NULL OR is_present(n) = TRUE AND n IS NULL)"
    assert fitted(pattern, lambda name: None) == pattern


def test_a_table_does_not_tell_null_from_missing() -> None:
    types = {"n": Known(Kind.NUMBER), "s": Known(Kind.STRING)}.get
    pattern = covey.parse('{"n": [null, 5], "s": [{"anything-but": ["a"]}]}', dialect="eventbridge")
    assert str(fitted(pattern, types, columns=True)) == "n = 5 AND s IS NOT NULL AND (s IN ('a')) IS NOT TRUE"


@pytest.mark.parametrize("dialect", ["eventbridge", "sigma"])
def test_an_index_with_a_schema_takes_rules_without_types(dialect: str) -> None:
    if dialect == "sigma":
        pytest.importorskip("sigma", reason="pySigma is the extra sigma, which is not installed")
    text = {
        "eventbridge": '{"s": [{"prefix": "a"}], "n": [5, "5"], "l": ["b"]}',
        "sigma": "title: x\nlogsource: {product: p}\ndetection: {s: {s: 'a*', n: 5}, condition: s}",
    }[dialect]
    index = covey.Index(schema=SCHEMA, dialect=dialect)
    index.add("one", text)
    index.add_many([("two", text)])
    event = {"s": "ab", "n": 5, "l": ["b"]}
    assert sorted(index.match(event)) == ["one", "two"]
    assert "'5'" not in index.text("one")
    assert index.match({**event, "n": 6}) == []


def test_of_a_list_of_records_only_its_elements_have_fields() -> None:
    fields = {"kind": Known(Kind.STRING), "free": Known(Kind.NUMBER)}
    types = {"disks": Known(Kind.LIST, fields=fields.get)}.get
    pattern = '{"disks": {"kind": ["ssd"], "free": [{"numeric": ["<", 5]}]}}'
    one = fitted(covey.parse(pattern, dialect="eventbridge"), types, columns=True)
    assert str(one) == "exists(disks, x -> x.kind = 'ssd' AND x.free < 5)"
    there = fitted(covey.parse('{"disks": [{"exists": true}]}', dialect="eventbridge"), types, columns=True)
    assert not there.matches({"disks": [{"kind": "ssd"}]})
    assert fitted(covey.parse("disks.kind IS NULL"), types) == TRUE
