"""The walk "Add an operator" of CONTRIBUTING.md, with operators that nobody needs: one class each, and all of covey
knows them. Kinds that covey doesn't know raise, wherever they get."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import covey
from covey.events import Schema
from covey.filters import And, Filter, Not, Or, TextTest, matches, text_test
from covey.filters.patterns import ANY_TEXT, Form, Opaque, Wildcards
from covey.filters.predicates import TEXT_TESTS, Contains, Predicate, StartsWith
from covey.filters.semantics import SEMANTICS, Semantics, truth_for
from covey.matching import Index
from covey.matching.lowering import Lowering
from covey.matching.patterns import AttributePatterns
from covey.relations import covers, from_predicate, overlaps, text_facts
from covey.relations.covering import CoveringTable
from covey.relations.text_automata import automaton_of

TEXTS = ["", "a", "b", "e", "tt", "BB", "xAx", "aba", "sKy", "Éa", "ÉA", "xéa", "a\n", "𝔘"]
EVENTS = [{}, {"s": 5}, {"s": ["a"]}, *({"s": text} for text in TEXTS)]


@dataclass(frozen=True, slots=True, repr=False)
class HasVowel(TextTest):
    """A text with a vowel in it: a test of which nothing is known but whether a text meets it."""

    name: ClassVar[str] = "has_vowel"

    def holds(self, text: str) -> bool:
        return bool(re.search("[aeiou]", text))

    def form(self) -> Form:
        return Opaque()


@dataclass(frozen=True, slots=True, repr=False)
class Framed(TextTest):
    """A text that starts and ends with two texts: a pattern of literals and gaps."""

    name: ClassVar[str] = "framed"
    aliases: ClassVar[tuple[str, ...]] = ("in_a_frame",)

    left: str
    right: str = "a"

    def holds(self, text: str) -> bool:
        return len(text) >= len(self.left + self.right) and text.startswith(self.left) and text.endswith(self.right)

    def form(self) -> Form:
        return Wildcards(tuple(token for token in (self.left, ANY_TEXT, self.right) if token != ""))


@dataclass(frozen=True, slots=True, repr=False)
class StartsWithAnyCase(TextTest):
    """A text that starts with another, whatever the case of letters."""

    name: ClassVar[str] = "starts_in_any_case"
    ignore_case: ClassVar[bool] = True

    text: str

    def holds(self, text: str) -> bool:
        return text.lower().startswith(self.text.lower())

    def form(self) -> Form:
        return Wildcards((self.text.lower(), ANY_TEXT) if self.text else (ANY_TEXT,), ignore_case=True)


MADE_UP: tuple[type[TextTest], ...] = (HasVowel, Framed, StartsWithAnyCase)
WRITTEN = [
    ("has_vowel(s)", HasVowel("s"), {"attribute": "s", "has_vowel": True}),
    ("framed(s, 'a')", Framed("s", "a"), {"attribute": "s", "framed": "a"}),
    ("framed(s, 'b', 'B')", Framed("s", "b", "B"), {"attribute": "s", "framed": "b", "right": "B"}),
    ("starts_in_any_case(s, 'É')", StartsWithAnyCase("s", "É"), {"attribute": "s", "starts_in_any_case": "É"}),
]


@pytest.fixture(autouse=True)
def made_up() -> Iterator[None]:
    for kind in MADE_UP:
        text_test(kind)
    yield
    for kind in MADE_UP:
        for name in (kind.name, *kind.aliases):
            del TEXT_TESTS[name]


@pytest.mark.parametrize(("text", "test", "form"), WRITTEN)
def test_it_is_parsed_and_printed_as_sql_and_as_json(text: str, test: TextTest, form: dict[str, object]) -> None:
    assert covey.parse(text) == test
    assert str(test) == text
    assert str(Not(test)) == f"NOT {text}"
    assert covey.to_json(test) == form
    assert covey.from_json(form) == test
    assert covey.parse(text.upper().replace("(S", "(s")).attributes() == {"s"}


def test_its_mistakes_are_told_as_those_of_others() -> None:
    assert covey.parse("in_a_frame(s, 'a')") == Framed("s", "a")
    assert covey.parse("framed('abba', 'a')") == covey.parse("TRUE")
    with pytest.raises(covey.FilterSyntaxError, match=re.escape("framed takes 2 or 3 arguments, not 1; write framed(")):
        covey.parse("framed(s)")
    with pytest.raises(covey.FilterSyntaxError, match="framed takes a string here"):
        covey.parse("framed(s, 5)")
    with pytest.raises(covey.FilterError, match=re.escape("at $.has_vowel: has_vowel takes true")):
        covey.from_json({"attribute": "s", "has_vowel": "yes"})
    with pytest.raises(covey.FilterTypeError, match="not string"):
        Schema({"s": "int"}).check(HasVowel("s"))
    with pytest.raises(TypeError, match="named 'contains' already"):
        text_test(type("Contains", (HasVowel,), {"name": "contains"}))


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_it_matches_in_batches_and_alone_as_it_is_interpreted(semantics: Semantics, tmp_path: Path) -> None:
    tests: list[Filter] = [test for _, test, _ in WRITTEN]
    filters = [*tests, *map(Not, tests), Or((tests[0], Contains("s", "x"))), And((tests[1], Not(tests[0])))]
    filters += [Contains("s", f"{letter}{letter}") for letter in "bt"]
    wanted = [
        [str(at) for at, one in enumerate(filters) if matches(one, event, semantics=semantics)] for event in EVENTS
    ]
    index = Index(semantics=semantics)
    index.add_many([(str(at), str(one)) for at, one in enumerate(filters)])
    index.save(tmp_path / "index")
    for one in (index, Index.open(tmp_path / "index")):
        assert [sorted(ids, key=int) for ids in one.match_batch(EVENTS).to_pylist()] == wanted
        assert [sorted(one.match(event), key=int) for event in EVENTS] == wanted
    assert any(wanted)


def test_relations_with_it_are_never_on_the_unsafe_side() -> None:
    tests: list[Filter] = [*(test for _, test, _ in WRITTEN), StartsWith("s", "a"), Contains("s", "b")]
    filters = [*tests, *map(Not, tests), *(And((f, g)) for f in tests for g in tests if f != g)]
    for f in filters:
        for g in filters:
            matched = [(f.matches(event), g.matches(event)) for event in EVENTS]
            if any(in_g and not in_f for in_f, in_g in matched):
                assert not covers(f, g), (str(f), str(g))
            if any(in_f and in_g for in_f, in_g in matched):
                assert overlaps(f, g), (str(f), str(g))


def test_a_form_that_is_understood_takes_part_in_covering() -> None:
    assert covers(StartsWith("s", "a"), Framed("s", "ab"))
    assert not covers(Framed("s", "ab"), StartsWith("s", "a"))
    assert covey.relate(Framed("s", "a", "b"), Framed("s", "a", "c")).overlaps is False
    assert covey.relate("has_vowel(s) AND s = 'a'", "s = 'a'").equivalent
    table = CoveringTable()
    table.insert("all", Contains("s", "a"))
    assert table.insert("some", Framed("s", "ab")).covered_by == "all"
    assert table.insert("other", HasVowel("s")).covered_by is None
    assert table.insert("caseless", StartsWithAnyCase("s", "a")).covered_by is None


@dataclass(frozen=True, slots=True, repr=False)
class Unknown(Predicate):
    """A predicate that nothing knows."""


@dataclass(frozen=True, slots=True)
class Strange(Form):
    """A form that nothing knows."""


@dataclass(frozen=True, slots=True, repr=False)
class Oddity(TextTest):
    """A test of a form that nothing knows."""

    name: ClassVar[str] = "oddity"

    def holds(self, text: str) -> bool:
        return not text

    def form(self) -> Form:
        return Strange()


def test_kinds_that_nobody_knows_raise_everywhere() -> None:
    unknown = Unknown("s")
    for ask in (
        str,
        covey.to_json,
        Lowering().add,
        from_predicate,
        automaton_of,
        text_facts.facts,
        lambda test: truth_for(test, "a"),
        lambda test: truth_for(test, 5),
        lambda test: AttributePatterns([test]),
        Schema({"s": "string"}).check,
        lambda test: covers(test, Contains("s", "a")),
    ):
        with pytest.raises(TypeError):
            ask(unknown)
    with pytest.raises(TypeError, match="Strange is no form"):
        AttributePatterns([Oddity("s")])
    with pytest.raises(TypeError, match="Strange is no form"):
        automaton_of(Oddity("s"))
