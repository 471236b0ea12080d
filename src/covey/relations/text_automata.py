"""Tests on texts as automata that read one character at a time, to be run side by side (`text_worlds.py`).

A state is a plain integer: the set of places in the pattern that the text so far may have come to, as bits.

- LIKE, startswith, endswith and contains are wildcard patterns. Once the text has come to a `%`, places before that `%`
  can't accept anything that it can't, so they are dropped, which keeps the states as few as those of Knuth, Morris and
  Pratt's automaton.
- substring_of keeps the places in its text at which the value may end.
- A test that ignores case runs on the lower case of each character, which is the lower case of the text but for a
  `Σ` at the end of a word: what names a sigma isn't understood here.

An automaton also names the characters at which it tells characters apart (`edges`): between two neighbouring edges, of
all automata together, every character leads to the same states, so that one of them stands for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

from covey.filters import patterns
from covey.filters.cases import GROWING, SIGMAS, lower, upper_cases
from covey.filters.patterns import ANY_CHARACTER, ANY_TEXT
from covey.filters.predicates import Predicate, TextTest


class TextAutomaton(Protocol):
    """Reads a text character by character; states are integers."""

    start: int
    edges: frozenset[int]
    """Code points from which on characters may lead elsewhere than those before."""
    weight: int
    """Steps that reading one character counts as."""

    def step(self, state: int, character: str) -> int:
        """The state after one more character."""

    def accepts(self, state: int) -> bool:
        """Whether the text so far meets the test."""


class Wildcards:
    """A pattern of characters, `%` and `_`."""

    def __init__(self, tokens: tuple[str | int, ...]) -> None:
        items: list[str | int] = []
        for token in tokens:
            if token != ANY_TEXT or items[-1:] != [ANY_TEXT]:
                items.extend(token if isinstance(token, str) else (token,))
        self._end = 1 << len(items)
        self.weight = 1
        self._stars = sum(1 << at for at, item in enumerate(items) if item == ANY_TEXT)
        self._any = sum(1 << at for at, item in enumerate(items) if item == ANY_CHARACTER)
        self._places: dict[str, int] = defaultdict(int)
        for at, item in enumerate(items):
            if isinstance(item, str):
                self._places[item] |= 1 << at
        self._places.default_factory = None
        self.edges = edges_of(self._places)
        self.start = self._closed(1)

    def step(self, state: int, character: str) -> int:
        """The places after one more character."""
        moving = state & (self._places.get(character, 0) | self._any)
        return self._closed(moving << 1 | state & self._stars)

    def accepts(self, state: int) -> bool:
        """Whether the whole pattern is read."""
        return bool(state & self._end)

    def _closed(self, state: int) -> int:
        state |= (state & self._stars) << 1
        last_star = (state & self._stars).bit_length() - 1
        return state >> last_star << last_star if last_star > 0 else state


class PartOf:
    """The texts that are a part of one text."""

    def __init__(self, text: str) -> None:
        self._places: dict[str, int] = defaultdict(int)
        for at, character in enumerate(text):
            self._places[character] |= 1 << at
        self._places.default_factory = None
        self.edges = edges_of(self._places)
        self.start = (1 << len(text) + 1) - 1
        self.weight = 1

    def step(self, state: int, character: str) -> int:
        """The places after one more character."""
        return (state & self._places.get(character, 0)) << 1

    def accepts(self, state: int) -> bool:
        """Whether there is such a place at all."""
        return state != 0


class InLowerCase:
    """The texts whose lower case meets a pattern without a sigma."""

    def __init__(self, pattern: Wildcards | PartOf, characters: Iterable[str]) -> None:
        self._pattern = pattern
        self.weight = 2
        self.start = pattern.start
        alike = {upper for character in characters for upper in upper_cases(character)}
        self.edges = pattern.edges | edges_of(alike | GROWING)

    def step(self, state: int, character: str) -> int:
        """The places after the character's lower case, which may be more than one."""
        for lowered in lower(character):
            state = self._pattern.step(state, lowered)
        return state

    def accepts(self, state: int) -> bool:
        """Whether the pattern accepts."""
        return self._pattern.accepts(state)


def edges_of(characters: Iterable[str]) -> frozenset[int]:
    """The edges that tell each of some characters from its neighbours."""
    points = [ord(character) for character in characters]
    return frozenset(points) | frozenset(point + 1 for point in points)


def automaton_of(predicate: Predicate) -> TextAutomaton | None:
    """The automaton of a test on texts; None where it isn't understood here."""
    if not isinstance(predicate, TextTest):
        raise TypeError(f"{type(predicate).__name__} is no test on texts")
    match predicate.form():
        case patterns.Opaque() | patterns.Network():
            return None
        case patterns.Form(ignore_case=True) as form:
            return _in_lower_case(form)
        case patterns.Wildcards(tokens):
            return Wildcards(tokens)
        case patterns.PartOf(text):
            return PartOf(text)
        case patterns.Expression(pattern):
            from covey.relations.regular_expressions import expression_automaton

            return expression_automaton(pattern)
    raise TypeError(f"{type(predicate.form()).__name__} is no form that has an automaton; say so, or build it")


def _in_lower_case(form: patterns.Form) -> TextAutomaton | None:
    match form:
        case patterns.Wildcards(tokens):
            characters = {character for token in tokens if isinstance(token, str) for character in token}
            return None if characters & SIGMAS else InLowerCase(Wildcards(tokens), characters)
        case patterns.PartOf(text):
            return None if SIGMAS & set(text) else InLowerCase(PartOf(text), set(text))
    return None
