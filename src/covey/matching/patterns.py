"""All patterns of one attribute, evaluated together for each distinct value.

Substrings share one Aho-Corasick automaton, words, prefixes and suffixes are looked up, and LIKE patterns and regular
expressions share one RE2 set, so a value costs time in its length and its hits rather than in the number
of patterns. Only "is a substring of", and tests of which no more is known than whether a text meets them, try each of
theirs. Tests of a list's elements are asked of each distinct list (`element_patterns.py`). RE2 never backtracks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ahocorasick
import numpy as np
import re2
from numpy.typing import NDArray

from covey.filters import ArrayContains, Compare, ElementTest, Predicate
from covey.filters.cases import lower
from covey.filters.networks import Address, address_of
from covey.filters.patterns import (
    ANY_TEXT,
    Expression,
    Form,
    Network,
    Opaque,
    PartOf,
    Wildcards,
    regular_expression,
    wildcard_automaton,
    wildcard_expression,
)
from covey.filters.predicates import TextTest
from covey.filters.values import Element, Scalar, is_scalar, kind_of
from covey.matching.element_patterns import FALSE_BIT, TRUE_BIT, ElementPatterns
from covey.matching.lowering import number_pair

_SET_FROM = 4
"""With fewer regular expressions than this, each is tried alone."""
_SET_MEMORY = 64 << 20

Search = Callable[[str], Iterable[int]]


class AttributePatterns:
    """The patterns on one attribute: `truth(values)[k, j]` is pattern k's truth bits for value j."""

    def __init__(self, patterns: Sequence[Predicate]) -> None:
        self._count = len(patterns)
        self._text_patterns: list[int] = []
        self._elements: dict[object, list[int]] = {}
        self._lists: list[int] = []
        element_tests: list[tuple[int, ElementTest]] = []
        as_is, in_lower_case = _Searches(), _Searches()
        for number, pattern in enumerate(patterns):
            match pattern:
                case TextTest():
                    form = pattern.form()
                    (in_lower_case if form.ignore_case else as_is).add(number, pattern, form)
                    self._text_patterns.append(number)
                case ArrayContains(_, value):
                    if value is not None:
                        self._elements.setdefault(element_key(value), []).append(number)
                        self._lists.append(number)
                case ElementTest():
                    element_tests.append((number, pattern))
                case Compare(_, "=", None):
                    pass  # never true, never false
                case _:
                    raise TypeError(f"{type(pattern).__name__} is no pattern")
        self._element_tests = ElementPatterns(element_tests, AttributePatterns, element_key) if element_tests else None
        self._searches = as_is.finish()
        self._searches_in_lower_case = in_lower_case.finish()

    def truth(self, values: Sequence[str | tuple[Element, ...]]) -> NDArray[np.uint8]:
        """Truth bits of every pattern for strings and lists; column 0 stands for "neither": all unknown."""
        bits = np.zeros((self._count, len(values) + 1), dtype=np.uint8)
        for position, value in enumerate(values, start=1):
            if isinstance(value, str):
                bits[self._text_patterns, position] = FALSE_BIT
                for search in self._searches:
                    for number in search(value):
                        bits[number, position] = TRUE_BIT
                if self._searches_in_lower_case:
                    in_lower_case = lower(value)
                    for search in self._searches_in_lower_case:
                        for number in search(in_lower_case):
                            bits[number, position] = TRUE_BIT
            else:
                bits[self._lists, position] = 0 if None in value else FALSE_BIT
                if self._element_tests is not None:
                    self._element_tests.write(value, bits[:, position])
                for element in value:
                    if is_scalar(element):
                        for number in self._elements.get(element_key(element), ()):
                            bits[number, position] = TRUE_BIT
        return bits


