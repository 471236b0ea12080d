"""Values that attributes and constants can have, and how they compare.

Five kinds: number (int and float together), string, boolean, timestamp, list. Values of different kinds don't
compare. Numbers compare by value, exactly: Python's own comparison of int and float doesn't round. NaN follows
Spark SQL: equal to itself and greater than every other number; -0.0 equals 0.0. Strings compare by code point,
which is the order of their UTF-8 bytes. Timestamps are instants; a datetime without a zone is read as UTC.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeAlias

Scalar: TypeAlias = bool | int | float | str | datetime
Value: TypeAlias = Scalar | tuple["Scalar | None", ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Kind(Enum):
    """What a value is; only values of one kind compare."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    LIST = "list"


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
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case datetime():
            if value.tzinfo is None:
                return value.replace(tzinfo=UTC, fold=0)
            return value.astimezone(UTC).replace(fold=0)
        case date():
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        case Decimal():
            return int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
        case list() | tuple():
            return tuple(_normalise_element(element) for element in value)
    return _normalise_numpy(value)


def _normalise_numpy(value: Any) -> Value | None:
    """NumPy's scalars and arrays, told by their methods; a datetime64 of any unit is floored to the microsecond."""
    dtype, to_list = getattr(value, "dtype", None), getattr(value, "tolist", None)
    if dtype is not None and callable(to_list):
        plain = value.astype("datetime64[us]").tolist() if dtype.kind == "M" else to_list()
        if type(plain) is not type(value):
            return normalise(plain)
    raise TypeError(f"a {type(value).__name__} is not a value that filters compare")


def _normalise_element(element: Any) -> Scalar | None:
    value = normalise(element)
    if isinstance(value, tuple):
        raise TypeError("a list inside a list is not a value that filters compare")
    return value


def order_key(value: Scalar) -> tuple[int, Any]:
    """A key whose order is the order of values of one kind; NaN sorts above everything."""
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value)


def compare(left: Scalar, right: Scalar) -> int | None:
    """-1, 0 or 1 as left is below, equal to or above right; None where the kinds differ."""
    if kind_of(left) is not kind_of(right):
        return None
    a, b = order_key(left), order_key(right)
    return -1 if a < b else int(a > b)


def microseconds(instant: datetime) -> int:
    """Microseconds since 1970 of a normalised timestamp."""
    return (instant - EPOCH) // _MICROSECOND


def instant(microseconds_since_epoch: int) -> datetime:
    """The timestamp at that many microseconds since 1970."""
    return EPOCH + timedelta(microseconds=microseconds_since_epoch)
