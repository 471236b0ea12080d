"""Which columns of a DataFrame hold the attributes that filters name, and whether covey can compare them.

An attribute `a.b` is looked for as `covey.events` does in Arrow: the column of just that name, then column `a` and in
it `b`, through structs by field and through maps with string keys by key; where one is null the next decides. Nearly
every attribute has one such place, and then only that leaf leaves the JVM, under its dotted name. Where there are
several, their whole columns go, and covey decides row by row.

Columns that no filter names are never looked at, so a table may have columns of any type. What a filter names must be a
number, a string, a boolean, a date or timestamp, or an array of these; all else is an error that names column and type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (as every user of Spark writes it)
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from covey.errors import CoveyError

Step = tuple[Literal["field", "key"], str]

_SCALARS = (NumericType, StringType, BooleanType, TimestampType, TimestampNTZType, DateType)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attribute may be: a column, and the way into it."""

    column: str
    steps: tuple[Step, ...]
    type: DataType

    @property
    def shown(self) -> str:
        """The place as a person would write it."""
        return ".".join([self.column, *(name for _, name in self.steps)])


def selection(schema: StructType, attributes: Iterable[str], case_sensitive: bool = False) -> list[tuple[str, Column]]:
    """(name, expression) of what must cross into Python for these attributes."""
    chosen: dict[str, Place] = {}
    for attribute in attributes:
        places = list(_places(schema, attribute))
        for place in places:
            _refuse(place, attribute)
            _refuse_ambiguous(schema, place, attribute, case_sensitive)
        if len(places) > 1:
            places = [Place(place.column, (), schema[place.column].dataType) for place in places]
        for place in places:
            name = attribute if len(places) == 1 else place.column
            if chosen.setdefault(name, place) != place:
                raise CoveyError(f"{name!r} is a column and an attribute inside another column; rename one of them")
    return [(name, _expression(place)) for name, place in chosen.items()]


def comparable(schema: StructType, case_sensitive: bool = False, prefix: str = "") -> list[str]:
    """Dotted names of all columns, and fields of structs, that filters can compare: a name that stands for two of them
    is none."""
    names: list[str] = []
    for field in schema.fields:
        kind = field.dataType
        if len(_namesakes(schema, field.name, case_sensitive)) > 1:
            continue
        inner = kind.elementType if isinstance(kind, ArrayType) else kind
        if isinstance(kind, StructType):
            names += comparable(kind, case_sensitive, f"{prefix}{field.name}.")
        elif isinstance(inner, _SCALARS):
            names.append(prefix + field.name)
    return names


def quoted(name: str) -> str:
    """A column's name in backquotes, so that its dots are no steps."""
    return "`" + name.replace("`", "``") + "`"


def unused_name(wanted: str, columns: Iterable[str]) -> str:
    """A name for a column of ours that none of these has, by itself the wanted one."""
    taken = {name.lower() for name in columns}
    while wanted.lower() in taken:
        wanted += "_"
    return wanted


def _expression(place: Place) -> Column:
    column = F.col(quoted(place.column))
    for kind, name in place.steps:
        column = column.getField(name) if kind == "field" else column.getItem(name)
    return column


def _places(schema: StructType, attribute: str) -> Iterator[Place]:
    for field, rest in _splits(schema, attribute):
        yield from _inside(Place(field.name, (), field.dataType), rest)


def _splits(schema: StructType, name: str) -> Iterator[tuple[StructField, str]]:
    """Fields that a dotted name may start with, and what follows the field's own name: the whole name first, then its
    shortest beginning."""
    fields = {field.name: field for field in schema.fields}
    if name in fields and not _is_record(fields[name].dataType):
        yield fields[name], ""
    dot = name.find(".")
    while dot >= 0:
        field = fields.get(name[:dot])
        if field is not None and _is_record(field.dataType):
            yield field, name[dot + 1 :]
        dot = name.find(".", dot + 1)


def _inside(place: Place, rest: str) -> Iterator[Place]:
    if not rest:
        if not isinstance(place.type, NullType):
            yield place
    elif isinstance(place.type, StructType):
        for field, more in _splits(place.type, rest):
            yield from _inside(Place(place.column, (*place.steps, ("field", field.name)), field.dataType), more)
    elif isinstance(place.type, MapType):
        for key, more in _keys(place.type.valueType, rest):
            yield from _inside(Place(place.column, (*place.steps, ("key", key)), place.type.valueType), more)


def _keys(values: DataType, name: str) -> Iterator[tuple[str, str]]:
    """A map may have any key: the whole name for values, and every beginning of it for records within."""
    if not _is_record(values):
        yield name, ""
        return
    dot = name.find(".")
    while dot >= 0:
        yield name[:dot], name[dot + 1 :]
        dot = name.find(".", dot + 1)


def _is_record(kind: DataType) -> bool:
    return isinstance(kind, StructType) or (isinstance(kind, MapType) and isinstance(kind.keyType, StringType))


def _refuse(place: Place, attribute: str) -> None:
    kind = place.type
    inner = kind.elementType if isinstance(kind, ArrayType) else kind
    if not isinstance(inner, (*_SCALARS, NullType)):
        raise CoveyError(
            f"column {place.shown!r} is of type {kind.simpleString()}, which filters can't compare, and some filter "
            f"names {attribute!r}; cast the column or drop it first"
        )


def _refuse_ambiguous(schema: StructType, place: Place, attribute: str, case_sensitive: bool) -> None:
    """Spark would not know which column or field is meant."""
    within: DataType = schema
    at = ""
    for kind, name in (("field", place.column), *place.steps):
        if isinstance(within, StructType):
            same = _namesakes(within, name, case_sensitive)
            if len(same) > 1:
                what = f"fields of {at!r}" if at else "columns"
                raise CoveyError(
                    f"the name {name!r} stands for {len(same)} {what} ({', '.join(same)}) and some filter names "
                    f"{attribute!r}; rename all but one"
                )
            within = within[name].dataType
        else:
            within = within.valueType if kind == "key" and isinstance(within, MapType) else within
        at = f"{at}.{name}" if at else name


def _namesakes(schema: StructType, name: str, case_sensitive: bool) -> list[str]:
    if case_sensitive:
        return [one for one in schema.names if one == name]
    return [one for one in schema.names if one.lower() == name.lower()]
