"""A value set as a filter: the shortest that the plain forms give.

Points become `=` or IN, intervals comparisons, BETWEEN or startswith, "all but" becomes `!=` or NOT IN where that means
the same (under `sql`, all other values of the constant's kind; two-valued, everything else). Only "not this" can name
lists: they are printed as the negation of what is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from covey.errors import CoveyError
from covey.filters.algebra import FALSE, TRUE, Filter, Is, Not, all_of, any_of
from covey.filters.predicates import Between, Compare, In, IsNull, StartsWith
from covey.filters.semantics import Semantics
from covey.filters.terms import is_path
from covey.filters.values import Kind, Scalar
from covey.relations.cuts import EARLIEST, FULL, after_prefix
from covey.relations.value_sets import (
    IS_FALSE,
    IS_LIST,
    IS_MISSING,
    IS_TRUE,
    MISSING,
    Interval,
    ValueSet,
)

_LEAST: dict[Kind, Scalar] = {Kind.NUMBER: float("-inf"), Kind.STRING: "", Kind.TIMESTAMP: EARLIEST}


def to_filter(values: ValueSet, attribute: str, semantics: Semantics, *, integer: bool = False) -> Filter:
    """A filter on the attribute that is true exactly on the set."""
    if values.is_everything:
        return TRUE
    if values.is_empty:
        return FALSE
    if semantics == "strict" and not is_path(attribute):
        return to_filter(values, attribute, "simple", integer=integer)  # a term may be missing: what is inside may not
    if semantics == "strict":
        if values.flags & IS_MISSING:
            raise CoveyError(f"strict semantics has no filter that {attribute!r} needn't be defined for")
        # Naming the attribute asks for it: a negation doesn't need to.
        plain = to_filter(values | MISSING if values.flags & IS_LIST else values, attribute, "simple", integer=integer)
        return Not(IsNull(attribute)) if plain is TRUE else plain
    if not values.flags & IS_LIST:
        return any_of(_alternatives(values, attribute, semantics, integer=integer))
    excluded = ~values - MISSING
    parts: list[Filter] = []
    if not excluded.is_empty:
        inner = any_of(_alternatives(excluded, attribute, semantics, integer=integer))
        parts.append(Not(Is(inner, True) if semantics == "sql" else inner))
    if not values.flags & IS_MISSING:
        parts.append(Not(IsNull(attribute)))
    return all_of(parts)


def _alternatives(values: ValueSet, attribute: str, semantics: Semantics, *, integer: bool) -> Iterator[Filter]:
    """Filters whose disjunction is the set, for sets without lists."""
    if values.flags & IS_MISSING:
        yield IsNull(attribute)
    booleans: list[Scalar] = [value for value, flag in ((False, IS_FALSE), (True, IS_TRUE)) if values.flags & flag]
    if booleans:
        yield _listed(attribute, booleans)
    for kind in FULL:
        own = values & ValueSet.of_kind(kind)
        if not own.is_empty:
            yield from _of_kind(own, kind, attribute, semantics, integer=integer)


def _of_kind(values: ValueSet, kind: Kind, attribute: str, semantics: Semantics, *, integer: bool) -> Iterator[Filter]:
    every = ValueSet.of_kind(kind).integers() if integer else ValueSet.of_kind(kind)
    if values == every:
        yield Compare(attribute, ">=", _LEAST[kind])
        return
    excluded = list((every - values).intervals(integer=integer))
    if semantics == "sql" and all(interval.is_point for interval in excluded):
        points = [interval.low for interval in excluded if interval.low is not None]
        yield Compare(attribute, "!=", points[0]) if len(points) == 1 else Not(In(attribute, tuple(points)))
        return
    intervals = list(values.intervals(integer=integer))
    points = [interval.low for interval in intervals if interval.is_point and interval.low is not None]
    if points:
        yield _listed(attribute, points)
    for interval in intervals:
        if not interval.is_point:
            yield _interval(attribute, interval)


def _listed(attribute: str, values: list[Scalar]) -> Filter:
    return Compare(attribute, "=", values[0]) if len(values) == 1 else In(attribute, tuple(values))


def _interval(attribute: str, interval: Interval) -> Filter:
    low, high = interval.low, interval.high
    if low is None:
        assert high is not None, "all of a kind is printed before its intervals are"
        return Compare(attribute, "<=" if interval.high_included else "<", high)
    above = Compare(attribute, ">=" if interval.low_included else ">", low)
    if high is None:
        prefix = isinstance(low, str) and interval.low_included and after_prefix(low) == FULL[Kind.STRING][1]
        return StartsWith(attribute, low) if prefix and isinstance(low, str) else above
    if isinstance(low, str) and interval.low_included and after_prefix(low) == (high, 0) and not interval.high_included:
        return StartsWith(attribute, low)
    if interval.low_included and interval.high_included:
        return Between(attribute, low, high)
    return all_of((above, Compare(attribute, "<=" if interval.high_included else "<", high)))
