"""Tokens and a place among them, for the dialects that are small grammars of their own: `cesql` and `jms`.

A dialect gives one regular expression whose named groups are kinds of token; words that are its keywords become kinds
by themselves, in upper case. The scanner holds the limits on characters, tokens and depth, and makes the errors, so
that all dialects refuse in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from covey.errors import FilterSyntaxError
from covey.language.bounds import over_limit
from covey.limits import Limits

_SHOWN: Final = 40


class Token(NamedTuple):
    """A piece of the text."""

    kind: str
    value: Any
    position: int


class Scanner:
    """The tokens of a text, from left to right."""

    __slots__ = ("at", "depth", "limits", "text", "tokens")

    def __init__(
        self,
        text: str,
        limits: Limits,
        pattern: re.Pattern[str],
        keywords: frozenset[str],
        read: Callable[[str, str, int, str], Any],
    ) -> None:
        """Cut the text; `read(kind, text of the token, position, whole text)` gives a token's value."""
        if len(text) > limits.text_length:
            raise over_limit(f"the filter has {len(text):,} characters", "text_length", limits)
        self.text = text
        self.limits = limits
        self.tokens: list[Token] = []
        self.at = 0
        self.depth = 0
        for match in pattern.finditer(text):
            kind = match.lastgroup or "wrong"
            written, position = match[kind], match.start(kind)
            if kind == "wrong":
                raise self.error(f"{written!a} has no meaning here", position)
            if kind == "mark":
                kind = written
            elif kind == "word" and written.upper() in keywords:
                kind = written.upper()
            self.tokens.append(Token(kind, read(kind, written, position, text), position))
            if len(self.tokens) > limits.tokens:
                raise over_limit(f"the filter has more than {limits.tokens:,} tokens", "tokens", limits)

    @property
    def kind(self) -> str:
        """The kind of the next token."""
        return self.tokens[self.at].kind

    @property
    def position(self) -> int:
        """Where the next token stands."""
        return self.tokens[self.at].position

    def ahead(self, count: int = 1) -> str:
        """The kind of a token further on."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)].kind

    def take(self) -> Token:
        """The next token, which is then behind."""
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def accept(self, *kinds: str) -> bool:
        """Take the next tokens if they are of these kinds, in this order."""
        if any(self.ahead(offset) != kind for offset, kind in enumerate(kinds)):
            return False
        self.at += len(kinds)
        return True

    def expect(self, kind: str, remedy: str) -> Token:
        """The next token, which must be of that kind."""
        if self.kind != kind:
            raise self.unexpected(remedy)
        return self.take()

    def deepen(self, levels: int = 1) -> None:
        """Go down levels of nesting; the caller comes up again by a negative number."""
        self.depth += levels
        if self.depth > self.limits.depth:
            raise over_limit(f"the filter is nested {self.depth:,} levels deep or more", "depth", self.limits)

    def unexpected(self, remedy: str) -> FilterSyntaxError:
        """An error at the next token."""
        token = self.tokens[self.at]
        if token.kind == "end":
            return self.error(f"the filter ends too early; {remedy}", token.position)
        end = self.tokens[self.at + 1].position
        shown = self.text[token.position : end].strip()[:_SHOWN]
        return self.error(f"{shown!a} is not expected here; {remedy}", token.position)

    def error(self, message: str, position: int) -> FilterSyntaxError:
        """An error at a position of the text."""
        return FilterSyntaxError(message, self.text, position)
