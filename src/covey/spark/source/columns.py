"""Events as rows of a schema, and rows as events.

A column has the value of the attribute of its name, dotted names included, as filters see it; `_origin` and `_number`
are the event's id. An event may lack any attribute, so every column is nullable. A value that doesn't fit its column is
NULL, or an error where the reader was told to fail: any publisher can send anything, and one event that nobody can read
should not stop a stream unless that is wanted.

A NULL is published as no attribute at all, which is what filters take it for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
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
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from covey.errors import CoveyError, EventError
from covey.events import Schema
from covey.events.types import type_named
from covey.events.xml import xml_event
from covey.filters.semantics import attribute_value
from covey.filters.values import normalise
from covey.spark.source.options import XmlDocuments
from covey.spark.source.spool import SpooledEvent

ORIGIN: Final = "_origin"
NUMBER: Final = "_number"
SHOWN: Final = 80
"""Characters of a document that an error shows."""

Fit = Callable[[Any], Any]
"""A value as a column has it; raises ValueError, TypeError or OverflowError where it doesn't fit."""

_BITS: Final = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}


class Rows:
    """Turns events into record batches of a schema."""

    def __init__(self, schema: StructType, *, fail_fast: bool) -> None:
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._fail_fast = fail_fast
        self._fits: list[tuple[str, Fit, bool]] = []
        for field in schema.fields:
            if not field.nullable:
                raise CoveyError(f"column {field.name!r} is NOT NULL, but events may lack anything; make it nullable")
            record = isinstance(field.dataType, StructType | MapType)
            self._fits.append((field.name, _fit(field.dataType, field.name), record))

    def batch(self, events: Sequence[SpooledEvent]) -> pa.RecordBatch:
        """Events as one record batch."""
        columns = [
            pa.array([self._value(event, name, fit, record) for event in events], type=field.type)
            for (name, fit, record), field in zip(self._fits, self._arrow, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow)

    def _value(self, event: SpooledEvent, name: str, fit: Fit, record: bool) -> Any:
        try:
            if name in (ORIGIN, NUMBER):
                origin, _, number = event.event.rpartition("/")
                return fit(origin if name == ORIGIN else int(number))
            value = event.attributes.get(name) if record else attribute_value(event.attributes, name)
            return None if value is None else fit(value)
        except (ValueError, TypeError, OverflowError) as error:
            if self._fail_fast:
                raise CoveyError(
                    f"event {event.event}: {name!r} doesn't fit its column ({error}); change the schema, or "
                    "option('mode', 'PERMISSIVE') for NULL"
                ) from None
            return None


def _fit(kind: DataType, column: str) -> Fit:
    if isinstance(kind, tuple(_BITS)):
        return _integer(_BITS[type(kind)])
    if isinstance(kind, DoubleType | FloatType):
        return lambda value: float(_coerced("double", value))
    if isinstance(kind, DecimalType):
        return _decimal(kind)
    if isinstance(kind, StringType):
        return lambda value: _coerced("string", value)
    if isinstance(kind, BooleanType):
        return lambda value: _coerced("boolean", value)
    if isinstance(kind, TimestampType):
        return lambda value: _coerced("timestamp", value)
    if isinstance(kind, TimestampNTZType):
        return lambda value: _coerced("timestamp", value).replace(tzinfo=None)
    if isinstance(kind, DateType):
        return lambda value: _coerced("timestamp", value).date()
    if isinstance(kind, ArrayType):
        element = _fit(kind.elementType, column)
        return lambda value: [None if item is None else element(item) for item in _listed(value)]
    if isinstance(kind, StructType):
        fields = [(field.name, _fit(field.dataType, column)) for field in kind.fields]
        return lambda value: {name: _inner(_record(value).get(name), fit) for name, fit in fields}
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        inner = _fit(kind.valueType, column)
        return lambda value: [(name, _inner(one, inner)) for name, one in _record(value).items()]
    raise CoveyError(f"column {column!r} is of type {kind.simpleString()}, which events don't have; leave it out")


def _inner(value: Any, fit: Fit) -> Any:
    return None if value is None else fit(value)


def _coerced(name: str, value: Any) -> Any:
    plain = normalise(value)
    assert plain is not None
    return type_named(name).coerce(plain)


def _integer(bits: int) -> Fit:
    least, above = -(1 << bits - 1), 1 << bits - 1

    def fit(value: Any) -> int:
        number: int = _coerced("int", value)
        if not least <= number < above:
            raise ValueError(f"{number} has more than {bits} bits")
        return number

    return fit


def _decimal(kind: DecimalType) -> Fit:
    from decimal import Context, Decimal

    context = Context(prec=kind.precision)

    def fit(value: Any) -> Decimal:
        try:
            return Decimal(str(_coerced("double", value))).quantize(Decimal(1).scaleb(-kind.scale), context=context)
        except ArithmeticError:
            raise ValueError(f"{value} is no {kind.simpleString()}") from None

    return fit


def _listed(value: Any) -> Sequence[Any]:
    if isinstance(value, list | tuple):
        return value
    raise TypeError("expected a list")


def _record(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise TypeError("expected a record")


def check_published(schema: StructType) -> None:
    """Raises CoveyError for a column that an event can't have."""
    for field in schema.fields:
        _fit(field.dataType, field.name)


def check_documents(schema: StructType, xml: XmlDocuments) -> None:
    """Raises CoveyError where rows aren't documents of XML alone: what else they had would go nowhere."""
    names = [field.name for field in schema.fields]
    if xml.column not in names:
        raise CoveyError(f"option xml is {xml.column!r}, and there is no such column; there is {', '.join(names)}")
    if len(names) > 1:
        others = ", ".join(name for name in names if name != xml.column)
        raise CoveyError(f"with option xml the documents are the events: select {xml.column} alone, without {others}")
    if not isinstance(schema.fields[0].dataType, StringType | BinaryType):
        kind = schema.fields[0].dataType.simpleString()
        raise CoveyError(f"option xml is {xml.column!r}, of type {kind}; documents are string or binary")


def documents_of(batches: Iterator[pa.RecordBatch], xml: XmlDocuments) -> Iterator[dict[str, Any]]:
    """Documents of XML as events; one that isn't simple is an error that says why."""
    schema = None if xml.schema is None else Schema.from_json(xml.schema)
    for batch in batches:
        for text in batch.column(0).to_pylist():
            if text is None:
                raise CoveyError(f"a row without a document in {xml.column!r}; leave such rows out")
            try:
                yield xml_event(text, schema)
            except EventError as error:
                shown = text.decode(errors="replace") if isinstance(text, bytes) else text
                raise CoveyError(f"{error} (in {xml.column!r}: {shown[:SHOWN]!r})") from None


def events_of(batches: Iterator[pa.RecordBatch], schema: StructType) -> Iterator[dict[str, Any]]:
    """Rows as events."""
    kinds = [(field.name, field.dataType) for field in schema.fields]
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield {
                name: _attribute(value, kind) for (name, kind), value in zip(kinds, row, strict=True)
                if value is not None
            }  # fmt: skip


def _attribute(value: Any, kind: DataType) -> Any:
    if isinstance(kind, StructType):
        fields = ((field.name, field.dataType, value.get(field.name)) for field in kind.fields)
        return {name: _attribute(one, inner) for name, inner, one in fields if one is not None}
    if isinstance(kind, MapType):
        return {name: _attribute(one, kind.valueType) for name, one in value if one is not None}
    if isinstance(kind, ArrayType):
        return [None if item is None else _attribute(item, kind.elementType) for item in value]
    return normalise(value)
