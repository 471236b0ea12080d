"""Filters as Python expressions: `attr("price") * attr("quantity") <= 1000`, combined with `&`, `|` and `~`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any

from covey.errors import FilterError
from covey.filters.algebra import And, Filter, Is, Not, Or
from covey.filters.caseless import IContains, IEndsWith, IEquals, ILike, IStartsWith
from covey.filters.networks import CidrMatch
from covey.filters.predicates import (
    FLIPPED,
    ArrayContains,
    Between,
    Compare,
    Contains,
    ElementTest,
    EndsWith,
    In,
    IsNull,
    Like,
    Operator,
    RLike,
    StartsWith,
    SubstringOf,
    constant,
)
from covey.filters.term_functions import NAMED
from covey.filters.terms import Term, call, comparison, fixed, known_term, present, term_of
from covey.filters.values import Exact, exact, is_double


class Attribute:
    """An attribute or another term to be compared; each comparison gives a filter, arithmetic another term."""

    __slots__ = ("name",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]
        return _compared(self, "=", value)

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]
        return _compared(self, "!=", value)

    def __lt__(self, value: Any) -> Filter:
        return _compared(self, "<", value)

    def __le__(self, value: Any) -> Filter:
        return _compared(self, "<=", value)

    def __gt__(self, value: Any) -> Filter:
        return _compared(self, ">", value)

    def __ge__(self, value: Any) -> Filter:
        return _compared(self, ">=", value)

    def __add__(self, other: Any) -> Attribute:
        return _called("+", self, other)

    def __radd__(self, other: Any) -> Attribute:
        return _called("+", other, self)

    def __sub__(self, other: Any) -> Attribute:
        return _called("-", self, other)

    def __rsub__(self, other: Any) -> Attribute:
        return _called("-", other, self)

    def __mul__(self, other: Any) -> Attribute:
        return _called("*", self, other)

    def __rmul__(self, other: Any) -> Attribute:
        return _called("*", other, self)

    def __truediv__(self, other: Any) -> Attribute:
        return _called("/", self, other)

    def __rtruediv__(self, other: Any) -> Attribute:
        return _called("/", other, self)

    def __mod__(self, other: Any) -> Attribute:
        return _called("%", self, other)

    def __neg__(self) -> Attribute:
        return _called("negative", self)

    def call(self, function: str, *arguments: Any) -> Attribute:
        """A function by its name in SQL, of this and further values: `attr("name").call("lower")`."""
        known = NAMED.get(function.lower())
        if known is None:
            raise FilterError(f"the function {function!r} is not known; there are {', '.join(NAMED)}")
        return _called(known.name, self, *arguments)

    def null_safe_equals(self, value: Any) -> Filter:
        """`attribute <=> value`."""
        return _compared(self, "<=>", value)

    def between(self, low: Any, high: Any) -> Filter:
        """Both ends included."""
        return Between(self.name, low, high)

    def is_in(self, values: Iterable[Any]) -> Filter:
        """One of the values."""
        return In(self.name, tuple(values))

    def like(self, pattern: str, escape: str = "\\") -> Filter:
        """SQL's LIKE."""
        return Like(self.name, pattern, escape)

    def rlike(self, pattern: str) -> Filter:
        """A regular expression found somewhere in the value."""
        return RLike(self.name, pattern)

    def startswith(self, text: str) -> Filter:
        """The value starts with the text."""
        return StartsWith(self.name, text)

    def endswith(self, text: str) -> Filter:
        """The value ends with the text."""
        return EndsWith(self.name, text)

    def contains(self, text: str) -> Filter:
        """The value contains the text (superstring)."""
        return Contains(self.name, text)

    def substring_of(self, text: str) -> Filter:
        """The value is a part of the text (substring)."""
        return SubstringOf(self.name, text)

    def ilike(self, pattern: str, escape: str = "\\") -> Filter:
        """SQL's ILIKE: LIKE without regard to case."""
        return ILike(self.name, pattern, escape)

    def iequals(self, text: str) -> Filter:
        """The value is the text, whatever the case of letters."""
        return IEquals(self.name, text)

    def istartswith(self, text: str) -> Filter:
        """The value starts with the text, whatever the case of letters."""
        return IStartsWith(self.name, text)

    def iendswith(self, text: str) -> Filter:
        """The value ends with the text, whatever the case of letters."""
        return IEndsWith(self.name, text)

    def icontains(self, text: str) -> Filter:
        """The value contains the text, whatever the case of letters."""
        return IContains(self.name, text)

    def in_network(self, network: str) -> Filter:
        """The value is an IP address in the network: `10.0.0.0/8`, `2001:db8::/32`."""
        return CidrMatch(self.name, network)

    def has(self, value: Any) -> Filter:
        """The list contains the value."""
        return ArrayContains(self.name, value)

    def any(self, condition: Filter, variable: str = "x") -> Filter:
        """Some element of the list meets the condition, in which `attr("x")` is the element."""
        return ElementTest(self.name, condition, variable=variable)

    def all(self, condition: Filter, variable: str = "x") -> Filter:
        """Every element of the list meets the condition, in which `attr("x")` is the element."""
        return ElementTest(self.name, condition, every=True, variable=variable)

    def overlaps(self, values: Iterable[Any]) -> Filter:
        """The list has one of the values among its elements."""
        return ElementTest(self.name, In("x", tuple(values)))

    def is_present(self) -> Filter:
        """The event has the attribute, be it null."""
        return Compare(present(self.name).name, "=", True)

    def is_missing(self) -> Filter:
        """The event doesn't have the attribute at all: null is something else."""
        return Compare(present(self.name).name, "=", False)

    def is_null(self) -> Filter:
        """The event doesn't define the attribute."""
        return IsNull(self.name)

    def exists(self) -> Filter:
        """The event defines the attribute."""
        return Not(IsNull(self.name))


def _called(function: str, *arguments: Any) -> Attribute:
    """A term of attributes and constants."""
    return Attribute(known_term(call(function, [_term(argument) for argument in arguments])).name)


def _term(given: Any) -> Term:
    if isinstance(given, Attribute):
        return term_of(given.name)
    return fixed(given if isinstance(given, (Decimal, timedelta)) else constant("a constant", given))


def _compared(left: Attribute, operator: Operator, right: Any) -> Filter:
    long = isinstance(right, Decimal) and right.is_finite() and isinstance(exact(right), Exact) and not is_double(right)
    if not (isinstance(right, Attribute) or long or isinstance(right, timedelta)):
        return Compare(left.name, operator, right)
    first, second = term_of(left.name), _term(right)
    term, flipped = comparison(first, second)
    if operator != "<=>" or not isinstance(right, Attribute):
        return Compare(term, FLIPPED[operator] if flipped else operator, 0)  # type: ignore[arg-type]
    missing = And((IsNull(left.name), IsNull(right.name)))
    return Or((Is(Compare(term, "=", 0), True), missing))  # type: ignore[arg-type]


def attr(name: str) -> Attribute:
    """An attribute by its (dotted) name."""
    return Attribute(name)