class _Searches:
    """Tests on text, sorted by what finds those that a value meets."""

    def __init__(self) -> None:
        self._words: dict[str, list[int]] = {}
        self._substrings: dict[str, list[int]] = {}
        self._prefixes: dict[str, list[int]] = {}
        self._suffixes: dict[str, list[int]] = {}
        self._parts: list[tuple[str, int]] = []
        self._expressions: list[tuple[int, Wildcards | Expression]] = []
        self._networks: dict[tuple[int, int], dict[int, list[int]]] = {}
        self._others: list[tuple[int, TextTest]] = []

    def add(self, number: int, test: TextTest, form: Form) -> None:
        """File a test under its number."""
        match form:
            case Wildcards((gap,)) if gap == ANY_TEXT:
                self._substrings.setdefault("", []).append(number)
            case Wildcards((before, str(text), after)) if before == after == ANY_TEXT:
                self._substrings.setdefault(text, []).append(number)
            case Wildcards((str(text), after)) if after == ANY_TEXT:
                self._prefixes.setdefault(text, []).append(number)
            case Wildcards((before, str(text))) if before == ANY_TEXT:
                self._suffixes.setdefault(text, []).append(number)
            case Wildcards((str(text),)):
                self._words.setdefault(text, []).append(number)
            case Wildcards() | Expression():
                self._expressions.append((number, form))
            case PartOf(text):
                self._parts.append((text, number))
            case Network(version, prefix, free):
                self._networks.setdefault((version, free), {}).setdefault(prefix, []).append(number)
            case Opaque():
                self._others.append((number, test))
            case _:
                raise TypeError(f"{type(form).__name__} is no form that can be searched for")

    def finish(self) -> list[Search]:
        """The searches that find all tests."""
        searches: list[Search] = []
        if self._words:
            words = self._words
            searches.append(lambda value: words.get(value, ()))
        if self._substrings:
            searches.append(_substring_search(self._substrings))
        if self._prefixes:
            searches.append(_end_search(self._prefixes, at_start=True))
        if self._suffixes:
            searches.append(_end_search(self._suffixes, at_start=False))
        if self._parts:
            searches.append(lambda value: [number for text, number in self._parts if value in text])
        if self._expressions:
            searches.append(_expression_search(self._expressions))
        if self._networks:
            searches.append(_network_search(self._networks))
        if self._others:
            searches.append(lambda value: [number for number, test in self._others if test.holds(value)])
        return searches


def element_key(value: Scalar) -> object:
    """Equal for values that compare as equal, and only for them."""
    return (kind_of(value), value if isinstance(value, str) else number_pair(value))


def _substring_search(substrings: dict[str, list[int]]) -> Search:
    always = substrings.pop("", [])
    if not substrings:
        return lambda _: always
    automaton = ahocorasick.Automaton()
    for text, numbers in substrings.items():
        automaton.add_word(text, numbers)
    automaton.make_automaton()

    def search(value: str) -> Iterable[int]:
        yield from always
        for _, numbers in automaton.iter(value):
            yield from numbers

    return search


def _end_search(ends: dict[str, list[int]], *, at_start: bool) -> Search:
    lengths = sorted({len(text) for text in ends})

    def search(value: str) -> Iterable[int]:
        for length in lengths:
            if length > len(value):
                break
            end = value[:length] if at_start else value[len(value) - length :]
            yield from ends.get(end, ())

    return search


def _network_search(networks: dict[tuple[int, int], dict[int, list[int]]]) -> Search:
    """One look for each length of a prefix."""

    def search(value: str) -> Iterable[int]:
        found: Address | None = address_of(value)
        if found is not None:
            for (version, free), prefixes in networks.items():
                if version == found[0]:
                    yield from prefixes.get(found[1] >> free, ())

    return search


def _expression_search(expressions: list[tuple[int, Wildcards | Expression]]) -> Search:
    together = _expression_set(expressions) if len(expressions) >= _SET_FROM else None
    if together is not None:
        numbers = [number for number, _ in expressions]
        return lambda value: [numbers[hit] for hit in together.Match(value) or ()]
    tests: list[tuple[int, Any]] = []
    for number, form in expressions:
        if isinstance(form, Wildcards):
            tests.append((number, wildcard_automaton(form.tokens).fullmatch))
        else:
            tests.append((number, regular_expression(form.pattern).search))
    return lambda value: [number for number, test in tests if test(value) is not None]


def _expression_set(expressions: list[tuple[int, Wildcards | Expression]]) -> Any:
    """All expressions as one automaton, or None where RE2 finds it too large."""
    options = re2.Options()
    options.max_mem = _SET_MEMORY
    options.log_errors = False
    together = re2.Set.SearchSet(options)
    for _, form in expressions:
        together.Add(
            form.pattern if isinstance(form, Expression) else rf"(?s)\A(?:{wildcard_expression(form.tokens)})\z"
        )
    try:
        together.Compile()
    except re2.error:
        return None
    return together
