"""Functions that other dialects mean by their operators and that SQL has no word for, as functions of terms.

`cesql_…` are those of CloudEvents SQL 1.0, which casts every operand: values are strings, booleans and integers of 32
bits, and what CloudEvents SQL calls an error makes the value missing. A filter of this dialect prints with them, so
that it can be read again as SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
_TRUTHS: Final = {"true": True, "false": False}


def to_string(value: Any) -> str:
    """STRING: timestamps as RFC 3339 has them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return str(to_integer(value))


def to_integer(value: Any) -> int:
    """INTEGER: a whole number, a truth, or a text that is a whole number."""
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise ValueError(f"{value!r} is not an integer")
        return _bounded(int(value))
    if isinstance(value, (bool, int)):
        return _bounded(int(value))
    if isinstance(value, (float, Decimal)) and value == value // 1:
        return _bounded(int(value))
    raise ValueError(f"{value!r} is not an integer")


def to_boolean(value: Any) -> bool:
    """BOOLEAN: 0 is false and all other integers are true; texts are `true` and `false`, whatever their case."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        found = _TRUTHS.get(value.lower())
        if found is None:
            raise ValueError(f"{value!r} is not a boolean")
        return found
    return to_integer(value) != 0


def cast_like(value: Any, model: Any) -> tuple[Any, Any]:
    """A value cast to the type of another, and that other."""
    if isinstance(model, bool):
        return to_boolean(value), model
    if isinstance(model, (int, float, Decimal)):
        return to_integer(value), to_integer(model)
    return to_string(value), to_string(model)


def equal(left: Any, right: Any) -> bool:
    """`=`: the left side is cast to the right one's type."""
    cast, model = cast_like(left, right)
    return bool(cast == model)


def is_in(value: Any, *members: Any) -> bool:
    """`IN`: members are cast to the value's type, one by one until one is equal."""
    return any(cast == model for cast, model in (cast_like(member, value) for member in members))


def _bounded(value: int) -> int:
    if not _LOWEST <= value <= _HIGHEST:
        raise OverflowError(f"{value} has more than 32 bits")
    return value


def _operation(compute: Callable[[int, int], int]) -> Callable[[Any, Any], int]:
    return lambda left, right: _bounded(compute(to_integer(left), to_integer(right)))


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _truncated(left, right)


def _text(compute: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda value: compute(to_string(value))


def _concat_ws(delimiter: Any, *values: Any) -> str:
    return to_string(delimiter).join(map(to_string, values))


def _side(value: Any, length: Any, *, last: bool) -> str:
    text, count = to_string(value), to_integer(length)
    if count < 0:
        raise ValueError("a length is not negative")
    return text[max(len(text) - count, 0) :] if last else text[:count]


def _substring(value: Any, start: Any, length: Any = None) -> str:
    text, position = to_string(value), to_integer(start)
    count = len(text) if length is None else to_integer(length)
    if abs(position) > len(text) or count < 0:
        raise ValueError("a substring begins within its text")
    if position == 0:
        return ""
    first = position - 1 if position > 0 else len(text) + position
    return text[first : first + count]


CESQL: Final[tuple[tuple[str, int, int | None, Callable[..., Any], str], ...]] = (
    ("cesql_string", 1, 1, to_string, "string"),
    ("cesql_int", 1, 1, to_integer, "number"),
    ("cesql_bool", 1, 1, to_boolean, "boolean"),
    ("cesql_equal", 2, 2, equal, "boolean"),
    ("cesql_in", 2, None, is_in, "boolean"),
    ("cesql_add", 2, 2, _operation(lambda left, right: left + right), "number"),
    ("cesql_subtract", 2, 2, _operation(lambda left, right: left - right), "number"),
    ("cesql_multiply", 2, 2, _operation(lambda left, right: left * right), "number"),
    ("cesql_divide", 2, 2, _operation(_truncated), "number"),
    ("cesql_remainder", 2, 2, _operation(_remainder), "number"),
    ("cesql_negative", 1, 1, lambda value: _bounded(-to_integer(value)), "number"),
    ("cesql_abs", 1, 1, lambda value: _bounded(abs(to_integer(value))), "number"),
    ("cesql_length", 1, 1, _text(len), "number"),
    ("cesql_lower", 1, 1, _text(str.lower), "string"),
    ("cesql_upper", 1, 1, _text(str.upper), "string"),
    ("cesql_trim", 1, 1, _text(str.strip), "string"),
    ("cesql_concat", 1, None, lambda *values: "".join(map(to_string, values)), "string"),
    ("cesql_concat_ws", 1, None, _concat_ws, "string"),
    ("cesql_left", 2, 2, lambda value, length: _side(value, length, last=False), "string"),
    ("cesql_right", 2, 2, lambda value, length: _side(value, length, last=True), "string"),
    ("cesql_substring", 2, 3, _substring, "string"),
)
"""Name, fewest and most arguments, what it computes, and the kind of what it gives."""
