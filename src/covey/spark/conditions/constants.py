"""The constants of rules, as values of Spark's types, and as what covey compares.

A constant is read here where its value is beyond doubt: integers, plain fractions, texts without escapes, booleans. All
others (dates and timestamps, which know the session's zone, suffixed numbers, casts, arithmetic on constants) are
evaluated by Spark, many at once. So are texts that meet another type: the analyser would cast them, so Spark does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    NullType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from covey.errors import FilterError
from covey.spark.conditions import syntax
from covey.spark.conditions.analysis import converted, values_of

Kind = Literal[
    "null", "integer", "decimal", "float", "string", "boolean", "date", "timestamp", "timestamp_ntz", "other"
]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400_000_000
_FIRST: Final = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Value:
    """A constant: what kind of Spark's types it is of, and its value as covey has it."""

    kind: Kind
    value: int | float | Decimal | str | bool | datetime | None = None


NULL: Final = Value("null")
OTHER: Final = Value("other")
"""A constant of a type that covey doesn't compare; Spark does."""


class Constants:
    """Constants by the node that they are written as, and texts cast to other types; evaluated in bulk."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._values: dict[str, Value | FilterError] = {}
        self._cast: dict[tuple[str, str], Value | None] = {}
        self._wanted: dict[tuple[str, str], None] = {}

    def evaluate(self, nodes: Iterable[syntax.Node]) -> None:
        """Have Spark evaluate what isn't known."""
        texts = dict.fromkeys(node.sql() for node in nodes if _local(node) is None)
        texts = dict.fromkeys(text for text in texts if text not in self._values)
        if not texts:
            return
        for text, found in values_of(self._spark, texts).items():
            self._values[text] = found if isinstance(found, FilterError) else _value(*found)

    def value(self, node: syntax.Node) -> Value:
        """A constant's value; one that Spark can't evaluate is an error."""
        known = _local(node)
        if known is None:
            self.evaluate([node])
            found = self._values[node.sql()]
            if isinstance(found, FilterError):
                raise found
            known = found
        return known

    def known(self, node: syntax.Node) -> Value | None:
        """The value of what was evaluated and didn't fail."""
        found = self._values.get(node.sql())
        return None if isinstance(found, FilterError) else found

    def cast(self, text: str, kind: str) -> Value:
        """A text as a value of another type. Where it isn't known yet it is only noted, for `convert`."""
        key = (text, kind)
        if key not in self._cast:
            self._wanted[key] = None
            return NULL
        found = self._cast[key]
        if found is None:
            raise FilterError(f"{text!r} can't be read as {kind}, which it is compared with")
        return found

    def convert(self) -> bool:
        """Have Spark cast what was noted; whether there was anything."""
        by_kind: dict[str, list[str]] = {}
        for text, kind in self._wanted:
            by_kind.setdefault(kind, []).append(text)
        for kind, texts in by_kind.items():
            for text, scalar in zip(texts, converted(self._spark, kind, texts), strict=True):
                self._cast[text, kind] = _of_scalar(scalar) if scalar.is_valid else None
        self._wanted = {}
        return bool(by_kind)


def _local(node: syntax.Node) -> Value | None:
    """A constant whose value is beyond doubt."""
    if not isinstance(node, syntax.Literal) or node.kind == "other":
        return None
    return Value(node.kind, node.value)


def _value(kind: DataType, scalar: pa.Scalar) -> Value:
    if isinstance(kind, NullType) or not scalar.is_valid:
        return NULL
    known = (IntegralType, DecimalType, FloatType, DoubleType, StringType, BooleanType, DateType, TimestampType,
             TimestampNTZType)  # fmt: skip
    if not isinstance(kind, known) or (isinstance(kind, StringType) and kind.collation != "UTF8_BINARY"):
        return OTHER
    return _of_scalar(scalar)


def _of_scalar(scalar: Any) -> Value:
    kind = scalar.type
    if pa.types.is_date(kind):
        return _instant("date", scalar.value * _DAY)
    if pa.types.is_timestamp(kind):
        return _instant("timestamp" if kind.tz is not None else "timestamp_ntz", scalar.value)
    value = scalar.as_py()
    if isinstance(value, bool):
        return Value("boolean", value)
    if isinstance(value, int):
        return Value("integer", value)
    if isinstance(value, float):
        return Value("float", value)
    if isinstance(value, Decimal):
        return Value("decimal", value)
    return Value("string", value) if isinstance(value, str) else OTHER


def _instant(kind: Kind, microseconds: int) -> Value:
    if not _FIRST <= microseconds <= _LAST:
        return OTHER
    return Value(kind, _EPOCH + timedelta(microseconds=microseconds))
