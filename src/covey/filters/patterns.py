"""LIKE patterns and regular expressions, both as linear-time RE2 automata or plainer tests where those suffice."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from covey.errors import FilterError

ANY_TEXT: Final = 0
ANY_CHARACTER: Final = 1

_COMPILED_PATTERNS = 16_384
_AUTOMATON_BYTES = 1 << 20


@lru_cache(maxsize=_COMPILED_PATTERNS)
def like_tokens(pattern: str, escape: str = "\\") -> tuple[str | int, ...]:
    """A LIKE pattern as literal runs, ANY_TEXT and ANY_CHARACTER. As in Spark, an escape character must stand
    before `%`, `_` or itself."""
    if len(escape) != 1:
        raise FilterError(f"ESCAPE takes one character, not {escape!r}")
    tokens: list[str | int] = []
    literal: list[str] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == escape:
            following = pattern[position + 1 : position + 2]
            if following not in ("%", "_", escape) or not following:
                raise FilterError(
                    f"LIKE pattern {pattern!r}: the escape character {escape!r} at {position} must stand before %, _ "
                    f"or itself; write it twice to mean itself"
                )
            literal.append(following)
            position += 2
            continue
        if character in "%_":
            if literal:
                tokens.append("".join(literal))
                literal = []
            token = ANY_TEXT if character == "%" else ANY_CHARACTER
            if not (token == ANY_TEXT and tokens and tokens[-1] == ANY_TEXT):
                tokens.append(token)
        else:
            literal.append(character)
        position += 1
    if literal:
        tokens.append("".join(literal))
    return tuple(tokens)


@lru_cache(maxsize=_COMPILED_PATTERNS)
def like_automaton(pattern: str, escape: str = "\\") -> Any:
    """A LIKE pattern as an RE2 automaton to be used with `fullmatch`."""
    parts: list[str] = []
    for token in like_tokens(pattern, escape):
        if isinstance(token, str):
            parts.append(re2.escape(token))
        else:
            parts.append(".*" if token == ANY_TEXT else ".")
    return _compile("".join(parts), dot_matches_newline=True)


@lru_cache(maxsize=_COMPILED_PATTERNS)
def regular_expression(pattern: str) -> Any:
    """A regular expression compiled by RE2 (no backtracking); an error that says why where it can't be."""
    try:
        return _compile(pattern, dot_matches_newline=False)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise FilterError(f"regular expression {pattern!r}: {reason} (RE2 syntax)") from None


def _compile(pattern: str, *, dot_matches_newline: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _AUTOMATON_BYTES
    options.dot_nl = dot_matches_newline
    return re2.compile(pattern, options=options)
