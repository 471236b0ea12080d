"""All patterns of one attribute, evaluated together for each distinct value.

Substrings share one Aho-Corasick automaton, prefixes and suffixes are looked up by their lengths, and LIKE patterns
and regular expressions share one RE2 set, so a value costs time in its length and its hits rather than in the number
of patterns. Only "is a substring of" tries each of its texts. RE2 never backtracks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ahocorasick
import numpy as np
import re2
from numpy.typing import NDArray

from covey.filters import (
    ArrayContains,
    Contains,
    EndsWith,
    Like,
    Predicate,
    RLike,
    StartsWith,
    SubstringOf,
)
from covey.filters.patterns import ANY_TEXT, like_automaton, like_tokens, regular_expression
from covey.filters.values import Scalar, kind_of
from covey.matching.lowering import number_pair

TRUE_BIT, FALSE_BIT = 1, 2
_SET_FROM = 4
"""With fewer regular expressions than this, each is tried alone."""
_SET_MEMORY = 64 << 20

Search = Callable[[str], Iterable[int]]


class AttributePatterns:
    """The patterns on one attribute: `truth(values)[k, j]` is pattern k's truth bits for value j."""

    def __init__(self, patterns: Sequence[Predicate]) -> None:
        self._count = len(patterns)
        self._text_patterns: list[int] = []
        self._searches: list[Search] = []
        self._elements: dict[object, list[int]] = {}
        self._lists: list[int] = []
        substrings: dict[str, list[int]] = {}
        prefixes: dict[str, list[int]] = {}
        suffixes: dict[str, list[int]] = {}
        parts: list[tuple[str, int]] = []
        expressions: list[tuple[int, Predicate]] = []
        for number, pattern in enumerate(patterns):
            match pattern:
                case Contains(_, text):
                    substrings.setdefault(text, []).append(number)
                case StartsWith(_, text):
                    prefixes.setdefault(text, []).append(number)
                case EndsWith(_, text):
                    suffixes.setdefault(text, []).append(number)
                case SubstringOf(_, text):
                    parts.append((text, number))
                case Like() | RLike():
                    expressions.append((number, pattern))
                case ArrayContains(_, value):
                    if value is not None:
                        self._elements.setdefault(element_key(value), []).append(number)
                        self._lists.append(number)
                    continue
                case _:
                    continue  # a comparison with NULL: never true, never false
            self._text_patterns.append(number)
        if substrings:
            self._searches.append(_substring_search(substrings))
        if prefixes:
            self._searches.append(_end_search(prefixes, at_start=True))
        if suffixes:
            self._searches.append(_end_search(suffixes, at_start=False))
        if parts:
            self._searches.append(lambda value: [number for text, number in parts if value in text])
        if expressions:
            self._searches.append(_expression_search(expressions))

    def truth(self, values: Sequence[str | tuple[Scalar | None, ...]]) -> NDArray[np.uint8]:
        """Truth bits of every pattern for strings and lists; column 0 stands for "neither": all unknown."""
        bits = np.zeros((self._count, len(values) + 1), dtype=np.uint8)
        for position, value in enumerate(values, start=1):
            if isinstance(value, str):
                bits[self._text_patterns, position] = FALSE_BIT
                for search in self._searches:
                    for number in search(value):
                        bits[number, position] = TRUE_BIT
            else:
                bits[self._lists, position] = 0 if None in value else FALSE_BIT
                for element in value:
                    if element is not None:
                        for number in self._elements.get(element_key(element), ()):
                            bits[number, position] = TRUE_BIT
        return bits


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


def _expression_search(expressions: list[tuple[int, Predicate]]) -> Search:
    together = _expression_set(expressions) if len(expressions) >= _SET_FROM else None
    if together is not None:
        numbers = [number for number, _ in expressions]
        return lambda value: [numbers[hit] for hit in together.Match(value) or ()]
    tests: list[tuple[int, Any]] = []
    for number, pattern in expressions:
        if isinstance(pattern, Like):
            tests.append((number, like_automaton(pattern.pattern, pattern.escape).fullmatch))
        elif isinstance(pattern, RLike):
            tests.append((number, regular_expression(pattern.pattern).search))
    return lambda value: [number for number, test in tests if test(value) is not None]


def _expression_set(expressions: list[tuple[int, Predicate]]) -> Any:
    """All expressions as one automaton, or None where RE2 finds it too large."""
    options = re2.Options()
    options.max_mem = _SET_MEMORY
    options.log_errors = False
    together = re2.Set.SearchSet(options)
    for _, pattern in expressions:
        together.Add(pattern.pattern if isinstance(pattern, RLike) else _like_expression(pattern))
    try:
        together.Compile()
    except re2.error:
        return None
    return together


def _like_expression(pattern: Predicate) -> str:
    assert isinstance(pattern, Like)
    parts = [
        re2.escape(token) if isinstance(token, str) else (".*" if token == ANY_TEXT else ".")
        for token in like_tokens(pattern.pattern, pattern.escape)
    ]
    return rf"(?s)\A(?:{''.join(parts)})\z"
