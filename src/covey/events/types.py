"""The types that a schema gives to attributes: their kind, what they accept, and which Arrow types they stand for.

To add a type: a class with these members, and a line in `_TYPES`. `coerce` changes a value only where the change is
exact; it raises ValueError with the reason, and the schema adds the attribute's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

import numpy as np
import pyarrow as pa

from covey.errors import SchemaError
from covey.events.pieces import Piece
from covey.filters.values import Kind, Scalar, Value, is_scalar, kind_of, normalise

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SPECIAL_DOUBLES = {"nan": "nan", "infinity": "inf", "-infinity": "-inf", "inf": "inf", "-inf": "-inf"}
_ISO = "ISO 8601, such as 2024-01-31T12:00:00Z"


class AttributeType(Protocol):
    """What a schema knows of an attribute's values."""

    @property
    def name(self) -> str:
        """As schemas write it."""

    @property
    def kind(self) -> Kind:
        """What its values compare with."""

    def coerce(self, value: Value) -> Value:
        """A normalised value as this type has it; ValueError where that would change what it means."""

    def parse(self, text: str) -> Value | None:
        """A value from plain text, as XML has it; None where the text says that there is none."""

    def fits(self, piece: Piece) -> bool:
        """Whether the values of a piece compare as this type's without being coerced one by one."""

    def stands_for(self, arrow: pa.DataType) -> bool:
        """Whether this is the type to infer for an Arrow type."""


class IntType:
    """Whole numbers of any size."""

    name = "int"
    kind = Kind.NUMBER

    def coerce(self, value: Value) -> Value:
        """Doubles with a whole value become ints."""
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise ValueError("expected int")

    def parse(self, text: str) -> Value | None:
        """Digits."""
        return _parsed_number(text, self)

    def fits(self, piece: Piece) -> bool:
        """Doubles fit where all are whole: numbers compare by value."""
        if piece.type == "double":
            return bool(np.all(np.isfinite(piece.values) & (piece.values == np.floor(piece.values))))
        return piece.type in ("int", "bigint")

    def stands_for(self, arrow: pa.DataType) -> bool:
        """Integers of every width, and decimals without a fraction."""
        return bool(pa.types.is_integer(arrow) or (pa.types.is_decimal(arrow) and arrow.scale <= 0))


class DoubleType:
    """Numbers. An int that no double equals stays an int, since numbers compare exactly."""

    name = "double"
    kind = Kind.NUMBER

    def coerce(self, value: Value) -> Value:
        """Ints become doubles where that is exact."""
        if isinstance(value, float):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            try:
                near = float(value)
            except OverflowError:
                return value
            return near if near == value else value
        raise ValueError("expected double")

    def parse(self, text: str) -> Value | None:
        """A number as JSON writes it, or NaN, Infinity, -Infinity."""
        special = _SPECIAL_DOUBLES.get(text.lower())
        return float(special) if special is not None else _parsed_number(text, self)

    def fits(self, piece: Piece) -> bool:
        """Every number."""
        return piece.type in ("double", "int", "bigint")

    def stands_for(self, arrow: pa.DataType) -> bool:
        """Floats of every width, and decimals with a fraction."""
        return bool(pa.types.is_floating(arrow) or (pa.types.is_decimal(arrow) and arrow.scale > 0))


class StringType:
    """Text."""

    name = "string"
    kind = Kind.STRING

    def coerce(self, value: Value) -> Value:
        """Only strings."""
        if isinstance(value, str):
            return value
        raise ValueError("expected string")

    def parse(self, text: str) -> Value | None:
        """The text itself, the empty one included."""
        return text

    def fits(self, piece: Piece) -> bool:
        """Strings."""
        return piece.type == "string"

    def stands_for(self, arrow: pa.DataType) -> bool:
        """Strings of every layout."""
        types = pa.types
        return bool(types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow))


class BooleanType:
    """True and false."""

    name = "boolean"
    kind = Kind.BOOLEAN

    def coerce(self, value: Value) -> Value:
        """Only booleans; 0 and 1 are numbers."""
        if isinstance(value, bool):
            return value
        raise ValueError("expected boolean")

    def parse(self, text: str) -> Value | None:
        """`true` or `false`."""
        if text in ("true", "false"):
            return text == "true"
        if text:
            raise ValueError("expected boolean (true or false)")
        return None

    def fits(self, piece: Piece) -> bool:
        """Booleans."""
        return piece.type == "boolean"

    def stands_for(self, arrow: pa.DataType) -> bool:
        """Booleans."""
        return bool(pa.types.is_boolean(arrow))


