"""What literals leave open, decided for one text.

Pieces in their order are looked for one after the other, each behind the one before: leftmost is never wrong, since a
gap takes any text. That takes time in the text's length alone, whatever a pattern's gaps, where an automaton for the
same takes the product of both. All else is asked of the test itself.
"""

from __future__ import annotations

from collections.abc import Callable

from covey.filters.cases import lower
from covey.filters.patterns import ANY_CHARACTER, Tokens, Wildcards
from covey.filters.predicates import TextTest

Verifier = Callable[[str], bool]


def verifier(test: TextTest) -> Verifier:
    """Whether a text meets a test."""
    form = test.form()
    if not isinstance(form, Wildcards) or ANY_CHARACTER in form.tokens:
        return test.holds
    tokens = form.tokens
    if form.ignore_case:
        return lambda text: in_order(tokens, lower(text))
    return lambda text: in_order(tokens, text)


def in_order(tokens: Tokens, text: str) -> bool:
    """Whether a text is these literals, in their order, with any text in the gaps."""
    pieces = [""]
    for token in tokens:
        if isinstance(token, str):
            pieces[-1] += token
        else:
            pieces.append("")
    if len(pieces) == 1:
        return text == pieces[0]
    at, end = len(pieces[0]), len(text) - len(pieces[-1])
    if not text.startswith(pieces[0]) or not text.endswith(pieces[-1]):
        return False
    for piece in pieces[1:-1]:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return at <= end
