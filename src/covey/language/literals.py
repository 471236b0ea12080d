"""Constants as SQL writes them: numbers with Spark's suffixes, strings with its escapes, dates, timestamps, casts.

Each reader takes the text and position of the literal, for the caret of its error.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from covey.errors import FilterSyntaxError
from covey.filters.values import Scalar

_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))|''|\"\"",
    re.DOTALL,
)
_CHARACTERS: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_NUMERAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = {sign + word: float(sign + word) for sign in ("", "+", "-") for word in ("inf", "infinity", "nan")}
_DATE: Final = r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
_TIMESTAMP: Final = re.compile(
    _DATE + r"(?:[ T]\s*([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?\s*([A-Za-z+-].{0,40})?)?)?)?"
)
_DATE_ONLY: Final = re.compile(_DATE + r")?)?")
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_UTC: Final = frozenset({"Z", "UTC", "GMT", "UT"})


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


def number(text: str, position: int, literal: str) -> int | float:
    """A number that is more than digits: a point, an exponent or one of Spark's suffixes."""
    upper = literal.upper()
    if upper.endswith("BD"):
        exact = Decimal(upper[:-2])
        if abs(exact.adjusted()) > 400:
            raise _too_large(text, position, literal)
        return int(exact) if exact == exact.to_integral_value() else float(exact)
    suffix = upper[-1]
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


def timestamp(literal: str) -> datetime:
    """A timestamp's text; a ValueError that says what is wrong with it. Without a zone it is UTC."""
    match = _TIMESTAMP.fullmatch(literal.strip())
    if match is None:
        raise ValueError(f"{literal!r} is not a timestamp; write it as '2024-01-31 12:00:00', with a zone if not UTC")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        local = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            int(second or 0),
            int((fraction or "0").ljust(6, "0")[:6]),
            _zone(zone.strip()) if zone else UTC,
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{literal!r} is not a timestamp: {error}") from None


def date(literal: str) -> datetime:
    """A date's text as the timestamp of its midnight in UTC."""
    if _DATE_ONLY.fullmatch(literal.strip()) is None:
        raise ValueError(f"{literal!r} is not a date; write it as '2024-01-31', or use TIMESTAMP")
    return timestamp(literal)


def _zone(name: str) -> tzinfo:
    if name in _UTC:
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is not None:
        sign, hours, minutes, seconds = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        if offset > timedelta(hours=18):
            raise ValueError("a zone is at most 18 hours from UTC")
        return timezone(-offset if sign == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"the zone {name!r} is not known; write an offset such as +01:00") from None


def _double(value: Scalar) -> float:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _NOT_FINITE:
            return _NOT_FINITE[word]
        if len(word) <= 400 and _NUMERAL.fullmatch(word):
            return float(word)
    elif isinstance(value, (bool, int, float)):
        return float(value)
    raise ValueError(f"{value!r} is not a number; strings such as '1.5', 'NaN' and '-Infinity' are")


def _integer(value: Scalar) -> int:
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
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
