"""What a part of an expression can be before it is a filter: an attribute or another term, a constant, or a filter.

An attribute is its name, a plain `str`; a constant is wrapped, so that a string constant isn't mistaken for a name.
Tests on constants alone (`1 = 1`, `'a' LIKE 'a%'`) are folded here, by the interpreter that defines the semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from covey.errors import FilterError, FilterTypeError
from covey.filters.algebra import FALSE, TRUE, UNKNOWN, And, Constant, Filter, Is, Not, Or
from covey.filters.conditional import truth_term
from covey.filters.predicates import FLIPPED as FLIPPED
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    In,
    IsNull,
    Operator,
    Predicate,
    TextTest,
    constant,
)
from covey.filters.quoting import constant_to_sql
from covey.filters.semantics import truth_for
from covey.filters.terms import Call, Fixed, Path, Raw, Term, comparison, fixed, is_path, term_of
from covey.filters.values import Kind, Scalar, is_double, kind_of


class Literal:
    """A constant of the text."""

    __slots__ = ("value",)

    def __init__(self, value: Raw) -> None:
        self.value = value

    @property
    def scalar(self) -> Scalar | None:
        """As predicates hold it."""
        value = self.value
        if isinstance(value, timedelta):
            raise FilterError("an interval is added to a time or compared with one; it can't stand here")
        return constant("a constant", value) if isinstance(value, (Decimal, date)) else value  # type: ignore[return-value]


Operand: TypeAlias = str | Literal | Term | Filter
Subject: TypeAlias = str | Literal | Term
"""What can be tested."""


def test(predicate: type[Predicate], subject: Subject, *arguments: Any) -> Filter:
    """A predicate on a term, or its truth where the subject is a constant."""
    if isinstance(subject, str):
        return predicate(subject, *arguments)
    if isinstance(subject, Term):
        built = predicate(subject, *arguments)  # type: ignore[arg-type]
        if subject.kind is not None:
            _check_term(built, subject, subject.kind)
        return built
    value = subject.scalar
    shown = constant_to_sql(value)
    built = predicate(shown if shown[:1] != "=" else "constant", *arguments)
    _check_kinds(built, value)
    return Constant(truth_for(built, value))


def is_only_in_terms(value: Raw) -> bool:
    """Whether a constant can't be one of a predicate, but only part of a term."""
    if isinstance(value, Decimal):
        return not is_double(value) and value != value.to_integral_value()
    return isinstance(value, timedelta)


def as_term(operand: Operand) -> Term:
    """An operand as a part of a term."""
    if isinstance(operand, str):
        return term_of(operand)
    if isinstance(operand, Literal):
        return fixed(operand.value)
    return truth_term(operand) if isinstance(operand, Filter) else operand


def operand_of(term: Term) -> Operand:
    """A term as an operand: a constant where it is one."""
    return Literal(term.constant) if isinstance(term, Fixed) else term


def compare_terms(left: Operand, operator: Operator, right: Operand) -> Filter:
    """The comparison of two terms: a test of the term that says how they compare."""
    first, second = as_term(left), as_term(right)
    term, flipped = comparison(first, second)
    if isinstance(term, Fixed):
        return test(Compare, Literal(term.constant), operator, 0)
    if operator != "<=>":
        return Compare(term, FLIPPED[operator] if flipped else operator, 0)  # type: ignore[arg-type]
    if isinstance(second, Fixed) and second.constant is not None:
        return Compare(term, "<=>", 0)  # type: ignore[arg-type]
    missing = And((_missing(left, first), _missing(right, second)))
    return Or((Is(Compare(term, "=", 0), True), missing))  # type: ignore[arg-type]


def _missing(operand: Operand, term: Term) -> Filter:
    """That an operand has no value: a condition has none where it is unknown, and is read again as that."""
    return Is(operand, None) if isinstance(operand, Filter) else test(IsNull, _subject(term))


def _subject(term: Term) -> Subject:
    return term.name if isinstance(term, Path) else Literal(term.constant) if isinstance(term, Fixed) else term


def check_predicate(condition: Filter) -> Filter:
    """The filter, where it is a test that fits its term."""
    if isinstance(condition, Predicate) and not is_path(condition.attribute):
        term = condition.term
        if term.kind is not None:
            _check_term(condition, term, term.kind)
    return condition


def _check_term(predicate: Predicate, term: Term, kind: Kind) -> None:
    """A term of a known kind is tested as one of that kind."""
    if isinstance(predicate, IsNull):
        return
    wanted = (
        Kind.STRING if isinstance(predicate, TextTest) else Kind.LIST if isinstance(predicate, ArrayContains) else None
    )
    if wanted is not None and wanted is not kind:
        raise FilterTypeError(f"{term.sql} is a {kind.value}, and is tested as a {wanted.value}")
    for other in () if wanted is not None else _constants(predicate):
        if other is not None and kind_of(other) is not kind:
            raise FilterTypeError(
                f"{term.sql}, a {kind.value}, is compared with {constant_to_sql(other)}, a {kind_of(other).value}; "
                f"write a {kind.value}, or CAST({term.sql} AS …)"
            )


def _check_kinds(predicate: Predicate, value: Scalar | None) -> None:
    """Spark would cast one constant to the other's type; here that is a mistake to be shown."""
    for other in _constants(predicate):
        if value is not None and other is not None and kind_of(value) is not kind_of(other):
            hint = "; an attribute is written without quotes or in `backquotes`" if isinstance(value, str) else ""
            raise FilterTypeError(
                f"{predicate.attribute}, a {kind_of(value).value}, is compared with {constant_to_sql(other)}, "
                f"a {kind_of(other).value}{hint}"
            )


def _constants(predicate: Predicate) -> Sequence[Scalar | None]:
    match predicate:
        case Compare(_, _, value) | ArrayContains(_, value):
            return (value,)
        case In(_, values):
            return values
        case Between(_, low, high):
            return (low, high)
    return ()


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
    if isinstance(operand, Term):
        numeric = isinstance(operand, Call) and operand.function.takes == ("sum",)
        if numeric or operand.kind not in (None, Kind.BOOLEAN):
            return None
        return Compare(operand, "=", True)  # type: ignore[arg-type]
    if operand.value is None:
        return UNKNOWN
    if isinstance(operand.value, bool):
        return TRUE if operand.value else FALSE
    return None
