"""Tests of a term against constants as tests of covey's, where both answer the same.

What a comparison means in Spark follows from the types of both sides, which its analyser (in ANSI mode) brings to one:

    term \\ constant   integer            decimal          float, double      text             date, timestamp
    integer           exact              exact            as doubles         text as BIGINT   refused
    float, double     as doubles         as doubles       as doubles         text as DOUBLE   refused
    decimal           exact              exact            as doubles         as doubles       refused
    text              term as BIGINT     term as DOUBLE   term as DOUBLE     by code point    term as that type
    date, timestamp   refused            refused          refused            text as it       the wider of both

"as doubles" casts the term where it isn't one: the cast is a term of its own. Covey compares exactly, so a constant
that Spark would round is rounded first. Where covey can't promise Spark's answer (another collation, a decimal beyond
its digits, a mixture of types in one IN) there is no test, and Spark computes it. A session without ANSI mode casts
otherwise: only like with like is compared here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from covey.filters import UNKNOWN, And, ArrayContains, Compare, Contains, EndsWith, Filter, In, Like, StartsWith
from covey.filters.values import Scalar
from covey.spark.conditions import syntax
from covey.spark.conditions.constants import Constants, Value

_FLIPPED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXTS: Final = {"startswith": StartsWith, "endswith": EndsWith, "contains": Contains}
_EXACT_DOUBLE: Final = 2**53
_EXACT_DIGITS: Final = 34
"""Digits of an integer that compiled indexes tell from its neighbours."""
_DECIMAL_DIGITS: Final = 38
"""Digits of Spark's widest decimal: where two have more together, what is behind the point is rounded."""
_INTEGER_DIGITS: Final[Mapping[type[DataType], int]] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
"""The digits of the decimals that integers become beside a decimal."""
_INSTANTS: Final = {"date": DateType, "timestamp": TimestampType, "timestamp_ntz": TimestampNTZType}
_NUMBERS: Final = ("integer", "decimal", "float")

