"""A filter held against a schema: constants of a kind that the attribute can't have are refused, and a test on the
event's type is widened to its subtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from covey.errors import FilterTypeError
from covey.events.types import AttributeType, ListType
from covey.filters.algebra import And, Constant, Filter, Is, Not, Or, all_of, any_of
from covey.filters.predicates import (
    ArrayContains,
    Between,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Like,
    Predicate,
    RLike,
    StartsWith,
    SubstringOf,
)
from covey.filters.values import Kind, Scalar, kind_of

_TEXT_TESTS = (Like, RLike, StartsWith, EndsWith, Contains, SubstringOf)
_AS_WRITTEN = {
    Kind.NUMBER: "a number without quotes, such as 42",
    Kind.STRING: "a string in quotes, such as 'text'",
    Kind.BOOLEAN: "TRUE or FALSE",
    Kind.TIMESTAMP: "a timestamp, such as TIMESTAMP '2024-01-31 12:00:00'",
}


@dataclass(frozen=True, slots=True)
class Checker:
    """What of a schema a filter is held against."""

    types: Mapping[str, AttributeType]
    type_attribute: str | None
    below: Mapping[str, tuple[str, ...]]

    def check(self, condition: Filter) -> Filter:
        """The same filter with the type tests widened; FilterTypeError where a predicate contradicts a type."""
        match condition:
            case And(parts):
                return all_of(map(self.check, parts))
            case Or(parts):
                return any_of(map(self.check, parts))
            case Not(part):
                return Not(self.check(part))
            case Is(part, wanted):
                return Is(self.check(part), wanted)
            case Predicate():
                kind = self.types.get(condition.attribute)
                if kind is not None:
                    _refuse(condition, kind)
                return self._widened(condition) if condition.attribute == self.type_attribute else condition
            case Constant():
                return condition
        raise TypeError(f"{type(condition).__name__} is not a filter")

    def _widened(self, test: Predicate) -> Filter:
        """Equality with a type as membership in it. Never equal becomes NOT IN, so both stay each other's negation;
        null-safe equality becomes IS TRUE, so it stays two-valued."""
        match test:
            case Compare(name, "=" | "!=" | "<=>" as operator, str(value)) if self.below.get(value):
                among = In(name, self._with_subtypes([value]))
                return among if operator == "=" else Not(among) if operator == "!=" else Is(among, True)
            case In(name, values):
                return In(name, self._with_subtypes(values))
        return test

    def _with_subtypes(self, values: Iterable[Scalar | None]) -> tuple[Scalar | None, ...]:
        wide: dict[Scalar | None, None] = {}
        for value in values:
            wide[value] = None
            if isinstance(value, str):
                wide.update(dict.fromkeys(self.below.get(value, ())))
        return tuple(wide)


def _refuse(test: Predicate, kind: AttributeType) -> None:
    name = test.attribute
    if isinstance(test, IsNull):
        return
    if isinstance(test, ArrayContains):
        if not isinstance(kind, ListType):
            raise FilterTypeError(f"{name!r} is {kind.name}, not a list; compare it with = or IN")
        _refuse_constants(name, kind, kind.element.kind, (test.value,))
    elif isinstance(kind, ListType):
        raise FilterTypeError(f"{name!r} is {kind.name}; test it with array_contains({name}, value)")
    elif isinstance(test, _TEXT_TESTS):
        if kind.kind is not Kind.STRING:
            raise FilterTypeError(f"{name!r} is {kind.name}, not string; compare it with {_AS_WRITTEN[kind.kind]}")
    else:
        _refuse_constants(name, kind, kind.kind, _constants(test))


def _constants(test: Predicate) -> tuple[Scalar | None, ...]:
    match test:
        case Compare(_, _, value):
            return (value,)
        case Between(_, low, high):
            return (low, high)
        case In(_, values):
            return values
    raise TypeError(f"{type(test).__name__} has constants that a schema can't check")


def _refuse_constants(name: str, kind: AttributeType, wanted: Kind, values: Iterable[Scalar | None]) -> None:
    for value in values:
        if value is not None and kind_of(value) is not wanted:
            shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:59] + "…"
            raise FilterTypeError(
                f"{name!r} is {kind.name}, but is compared with the {kind_of(value).value} {shown}; "
                f"write {_AS_WRITTEN[wanted]}"
            )
