"""Literals that a text must have for a regular expression to be found in it.

An expression is read as far as it takes to know what it can't do without: literal characters that follow each other,
groups, alternatives and repetitions; any other element is some text of which nothing is known. Whatever isn't sure to
be read as RE2 reads it leaves the whole expression without literals, which costs time and never an answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_MOST_CHARACTERS: Final = 4_096
"""Longer expressions have no literals."""
_DEEPEST: Final = 32
_MOST_STRINGS: Final = 16
"""Texts that a part may be one of; with more of them nothing is known of it."""
_REPETITION: Final = re.compile(r"\{(\d{1,4})(,\d{0,4})?\}")
_FLAGS: Final = re.compile(r"\(\?([imsU]+)\)")
_GROUP: Final = re.compile(r"\((?:\?(?::|P?<\w+>))?")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\[^pPQExC0-9]|[^\]\\\[])*\]")
_NO_TEXT: Final = frozenset("bBAz")
_SOME_CHARACTER: Final = frozenset("dDwWsSntrfav")
_LONG_S: Final = "s"
"""Where case doesn't count, `s` is also found in a text that has a long s, and no lower case says so."""


class _NotSure(Exception):  # noqa: N818
    pass


@dataclass
class _Known:
    """What is known of a part of an expression."""

    exact: tuple[str, ...] | None = ("",)
    """All texts that it can be, if that is known."""
    needs: list[tuple[str, ...]] = field(default_factory=list)
    """Of each of these sets of literals, one at least is in any text that it matches."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What an expression needs."""

    sets: list[tuple[str, ...]]
    """Of each set one literal at least must occur."""
    in_lower_case: bool
    """Whether they must occur in the text's lower case, rather than in the text."""
    decided: bool
    """Whether the first set decides: where one of it occurs, the expression is found."""


def expression_needs(pattern: str) -> Needs:
    """The literals that an expression can't do without; none where it isn't sure."""
    if len(pattern) > _MOST_CHARACTERS:
        return Needs([], False, False)
    flags = _FLAGS.match(pattern)
    any_case = flags is not None and "i" in flags[1]
    try:
        reader = _Reader(pattern, flags.end() if flags else 0, any_case)
        known = reader.alternatives(0)
        if reader.at < len(pattern):
            raise _NotSure
    except _NotSure:
        return Needs([], False, False)
    if known.exact is not None and all(known.exact):
        return Needs([known.exact], any_case, not any_case)
    return Needs(known.needs, any_case, False)


class _Reader:
    def __init__(self, pattern: str, at: int, any_case: bool) -> None:
        self._pattern, self.at, self._any_case = pattern, at, any_case

    def _peek(self) -> str:
        return self._pattern[self.at : self.at + 1]

    def alternatives(self, depth: int) -> _Known:
        if depth > _DEEPEST:
            raise _NotSure
        parts = [self._sequence(depth)]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else _one_of(parts)

    def _sequence(self, depth: int) -> _Known:
        run: tuple[str, ...] = ("",)
        needs: list[tuple[str, ...]] = []
        exact = True
        while self._peek() not in ("", "|", ")"):
            part = self._element(depth)
            joined = None if part.exact is None else _joined(run, part.exact)
            if joined is not None:
                run = joined
                continue
            exact = False
            _need(needs, run)
            needs += part.needs
            run = ("",) if part.exact is None else part.exact
        if exact:
            return _Known(run, [])
        _need(needs, run)
        return _Known(None, needs)

    def _element(self, depth: int) -> _Known:
        part = self._atom(depth)
        repeated = self._repetition()
        if repeated is None:
            return part
        if self._repetition() is not None:
            raise _NotSure
        if repeated == 0:
            return _Known(None)
        needs = list(part.needs)
        if part.exact is not None:
            _need(needs, part.exact)
        return _Known(None, needs)

    def _repetition(self) -> int | None:
        """How often at least, where something is repeated."""
        least = {"*": 0, "+": 1, "?": 0}.get(self._peek())
        if least is not None:
            self.at += 1
        elif self._peek() == "{":
            form = _REPETITION.match(self._pattern, self.at)
            if form is None:
                raise _NotSure
            least = int(form[1])
            self.at = form.end()
        else:
            return None
        if self._peek() == "?":
            self.at += 1
        return least

    def _atom(self, depth: int) -> _Known:
        character = self._peek()
        if character == "(":
            opened = _GROUP.match(self._pattern, self.at)
            assert opened is not None
            self.at = opened.end()
            if self._peek() == "?":
                raise _NotSure
            inside = self.alternatives(depth + 1)
            if self._peek() != ")":
                raise _NotSure
            self.at += 1
            return inside
        if character == "[":
            found = _CLASS.match(self._pattern, self.at)
            if found is None:
                raise _NotSure
            self.at = found.end()
            return _Known(None)
        self.at += 1
        if character in "^$.":
            return _Known(None)
        if character in "*+?{":
            raise _NotSure
        return self._escaped() if character == "\\" else self._literal(character)

    def _escaped(self) -> _Known:
        character = self._peek()
        self.at += 1
        if character in _NO_TEXT or character in _SOME_CHARACTER:
            return _Known(None)
        if not character or character.isalnum() or not character.isascii():
            raise _NotSure
        return self._literal(character)

    def _literal(self, character: str) -> _Known:
        if self._any_case:
            character = character.lower()
            if not character.isascii() or character == _LONG_S:
                return _Known(None)
        return _Known((character,))


def _need(needs: list[tuple[str, ...]], one_of: tuple[str, ...]) -> None:
    if all(one_of):
        needs.append(one_of)


def _joined(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...] | None:
    if len(before) * len(after) > _MOST_STRINGS:
        return None
    return tuple(dict.fromkeys(first + second for first in before for second in after))


def _one_of(parts: list[_Known]) -> _Known:
    texts: list[str] = []
    is_exact = True
    for part in parts:
        if part.exact is not None:
            texts += part.exact
        elif part.needs:
            is_exact = False
            texts += max(part.needs, key=lambda one: min(map(len, one)))
        else:
            return _Known(None)
    found = tuple(dict.fromkeys(texts))
    if len(found) > _MOST_STRINGS:
        return _Known(None, [found] if all(found) else [])
    return _Known(found, []) if is_exact else _Known(None, [found] if all(found) else [])