Pair = tuple[syntax.Node, Scalar]
"""The term that is compared, perhaps cast, and the constant that it is compared with."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """Tests over one table's columns."""

    type_of: Callable[[syntax.Node], DataType]
    constants: Constants
    attribute: Callable[[syntax.Node], str]
    ansi: bool
    char_length: Callable[[syntax.Node], int | None]
    is_constant: Callable[[syntax.Node], bool]

    def test(self, node: syntax.Node) -> Filter | None:
        """A test as one of covey's; None where Spark has to compute it."""
        match node:
            case syntax.Binary(operator, left, right) if operator in _FLIPPED:
                if self.is_constant(right):
                    return self._compared(left, operator, right)
                if self.is_constant(left):
                    return self._compared(right, _FLIPPED[operator], left)
            case syntax.InList(value, items) if all(map(self.is_constant, items)):
                return self._among(value, items)
            case syntax.BetweenTest(value, low, high) if self.is_constant(low) and self.is_constant(high):
                ends = self._compared(value, ">=", low), self._compared(value, "<=", high)
                return None if ends[0] is None or ends[1] is None else And((ends[0], ends[1]))
            case syntax.LikeTest() if self.is_constant(node.pattern):
                return self._like(node)
            case syntax.Call(name, (value, text)) if name in _TEXTS and self.is_constant(text):
                return self._text(name, value, text)
            case syntax.Call("array_contains", (value, wanted)) if self.is_constant(wanted):
                return self._contained(value, wanted)
            case syntax.Name() if isinstance(self.type_of(node), BooleanType):
                return Compare(self.attribute(node), "=", True)
        return None

    def _compared(self, term: syntax.Node, operator: str, constant: syntax.Node) -> Filter | None:
        if self.is_constant(term):
            return None
        value = self.constants.value(constant)
        if value.kind == "null":
            self.type_of(term)
            return UNKNOWN
        pair = self._pair(term, value)
        if pair is None:
            return None
        return Compare(self.attribute(pair[0]), operator, pair[1])  # type: ignore[arg-type]

    def _among(self, term: syntax.Node, items: Sequence[syntax.Node]) -> Filter | None:
        values = [self.constants.value(item) for item in items]
        given = [value for value in values if value.kind != "null"]
        if self.is_constant(term) or not given or len({value.kind for value in given}) > 1:
            return None
        pairs = [self._pair(term, value) for value in given]
        if any(pair is None or pair[0] != pairs[0][0] for pair in pairs if pairs[0] is not None):
            return None
        known = [pair for pair in pairs if pair is not None]
        if len(known) < len(given) or (len(given) < len(values) and self.char_length(term) is not None):
            return None  # beside a NULL Spark pads nothing
        null = (None,) if len(given) < len(values) else ()
        return In(self.attribute(known[0][0]), (*(value for _, value in known), *null))

    # Which comparison

    def _pair(self, term: syntax.Node, value: Value) -> Pair | None:
        kind = self.type_of(term)
        if not self.ansi and not _alike(kind, value):
            return None
        match kind:
            case IntegralType():
                return self._with_integer(term, kind, value)
            case FloatType() | DoubleType():
                return self._with_double(term, value)
            case DecimalType():
                return self._with_decimal(term, kind, value)
            case StringType():
                return self._with_text(term, kind, value)
            case BooleanType():
                if value.kind == "string":
                    value = self.constants.cast(str(value.value), "BOOLEAN")
                return (term, value.value) if isinstance(value.value, bool) else _pending(term, value)
            case DateType() | TimestampType() | TimestampNTZType():
                return self._with_instant(term, kind, value)
        return None

    def _with_integer(self, term: syntax.Node, kind: DataType, value: Value) -> Pair | None:
        if value.kind == "string":
            value = self.constants.cast(str(value.value), "BIGINT")
        match value.value:
            case bool():
                return None
            case int(number):
                return term, number
            case Decimal() as number:
                if _INTEGER_DIGITS[type(kind)] - int(number.as_tuple().exponent) > _DECIMAL_DIGITS:
                    return None  # Spark rounds the constant
                return _between_integers(term, number)
            case float(number):
                if not isinstance(kind, LongType) or not math.isfinite(number) or abs(number) < _EXACT_DOUBLE:
                    return term, number
                return _cast(term, "DOUBLE"), number
        return _pending(term, value)

    def _with_double(self, term: syntax.Node, value: Value) -> Pair | None:
        if value.kind == "string":
            value = self.constants.cast(str(value.value), "DOUBLE")
        if value.kind in _NUMBERS:
            return term, float(value.value)  # type: ignore[arg-type]
        return _pending(term, value)

    def _with_decimal(self, term: syntax.Node, kind: DecimalType, value: Value) -> Pair | None:
        if value.kind == "string":
            value = self.constants.cast(str(value.value), "DOUBLE")
        if value.kind == "float":
            return _cast(term, "DOUBLE"), float(value.value)  # type: ignore[arg-type]
        if value.kind not in ("integer", "decimal"):
            return _pending(term, value)
        number = Decimal(value.value)  # type: ignore[arg-type]
        whole = max(kind.precision - kind.scale, number.adjusted() + 1)
        scale = max(kind.scale, -int(number.as_tuple().exponent))
        if kind.scale or whole + scale > _EXACT_DIGITS:
            return None
        return _between_integers(term, number)

    def _with_text(self, term: syntax.Node, kind: StringType, value: Value) -> Pair | None:
        if value.kind == "string":
            return self._with_same_text(term, kind, str(value.value))
        if value.kind == "integer":
            return _cast(term, "BIGINT"), int(value.value)  # type: ignore[arg-type]
        if value.kind in _NUMBERS:
            return _cast(term, "DOUBLE"), float(value.value)  # type: ignore[arg-type]
        if value.kind == "boolean":
            return _cast(term, "BOOLEAN"), bool(value.value)
        return (_cast(term, value.kind.upper()), value.value) if value.kind in _INSTANTS else None  # type: ignore[return-value]

    def _with_same_text(self, term: syntax.Node, kind: StringType, text: str) -> Pair | None:
        length = self.char_length(term)
        if not is_plain_text(kind) or not self._is_sound(term) or (length is not None and len(text) > length):
            return None
        return term, text if length is None else text.ljust(length)

    def _is_sound(self, term: syntax.Node) -> bool:
        """Whether a text can be read by others: what was bytes may not be, and a column of it would end the job."""
        if isinstance(term, syntax.Name):
            return True
        lambdas = (syntax.Lambda, syntax.Variable, syntax.Word)
        parts = [one for one in syntax.inside(term) if not self.is_constant(one)]
        return not any(isinstance(one, lambdas) for one in parts) and not any(
            isinstance(self.type_of(one), BinaryType) for one in parts
        )

    def _with_instant(self, term: syntax.Node, kind: DataType, value: Value) -> Pair | None:
        own = next(name for name, known in _INSTANTS.items() if isinstance(kind, known))
        if value.kind == "string":
            value = self.constants.cast(str(value.value), own.upper())
        if value.kind not in _INSTANTS:
            return _pending(term, value)
        if value.kind == own:
            return term, value.value  # type: ignore[return-value]
        if isinstance(kind, DateType) or value.kind == "timestamp":
            return _cast(term, value.kind.upper()), value.value  # type: ignore[return-value]
        return None  # the constant would be cast, by the session's zone

    # Texts and lists

    def _like(self, node: syntax.LikeTest) -> Filter | None:
        pattern = self.constants.value(node.pattern)
        plain = is_plain_text(self.type_of(node.value)) and self._is_sound(node.value)
        if node.operator == "RLIKE" or not plain:
            return None
        if pattern.kind == "null":
            return UNKNOWN
        escape = self.constants.value(node.escape).value if node.escape is not None else "\\"
        if pattern.kind != "string" or not isinstance(escape, str):
            return None
        text = str(pattern.value)
        if node.operator == "ILIKE":
            if not text.isascii() or not escape.isascii():
                return None
            return Like(self.attribute(syntax.Call("lower", (node.value,))), text.lower(), escape.lower())
        return Like(self.attribute(node.value), text, escape)

    def _text(self, name: str, term: syntax.Node, constant: syntax.Node) -> Filter | None:
        value = self.constants.value(constant)
        if value.kind == "null":
            return UNKNOWN
        if value.kind != "string" or not is_plain_text(self.type_of(term)) or not self._is_sound(term):
            return None
        return _TEXTS[name](self.attribute(term), str(value.value))

    def _contained(self, term: syntax.Node, wanted: syntax.Node) -> Filter | None:
        kind, value = self.type_of(term), self.constants.value(wanted)
        if not isinstance(kind, ArrayType) or not isinstance(term, syntax.Name):
            return None
        inner = kind.elementType
        same = (isinstance(inner, IntegralType) and value.kind == "integer") or (
            is_plain_text(inner) and value.kind == "string"
        )
        return ArrayContains(self.attribute(term), value.value) if same else None  # type: ignore[arg-type]


