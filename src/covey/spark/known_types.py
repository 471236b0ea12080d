"""A table's columns as `covey.filters.fitting` knows types, for filters of dialects that have none.

Names are looked up as they are and then without case, as Spark does. What has no kind of covey's, or two columns whose
names differ only by case, is not known, so that nothing is left out of a filter for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from covey.filters.fitting import Known, Types
from covey.filters.values import Kind

_KINDS: tuple[tuple[type[DataType], Kind], ...] = (
    (NumericType, Kind.NUMBER),
    (StringType, Kind.STRING),
    (BooleanType, Kind.BOOLEAN),
    (TimestampType, Kind.TIMESTAMP),
    (TimestampNTZType, Kind.TIMESTAMP),
    (DateType, Kind.TIMESTAMP),
)


def known_types(schema: StructType) -> Types:
    """What a table's schema says of attributes."""
    exact: dict[str, Known | None] = {}
    folded: dict[str, list[Known | None]] = {}
    for name, kind in _leaves(schema, ""):
        known = _known(kind)
        exact[name] = None if name in exact else known
        folded.setdefault(name.lower(), []).append(known)

    def look_up(name: str) -> Known | None:
        if name in exact:
            return exact[name]
        found = folded.get(name.lower(), [])
        return found[0] if len(found) == 1 else None

    return look_up


def _leaves(schema: StructType, prefix: str) -> Iterator[tuple[str, DataType]]:
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            yield from _leaves(field.dataType, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, field.dataType


def _known(kind: DataType) -> Known | None:
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        return Known(Kind.LIST, fields=known_types(kind.elementType))
    if isinstance(kind, ArrayType):
        return Known(Kind.LIST, _known(kind.elementType))
    return next((Known(one) for type_, one in _KINDS if isinstance(kind, type_)), None)
