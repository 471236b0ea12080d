"""What one test on a text says about another: what is certain, never a guess.

Each test gives facts about every text that meets it: prefixes, suffixes and parts that it must have. A second test
follows where the facts contain what it asks for; the two exclude each other where their facts can't hold together.
Sound, and complete for StartsWith, EndsWith, Contains and SubstringOf among themselves two by two; a regular
expression, and a LIKE pattern with wildcards inside, are understood in part.
"""

from __future__ import annotations

from dataclasses import dataclass

from covey.filters.patterns import ANY_TEXT, like_tokens
from covey.filters.predicates import Contains, EndsWith, Like, Predicate, RLike, StartsWith, SubstringOf

TEXT_PREDICATES = (Contains, EndsWith, Like, RLike, StartsWith, SubstringOf)


@dataclass(frozen=True, slots=True)
class Facts:
    """What every text that meets a test has."""

    prefix: str = ""
    suffix: str = ""
    parts: tuple[str, ...] = ()
    within: str | None = None
    """A text that it is a part of."""


def facts(predicate: Predicate) -> Facts:
    """What every text that meets the predicate has."""
    match predicate:
        case StartsWith(_, text):
            return Facts(prefix=text, parts=(text,))
        case EndsWith(_, text):
            return Facts(suffix=text, parts=(text,))
        case Contains(_, text):
            return Facts(parts=(text,))
        case SubstringOf(_, text):
            return Facts(within=text)
        case Like(_, pattern, escape):
            tokens = like_tokens(pattern, escape)
            first = tokens[0] if tokens and isinstance(tokens[0], str) else ""
            last = tokens[-1] if tokens and isinstance(tokens[-1], str) else ""
            return Facts(first, last, tuple(token for token in tokens if isinstance(token, str)))
    return Facts()


def implies(given: Predicate, asked: Predicate) -> bool:
    """Whether every text that meets `given` certainly meets `asked`."""
    if given == asked or always(asked):
        return True
    known = facts(given)
    match plain(asked):
        case StartsWith(_, text):
            return known.prefix.startswith(text)
        case EndsWith(_, text):
            return known.suffix.endswith(text)
        case Contains(_, text):
            return any(text in part for part in known.parts)
        case SubstringOf(_, text):
            return known.within is not None and known.within in text
    return False


def excludes(left: Predicate, right: Predicate) -> bool:
    """Whether certainly no text meets both."""
    a, b = facts(left), facts(right)
    if not (a.prefix.startswith(b.prefix) or b.prefix.startswith(a.prefix)):
        return True
    if not (a.suffix.endswith(b.suffix) or b.suffix.endswith(a.suffix)):
        return True
    return _does_not_fit(a, b.within) or _does_not_fit(b, a.within)


def _does_not_fit(known: Facts, within: str | None) -> bool:
    return within is not None and any(part not in within for part in known.parts)


def always(predicate: Predicate) -> bool:
    """Whether certainly every text meets the predicate."""
    match plain(predicate):
        case StartsWith(_, "") | EndsWith(_, "") | Contains(_, ""):
            return True
    return False


def plain(predicate: Predicate) -> Predicate:
    """A LIKE pattern as the plainer test that it is: `ab%` starts with, `%ab` ends with, `%ab%` contains."""
    if not isinstance(predicate, Like):
        return predicate
    attribute = predicate.attribute
    match like_tokens(predicate.pattern, predicate.escape):
        case (str(text), kind) if kind == ANY_TEXT:
            return StartsWith(attribute, text)
        case (kind, str(text)) if kind == ANY_TEXT:
            return EndsWith(attribute, text)
        case (before, str(text), after) if before == ANY_TEXT and after == ANY_TEXT:
            return Contains(attribute, text)
        case (kind,) if kind == ANY_TEXT:
            return Contains(attribute, "")
    return predicate
