"""A condition's text to tokens, as Spark's lexer has them.

Texts come from anyone, so the regular expression is possessive: its time is linear. Strings and numbers keep their
text, which Spark reads again; what they are worth is known here only where that is beyond doubt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from covey.errors import FilterSyntaxError, LimitError
from covey.limits import Limits

_STRING: Final = r"'(?:[^'\\]|\\.|'')*+'|" + r'"(?:[^"\\]|\\.|"")*+"'
_TOKEN: Final = re.compile(
    rf"""\s*+(?:
      (?P<comment>--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)
    | (?P<raw>[rR](?:'[^']*+'|"[^"]*+"))
    | (?P<binary>[xX]'[^']*+')
    | (?P<string>{_STRING})
    | (?P<quoted>`(?:[^`]|``)++`)
    | (?P<number>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?:[bB][dD]|[lLsSyYdDfF])?+(?![\w]))
    | (?P<word>\w++)
    | (?P<mark><=>|->|=>|::|>>>|<<|>>|<=|<>|>=|==|!=|!<|!>|\|\||[-+*/%&|^~<>=!().,\[\]:?])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `upper` is a word in upper case, and the text of what is no word."""

    kind: str
    text: str
    upper: str
    start: int
    end: int


def tokens_of(text: str, limits: Limits) -> list[Token]:
    """The tokens, the last of kind "end"."""
    if len(text) > limits.text_length:
        raise LimitError(f"the filter has {len(text):,} characters; the limit (text_length) is {limits.text_length:,}")
    found: list[Token] = []
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            start = at + len(text[at:]) - len(text[at:].lstrip())
            raise FilterSyntaxError(f"{text[start]!r} is not part of a condition here", text, start)
        kind = str(match.lastgroup)
        at = match.end()
        if kind == "comment":
            continue
        written = match[kind]
        found.append(Token(kind, written, written.upper() if kind == "word" else written, match.start(kind), at))
        if len(found) > limits.tokens + 1:
            raise LimitError(f"the filter has more tokens than the limit (tokens) of {limits.tokens:,}")
        if kind == "end":
            return found
