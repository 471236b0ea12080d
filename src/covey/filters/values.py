"""Values that attributes and constants can have, and how they compare.

Five kinds: number (int, float and decimals together), string, boolean, timestamp, list. Values of different kinds don't
compare. Numbers compare by value, exactly: Python's own comparison of int and float doesn't round. NaN follows
Spark SQL: equal to itself and greater than every other number; -0.0 equals 0.0. Strings compare by code point,
which is the order of their UTF-8 bytes. Timestamps are instants; a datetime without a zone is read as UTC.

A list may hold records, as mappings, and lists: only tests of its elements look inside them (`ElementTest`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias, TypeGuard

Scalar: TypeAlias = bool | int | float | str | datetime
Element: TypeAlias = "Scalar | Mapping[str, Any] | tuple[Element, ...] | None"
Value: TypeAlias = Scalar | tuple[Element, ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DEEPEST_LIST = 32
"""Lists within lists that a value may have."""
_MICROSECOND = timedelta(microseconds=1)


class Exact(float):
    """A decimal with a fraction: the nearest double, which it is to whatever takes doubles, and its own digits, which
    it compares by."""

    __slots__ = ("digits",)
    digits: Decimal

    def __new__(cls, digits: Decimal) -> Exact:
        """The decimal of these digits."""
        made = super().__new__(cls, digits)
        made.digits = digits
        return made

    def __reduce__(self) -> tuple[type[Exact], tuple[Decimal]]:
        return Exact, (self.digits,)

    def __repr__(self) -> str:
        return str(self.digits)


def is_double(value: Decimal) -> bool:
    """Whether these are the shortest digits of a double, so that the double stands for them."""
    return Decimal(repr(float(value))) == value


class Kind(Enum):
    """What a value is; only values of one kind compare."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    LIST = "list"


_NORMAL = frozenset((type(None), bool, str, int, float))
"""Types of values that are normal as they are."""
_ORDERED = frozenset(((str, str), (int, int), (int, float), (float, int), (float, float)))
"""Types of values that Python orders as filters do, but for NaN."""


def kind_of(value: Value) -> Kind:
    """The kind of a normalised value."""
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, (int, float)):
        return Kind.NUMBER
    if isinstance(value, str):
        return Kind.STRING
    if isinstance(value, datetime):
        return Kind.TIMESTAMP
    return Kind.LIST


def normalise(value: Any) -> Value | None:
    """A value as the algebra knows it, or None where it is missing. Raises TypeError for what has no kind."""
    if type(value) in _NORMAL:
        return value  # type: ignore[no-any-return]
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return value if isinstance(value, Exact) else float(value)
        case datetime():
            if value != value:  # pandas' NaT, which has no time at all
                return None
            if value.tzinfo is None:
                return value.replace(tzinfo=UTC, fold=0)
            return value.astimezone(UTC).replace(fold=0)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case Decimal():
            return exact(value) if value.is_finite() else float(value)
        case list() | tuple():
            return _normalise_list(value, 1)
    return _normalise_numpy(value)


def _normalise_numpy(value: Any) -> Value | None:
    """NumPy's scalars and arrays, told by their methods; a datetime64 of any unit is floored to the microsecond."""
    dtype, to_list = getattr(value, "dtype", None), getattr(value, "tolist", None)
    if dtype is not None and callable(to_list):
        plain = value.astype("datetime64[us]").tolist() if dtype.kind == "M" else to_list()
        if type(plain) is not type(value):
            return normalise(plain)
    if type(value).__name__ == "NAType":  # pandas' missing value of any type
        return None
    raise TypeError(f"a {type(value).__name__} is not a value that filters compare")


def _normalise_list(values: Sequence[Any], depth: int) -> tuple[Element, ...]:
    if depth > DEEPEST_LIST:
        raise TypeError(f"lists are nested more than {DEEPEST_LIST} deep")
    return tuple(
        _normalise_list(value, depth + 1)
        if isinstance(value, (list, tuple))
        else value
        if isinstance(value, Mapping)
        else normalise(value)
        for value in values
    )


def is_scalar(element: Element) -> TypeGuard[Scalar]:
    """Whether an element of a list is a value that compares, neither missing nor a record nor a list."""
    return element is not None and not isinstance(element, (tuple, Mapping))


def exact(value: Decimal) -> int | float:
    """A finite decimal as the algebra knows it."""
    return int(value) if value == value.to_integral_value() else Exact(value)


def _digits(value: Scalar) -> tuple[int, Any]:
    """A number by its digits, for comparing it with a decimal: a double stands for the shortest ones that give it."""
    if isinstance(value, Exact):
        return (0, value.digits)
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        return (0, Decimal(repr(value)))
    return order_key(value)


def order_key(value: Scalar) -> tuple[int, Any]:
    """A key whose order is the order of values of one kind; NaN sorts above everything."""
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value)


def compare(left: Scalar, right: Scalar) -> int | None:
    """-1, 0 or 1 as left is below, equal to or above right; None where the kinds differ."""
    if (type(left), type(right)) in _ORDERED and left == left and right == right:
        return (left > right) - (left < right)  # type: ignore[operator]
    if kind_of(left) is not kind_of(right):
        return None
    if isinstance(left, Exact) or isinstance(right, Exact):
        a, b = _digits(left), _digits(right)
        return -1 if a < b else int(a > b)
    a, b = order_key(left), order_key(right)
    return -1 if a < b else int(a > b)


def microseconds(instant: datetime) -> int:
    """Microseconds since 1970 of a normalised timestamp."""
    return (instant - EPOCH) // _MICROSECOND


def instant(microseconds_since_epoch: int) -> datetime:
    """The timestamp at that many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=microseconds_since_epoch)
