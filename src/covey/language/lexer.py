"""Text to tokens, by one regular expression whose named groups are the kinds of token.

Three parallel lists instead of token objects: a filter of a dozen tokens is lexed in some five microseconds, most of
it inside the regular expression. Constants are converted here, so that the parser sees Python values.

Kinds: `name` (an attribute or a function; the value is the dotted name, its backquotes removed), `constant`,
`comparison`, `sign`, `arithmetic`, `(`, `)`, `,`, `[`, `]`, the keywords under their own upper-case names, `end`, and
`wrong` for what no filter holds. `wrong` is a token and not an error, so that the parser can report the first mistake.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from covey.errors import FilterSyntaxError
from covey.filters.quoting import KEYWORDS
from covey.filters.terms import MARK, Raw
from covey.language.bounds import over_limit
from covey.language.literals import number, unescaped
from covey.limits import Limits

# Possessive quantifiers keep the time linear: where a token doesn't fit, there is nothing to gain from trying again.
_NUMBER: Final = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+(?:[bB][dD]|[lLsSyYdDfF])?+(?!\w)"
_PART: Final = r"(?:\w++|`(?:[^`]|``)*+`)"
_RAW: Final = r"[rR](?=['\"])"
_STRING: Final = r"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'|" + r'"[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+"'
_TOKEN: Final = re.compile(
    rf"""\s*(?:
      (?P<name>(?!{_RAW}|[0-9]){_PART}(?:\.{_PART})*)
    | (?P<wrong>=>|=<|===|!==|&&)
    | (?P<comparison><=>|<=|<>|>=|==|!=|!<|!>|<|>|=)
    | (?P<integer>[0-9]++)(?![\w.])
    | (?P<string>{_STRING})
    | (?P<mark>[(),\[\]])
    | (?P<end>\Z)
    | (?P<number>{_NUMBER})
    | (?P<comment>--[^\n]*|/\*.*?\*/)
    | (?P<sign>[+-])
    | (?P<raw>{_RAW}(?:'[^']*'|"[^"]*"))
    | (?P<odd>{_PART}(?:\.{_PART})*)
    | (?P<arithmetic>\|\||[*%&|^~]|/(?!\*))
    | (?P<not>!)
    | (?P<other>/\*|.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_COMPARISONS: Final = {"==": "=", "<>": "!=", "!<": ">=", "!>": "<="}
_MAX_DIGITS: Final = 4_300
"""Digits of an integer: Python itself refuses to read or print longer ones, as their cost is quadratic."""


class Tokens(NamedTuple):
    """Tokens as parallel lists; the last one is of kind `end`."""

    kinds: list[str]
    values: list[Raw]
    positions: list[int]


def tokenize(text: str, limits: Limits) -> Tokens:
    """The tokens of a filter's text."""
    if len(text) > limits.text_length:
        raise over_limit(f"the filter has {len(text):,} characters", "text_length", limits)
    if not text.isascii():
        _check_unicode(text)
    kinds: list[str] = []
    values: list[Raw] = []
    positions: list[int] = []
    for match in _TOKEN.finditer(text):
        kind: str = match.lastgroup  # type: ignore[assignment]
        value: Any = match[kind]
        position = match.start(kind)
        if kind == "name":
            if value.upper() in KEYWORDS:
                kind = value.upper()
            elif "`" in value:
                value = _unquoted(value)
                if value.startswith(MARK):
                    raise FilterSyntaxError("a name that begins with = is that of a term; rename it", text, position)
        elif kind == "mark":
            kind = value
        elif kind == "comparison":
            value = _COMPARISONS.get(value, value)
        elif kind == "string":
            value = (
                value[1:-1] if "\\" not in value and value[0] not in value[1:-1] else unescaped(text, position, value)
            )
            kind = "constant"
        elif kind == "integer":
            if len(value) > _MAX_DIGITS:
                raise FilterSyntaxError(f"an integer may have {_MAX_DIGITS:,} digits", text, position)
            value = int(value)
            kind = "constant"
        elif kind in _RARE:
            if kind == "comment":
                continue
            kind, value = _rare(text, position, kind, value)
        kinds.append(kind)
        values.append(value)
        positions.append(position)
        if kind == "end":
            break
        if kind == "wrong":  # nothing after it is read, so that texts full of open quotes don't cost their square
            kinds.append("end")
            values.append("")
            positions.append(len(text))
            break
    if len(kinds) > limits.tokens + 1:
        raise over_limit(f"the filter has {len(kinds) - 1:,} tokens", "tokens", limits)
    positions[-1] = len(text.rstrip())
    return Tokens(kinds, values, positions)


_RARE: Final = frozenset({"comment", "number", "raw", "odd", "not", "other"})


def _rare(text: str, position: int, kind: str, value: str) -> tuple[str, Raw]:
    match kind:
        case "number":
            if len(value) > _MAX_DIGITS:
                raise FilterSyntaxError(f"a number may have {_MAX_DIGITS:,} digits", text, position)
            return "constant", number(text, position, value)
        case "raw":
            return "constant", value[2:-1]
        case "odd":  # a name that starts with a digit, which Spark allows too
            return "name", _unquoted(value)
        case "not":
            return "NOT", value
    return "wrong", value


def _unquoted(name: str) -> str:
    """A dotted name without the backquotes of its parts."""
    return ".".join(part[1:-1].replace("``", "`") if part.startswith("`") else part for part in re.findall(_PART, name))


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        shown = text.encode(errors="replace").decode()
        raise FilterSyntaxError("half of a surrogate pair is not a character", shown, error.start) from None
