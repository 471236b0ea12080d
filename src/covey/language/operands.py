"""What a part of an expression can be before it is a filter: an attribute, a constant, or a filter already.

An attribute is its name, a plain `str`; a constant is wrapped, so that a string constant isn't mistaken for a name.
Tests on constants alone (`1 = 1`, `'a' LIKE 'a%'`) are folded here, by the interpreter that defines the semantics.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from covey.errors import FilterTypeError
from covey.filters.algebra import FALSE, TRUE, UNKNOWN, Constant, Filter, Is, Not
from covey.filters.predicates import ArrayContains, Between, Compare, In, Operator, Predicate
from covey.filters.printing import constant_to_sql
from covey.filters.semantics import predicate_truth
from covey.filters.values import Scalar, kind_of


class Literal:
    """A constant of the text."""

    __slots__ = ("value",)

    def __init__(self, value: Scalar | None) -> None:
        self.value = value


Operand: TypeAlias = str | Literal | Filter

FLIPPED: dict[Operator, Operator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "<=>": "<=>",
}


def test(predicate: type[Predicate], subject: str | Literal, *arguments: Any) -> Filter:
    """A predicate on an attribute, or its truth where the subject is a constant."""
    if isinstance(subject, str):
        return predicate(subject, *arguments)
    shown = constant_to_sql(subject.value)
    built = predicate(shown, *arguments)
    _check_kinds(built, subject.value)
    return Constant(predicate_truth(built, lambda _: subject.value))


def _check_kinds(predicate: Predicate, value: Scalar | None) -> None:
    """Spark would cast one constant to the other's type; here that is a mistake to be shown."""
    match predicate:
        case Compare(_, _, constant) | ArrayContains(_, constant):
            others = [constant]
        case In(_, values):
            others = list(values)
        case Between(_, low, high):
            others = [low, high]
        case _:
            others = []
    for other in others:
        if value is not None and other is not None and kind_of(value) is not kind_of(other):
            hint = "; an attribute is written without quotes or in `backquotes`" if isinstance(value, str) else ""
            raise FilterTypeError(
                f"{predicate.attribute}, a {kind_of(value).value}, is compared with {constant_to_sql(other)}, "
                f"a {kind_of(other).value}{hint}"
            )


def compare_condition(condition: Filter, operator: Operator, value: Scalar | None) -> Filter | None:
    """`(condition) = TRUE` and its like; None where the comparison makes no sense of a condition."""
    if value is not None and not isinstance(value, bool):
        return None
    if operator == "<=>":
        return Is(condition, value)
    if operator not in ("=", "!="):
        return None
    if value is None:
        return UNKNOWN
    return condition if (operator == "=") is value else Not(condition)


def as_condition(operand: Operand) -> Filter | None:
    """An operand in a Boolean position: an attribute there is `attribute = TRUE`. None if it is not a condition."""
    if isinstance(operand, Filter):
        return operand
    if isinstance(operand, str):
        return Compare(operand, "=", True)
    if operand.value is None:
        return UNKNOWN
    if isinstance(operand.value, bool):
        return TRUE if operand.value else FALSE
    return None
