"""What one test on a text says about another: what is certain, never a guess.

Each test gives facts about every text that meets it: prefixes, suffixes and parts that it must have. A second test
follows where the facts contain what it asks for; the two exclude each other where their facts can't hold together.
Sound, and complete for prefixes, suffixes, substrings and parts of a text among themselves two by two; a regular
expression, and a pattern with wildcards inside, are understood in part.

A test that ignores case says something about the text in lower case. What another says about the text itself holds in
lower case too, character by character, unless there is a sigma in it; the other way round nothing follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from covey.filters.cases import SIGMAS, lower
from covey.filters.networks import is_within
from covey.filters.patterns import ANY_TEXT, Form, Network, PartOf, Wildcards
from covey.filters.predicates import Predicate, TextTest


@dataclass(frozen=True, slots=True)
class Facts:
    """What every text that meets a test has."""

    prefix: str = ""
    suffix: str = ""
    parts: tuple[str, ...] = ()
    within: str | None = None
    """A text that it is a part of."""


def facts(predicate: Predicate) -> Facts:
    """What every text that meets the predicate has; of one that ignores case, in lower case."""
    match _form(predicate):
        case Wildcards(tokens):
            first = tokens[0] if tokens and isinstance(tokens[0], str) else ""
            last = tokens[-1] if tokens and isinstance(tokens[-1], str) else ""
            return Facts(first, last, tuple(token for token in tokens if isinstance(token, str)))
        case PartOf(text):
            return Facts(within=text)
    return Facts()


def _facts_as_written(predicate: Predicate) -> Facts:
    """What every text that meets the predicate has, as it is written."""
    return Facts() if _form(predicate).ignore_case else facts(predicate)


def _facts_in_lower_case(predicate: Predicate) -> Facts:
    """What every text that meets the predicate has in lower case."""
    known = facts(predicate)
    if _form(predicate).ignore_case:
        return known
    within = None if known.within is None or not SIGMAS.isdisjoint(known.within) else lower(known.within)
    prefix, suffix = (lower(end) if SIGMAS.isdisjoint(end) else "" for end in (known.prefix, known.suffix))
    return Facts(prefix, suffix, tuple(lower(part) for part in known.parts if SIGMAS.isdisjoint(part)), within)


def _form(predicate: Predicate) -> Form:
    """What a test asks of a text."""
    if not isinstance(predicate, TextTest):
        raise TypeError(f"{type(predicate).__name__} is no test on texts")
    return predicate.form()


def implies(given: Predicate, asked: Predicate) -> bool:
    """Whether every text that meets `given` certainly meets `asked`."""
    if given == asked or always(asked):
        return True
    wanted = _form(asked)
    known = _facts_in_lower_case(given) if wanted.ignore_case else _facts_as_written(given)
    match wanted:
        case Network():
            inner = _form(given)
            return isinstance(inner, Network) and is_within(inner, wanted)
        case Wildcards((str(text), after)) if after == ANY_TEXT:
            return known.prefix.startswith(text)
        case Wildcards((before, str(text))) if before == ANY_TEXT:
            return known.suffix.endswith(text)
        case Wildcards((before, str(text), after)) if before == after == ANY_TEXT:
            return any(text in part for part in known.parts)
        case PartOf(text):
            return known.within is not None and known.within in text
    return False


def excludes(left: Predicate, right: Predicate) -> bool:
    """Whether certainly no text meets both."""
    one, other = _form(left), _form(right)
    if isinstance(one, Network) and isinstance(other, Network):
        return not (is_within(one, other) or is_within(other, one))
    cased = not (_form(left).ignore_case or _form(right).ignore_case)
    a, b = (facts(left), facts(right)) if cased else (_facts_in_lower_case(left), _facts_in_lower_case(right))
    if not (a.prefix.startswith(b.prefix) or b.prefix.startswith(a.prefix)):
        return True
    if not (a.suffix.endswith(b.suffix) or b.suffix.endswith(a.suffix)):
        return True
    return _does_not_fit(a, b.within) or _does_not_fit(b, a.within)


def _does_not_fit(known: Facts, within: str | None) -> bool:
    return within is not None and any(part not in within for part in known.parts)


def always(predicate: Predicate) -> bool:
    """Whether certainly every text meets the predicate."""
    form = _form(predicate)
    return isinstance(form, Wildcards) and form.tokens == (ANY_TEXT,)
