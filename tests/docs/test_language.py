"""The tables of docs/language.md say what the interpreter does, and leave no operator out."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest

from covey.filters.algebra import Filter
from covey.filters.predicates import OPERATORS, TEXT_TESTS, Compare, Predicate
from covey.filters.semantics import SEMANTICS, Semantics, attribute_value
from covey.filters.term_functions import NAMED
from covey.language import parse, read_term
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
    plain = {name: value for name, value in event.items() if not isinstance(value, list) and value is not None}
    if plain == event:
        assert shown(row).matches({}, semantics="default", defaults=plain) == shown(row).matches(
            event, semantics="simple"
        )


TERMS = [row for table in tables(ROOT / "docs" / "language.md") if "is" in table[0] for row in table]


@pytest.mark.parametrize("row", TERMS, ids=lambda row: row["term"])
def test_a_term_gives_what_its_row_says(row: Row) -> None:
    event = json.loads(code(row["for"])[0])
    if "t" in event:
        event["t"] = datetime.fromisoformat(event["t"])
    wanted = json.loads(code(row["is"])[0])
    term = read_term(code(row["term"])[0])
    found = term.value(lambda name: attribute_value(event, name))
    wanted = datetime.fromisoformat(wanted) if isinstance(found, datetime) else wanted
    assert (type(float(found) if isinstance(found, float) else found), found) == (type(wanted), wanted)
    for spelling in code(row["also written"]):
        assert read_term(spelling) == term


def test_no_function_of_terms_is_left_out() -> None:
    texts = " ".join(row["term"] + row["also written"] for row in TERMS)
    own = {name for name in NAMED if not name.startswith(("cesql_", "java_"))}  # the others are of dialects
    assert {name for name in own if f"{name}(" not in texts} == set()


def test_no_operator_is_left_out() -> None:
    filters = [part for row in TESTS for part in parts(shown(row))]
    # By name: a dataclass with slots is made twice, and both are subclasses.
    kinds = [*Filter.__subclasses__(), *Predicate.__subclasses__(), *TEXT_TESTS.values()]
    known = {kind.__name__ for kind in kinds if kind.__module__.startswith("covey.")}
    assert {type(one).__name__ for one in filters} == known - {"Constant", "Predicate", "TextTest"}
    assert {one.operator for one in filters if isinstance(one, Compare)} == set(OPERATORS)
    texts = " ".join(text for row in TESTS for text in code(row["test"]) + code(row["also written"]))
    assert {name for name in FUNCTIONS if f"{name}(" not in texts} == set()
    assert {sign for sign in _COMPARISONS if f" {sign} " not in texts} == set()
