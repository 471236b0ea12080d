"""Constants converted to an attribute's type, as Spark's analyser converts them with ANSI on.

A string that is compared with a number, a boolean or a timestamp is read as one: `day < '2000-01-01'`, `amount = '5'`.
Where the attribute is the string, the attribute is cast: `code = 5` tests `CAST(code AS BIGINT)`, and a text that is no
number makes the test unknown. A constant that can't be converted is an error: it would never match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from covey.errors import FilterTypeError
from covey.events.types import AttributeType, ListType
from covey.filters.casting import CastType, cast_value
from covey.filters.predicates import ArrayContains, Between, Compare, In, Predicate
from covey.filters.terms import Path, cast
from covey.filters.values import Kind, Scalar, kind_of

_TYPES: Final = {"int": "BIGINT", "double": "DOUBLE", "boolean": "BOOLEAN", "timestamp": "TIMESTAMP"}


def converted(test: Predicate, kind: AttributeType) -> Predicate:
    """The test with its constants as the attribute's type has them, or on the attribute as their type has it; the same
    where nothing is to be converted. FilterTypeError where a constant can't be."""
    constants = _constants(test)
    element = kind.element if isinstance(kind, ListType) else None
    wanted = (element or kind).kind
    if all(value is None or kind_of(value) is wanted for value in constants):
        return test
    if isinstance(test, ArrayContains):
        return ArrayContains(test.attribute, _read(test, test.value, element)) if element is not None else test
    if element is not None:
        return test
    if wanted is Kind.STRING:
        return _rebuilt(test, cast(Path(test.attribute), CastType(_type_of(constants))), constants)
    return _rebuilt(test, test.attribute, [_read(test, value, kind) for value in constants])


def _constants(test: Predicate) -> Sequence[Scalar | None]:
    match test:
        case Compare(_, _, value) | ArrayContains(_, value):
            return (value,)
        case Between(_, low, high):
            return (low, high)
        case In(_, values):
            return values
    return ()


def _type_of(constants: Sequence[Scalar | None]) -> str:
    """What Spark casts a string to that meets constants of this kind."""
    kinds = {kind_of(value) for value in constants if value is not None}
    if Kind.NUMBER in kinds:
        return "DOUBLE" if any(isinstance(value, float) for value in constants) else "BIGINT"
    return "BOOLEAN" if Kind.BOOLEAN in kinds else "TIMESTAMP"


def _read(test: Predicate, value: Scalar | None, kind: AttributeType) -> Scalar | None:
    """A string as a value of the type; what isn't a string stays, to be refused."""
    if not isinstance(value, str) or kind.name not in _TYPES:
        return value
    found: Scalar | None = cast_value(value, CastType(_TYPES[kind.name]))
    if found is None:
        shown = repr(value) if len(value) <= 60 else repr(value[:59] + "…")
        raise FilterTypeError(
            f"{test.attribute!r} is {kind.name}, but is compared with the string {shown}, which can't be read as one"
        )
    return found


def _rebuilt(test: Predicate, subject: Any, constants: Sequence[Scalar | None]) -> Predicate:
    match test:
        case Compare(_, operator, _):
            return Compare(subject, operator, constants[0])
        case Between():
            return Between(subject, *constants)
    return In(subject, tuple(constants))
