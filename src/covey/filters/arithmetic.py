"""Arithmetic inside terms, as Spark SQL has it with ANSI on; where Spark fails, an ArithmeticError or ValueError.

Whole numbers are BIGINT, so what leaves 64 bits overflows; a whole number that doesn't fit them is a DECIMAL, which is
what Spark would have it in. Whole numbers and decimals go together as decimals, anything with a double as doubles. A
decimal's precision is that of its digits; the precision and scale of results are Spark's.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any, Final, TypeAlias

Number: TypeAlias = int | float | Decimal

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
_PRECISION: Final = 38
_BIGINT: Final = (20, 0)
_WIDE: Final = Context(prec=100, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)


def whole(value: int) -> int:
    """A BIGINT; OverflowError where it doesn't fit."""
    if not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError("the integer doesn't fit 64 bits")
    return value


def _pair(left: Any, right: Any) -> tuple[Any, Any]:
    """Two numbers of one type."""
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    if isinstance(left, int) and isinstance(right, int) and _fits(left) and _fits(right):
        return left, right
    return Decimal(left), Decimal(right)


def _fits(value: int) -> bool:
    return INT64_MIN <= value <= INT64_MAX


def _type(value: Number) -> tuple[int, int]:
    """Precision and scale."""
    if isinstance(value, int) and _fits(value):
        return _BIGINT
    _, digits, exponent = Decimal(value).as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return max(len(digits) + max(0, exponent), scale), scale


def decimal_of(value: Decimal, precision: int, scale: int) -> Decimal:
    """A decimal of this precision and scale; OverflowError where it doesn't fit."""
    with localcontext(_WIDE):
        rounded = value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)
    if rounded and rounded.adjusted() >= precision - scale:
        raise OverflowError("the decimal doesn't fit its precision")
    return rounded


def _decimal(value: Decimal, precision: int, scale: int) -> Decimal:
    """A result of this type, with precision cut to 38 digits as Spark cuts it."""
    if precision > _PRECISION:
        digits = precision - scale
        scale = max(_PRECISION - digits, min(scale, 6))
        precision = _PRECISION
    return decimal_of(value, precision, scale)


def add(left: Any, right: Any) -> Any:
    """`+` of numbers, times and intervals."""
    if isinstance(left, timedelta):
        left, right = right, left
    if isinstance(right, timedelta):
        return later(left, right)
    if isinstance(left, date) or isinstance(right, date):
        day, days = (left, right) if isinstance(left, date) else (right, left)
        return _day_later(day, days)
    a, b = _pair(left, right)
    if isinstance(a, int):
        return whole(a + b)
    return _added(a, b, left, right) if isinstance(a, Decimal) else a + b


def subtract(left: Any, right: Any) -> Any:
    """`-` of numbers, times and intervals."""
    if isinstance(right, timedelta):
        return later(left, -right)
    if isinstance(left, date):
        if isinstance(right, date):
            return _instant(left) - _instant(right)
        return _day_later(left, -right if _is_number(right) else right)
    if isinstance(right, date) or isinstance(left, timedelta):
        raise ValueError("a time is subtracted only from a time")
    a, b = _pair(left, right)
    if isinstance(a, int):
        return whole(a - b)
    return _added(a, b.copy_negate(), left, right) if isinstance(a, Decimal) else a - b


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _added(a: Decimal, b: Decimal, left: Number, right: Number) -> Decimal:
    (p1, s1), (p2, s2) = _type(left), _type(right)
    scale = max(s1, s2)
    with localcontext(_WIDE):
        result = a + b
    return _decimal(result, max(p1 - s1, p2 - s2) + scale + 1, scale)


def _instant(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)


def later(moment: Any, interval: timedelta) -> Any:
    """A time so much later, or the sum of two intervals. A date plus whole days stays a date."""
    if isinstance(moment, timedelta):
        return moment + interval
    if isinstance(moment, datetime):
        return moment + interval
    if isinstance(moment, date):
        return moment + interval if not interval % timedelta(days=1) else _instant(moment) + interval
    raise ValueError("an interval is added only to a time")


def _day_later(day: Any, days: Any) -> date:
    if isinstance(day, datetime) or isinstance(days, bool) or not isinstance(days, int):
        raise ValueError("days are whole numbers that are added to a date")
    return day + timedelta(days=days)  # type: ignore[no-any-return]


def multiply(left: Number, right: Number) -> Number:
    """`*`."""
    a, b = _pair(left, right)
    if isinstance(a, int):
        return whole(a * b)
    if isinstance(a, float):
        return a * b  # type: ignore[no-any-return]
    (p1, s1), (p2, s2) = _type(left), _type(right)
    with localcontext(_WIDE):
        return _decimal(a * b, p1 + p2 + 1, s1 + s2)


