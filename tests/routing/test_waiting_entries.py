"""Entries that wait for the index are matched as the interpreter matches them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.filters.algebra import Filter
from covey.filters.semantics import Semantics, matches
from covey.language import parse
from covey.routing.known_filters import KnownFilters
from covey.routing.routing_table import FEW, RoutingTable
from covey.routing.waiting_entries import DEAR, WaitingEntries, keys_of
from tests.strategies import events, filters


def held_against(waiting: WaitingEntries, event: dict[str, Any], semantics: Semantics = "sql") -> list[str]:
    return waiting.matched(event, lambda condition, event: matches(condition, event, semantics=semantics))


@given(
    st.lists(filters(), max_size=6), st.lists(events(), max_size=4), st.sampled_from(["sql", "simple", "strict"]),
    st.data(),
)  # fmt: skip
def test_what_matches_is_found(
    conditions: list[Filter], several: list[dict[str, Any]], semantics: Semantics, data: st.DataObject
) -> None:
    waiting = WaitingEntries()
    for number, condition in enumerate(conditions):
        waiting.add(str(number), condition)
    left = list(range(len(conditions)))
    for number in data.draw(st.sets(st.sampled_from(left))) if left else ():
        assert waiting.remove(str(number))
        left.remove(number)
    for event in several:
        expected = [str(number) for number in left if matches(conditions[number], event, semantics=semantics)]
        assert held_against(waiting, event, semantics) == expected


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a = 1 AND b IN (1, 2)", [("a", 1)]),
        ("b IN (1, 2) AND c > 4", [("b", 1), ("b", 2)]),
        ("(a = 1 AND c > 4) OR b IN ('x', 'y')", [("a", 1), ("b", "x"), ("b", "y")]),
        ("a = 1 OR c > 4", None),
        ("NOT a = 1", None),
        ("a = double('NaN')", None),
        ("a = TRUE", None),
        ("lower(a) = 'x'", None),
        ("a IN (1, NULL)", None),
    ],
)
def test_a_filter_is_filed_under_values_that_an_event_must_have(text: str, keys: list[tuple[str, Any]] | None) -> None:
    assert keys_of(parse(text)) == keys


def test_numbers_of_another_type_and_nested_records_are_found() -> None:
    waiting = WaitingEntries()
    waiting.add("1", parse("a.b = 5"))
    assert held_against(waiting, {"a": {"b": 5.0}}) == held_against(waiting, {"a.b": 5}) == ["1"]
    assert held_against(waiting, {"a": {"b": "5"}}) == held_against(waiting, {"a": {"b": [5]}}) == []


def test_only_those_that_an_event_may_meet_are_held_against_it() -> None:
    waiting, asked = WaitingEntries(), 0
    for number in range(500):
        waiting.add(str(number), parse(f"a = {number} AND b > 1"))

    def count(condition: Filter, event: Any) -> bool:
        nonlocal asked
        asked += 1
        return matches(condition, event)

    for number in range(100):
        assert waiting.matched({"a": number, "b": 2}, count) == [str(number)]
    assert asked == 100


def test_what_waits_goes_to_the_index_where_finding_it_gets_dear() -> None:
    table = RoutingTable(KnownFilters())
    table.change_many("c:ann", {str(at): parse(f"p = {at}") for at in range(FEW + 1)}, ())
    for at in range(100, 150):
        table.add("c:ann", str(at), parse(f"p > {at}"))
    entries = table._index
    assert entries is not None
    assert len(entries._waiting) == FEW + 51
    for _ in range(DEAR // 50 + 2):
        assert table.match({"p": 120}) == {"c:ann": [str(at) for at in range(100, 120)]}
    assert len(entries._waiting) == 0
    assert table.match({"p": 120}) == {"c:ann": [str(at) for at in range(100, 120)]}
