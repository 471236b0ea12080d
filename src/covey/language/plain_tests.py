"""Plain filters, read by one pattern a test: most of what a broker's clients and neighbours say.

Conjunctions such as `symbol = 'S1' AND price BETWEEN 1.5 AND 2`, and alternatives of these, in parentheses or not: with
single spaces, words in capitals, attributes that need no quotes, and constants of a few digits or of plain characters.
Whatever isn't exactly of this form isn't read here, so errors, limits and all else of the language are the parser's.
This takes a fifth of the parser's time, and gives the same filter.
"""

from __future__ import annotations

import re
from typing import Final

from covey.filters.algebra import And, Filter, Not, Or
from covey.filters.predicates import In, checked_between, checked_compare
from covey.filters.quoting import KEYWORDS
from covey.limits import Limits

_NUMBER: Final = r"(?:[0-9]{1,10}\.[0-9]{1,5}|[0-9]{1,15})"
"""Digits that a double keeps, so that a decimal is its double."""
_TEXT: Final = r"'[^'\\]*+'"
_TEST: Final = re.compile(
    rf"""(\()?(NOT\ )?([A-Za-z_][A-Za-z_0-9]*+)\ (?:
        (=|<|<=|>|>=)\ (?:'([^'\\]*+)'|({_NUMBER}))
      | BETWEEN\ ({_NUMBER})\ AND\ ({_NUMBER})
      | IN\ \((?:({_TEXT}(?:,\ {_TEXT})*+)|({_NUMBER}(?:,\ {_NUMBER})*+))\)
    )(\))?(\ AND\ |\ OR\ |\Z)""",
    re.VERBOSE,
)
_TEXTS: Final = re.compile(r"'([^']*)'")
_DEEPEST: Final = 3
"""Levels that these filters may have."""


def read_plain(text: str, limits: Limits) -> Filter | None:
    """The filter of a plain text; None where it isn't one."""
    # A test has at least a character for each token, and for each value.
    size = len(text)
    if size > min(limits.text_length, limits.tokens, limits.set_values) or limits.depth < _DEEPEST:
        return None
    if not text.isascii():
        return None
    alternatives: list[Filter] = []
    parts: list[Filter] = []
    match, at, enclosed = _TEST.match, 0, False
    while True:
        found = match(text, at)
        if found is None:
            return None
        opens, negated, name, operator, string, number, low, high, texts, numbers, closes, end = found.groups()
        if name.upper() in KEYWORDS:
            return None
        if opens:
            if parts:
                return None
            enclosed = True
        if operator is not None:
            value = _number(number) if string is None else string
            test: Filter = checked_compare(name, operator, value)  # type: ignore[arg-type]
        elif low is not None:
            test = checked_between(name, _number(low), _number(high))
        else:
            values = _TEXTS.findall(texts) if numbers is None else map(_number, numbers.split(", "))
            test = In(name, tuple(values))
        parts.append(Not(test) if negated else test)
        if closes or end != " AND ":
            # An alternative ends, and only one that is enclosed with a parenthesis.
            if bool(closes) is not enclosed or end == " AND ":
                return None
            alternatives.append(parts[0] if len(parts) == 1 else And(tuple(parts)))
            parts, enclosed = [], False
        if not end:
            return alternatives[0] if len(alternatives) == 1 else Or(tuple(alternatives))
        at = found.end()


def _number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)
