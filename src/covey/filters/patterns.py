"""What tests on text ask for, in the few forms that matchers and relations understand.

`Wildcards` are literal texts with gaps (LIKE, startswith, endswith, contains), `PartOf` is being a part of one text,
`Expression` a regular expression that is found somewhere, `Network` IP addresses that begin alike, and `Opaque` says
nothing but what the test itself does. A form that ignores case is met by a text whose `lower()` meets it; its own texts
are in lower case already.

Expressions are RE2's, which never backtracks; LIKE patterns become RE2 automata or plainer tests where those suffice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from covey.errors import FilterError

ANY_TEXT: Final = 0
ANY_CHARACTER: Final = 1

Tokens: TypeAlias = tuple[str | int, ...]
"""Literal runs, ANY_TEXT and ANY_CHARACTER."""

_COMPILED_PATTERNS = 16_384
_AUTOMATON_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Form:
    """What a text must be."""

    ignore_case: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Wildcards(Form):
    """The whole text is these literals and gaps, one after the other."""

    tokens: Tokens


@dataclass(frozen=True, slots=True)
class PartOf(Form):
    """The text is a part of this one."""

    text: str


@dataclass(frozen=True, slots=True)
class Expression(Form):
    """The regular expression is found somewhere in the text."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Network(Form):
    """The text is an IP address of this version that begins with these bits."""

    version: int
    prefix: int
    """Its first bits, as a number."""
    free: int
    """How many bits follow."""


@dataclass(frozen=True, slots=True)
class Opaque(Form):
    """Only the test itself knows."""


@lru_cache(maxsize=16)
def _special(escape: str) -> re.Pattern[str]:
    """The characters of a LIKE pattern that don't stand for themselves."""
    return re.compile(f"[%_{re.escape(escape)}]")


@lru_cache(maxsize=_COMPILED_PATTERNS)
def like_tokens(pattern: str, escape: str = "\\") -> Tokens:
    """A LIKE pattern as literal runs, ANY_TEXT and ANY_CHARACTER. As in Spark, an escape character must stand
    before `%`, `_` or itself."""
    if len(escape) != 1:
        raise FilterError(f"ESCAPE takes one character, not {escape!r}")
    tokens: list[str | int] = []
    literal: list[str] = []
    position = 0
    while found := _special(escape).search(pattern, position):
        at, character = found.start(), found[0]
        if at > position:
            literal.append(pattern[position:at])
        position = at + 1
        if character == escape:
            following = pattern[at + 1 : at + 2]
            if following not in ("%", "_", escape) or not following:
                raise FilterError(
                    f"LIKE pattern {pattern!r}: the escape character {escape!r} at {at} must stand before %, _ "
                    f"or itself; write it twice to mean itself"
                )
            literal.append(following)
            position += 1
            continue
        if literal:
            tokens.append("".join(literal))
            literal = []
        token = ANY_TEXT if character == "%" else ANY_CHARACTER
        if not (token == ANY_TEXT and tokens and tokens[-1] == ANY_TEXT):
            tokens.append(token)
    if position < len(pattern):
        literal.append(pattern[position:])
    if literal:
        tokens.append("".join(literal))
    return tuple(tokens)


@lru_cache(maxsize=_COMPILED_PATTERNS)
def like_automaton(pattern: str, escape: str = "\\") -> Any:
    """A LIKE pattern as an RE2 automaton to be used with `fullmatch`."""
    return wildcard_automaton(like_tokens(pattern, escape))


@lru_cache(maxsize=_COMPILED_PATTERNS)
def wildcard_automaton(tokens: Tokens) -> Any:
    """Literals and gaps as an RE2 automaton to be used with `fullmatch`."""
    return _compile(wildcard_expression(tokens), dot_matches_newline=True)


def wildcard_expression(tokens: Tokens) -> str:
    """Literals and gaps as a regular expression in which `.` is any character."""
    import re2  # with its library it takes longer to import than all of the algebra, which many do without patterns

    return "".join(
        re2.escape(token) if isinstance(token, str) else ".*" if token == ANY_TEXT else "." for token in tokens
    )


@lru_cache(maxsize=_COMPILED_PATTERNS)
def regular_expression(pattern: str) -> Any:
    """A regular expression compiled by RE2 (no backtracking); an error that says why where it can't be."""
    import re2

    try:
        return _compile(pattern, dot_matches_newline=False)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise FilterError(f"regular expression {pattern!r}: {reason} (RE2 syntax)") from None


def _compile(pattern: str, *, dot_matches_newline: bool) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _AUTOMATON_BYTES
    options.dot_nl = dot_matches_newline
    return re2.compile(pattern, options=options)
