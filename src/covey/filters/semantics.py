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

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from covey.errors import CoveyError
from covey.filters.algebra import And, Constant, Filter, Is, Not, Or
from covey.filters.patterns import like_automaton, regular_expression
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Like,
    Predicate,
    RLike,
    StartsWith,
    SubstringOf,
)
from covey.filters.values import Scalar, Value, compare, normalise

Semantics: TypeAlias = Literal["sql", "simple", "strict", "default"]
SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)
Defaults: TypeAlias = Mapping[str, Scalar]
Truth: TypeAlias = bool | None
Lookup: TypeAlias = Callable[[str], Value | None]


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

    if semantics == "strict" and any(lookup(name) is None for name in condition.attributes()):
        return False
    return truth(condition, lookup, three_valued=semantics == "sql") is True


def attribute_value(event: Mapping[str, Any], name: str) -> Value | None:
    """The value of an attribute by its dotted name; None where the event doesn't define it."""
    value = event.get(name)
    if value is not None and not isinstance(value, Mapping):
        return normalise(value)
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


def truth(condition: Filter, lookup: Lookup, *, three_valued: bool) -> Truth:
    """True, False or None (unknown) of a filter, given the attributes' values."""
    match condition:
        case Constant(value):
            return value if three_valued else bool(value)
        case And(parts):
            return _all(truth(part, lookup, three_valued=three_valued) for part in parts)
        case Or(parts):
            return negation(_all(negation(truth(part, lookup, three_valued=three_valued)) for part in parts))
        case Not(part):
            return negation(truth(part, lookup, three_valued=three_valued))
        case Is(part, wanted):
            return truth(part, lookup, three_valued=three_valued) is wanted
        case Predicate():
            if not three_valued and isinstance(condition, Compare) and condition.operator == "!=":
                return not predicate_truth(Compare(condition.attribute, "=", condition.value), lookup)
            result = predicate_truth(condition, lookup)
            return result if three_valued else bool(result)
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
    """SQL's truth of one predicate."""
    value = lookup(predicate.attribute)
    match predicate:
        case IsNull():
            return value is None
        case Compare(_, "<=>", constant):
            if value is None or constant is None:
                return value is None and constant is None
            return not isinstance(value, tuple) and compare(value, constant) == 0
        case Compare(_, operator, constant):
            return _compare(value, operator, constant)
        case Between(_, low, high):
            return _all((_compare(value, ">=", low), _compare(value, "<=", high)))
        case In(_, values):
            return negation(_all(negation(_compare(value, "=", constant)) for constant in values))
        case ArrayContains(_, constant):
            return _array_contains(value, constant)
    return _text_truth(predicate, value) if isinstance(value, str) else None


def _compare(value: Value | None, operator: str, constant: Scalar | None) -> Truth:
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
    if any(element is not None and compare(element, constant) == 0 for element in value):
        return True
    return None if None in value else False


def _text_truth(predicate: Predicate, value: str) -> Truth:
    match predicate:
        case Like(_, pattern, escape):
            return like_automaton(pattern, escape).fullmatch(value) is not None
        case RLike(_, pattern):
            return regular_expression(pattern).search(value) is not None
        case StartsWith(_, text):
            return value.startswith(text)
        case EndsWith(_, text):
            return value.endswith(text)
        case Contains(_, text):
            return text in value
        case SubstringOf(_, text):
            return value in text
    raise TypeError(f"{type(predicate).__name__} has no truth")
