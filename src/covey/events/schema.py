"""Schemas: which attributes events have, of which types, which are mandatory, their defaults, and types with subtypes.

A schema is optional and open: attributes that it doesn't name pass through as they are. What it does name, it holds:
`decode` checks and coerces whole events, `columns` and `row` coerce the attributes that they are asked for, and
`check` refuses a filter that could never be true of the schema's values.

Types of events form a forest (`subtypes` maps child to parent). A type inherits its ancestors' mandatory attributes,
and a subscription to a type is one to all its subtypes: `check` rewrites `type = 'Quote'` to IN over the type and
what is below it. Only equality is rewritten; LIKE, < and so on on the type attribute are about its text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from covey.errors import EventError, SchemaError
from covey.events.checking import Checker
from covey.events.columns import Source, columns
from covey.events.pieces import (
    Piece,
    all_rows,
    column_values,
    defined_rows,
    fall_back,
    normal_value,
    pieces_of_values,
    python_values,
)
from covey.events.records import dots, flatten
from covey.events.types import AttributeType, ListType, common_type, type_named, type_of_arrow, type_of_value
from covey.filters.algebra import Filter
from covey.filters.fitting import Known, fitted
from covey.filters.values import Kind, Scalar, Value, kind_of, normalise


class Undefined(Enum):
    """The type of UNDEFINED."""

    UNDEFINED = "undefined"

    def __repr__(self) -> str:
        return "UNDEFINED"


UNDEFINED: Final = Undefined.UNDEFINED
"""The default of an attribute that has none: it stays missing, so that its existence can be tested."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """What a schema says of one attribute."""

    type: str
    mandatory: bool = False
    """Every event must define it. A default doesn't stand in for it: defaults are for `semantics="default"`."""
    default: Scalar | Undefined = UNDEFINED
    """What `semantics="default"` takes for the attribute where an event doesn't define it."""


