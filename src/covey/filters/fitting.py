"""Filters of dialects without types, cut down to what a table's types leave of them.

Sigma compares a number with its text too, and EventBridge's patterns ask whether a field is a value or a list that has
it. Where a schema says what an attribute is, one of both can't be, and a schema, or Spark, would refuse it as mistaken.
`fitted` takes out what the types rule out: such a test is never true, so it is unknown here, and what follows from that
is simplified as far as being true goes. These dialects negate only what is true or isn't (`IS NOT TRUE`), so no more is
asked of a test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from covey.filters.algebra import FALSE, TRUE, UNKNOWN, And, Filter, Is, Not, Or, all_of, any_of
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    ElementTest,
    In,
    IsNull,
    Predicate,
    TextTest,
)
from covey.filters.terms import is_presence
from covey.filters.values import Kind, Scalar, kind_of

UNTYPED: Final = frozenset({"eventbridge", "sigma"})
"""Dialects whose filters are to be fitted."""


class Known(NamedTuple):
    """What the values of an attribute are."""

    kind: Kind
    element: Known | None = None
    """Of a list, what its elements are, where that is known."""
    fields: Callable[[str], Known | None] | None = None
    """Of a list of records, what is known of their fields."""


Types: TypeAlias = Callable[[str], Known | None]
"""What is known of an attribute by its name; None where nothing is."""


def fitted(condition: Filter, types: Types, *, columns: bool = False) -> Filter:
    """A filter that is true for the same events, if they have these types. The `columns` of a table don't say whether
    an event had an attribute that is null, so there nothing is known of its presence."""
    return _true(_fitted(condition, types, columns))


def _fitted(condition: Filter, types: Types, columns: bool) -> Filter:
    match condition:
        case And(parts):
            return And(tuple(_fitted(part, types, columns) for part in parts))
        case Or(parts):
            return Or(tuple(_fitted(part, types, columns) for part in parts))
        case Not(part):
            return Not(_fitted(part, types, columns))
        case Is(part, truth):
            return Is(_fitted(part, types, columns), truth)
        case Predicate() if _in_a_list(condition, types):
            return TRUE if isinstance(condition, IsNull) else UNKNOWN
        case Compare(name) if columns and is_presence(name):
            return condition if types(condition.term.attributes()[0]) is None else UNKNOWN
        case ElementTest(name, inner, every, variable):
            known = types(name)
            if known is None:
                return condition
            if known.kind is not Kind.LIST:
                return UNKNOWN
            left = _inside(inner, known, variable, columns)
            return UNKNOWN if left in (FALSE, UNKNOWN) and not every else ElementTest(name, left, every, variable)
        case Predicate():
            known = types(condition.attribute)
            return condition if known is None or _may_hold(condition, known) else UNKNOWN
    return condition


def _in_a_list(test: Predicate, types: Types) -> bool:
    """Whether what is tested would be a field of a list, which has none: only its elements have."""
    found = test.term.attributes()
    if len(found) != 1 or types(found[0]) is not None:
        return False
    known = [types(found[0][:at]) for at, character in enumerate(found[0]) if character == "."]
    return any(one is not None and one.kind is Kind.LIST for one in known)


def _inside(condition: Filter, known: Known, variable: str, columns: bool) -> Filter:
    fields = known.fields
    if fields is None:
        return fitted(condition, lambda name: known.element if name == variable else None, columns=columns)
    of_record = _of_record(condition, variable)
    return fitted(of_record, lambda name: fields(name.removeprefix(f"{variable}.")), columns=columns)


def _of_record(condition: Filter, variable: str) -> Filter:
    """A condition on an element that is a record: it is there, is no value, and has no elements."""
    match condition:
        case And(parts) | Or(parts):
            return type(condition)(tuple(_of_record(part, variable) for part in parts))
        case Not(part):
            return Not(_of_record(part, variable))
        case Is(part, truth):
            return Is(_of_record(part, variable), truth)
        case ElementTest(name, _, every) if name == variable:
            return TRUE if every else FALSE
        case Predicate() if condition.attribute == variable:
            return FALSE if isinstance(condition, IsNull) else UNKNOWN
    return condition


def _may_hold(test: Predicate, known: Known) -> bool:
    """Whether a test may be true, or false, of values of that kind."""
    match test:
        case ArrayContains(_, value):
            return known.kind is Kind.LIST and (known.element is None or _is(value, known.element.kind))
        case Compare(_, _, value):
            return _is(value, known.kind)
        case Between(_, low, high):
            return _is(low, known.kind) and _is(high, known.kind)
        case In(_, values):
            return all(_is(value, known.kind) for value in values)
        case TextTest():
            return known.kind is Kind.STRING
    return True


def _is(value: Scalar | None, kind: Kind) -> bool:
    return value is None or kind_of(value) is kind


def _true(condition: Filter) -> Filter:
    """A simpler filter that is true where this one is."""
    match condition:
        case And(parts):
            kept = [part for part in map(_true, parts) if part != TRUE]
            return FALSE if any(part in (FALSE, UNKNOWN) for part in kept) else all_of(kept)
        case Or(parts):
            kept = [part for part in map(_true, parts) if part not in (FALSE, UNKNOWN)]
            return TRUE if TRUE in kept else any_of(kept)
        case Is(part, True):
            return _true(part)
        case Not(Is(part, True)):
            inner = _true(part)
            return TRUE if inner in (FALSE, UNKNOWN) else FALSE if inner == TRUE else Not(Is(inner, True))
    return condition
