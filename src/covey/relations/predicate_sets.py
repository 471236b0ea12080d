"""Where a predicate is true and where it is false, as sets of values of its attribute.

Three-valued logic needs two sets: `a < 5` is true on some numbers, false on the others, and unknown on everything else.
Under the two-valued semantics false is wherever it isn't true, and `a != 5` is the complement of `a = 5`.

LIKE without wildcards is equality, LIKE 'ab%' and startswith are intervals of strings, and substring_of a short text
is a finite set. Other patterns, and array_contains, aren't sets of this form: they have no answer here (None).

Tables of subscriptions repeat few constants in many filters, so the answers are kept by operator and constant. What is
kept is keyed by values instead of predicates, whose hash is dearer than the set.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from covey.filters.patterns import ANY_TEXT, Form, PartOf, Tokens, Wildcards
from covey.filters.predicates import ArrayContains, Between, Compare, ElementTest, In, IsNull, Predicate, TextTest
from covey.filters.semantics import Semantics
from covey.filters.values import Kind, Scalar, kind_of
from covey.relations.value_sets import MISSING, NOTHING, ValueSet

Pair: TypeAlias = tuple[ValueSet, ValueSet]

SUBSTRING_TEXT: Final = 16
"""Characters of a text whose parts are listed as a set of strings: at most 137 of them."""

_KEPT_SETS = 1 << 15
_NUMBERS: Final = frozenset({int, float})
_NEVER: Pair = (NOTHING, NOTHING)
_ABSENT: Pair = (MISSING, ~MISSING)


def from_predicate(predicate: Predicate, semantics: Semantics = "sql") -> Pair | None:
    """The values for which a predicate is true, and those for which it is false; None where they aren't value sets.

    What `strict` asks of missing attributes, and what `default` puts in their place, concern the whole filter: here
    both are as `simple`.
    """
    three_valued = semantics == "sql"
    if type(predicate) is Compare:
        return _compare(predicate.operator, predicate.value, three_valued)
    pair = _three_valued(predicate)
    if pair is None or three_valued:
        return pair
    return pair[0], ~pair[0]


@lru_cache(maxsize=_KEPT_SETS, typed=True)
def _compare(operator: str, value: Scalar | None, three_valued: bool) -> Pair:
    if operator == "<=>":
        return _ABSENT if value is None else _with_complement(ValueSet.of((value,)))
    if not three_valued:
        true = _comparison("=" if operator == "!=" else operator, value)[0]
        return (~true, true) if operator == "!=" else (true, ~true)
    return _comparison(operator, value)


def _comparison(operator: str, value: Scalar | None) -> Pair:
    if value is None:
        return _NEVER
    match operator:
        case "=" | "!=":
            true = ValueSet.of((value,))
        case "<" | ">=":
            true = _below(value, included=False)
        case _:
            true = _below(value, included=True)
    others = true.others_of_kind(kind_of(value))
    return (others, true) if operator in ("!=", ">=", ">") else (true, others)


def _below(value: Scalar, *, included: bool) -> ValueSet:
    if isinstance(value, bool):
        return ValueSet.of(one for one in (False, True) if one < value or (included and one == value))
    return ValueSet.between(None, value, high_included=included)


def _with_complement(true: ValueSet) -> Pair:
    return true, ~true


def _three_valued(predicate: Predicate) -> Pair | None:
    match predicate:
        case IsNull():
            return _ABSENT
        case In(_, values):
            return _membership(values, bool in map(type, values))
        case Between(_, low, high):
            return _between(low, high)
        case ArrayContains(_, value):
            return _NEVER if value is None else None
        case ElementTest():
            return None
        case TextTest():
            return _of_form(predicate.form())
    raise TypeError(f"{type(predicate).__name__} has no value sets; say them, or that it has none, in predicate_sets")


@lru_cache(maxsize=_KEPT_SETS, typed=True)
def _between(low: Scalar | None, high: Scalar | None) -> Pair:
    if type(low) in _NUMBERS and type(high) in _NUMBERS:
        # What comes out below, without the four sets that it is made of.
        true = ValueSet.between(low, high)
        return true, true.others_of_kind(Kind.NUMBER)
    above, below = _compare(">=", low, True), _compare("<=", high, True)
    return above[0] & below[0], above[1] | below[1]


def _of_form(form: Form) -> Pair | None:
    match form:
        case Form(ignore_case=True):
            return None
        case Wildcards(tokens):
            return _wildcards(tokens)
        case PartOf(text) if len(text) <= SUBSTRING_TEXT:
            ends = range(len(text) + 1)
            return _of_strings(ValueSet.of({text[start:end] for end in ends for start in range(end + 1)}))
    return None


@lru_cache(maxsize=_KEPT_SETS)
def _membership(values: tuple[Scalar | None, ...], of_booleans: bool) -> Pair:  # noqa: ARG001
    """`of_booleans` tells (1, 0) from (TRUE, FALSE), which Python holds equal."""
    known = [value for value in values if value is not None]
    if not known:
        return _NEVER
    true = ValueSet.of(known)
    return true, NOTHING if None in values else true.others_of_kind(kind_of(known[0]))


@lru_cache(maxsize=_KEPT_SETS)
def _wildcards(tokens: Tokens) -> Pair | None:
    match tokens:
        case ():
            return _of_strings(ValueSet.of(("",)))
        case (str(text),):
            return _of_strings(ValueSet.of((text,)))
        case (str(text), last) if last == ANY_TEXT:
            return _of_strings(ValueSet.with_prefix(text))
        case (only,) if only == ANY_TEXT:
            return _of_strings(ValueSet.with_prefix(""))
    return None


def _of_strings(true: ValueSet) -> Pair:
    return true, true.others_of_kind(Kind.STRING)
