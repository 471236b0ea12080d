"""What a filter means: four semantics, and the plain interpreter that defines them.

`sql`      SQL's three-valued logic, as a Spark user expects of WHERE. A test on a missing attribute is unknown, NOT
           unknown is unknown, and an event matches where the filter is true. The default.
`simple`   Campailla et al.'s SiSL: two-valued. A test on a missing attribute is false, and its negation is true.
           The paper defines it for total messages only; there all four semantics agree. A schema's mandatory
           attributes make messages total.
`strict`   StSL: an event matches only if it defines every attribute that the filter names, and meets the filter.
           Syntactic: `price < 1000 OR price > 500` never matches an event without a price.
`default`  DeSL: attributes that the event doesn't define take their default first; then as `simple`. An attribute
           without a default is "undefined", which no comparison meets, so that EXISTS can be tested.

In the two-valued semantics `a != 5`, `a NOT IN (5)` and `NOT a = 5` are the same: true where `a` is missing.
A value of another kind than the constant (a string compared with a number) counts as missing for that test.
This interpreter is the definition; every matcher is tested against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from covey.errors import CoveyError
from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.event_texts import text_of
from covey.filters.predicates import ArrayContains, Between, Compare, ElementTest, In, IsNull, Predicate, TextTest
from covey.filters.terms import Lookup as Lookup
from covey.filters.terms import Present, Text, is_path, is_presence, term_of
from covey.filters.values import Element, Scalar, Value, compare, is_scalar, normalise

Semantics: TypeAlias = Literal["sql", "simple", "strict", "default"]
SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)
Defaults: TypeAlias = Mapping[str, Scalar]
Truth: TypeAlias = bool | None


def check_semantics(semantics: str) -> Semantics:
    """The semantics of that name, or an error that lists them."""
    for known in SEMANTICS:
        if semantics == known:
            return known
    raise CoveyError(f"semantics {semantics!r} is not known; use one of {', '.join(SEMANTICS)}")


def matches(
    condition: Filter, event: Mapping[str, Any], *, semantics: Semantics = "sql", defaults: Defaults | None = None
) -> bool:
    """Whether an event (attributes by name; nested records by nested mappings or dotted names) meets a filter."""
    check_semantics(semantics)

    def lookup(name: str) -> Value | None:
        value = attribute_value(event, name)
        if value is None and semantics == "default" and defaults is not None:
            return defaults.get(name)
        return value

    if isinstance(event, Supposed):
        return truth(condition, _Supposing(event, lookup), three_valued=semantics == "sql") is True and (
            semantics != "strict" or all(lookup(name) is not None for name in condition.attributes())
        )
    if semantics == "strict" and any(lookup(name) is None for name in condition.attributes()):
        return False
    return truth(condition, lookup, three_valued=semantics == "sql") is True


class Supposed(dict[str, Any]):
    """An event that gives the values of terms itself, by their names: what relations suppose of terms, whether or not
    an event can have them all at once. A term that it doesn't name is missing."""


class _Supposing:
    __slots__ = ("event", "lookup")

    def __init__(self, event: Supposed, lookup: Lookup) -> None:
        self.event = event
        self.lookup = lookup

    def __call__(self, name: str) -> Value | None:
        return self.lookup(name)


def attribute_value(event: Mapping[str, Any], name: str) -> Value | None:
    """The value of an attribute by its dotted name, or of another term by its own; None where it is missing."""
    value = event.get(name)
    if value is not None and not isinstance(value, Mapping):
        return normalise(value)
    if not is_path(name):
        term = term_of(name)
        if isinstance(term, Present):
            return is_present(event, term.path)
        if isinstance(event, Supposed):
            return None
        if isinstance(term, Text):
            return text_of(event.given if isinstance(event, Decoded) else event)
        return term.value(lambda inner: attribute_value(event, inner))
    head, dot, rest = name.partition(".")
    while dot:
        inner = event.get(head)
        if isinstance(inner, Mapping):
            found = attribute_value(inner, rest)
            if found is not None:
                return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