def divide(left: Number, right: Number) -> Number:
    """`/`: of whole numbers a double."""
    if right == 0:
        raise ZeroDivisionError
    a, b = _pair(left, right)
    if not isinstance(a, Decimal):
        return float(a) / float(b)
    (p1, s1), (p2, s2) = _type(left), _type(right)
    scale = max(6, s1 + p2 + 1)
    with localcontext(_WIDE):
        return _decimal(a / b, p1 - s1 + s2 + scale, scale)


def quotient(left: Number, right: Number) -> int:
    """`div`: whole, towards zero; of doubles there is none."""
    a, b = _pair(left, right)
    if isinstance(a, float):
        raise ValueError("div takes whole numbers and decimals")
    if b == 0:
        raise ZeroDivisionError
    if isinstance(a, Decimal):
        with localcontext(_WIDE):
            return whole(int(a / b))
    return whole(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def remainder(left: Number, right: Number) -> Number:
    """`%`, with the sign of the left side."""
    a, b = _pair(left, right)
    if b == 0:
        raise ZeroDivisionError
    if isinstance(a, float):
        return math.fmod(a, b) if math.isfinite(a) else math.nan
    if isinstance(a, Decimal):
        with localcontext(_WIDE):
            return a % Decimal(b)
    return (1 if a >= 0 else -1) * int(abs(a) % abs(b))


def negative(value: Any) -> Any:
    """Unary minus."""
    if isinstance(value, Decimal):
        return value.copy_negate()  # minus alone would round
    return whole(-value) if isinstance(value, int) and _fits(value) else -value


def absolute(value: Number) -> Number:
    """`abs`."""
    if isinstance(value, float):
        return math.fabs(value)
    return value.copy_abs() if isinstance(value, Decimal) else whole(abs(value)) if _fits(value) else abs(value)


def rounded(value: Number, places: int = 0) -> Number:
    """`round`, half away from zero; of a double by its shortest digits."""
    if isinstance(value, float):
        if not math.isfinite(value) or places > 400:
            return value
        return float(_round(Decimal(repr(value)), places)) if places >= -400 else 0.0 * value
    if isinstance(value, int):
        return value if places >= 0 else whole(int(_round(Decimal(value), places))) if places > -400 else 0
    _, scale = _type(value)
    return _round(value, min(places, scale)) if abs(places) <= _PRECISION else value if places > 0 else Decimal(0)


def _round(value: Decimal, places: int) -> Decimal:
    context = Context(prec=800, rounding=ROUND_HALF_UP, Emin=-999_999, Emax=999_999)
    return value.quantize(Decimal(1).scaleb(-places), context=context)


def floor(value: Number) -> Number:
    """The whole number below."""
    return _whole_near(value, ROUND_FLOOR)


def ceil(value: Number) -> Number:
    """The whole number above."""
    return _whole_near(value, ROUND_CEILING)


def _whole_near(value: Number, rounding: str) -> Number:
    if isinstance(value, float):
        if math.isnan(value):
            return 0  # as the JVM turns a double into a long
        if math.isinf(value):
            return INT64_MAX if value > 0 else INT64_MIN
        near = math.floor(value) if rounding == ROUND_FLOOR else math.ceil(value)
        return max(INT64_MIN, min(INT64_MAX, near))
    return value if isinstance(value, int) else value.to_integral_value(rounding=rounding)


def sign(value: Number) -> Number:
    """-1.0, 0.0 or 1.0; of NaN itself."""
    number = float(value)
    return number if number == 0 or math.isnan(number) else math.copysign(1.0, number)


def power(base: Number, exponent: Number) -> float:
    """`power`, as Java's: no complex numbers, infinity where it overflows."""
    x, y = float(base), float(exponent)
    try:
        return (
            math.pow(x, y) if not (abs(x) == 1.0 and math.isinf(y)) and not (x == 1.0 and math.isnan(y)) else math.nan
        )
    except OverflowError:
        return math.copysign(math.inf, x) if x < 0 and y % 2 == 1 else math.inf
    except ValueError:  # 0 to a negative power is infinite, a fraction's power of a negative number isn't a number
        odd = y.is_integer() and y % 2 == 1
        return math.nan if x else math.copysign(math.inf, x) if odd else math.inf


def square_root(value: Number) -> float:
    """`sqrt`; of a negative number NaN."""
    number = float(value)
    return math.nan if number < 0 or math.isnan(number) else math.sqrt(number)