class TimestampType:
    """Instants, to the microsecond."""

    name = "timestamp"
    kind = Kind.TIMESTAMP

    def coerce(self, value: Value) -> Value:
        """Strings in ISO 8601 become instants; without a zone they are UTC, digits below microseconds are cut."""
        if isinstance(value, datetime):
            return value
        if not isinstance(value, str):
            raise ValueError(f"expected timestamp ({_ISO})")
        try:
            instant = normalise(datetime.fromisoformat(value))
        except (ValueError, OverflowError):
            raise ValueError(f"expected timestamp ({_ISO})") from None
        assert isinstance(instant, datetime)
        return instant

    def parse(self, text: str) -> Value | None:
        """ISO 8601."""
        return self.coerce(text) if text else None

    def fits(self, piece: Piece) -> bool:
        """Timestamps."""
        return piece.type == "timestamp"

    def stands_for(self, arrow: pa.DataType) -> bool:
        """Timestamps of every unit, and dates."""
        return bool(pa.types.is_timestamp(arrow) or pa.types.is_date(arrow))


class ListType:
    """Lists whose elements are of one type; an element may be missing."""

    kind = Kind.LIST

    def __init__(self, element: AttributeType) -> None:
        self.element = element
        self.name = f"list<{element.name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def coerce(self, value: Value) -> Value:
        """Each element is coerced."""
        if not isinstance(value, tuple):
            raise ValueError(f"expected {self.name}")
        try:
            if not all(element is None or is_scalar(element) for element in value):
                raise ValueError
            elements = [self.element.coerce(element) if is_scalar(element) else None for element in value]
        except ValueError:
            raise ValueError(f"expected {self.name}") from None
        return tuple(_scalar(element) for element in elements)

    def parse(self, text: str) -> Value | None:
        """A list of one."""
        element = self.element.parse(text)
        return None if element is None else (_scalar(element),)

    def fits(self, piece: Piece) -> bool:  # noqa: ARG002
        """Lists are looked at one by one."""
        return False

    def stands_for(self, arrow: pa.DataType) -> bool:
        """Lists of every layout."""
        types = pa.types
        listed = types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow)
        return bool(listed and self.element.stands_for(arrow.value_type))


def _scalar(value: Value | None) -> Scalar | None:
    assert not isinstance(value, tuple)
    return value


def _parsed_number(text: str, kind: AttributeType) -> Value | None:
    number = number_by_form(text)
    if number is None and text:
        raise ValueError(f"expected {kind.name}")
    return None if number is None else kind.coerce(number)


def number_by_form(text: str) -> int | float | None:
    """The number that the text writes in JSON's grammar (no leading zeros or plus), or None. ValueError where it has
    more digits than Python turns into an int."""
    form = _NUMBER.fullmatch(text)
    if form is None:
        return None
    return int(text) if form.group(1) is None and form.group(2) is None else float(text)


_TYPES: tuple[AttributeType, ...] = (IntType(), DoubleType(), StringType(), BooleanType(), TimestampType())
_BY_NAME: dict[str, AttributeType] = {kind.name: kind for kind in _TYPES}
_BY_NAME.update({f"list<{kind.name}>": ListType(kind) for kind in _TYPES})


def type_named(name: str) -> AttributeType:
    """The type that schemas write with this name, or an error that lists the names."""
    found = _BY_NAME.get(name)
    if found is None:
        plain = ", ".join(kind.name for kind in _TYPES)
        raise SchemaError(f"{name!r} is not a type; use one of {plain}, or list<...> of one of them")
    return found


def type_of_arrow(arrow: pa.DataType) -> AttributeType | None:
    """The type for values of an Arrow type; None where there is none."""
    if pa.types.is_dictionary(arrow):
        return type_of_arrow(arrow.value_type)
    return next((kind for kind in _BY_NAME.values() if kind.stands_for(arrow)), None)


def type_of_value(value: Value) -> AttributeType | None:
    """The type that one normalised value suggests; None for a list whose elements suggest none or several."""
    if isinstance(value, tuple):
        inner: AttributeType | None = None
        for element in value:
            if isinstance(element, (Mapping, tuple)):
                return None
            found = None if element is None else type_of_value(element)
            inner = found if inner is None else (inner if found is None else common_type(inner, found))
            if inner is None and found is not None:
                return None
        return None if inner is None else type_named(f"list<{inner.name}>")
    if isinstance(value, float):
        return type_named("double")
    return next(kind for kind in _TYPES if kind.kind is kind_of(value))


def common_type(left: AttributeType, right: AttributeType) -> AttributeType | None:
    """The type that both have, double for int and double; None where they don't go together."""
    if left == right:
        return left
    if left.kind is Kind.NUMBER and right.kind is Kind.NUMBER:
        return type_named("double")
    if isinstance(left, ListType) and isinstance(right, ListType):
        inner = common_type(left.element, right.element)
        return None if inner is None else type_named(f"list<{inner.name}>")
    return None
