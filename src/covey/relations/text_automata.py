"""Tests on texts as automata that read one character at a time, to be run side by side (`text_worlds.py`).

A state is a plain integer: the set of places in the pattern that the text so far may have come to, as bits.

- LIKE, startswith, endswith and contains are wildcard patterns. Once the text has come to a `%`, places before that `%`
  can't accept anything that it can't, so they are dropped, which keeps the states as few as those of Knuth, Morris and
  Pratt's automaton.
- substring_of keeps the places in its text at which the value may end.

An automaton also names the characters at which it tells characters apart (`edges`): between two neighbouring edges, of
all automata together, every character leads to the same states, so that one of them stands for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

from covey.filters.patterns import ANY_CHARACTER, ANY_TEXT, like_tokens
from covey.filters.predicates import Contains, EndsWith, Like, Predicate, RLike, StartsWith, SubstringOf


class TextAutomaton(Protocol):
    """Reads a text character by character; states are integers."""

    start: int
    edges: frozenset[int]
    """Code points from which on characters may lead elsewhere than those before."""

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

    def step(self, state: int, character: str) -> int:
        """The places after one more character."""
        return (state & self._places.get(character, 0)) << 1

    def accepts(self, state: int) -> bool:
        """Whether there is such a place at all."""
        return state != 0


def edges_of(characters: Iterable[str]) -> frozenset[int]:
    """The edges that tell each of some characters from its neighbours."""
    points = [ord(character) for character in characters]
    return frozenset(points) | frozenset(point + 1 for point in points)


def automaton_of(predicate: Predicate) -> TextAutomaton | None:
    """The automaton of a test on texts; None for a regular expression that isn't understood here."""
    match predicate:
        case StartsWith(_, text):
            return Wildcards((text, ANY_TEXT))
        case EndsWith(_, text):
            return Wildcards((ANY_TEXT, text))
        case Contains(_, text):
            return Wildcards((ANY_TEXT, text, ANY_TEXT))
        case SubstringOf(_, text):
            return PartOf(text)
        case Like(_, pattern, escape):
            return Wildcards(like_tokens(pattern, escape))
        case RLike(_, pattern):
            from covey.relations.regular_expressions import expression_automaton

            return expression_automaton(pattern)
    raise TypeError(f"{type(predicate).__name__} is no test on texts")
