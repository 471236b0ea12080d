"""The tables of docs/language.md say what the interpreter does, and leave no operator out."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from covey.filters.algebra import Filter
from covey.filters.predicates import OPERATORS, Compare, Predicate
from covey.filters.semantics import SEMANTICS, Semantics
from covey.language import parse
from covey.language.functions import FUNCTIONS
from covey.language.lexer import _COMPARISONS
from tests.docs.pages import ROOT
from tests.docs.tables import Row, tables

TESTS = [row for table in tables(ROOT / "docs" / "language.md") if "holds for" in table[0] for row in table]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def shown(row: Row) -> Filter:
    return parse(code(row["test"])[0])


def answer(condition: Filter, event: dict[str, Any], semantics: Semantics) -> str:
    """What a filter gives for an event, told by what it and its negation match."""
    holds, fails = condition.matches(event, semantics=semantics), (~condition).matches(event, semantics=semantics)
    if holds or fails:
        assert holds != fails
        return "true" if holds else "false"
    return "no match" if semantics == "strict" else "unknown"


def parts(condition: Filter) -> list[Filter]:
    return [condition, *(below for child in condition.children() for below in parts(child))]


@pytest.mark.parametrize("row", TESTS, ids=lambda row: row["test"])
def test_a_row_says_what_the_interpreter_does(row: Row) -> None:
    condition = shown(row)
    assert condition.matches(json.loads(code(row["holds for"])[0]))
    assert not condition.matches(json.loads(code(row["not for"])[0]))
    for semantics in SEMANTICS:
        assert row[f"`{semantics}`"] == answer(condition, {}, semantics), semantics


@pytest.mark.parametrize("row", TESTS, ids=lambda row: row["test"])
def test_other_spellings_are_the_same_filter(row: Row) -> None:
    for spelling in code(row["also written"]):
        for semantics in SEMANTICS:
            assert parse(spelling).equivalent(shown(row), semantics=semantics), (spelling, semantics)


@pytest.mark.parametrize("row", TESTS, ids=lambda row: row["test"])
def test_a_default_is_tested_like_a_value(row: Row) -> None:
    event = json.loads(code(row["holds for"])[0])
    plain = {name: value for name, value in event.items() if not isinstance(value, list)}
    if plain == event:
        assert shown(row).matches({}, semantics="default", defaults=plain) == shown(row).matches(
            event, semantics="simple"
        )


def test_no_operator_is_left_out() -> None:
    filters = [part for row in TESTS for part in parts(shown(row))]
    # By name: a dataclass with slots is made twice, and both are subclasses.
    known = {kind.__name__ for kind in [*Filter.__subclasses__(), *Predicate.__subclasses__()]}
    assert {type(one).__name__ for one in filters} == known - {"Constant", "Predicate"}
    assert {one.operator for one in filters if isinstance(one, Compare)} == set(OPERATORS)
    texts = " ".join(text for row in TESTS for text in code(row["test"]) + code(row["also written"]))
    assert {name for name in FUNCTIONS if f"{name}(" not in texts} == set()
    assert {sign for sign in _COMPARISONS if f" {sign} " not in texts} == set()