class Decoded(dict[str, Any]):
    """An event as a schema reads it, without its nulls, and the event that was given."""

    __slots__ = ("given",)

    def __init__(self, event: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        super().__init__(event)
        self.given = given


def is_present(event: Mapping[str, Any], name: str) -> bool:
    """Whether an event has an attribute by its dotted name, be it null. A record isn't a value, its fields are."""
    if isinstance(event, Decoded):
        event = event.given
    if name in event and not isinstance(event[name], Mapping):
        return True
    head, dot, rest = name.partition(".")
    while dot:
        inner = event.get(head)
        if isinstance(inner, Mapping) and is_present(inner, rest):
            return True
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return False


def truth(condition: Filter, lookup: Lookup, *, three_valued: bool) -> Truth:
    """True, False or None (unknown) of a filter, given the attributes' values."""
    kind = type(condition)
    if kind is And or kind is Or:
        # One part decides that is false in a conjunction, or true in a disjunction; else one that is unknown does.
        decisive = kind is Or
        result: Truth = not decisive
        for part in condition.children():
            value = truth(part, lookup, three_valued=three_valued)
            if value is decisive:
                return decisive
            if value is None:
                result = None
        return result
    match condition:
        case Predicate():
            if not three_valued and isinstance(condition, Compare) and condition.operator == "!=":
                return not predicate_truth(Compare(condition.attribute, "=", condition.value), lookup)
            result = predicate_truth(condition, lookup)
            return result if three_valued else bool(result)
        case Not(part):
            return negation(truth(part, lookup, three_valued=three_valued))
        case Is(part, wanted):
            return truth(part, lookup, three_valued=three_valued) is wanted
        case Constant(value):
            return value if three_valued else bool(value)
    raise TypeError(f"{type(condition).__name__} is not a filter")


def negation(value: Truth) -> Truth:
    """NOT in three-valued logic."""
    return None if value is None else not value


def _all(values: Any) -> Truth:
    result: Truth = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def predicate_truth(predicate: Predicate, lookup: Lookup) -> Truth:
    """SQL's truth of one predicate, given the attributes' values."""
    name = predicate.attribute
    if is_path(name):
        return truth_for(predicate, lookup(name))
    if isinstance(lookup, _Supposing) and not is_presence(name):
        return truth_for(predicate, lookup.event.get(name))
    return truth_for(predicate, term_of(name).value(lookup))


def truth_for(predicate: Predicate, value: Value | None) -> Truth:
    """SQL's truth of one predicate for a value of its term."""
    match predicate:
        case Compare():
            return _compare(value, predicate.operator, predicate.value)
        case IsNull():
            return value is None
        case Between(_, low, high):
            return _all((_compare(value, ">=", low), _compare(value, "<=", high)))
        case In():
            return None if value is None or isinstance(value, tuple) else predicate.members().truth(value)
        case ArrayContains(_, constant):
            return _array_contains(value, constant)
        case ElementTest():
            return _elements(predicate, value)
        case TextTest():
            return predicate.holds(value) if isinstance(value, str) else None
    raise TypeError(f"{type(predicate).__name__} has no truth; say it in truth_for")


def _compare(value: Value | None, operator: str, constant: Scalar | None) -> Truth:
    if operator == "<=>":
        if value is None or constant is None:
            return value is None and constant is None
        return not isinstance(value, tuple) and compare(value, constant) == 0
    if value is None or constant is None or isinstance(value, tuple):
        return None
    order = compare(value, constant)
    if order is None:
        return None
    match operator:
        case "=":
            return order == 0
        case "!=":
            return order != 0
        case "<":
            return order < 0
        case "<=":
            return order <= 0
        case ">":
            return order > 0
        case _:
            return order >= 0


def _array_contains(value: Value | None, constant: Scalar | None) -> Truth:
    if not isinstance(value, tuple) or constant is None:
        return None
    if any(is_scalar(element) and compare(element, constant) == 0 for element in value):
        return True
    return None if None in value else False


def _elements(test: ElementTest, value: Value | None) -> Truth:
    """Spark's `exists` and `forall`: those of three-valued OR and AND over the elements."""
    if not isinstance(value, tuple):
        return None
    truths = (truth(test.condition, _within(element, test.variable), three_valued=True) for element in value)
    return _all(truths) if test.every else negation(_all(map(negation, truths)))


def _within(element: Element, variable: str) -> Lookup:
    """The element by its variable, and a record's fields behind it. A record itself is there and compares with nothing,
    as a list does."""

    def lookup(name: str) -> Value | None:
        if is_presence(name):
            _, _, field = term_of(name).attributes()[0].partition(f"{variable}.")
            return not field or (isinstance(element, Mapping) and is_present(element, field))
        if isinstance(element, Mapping):
            return () if name == variable else attribute_value(element, name[len(variable) + 1 :])
        return element if name == variable else None

    return lookup