class Schema:
    """The attributes and event types that a stream of events has."""

    __slots__ = (
        "_ancestors", "_below", "_checker", "_types", "attributes", "mandatory_by_type", "required_by", "subtypes",
        "type_attribute",
    )  # fmt: skip

    attributes: Mapping[str, Attribute]
    type_attribute: str | None
    subtypes: Mapping[str, str]
    mandatory_by_type: Mapping[str, tuple[str, ...]]
    required_by: Mapping[str, tuple[str, ...]]
    """For attributes that not every event must define: the event types, subtypes included, whose events must."""

    def __init__(
        self,
        attributes: Mapping[str, Attribute | str],
        *,
        type_attribute: str | None = None,
        subtypes: Mapping[str, str] | None = None,
        mandatory_by_type: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        given = {name: Attribute(one) if isinstance(one, str) else one for name, one in attributes.items()}
        if type_attribute is not None:
            given.setdefault(type_attribute, Attribute("string"))
        self._types: dict[str, AttributeType] = {}
        for name, attribute in given.items():
            try:
                self._types[name] = type_named(attribute.type)
            except SchemaError as error:
                raise SchemaError(f"attribute {name!r}: {error}") from None
        self.attributes = {name: self._with_default(name, attribute) for name, attribute in given.items()}
        self.type_attribute = type_attribute
        self.subtypes = dict(subtypes or {})
        self.mandatory_by_type = {kind: tuple(names) for kind, names in (mandatory_by_type or {}).items()}
        self._refuse_contradictions()
        self._ancestors = {kind: tuple(self._chain(kind)) for kind in self._event_types()}
        self._below: dict[str, tuple[str, ...]] = {
            kind: tuple(sorted(one for one, chain in self._ancestors.items() if kind in chain and one != kind))
            for kind in self._ancestors
        }
        self._checker = Checker(self._types, type_attribute, self._below)
        always = {*self.mandatory(), type_attribute}
        required: dict[str, list[str]] = {}
        for kind in self._ancestors:
            for name in self.mandatory(kind):
                if name not in always:
                    required.setdefault(name, []).append(kind)
        self.required_by = {name: tuple(kinds) for name, kinds in required.items()}

    def _with_default(self, name: str, attribute: Attribute) -> Attribute:
        if attribute.default is UNDEFINED:
            return attribute
        try:
            default = normalise(attribute.default)
            if default is None:
                raise ValueError("leave it UNDEFINED instead")
            default = self._types[name].coerce(default)
        except (TypeError, ValueError) as error:
            raise SchemaError(f"attribute {name!r}: default {attribute.default!r}: {error}") from None
        if isinstance(default, tuple):
            raise SchemaError(f"attribute {name!r}: a list can't have a default; leave it UNDEFINED")
        return Attribute(attribute.type, attribute.mandatory, default)

    def _refuse_contradictions(self) -> None:
        for name in self.attributes:
            above = next((name[:place] for place in dots(name) if name[:place] in self.attributes), None)
            if above is not None:
                raise SchemaError(
                    f"attribute {above!r} has a value of its own and {name!r} within it; name one of them"
                )
        if self.type_attribute is None:
            if self.subtypes or self.mandatory_by_type:
                raise SchemaError("subtypes and mandatory_by_type need type_attribute, the attribute with the type")
        elif self.attributes[self.type_attribute].type != "string":
            kind = self.attributes[self.type_attribute].type
            raise SchemaError(f"type attribute {self.type_attribute!r} must be string, not {kind}")

    def _event_types(self) -> list[str]:
        return sorted({*self.subtypes, *self.subtypes.values(), *self.mandatory_by_type})

    def _chain(self, kind: str) -> Iterator[str]:
        """The type and its ancestors, itself first."""
        seen: list[str] = []
        above: str | None = kind
        while above is not None:
            if above in seen:
                raise SchemaError(f"subtypes go round in a circle: {' -> '.join([*seen, above])}")
            seen.append(above)
            yield above
            above = self.subtypes.get(above)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._json() == other._json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"Schema.from_json({self.to_json()!r})"

    @property
    def defaults(self) -> dict[str, Scalar]:
        """The defaults, as `matches(..., semantics="default")` takes them."""
        return {
            name: attribute.default
            for name, attribute in self.attributes.items()
            if not isinstance(attribute.default, Undefined)
        }

    def type_of(self, name: str) -> AttributeType | None:
        """The type of an attribute; None where the schema doesn't name it."""
        return self._types.get(name)

    def types_below(self, event_type: str) -> tuple[str, ...]:
        """All subtypes of an event type, near and far, in order of name."""
        return self._below.get(event_type, ())

    def mandatory(self, event_type: str | None = None) -> tuple[str, ...]:
        """The attributes that every event of a type must define: the schema's, the type's and its ancestors'."""
        names = dict.fromkeys(name for name, attribute in self.attributes.items() if attribute.mandatory)
        for kind in self._ancestors.get(event_type, (event_type,)) if event_type is not None else ():
            names.update(dict.fromkeys(self.mandatory_by_type.get(kind, ())))
        return tuple(names)

    def coerce(self, name: str, value: Value) -> Value:
        """A normalised value as the attribute's type has it; an EventError where it isn't one."""
        kind = self._types.get(name)
        if kind is None:
            return value
        try:
            return kind.coerce(value)
        except ValueError as error:
            raise EventError(f"attribute {name!r}: {_short(value)} is a {_called(value)}; {error}") from None

    def coerce_pieces(self, name: str, pieces: tuple[Piece, ...], length: int) -> tuple[Piece, ...]:
        """The pieces of a column as the attribute's type has them; an EventError names the first row that isn't."""
        kind = self._types.get(name)
        if kind is None:
            return pieces
        fitting = tuple(piece for piece in pieces if kind.fits(piece))
        if len(fitting) == len(pieces):
            return pieces
        column: list[Value | None] = [None] * length
        for piece in pieces:
            if not kind.fits(piece):
                self._coerce_rows(name, piece, column)
        return fall_back(fitting, pieces_of_values(column, name), length)

    def _coerce_rows(self, name: str, piece: Piece, column: list[Value | None]) -> None:
        """Each distinct string is coerced once; a column of dates as text repeats few."""
        known: dict[Value, Value] = {}
        for row, value in zip(all_rows(piece, len(column)).tolist(), python_values(piece), strict=True):
            if piece.type == "string" and value in known:
                column[row] = known[value]
                continue
            try:
                column[row] = known[value] = self.coerce(name, value)
            except EventError as error:
                raise EventError(f"row {row}: {error}") from None

    def decode(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The event with flat dotted names, its named attributes checked and coerced.

        Attributes that the schema doesn't name pass through as they are; those without a value are left out.
        """
        flat: dict[str, Any] = {}
        values, records = flatten(event)
        for name, given in values.items():
            if name in self._types:
                value = normal_value(given, name)
                if value is not None:
                    flat[name] = self.coerce(name, value)
            else:
                flat[name] = given
        for name in records:
            if name in self._types and name not in flat:
                raise EventError(f"attribute {name!r} is a record; expected {self.attributes[name].type}")
        event_type = flat.get(self.type_attribute) if self.type_attribute is not None else None
        for name in self.mandatory(event_type):
            if name not in flat:
                whose = f" of a {event_type}" if event_type is not None else ""
                raise EventError(f"attribute {name!r}{whose} is mandatory and missing")
        return flat

    def missing_mandatory(self, batch: Source) -> Iterator[tuple[int, str]]:
        """(row, attribute) for the mandatory attributes that events of a batch lack."""
        kinds: list[str | None] = [None]
        wanted = set(self.mandatory())
        for kind in self._event_types() if self.type_attribute is not None else ():
            kinds.append(kind)
            wanted.update(self.mandatory(kind))
        if not wanted:
            return
        names = [*wanted, self.type_attribute] if self.type_attribute is not None else [*wanted]
        found = columns(batch, names)
        defined = {name: defined_rows(found.pieces[name], found.length) for name in names}
        of_kind = np.full(found.length, None, dtype=object)
        if self.type_attribute is not None:
            of_kind[:] = column_values(found.pieces[self.type_attribute], found.length)
        for one in kinds:
            concerned = np.ones(found.length, dtype=bool) if one is None else of_kind == one
            for name in self.mandatory(one):
                for row in np.flatnonzero(concerned & ~defined[name]):
                    yield int(row), name

    def check(self, condition: Filter) -> Filter:
        """The filter as this schema reads it: subtypes included, FilterTypeError where types contradict."""
        return self._checker.check(condition)

    def fit(self, condition: Filter) -> Filter:
        """A filter of a dialect without types, with tests left out that no value of an attribute's type can meet."""
        return fitted(condition, self._known)

    def _known(self, name: str) -> Known | None:
        kind = self._types.get(name)
        return None if kind is None else _known_of(kind)

    def read(self, condition: Filter) -> Filter:
        """As `check`, but nothing is refused: what contradicts a type is never met."""
        return self._checker.read(condition)

    def widen(self, condition: Filter) -> Filter:
        """The filter with subtypes included, whatever its constants; one that contradicts a type is never met."""
        return self._checker.widen(condition)

    @classmethod
    def infer(cls, source: pa.Schema | pa.Table | pa.RecordBatch | Iterable[Mapping[str, Any]]) -> Schema:
        """A schema of what an Arrow schema says or the events have. Attributes of mixed kinds are left out."""
        if isinstance(source, (pa.Table, pa.RecordBatch)):
            source = source.schema
        if isinstance(source, pa.Schema):
            return cls({name: kind.name for name, kind in _arrow_types(source, "")})
        found: dict[str, AttributeType | None] = {}
        for event in source:
            for name, given in flatten(event)[0].items():
                if not _says_nothing(given):
                    kind = _type_of(given)
                    known = found.get(name, kind)
                    found[name] = None if known is None or kind is None else common_type(known, kind)
        named = {name: kind.name for name, kind in found.items() if kind is not None}
        return cls({name: kind for name, kind in named.items() if not any(name[:dot] in found for dot in dots(name))})

    def to_json(self) -> str:
        """The schema as JSON text."""
        return json.dumps(self._json(), ensure_ascii=False)

    def _json(self) -> dict[str, Any]:
        attributes: dict[str, dict[str, Any]] = {}
        for name, attribute in self.attributes.items():
            attributes[name] = {"type": attribute.type}
            if attribute.mandatory:
                attributes[name]["mandatory"] = True
            if attribute.default is not UNDEFINED:
                default = attribute.default
                attributes[name]["default"] = default.isoformat() if isinstance(default, datetime) else default
        shape: dict[str, Any] = {"attributes": attributes}
        if self.type_attribute is not None:
            shape["type_attribute"] = self.type_attribute
            shape["subtypes"] = dict(self.subtypes)
            shape["mandatory_by_type"] = {kind: list(names) for kind, names in self.mandatory_by_type.items()}
        return shape

    @classmethod
    def from_json(cls, text: str | bytes) -> Schema:
        """The schema that `to_json` wrote, or a plain one of types by attribute: `{"ts": "timestamp"}`."""
        try:
            shape = json.loads(text)
            if not shape:
                raise ValueError("it names no attribute")
            if not isinstance(shape.get("attributes"), dict):
                return cls({name: _attribute_of(one) for name, one in shape.items()})
            attributes = {name: _attribute_of(one) for name, one in shape["attributes"].items()}
            rest = {key: value for key, value in shape.items() if key != "attributes"}
            return cls(attributes, **rest)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SchemaError(f"not a schema in JSON ({type(error).__name__}: {error}); see Schema.to_json") from None


AnySchema: TypeAlias = "Schema | Mapping[str, Attribute | str] | str | os.PathLike[str]"
"""What `as_schema` takes."""


def as_schema(given: AnySchema | None) -> Schema | None:
    """A schema from what people have: itself, types by attribute, JSON, or the path of a file with that."""
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, Mapping):
        return Schema(given)
    if not isinstance(given, (str, os.PathLike)):
        kind = type(given).__name__
        raise SchemaError(f"a schema is a Schema, a mapping of types, its JSON or a file's path, not {kind}")
    if isinstance(given, str) and given.lstrip().startswith("{"):
        return Schema.from_json(given)
    try:
        return Schema.from_json(Path(given).read_bytes())
    except SchemaError as error:
        raise SchemaError(f"{given}: {error}") from None


def _known_of(kind: AttributeType) -> Known:
    return Known(Kind.LIST, _known_of(kind.element)) if isinstance(kind, ListType) else Known(kind.kind)


def _attribute_of(shape: Any) -> Attribute | str:
    return shape if isinstance(shape, str) else Attribute(**shape)


def _called(value: Value) -> str:
    """What a value of that kind is called in an error."""
    return "double" if isinstance(value, float) else kind_of(value).value


def _short(value: Value) -> str:
    text = value.isoformat() if isinstance(value, datetime) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _says_nothing(given: Any) -> bool:
    """A list without elements that have a value could be of any type."""
    return isinstance(given, (list, tuple)) and all(element is None for element in given)


def _type_of(given: Any) -> AttributeType | None:
    try:
        value = normalise(given)
    except TypeError:
        return None
    return None if value is None else type_of_value(value)


def _arrow_types(fields: Iterable[pa.Field], prefix: str) -> Iterator[tuple[str, AttributeType]]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _arrow_types(field.type.fields, f"{prefix}{field.name}.")
            continue
        kind = type_of_arrow(field.type)
        if kind is not None:
            yield prefix + field.name, kind