def is_plain_text(kind: DataType) -> bool:
    """Text that is compared by code point."""
    return isinstance(kind, StringType) and kind.collation == "UTF8_BINARY"


def _cast(term: syntax.Node, kind: str) -> syntax.Node:
    return syntax.CastTo(term, kind)


def _pending(term: syntax.Node, value: Value) -> Pair | None:
    """A constant whose cast is asked for and not known yet; anything will do until it is."""
    return (term, 0) if value.kind == "null" else None


def _between_integers(term: syntax.Node, number: Decimal) -> Pair | None:
    """A fraction compared with integers: any other between the same two does as well, and one half is exact."""
    below = math.floor(number)
    if number == below:
        return (term, below) if len(str(abs(below))) <= _EXACT_DIGITS else None
    return (term, below + 0.5) if abs(below) < _EXACT_DOUBLE // 4 else None


def _alike(kind: DataType, value: Value) -> bool:
    """Whether term and constant are of one kind, so that nothing is cast."""
    if isinstance(kind, IntegralType):
        return value.kind == "integer"
    if isinstance(kind, (FloatType, DoubleType)):
        return value.kind in ("integer", "float")
    if isinstance(kind, StringType):
        return value.kind == "string"
    if isinstance(kind, BooleanType):
        return value.kind == "boolean"
    own = next((name for name, known in _INSTANTS.items() if isinstance(kind, known)), None)
    return own is not None and value.kind == own
