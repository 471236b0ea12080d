"""Tests on text without regard to case: `lower(text)` against `lower(pattern)`, both whole, as Spark's ILIKE has it.

`covey.filters.cases` says what `lower` is. A pattern is put into lower case as a whole before it is read, so the
escape character stays as it is written, and `Σ` at the end of a word of the pattern is the `ς` of an end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from covey.filters.cases import lower
from covey.filters.patterns import ANY_TEXT, Form, Tokens, Wildcards, like_tokens, wildcard_automaton
from covey.filters.predicates import TextTest, text_test

_KEPT_PATTERNS = 16_384


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class ILike(TextTest):
    """LIKE without regard to case."""

    name: ClassVar[str] = "ilike"
    infix: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    ignore_case: ClassVar[bool] = True

    pattern: str
    escape: str = "\\"

    def check(self) -> None:  # noqa: D102
        self._tokens()

    def holds(self, text: str) -> bool:  # noqa: D102
        return wildcard_automaton(self._tokens()).fullmatch(lower(text)) is not None

    def form(self) -> Form:  # noqa: D102
        return Wildcards(self._tokens(), ignore_case=True)

    def _tokens(self) -> Tokens:
        return like_tokens(_lowered(self.pattern), self.escape)


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class IEquals(TextTest):
    """The attribute's value is the text, whatever the case of letters."""

    name: ClassVar[str] = "iequals"
    ignore_case: ClassVar[bool] = True

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return lower(text) == _lowered(self.text)

    def form(self) -> Form:  # noqa: D102
        return Wildcards((_lowered(self.text),) if self.text else (), ignore_case=True)


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class IStartsWith(TextTest):
    """The attribute's value starts with the text, whatever the case of letters."""

    name: ClassVar[str] = "istartswith"
    ignore_case: ClassVar[bool] = True

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return lower(text).startswith(_lowered(self.text))

    def form(self) -> Form:  # noqa: D102
        return Wildcards((*_literal(self.text), ANY_TEXT), ignore_case=True)


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class IEndsWith(TextTest):
    """The attribute's value ends with the text, whatever the case of letters."""

    name: ClassVar[str] = "iendswith"
    ignore_case: ClassVar[bool] = True

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return lower(text).endswith(_lowered(self.text))

    def form(self) -> Form:  # noqa: D102
        return Wildcards((ANY_TEXT, *_literal(self.text)), ignore_case=True)


@text_test
@dataclass(frozen=True, slots=True, repr=False)
class IContains(TextTest):
    """The attribute's value contains the text, whatever the case of letters."""

    name: ClassVar[str] = "icontains"
    ignore_case: ClassVar[bool] = True

    text: str

    def holds(self, text: str) -> bool:  # noqa: D102
        return _lowered(self.text) in lower(text)

    def form(self) -> Form:  # noqa: D102
        after = (*_literal(self.text), ANY_TEXT)
        return Wildcards((ANY_TEXT, *after) if self.text else after, ignore_case=True)


@lru_cache(maxsize=_KEPT_PATTERNS)
def _lowered(text: str) -> str:
    return lower(text)


def _literal(text: str) -> Tokens:
    return (_lowered(text),) if text else ()
