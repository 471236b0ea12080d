"""`CAST` inside terms: the types there are, and what each makes of a value. What can't be cast is missing (None)."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from covey.filters.arithmetic import decimal_of, whole
from covey.filters.times import parse_date, parse_timestamp
from covey.filters.values import EPOCH, Exact, Kind

_WHOLE_TEXT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NUMBER_TEXT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_NOT_FINITE: Final = {
    "inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf,
    "-inf": -math.inf, "-infinity": -math.inf, "nan": math.nan,
}  # fmt: skip
_TRUE: Final = frozenset({"t", "true", "y", "yes", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "0"})
_LONGEST_NUMBER: Final = 400
_SPACE: Final = "".join(map(chr, range(33))) + "\x7f"
"""What Spark trims around the text of a number, boolean or time."""


@dataclass(frozen=True, slots=True)
class CastType:
    """A type that terms can be cast to; precision and scale are those of DECIMAL."""

    word: str
    precision: int = 0
    scale: int = 0

    @property
    def name(self) -> str:
        """As SQL writes it."""
        return f"{self.word}({self.precision},{self.scale})" if self.word == "DECIMAL" else self.word

    @property
    def kind(self) -> Kind:
        """The kind of its values."""
        return _KINDS.get(self.word, Kind.NUMBER)


_KINDS: Final = {
    "BOOLEAN": Kind.BOOLEAN, "STRING": Kind.STRING, "DATE": Kind.TIMESTAMP, "TIMESTAMP": Kind.TIMESTAMP,
}  # fmt: skip
_BITS: Final = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
TYPE_WORDS: Final = {
    **{word: word for word in (*_BITS, "FLOAT", "DOUBLE", "DECIMAL", *_KINDS)},
    "BYTE": "TINYINT", "SHORT": "SMALLINT", "INTEGER": "INT", "LONG": "BIGINT", "REAL": "FLOAT", "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL", "TIMESTAMP_LTZ": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP",
}  # fmt: skip
"""What each name of a type means."""


def cast_value(value: Any, type: CastType) -> Any:
    """The value as one of that type; None where it is missing or can't be."""
    if value is None or isinstance(value, (tuple, timedelta)):
        return None
    try:
        return _CASTS[type.word](value, type)
    except (ArithmeticError, ValueError):
        return None


def _to_whole(value: Any, type: CastType) -> int:
    if isinstance(value, str):
        text = value.strip(_SPACE)
        if len(text) > _LONGEST_NUMBER or not _WHOLE_TEXT.fullmatch(text):
            raise ValueError("not a whole number")
        found = int(text)
    elif isinstance(value, datetime):
        found = (value - EPOCH) // timedelta(seconds=1)
    elif isinstance(value, date):
        raise ValueError("a date is not a number")
    else:
        found = int(value)  # towards zero; OverflowError of infinity, ValueError of NaN
    bound = 1 << (_BITS[type.word] - 1)
    if not -bound <= found < bound:
        raise OverflowError("the integer doesn't fit its type")
    return found


def _to_double(value: Any, _type: CastType | None = None) -> float:
    if isinstance(value, str):
        text = value.strip(_SPACE).lower()
        if text in _NOT_FINITE:
            return _NOT_FINITE[text]
        digits = text[:-1] if text[-1:] in ("d", "f") else text
        if len(digits) > _LONGEST_NUMBER or not _NUMBER_TEXT.fullmatch(digits):
            raise ValueError("not a number")
        return float(digits)
    if isinstance(value, datetime):
        return ((value - EPOCH) // timedelta(microseconds=1)) / 1_000_000
    if isinstance(value, date):
        raise ValueError("a date is not a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _to_float(value: Any, type: CastType) -> float:
    number = _to_double(value, type)
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _to_decimal(value: Any, type: CastType) -> Decimal:
    if isinstance(value, str):
        text = value.strip(_SPACE)
        if len(text) > _LONGEST_NUMBER or not _NUMBER_TEXT.fullmatch(text):
            raise ValueError("not a number")
        exact = Decimal(text)
        if abs(exact.adjusted()) > _LONGEST_NUMBER:
            raise OverflowError("the number is too large")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError("not a finite number")
        exact = value.digits if isinstance(value, Exact) else Decimal(repr(value))
    elif isinstance(value, datetime):
        exact = Decimal((value - EPOCH) // timedelta(microseconds=1)).scaleb(-6)
    elif isinstance(value, date):
        raise ValueError("a date is not a number")
    else:
        exact = Decimal(value)
    return decimal_of(exact, type.precision, type.scale)


def _to_boolean(value: Any, _type: CastType) -> bool:
    if isinstance(value, str):
        word = value.strip(_SPACE).lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise ValueError("not a boolean")
    if isinstance(value, date):
        raise ValueError("a time is not a boolean")
    return bool(value != 0)


def text_of(value: Any) -> str:
    """A value as text, as Spark casts it to STRING."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _double_text(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            shown = value.replace(tzinfo=None).isoformat(sep=" ")
            return shown.rstrip("0") if "." in shown else shown
        case date():
            return value.isoformat()
    return str(value)


def _double_text(value: float) -> str:
    """As Java writes a double."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def _to_string(value: Any, _type: CastType) -> str:
    return text_of(value)


def _to_date(value: Any, _type: CastType) -> date:
    if isinstance(value, str):
        return parse_date(value.strip(_SPACE))
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    raise ValueError("not a date")


def _to_timestamp(value: Any, _type: CastType) -> datetime:
    if isinstance(value, str):
        return parse_timestamp(value.strip(_SPACE))
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, bool):
        raise ValueError("a boolean is not a time")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a time")
    return EPOCH + timedelta(microseconds=whole(int(value * 1_000_000)))


_CASTS: Final[dict[str, Callable[[Any, CastType], Any]]] = {
    **dict.fromkeys(_BITS, _to_whole),
    "DOUBLE": _to_double, "FLOAT": _to_float, "DECIMAL": _to_decimal, "BOOLEAN": _to_boolean, "STRING": _to_string,
    "DATE": _to_date, "TIMESTAMP": _to_timestamp,
}  # fmt: skip
