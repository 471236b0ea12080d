"""Terms in the matcher: batch = single = interpreter, whatever the term and the semantics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.strategies import events
from tests.term_strategies import term_filters

import covey
from covey.errors import CoveyError, LimitError
from covey.events import Attribute
from covey.filters import SEMANTICS, Filter, Semantics
from covey.language import to_json
from covey.limits import Limits

DEFAULTS = {"i": 2, "s": "ab", "nested.x": 0.5}


def _index(filters: list[Filter], semantics: Semantics) -> covey.Index:
    index = covey.Index(semantics=semantics)
    index.add_many([(str(number), condition) for number, condition in enumerate(filters)])
    index.parts()  # compiles what waits
    return index


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(term_filters(), min_size=1, max_size=6), st.lists(events(), min_size=1, max_size=8))
def test_batch_and_single_matching_are_the_interpreter(
    filters: list[Filter], given_events: list[dict[str, Any]]
) -> None:
    for semantics in SEMANTICS:
        index = _index(filters, semantics)
        together = index.match_batch(given_events).to_pylist()
        for event, found in zip(given_events, together, strict=True):
            wanted = [str(n) for n, one in enumerate(filters) if one.matches(event, semantics=semantics)]
            assert found == wanted, semantics
            assert index.match(event) == wanted, semantics


@settings(max_examples=examples(80), deadline=None)
@given(term_filters())
def test_what_is_printed_reads_back_as_the_same_filter(condition: Filter) -> None:
    text = str(condition)
    assert str(covey.parse(text)) == text
    assert covey.parse(text) == condition
    assert covey.parse(json.dumps(to_json(condition)), "json") == condition


def test_defaults_count_before_terms() -> None:
    schema = covey.Schema({"a": Attribute("int", default=5), "b": "int"})
    index = covey.Index(semantics="default", schema=schema)
    index.add_many([("sum", "a + 1 = 6"), ("both", "a + b = 7"), ("none", "coalesce(b, 0) = 0")])
    index.parts()
    assert index.match({}) == ["sum", "none"]
    assert index.match_batch([{}, {"b": 2}, {"a": 1, "b": 6}]).to_pylist() == [
        ["sum", "none"],
        ["sum", "both"],
        ["both"],
    ]


def test_strict_semantics_asks_for_every_attribute_inside_a_term() -> None:
    index = covey.Index(semantics="strict")
    index.add_many([("x", "coalesce(a, b) = 1"), ("y", "a / b IS NULL"), ("z", "a = 1 OR lower(s) = 'q'")])
    index.parts()
    given_events = [{"a": 1}, {"a": 1, "b": 0}, {"a": 1, "s": "x"}, {"b": 1}]
    wanted = [[], ["x", "y"], ["z"], []]
    assert index.match_batch(given_events).to_pylist() == wanted
    assert [index.match(event) for event in given_events] == wanted


def test_a_batch_may_bring_the_columns_of_terms() -> None:
    index = covey.Index()
    index.add_many([("x", "a * b > 10"), ("y", "c = 1")])
    index.parts()
    assert index.tested == ("=a * b", "c")
    assert index.attributes == ("a", "b", "c")
    assert [term.sql for term in index.terms] == ["a * b"]
    table = pa.table({"=a * b": [11, 10, None], "c": [1, 0, 1]})
    assert index.match_batch(table).to_pylist() == [["x", "y"], [], ["y"]]


def test_saved_indexes_record_terms(tmp_path: Path) -> None:
    index = covey.Index()
    index.add_many([("x", "price * quantity >= 100"), ("y", "lower(name) LIKE 'a%' AND price < quantity")])
    index.save(tmp_path / "rules.covey")
    again = covey.Index.open(tmp_path / "rules.covey")
    event = {"price": 9, "quantity": 12, "name": "Ab"}
    assert again.match(event) == ["x", "y"]
    assert again.match_batch([event]).to_pylist() == [["x", "y"]]
    assert str(again.filter("y")) == "lower(name) LIKE 'a%' AND price < quantity"


def test_explain_shows_a_terms_value() -> None:
    index = covey.Index()
    index.add("x", "price * quantity > 100")
    explained = str(index.explain("x", {"price": 3, "quantity": 4}))
    assert "price * quantity" in explained
    assert "12" in explained


def test_distinct_terms_have_a_limit() -> None:
    index = covey.Index(limits=Limits(terms=2))
    index.add("1", "a + 1 > 5")
    index.add("2", "a + 2 > 5 AND a + 1 < 9")
    with pytest.raises(LimitError, match=r"3 distinct terms.*terms is 2"):
        index.add("3", "a + 3 > 5")
    index.add("4", "a + 1 > 50")
    with pytest.raises(CoveyError, match="3 distinct terms"):
        index.add_many([("5", "a + 2 = 1"), ("6", "a + 7 = 1")])
    assert len(index) == 3


def test_terms_nested_too_deep_are_refused_in_one_line() -> None:
    with pytest.raises(LimitError, match="term_depth is 64") as caught:
        covey.parse(" + ".join(["a"] * 100) + " > 5")
    assert "\n" not in str(caught.value)
