"""Predicates: a test on the value of one attribute.

Constants are normalised when a predicate is made (`covey.filters.values`), so equal predicates are equal values.
A constant of None is SQL's NULL: a comparison with it is unknown. To add an operator: a class here, its truth in
`semantics.py`, its text in `printing.py` and `covey.language`, its lowering in `covey.matching`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from covey.errors import FilterError, FilterTypeError
from covey.filters.algebra import Filter
from covey.filters.patterns import like_tokens, regular_expression
from covey.filters.values import Kind, Scalar, kind_of, normalise

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "<=>"]
LARGEST_INTEGER = 10**400
OPERATORS: tuple[Operator, ...] = ("=", "!=", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True, slots=True, repr=False)
class Predicate(Filter):
    """A test on one attribute, named by its dotted path."""

    attribute: str

    def __post_init__(self) -> None:
        check_name(self.attribute)

    def _named(self) -> tuple[str, ...]:
        return (self.attribute,)


@dataclass(frozen=True, slots=True, repr=False)
class IsNull(Predicate):
    """The event doesn't define the attribute. `a IS NOT NULL` and `EXISTS(a)` are its negation."""


@dataclass(frozen=True, slots=True, repr=False)
class Compare(Predicate):
    """`attribute operator constant`. `<=>` is null-safe equality: never unknown."""

    operator: Operator
    value: Scalar | None

    def __post_init__(self) -> None:
        check_name(self.attribute)
        if self.operator not in OPERATORS:
            raise FilterError(f"{self.operator!r} is not an operator; use one of {' '.join(OPERATORS)}")
        object.__setattr__(self, "value", constant(self.attribute, self.value))

    # -0.0 and 0.0, 1 and 1.0, and True and 1 are equal in Python, but not the same text; NaN isn't equal to itself.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Compare) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, self.operator, identity(self.value))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Between(Predicate):
    """`attribute BETWEEN low AND high`, both ends included."""

    low: Scalar | None
    high: Scalar | None

    def __post_init__(self) -> None:
        check_name(self.attribute)
        object.__setattr__(self, "low", constant(self.attribute, self.low))
        object.__setattr__(self, "high", constant(self.attribute, self.high))
        one_kind(self.attribute, (self.low, self.high), "the two ends of BETWEEN")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Between) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, identity(self.low), identity(self.high))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class In(Predicate):
    """`attribute IN (constants)`; a None among them is SQL's NULL."""

    values: tuple[Scalar | None, ...]

    def __post_init__(self) -> None:
        check_name(self.attribute)
        values = tuple(constant(self.attribute, value) for value in self.values)
        if not values:
            raise FilterError(f"IN on {self.attribute!r} has no values; write at least one")
        one_kind(self.attribute, values, "the values of IN")
        object.__setattr__(self, "values", values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, In) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, tuple(identity(value) for value in self.values))


@dataclass(frozen=True, slots=True, repr=False)
class Like(Predicate):
    """SQL's LIKE: `%` is any text, `_` any one character, `escape` makes the next one literal."""

    pattern: str
    escape: str = "\\"

    def __post_init__(self) -> None:
        check_name(self.attribute)
        check_text(self.attribute, self.pattern)
        check_text(self.attribute, self.escape)
        like_tokens(self.pattern, self.escape)


@dataclass(frozen=True, slots=True, repr=False)
class RLike(Predicate):
    """A regular expression (RE2's syntax) that is found somewhere in the attribute's value."""

    pattern: str

    def __post_init__(self) -> None:
        check_name(self.attribute)
        check_text(self.attribute, self.pattern)
        regular_expression(self.pattern)


@dataclass(frozen=True, slots=True, repr=False)
class StartsWith(Predicate):
    """The attribute's value starts with the text."""

    text: str

    def __post_init__(self) -> None:
        check_name(self.attribute)
        check_text(self.attribute, self.text)


@dataclass(frozen=True, slots=True, repr=False)
class EndsWith(Predicate):
    """The attribute's value ends with the text."""

    text: str

    def __post_init__(self) -> None:
        check_name(self.attribute)
        check_text(self.attribute, self.text)


@dataclass(frozen=True, slots=True, repr=False)
class Contains(Predicate):
    """The attribute's value contains the text: it is a superstring of it."""

    text: str

    def __post_init__(self) -> None:
        check_name(self.attribute)
        check_text(self.attribute, self.text)


@dataclass(frozen=True, slots=True, repr=False)
class SubstringOf(Predicate):
    """The attribute's value is contained in the text: it is a substring of it."""

    text: str

    def __post_init__(self) -> None:
        check_name(self.attribute)
        check_text(self.attribute, self.text)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ArrayContains(Predicate):
    """The attribute is a list that has the constant among its elements."""

    value: Scalar | None

    def __post_init__(self) -> None:
        check_name(self.attribute)
        object.__setattr__(self, "value", constant(self.attribute, self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayContains) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.attribute, identity(self.value))


def check_name(attribute: object) -> None:
    """Attributes are named by text."""
    if not isinstance(attribute, str):
        raise FilterTypeError(f"an attribute's name is a string, not {attribute!r}")
    check_text(attribute, attribute)


def check_text(attribute: str, text: object) -> None:
    """Text that can be written as UTF-8, which lone surrogates can't."""
    if not isinstance(text, str):
        raise FilterTypeError(f"{attribute!r} is compared with {text!r} as text; use a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(f"{text!r} is not text: {error.reason} at {error.start}") from None


def constant(attribute: str, value: Any) -> Scalar | None:
    """A constant as filters hold it, or an error that names the attribute."""
    try:
        normal = normalise(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise FilterTypeError(f"{attribute!r} is compared with what can't be a constant: {error}") from None
    if isinstance(normal, int) and abs(normal) > LARGEST_INTEGER:
        raise FilterTypeError(f"{attribute!r} is compared with an integer of more than 400 digits; use infinity")
    if isinstance(normal, str):
        check_text(attribute, normal)
    if isinstance(normal, tuple):
        raise FilterTypeError(f"{attribute!r} is compared with a list; use array_contains or IN")
    return normal


def identity(value: Scalar | None) -> tuple[str, str]:
    """What makes a constant the same constant: its type and its exact value."""
    return (type(value).__name__, repr(value))


def one_kind(attribute: str, values: Iterable[Scalar | None], what: str) -> Kind | None:
    """The one kind of all values that aren't NULL; an error where there are several."""
    kinds = {kind_of(value) for value in values if value is not None}
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.value for kind in kinds))
        raise FilterTypeError(f"{what} on {attribute!r} mix {names}; use values of one kind")
    return kinds.pop() if kinds else None
