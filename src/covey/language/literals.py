"""Constants as SQL writes them: numbers with Spark's suffixes, strings with its escapes, dates, timestamps, casts.

Each reader takes the text and position of the literal, for the caret of its error.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Final

from covey.errors import FilterSyntaxError
from covey.filters.times import date, timestamp
from covey.filters.values import Scalar

_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))|''|\"\"",
    re.DOTALL,
)
_CHARACTERS: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_NUMERAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = {sign + word: float(sign + word) for sign in ("", "+", "-") for word in ("inf", "infinity", "nan")}


def unescaped(text: str, position: int, quoted: str) -> str:
    """The value of a quoted string: Spark's backslash escapes, and the doubled quote."""
    quote = quoted[0]

    def replacement(match: re.Match[str]) -> str:
        short, long, octal, character = match.groups()
        if short or long:
            return _code_point(text, position + 1 + match.start(), int(short or long, 16))
        if octal:
            return chr(int(octal, 8))
        if character is not None:
            return _CHARACTERS.get(character, character)
        return quote if match[0][0] == quote else match[0]

    value = _ESCAPE.sub(replacement, quoted[1:-1])
    if value.isascii():
        return value
    try:  # \uD83D\uDE00 is one character, as in Java
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise FilterSyntaxError("half of a surrogate pair is not a character", text, position) from None


def _code_point(text: str, position: int, code: int) -> str:
    if code > 0x10FFFF:
        raise FilterSyntaxError(f"\\U{code:08x} is not a character; the last is \\U0010ffff", text, position)
    return chr(code)


def number(text: str, position: int, literal: str) -> int | float | Decimal:
    """A number that is more than digits: a point, an exponent or one of Spark's suffixes. With a point and neither of
    the others it is a decimal, as in Spark, and keeps its digits."""
    upper = literal.upper()
    suffix = upper[-1]
    exact = upper[:-2] if upper.endswith("BD") else upper if suffix in "0123456789." and "E" not in upper else None
    if exact is not None:
        digits = Decimal(exact + "0" if suffix == "." else exact)
        if abs(digits.adjusted()) > 400 and digits:
            raise _too_large(text, position, literal)
        if suffix != "D" and math.isinf(float(digits)):
            raise _too_large(text, position, literal)
        return digits
    if suffix in "LSY":
        if not upper[:-1].isdigit():
            raise FilterSyntaxError(f"{literal} has the suffix of an integer, but is not one", text, position)
        return int(upper[:-1])
    value = float(upper.rstrip("DF"))
    if suffix == "F":
        value = single(value)
    if math.isinf(value):
        raise _too_large(text, position, literal)
    return value


def _too_large(text: str, position: int, literal: str) -> FilterSyntaxError:
    shown = literal if len(literal) <= 40 else literal[:40] + "…"
    return FilterSyntaxError(
        f"{shown} is outside the range of a double; infinity is double('Infinity')", text, position
    )


def single(value: float) -> float:
    """The nearest number of single precision, as Spark's FLOAT holds it."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _double(value: Scalar | Decimal) -> float:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _NOT_FINITE:
            return _NOT_FINITE[word]
        if len(word) <= 400 and _NUMERAL.fullmatch(word):
            return float(word)
    elif isinstance(value, (bool, int, float, Decimal)):
        return float(value)
    raise ValueError(f"{value!r} is not a number; strings such as '1.5', 'NaN' and '-Infinity' are")


def _integer(value: Scalar | Decimal) -> int:
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, (float, Decimal)) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and len(value) <= 400 and re.fullmatch(r"\s*[+-]?[0-9]+\s*", value, re.ASCII):
        return int(value)
    raise ValueError(f"{value!r} is not an integer")


def _boolean(value: Scalar) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(f"{value!r} is not TRUE or FALSE")


def _string(value: Scalar) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("write the string itself, in quotes")


def _time(reader: Callable[[str], datetime]) -> Callable[[Scalar], datetime]:
    def read(value: Scalar) -> datetime:
        if isinstance(value, str):
            return reader(value)
        if isinstance(value, datetime) and reader is timestamp:
            return value
        raise ValueError("write the date or time as a string, in quotes")

    return read


CASTS: Final[dict[str, Callable[[Scalar], Scalar]]] = {
    "DOUBLE": _double,
    "FLOAT": lambda value: single(_double(value)),
    "REAL": lambda value: single(_double(value)),
    **dict.fromkeys(("INT", "INTEGER", "BIGINT", "LONG", "SMALLINT", "SHORT", "TINYINT", "BYTE"), _integer),
    "BOOLEAN": _boolean,
    "STRING": _string,
    "DATE": _time(date),
    "TIMESTAMP": _time(timestamp),
    "TIMESTAMP_LTZ": _time(timestamp),
    "TIMESTAMP_NTZ": _time(timestamp),
}
"""Types that a constant can be cast to: `CAST('NaN' AS DOUBLE)`, `double('NaN')`, `TIMESTAMP '2024-01-31'`."""
